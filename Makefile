# sqlock: one Makefile, every output under build/.  `make help` lists targets.
#
# Variables a user may set, on the command line or in the environment:
#   CC CFLAGS CPPFLAGS LDFLAGS    ours come first, so that yours win
#   PREFIX BINDIR LIBDIR INCLUDEDIR MANDIR DATADIR DOCDIR DESTDIR
#   DRIVERS="sqlite postgres mysql"            what is compiled in
#   MYSQL_CLIENT=auto|libmariadb|mysqlclient   client library of mysql:// URLs
#   MYSQL_CLIENT_TREE=DIR  libmysqlclient of a tree that
#                          tests/tools/servers/fetch-mysql.sh has unpacked
#   SAN=address,undefined|thread  WERROR=1  V=1  SETUP=no  BUILD=DIR
#   SUITES="unit cli"  T=PATTERN               which tests `make test` runs

SHORT_FLAGS := $(firstword -$(MAKEFLAGS))
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DATADIR ?= $(PREFIX)/share
DOCDIR ?= $(DATADIR)/doc/sqlock
DRIVERS ?= sqlite postgres mysql
MYSQL_CLIENT ?= auto
MYSQL_CLIENT_TREE ?=
SAN ?=
WERROR ?=
V ?=
SETUP ?= yes
PKG_CONFIG ?= pkg-config
LDCONFIG ?= ldconfig
OBJCOPY ?= objcopy

# ------------------------------------------------------------------ version

version = $(shell sed -n \
	's/^\#define SQLOCK_VERSION_$(1) *\([0-9][0-9]*\)$$/\1/p' \
	include/sqlock.h)
MAJOR := $(call version,MAJOR)
MINOR := $(call version,MINOR)
PATCH := $(call version,PATCH)
ifneq ($(words $(MAJOR) $(MINOR) $(PATCH)),3)
$(error include/sqlock.h: no readable SQLOCK_VERSION_MAJOR, _MINOR, _PATCH)
endif
VERSION := $(MAJOR).$(MINOR).$(PATCH)
# Before 1.0 each minor release may break the binary interface.
ifeq ($(MAJOR),0)
SOVERSION := 0.$(MINOR)
else
SOVERSION := $(MAJOR)
endif
SONAME := libsqlock.so.$(SOVERSION)

# ------------------------------------------------- what these goals call for

GOALS := $(or $(MAKECMDGOALS),all)
# These compile nothing themselves and need no library to be there.
COMPILES := $(filter-out clean help setup format format-check uninstall asan \
	tsan valgrind campaign test-mysql dist deb doc manuals,$(GOALS))
DRY_RUN := $(findstring n,$(SHORT_FLAGS))

SETUP_LEVELS ?= build test package
INSTALLS := $(if $(filter undefined,$(origin SUITES)),yes,$(filter install, \
	$(SUITES)))
LEVELS := $(sort \
	$(if $(filter setup,$(GOALS)),$(SETUP_LEVELS)) \
	$(if $(filter demo,$(GOALS)),build) \
	$(if $(filter chart picture,$(GOALS)),build test chart) \
	$(if $(filter test check quick tests-build asan tsan valgrind bench \
		test-mysql test-spring docker-test,$(GOALS)),build test) \
	$(if $(filter test-matrix campaign,$(GOALS)),build test matrix) \
	$(if $(filter deb,$(GOALS)),build deb) \
	$(if $(filter abi abi-record wheel,$(GOALS)),build test package) \
	$(if $(filter test check,$(GOALS)),$(if $(INSTALLS),package)) \
	$(if $(filter lint,$(GOALS)),build test lint) \
	$(if $(filter doc,$(GOALS)),doc) \
	$(if $(filter format format-check,$(GOALS)),format) \
	$(if $(filter valgrind,$(GOALS)),valgrind))
# Here and not in a rule, because the libraries are looked for just below.
# `all` and `install` never come here: they install no package.
ifneq ($(LEVELS),)
ifeq ($(filter no,$(SETUP))$(DRY_RUN),)
$(shell DRIVERS='$(DRIVERS)' MYSQL_CLIENT='$(MYSQL_CLIENT)' \
	MYSQL_CLIENT_TREE='$(MYSQL_CLIENT_TREE)' CC='$(CC)' \
	bash .ci/setup.sh $(LEVELS) >&2)
ifneq ($(.SHELLSTATUS),0)
$(error setup failed; SETUP=no goes on without it)
endif
endif
endif

# ------------------------------------------------------- client libraries

MYSQL_LIBRARY := $(MYSQL_CLIENT)
ifeq ($(MYSQL_CLIENT),auto)
MYSQL_LIBRARY := $(shell $(PKG_CONFIG) --exists libmariadb && echo libmariadb \
	|| { $(PKG_CONFIG) --exists mysqlclient && echo mysqlclient; } \
	|| echo libmariadb)
endif
ifneq ($(MYSQL_CLIENT_TREE),)
MYSQL_LIBRARY := mysqlclient
endif
ifeq ($(filter libmariadb mysqlclient,$(MYSQL_LIBRARY)),)
$(error MYSQL_CLIENT=$(MYSQL_CLIENT): neither libmariadb nor mysqlclient)
endif

MODULE_sqlite := sqlite3
MODULE_postgres := libpq
MODULE_mysql := $(MYSQL_LIBRARY)
PACKAGE_sqlite3 := libsqlite3-dev
PACKAGE_libpq := libpq-dev
PACKAGE_libmariadb := libmariadb-dev
PACKAGE_mysqlclient := libmysqlclient-dev
PACKAGE_uuid := uuid-dev
PACKAGE_liburiparser := liburiparser-dev
PACKAGE_libmd := libmd-dev

UNKNOWN := $(filter-out sqlite postgres mysql,$(DRIVERS))
ifneq ($(UNKNOWN),)
$(error DRIVERS: no driver $(UNKNOWN); there are sqlite, postgres and mysql)
endif
# In this order, whatever the order in DRIVERS.
ENABLED := $(strip $(foreach d,sqlite postgres mysql,$(filter $(d),$(DRIVERS))))
FROM_TREE := $(and $(filter mysql,$(ENABLED)),$(MYSQL_CLIENT_TREE))
MODULES := $(foreach d,$(ENABLED),$(if $(and $(FROM_TREE), \
	$(filter mysql,$(d))),,$(MODULE_$(d)))) uuid liburiparser libmd

ifneq ($(COMPILES),)
ifeq ($(shell command -v $(PKG_CONFIG)),)
$(error pkg-config is missing: apt-get install pkg-config, or make setup)
endif
MISSING := $(foreach m,$(MODULES),$(shell $(PKG_CONFIG) --exists $(m) \
	|| echo $(m)))
ifneq ($(strip $(MISSING)),)
$(error $(foreach m,$(MISSING),pkg-config does not find $(m), apt-get install \
$(PACKAGE_$(m));) or leave the driver out of DRIVERS, or make setup)
endif
# As system headers, which are spared our warnings.
DEP_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags \
	$(MODULES)))
# -L of a directory that is searched anyway would outlive a sysroot.
DEP_LIBS := $(filter-out -L/usr/lib -L/usr/lib/ -L/usr/lib/%-linux-gnu \
	-L/usr/lib/%-linux-gnu/,$(shell $(PKG_CONFIG) --libs $(MODULES)))
endif

# ------------------------------------------------------------------- places

VARIANT_CLIENT := $(if $(filter mysqlclient,$(MYSQL_LIBRARY)),mysqlclient)
comma := ,
space := $(subst ,, )
VARIANT_SAN := $(if $(SAN),$(if $(findstring address,$(SAN)),asan,$(if \
	$(findstring thread,$(SAN)),tsan,$(subst $(comma),-,$(SAN)))))
VARIANT := $(subst $(space),-,$(strip $(VARIANT_CLIENT) $(VARIANT_SAN)))
BUILD ?= build
B := $(BUILD)$(addprefix /,$(VARIANT))

# -------------------------------------------------------------------- flags

# True when the compiler takes the flag.
takes = $(shell $(CC) -Werror $(1) -x c -c /dev/null -o /dev/null \
	>/dev/null 2>&1 && echo $(1))

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wformat=2 -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wvla \
	-Wwrite-strings -Wundef -Wcast-qual -Wconversion -fno-common
ifneq ($(COMPILES),)
HARDEN := -fstack-protector-strong $(call takes,-fstack-clash-protection) \
	$(call takes,-fcf-protection)
endif
# Fortify needs an optimizer, hides errors from the sanitizers, and is the
# user's where the user set it.
ifeq ($(SAN)$(findstring FORTIFY,$(CPPFLAGS) $(CFLAGS)),)
ifneq ($(filter -O1 -O2 -O3 -Os -Og -Oz,$(lastword $(filter -O%,$(CFLAGS)))),)
HARDEN += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
endif
endif
SANITIZE := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
	$(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined))

WITH_sqlite := -DSQLOCK_WITH_SQLITE
WITH_postgres := -DSQLOCK_WITH_POSTGRES
WITH_mysql := -DSQLOCK_WITH_MYSQL
ALL_CPPFLAGS := -D_GNU_SOURCE $(foreach d,$(ENABLED),$(WITH_$(d))) -Iinclude \
	$(DEP_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS := -std=gnu11 $(WARNINGS) $(if $(filter 1,$(WERROR)),-Werror) \
	-fPIC -fvisibility=hidden -pthread $(HARDEN) $(SANITIZE) $(CFLAGS)
LINK := -pthread -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed $(SANITIZE)
ALL_LDFLAGS := $(LINK) -pie $(LDFLAGS)
# A sanitizer's runtime is found in the program only.
SO_LDFLAGS := $(LINK) $(if $(SAN),,-Wl,-z,defs) -shared \
	-Wl,-soname,$(SONAME) $(LDFLAGS)
CLI_LIBS := -lpopt -ljansson
TEST_LIBS := -lcmocka -ljansson -lpopt -lm

# libmysqlclient of a tree that fetch-mysql.sh has unpacked, run by that tree's
# own C library: RPATH must win over the host's path, RUNPATH would not.
ifneq ($(FROM_TREE),)
TREE := $(abspath $(MYSQL_CLIENT_TREE))
TREE_SO := $(firstword $(wildcard $(TREE)/lib/libmysqlclient.so.*))
TREE_LD := $(firstword $(wildcard $(TREE)/lib/ld-linux*.so.*))
ifeq ($(and $(TREE_SO),$(TREE_LD)),)
$(error MYSQL_CLIENT_TREE=$(MYSQL_CLIENT_TREE): no libmysqlclient in it)
endif
DEP_LIBS += $(TREE_SO)
ALL_CPPFLAGS += -isystem $(TREE)/include -isystem $(TREE)/include/mysql
ALL_LDFLAGS += -Wl,--allow-shlib-undefined \
	-Wl,--dynamic-linker=$(TREE_LD) -Wl,--disable-new-dtags \
	-Wl,-rpath,$(TREE)/lib
SO_LDFLAGS += -Wl,--allow-shlib-undefined
endif

QUIET := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@$(if $(findstring s,$(SHORT_FLAGS)),,printf '  %-7s %s\n' '$(1)' '$(2)';))

# -------------------------------------------------------------------- files

LIB_SRC := $(sort $(wildcard src/base/*.c src/db/*.c src/lease/*.c src/wait/*.c src/locks/*.c src/admin/*.c src/tx/*.c \
	src/stock/*.c src/drivers/*.c \
	$(foreach d,$(ENABLED),src/drivers/$(d)/*.c)))
SQL := $(sort $(filter-out %/statements.sql, \
	$(wildcard $(foreach d,$(ENABLED),sql/$(d)/*.sql))))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
# An example is a file NAME.c, or a folder with a main.c.  One with the name of a
# driver at its end uses that one's client library.
EXAMPLE_OUT := $(foreach d,$(filter-out $(ENABLED),sqlite postgres mysql), \
	src/examples/%_$(d).c)
EXAMPLE_SRC := $(sort $(filter-out $(EXAMPLE_OUT), \
	$(wildcard src/examples/*.c src/examples/*/*.c)))
EXAMPLE_NAMES := $(sort $(patsubst src/examples/%/main.c,%, \
	$(filter %/main.c,$(EXAMPLE_SRC))) $(patsubst src/examples/%.c,%, \
	$(filter $(wildcard src/examples/*.c),$(EXAMPLE_SRC))))
# "support/tap.h" is in tools, "drivers/suite.h" beside it.
TEST_INCLUDES := -Itests -Itests/tools
SUPPORT_SRC := $(sort $(wildcard tests/tools/support/*.c))
# A suite is a folder of tests with a main.c in it, named by its last part:
# tests/SUITE or tests/GROUP/SUITE.
SUITE_DIRS := $(sort $(patsubst %/main.c,%,$(wildcard tests/*/main.c \
	tests/*/*/main.c)))
suite_dir = $(filter %/$(1),$(SUITE_DIRS))
SUITE_NAMES := $(sort $(notdir $(SUITE_DIRS)))
SUITE_SRC := $(foreach d,$(SUITE_DIRS),$(wildcard $(d)/*.c))

# The names that their folders define.
READY := $(foreach d,$(ENABLED),$(or $(shell sed -n \
	's/^const sqlock_driver \([a-z_]*\) = .*/\1/p' src/drivers/$(d)/*.c),\
	$(error no "const sqlock_driver NAME = ..." in src/drivers/$(d))))
SQL_GEN := $(SQL:sql/%.sql=$B/gen/sql/%.c)
LIB_OBJ := $(LIB_SRC:%.c=$B/obj/%.o)
GEN_OBJ := $(SQL_GEN:$B/gen/%.c=$B/obj/gen/%.o) $B/obj/gen/drivers.o
CLI_OBJ := $(CLI_SRC:%.c=$B/obj/%.o)
EXAMPLE_OBJ := $(EXAMPLE_SRC:%.c=$B/obj/%.o)
TEST_OBJ := $(SUPPORT_SRC:%.c=$B/obj/%.o) $(SUITE_SRC:%.c=$B/obj/%.o)
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$B/obj/%.o)

STATIC := $B/lib/libsqlock.a
SHARED := $B/lib/libsqlock.so.$(VERSION)
PC := $B/lib/pkgconfig/sqlock.pc
CMAKE := $B/lib/cmake/sqlock-config.cmake $B/lib/cmake/sqlock-config-version.cmake
CLI := $(if $(CLI_SRC),$B/bin/sqlock)
EXAMPLES := $(EXAMPLE_NAMES:%=$B/bin/examples/%)
TESTS := $(SUITE_NAMES:%=$B/tests/%)

# ------------------------------------------------------------------ targets

.PHONY: all
all: $(STATIC) $(SHARED) $(PC) $(CMAKE) $(CLI) $(EXAMPLES) ## Libraries, command, examples
.DEFAULT_GOAL := all

.PHONY: tests-build
tests-build: all $(TESTS) ## Everything and the test programs

# Flags and lists of files: an object or an archive made with others is stale.
.PHONY: FORCE
FORCE:
stamp = @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(1))' >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi
$B/.flags: FORCE
	$(call stamp,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS))
$B/.link: FORCE
	$(call stamp,$(CC) $(ALL_LDFLAGS) $(SO_LDFLAGS) $(DEP_LIBS) $(ENABLED) \
	$(LIB_OBJ) $(GEN_OBJ) $(CLI_OBJ) $(TEST_OBJ))
$B/.drivers: FORCE
	$(call stamp,$(READY))
$B/.install: FORCE
	$(call stamp,$(PREFIX) $(LIBDIR) $(INCLUDEDIR) $(DEP_LIBS) $(VERSION) \
	$(ENABLED) $(MYSQL_LIBRARY))

COMPILE = $(call say,CC,$@)mkdir -p $(@D) && $(CC) $(ALL_CPPFLAGS) $(1) \
	$(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(LIB_OBJ): $B/obj/%.o: %.c $B/.flags
	$(call COMPILE,-Isrc)
# A string literal longer than the 4095 bytes that C11 promises is no trouble.
$(GEN_OBJ): $B/obj/gen/%.o: $B/gen/%.c $B/.flags
	$(call COMPILE,-Isrc -Wno-overlength-strings)
# Examples see the public headers and nothing else; the command may use
# src/base, which tests/tools/lint/rules.sh checks.
$(CLI_OBJ): $B/obj/%.o: %.c $B/.flags
	$(call COMPILE,-Isrc)
$(EXAMPLE_OBJ): $B/obj/%.o: %.c $B/.flags
	$(COMPILE)
$(TEST_OBJ): $B/obj/%.o: %.c $B/.flags
	$(call COMPILE,-Isrc $(TEST_INCLUDES))

# sql/DB/NAME.sql becomes `const char lk_sql_DB_NAME[]`.
SQL_NAME = lk_sql_$(subst -,_,$(subst /,_,$*))
$(SQL_GEN): $B/gen/sql/%.c: sql/%.sql Makefile
	$(call say,SQL,$@)mkdir -p $(@D) && { \
	printf '/* from %s */\n' '$<'; \
	printf 'extern const char %s[];\nconst char %s[] =\n' \
		$(SQL_NAME) $(SQL_NAME); \
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$$/\\n"/' $<; \
	echo '    "";'; } >$@

# The drivers that are compiled in, as src/db/driver.h declares them.
$B/gen/drivers.c: $B/.drivers Makefile
	$(call say,GEN,$@)mkdir -p $(@D) && { \
	printf '#include <stddef.h>\n\n#include "db/driver.h"\n\n'; \
	$(foreach d,$(READY),printf 'extern const sqlock_driver $(d);\n';) \
	printf 'const sqlock_driver *const lk_drivers[] = {\n'; \
	$(foreach d,$(READY),printf '    &$(d),\n';) \
	printf '    NULL,\n};\n'; } >$@

$(STATIC): $(LIB_OBJ) $(GEN_OBJ) $B/.link
	$(call say,AR,$@)mkdir -p $(@D) && rm -f $@ && \
	$(AR) rcs $@ $(LIB_OBJ) $(GEN_OBJ)

$(SHARED): $(LIB_OBJ) $(GEN_OBJ) $B/.link
	$(call say,LD,$@)mkdir -p $(@D) && \
	$(CC) $(ALL_CFLAGS) $(LIB_OBJ) $(GEN_OBJ) -o $@ $(SO_LDFLAGS) \
	$(DEP_LIBS) && ln -sf $(@F) $(@D)/$(SONAME) && \
	ln -sf $(SONAME) $(@D)/libsqlock.so

# Directories below the prefix follow it when a package is moved.
under_prefix = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))
# True when all that the module names for static programs is here.  It is not
# with Debian's libpq.pc: -lldap -lgssapi_krb5 -lpgcommon are in packages that
# libpq-dev does not bring, so a program that links libsqlock.a against the
# shared libpq would not link if ours required it.
is_whole = $(shell echo 'int main(void){return 0;}' | $(CC) -x c - -o \
	/dev/null `$(PKG_CONFIG) --static --libs $(1)` >/dev/null 2>&1 && \
	echo $(1))
REQUIRED = $(foreach m,$(MODULES),$(call is_whole,$(m)))
LIBRARIES = $(if $(1),$(shell $(PKG_CONFIG) --libs $(1))) $(TREE_SO)
$(PC): $B/.install Makefile
	$(call say,PC,$@)mkdir -p $(@D) && printf '%s\n' \
	'prefix=$(PREFIX)' 'exec_prefix=$${prefix}' \
	'libdir=$(call under_prefix,$(LIBDIR))' \
	'includedir=$(call under_prefix,$(INCLUDEDIR))' \
	'drivers=$(ENABLED)' \
	'mysql_client=$(if $(filter mysql,$(ENABLED)),$(MYSQL_LIBRARY))' '' \
	'Name: sqlock' \
	'Description: Locks kept in the SQL database you already have$(if \
	$(filter mysql,$(ENABLED)), (MySQL through $(MYSQL_LIBRARY)))' \
	'Version: $(VERSION)' 'Requires.private: $(strip $(REQUIRED))' \
	'Libs: -L$${libdir} -lsqlock' 'Libs.private: $(strip $(call \
	LIBRARIES,$(filter-out $(REQUIRED),$(MODULES))) -pthread)' \
	'Cflags: -I$${includedir}' >$@

# For find_package(sqlock): sqlock::sqlock, and sqlock::static with all that it
# needs.  Folders are found from the file's own, so that a prefix can be moved;
# from its real one, since /lib may be a link to /usr/lib.
CMAKE_DIR = $(LIBDIR)/cmake/sqlock
from_cmake = $(shell realpath -m -s --relative-to='$(CMAKE_DIR)' '$(1)')
CMAKE_LIBS = $(patsubst -l%,%,$(filter -l%,$(DEP_LIBS)) $(TREE_SO))
define CMAKE_CONFIG
include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(_sqlock_here "$${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_sqlock_lib
  "$${_sqlock_here}/$(call from_cmake,$(LIBDIR))" ABSOLUTE)
get_filename_component(_sqlock_include
  "$${_sqlock_here}/$(call from_cmake,$(INCLUDEDIR))" ABSOLUTE)
set(sqlock_DRIVERS $(ENABLED))
if(NOT TARGET sqlock::sqlock)
  add_library(sqlock::sqlock SHARED IMPORTED)
  set_target_properties(sqlock::sqlock PROPERTIES
    IMPORTED_LOCATION "$${_sqlock_lib}/$(notdir $(SHARED))"
    IMPORTED_SONAME "$(SONAME)"
    INTERFACE_INCLUDE_DIRECTORIES "$${_sqlock_include}")
  add_library(sqlock::static STATIC IMPORTED)
  set_target_properties(sqlock::static PROPERTIES
    IMPORTED_LOCATION "$${_sqlock_lib}/libsqlock.a"
    INTERFACE_INCLUDE_DIRECTORIES "$${_sqlock_include}"
    INTERFACE_LINK_LIBRARIES "$(subst $(space),;,$(CMAKE_LIBS));Threads::Threads")
endif()
unset(_sqlock_here)
unset(_sqlock_lib)
unset(_sqlock_include)
endef
# Before 1.0 each minor release may break the interface, as SOVERSION says.
define CMAKE_VERSION
set(PACKAGE_VERSION "$(VERSION)")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR
    NOT "$${PACKAGE_FIND_VERSION_MAJOR}" STREQUAL "$(MAJOR)"$(if \
$(filter 0,$(MAJOR)), OR
    NOT "$${PACKAGE_FIND_VERSION_MINOR}" STREQUAL "$(MINOR)"))
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
endef
export CMAKE_CONFIG CMAKE_VERSION
$B/lib/cmake/sqlock-config.cmake: $B/.install Makefile
	$(call say,CMAKE,$@)mkdir -p $(@D) && printf '%s\n' "$$CMAKE_CONFIG" >$@
$B/lib/cmake/sqlock-config-version.cmake: $B/.install Makefile
	$(call say,CMAKE,$@)mkdir -p $(@D) && printf '%s\n' "$$CMAKE_VERSION" >$@

$B/bin/sqlock: $(CLI_OBJ) $(STATIC) $B/.link
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(CLI_OBJ) \
	$(STATIC) -o $@ $(ALL_LDFLAGS) $(CLI_LIBS) $(DEP_LIBS)

# The objects of the files that match.
objects = $(patsubst %.c,$B/obj/%.o,$(wildcard $(1)))
.SECONDEXPANSION:
$(EXAMPLES): $B/bin/examples/%: $$(call objects,src/examples/%.c \
		src/examples/%/*.c) $(STATIC) $B/.link
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) \
	$(filter %.o,$^) $(STATIC) -o $@ $(ALL_LDFLAGS) -lpopt $(DEP_LIBS)

# One suite makes calls of the library's own fail: they lead to the suite there.
EXHAUSTED := $B/lib/libsqlock-exhausted.a
$(EXHAUSTED): $(STATIC) tests/faults/exhaust/redirected
	$(call say,OBJCOPY,$@)$(OBJCOPY) \
	--redefine-syms=tests/faults/exhaust/redirected $(STATIC) $@
$B/tests/exhaust: $(EXHAUSTED)
TESTED = $(if $(filter $B/tests/exhaust,$@),$(EXHAUSTED),$(STATIC))

$(TESTS): $B/tests/%: $$(call objects,$$(call suite_dir,%)/*.c) \
	$(SUPPORT_OBJ) $(STATIC) $B/.link
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(filter %.o,$^) \
	$(TESTED) -o $@ $(ALL_LDFLAGS) $(TEST_LIBS) $(DEP_LIBS)

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(GEN_OBJ) $(CLI_OBJ) $(EXAMPLE_OBJ) \
	$(TEST_OBJ))

# -------------------------------------------------------- running the tests

.PHONY: setup
setup: ## Install what the build and the tests need (apt, as root or sudo -n)
	@echo "  all there: $(LEVELS)"

# Those that must be there, and whatever else is a suite.
SUITES ?= unit drivers conformance tx stress $(filter-out unit drivers \
	conformance tx stress bench failover galera replica group spring, \
	$(SUITE_NAMES)) \
	cli cpp python grants migration upgrade install demo readme
# The programs of the suites that are programs.
SUITE_PROGRAMS = $(filter $(TESTS),$(SUITES:%=$B/tests/%) \
	$(if $(filter demo,$(SUITES)),$B/tests/bench))
NEEDS_ALL := $(if $(filter cli command cpp python grants migration install demo readme \
	tx spring, \
	$(SUITES)),all)
RUN = SQLOCK_BUILD=$B CC='$(CC)' MAKE='$(MAKE)' DRIVERS='$(DRIVERS)'

.PHONY: test check quick
test: $(NEEDS_ALL) $(SUITE_PROGRAMS) ## Every suite; SUITES="unit cli" and T=PATTERN choose
	@exec env $(RUN) $(if $(T),SUITE_TESTS='$(T)') \
	bash tests/run.sh $(SUITES)
check: test

# Suites that a change is likely to break first, without a server.
QUICK := unit drivers conformance
quick: $(QUICK:%=$B/tests/%) ## Unit, drivers and conformance on SQLite, in under a minute
	@exec env $(RUN) $(if $(T),SUITE_TESTS='$(T)') SQLOCK_TEST_SERVERS= \
	SQLOCK_TEST_DATABASES=sqlite SQLOCK_TEST_LANES=8 SUITE_SCRIPTS=no \
	bash tests/run.sh $(QUICK)

.PHONY: statements
statements: $B/tests/unit ## Write sql/*/statements.sql: what is sent
	@SQLOCK_WRITE_STATEMENTS=1 $B/tests/unit -t 'test_statements_*' \
		>$B/statements.log 2>&1 || { cat $B/statements.log; exit 1; }

# Words of make's own that name the same build in another variant.
AGAIN = $(MAKE) --no-print-directory SETUP=no
# SAN_SUITES="tx renewer" chooses others for asan and tsan.
SAN_SUITES ?=
SANITIZED = unit drivers conformance
VALGRIND ?= valgrind -q --leak-check=full --errors-for-leak-kinds=definite \
	--error-exitcode=99 --child-silent-after-fork=yes

.PHONY: asan tsan valgrind campaign
asan: ## Unit, driver, conformance and exhaust suites under ASan and UBSan
	+@$(AGAIN) SAN=address,undefined \
	SUITES='$(or $(SAN_SUITES),$(SANITIZED) exhaust)' test
tsan: ## Unit, driver and conformance suites under ThreadSanitizer
	+@$(AGAIN) SAN=thread SUITES='$(or $(SAN_SUITES),$(SANITIZED))' test
valgrind: ## Unit suite under valgrind
	+@WRAP='$(VALGRIND)' SUITE_ARGS=--alone SUITE_SCRIPTS=no $(AGAIN) \
	SUITES=unit test
campaign: ## Stress, failover and Galera suites at full length (hours)
	@bash tests/tools/servers/fetch.sh mariadb-10
	+@SQLOCK_SCALE=campaign SUITE_SECONDS=7200 $(AGAIN) \
	SUITES='stress tx fault renewer waiting command failover galera stock' test

export ASAN_OPTIONS ?= detect_leaks=1:strict_string_checks=1:handle_segv=2
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=0:second_deadlock_stack=1

.PHONY: headers exports
headers: ## Each public header compiles alone as C99, C11 and C++11
	@CC='$(CC)' bash tests/cli/install/headers.sh
exports: $(SHARED) $(STATIC) ## The exported symbols are the headers'
	@SQLOCK_BUILD=$B CC='$(CC)' bash tests/cli/install/exports.sh

.PHONY: demo bench chart picture
DEMO := $B/bin/examples/stock_deduction
demo: $(DEMO) ## Sell stock in every way; URL=... names a server
	@$(DEMO) $(if $(URL),--url '$(URL)') $(DEMO_FLAGS)

BENCH_JSON ?= $B/bench.json
bench: $B/tests/bench ## Measure against the bare statements, on all databases
	@exec env SQLOCK_TEST_DURABLE=1 bash tests/tools/servers/with.sh $B/tests/bench \
	--json $(BENCH_JSON) $(BENCH_FLAGS)

# Each is measured once: remove the file to measure anew.
CHART_DIR := $B/chart
CHART_FLAGS ?= --seconds 0.4 --repeats 5
CHARTED := $(patsubst %,$(CHART_DIR)/%.json,stock-curve stock-ways waiting)
chart: $(CHARTED) ## Measure (takes 25 minutes) and draw, build/chart/*.svg
	@bash tests/tools/bench/chart.sh $(CHART_DIR) $^
picture: $(CHART_DIR)/waiting.json ## Measure and draw the picture of README
	@bash tests/tools/bench/chart.sh $(CHART_DIR) $^
	@cp $(CHART_DIR)/waiting-postgres.svg src/man/waiting.svg
$(CHART_DIR)/stock-curve.json: BENCH_FLAGS := --clients 2,4,8,16,32,64,128,200 \
	--cases sale,pessimistic,conditional,buckets,coalesced $(CHART_FLAGS)
$(CHART_DIR)/stock-ways.json: BENCH_FLAGS := --clients 1,4,16,64,64p \
	--cases stock $(CHART_FLAGS)
$(CHART_DIR)/waiting.json: BENCH_FLAGS := --clients 8,8p --cases waiting $(CHART_FLAGS)
$(CHART_DIR)/%.json: | $B/tests/bench
	@mkdir -p $(@D)
	@$(AGAIN) BENCH_JSON=$@ BENCH_FLAGS='$(BENCH_FLAGS)' bench

MYSQL_TREE ?= $(BUILD)/servers/mysql
MYSQL_SUITES ?= drivers conformance tls waiting
MATRIX_SUITES ?= conformance tx fault
.PHONY: test-mysql test-spring test-matrix docker-test
test-mysql: ## Drivers, locks, TLS and waiting on Oracle's MySQL, both clients
	@bash tests/tools/servers/fetch-mysql.sh $(MYSQL_TREE)
	+@SQLOCK_TEST_SERVERS='postgres mysql' SQLOCK_TEST_MYSQL_TREE=$(MYSQL_TREE) \
	$(AGAIN) MYSQL_CLIENT=libmariadb MYSQL_CLIENT_TREE= \
	SUITES='$(MYSQL_SUITES)' test
	+@SQLOCK_TEST_SERVERS='postgres mysql' SQLOCK_TEST_MYSQL_TREE=$(MYSQL_TREE) \
	$(AGAIN) MYSQL_CLIENT_TREE=$(MYSQL_TREE) \
	SUITES='$(MYSQL_SUITES)' test
# Without a JDK or Maven it says so, and that is all.
test-spring: $B/tests/spring $(CLI) ## Beside Spring's own lock registry (JDK and Maven); on MySQL, too, once fetched
	+@export SQLOCK_BUILD=$B SUITE_SECONDS=$${SUITE_SECONDS:-3600}; \
	bash tests/interplay/spring/with.sh || exit $$(($$? != 77)); \
	$(AGAIN) SUITES=spring test || exit 1; \
	[ -e $(MYSQL_TREE)/version ] || exit 0; \
	SQLOCK_TEST_SERVERS=mysql SQLOCK_TEST_MYSQL_TREE=$(abspath $(MYSQL_TREE)) \
	SUITE_ARGS=mysql $(AGAIN) SUITES=spring test
MATRIX_PROGRAMS = $(MATRIX_SUITES:%=$B/tests/%) \
	$(addprefix $B/tests/,failover galera replica group spring)
test-matrix: $(MATRIX_PROGRAMS) ## Suites on other versions and on clusters; ENGINES="galera" chooses
	@bash tests/tools/servers/fetch-mysql.sh $(MYSQL_TREE)
	+@$(AGAIN) MYSQL_CLIENT_TREE=$(MYSQL_TREE) \
	$(MATRIX_SUITES:%=$(BUILD)/mysqlclient/tests/%)
	+@exec env $(RUN) MATRIX_SUITES='$(MATRIX_SUITES)' \
	SQLOCK_BUILD_MYSQL=$(BUILD)/mysqlclient \
	SQLOCK_TEST_TREES=$(abspath $(BUILD))/servers \
	bash tests/tools/matrix/matrix.sh $(ENGINES)
docker-test: $(filter $B/tests/conformance,$(TESTS)) ## Conformance suite on the servers of docker/compose.test.yaml
	@exec env SQLOCK_BUILD=$B bash docker/test.sh $(DOCKER_SUITES)

# ------------------------------------------------------------------- checks

CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format) \
	clang-format)
CLANG_TIDY ?= $(firstword $(shell command -v clang-tidy-14 clang-tidy) \
	clang-tidy)
FORMATTED = $(shell find include src tests -name '*.[ch]' -o -name '*.cc' \
	-o -name '*.hpp')

.PHONY: format format-check
format: ## Format the sources
	$(QUIET)$(CLANG_FORMAT) -i $(FORMATTED)
format-check: ## Fail if `make format` would change a source
	$(QUIET)$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED)

# One process per file: several files in one give false reports.
TIDY_SRC := $(LIB_SRC) $(CLI_SRC) $(EXAMPLE_SRC) $(SUPPORT_SRC) $(SUITE_SRC)
TIDY := $(TIDY_SRC:%=$B/lint/%.tidy)
HEADERS = $(shell find include src tests -name '*.h')
$(TIDY): $B/lint/%.tidy: % .clang-tidy tests/.clang-tidy $(HEADERS)
	$(call say,TIDY,$*)mkdir -p $(@D) && $(CLANG_TIDY) --quiet \
	--warnings-as-errors='*' $< -- -std=gnu11 $(ALL_CPPFLAGS) -Isrc $(TEST_INCLUDES) \
	$(if $(filter src/base/error.c,$<),,-include tests/tools/lint/analyzer.h) \
	>$@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@

.PHONY: lint lint-cppcheck lint-rules lint-scripts lint-manuals lint-python
lint: lint-rules lint-scripts lint-manuals lint-python lint-cppcheck $(TIDY) ## clang-tidy, cppcheck, shellcheck, mandoc and the house's rules
# Tests pass NULL on purpose; arrays handed on as pointers are indexed; uthash's
# macros look like uses of what was never set, which clang-tidy judges better,
# as -Wsequence-point does what happens in which order.  C only: cppcheck does
# not know the literals of std::chrono.
lint-cppcheck:
	$(call say,CPPCHECK,src tests)mkdir -p $B/lint/cppcheck && cppcheck \
	--quiet --error-exitcode=1 --enable=warning,performance,portability \
	--std=c11 --inline-suppr --suppress=missingIncludeSystem \
	--suppress=ctunullpointer --suppress=objectIndex \
	--suppress=uninitvar --suppress=ctuuninitvar \
	--suppress=unknownEvaluationOrder \
	--cppcheck-build-dir=$B/lint/cppcheck -D_GNU_SOURCE -Iinclude -Isrc \
	$(TEST_INCLUDES) -i tests/conformance/cpp src \
	$(sort $(dir $(SUPPORT_SRC) $(SUITE_SRC)))
lint-rules:
	$(call say,RULES,src tests)bash tests/tools/lint/rules.sh
# SC2034: variables of a script that others source; SC2104: `sqlock break`.
lint-scripts:
	$(call say,SHELL,scripts)shellcheck --external-sources \
	--severity=warning --exclude=SC2034,SC2104 $(shell find .ci .debian tests docker \
	src -name '*.sh') src/cli/completion/sqlock.bash .ci/run
# Those of Debian's Python, for which they are packaged.
PYTHON_FILES := src/python tests/conformance/python tests/cli/install/loses.py
lint-python:
	$(call say,PYTHON,$(PYTHON_FILES))/usr/bin/python3 -m pyflakes \
	$(PYTHON_FILES) && /usr/bin/python3 -m black --quiet --check \
	$(PYTHON_FILES) && /usr/bin/python3 -m mypy --strict \
	--cache-dir=$B/lint/mypy --no-error-summary src/python/sqlock
lint-manuals: manuals
	$(call say,MANDOC,src/man)mandoc -Tlint -Wwarning $(MANUALS) $B/man/*.3

# ------------------------------------------------------------ documentation

PUBLIC := $(wildcard include/*.h include/*.hpp include/*/*.h include/*/*.hpp)
PAGES := src/man/pages.pl
.PHONY: manuals doc
manuals: $B/man/.made ## Manual pages of section 3, from the headers: build/man
$B/man/.made: $(PAGES) src/man/sqlock.3 $(PUBLIC)
	$(call say,MAN,$(@D))command -v perl >/dev/null || { \
	echo 'perl is missing: apt-get install perl-base, or make setup'; \
	exit 1; } && rm -rf $(@D) && mkdir -p $(@D) && \
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(stat -c %Y include/sqlock.h)} \
	perl $(PAGES) --out $(@D)
	@touch $@
doc: manuals ## All manual pages as HTML: build/doc/index.html
	$(call say,HTML,$B/doc)bash src/man/html.sh $B/man $B/doc

# ------------------------------------------------------------------ install

D = $(DESTDIR)
EXAMPLE_FILES := $(shell find src/examples -type f)
MIGRATE := src/examples/migration/migrate.sh
SQL_FILES := $(wildcard sql/*/*.sql)
# The pages of section 3 are made of the headers' comments.
MANUALS := $(filter-out src/man/sqlock.3,$(wildcard src/man/*.[1-9]))
MANUAL_DIR = $(MANDIR)/man$(patsubst .%,%,$(suffix $(1)))
BASH_COMPLETION := $(DATADIR)/bash-completion/completions/sqlock
ZSH_COMPLETION := $(DATADIR)/zsh/site-functions/_sqlock
.PHONY: install uninstall
install: all manuals ## Into PREFIX (/usr/local), below DESTDIR
	$(QUIET)install -d $(D)$(LIBDIR)/pkgconfig $(D)$(CMAKE_DIR) $(D)$(BINDIR)
	$(QUIET)for f in $(PUBLIC:include/%=%); do \
		install -D -m 644 include/$$f $(D)$(INCLUDEDIR)/$$f || exit 1; done
	$(QUIET)install -m 644 $(STATIC) $(D)$(LIBDIR)
	$(QUIET)install -m 755 $(SHARED) $(D)$(LIBDIR)
	$(QUIET)ln -sf $(notdir $(SHARED)) $(D)$(LIBDIR)/$(SONAME)
	$(QUIET)ln -sf $(SONAME) $(D)$(LIBDIR)/libsqlock.so
	$(QUIET)install -m 644 $(PC) $(D)$(LIBDIR)/pkgconfig
	$(QUIET)install -m 644 $(CMAKE) $(D)$(CMAKE_DIR)
	$(QUIET)$(if $(CLI),install -m 755 $(CLI) $(D)$(BINDIR))
	$(QUIET)for f in $(SQL_FILES); do \
		install -D -m 644 $$f $(D)$(DATADIR)/sqlock/$$f || exit 1; done
	$(QUIET)for f in $(patsubst src/%,%,$(filter-out $(MIGRATE), \
		$(EXAMPLE_FILES))); do \
		install -D -m 644 src/$$f $(D)$(DOCDIR)/$$f || exit 1; done
	$(QUIET)install -D -m 755 $(MIGRATE) $(D)$(DATADIR)/sqlock/migrate.sh
	$(QUIET)$(foreach m,$(MANUALS),install -D -m 644 $(m) \
		$(D)$(call MANUAL_DIR,$(m))/$(notdir $(m)) &&) true
	$(QUIET)install -d $(D)$(MANDIR)/man3
	$(QUIET)install -m 644 $B/man/*.3 $(D)$(MANDIR)/man3
	$(QUIET)install -D -m 644 src/cli/completion/sqlock.bash \
		$(D)$(BASH_COMPLETION)
	$(QUIET)install -D -m 644 src/cli/completion/_sqlock $(D)$(ZSH_COMPLETION)
	$(QUIET)$(if $(D),,$(FIND_LIBRARY) &&) $(TELL_PLACES)

# The loader and pkg-config look into folders of their own only, the loader into
# its cache of them; what another folder takes is said.
FIND_LIBRARY = case ":$$($(PKG_CONFIG) --variable=pc_path pkg-config):" in \
	*:$(LIBDIR)/pkgconfig:*) ;; \
	*) path='; found with PKG_CONFIG_PATH=$(LIBDIR)/pkgconfig' ;; \
	esac; PATH=$$PATH:/usr/sbin:/sbin; \
	if ! $(LDCONFIG) -N -X -v 2>/dev/null | sed -n 's/^\(\/[^:]*\):.*/\1/p' | \
	xargs -r readlink -f | grep -qxF "$$(readlink -f $(LIBDIR))"; then \
		hint='; found with LD_LIBRARY_PATH=$(LIBDIR)'; \
	elif [ "$$(id -u)" -ne 0 ] || ! $(LDCONFIG); then \
		hint='; found once root has run ldconfig'; \
	else \
		hint=' (ldconfig has been run)'; \
	fi
TELL_PLACES = $(if $(findstring s,$(SHORT_FLAGS)),:,printf '%s\n' \
	'sqlock $(VERSION) is installed$(if $(D), below $(D)):' \
	'  command   $(BINDIR)/sqlock' \
	"  library   $(LIBDIR)/$(SONAME)$$hint" \
	'  headers   $(INCLUDEDIR)' \
	"  flags     $(LIBDIR)/pkgconfig/sqlock.pc$$path" \
	'  CMake     $(CMAKE_DIR)' \
	'  schemas   $(DATADIR)/sqlock/sql' \
	'  scripts   $(DATADIR)/sqlock/migrate.sh' \
	'  examples  $(DOCDIR)/examples' \
	'  manuals   $(MANDIR)')

uninstall: ## Remove what install put there
	$(QUIET)rm -f $(PUBLIC:include/%=$(D)$(INCLUDEDIR)/%) \
		$(D)$(LIBDIR)/libsqlock.a $(D)$(LIBDIR)/libsqlock.so \
		$(D)$(LIBDIR)/$(SONAME) $(D)$(LIBDIR)/$(notdir $(SHARED)) \
		$(D)$(LIBDIR)/pkgconfig/sqlock.pc $(D)$(BINDIR)/sqlock \
		$(foreach m,$(MANUALS),$(D)$(call MANUAL_DIR,$(m))/$(notdir $(m))) \
		$(D)$(MANDIR)/man3/sqlock.3 $(D)$(MANDIR)/man3/sqlock[-_]*.3 \
		$(D)$(BASH_COMPLETION) $(D)$(ZSH_COMPLETION)
	$(QUIET)rm -rf $(D)$(DATADIR)/sqlock $(D)$(CMAKE_DIR) \
		$(D)$(DOCDIR)/examples
	$(QUIET)rmdir $(D)$(DOCDIR) $(D)$(INCLUDEDIR)/sqlock 2>/dev/null || true
	$(QUIET)$(if $(D),,[ "$$(id -u)" -ne 0 ] || \
		PATH=$$PATH:/usr/sbin:/sbin $(LDCONFIG))

# ------------------------------------------------------------------ packages

# The archive has the files that git tracks or, outside of git, all but the
# built ones; with the time of the last commit, in one order, and without their
# owners, so that everybody gets the same bytes, also from an archive unpacked.
DIST := $B/sqlock-$(VERSION).tar.xz
.PHONY: dist deb
dist: ## The sources, the same bytes each time: build/sqlock-VERSION.tar.xz
	$(call say,DIST,$(DIST))mkdir -p $B && export LC_ALL=C && \
	if git ls-files --error-unmatch Makefile >/dev/null 2>&1; then \
		files='git ls-files -z' time=`git log -1 --format=%ct`; \
	else \
		files="find . \( -path './$(BUILD)' -o -path ./build -o \
			-path ./.git \) -prune -o -type f -printf '%P\\0'"; \
		time=`stat -c %Y CHANGELOG.md`; \
	fi && eval "$$files" | sort -z | tar --create --format=gnu --owner=root:0 \
		--group=root:0 --numeric-owner --mode=u=rwX,go=rX \
		--mtime=@$${SOURCE_DATE_EPOCH:-$$time} --no-recursion \
		--transform='s,^,sqlock-$(VERSION)/,' --null --files-from=- \
		>$(DIST).tar && xz -2 -T1 <$(DIST).tar >$(DIST).new && \
	rm $(DIST).tar && mv $(DIST).new $(DIST)
deb: dist ## Debian packages, checked by lintian: build/deb/*.deb
	$(call say,DEB,$B/deb)bash .debian/build.sh $(DIST) $B/deb

.PHONY: wheel
wheel: $(SHARED) ## The Python package with the library inside: build/wheel/*.whl
	$(call say,WHEEL,$B/wheel)bash src/python/wheel.sh $(SHARED) $B/wheel

.PHONY: abi abi-record
abi: $(SHARED) $(PC) ## The binary interface is the recorded one, or has grown
	@SQLOCK_BUILD=$B bash tests/cli/install/abi.sh
abi-record: $(SHARED) $(PC) ## Record it, after a change that is meant
	@SQLOCK_BUILD=$B bash tests/cli/install/abi.sh --record

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf $(BUILD)

.PHONY: help
help: ## This list
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1 \2/p' Makefile | sort | \
	while read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done
