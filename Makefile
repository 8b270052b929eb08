# Dragoman: one Makefile.
#
#   make            library and program            make test       the whole short test suite
#   make demo       install, build, translate      make test-long  fuzzing, goldens made again, ...
#   make bench      benchmark programs             make install    PREFIX=/usr/local DESTDIR=
#
# Switches: CC=clang  ASAN=1  TSAN=1  WERROR=1  BUILD=dir  (ASAN and TSAN choose their own BUILD)
# SIMD files are taken by suffix: src/kernel/x86/*_avx2.c gets the flags of avx2, and so on.

VERSION := $(shell cat VERSION)
SOVERSION := 0
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= gcc
CXX ?= g++
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),$(subst clang,clang++,$(CC)),g++)
endif
ifneq ($(findstring clang,$(CC)),)
ifeq ($(CXX),g++)
CXX := $(subst clang,clang++,$(CC))
endif
endif

BUILD ?= build$(if $(ASAN),-asan)$(if $(TSAN),-tsan)
OPT ?= $(if $(ASAN)$(TSAN),-O1,-O2)
WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wwrite-strings -Wundef
WARN_C := -Wstrict-prototypes -Wmissing-prototypes
COMMA := ,
SAN := $(if $(ASAN),-fsanitize=address$(COMMA)undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
SAN += $(if $(TSAN),-fsanitize=thread -fno-omit-frame-pointer)
FLAGS = $(OPT) -g -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -pthread $(SAN) \
         $(if $(WERROR),-Werror)
CFLAGS_ALL = -std=c11 $(FLAGS) $(WARN) $(WARN_C) $(CFLAGS)
# Checks of C++ types need UBSan's C++ runtime, which a program linked by a C compiler lacks.
CXX_SAN := $(if $(ASAN),-fno-sanitize=vptr$(if $(findstring clang,$(CXX)),$(COMMA)function))
CXXFLAGS_ALL = -std=c++17 $(FLAGS) $(CXX_SAN) $(WARN) $(CXXFLAGS)
CPPFLAGS_LIB := -Iinclude -Isrc -DDGM_VERSION='"$(VERSION)"' -DDGM_SHARE_DIR='"$(PREFIX)/share/dragoman"' -DDGM_BUILDING
CPPFLAGS_LIB += -DDGM_LIB_DIR='"$(PREFIX)/lib"'
CPPFLAGS_APP := -Iinclude -Iapps/cli -DDGM_VERSION='"$(VERSION)"'
LIBS := -lsentencepiece -ljansson -lutf8proc -lz -lm -lpthread -lstdc++
LIBS += -ldl # devices as shared objects; in the C library itself since glibc 2.34

# ---- library -------------------------------------------------------------------------------
# Every .c file of these folders belongs to the library: a new file needs no line here.
LIB_DIRS := base kernel kernel/ref format import text metrics backend backend/cpu model model/transformer model/rnn shrink \
            lattice align lm phrase vocabsel constraint score search engine tools
LIB_SRC := $(sort $(foreach dir,$(LIB_DIRS),$(wildcard src/$(dir)/*.c)))
CXX_SRC := src/text/spm_shim.cc
# A fresh machine has no compiler yet when this line is read: bootstrap installs it.
ARCH := $(or $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1),$(shell uname -m))
ifeq ($(ARCH),x86_64)
LIB_SRC += $(wildcard src/kernel/x86/*.c)
endif
ifeq ($(ARCH),aarch64)
LIB_SRC += $(wildcard src/kernel/arm/*.c)
endif
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(CXX_SRC:%.cc=$(BUILD)/%.o)

# ---- program -------------------------------------------------------------------------------
CLI_SRC := $(sort $(wildcard apps/cli/*.c apps/cli/*/*.c))
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o)

# ---- tests and benchmarks ------------------------------------------------------------------
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/%)
CHECKKERNEL_SRC := $(wildcard tests/checkkernel/*.c)
CHECKBACKEND_SRC := $(wildcard tests/checkbackend/*.c)

all: $(BUILD)/libdragoman.a $(BUILD)/libdragoman.so dragoman

dragoman: $(BUILD)/dragoman
	@ln -sf $< $@

# ISA flags by file suffix; the detection file itself gets none.
AVX512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprfchw -mprefer-vector-width=512
$(BUILD)/src/kernel/x86/%_avx2.o: ISA := -mavx2 -mfma -mf16c
$(BUILD)/src/kernel/x86/%_avx512.o: ISA := $(AVX512)
$(BUILD)/src/kernel/x86/%_vnni.o: ISA := $(AVX512) -mavx512vnni
$(BUILD)/src/kernel/x86/%_amx.o: ISA := $(AVX512) -mavx512vnni -mamx-tile -mamx-int8
$(BUILD)/src/kernel/arm/%_dotprod.o: ISA := -march=armv8.2-a+dotprod
$(BUILD)/src/kernel/arm/%_i8mm.o: ISA := -march=armv8.2-a+dotprod+i8mm
$(BUILD)/src/kernel/%.o: OPT := $(if $(ASAN)$(TSAN),-O1,-O3)

$(BUILD)/src/%.o: src/%.c | bootstrap-stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(ISA) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@

$(BUILD)/src/%.o: src/%.cc | bootstrap-stamp
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@

$(BUILD)/apps/%.o: apps/%.c | bootstrap-stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_APP) -MMD -MP -c $< -o $@

$(BUILD)/libdragoman.a: $(LIB_OBJ) Makefile
	@rm -f $@
	ar rcs $@ $(LIB_OBJ)

$(BUILD)/libdragoman.so.$(SOVERSION): $(LIB_OBJ) src/dragoman.map
	$(CXX) -shared $(FLAGS) -Wl,-soname,libdragoman.so.$(SOVERSION) \
	    -Wl,--version-script=src/dragoman.map $(LDFLAGS) -o $@ $(LIB_OBJ) $(LIBS)

$(BUILD)/libdragoman.so: $(BUILD)/libdragoman.so.$(SOVERSION)
	@ln -sf libdragoman.so.$(SOVERSION) $@

$(BUILD)/dragoman: $(CLI_OBJ) $(BUILD)/libdragoman.a
	$(CXX) $(FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/test_model_% $(BUILD)/tests/test_search_models $(BUILD)/tests/test_search_cube_models $(BUILD)/tests/test_search_double: TEST_EXTRA := tests/fixture.c
$(BUILD)/tests/test_%: tests/unit/test_%.c tests/fixture.c tests/fixture.h $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(CPPFLAGS_LIB) -Itests -MMD -MP -o $@ $< $(TEST_EXTRA) $(BUILD)/libdragoman.a -lcmocka $(LIBS)

# Devices as shared objects, for tests: each carries what it needs of the library.
PLUGINS := $(patsubst tests/plugins/%.c,$(BUILD)/tests/plugins/libdragoman-%.so,$(wildcard tests/plugins/*.c))
$(BUILD)/tests/plugins/libdragoman-%.so: tests/plugins/%.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -shared -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $< $(BUILD)/libdragoman.a -lm -lpthread -ldl
$(BUILD)/tests/test_backend_devices: | $(PLUGINS)

$(BUILD)/checkbackend: $(CHECKBACKEND_SRC) tests/checkbackend/checkbackend.h $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Itests -o $@ $(CHECKBACKEND_SRC) $(BUILD)/libdragoman.a $(LIBS)

$(BUILD)/checkkernel: $(CHECKKERNEL_SRC) $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Itests -o $@ $(CHECKKERNEL_SRC) $(BUILD)/libdragoman.a $(LIBS)

# The same without libraries, for another machine (scripts/check_arm).
ALONE := $(filter $(BUILD)/src/kernel/%,$(LIB_OBJ)) $(addprefix $(BUILD)/src/base/,status.o mem.o bytes.o clock.o)
$(BUILD)/checkkernel-alone: $(CHECKKERNEL_SRC) $(ALONE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Itests -static -o $@ $(CHECKKERNEL_SRC) $(ALONE) -lm -lpthread

# Benchmark programs; their rivals are installed first, once per build directory.
$(BUILD)/.bench-packages: scripts/bootstrap
	scripts/bootstrap bench
	@mkdir -p $(@D)
	@touch $@

$(BUILD)/bench/gemm: bench/programs/gemm.c bench/programs/gemm_int.c bench/programs/gemm.h $(BUILD)/libdragoman.a | $(BUILD)/.bench-packages
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ bench/programs/gemm.c bench/programs/gemm_int.c $(BUILD)/libdragoman.a -lopenblas -ldnnl $(LIBS)

$(BUILD)/bench/roofline: bench/programs/roofline.c bench/programs/ceilings.c bench/programs/ceilings.h $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_APP) -Ibench/programs -o $@ bench/programs/roofline.c bench/programs/ceilings.c $(BUILD)/libdragoman.a $(LIBS)

$(BUILD)/bench/moe: bench/programs/moe.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ bench/programs/moe.c $(BUILD)/libdragoman.a $(LIBS)

DEVLIN := bench/programs/devlin2017.c bench/programs/devlin2017_blas.c bench/programs/devlin2017_model.c
$(BUILD)/bench/devlin2017: $(DEVLIN) bench/programs/devlin2017.h $(BUILD)/libdragoman.a | $(BUILD)/.bench-packages
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ $(DEVLIN) $(BUILD)/libdragoman.a -lopenblas -ldnnl $(LIBS)

$(BUILD)/bench/clusters: bench/programs/clusters.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -o $@ $< $(BUILD)/libdragoman.a $(LIBS)

BENCH := $(BUILD)/bench/gemm

bench: $(BENCH)
	$(BUILD)/bench/gemm

# Installs what is missing, once per checkout; quiet and instant afterwards.
bootstrap-stamp: .bootstrapped
.bootstrapped: scripts/bootstrap
	scripts/bootstrap
	@touch $@

check: $(UNIT) $(BUILD)/checkkernel $(BUILD)/checkbackend
	@scripts/run_tests --build $(BUILD) unit kernels backends

test: all $(UNIT) $(BUILD)/checkkernel $(BUILD)/checkbackend
	scripts/check_layers
	@CC="$(CC)" CXX="$(CXX)" SANFLAGS="$(strip $(SAN))" scripts/run_tests --build $(BUILD)

# Fuzzing, 1,000 lines of invariance, goldens made again by the programs of others (in .work/).
LONG_TEXT := tests/data/translate/newstest2014-1000.en
SELF_NORMALISED := tests/data/models/self-normalised
WRITING = $(wildcard models/research/imamura-*.gguf) $(WRITING_MODELS)
SELF_TEXT := tests/data/translate/self-normalised

test-long: test
	scripts/bootstrap long
	scripts/fuzz 60
	scripts/check_arm
	for p in f32 i16 i8; do \
	    tests/system/invariance $(BUILD)/dragoman models/en-de.gguf $(LONG_TEXT) 1000 --precision $$p || exit 1; \
	done
	for cube in naive accelerated; do \
	    tests/system/invariance $(BUILD)/dragoman models/en-de.gguf $(LONG_TEXT) 1000 --search cube --cube $$cube || exit 1; \
	done
	tests/system/cube $(BUILD)/dragoman models/en-de.gguf $(LONG_TEXT) 1000
	tests/system/lmbr $(BUILD)/dragoman models/en-de.gguf $(LONG_TEXT) 400
	for model in models/research/devlin-s4-small.gguf models/research/rnnsearch-small.gguf $(RECURRENT_MODELS); do \
	    tests/system/techniques $(BUILD)/dragoman $$model $(LONG_TEXT) 1000 || exit 1; \
	done
	for model in $(WRITING); do \
	    tests/system/writing $(BUILD)/dragoman $$model $(LONG_TEXT) 200 || exit 1; \
	    PYTHONPATH=training /usr/bin/python3 -m dragoman_training agree $$model --text $(LONG_TEXT) \
	        --dragoman $(BUILD)/dragoman || exit 1; \
	done
	for more in "" "--shortlist all" "--search cube" "--search cube --cube naive" "--beam 1" "--finish mask"; do \
	    tests/system/terms $(BUILD)/dragoman models/en-de.gguf $(LONG_TEXT) tests/data/translate/newstest2014-500.de 500 $$more || exit 1; \
	done
	bench/zhang2018 --plain $(SELF_NORMALISED).gguf --self-normalised $(SELF_NORMALISED).gguf --quick \
	    --input $(SELF_TEXT).en --reference $(SELF_TEXT).de --out $(BUILD)/zhang2018 --program $(BUILD)/dragoman > /dev/null
	tests/system/identity $(BUILD)/dragoman models/en-de.gguf $(LONG_TEXT) 200
	PYTHONPATH=training /usr/bin/python3 -m unittest discover -s training/tests
	training/smoke.sh
	for pair in en-de:$(LONG_TEXT) de-en:tests/data/translate/newstest2014-500.de; do \
	    PYTHONPATH=training /usr/bin/python3 -m dragoman_training agree models/$${pair%%:*}.gguf \
	        --text $${pair#*:} --dragoman $(BUILD)/dragoman || exit 1; \
	done
	scripts/remake_goldens

demo: all
	@./dragoman translate -i examples/demo.en | paste -d '\n' examples/demo.en -
	@./dragoman translate -s de -t en -i examples/demo.de | paste -d '\n' examples/demo.de -

# ---- installation --------------------------------------------------------------------------
COMMANDS = $(shell $(BUILD)/dragoman help --names)
BINDIR = $(DESTDIR)$(PREFIX)/bin
LIBDIR = $(DESTDIR)$(PREFIX)/lib
INCDIR = $(DESTDIR)$(PREFIX)/include/dragoman
SHAREDIR = $(DESTDIR)$(PREFIX)/share/dragoman
MANDIR = $(DESTDIR)$(PREFIX)/share/man/man1
BASHDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
SONAME := libdragoman.so.$(SOVERSION)

install: all
	@install -d $(BINDIR) $(LIBDIR)/pkgconfig $(INCDIR) $(SHAREDIR)/models $(MANDIR) $(BASHDIR) $(ZSHDIR)
	install -m 755 $(BUILD)/dragoman $(BINDIR)/dragoman
	install -m 755 $(BUILD)/$(SONAME) $(LIBDIR)/$(SONAME)
	@ln -sf $(SONAME) $(LIBDIR)/libdragoman.so
	install -m 644 $(BUILD)/libdragoman.a $(LIBDIR)/libdragoman.a
	install -m 644 include/dragoman/*.h $(INCDIR)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	    'Name: dragoman' 'Description: Neural machine translation' 'Version: $(VERSION)' \
	    'Libs: -L$${libdir} -ldragoman' 'Libs.private: $(LIBS)' \
	    'Cflags: -I$${includedir}' > $(LIBDIR)/pkgconfig/dragoman.pc
	@$(BUILD)/dragoman help --man dragoman > $(MANDIR)/dragoman.1
	@for c in $(COMMANDS); do $(BUILD)/dragoman help --man $$c > $(MANDIR)/dragoman-$$c.1; done
	@$(BUILD)/dragoman help --completion bash > $(BASHDIR)/dragoman
	@$(BUILD)/dragoman help --completion zsh > $(ZSHDIR)/_dragoman
	@for m in models/*.gguf; do cp -P $$m $(SHAREDIR)/models/; done

uninstall:
	rm -f $(BINDIR)/dragoman $(LIBDIR)/$(SONAME) $(LIBDIR)/libdragoman.so $(LIBDIR)/libdragoman.a
	rm -f $(LIBDIR)/pkgconfig/dragoman.pc $(MANDIR)/dragoman.1 $(MANDIR)/dragoman-*.1
	rm -f $(BASHDIR)/dragoman $(ZSHDIR)/_dragoman
	for h in include/dragoman/*.h; do rm -f $(INCDIR)/$${h##*/}; done
	for m in models/*.gguf; do rm -f $(SHAREDIR)/$$m; done
	rmdir --ignore-fail-on-non-empty $(INCDIR) $(SHAREDIR)/models $(SHAREDIR) 2>/dev/null || true

clean:
	rm -rf $(BUILD) dragoman

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

.PHONY: all dragoman check test test-long demo bench install uninstall clean bootstrap-stamp
