# SPDX-License-Identifier: Apache-2.0
# kvcast. User's CC, CFLAGS, LDFLAGS, PREFIX and DESTDIR are honoured.
#
#   make              the program, build/kvcast
#   make quickstart   install what is missing, build, replay an hour of traffic, write a report
#                     (TRACE=path: your own log)
#   make check        install what tests need, build, run every test
#   make asan, tsan   the tests in a build with sanitizers
#   make bench        speed, one table (BENCH=json for programs)
#   make layers       includes point the right way; make sizes: nothing is longer than a screen
#   make cuda         the GPU part of kvcast bench (needs nvcc, no GPU)
#   make install      program, library, headers, manual page, documents, examples
.DEFAULT_GOAL := all

ifeq ($(origin CC),default)
CC := gcc
endif
VARIANT ?= release
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/kvcast
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
VERSION := $(shell sed -n 's/.*KVC_VERSION_STRING "\(.*\)".*/\1/p' include/kvcast/kvcast.h)
SOVERSION := 0
B := build/$(VARIANT)

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
CFLAGS ?= -O2 -g
KVC_CFLAGS := -std=c11 -D_GNU_SOURCE $(WARN) -ffp-contract=off -fvisibility=hidden -fPIC \
    -I. -Iinclude -MMD -MP
LDLIBS := -lgsl -lgslcblas -lcjson -lpcre2-8 -lzstd -lz -lsqlite3 -lm -lpthread -ldl
ifeq ($(VARIANT),asan)
KVC_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
KVC_LDFLAGS += -fsanitize=address,undefined
endif
ifeq ($(VARIANT),tsan)
KVC_CFLAGS += -fsanitize=thread
KVC_LDFLAGS += -fsanitize=thread
endif
ifdef WERROR
KVC_CFLAGS += -Werror
endif

LIB_ROOMS := base traces policies models bench sim studies reports
LIB_SRC := $(foreach room,$(LIB_ROOMS),$(wildcard $(room)/*.c $(room)/*/*.c))
CLI_SRC := $(filter-out cli/templates/%, $(wildcard cli/*.c cli/*/*.c))
TEST_SRC := $(wildcard tests/test_*.c)
BENCH_SRC := $(wildcard tests/bench/bench_*.c)
TEST_LIB_SRC := $(filter-out $(TEST_SRC),$(wildcard tests/*.c tests/twins/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o) $(B)/models/profiles.gen.o
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o) $(B)/cli/templates.gen.o
TEST_LIB_OBJ := $(TEST_LIB_SRC:%.c=$(B)/%.o)
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
BENCH_BIN := $(BENCH_SRC:%.c=$(B)/%)
PLUGIN_SRC := $(wildcard tests/plugins/*.c)
PLUGIN_SO := $(PLUGIN_SRC:%.c=$(B)/%.so)

all: $(B)/kvcast
ifeq ($(VARIANT),release)
	@ln -sf $(VARIANT)/kvcast build/kvcast
endif

# ---- library and program ----

# Profiles travel inside the program.
$(B)/models/profiles.gen.c: models/embed.sh $(wildcard models/profiles/*.json)
	@mkdir -p $(@D)
	sh models/embed.sh models/blobs.h kvc_blobs $(filter %.json,$^) > $@.tmp && mv $@.tmp $@
$(B)/models/profiles.gen.o: $(B)/models/profiles.gen.c models/blobs.h
	$(CC) $(KVC_CFLAGS) $(CFLAGS) -c -o $@ $<

# So do the files that 'kvcast policy new' writes.
$(B)/cli/templates.gen.c: models/embed.sh include/kvcast/policy.h $(wildcard cli/templates/*)
	@mkdir -p $(@D)
	sh models/embed.sh cli/templates.h kvc_cli_templates $(filter-out %embed.sh,$^) > $@.tmp
	mv $@.tmp $@
$(B)/cli/templates.gen.o: $(B)/cli/templates.gen.c cli/templates.h
	$(CC) $(KVC_CFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/libkvcast.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(B)/libkvcast.so.$(SOVERSION): $(LIB_OBJ)
	$(CC) -shared -Wl,-soname,$(@F) $(KVC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/kvcast: $(CLI_OBJ) $(B)/libkvcast.a
	$(CC) $(KVC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(KVC_CFLAGS) $(CFLAGS) -c -o $@ $<

lib-objects: $(LIB_OBJ)

# ---- the GPU module of kvcast bench: nvcc and cuBLASLt, no GPU, are needed to build it ----

NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_SRC := $(wildcard bench/cuda/*.cu)
CUDA_ARCH ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
    -gencode arch=compute_90,code=compute_90
CUDA_WARN := -Xcompiler -Wall,-Wextra $(if $(WERROR),-Werror all-warnings -Xcompiler -Werror)

$(B)/kvcast-gpu.so: $(CUDA_SRC) bench/cuda/gpu_bench.h bench/gpu_module.h bench/measure.h
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 $(CUDA_ARCH) $(CUDA_WARN) -Xcompiler -fPIC,-fvisibility=hidden \
	    -I. -Iinclude -shared -o $@ $(CUDA_SRC) -lcublasLt
cuda:
	@sh tools/cuda.sh "$(NVCC)"
	@$(MAKE) --no-print-directory -s all
	@echo "building $(B)/kvcast-gpu.so"
	@$(MAKE) --no-print-directory -s $(B)/kvcast-gpu.so
	@echo "'build/kvcast bench' now measures GPUs, too"

# ---- tests ----

$(B)/tests/test_%: $(B)/tests/test_%.o $(TEST_LIB_OBJ) $(B)/libkvcast.a
	$(CC) $(KVC_LDFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

$(B)/tests/bench/%: $(B)/tests/bench/%.o $(B)/libkvcast.a
	$(CC) $(KVC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Plug-ins see the public header and nothing else.
$(B)/tests/plugins/%.so: tests/plugins/%.c $(wildcard tests/plugins/*.h) include/kvcast/policy.h
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARN) $(if $(WERROR),-Werror) -fPIC -shared -Iinclude $(CFLAGS) $(KVC_LDFLAGS) \
	    -o $@ $<

tests: all $(TEST_BIN) $(PLUGIN_SO)

# Runs what is built for VARIANT; FILTER=name runs the tests whose name holds it.
test: tests
	@VARIANT=$(VARIANT) CC="$(CC)" sh tools/run_tests.sh $(B) $(FILTER)

check:
	@sh tools/need.sh "$(CC)" build test report
	@$(MAKE) --no-print-directory -s -j$(JOBS) tests
	@$(MAKE) --no-print-directory -s test

asan tsan:
	@sh tools/need.sh "$(CC)" build test report
	@$(MAKE) --no-print-directory -s -j$(JOBS) VARIANT=$@ tests
	@$(MAKE) --no-print-directory -s VARIANT=$@ test

layers sizes:
	@sh tools/$@.sh

bench-programs: all $(BENCH_BIN) $(B)/tests/plugins/lru.so

bench:
	@sh tools/need.sh "$(CC)" build
	@$(MAKE) --no-print-directory -s -j$(JOBS) bench-programs
	@CC="$(CC)" CFLAGS="$(CFLAGS)" sh tools/bench.sh $(B)

# Fuzzing of the readers, SECONDS each (300); JOBS side by side; TARGETS=names.
fuzz:
	@JOBS=$(JOBS) sh tools/fuzz.sh $(or $(SECONDS),300) $(TARGETS)

# ---- for users ----

deps:
	@sh tools/need.sh "$(CC)" build

quickstart:
	@sh tools/need.sh "$(CC)" build report
	@echo "building build/kvcast"
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@sh tools/quickstart.sh $(if $(TRACE),"$(TRACE)")

docs/kvcast.1: all
	build/kvcast --man > $@.tmp && mv $@.tmp $@
man: docs/kvcast.1

# Profiles of hardware, models and kernels, again from the collected facts in SHARED (python3).
SHARED ?= ../shared
profiles: all
	python3 models/fit/make_profiles.py $(SHARED) models/profiles
	sh models/fit/build_tables.sh build/kvcast $(SHARED)/kernels models/profiles
# The engines' bands, and with REFIT="vllm .." host constants, as `kvcast calibrate --rows` has
# them.
host-constants: all
	python3 models/fit/host_constants.py build/kvcast $(SHARED) models/profiles/engines.json $(REFIT)
# docs/accuracy.md, from what the program says; SHARED for what it must see rows for.
accuracy: all
	sh tools/accuracy.sh $(SHARED) > build/accuracy.tables
	sh tools/accuracy_summary.sh build/accuracy.tables > build/accuracy.md
	mv build/accuracy.md docs/accuracy.md

# The output shown in README.md, as it is today.
readme:
	@sh tools/readme.sh

install: all $(B)/libkvcast.so.$(SOVERSION)
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/kvcast \
	    $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(DOCDIR)/docs/examples $(DESTDIR)$(DOCDIR)/docs/formats
	install $(B)/kvcast $(DESTDIR)$(BINDIR)/kvcast
	[ ! -f $(B)/kvcast-gpu.so ] || \
	    install -D $(B)/kvcast-gpu.so $(DESTDIR)$(BINDIR)/../lib/kvcast/kvcast-gpu.so
	install -m 644 $(B)/libkvcast.a $(DESTDIR)$(LIBDIR)/libkvcast.a
	install -m 755 $(B)/libkvcast.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libkvcast.so.$(SOVERSION)
	ln -sf libkvcast.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libkvcast.so
	install -m 644 include/kvcast/*.h $(DESTDIR)$(INCLUDEDIR)/kvcast/
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|' \
	    -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' \
	    kvcast.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/kvcast.pc
	install -m 644 docs/kvcast.1 $(DESTDIR)$(MANDIR)/man1/kvcast.1
	install -m 644 README.md CHANGES LICENSE $(DESTDIR)$(DOCDIR)/
	install -m 644 docs/*.md docs/report.png $(DESTDIR)$(DOCDIR)/docs/
	install -m 644 docs/formats/*.md $(DESTDIR)$(DOCDIR)/docs/formats/
	install -m 644 docs/examples/*.json $(DESTDIR)$(DOCDIR)/docs/examples/

clean:
	rm -rf build

.PHONY: all cuda profiles host-constants accuracy lib-objects tests test check fuzz asan tsan \
    layers sizes bench bench-programs deps quickstart man readme docs/kvcast.1 install clean
.SECONDARY:
-include $(patsubst %.o,%.d,$(LIB_OBJ) $(CLI_OBJ) $(TEST_LIB_OBJ)) $(TEST_BIN:=.d) $(BENCH_BIN:=.d)
