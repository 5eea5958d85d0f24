# sqlock: one Makefile, every output under build/.  `make help` lists targets.
#
# Variables a user may set, on the command line or in the environment:
#   CC CFLAGS CPPFLAGS LDFLAGS    ours come first, so that yours win
#   PREFIX BINDIR LIBDIR INCLUDEDIR MANDIR DESTDIR
#   DRIVERS="sqlite postgres mysql"            what is compiled in
#   MYSQL_CLIENT=auto|libmariadb|mysqlclient   client library of mysql:// URLs
#   MYSQL_CLIENT_TREE=DIR  libmysqlclient of a tree that
#                          tests/servers/fetch-mysql.sh has unpacked
#   SAN=address,undefined|thread  WERROR=1  V=1  SETUP=no  BUILD=DIR

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DRIVERS ?= sqlite postgres mysql
MYSQL_CLIENT ?= auto
MYSQL_CLIENT_TREE ?=
SAN ?=
WERROR ?=
V ?=
SETUP ?= yes
PKG_CONFIG ?= pkg-config

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
# Goals that compile nothing need no library to be there.
COMPILES := $(filter-out clean help setup format format-check uninstall \
	campaign asan tsan valgrind,$(GOALS))
SHORT_FLAGS := $(firstword -$(filter-out --%,$(MAKEFLAGS)))
DRY_RUN := $(findstring n,$(SHORT_FLAGS))

SETUP_FOR := $(if $(filter demo,$(GOALS)),build) \
	$(if $(filter test check bench asan tsan campaign valgrind test-mysql \
	docker-test tests-build,$(GOALS)),build test) \
	$(if $(filter lint,$(GOALS)),build lint) \
	$(if $(filter format format-check,$(GOALS)),format) \
	$(if $(filter valgrind,$(GOALS)),valgrind)
# Before the libraries are looked for below, hence not a rule.  `all` and
# `install` are not in the list: they never install a package.
ifneq ($(strip $(SETUP_FOR)),)
ifeq ($(filter no,$(SETUP))$(DRY_RUN),)
ifneq ($(wildcard .ci/setup.sh),)
$(shell DRIVERS='$(DRIVERS)' MYSQL_CLIENT='$(MYSQL_CLIENT)' \
	MYSQL_CLIENT_TREE='$(MYSQL_CLIENT_TREE)' CC='$(CC)' \
	bash .ci/setup.sh $(SETUP_FOR) >&2)
ifneq ($(.SHELLSTATUS),0)
$(error setup failed; SETUP=no goes on without it)
endif
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

UNKNOWN := $(filter-out sqlite postgres mysql,$(DRIVERS))
ifneq ($(UNKNOWN),)
$(error DRIVERS: no driver $(UNKNOWN); there are sqlite, postgres and mysql)
endif
# In this order, whatever the order in DRIVERS.
ENABLED := $(strip $(foreach d,sqlite postgres mysql,$(filter $(d),$(DRIVERS))))
FROM_TREE := $(and $(filter mysql,$(ENABLED)),$(MYSQL_CLIENT_TREE))
MODULES := $(foreach d,$(ENABLED),$(if $(and $(FROM_TREE), \
	$(filter mysql,$(d))),,$(MODULE_$(d)))) uuid liburiparser

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
DEP_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(MODULES))
# -L of a directory that is searched anyway would outlive a sysroot.
DEP_LIBS := $(filter-out -L/usr/lib -L/usr/lib/ -L/usr/lib/%-linux-gnu \
	-L/usr/lib/%-linux-gnu/,$(shell $(PKG_CONFIG) --libs $(MODULES))) -lmd
endif

# ------------------------------------------------------------------- places

VARIANT_CLIENT := $(if $(filter mysqlclient,$(MYSQL_LIBRARY)),mysqlclient)
comma := ,
VARIANT_SAN := $(if $(SAN),$(if $(findstring address,$(SAN)),asan,$(if \
	$(findstring thread,$(SAN)),tsan,$(subst $(comma),-,$(SAN)))))
SPACE := $(subst x, ,x)
VARIANT := $(subst $(SPACE),-,$(strip $(VARIANT_CLIENT) $(VARIANT_SAN)))
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

ALL_CPPFLAGS := -D_GNU_SOURCE -Iinclude $(DEP_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS := -std=gnu11 $(WARNINGS) $(if $(filter 1,$(WERROR)),-Werror) \
	-fPIC -fvisibility=hidden -pthread $(HARDEN) $(SANITIZE) $(CFLAGS)
LINK := -pthread -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed $(SANITIZE)
ALL_LDFLAGS := $(LINK) -pie $(LDFLAGS)
# A sanitizer's runtime is found in the program only.
SO_LDFLAGS := $(LINK) $(if $(SAN),,-Wl,-z,defs) -shared \
	-Wl,-soname,$(SONAME) $(LDFLAGS)
CLI_LIBS := -lpopt -ljansson
TEST_LIBS := -lcmocka -ljansson

# libmysqlclient of another distribution's tree, by that tree's own libc: its
# headers must not shadow the host's, and RPATH must win over the host's path.
ifneq ($(FROM_TREE),)
TREE := $(abspath $(MYSQL_CLIENT_TREE))
TREE_SO := $(firstword $(wildcard $(TREE)/usr/lib/*/libmysqlclient.so.*))
TREE_LIB := $(patsubst %/,%,$(dir $(TREE_SO)))
TREE_LD := $(firstword $(wildcard $(TREE_LIB)/ld-linux*.so.*))
ifeq ($(and $(TREE_SO),$(TREE_LD)),)
$(error MYSQL_CLIENT_TREE=$(MYSQL_CLIENT_TREE): no libmysqlclient in it)
endif
DEP_LIBS += $(TREE_SO)
ALL_CPPFLAGS += -I$B/inc/mysql -I$B/inc
LINK_TREE := -Wl,--allow-shlib-undefined -Wl,--dynamic-linker=$(TREE_LD) \
	-Wl,--disable-new-dtags -Wl,-rpath,$(TREE_LIB)
ALL_LDFLAGS += $(LINK_TREE)
SO_LDFLAGS += -Wl,--allow-shlib-undefined
endif

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@$(if $(findstring s,$(SHORT_FLAGS)),,printf '  %-7s %s\n' '$(1)' '$(2)';))

# -------------------------------------------------------------------- files

LIB_SRC := $(sort $(wildcard src/base/*.c src/db/*.c src/locks/*.c src/tx/*.c \
	src/stock/*.c src/drivers/*.c \
	$(foreach d,$(ENABLED),src/drivers/$(d)/*.c)))
SQL := $(sort $(wildcard $(foreach d,$(ENABLED),sql/$(d)/*.sql)))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
# An example is a file NAME.c, or a folder with a main.c, or NAME.c and more of
# its files in a folder NAME.
EXAMPLE_NAMES := $(sort $(patsubst src/examples/%.c,%, \
	$(wildcard src/examples/*.c)) $(patsubst src/examples/%/main.c,%, \
	$(wildcard src/examples/*/main.c)))
EXAMPLE_SRC := $(sort $(wildcard src/examples/*.c src/examples/*/*.c))
SUPPORT_SRC := $(sort $(wildcard tests/support/*.c))
# A suite is a folder of tests with a main.c in it.
SUITE_NAMES := $(sort $(patsubst tests/%/main.c,%,$(wildcard tests/*/main.c)))
SUITE_SRC := $(foreach s,$(SUITE_NAMES),$(wildcard tests/$(s)/*.c))

READY := $(foreach d,$(ENABLED),$(if $(wildcard src/drivers/$(d)/*.c),$(shell \
	sed -n 's/^const sqlock_driver \([a-z_]*\) = .*/\1/p' src/drivers/$(d)/*.c)))
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
CLI := $(if $(CLI_SRC),$B/bin/sqlock)
EXAMPLES := $(EXAMPLE_NAMES:%=$B/bin/examples/%)
TESTS := $(SUITE_NAMES:%=$B/tests/%)

# ------------------------------------------------------------------ targets

.PHONY: all
all: $(STATIC) $(SHARED) $(PC) $(CLI) $(EXAMPLES) ## Libraries, command, examples
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

INC := $(if $(FROM_TREE),$B/inc/mysql)
$B/inc/mysql:
	@mkdir -p $(@D) && ln -sfn $(TREE)/usr/include/mysql $@

$(LIB_OBJ): $B/obj/%.o: %.c $B/.flags | $(INC)
	$(call COMPILE,-Isrc)
# A string literal longer than the 4095 bytes that C11 promises is no trouble.
$(GEN_OBJ): $B/obj/gen/%.o: $B/gen/%.c $B/.flags | $(INC)
	$(call COMPILE,-Isrc -Wno-overlength-strings)
# Programs see the public headers and nothing else.
$(CLI_OBJ) $(EXAMPLE_OBJ): $B/obj/%.o: %.c $B/.flags
	$(COMPILE)
$(TEST_OBJ): $B/obj/%.o: %.c $B/.flags | $(INC)
	$(call COMPILE,-Isrc -Itests)

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
# Libs.private and not Requires.private: Debian's libpq.pc names libraries
# (-lldap -lgssapi_krb5 -lpgcommon) that its own -dev package does not bring,
# so a program that links libsqlock.a against the shared libpq would not link.
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
	'Version: $(VERSION)' 'Libs: -L$${libdir} -lsqlock' \
	'Libs.private: $(strip $(DEP_LIBS)) -pthread' \
	'Cflags: -I$${includedir}' >$@

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

$(TESTS): $B/tests/%: $$(call objects,tests/%/*.c) $(SUPPORT_OBJ) $(STATIC) $B/.link
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(filter %.o,$^) \
	$(STATIC) -o $@ $(ALL_LDFLAGS) $(TEST_LIBS) $(DEP_LIBS)

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(GEN_OBJ) $(CLI_OBJ) $(EXAMPLE_OBJ) \
	$(TEST_OBJ))

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf build

.PHONY: help
help: ## This list
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1 \2/p' Makefile | sort | \
	while read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done
