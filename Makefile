# sqlock: compile and install.  Every output is under build/; `make help` lists
# the targets.  Longer work is left to scripts: .make/ has those of the build,
# .ci/ installs missing packages, tests/run.mk has the targets that run tests.
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
.DEFAULT_GOAL := all
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
BUILD ?= build
SETUP ?= yes
PKG_CONFIG ?= pkg-config
LDCONFIG ?= ldconfig
OBJCOPY ?= objcopy

# A build with a sanitizer, or with libmysqlclient, has a folder of its own.
comma := ,
variant_of = $(if $(findstring address,$(1)),asan,$(if $(findstring \
	thread,$(1)),tsan,$(subst $(comma),-,$(1))))
VARIANT := $(if $(MYSQL_CLIENT_TREE)$(filter mysqlclient,$(MYSQL_CLIENT)),mysqlclient)
VARIANT += $(call variant_of,$(SAN))
empty :=
B := $(BUILD)$(addprefix /,$(subst $(empty) ,-,$(strip $(VARIANT))))

# --------------------------------------------- what is installed, and found out

# Goals for which missing packages are installed first, as .ci/setup.sh says.
# `all` and `install` are none of them.
GOALS := $(or $(MAKECMDGOALS),all)
INSTALLING := $(filter setup demo chart picture test check quick model mutants chaos fuzz tests-build \
	asan tsan valgrind bench test-mysql test-spring test-matrix docker-test \
	campaign deb abi abi-record wheel lint doc format format-check,$(GOALS))
ASKED = DRIVERS='$(DRIVERS)' MYSQL_CLIENT='$(MYSQL_CLIENT)' \
	MYSQL_CLIENT_TREE='$(MYSQL_CLIENT_TREE)' CC='$(CC)'
ifneq ($(INSTALLING),)
ifeq ($(filter no,$(SETUP))$(findstring n,$(SHORT_FLAGS)),)
$(shell $(ASKED) SUITES='$(SUITES)' SETUP_LEVELS='$(SETUP_LEVELS)' \
	bash .ci/setup.sh --for $(INSTALLING) >&2)
ifneq ($(.SHELLSTATUS),0)
$(error setup failed; SETUP=no goes on without it)
endif
endif
endif

# remember NAME,TEXT: the file $B/NAME has the text, and is new if it had not.
define remember
ifneq ($$(strip $$(file <$B/$(1))),$$(strip $(2)))
$$(shell mkdir -p $B)
$$(file >$B/$(1),$(2))
endif
endef

# These compile nothing themselves and need no library to be there.
COMPILES := $(filter-out clean help setup format format-check uninstall asan \
	tsan valgrind fuzz mutants campaign test-mysql dist deb doc manuals,$(GOALS))
CONFIG := $B/config.mk
ifneq ($(COMPILES),)
CONFIGURED := $(foreach v,CC CFLAGS CPPFLAGS SAN PKG_CONFIG PKG_CONFIG_PATH \
	PKG_CONFIG_LIBDIR DRIVERS MYSQL_CLIENT MYSQL_CLIENT_TREE,$(v)=$($(v)))
$(eval $(call remember,.configured,$$(CONFIGURED)))
$(CONFIG): $B/.configured include/sqlock.h .make/configure.sh
	@$(ASKED) CFLAGS='$(CFLAGS)' CPPFLAGS='$(CPPFLAGS)' SAN='$(SAN)' \
	PKG_CONFIG='$(PKG_CONFIG)' bash .make/configure.sh >$@
include $(CONFIG)
endif
# Before 1.0 each minor release may break the binary interface.
SOVERSION = $(MAJOR)$(if $(filter 0,$(MAJOR)),.$(MINOR))
SONAME = libsqlock.so.$(SOVERSION)

# -------------------------------------------------------------------- flags

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wformat=2 -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wvla \
	-Wwrite-strings -Wundef -Wcast-qual -Wconversion -fno-common
SANITIZE := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
	$(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined))
WITH_sqlite := -DSQLOCK_WITH_SQLITE
WITH_postgres = -DSQLOCK_WITH_POSTGRES -DSQLOCK_LIBPQ='"$(LIBPQ)"'
WITH_mysql = -DSQLOCK_WITH_MYSQL -DSQLOCK_MYSQL_LIBRARY='"$(MYSQL_SO)"'
ALL_CPPFLAGS := -D_GNU_SOURCE $(foreach d,$(ENABLED),$(WITH_$(d))) -Iinclude \
	-I$B/gen $(DEP_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS := -std=gnu11 $(WARNINGS) $(if $(filter 1,$(WERROR)),-Werror) \
	-fPIC -fvisibility=hidden -pthread $(HARDEN) $(SANITIZE) $(CFLAGS)
LINK := -pthread -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed $(SANITIZE) \
	$(if $(TREE_SO),-Wl$(comma)--allow-shlib-undefined)
ALL_LDFLAGS := $(LINK) -pie $(LDFLAGS) $(TREE_LDFLAGS)
# A sanitizer's runtime is found in the program only.
SO_LDFLAGS := $(LINK) $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -shared \
	-Wl,-soname,$(SONAME) -Wl,-z,nodelete $(LDFLAGS)
CLI_LIBS := -ljansson
TEST_LIBS := -lcmocka -ljansson -lpopt -lm
# "support/tap.h" is in tools, "drivers/suite.h" beside it.
TEST_INCLUDES := -Itests -Itests/tools

QUIET := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@$(if $(findstring s,$(SHORT_FLAGS)),,printf '  %-7s %s\n' '$(1)' '$(2)';))

# -------------------------------------------------------------------- files

LIB_SRC := $(sort $(wildcard $(addsuffix /*.c,$(addprefix src/,base db lease \
	lock admin tx quorum stock stock/sql drivers $(ENABLED:%=drivers/%)))))
SQL := $(sort $(wildcard $(foreach d,$(ENABLED),sql/$(d)/*.sql)))
CLI_SRC := $(sort $(wildcard src/cli/*.c src/cli/*/*.c))
# An example is a file NAME.c, or a folder with a main.c.  One with the name of a
# driver at its end uses that one's client library.
EXAMPLE_SRC := $(sort $(filter-out $(foreach d,$(filter-out $(ENABLED),sqlite \
	postgres mysql),src/examples/%_$(d).c),$(wildcard src/examples/*.c \
	src/examples/*/*.c)))
EXAMPLE_NAMES := $(patsubst src/examples/%/main.c,%,$(filter %/main.c, \
	$(EXAMPLE_SRC))) $(patsubst src/examples/%.c,%,$(filter-out \
	$(wildcard src/examples/*/*.c),$(EXAMPLE_SRC)))
SUPPORT_SRC := $(sort $(wildcard tests/tools/support/*.c))
# A suite is a folder of tests with a main.c in it, named by its last part:
# tests/SUITE or tests/GROUP/SUITE.
SUITE_DIRS := $(sort $(patsubst %/main.c,%,$(wildcard tests/*/main.c \
	tests/*/*/main.c)))
suite_dir = $(filter %/$(1),$(SUITE_DIRS))
SUITE_NAMES := $(sort $(notdir $(SUITE_DIRS)))
SUITE_SRC := $(wildcard $(addsuffix /*.c,$(SUITE_DIRS)))

objects = $(patsubst %.c,$B/obj/%.o,$(1))
SQL_OBJ := $(SQL:sql/%.sql=$B/obj/gen/sql/%.o)
LIB_OBJ := $(call objects,$(LIB_SRC)) $(SQL_OBJ)
HELPS := $B/obj/gen/cli/helps.o
NAMES_mysql := $B/gen/drivers/mysql/library_names.h
NAMES_postgres := $B/gen/drivers/postgres/client_names.h
NAMES := $(foreach d,$(ENABLED),$(NAMES_$(d)))
CLI_OBJ := $(call objects,$(CLI_SRC)) $(HELPS)
EXAMPLE_OBJ := $(call objects,$(EXAMPLE_SRC))
SUPPORT_OBJ := $(call objects,$(SUPPORT_SRC))
TEST_OBJ := $(SUPPORT_OBJ) $(call objects,$(SUITE_SRC))

STATIC := $B/lib/libsqlock.a
SHARED := $B/lib/libsqlock.so.$(VERSION)
PC := $B/lib/pkgconfig/sqlock.pc
CMAKE := $B/lib/cmake/sqlock-config.cmake $B/lib/cmake/sqlock-config-version.cmake
CLI := $B/bin/sqlock
EXAMPLES := $(EXAMPLE_NAMES:%=$B/bin/examples/%)
TESTS := $(SUITE_NAMES:%=$B/tests/%)

# ---------------------------------------------------------------- compiling

.PHONY: all tests-build
all: $(STATIC) $(SHARED) $(PC) $(CMAKE) $(CLI) $(EXAMPLES) ## Libraries, command, examples
tests-build: all $(TESTS) ## Everything and the test programs

# An object or an archive that was made with other flags or files is stale.
ifneq ($(COMPILES),)
$(eval $(call remember,.flags,$$(CC) $$(ALL_CPPFLAGS) $$(ALL_CFLAGS)))
$(eval $(call remember,.link,$$(CC) $$(ALL_LDFLAGS) $$(SO_LDFLAGS) $$(DEP_LIBS) $$(CLIENT_LIBS) \
	$$(LIB_OBJ) $$(CLI_OBJ) $$(TEST_OBJ)))
$(eval $(call remember,.places,$$(PREFIX) $$(LIBDIR) $$(INCLUDEDIR)))
endif

COMPILE = $(call say,CC,$@)mkdir -p $(@D) && $(CC) $(ALL_CPPFLAGS) \
	$(ALL_CFLAGS) $(1) -MMD -MP -c $< -o $@
# Examples see the public headers and nothing else; the command may use src/base,
# which tests/tools/lint/rules.sh checks.
$(EXAMPLE_OBJ): $B/obj/%.o: %.c $B/.flags
	$(call COMPILE)
$(filter-out $(SQL_OBJ) $(HELPS),$(LIB_OBJ) $(CLI_OBJ)): $B/obj/%.o: %.c $B/.flags
	$(call COMPILE,-Isrc)
$(LIB_OBJ) $(TEST_OBJ): | $(NAMES)
$(TEST_OBJ): $B/obj/%.o: %.c $B/.flags
	$(call COMPILE,-Isrc $(TEST_INCLUDES))
# A string literal longer than the 4095 bytes that C11 promises is no trouble.
$(SQL_OBJ) $(HELPS): $B/obj/%.o: $B/%.c $B/.flags
	$(call COMPILE,-Isrc -Wno-overlength-strings)
# sql/DB/statements.sql and stock-statements.sql become a list of statements,
# another sql/DB/NAME.sql a text, `const char lk_sql_DB_NAME[]`; the view is behind
# the table.
$B/gen/sql/%statements.c: sql/%statements.sql .make/statements.pl
	$(call say,SQL,$@)mkdir -p $(@D) && perl .make/statements.pl $< >$@
$B/gen/sql/%/schema.c: sql/%/schema.sql sql/%/now.sql .make/embed.sh
	$(call say,SQL,$@)mkdir -p $(@D) && sh .make/embed.sh lk_sql_$*_schema \
	sql/$*/schema.sql sql/$*/now.sql >$@
$B/gen/sql/%.c: sql/%.sql .make/embed.sh
	$(call say,SQL,$@)mkdir -p $(@D) && sh .make/embed.sh \
	lk_sql_$(subst -,_,$(subst /,_,$*)) $< >$@
# A client library's functions are called by macros, made of the list of them.
$B/gen/drivers/%_names.h: src/drivers/%.h
	$(call say,NAMES,$@)mkdir -p $(@D) && sed -n \
	's/^    X(\(.*\)).*/#define \1 LK_CLIENT.\1/p' $< >$@
# The command's help texts are parts of its manual pages.
$B/gen/cli/helps.c: src/man/help.awk src/man/sqlock.1 src/man/sqlock-run.1
	$(call say,HELP,$@)mkdir -p $(@D) && awk -f $^ >$@

$(STATIC): $(LIB_OBJ) $B/.link
	$(call say,AR,$@)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)
$(SHARED): $(LIB_OBJ) $B/.link
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(LIB_OBJ) -o $@ \
	$(SO_LDFLAGS) $(DEP_LIBS) && ln -sf $(@F) $(@D)/$(SONAME) && \
	ln -sf $(SONAME) $(@D)/libsqlock.so

FOUND = MAJOR='$(MAJOR)' MINOR='$(MINOR)' VERSION='$(VERSION)' \
	ENABLED='$(ENABLED)' MYSQL_LIBRARY='$(MYSQL_LIBRARY)' \
	DEP_LIBS='$(DEP_LIBS)' REQUIRED='$(REQUIRED)' \
	NOT_REQUIRED='$(NOT_REQUIRED)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' \
	INCLUDEDIR='$(INCLUDEDIR)' SONAME='$(SONAME)'
$(PC): .make/pkgconfig.sh $(CONFIG) $B/.places
	$(call say,PC,$@)mkdir -p $(@D) && $(FOUND) bash $< >$@
$B/lib/cmake/sqlock-%.cmake: .make/cmake.sh $(CONFIG) $B/.places
	$(call say,CMAKE,$@)mkdir -p $(@D) && $(FOUND) bash $< \
	$(if $(findstring version,$*),version,config) >$@

LINK_PROGRAM = $(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) \
	$(filter %.o,$^) $(filter %.a,$(1)) -o $@ $(ALL_LDFLAGS) \
	$(filter -l%,$(1)) $(DEP_LIBS)
.SECONDEXPANSION:
$(CLI): $(CLI_OBJ) $(STATIC) $B/.link
	$(call LINK_PROGRAM,$(STATIC) $(CLI_LIBS))
$(EXAMPLES): $B/bin/examples/%: $$(call objects,$$(wildcard src/examples/%.c \
		src/examples/%/*.c)) $(STATIC) $B/.link
	$(call LINK_PROGRAM,$(STATIC)) $(CLIENT_LIBS)
# One suite makes calls of the library's own fail: they lead to the suite there.
EXHAUSTED := $B/lib/libsqlock-exhausted.a
$(EXHAUSTED): $(STATIC) tests/faults/exhaust/redirected
	$(call say,OBJCOPY,$@)$(OBJCOPY) \
	--redefine-syms=tests/faults/exhaust/redirected $(STATIC) $@
$B/tests/exhaust: $(EXHAUSTED)
$(TESTS): $B/tests/%: $$(call objects,$$(wildcard $$(call suite_dir,%)/*.c)) \
		$(SUPPORT_OBJ) $(STATIC) $B/.link
	$(call LINK_PROGRAM,$(or $(filter $(EXHAUSTED),$^),$(STATIC)) $(TEST_LIBS)) \
	$(CLIENT_LIBS)

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(CLI_OBJ) $(EXAMPLE_OBJ) $(TEST_OBJ))

# ------------------------------------------------------------------ install

D = $(DESTDIR)
CMAKE_DIR = $(LIBDIR)/cmake/sqlock
PUBLIC := $(wildcard include/*.h include/*.hpp include/*/*.h include/*/*.hpp)
MIGRATE := src/examples/migration/migrate.sh
# The pages of section 3 are made of the headers' comments.
MANUALS := $(filter-out src/man/sqlock.3,$(wildcard src/man/*.[1-9]))
BASH_COMPLETION := $(DATADIR)/bash-completion/completions/sqlock
ZSH_COMPLETION := $(DATADIR)/zsh/site-functions/_sqlock
# install_all FILES,FROM,TO: those below FROM, at the same places below TO.
install_all = $(QUIET)for f in $(patsubst $(2)/%,%,$(1)); do \
	install -D -m 644 $(2)/$$f $(D)$(3)/$$f || exit 1; done

.PHONY: install uninstall manuals doc clean help
install: all manuals ## Into PREFIX (/usr/local), below DESTDIR
	$(QUIET)install -d $(D)$(LIBDIR)/pkgconfig $(D)$(CMAKE_DIR) $(D)$(BINDIR)
	$(QUIET)install -m 644 $(STATIC) $(D)$(LIBDIR)
	$(QUIET)install -m 755 $(SHARED) $(D)$(LIBDIR)
	$(QUIET)ln -sf $(notdir $(SHARED)) $(D)$(LIBDIR)/$(SONAME)
	$(QUIET)ln -sf $(SONAME) $(D)$(LIBDIR)/libsqlock.so
	$(QUIET)install -m 644 $(PC) $(D)$(LIBDIR)/pkgconfig
	$(QUIET)install -m 644 $(CMAKE) $(D)$(CMAKE_DIR)
	$(QUIET)install -m 755 $(CLI) $(D)$(BINDIR)
	$(call install_all,$(PUBLIC),include,$(INCLUDEDIR))
	$(call install_all,$(wildcard sql/*/*.sql),sql,$(DATADIR)/sqlock/sql)
	$(call install_all,$(filter-out $(MIGRATE),$(shell find src/examples \
		-type f)),src,$(DOCDIR))
	$(QUIET)install -D -m 755 $(MIGRATE) $(D)$(DATADIR)/sqlock/migrate.sh
	$(QUIET)install -d $(foreach s,1 3 7,$(D)$(MANDIR)/man$(s))
	$(QUIET)$(foreach s,1 7,install -m 644 $(filter %.$(s),$(MANUALS)) \
		$(D)$(MANDIR)/man$(s) &&) install -m 644 $B/man/*.3 $(D)$(MANDIR)/man3
	$(QUIET)install -D -m 644 src/cli/completion/sqlock.bash $(D)$(BASH_COMPLETION)
	$(QUIET)install -D -m 644 src/cli/completion/_sqlock $(D)$(ZSH_COMPLETION)
	$(QUIET)DESTDIR='$(D)' BINDIR='$(BINDIR)' DATADIR='$(DATADIR)' \
	DOCDIR='$(DOCDIR)' MANDIR='$(MANDIR)' PKG_CONFIG='$(PKG_CONFIG)' \
	LDCONFIG='$(LDCONFIG)' SILENT='$(findstring s,$(SHORT_FLAGS))' $(FOUND) \
	bash .make/places.sh

uninstall: ## Remove what install put there
	$(QUIET)rm -f $(PUBLIC:include/%=$(D)$(INCLUDEDIR)/%) \
		$(D)$(LIBDIR)/libsqlock.a $(D)$(LIBDIR)/libsqlock.so* \
		$(D)$(LIBDIR)/pkgconfig/sqlock.pc $(D)$(BINDIR)/sqlock \
		$(foreach m,$(notdir $(MANUALS)),$(D)$(MANDIR)/man$(patsubst .%,%,$(suffix \
		$(m)))/$(m)) $(D)$(MANDIR)/man3/sqlock.3 $(D)$(MANDIR)/man3/sqlock[-_]*.3 \
		$(D)$(BASH_COMPLETION) $(D)$(ZSH_COMPLETION)
	$(QUIET)rm -rf $(D)$(DATADIR)/sqlock $(D)$(CMAKE_DIR) $(D)$(DOCDIR)/examples
	$(QUIET)rmdir $(D)$(DOCDIR) $(D)$(INCLUDEDIR)/sqlock 2>/dev/null || true
	$(QUIET)$(if $(D),,[ "$$(id -u)" -ne 0 ] || PATH=$$PATH:/usr/sbin:/sbin $(LDCONFIG))

manuals: $B/man/.made ## Manual pages of section 3, from the headers: build/man
$B/man/.made: src/man/pages.pl src/man/sqlock.3 $(PUBLIC)
	$(call say,MAN,$(@D))rm -rf $(@D) && mkdir -p $(@D) && perl $< --out $(@D)
	@touch $@
doc: manuals ## All manual pages as HTML: build/doc/index.html
	$(call say,HTML,$B/doc)perl src/man/html.pl $B/man $B/doc
clean: ## Remove everything that was built
	rm -rf $(BUILD)
help: ## This list
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1 \2/p' Makefile tests/run.mk | \
	sort | while read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

# Tests, checks, measurements and packages.
include tests/run.mk
