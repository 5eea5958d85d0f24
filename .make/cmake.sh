#!/usr/bin/env bash
# cmake.sh config|version: print what find_package(sqlock) reads: sqlock::sqlock,
# and sqlock::static with all that it needs.
#
# Folders are found from the file's own, so that a prefix can be moved; from its
# real one, since /lib may be a link to /usr/lib.
#
# Environment: LIBDIR INCLUDEDIR SONAME and what configure.sh has found: VERSION
#     MAJOR MINOR ENABLED DEP_LIBS
set -u

from_here() { # FOLDER
    realpath -m -s --relative-to="$LIBDIR/cmake/sqlock" "$1"
}

libraries=''
for word in $DEP_LIBS; do
    case $word in
    -l*) libraries+="${word#-l};" ;;
    esac
done

config() {
    cat <<END
include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(_sqlock_here "\${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_sqlock_lib
  "\${_sqlock_here}/$(from_here "$LIBDIR")" ABSOLUTE)
get_filename_component(_sqlock_include
  "\${_sqlock_here}/$(from_here "$INCLUDEDIR")" ABSOLUTE)
set(sqlock_DRIVERS $ENABLED)
if(NOT TARGET sqlock::sqlock)
  add_library(sqlock::sqlock SHARED IMPORTED)
  set_target_properties(sqlock::sqlock PROPERTIES
    IMPORTED_LOCATION "\${_sqlock_lib}/libsqlock.so.$VERSION"
    IMPORTED_SONAME "$SONAME"
    INTERFACE_INCLUDE_DIRECTORIES "\${_sqlock_include}")
  add_library(sqlock::static STATIC IMPORTED)
  set_target_properties(sqlock::static PROPERTIES
    IMPORTED_LOCATION "\${_sqlock_lib}/libsqlock.a"
    INTERFACE_INCLUDE_DIRECTORIES "\${_sqlock_include}"
    INTERFACE_LINK_LIBRARIES "${libraries}Threads::Threads")
endif()
unset(_sqlock_here)
unset(_sqlock_lib)
unset(_sqlock_include)
END
}

# Before 1.0 each minor release may break the interface, as the soname says.
version() {
    local minor=''
    [ "$MAJOR" -ne 0 ] || minor=" OR
    NOT \"\${PACKAGE_FIND_VERSION_MINOR}\" STREQUAL \"$MINOR\""
    cat <<END
set(PACKAGE_VERSION "$VERSION")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR
    NOT "\${PACKAGE_FIND_VERSION_MAJOR}" STREQUAL "$MAJOR"$minor)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
END
}

"$1"
