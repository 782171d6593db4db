# make · make run · make test [MODE=asan] · make threads · make sweep [SWEEP=--gpu]
# make fuzz T=60 · make heavy [HEAVY="--seed 7"] · make mutants [MUTANTS=--all]
# make bless · make same BASE=COMMIT · make format · make lint · make bench
# make wheel [PYTHON=python3.12]
# make install PREFIX= DESTDIR= · make clean
# MODE: release (default), asan, tsan, fuzz. Output goes to build/$(MODE)/. V=1 shows commands.
MODE    ?= release
BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
T       ?= 60
MAKEFLAGS += --no-print-directory
B       := $(BUILD)/$(MODE)

# Debian's own, which has the packages of tools/setup.sh, even if another one is first in PATH
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)

CC     ?= cc
BISON  ?= bison
FLEX   ?= flex

WARN   := -Wall -Wextra -Wpedantic -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
          -Wwrite-strings -Wundef -Wswitch-enum
COMMON := -std=c11 -D_GNU_SOURCE $(WARN) -I. -I$(B) -g -fPIC -fvisibility=hidden
SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_fuzz := $(SAN_asan)
SAN_tsan := -fsanitize=thread
SAN      := $(SAN_$(MODE))
FLAGS_release := -O2
# -g1: the lines of reports; the rest takes a quarter of the time of the build
FLAGS_asan    := -O1 -g1 $(SAN)
FLAGS_tsan    := -O0 -g1 $(SAN)
FLAGS_fuzz    := -O1 -g1 $(SAN) -fsanitize=fuzzer-no-link
CFLAGS_ALL    := $(COMMON) $(FLAGS_$(MODE)) $(CFLAGS)
LDFLAGS_ALL   := $(SAN) $(LDFLAGS)
LIBS          := -lm -ldl -lpthread

Q    := $(if $(V),,@)
comma := ,
# One line for each step of a build, however many files it has: recipes are expanded one after
# the other, as they begin
LETTERS := $(filter-out -% %=%,$(firstword $(MAKEFLAGS)))
SILENT := $(if $(V),V)$(foreach flag,s q n,$(findstring $(flag),$(LETTERS)))
SILENT := $(strip $(SILENT))
say     = $(if $(SILENT)$(said-$(1)),,$(eval said-$(1) := 1)$(info $(empty)  $(1)$(if $(2),: $(2))))

# The floors, from the ground up: folders, perhaps with rooms, which are folders in them.
# Everything but cli/ is the library.
FLOORS := util lexer parser prog elaborate algebra flow derive check launch codegen \
          reference emulator runtime lib
SRC    := $(foreach f,$(FLOORS),$(sort $(wildcard $(f)/*.c $(f)/*/*.c)))
GEN    := $(addprefix $(B)/,pipe.tab.c pipe.lex.c pages.c shipped.c stamp.c calibrate_text.c)
OBJ    := $(SRC:%.c=$(B)/%.o) $(GEN:%.c=%.o)
CLI    := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard cli/*.c)))
UNIT   := $(patsubst tests/unit/%.c,$(B)/unit/%,$(sort $(wildcard tests/unit/*.c)))
FUZZ   := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(sort $(wildcard tests/fuzz/*.c)))
BENCHES := bandwidth facts gemm memory memory_plot
MEASURE := $(patsubst %.c,$(B)/%.o, \
    $(filter-out $(BENCHES:%=bench/%.c),$(sort $(wildcard bench/*.c))))
BENCH  := $(BENCHES:%=$(B)/bench/%)
# Test programs: NAME-test is linked from tests/NAME, tests-driver from tests/driver
PROGRAMS := generate matrix sweep graphs mutants ptxmutants adversary hang overlap heavy same
objects   = $(patsubst %.c,$(B)/%.o,$(sort $(wildcard $(1)/*.c)))
# Draws random programs, for several of them
DRAWING  := $(filter-out %/main.o,$(call objects,tests/generate))
TESTS    := $(B)/tests-driver $(PROGRAMS:%=$(B)/%-test)

BINARIES := $(B)/pipec $(B)/libpipec.so $(B)/libpipec.a
# `make` and `make all` end with what to try next; other goals, and makes within makes, do not
QUIET_END = $(SILENT)$(filter-out all,$(MAKECMDGOALS))$(filter-out 0,$(MAKELEVEL))
all: $(BINARIES)
	@$(if $(QUIET_END),:,echo "  next: $(B)/pipec run examples/axpy.pipe")

$(B)/libpipec.a: $(OBJ)
	$(call say,link)
	$(Q)rm -f $@ && ar rcs $@ $^
$(B)/libpipec.so: $(OBJ)
	$(call say,link)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) -Wl,-soname,libpipec.so.1 -o $@ $^ $(LIBS)

# flex and bison: `nodefault`, LAC and counterexamples are asked for in the files themselves. Bison
# includes no files: the parts of the grammar are joined, and `#line` keeps the places of errors
GRAMMAR := parser/pipe.y parser/items.y parser/statements.y parser/expressions.y
$(B)/pipe.y: $(GRAMMAR)
	@mkdir -p $(B)
	$(Q)awk 'FNR == 1 { printf "#line 1 \"%s\"\n", FILENAME } { print }' $^ > $@
$(B)/pipe.tab.c $(B)/pipe.tab.h &: $(B)/pipe.y
	$(call say,bison,the grammar)
	$(Q)$(BISON) -Wall -Wcounterexamples -Werror -d -o $(B)/pipe.tab.c $<
$(B)/pipe.lex.c: lexer/pipe.l $(B)/pipe.tab.h
	$(call say,flex,the words)
	$(Q)$(FLEX) -o $@ $<
$(B)/pages.c: $(wildcard docs/errors/*.md) tools/pages.sh
	@mkdir -p $(B)
	$(call say,pages,of the errors)
	$(Q)sh tools/pages.sh explain_pages docs/errors/P[0-9]*.md > $@.new && mv $@.new $@
# The kernels that are used without a file of their own: kernels:NAME
SHIPPED := $(sort $(wildcard kernels/*.pipe))
# those of them that the others include
INCLUDED := $(filter kernels/common.pipe,$(SHIPPED))
KERNELS := $(filter-out $(INCLUDED),$(SHIPPED))
$(B)/shipped.c: $(SHIPPED) tools/pages.sh
	@mkdir -p $(B)
	$(call say,pages,of the kernels)
	$(Q){ sh tools/pages.sh shipped_kernels $(KERNELS) && \
	    sh tools/pages.sh --named shipped_files $(INCLUDED); } > $@.new && mv $@.new $@
$(B)/calibrate_text.c: lib/calibrate.pipe tools/text.sh
	@mkdir -p $(B)
	$(Q)sh tools/text.sh calibrate_text lib/calibrate.h $< > $@.new && mv $@.new $@
# The sources of the library
SOURCES := $(SRC) $(GRAMMAR) lexer/pipe.l lib/calibrate.pipe include/pipec.h \
    $(sort $(wildcard $(foreach kind,h def,$(FLOORS:%=%/*.$(kind)) $(FLOORS:%=%/*/*.$(kind)))))
$(B)/stamp.c: $(SOURCES) tools/stamp.sh
	@mkdir -p $(B)
	$(call say,stamp,of the sources)
	$(Q)sh tools/stamp.sh $(SOURCES) > $@.new && mv $@.new $@

define compile
	@mkdir -p $(@D)
	$(call say,cc,the sources (V=1 shows each))
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
endef
$(B)/%.o: %.c | $(B)/pipe.tab.h
	$(compile)
$(B)/%.o: $(B)/%.c $(B)/pipe.tab.h
	$(compile)

# ---- tests: everything that needs no GPU; on a GPU machine the driver uses it as well

$(B)/pipec: $(CLI)
$(B)/tests-driver: $(call objects,tests/driver) | $(B)/pipec
$(foreach p,$(PROGRAMS),$(eval $(B)/$(p)-test: $(call objects,tests/$(p))))
$(B)/matrix-test $(B)/sweep-test $(B)/graphs-test $(B)/adversary-test $(B)/heavy-test \
    $(B)/mutants-test: $(DRAWING)
$(B)/overlap-test: $(B)/bench/cuda.o
$(BENCH): $(B)/bench/%: $(B)/bench/%.o $(MEASURE)
$(B)/pipec $(TESTS) $(BENCH): $(B)/libpipec.a
	$(call say,link)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(B)/libpipec.a $(LIBS)
$(B)/unit/%: tests/unit/%.c $(B)/libpipec.a
	@mkdir -p $(@D)
	$(call say,link)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(filter %.o,$^) $(B)/libpipec.a $(LIBS)
$(B)/fuzz/%: tests/fuzz/%.c $(B)/libpipec.a
	@mkdir -p $(@D)
	$(call say,link)
	$(Q)$(CC) $(CFLAGS_ALL) -fsanitize=fuzzer -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(B)/libpipec.a $(LIBS)
$(B)/unit/bench: $(MEASURE)

# same-test with a compiler that has a fault, for the tests of tools/same.sh
FAULTY := compile program_status diagnostics_text diagnostics_json program_emit program_ptx \
    program_manifest
$(B)/faults/same-test: $(call objects,tests/same) $(B)/tests/same/faults/faults.o $(B)/libpipec.a
	@mkdir -p $(@D)
	$(call say,link)
	$(Q)$(CC) $(LDFLAGS_ALL) $(FAULTY:%=-Wl,--wrap=pipec_%) -o $@ $^ $(LIBS)

# A libcuda.so.1 without a GPU: unit tests find it beside them, others name it in PIPEC_LIBCUDA.
# The two others are for the benchmarks.
STANDINS := $(addprefix $(B)/standin/,libcuda.so.1 libcublasLt.so.13 libnvidia-ml.so.1)
$(B)/standin/libcuda.so.1: tests/standin/libcuda.c tests/standin/standin.h \
    runtime/driver.h runtime/driver.def
$(B)/standin/libcublasLt.so.13: tests/standin/libcublasLt.c tests/standin/standin.h \
    bench/measure.c bench/measure.h
$(B)/standin/libnvidia-ml.so.1: tests/standin/libnvidia-ml.c
$(STANDINS):
	@mkdir -p $(@D)
	$(call say,link)
	$(Q)$(CC) $(COMMON) -O2 -shared -o $@ $(filter %.c,$^) -lm -ldl

# ---- the Python package: an extension module for all versions from 3.11, linked with libpipec.a

PACKAGE := $(B)/python/pipec
PYTHON_OBJ := $(call objects,python/src)
PYTHON_FILES := $(PACKAGE)/_pipec.abi3.so \
    $(addprefix $(B)/,$(sort $(wildcard python/pipec/*.py*) python/pipec/py.typed))
# Functions are passed to Python as data
$(PYTHON_OBJ): CFLAGS_ALL += -DPy_LIMITED_API=0x030b0000 -Wno-pedantic -isystem $(PYTHON_INCLUDE)
PYTHON_INCLUDE = $(eval PYTHON_INCLUDE := $(shell $(PYTHON) -c \
    'import sysconfig; print(sysconfig.get_path("include"))'))$(PYTHON_INCLUDE)
$(PACKAGE)/_pipec.abi3.so: $(PYTHON_OBJ) $(B)/libpipec.a
	@mkdir -p $(@D)
	$(call say,link)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) $(if $(filter release,$(MODE)),-s) \
	    -Wl$(comma)--exclude-libs$(comma)ALL -o $@ $^ $(LIBS)
$(PACKAGE)/%: python/pipec/%
	@mkdir -p $(@D)
	$(Q)cp $< $@
python: $(PYTHON_FILES)
DIST := dist
# The wheel is self-contained: it needs no other part of pipec, and no CUDA toolkit
wheel:
	@$(MAKE) -q python 2>/dev/null || sh tools/setup.sh python
	@$(MAKE) $(JOBS) python
	$(call say,wheel,in $(DIST)/)
	$(Q)mkdir -p $(DIST)
	$(Q)PIPEC_MODULE=$(PACKAGE)/_pipec.abi3.so $(PYTHON) -B python/backend.py $(DIST)
# Where Python's headers are missing, its tests are skipped
PYTHON_H = $(wildcard $(if $(filter /usr/bin/python3,$(PYTHON)),/usr/include/python3.*/Python.h, \
    $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))' \
    2>/dev/null)/Python.h))

test-build: $(BINARIES) $(TESTS) $(B)/faults/same-test $(UNIT) $(BENCH) $(STANDINS) \
    $(if $(filter test-build,$(MAKECMDGOALS)),$(if $(PYTHON_H),$(PYTHON_FILES)))
fuzz-build: $(FUZZ)
bench-build: $(BINARIES) $(BENCH)

# All cores, unless the command line says how many. What is missing is installed first, but only
# where there is something to build
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 1))
run:
	@$(MAKE) -q $(BINARIES) 2>/dev/null || { sh tools/setup.sh && $(MAKE) $(JOBS) all; }
	$(B)/pipec run examples/axpy.pipe
	@echo
	@echo "Next:"
	@echo "  $(B)/pipec run examples/axpy.pipe N=5000 a=3     other sizes and values"
	@echo "  $(B)/pipec build examples/axpy.pipe --report     what was derived, and why"
	@echo "  edit examples/axpy.pipe, delete a statement, then:  $(B)/pipec check examples/axpy.pipe"
	@echo "  docs/tutorial.md teaches the language, docs/language.md describes it;" \
	    "examples/README.md lists the examples in the order to read them"
test:
	@$(MAKE) -q test-build 2>/dev/null || sh tools/setup.sh python
	@$(MAKE) $(JOBS) test-build
	@CC="$(CC)" PYTHON="$(PYTHON)" sh tools/test.sh $(B)
sweep: $(B)/sweep-test
	$(B)/sweep-test --count 100 $(SWEEP)
# Faults put into emitted PTX; MUTANTS=--all: each instead of 1,000
mutants: $(B)/ptxmutants-test
	$(B)/ptxmutants-test --count 1000 --jobs $$(nproc 2>/dev/null || echo 1) $(MUTANTS)
# Drawn texts of up to 100 kB: each is checked and built in less than 2 s and 200 MB
heavy: $(B)/heavy-test
	$(B)/heavy-test --count 100000 --jobs $$(nproc 2>/dev/null || echo 1) $(HEAVY)
# Kernels that threads share, under ThreadSanitizer, which needs fixed addresses
threads:
	@$(MAKE) $(JOBS) MODE=tsan $(BUILD)/tsan/unit/threads $(BUILD)/tsan/unit/serve \
	    $(BUILD)/tsan/unit/bound $(BUILD)/tsan/unit/loaded $(BUILD)/tsan/standin/libcuda.so.1
	$$(setarch -R true 2>/dev/null && echo setarch -R) $(BUILD)/tsan/unit/threads
	$$(setarch -R true 2>/dev/null && echo setarch -R) $(BUILD)/tsan/unit/serve
	$$(setarch -R true 2>/dev/null && echo setarch -R) $(BUILD)/tsan/unit/bound
	$$(setarch -R true 2>/dev/null && echo setarch -R) $(BUILD)/tsan/unit/loaded
fuzz:
	@sh tools/fuzz.sh $(BUILD)/fuzz $(T)
# What two compilers make of the same programs: make same BASE=COMMIT
DRAWN_BY := $(foreach p,generate matrix graphs adversary mutants same,$(B)/$(p)-test)
same: $(B)/pipec $(DRAWN_BY)
	$(if $(BASE),,$(error make same BASE=COMMIT))
	@CC="$(CC)" BUILD="$(BUILD)" sh tools/same.sh --present $(B) $(SAME) $(BASE)
bless: $(B)/tests-driver $(DRAWN_BY)
	$(B)/tests-driver --bless parse check ptx habits
	sh tests/same/sums.sh $(B) --bless
bench: bench-build
	@sh bench/run $(B)

# ---- housekeeping

# docs/ptx.md is made from the emulator's tables
ptx-page:
	@sh tools/ptx.sh > docs/ptx.md
format:
	@sh tools/format.sh --write
lint: all
	@CC="$(CC)" sh tools/lint.sh $(B)

VERSION = $$(awk '$$2 == "PIPEC_VERSION" { gsub(/"/, "", $$3); print $$3 }' include/pipec.h)
# A program that is linked with the library finds it where it was installed; the loader
# looks in /usr/lib by itself.
RPATH := $(if $(filter /usr,$(PREFIX)),, -Wl$(comma)-rpath$(comma)$${libdir})
FILLED = sed -e 's|@PREFIX@|$(PREFIX)|' -e "s|@VERSION@|$(VERSION)|" -e 's|@RPATH@|$(RPATH)|'
TO := $(DESTDIR)$(PREFIX)
install: all
	$(call say,install,$(TO))
	$(Q)install -d $(TO)/bin $(TO)/include $(TO)/lib/pkgconfig $(TO)/lib/cmake/pipec \
	    $(TO)/share/man/man1 $(TO)/share/pipec/kernels
	$(Q)install -m 755 $(B)/pipec $(TO)/bin/pipec
	$(Q)install -m 755 $(B)/libpipec.so $(TO)/lib/libpipec.so.1
	$(Q)ln -sf libpipec.so.1 $(TO)/lib/libpipec.so
	$(Q)install -m 644 $(B)/libpipec.a $(TO)/lib/libpipec.a
	$(Q)install -m 644 include/pipec.h $(TO)/include/pipec.h
	$(Q)install -m 644 $(SHIPPED) $(TO)/share/pipec/kernels
	$(Q)install -m 644 docs/pipec.1 $(TO)/share/man/man1/pipec.1
	$(Q)$(FILLED) lib/pipec.pc.in > $(TO)/lib/pkgconfig/pipec.pc
	$(Q)install -m 644 lib/pipec-config.cmake $(TO)/lib/cmake/pipec/pipec-config.cmake
	$(Q)$(FILLED) lib/pipec-config-version.cmake.in \
	    > $(TO)/lib/cmake/pipec/pipec-config-version.cmake

clean:
	rm -rf $(BUILD) dist

-include $(patsubst %.o,%.d,$(OBJ) $(CLI) $(PYTHON_OBJ) \
    $(foreach folder,tests/driver $(PROGRAMS:%=tests/%) bench,$(call objects,$(folder))))
-include $(UNIT:=.d) $(FUZZ:=.d)
.PHONY: all run test test-build sweep mutants heavy threads fuzz fuzz-build bless bench \
    bench-build same ptx-page format lint install clean python wheel
.DELETE_ON_ERROR:
.SECONDARY:
