#!/usr/bin/env bash
# pkgconfig.sh: print sqlock.pc.
#
# Environment: PREFIX LIBDIR INCLUDEDIR and what configure.sh has found: VERSION
#     ENABLED MYSQL_LIBRARY REQUIRED NOT_REQUIRED
set -u

# Directories below the prefix follow it when a package is moved.
under_prefix() {
    case $1 in
    "$PREFIX"/*) printf '%s' "\${prefix}/${1#"$PREFIX"/}" ;;
    *) printf '%s' "$1" ;;
    esac
}
client='' through=''
case " $ENABLED " in
*' mysql '*) client=$MYSQL_LIBRARY through=" (MySQL through $client)" ;;
esac
private=$(echo $NOT_REQUIRED -pthread)

cat <<END
prefix=$PREFIX
exec_prefix=\${prefix}
libdir=$(under_prefix "$LIBDIR")
includedir=$(under_prefix "$INCLUDEDIR")
drivers=$ENABLED
mysql_client=$client

Name: sqlock
Description: Locks kept in the SQL database you already have$through
Version: $VERSION
Requires.private: $REQUIRED
Libs: -L\${libdir} -lsqlock
Libs.private: $private
Cflags: -I\${includedir}
END
