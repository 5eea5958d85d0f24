# run.mk: the targets that run something: tests, checks, measurements, packages.
# Makefile includes it.  A target names what has to be built; the rest is a
# script's.

# ------------------------------------------------------------------- suites

.PHONY: setup test check quick model mutants chaos asan tsan valgrind campaign
setup: ## Install what the build and the tests need (apt, as root or sudo -n)
	@echo '  all there: $(or $(SETUP_LEVELS),build test package)'

# Those that must be there, and whatever else is a suite.
SUITES ?= unit drivers conformance tx $(filter-out unit drivers \
	conformance tx bench failover galera group spring, \
	$(SUITE_NAMES)) cli cpp python grants migration upgrade install demo readme \
	model history
# The programs of the suites that are programs.
SUITE_PROGRAMS = $(filter $(TESTS),$(SUITES:%=$B/tests/%) \
	$(if $(filter demo,$(SUITES)),$B/tests/bench))
NEEDS_ALL := $(if $(filter cli chaos command cpp python grants migration upgrade install demo \
	readme tx spring,$(SUITES)),all)
RUN = SQLOCK_BUILD=$B CC='$(CC)' MAKE='$(MAKE)' DRIVERS='$(DRIVERS)'
test: $(NEEDS_ALL) $(SUITE_PROGRAMS) ## Every suite; SUITES="unit cli" and T=PATTERN choose
	@exec env $(RUN) $(if $(T),SUITE_TESTS='$(T)') bash tests/run.sh $(SUITES)
check: test

# Suites that a change is likely to break first, without a server.
QUICK := unit drivers conformance
quick: $(QUICK:%=$B/tests/%) ## Unit, drivers and conformance on SQLite, in under a minute
	@exec env $(RUN) $(if $(T),SUITE_TESTS='$(T)') SQLOCK_TEST_SERVERS= \
	SQLOCK_TEST_DATABASES=sqlite SQLOCK_TEST_LANES=8 SUITE_SCRIPTS=no \
	bash tests/run.sh $(QUICK)

model: ## Models of a lock's rules: each is needed; MODEL="queue -DNO_RING" shows why
	@exec env $(RUN) SQLOCK_TEST_SERVERS= $(if $(MODEL),bash tests/model/rules.sh \
	$(MODEL),bash tests/run.sh model)

# The same build in another variant.  SAN_SUITES="tx renewer" chooses others.
AGAIN = $(MAKE) --no-print-directory SETUP=no
SAN_SUITES ?=
VALGRIND ?= valgrind -q --leak-check=full --errors-for-leak-kinds=definite \
	--error-exitcode=99 --child-silent-after-fork=yes
asan: ## Unit, driver, conformance and exhaust suites under ASan and UBSan
	+@$(AGAIN) SAN=address,undefined SUITES='$(or $(SAN_SUITES),$(QUICK) exhaust)' test
tsan: ## Unit, driver and conformance suites under ThreadSanitizer
	+@$(AGAIN) SAN=thread SUITES='$(or $(SAN_SUITES),$(QUICK))' test
valgrind: ## Unit suite under valgrind
	+@WRAP='$(VALGRIND)' SUITE_ARGS=--alone SUITE_SCRIPTS=no $(AGAIN) SUITES=unit test
campaign: ## Chaos, failover and Galera suites at full length (hours)
	@bash tests/tools/servers/fetch.sh mariadb-10
	+@SQLOCK_SCALE=campaign SUITE_SECONDS=7200 $(AGAIN) \
	SUITES='tx fault scenes renewer waiting command chaos failover crash \
	galera stock' test
export ASAN_OPTIONS ?= detect_leaks=1:strict_string_checks=1:handle_segv=2
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=0:second_deadlock_stack=1

mutants: ## Do the tests notice bugs that are put in?  MUTANTS="token-* margin" chooses
	@exec env $(RUN) bash tests/mutants/mutants.sh $(patsubst %,'%',$(MUTANTS))

# Without one of the rules it has to find that they are broken: CONTROL.
chaos: $B/tests/chaos $(CLI) ## Locks while all else fails; MINUTES=30 SEED=4711 CHAOS="sqlite", CLOCK=1, CONTROL=guard
	@exec env $(RUN) $(if $(CONTROL),bash tests/mutants/mutants.sh 'chaos-$(CONTROL)', \
	SQLOCK=$(CLI) $(if $(CLOCK),bash tests/tools/servers/clock.sh) \
	bash tests/tools/servers/with.sh \
	bash tests/tools/servers/promote.sh run $B/tests/chaos \
	--seconds $$(($(or $(MINUTES),2) * 60)) $(if $(SEED),--seed $(SEED)) \
	--shrink --picture $B/chaos $(CHAOS))

# --------------------------------------------------------------------- fuzzing

# Built by clang, which has libFuzzer, in a folder of its own.
.PHONY: fuzz fuzzers
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
FUZZERS := $(FUZZ_SRC:tests/fuzz/%.c=$B/fuzz/%)
FUZZ_VARIANT = BUILD=$(BUILD)/fuzz CC=clang SAN=fuzzer-no-link,address,undefined
FUZZ ?=
fuzz: ## Fuzz each parser for SECONDS=30; FUZZ="url key" chooses
	+@$(AGAIN) $(FUZZ_VARIANT) fuzzers
	@exec env $(RUN) SQLOCK_BUILD=$(BUILD)/fuzz/asan FUZZ='$(FUZZ)' \
	FUZZ_SECONDS='$(or $(SECONDS),30)' SUITE_SECONDS=86400 SUITE_AGAIN=0 \
	SQLOCK_TEST_SERVERS= V=1 bash tests/run.sh fuzz
fuzzers: $(FUZZERS)
$(call objects,$(FUZZ_SRC)): $B/obj/%.o: %.c $B/.flags
	$(call COMPILE,-Isrc -Itests/fuzz)
$(FUZZERS): $B/fuzz/%: $B/obj/tests/fuzz/%.o $(filter-out \
		$B/obj/src/cli/main.o,$(CLI_OBJ)) $(STATIC) $B/.link
	$(call LINK_PROGRAM,$(STATIC) $(CLI_LIBS)) -fsanitize=fuzzer
-include $(patsubst %.o,%.d,$(call objects,$(FUZZ_SRC)))

# ------------------------------------------------- other servers and versions

.PHONY: test-mysql test-spring test-matrix test-bare docker-test
MYSQL_TREE ?= $(BUILD)/servers/mysql
MATRIX_SUITES ?= conformance scenes tx fault
OTHERS = $(RUN) MYSQL_TREE='$(abspath $(MYSQL_TREE))'
test-mysql: ## Drivers, locks, transactions, TLS, waiting on Oracle's MySQL, both clients
	+@exec env $(OTHERS) bash tests/tools/matrix/mysql.sh
test-spring: $B/tests/spring $(CLI) ## Beside Spring's own lock registry (JDK and Maven); on MySQL, too, once fetched
	+@exec env $(OTHERS) bash tests/tools/matrix/spring.sh
test-matrix: $(addprefix $B/tests/,$(MATRIX_SUITES) failover galera replica group promotion spring) ## Suites on other versions and on clusters; ENGINES="galera" chooses
	+@exec env $(OTHERS) BUILD='$(BUILD)' MATRIX_SUITES='$(MATRIX_SUITES)' \
	bash tests/tools/matrix/versions.sh $(ENGINES)
BARE ?= demo quick
test-bare: ## README's commands in a Debian with nothing in it, as root and as a user; BARE="demo test"
	@bash tests/tools/matrix/bare.sh $(BARE)
docker-test: $B/tests/conformance ## Conformance suite on the servers of docker/compose.test.yaml
	@exec env SQLOCK_BUILD=$B bash docker/test.sh $(DOCKER_SUITES)

# ------------------------------------------------------------- measurements

.PHONY: demo bench chart picture
DEMO := $B/bin/examples/stock_deduction
demo: $(DEMO) ## Sell stock in every way; URL=... names a server
	@$(DEMO) $(if $(URL),--url '$(URL)') $(DEMO_FLAGS)
BENCH_JSON ?= $B/bench.json
bench: $B/tests/bench $(CLI) ## Measure against the bare statements, on all databases
	@exec env SQLOCK_TEST_DURABLE=1 bash tests/tools/servers/with.sh $B/tests/bench \
	--json $(BENCH_JSON) $(BENCH_FLAGS)
chart: $B/tests/bench ## Measure (takes half an hour) and draw, build/chart/*.svg
	@bash tests/tools/bench/measure.sh $B pairs stock-curve stock-ways waiting
picture: $B/tests/bench ## Measure and draw the picture of README
	@bash tests/tools/bench/measure.sh $B waiting && \
	cp $B/chart/waiting-postgres.svg src/man/waiting.svg

# ------------------------------------------------------------------- checks

.PHONY: format format-check headers exports lint abi abi-record
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format) \
	clang-format)
FORMATTED = $(shell find include src tests -name '*.[ch]' -o -name '*.cc' \
	-o -name '*.hpp')
format: ## Format the sources
	$(QUIET)$(CLANG_FORMAT) -i $(FORMATTED)
format-check: ## Fail if `make format` would change a source
	$(QUIET)$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED)

LINTS ?= rules scripts manuals python cppcheck tidy
lint: manuals $(NAMES) ## clang-tidy, cppcheck, shellcheck, mandoc and the house's rules; LINTS="rules" chooses
	@SQLOCK_BUILD=$B TIDY_FLAGS='$(subst ','\'',$(ALL_CPPFLAGS))' TIDY_FILES='$(wildcard \
	src/*/*.c src/*/*/*.c) $(SUPPORT_SRC) $(SUITE_SRC)' \
	bash tests/tools/lint/lint.sh $(LINTS)

headers: ## Each public header compiles alone as C99, C11 and C++11
	@CC='$(CC)' bash tests/cli/install/headers.sh
exports: $(SHARED) $(STATIC) ## The exported symbols are the headers'
	@SQLOCK_BUILD=$B CC='$(CC)' bash tests/cli/install/exports.sh
abi: $(SHARED) $(PC) ## The binary interface is the recorded one, or has grown
	@SQLOCK_BUILD=$B bash tests/cli/install/abi.sh
abi-record: $(SHARED) $(PC) ## Record it, after a change that is meant
	@SQLOCK_BUILD=$B bash tests/cli/install/abi.sh --record

# ----------------------------------------------------------------- packages

.PHONY: dist deb wheel
DIST = $B/sqlock-$(shell sh .make/version.sh).tar.xz
dist: ## The sources, the same bytes each time: build/sqlock-VERSION.tar.xz
	$(call say,DIST,$(DIST))BUILD='$(BUILD)' bash .make/dist.sh $(DIST) \
	$(DIST:$B/%.tar.xz=%)
deb: dist ## Debian packages, checked by lintian: build/deb/*.deb
	$(call say,DEB,$B/deb)bash .debian/build.sh $(DIST) $B/deb
wheel: $(SHARED) ## The Python package with the library inside: build/wheel/*.whl
	$(call say,WHEEL,$B/wheel)bash src/python/wheel.sh $(SHARED) $B/wheel
