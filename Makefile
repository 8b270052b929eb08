# Dragoman: one Makefile. `make help` lists targets and switches.
#
# Libraries are found by pkg-config; what is missing is named, with its packages (scripts/packages).
# SIMD files are taken by suffix: src/kernel/x86/*_avx2.c gets the flags of avx2, and so on.

VERSION := $(shell cat VERSION)
SOVERSION := 1
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

# ---- libraries -----------------------------------------------------------------------------
PKG_CONFIG ?= pkg-config
PACKAGES := sentencepiece jansson libutf8proc zlib libzip yaml-0.1 gumbo md4c expat libmicrohttpd
# Left out: libsentencepiece_train, which nothing here calls, and a macro for building utf8proc itself.
LIBS := $(filter-out -lsentencepiece_train,$(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)) -lm -lpthread -lstdc++
LIBS += -lcld2 # has no pkg-config file
LIBS += -ldl # devices as shared objects; in the C library itself since glibc 2.34
CPPFLAGS_LIB += $(strip $(filter-out -DUTF8PROC_EXPORTS,$(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)))
PDF := $(if $(shell $(PKG_CONFIG) --exists poppler-glib 2>/dev/null && echo yes),$(BUILD)/libdragoman-pdf.so)
CMOCKA = $(shell $(PKG_CONFIG) --cflags --libs cmocka 2>/dev/null || echo -lcmocka)
# Names of packages that pkg-config does not know, "pkg-config" if there is none.
MISSING := $(shell command -v $(PKG_CONFIG) >/dev/null || echo pkg-config; \
                   for p in $(PACKAGES); do $(PKG_CONFIG) --exists $$p 2>/dev/null || echo $$p; done; \
                   echo '\#include <cld2/public/encodings.h>' | $(CC) -E -x c - >/dev/null 2>&1 || echo cld2)

# ---- library -------------------------------------------------------------------------------
# Every .c file of these folders belongs to the library: a new file needs no line here.
LIB_DIRS := base kernel kernel/ref format import export text metrics backend backend/cpu model model/transformer model/rnn shrink \
            lattice align lm phrase vocabsel constraint score search engine document tools server
LIB_SRC := $(sort $(foreach dir,$(LIB_DIRS),$(wildcard src/$(dir)/*.c)))
CXX_SRC := src/text/spm_shim.cc src/text/cld2_shim.cc
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

all: $(BUILD)/libdragoman.a $(BUILD)/libdragoman.so dragoman $(PDF)

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

$(BUILD)/src/%.o: src/%.c | libraries
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(ISA) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@

$(BUILD)/src/%.o: src/%.cc | libraries
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@

$(BUILD)/apps/%.o: apps/%.c | libraries
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

# Models and goldens that the tree keeps packed; done in no time when they lie there.
test-data:
	@scripts/test_data unpack

$(BUILD)/tests/test_model_% $(BUILD)/tests/test_search_models $(BUILD)/tests/test_search_cube_models $(BUILD)/tests/test_search_double: TEST_EXTRA := tests/fixture.c
$(BUILD)/tests/test_%: tests/unit/test_%.c tests/fixture.c tests/fixture.h $(BUILD)/libdragoman.a | test-data
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(CPPFLAGS_LIB) -Itests -MMD -MP -o $@ $< $(TEST_EXTRA) $(BUILD)/libdragoman.a $(CMOCKA) $(LIBS)

# ---- the text of PDF files: a shared object, where Poppler is ----------------------------------
$(BUILD)/libdragoman-pdf.so: src/document/pdf/pdf_html.c src/document/pdf_plugin_private.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Isrc $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags poppler-glib)) -shared -o $@ $< \
	    $(shell $(PKG_CONFIG) --libs poppler-glib)
$(BUILD)/tests/test_document_pdf: | $(PDF)

# ---- a GPU as a device: `make cuda`, where the CUDA toolkit is -------------------------------
# The runtime is linked in; the driver is found when the device is opened. Kernels for every
# architecture, and code that later ones translate for themselves.
NVCC ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
CUDA_HOME ?= $(abspath $(dir $(NVCC))..)
CUDA_ARCHS ?= 75 80 86 89 90 120
CUDA_LAST = $(lastword $(CUDA_ARCHS))
# Products of groups of warps are in code that is for 9.0 alone (sm_90a).
CUDA_NAMES = $(patsubst 90,90a,$(CUDA_ARCHS))
CUDA_GROUPS = -DCUDA_HAS_GROUPS=$(if $(filter 90,$(CUDA_ARCHS)),1,0)
CUDA_CODE = $(foreach a,$(CUDA_NAMES),-gencode arch=compute_$a$(COMMA)code=sm_$a) \
            -gencode arch=compute_$(CUDA_LAST),code=compute_$(CUDA_LAST)
EMPTY :=
CUDA_DIR = $(BUILD)/cuda-$(subst $(EMPTY) $(EMPTY),-,$(strip $(CUDA_ARCHS)))
CUDA_OBJ = $(patsubst %,$(CUDA_DIR)/%.o,$(wildcard src/backend/cuda/*.c src/backend/cuda/*.cu))

cuda: $(BUILD)/libdragoman-cuda.so
cuda-objects: $(CUDA_OBJ)
nvcc-found:
	@test -n "$(NVCC)" || { echo "make cuda needs NVIDIA's CUDA toolkit: nvcc is neither in PATH nor in /usr/local/cuda/bin"; exit 1; }
$(CUDA_DIR)/%.cu.o: %.cu | libraries nvcc-found
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O3 $(CUDA_CODE) -Xcompiler -fPIC,-fvisibility=hidden $(if $(WERROR),-Werror all-warnings) \
	    -Iinclude -Isrc -MMD -MP -c $< -o $@
$(CUDA_DIR)/%.c.o: %.c | libraries nvcc-found
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) $(CUDA_GROUPS) -isystem $(CUDA_HOME)/include -MMD -MP -c $< -o $@
$(BUILD)/libdragoman-cuda.so: $(CUDA_OBJ) $(BUILD)/libdragoman.a
	$(CXX) -shared $(FLAGS) -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $^ \
	    -L$(CUDA_HOME)/lib64 -lcudart_static -lm -lpthread -ldl -lrt

# Program, device and what they need in one archive.
cuda-kit: cuda $(BUILD)/dragoman $(BUILD)/checkbackend $(addprefix $(BUILD)/bench/,cells clusters products)
	scripts/cuda_kit $(BUILD)

# The same device on this machine's processor, for tests: no CUDA, no GPU (tests/plugins/softcuda).
SOFT := tests/plugins/softcuda
SOFT_FLAGS := -I$(SOFT) -DCUDA_HAS_GROUPS=1 -DCUDA_RING=0x100000 -DCUDA_POOL=0x200000 -DCUDA_EARLY=2
SOFT_ISA := $(if $(filter x86_64,$(ARCH)),-march=native) # products are emulated: built and run in one place
SOFT_OBJ := $(patsubst %,$(BUILD)/soft/%.o,$(wildcard src/backend/cuda/*.c src/backend/cuda/*.cu $(SOFT)/*.cc))
$(BUILD)/soft/%.cu.o: %.cu | libraries
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) -fno-strict-aliasing $(SOFT_ISA) $(SOFT_FLAGS) $(CPPFLAGS_LIB) -include softcuda.h -MMD -MP -x c++ -c $< -o $@
$(BUILD)/soft/%.cc.o: %.cc | libraries
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) $(SOFT_FLAGS) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@
$(BUILD)/soft/%.c.o: %.c | libraries
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(SOFT_FLAGS) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@
$(BUILD)/tests/softcuda/libdragoman-cuda.so: $(SOFT_OBJ) $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CXX) -shared $(FLAGS) -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $^ -lm -lpthread -ldl

# The same with the sizes of a real one, for what the host costs (bench/gpu/host).
IDLE_OBJ := $(patsubst %,$(BUILD)/idle/%.o,$(wildcard src/backend/cuda/*.c))
$(BUILD)/idle/%.c.o: %.c | libraries
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -I$(SOFT) -DCUDA_HAS_GROUPS=1 $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@
$(BUILD)/bench/idle/libdragoman-cuda.so: $(filter-out %.c.o,$(SOFT_OBJ)) $(IDLE_OBJ) $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CXX) -shared $(FLAGS) -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $^ -lm -lpthread -ldl

# ---- the Python package: `make python` makes build/python, for PYTHONPATH; `make wheel` packs it -----
# One extension for all Pythons from 3.11 on (abi3). Without Python's headers everything else is built all the same.
PYTHON ?= /usr/bin/python3
PYTHON_INCLUDE := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)
PYTHON_FOUND := $(if $(PYTHON_INCLUDE),$(wildcard $(PYTHON_INCLUDE)/Python.h))
PYTHON_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard python/extension/*.c))
PYTHON_SRC := $(wildcard python/dragoman/*.py python/dragoman/*.pyi python/dragoman/py.typed python/dragoman/*/*.py)
PYTHON_FILES := $(patsubst python/%,$(BUILD)/python/%,$(PYTHON_SRC))

python: $(if $(PYTHON_FOUND),$(BUILD)/python/dragoman/_dragoman.abi3.so $(PYTHON_FILES),python-missing)
	@$(if $(PYTHON_FOUND),ln -sfn $(CURDIR)/models $(BUILD)/python/dragoman/models)
wheel: python
	@PYTHON=$(PYTHON) scripts/wheel $(BUILD)
python-missing:
	@echo "no Python.h for $(PYTHON) (Debian: python3-dev): the Python package is not built"

# Names of arguments are char ** in Python's interface.
$(BUILD)/python/extension/%.o: python/extension/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Wno-write-strings -Iinclude -isystem $(PYTHON_INCLUDE) -MMD -MP -c $< -o $@
$(BUILD)/python/dragoman/_dragoman.abi3.so: $(PYTHON_OBJ) $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CXX) -shared $(FLAGS) -Wl,--exclude-libs,ALL $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/python/dragoman/%: python/dragoman/%
	@mkdir -p $(@D)
	@cp $< $@

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
ALONE := $(filter $(BUILD)/src/kernel/%,$(LIB_OBJ)) $(addprefix $(BUILD)/src/base/,status.o mem.o bytes.o number.o clock.o)
$(BUILD)/checkkernel-alone: $(CHECKKERNEL_SRC) $(ALONE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Itests -static -o $@ $(CHECKKERNEL_SRC) $(ALONE) -lm -lpthread

# Benchmark programs; their rivals are installed first, once per build directory.
$(BUILD)/.bench-packages: scripts/packages
	scripts/deps bench
	@mkdir -p $(@D)
	@touch $@

GEMM := bench/programs/gemm.c bench/programs/gemm_int.c bench/programs/ceilings.c
$(BUILD)/bench/gemm: $(GEMM) bench/programs/gemm.h bench/programs/ceilings.h bench/programs/rivals.h $(BUILD)/libdragoman.a | $(BUILD)/.bench-packages
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ $(GEMM) $(BUILD)/libdragoman.a -lopenblas -ldnnl $(LIBS)

$(BUILD)/bench/roofline: bench/programs/roofline.c bench/programs/ceilings.c bench/programs/ceilings.h $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_APP) -Ibench/programs -o $@ bench/programs/roofline.c bench/programs/ceilings.c $(BUILD)/libdragoman.a $(LIBS)

CEILINGS := bench/programs/ceilings_print.c bench/programs/ceilings.c
$(BUILD)/bench/ceilings: $(CEILINGS) bench/programs/ceilings.h $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ $(CEILINGS) $(BUILD)/libdragoman.a $(LIBS)

$(BUILD)/bench/moe: bench/programs/moe.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ bench/programs/moe.c $(BUILD)/libdragoman.a $(LIBS)

DEVLIN := bench/programs/devlin2017.c bench/programs/devlin2017_blas.c bench/programs/devlin2017_model.c
$(BUILD)/bench/devlin2017: $(DEVLIN) bench/programs/devlin2017.h bench/programs/rivals.h $(BUILD)/libdragoman.a | $(BUILD)/.bench-packages
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ $(DEVLIN) $(BUILD)/libdragoman.a -lopenblas -ldnnl $(LIBS)

$(BUILD)/bench/clusters: bench/programs/clusters.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -o $@ $< $(BUILD)/libdragoman.a $(LIBS)

$(BUILD)/bench/headlines: bench/programs/headlines.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -o $@ $< $(BUILD)/libdragoman.a $(LIBS)

$(BUILD)/bench/products: bench/programs/products.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -o $@ $< $(BUILD)/libdragoman.a $(LIBS)

$(BUILD)/bench/cells: bench/programs/cells.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -o $@ $< $(BUILD)/libdragoman.a $(LIBS)

BENCH := $(BUILD)/bench/gemm

bench: $(BENCH)
	$(BUILD)/bench/gemm

# ---- what people type ----------------------------------------------------------------------
# Stops with one line for everything that is missing; says nothing otherwise.
libraries:
	@$(if $(MISSING),CC="$(CC)" CXX="$(CXX)" PKG_CONFIG="$(PKG_CONFIG)" scripts/deps --check build)

deps:
	@CC="$(CC)" CXX="$(CXX)" PKG_CONFIG="$(PKG_CONFIG)" scripts/deps build test
	@echo "Packages by system:" && scripts/deps --list build test

# demo and test install first and then start make again: a fresh machine has neither compiler nor pkg-config when a Makefile
# is read. They use all cores unless make was called with -j, and show no commands.
AGAIN = +@$(MAKE) -s --no-print-directory $(if $(findstring j,$(filter -j% --jobserver%,$(MAKEFLAGS))),,-j$(shell nproc))
INSTALL = @CC="$(CC)" CXX="$(CXX)" PKG_CONFIG="$(PKG_CONFIG)" scripts/deps

demo:
	$(INSTALL) build
	@echo "building (a few minutes the first time)"
	$(AGAIN) all
	@./dragoman translate -i examples/demo.en | paste -d '\n' examples/demo.en -
	@./dragoman translate -s de -t en -i examples/demo.de | paste -d '\n' examples/demo.de -

# Compiled only, so that a change of an interface cannot leave them behind: fuzzers run in test-long, and benchmarks that
# need none of their rivals' headers by hand.
FUZZ_OBJ := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%.o,$(wildcard tests/fuzz/*.c))
BENCH_OBJ := $(addprefix $(BUILD)/bench/programs/,ceilings.o ceilings_print.o clusters.o devlin2017.o devlin2017_model.o headlines.o moe.o products.o roofline.o)
# The software GPU is made of fibers, which sanitizers do not know.
SOFTCUDA := $(if $(ASAN)$(TSAN),,$(BUILD)/tests/softcuda/libdragoman-cuda.so)
unit-programs: test-data $(UNIT) $(BUILD)/checkkernel $(BUILD)/checkbackend $(FUZZ_OBJ) $(BENCH_OBJ) $(BUILD)/bench/cells $(SOFTCUDA)

$(BUILD)/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(CPPFLAGS_LIB) -Itests -MMD -MP -c $< -o $@
$(BUILD)/bench/programs/%.o: bench/programs/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(CPPFLAGS_LIB) -Ibench/programs -MMD -MP -c $< -o $@

check: unit-programs
	@scripts/run_tests --build $(BUILD) unit

# Tiers (docs/internals/TESTING.md): each ends the run when it fails. The second compiler builds library and program only, in
# a folder of its own, without optimising: it is asked for its warnings.
OTHER := $(if $(findstring clang,$(CC)),gcc,clang)
# Instrumented code makes gcc warn of what is not there.
STRICT := $(if $(ASAN)$(TSAN),,WERROR=1)
STRICT_SAYS := $(if $(STRICT),$(COMMA) warnings are errors)
RUN_TESTS = @CC="$(CC)" CXX="$(CXX)" SANFLAGS="$(strip $(SAN))" scripts/run_tests --build $(BUILD)

test:
	$(INSTALL) build test
	$(RUN_TESTS) source
	@echo "building with $(CC)$(STRICT_SAYS)"
	$(AGAIN) $(STRICT) all unit-programs python
ifeq ($(ASAN)$(TSAN),)
	@echo "building with $(OTHER), warnings are errors"
	$(AGAIN) CC=$(OTHER) CXX=$(if $(filter gcc,$(OTHER)),g++,clang++) BUILD=build-$(OTHER) OPT=-O0 WERROR=1 build-$(OTHER)/dragoman
endif
	@echo "$(if $(NVCC),building the GPU device for one kind of GPU,no nvcc: the GPU device is not built)"
	$(if $(NVCC),$(AGAIN) $(STRICT) CUDA_ARCHS=90 cuda-objects)
	$(RUN_TESTS) source unit system

# The suite again under sanitizers, Arm under qemu, fuzzing, full-size checks, goldens made again by the programs of others.
# RECURRENT_MODELS, WRITING_MODELS: further models for tests/system/optimisations and tests/system/writing.
test-long:
	$(INSTALL) build test long arm
	$(AGAIN) WERROR=1 all unit-programs python
	@CC="$(CC)" CXX="$(CXX)" RECURRENT_MODELS="$(RECURRENT_MODELS)" WRITING_MODELS="$(WRITING_MODELS)" \
	    scripts/run_tests --build $(BUILD) long

help:
	@echo 'make             library and program: build/libdragoman.a, build/libdragoman.so, ./dragoman'
	@echo 'make deps        install what building and testing need (Debian), name the packages elsewhere'
	@echo 'make python      the Python package, for PYTHONPATH=build/python (needs Python.h)'
	@echo 'make wheel       the same as wheels and source distribution, in build/wheels'
	@echo 'make cuda        the GPU as a device: build/libdragoman-cuda.so (needs the CUDA toolkit)'
	@echo 'make cuda-kit    the same with the program and its libraries in one archive, for a machine without them'
	@echo 'make demo        deps, build, translate a few lines'
	@echo 'make test        deps, source checks, builds with two compilers, unit and system tests'
	@echo 'make test-long   test, sanitizers, Arm under qemu, fuzzing, goldens made again: hours'
	@echo 'make check       unit tests and kernels alone'
	@echo 'make bench       products against OpenBLAS and oneDNN (bench/README.md has the others)'
	@echo 'make install     PREFIX=/usr/local DESTDIR=; make uninstall takes it away again'
	@echo 'make clean       remove the build folder'
	@echo
	@echo 'Switches: CC=clang  WERROR=1  ASAN=1  TSAN=1  OPT=-O2  BUILD=build  CFLAGS= LDFLAGS=  PKG_CONFIG=pkg-config'

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
	@$(if $(PDF),install -m 755 $(PDF) $(LIBDIR)/libdragoman-pdf.so)
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
	rm -f $(BINDIR)/dragoman $(LIBDIR)/$(SONAME) $(LIBDIR)/libdragoman.so $(LIBDIR)/libdragoman.a $(LIBDIR)/libdragoman-pdf.so
	rm -f $(LIBDIR)/pkgconfig/dragoman.pc $(MANDIR)/dragoman.1 $(MANDIR)/dragoman-*.1
	rm -f $(BASHDIR)/dragoman $(ZSHDIR)/_dragoman
	for h in include/dragoman/*.h; do rm -f $(INCDIR)/$${h##*/}; done
	for m in models/*.gguf; do rm -f $(SHAREDIR)/$$m; done
	rmdir --ignore-fail-on-non-empty $(INCDIR) $(SHAREDIR)/models $(SHAREDIR) 2>/dev/null || true

clean:
	rm -rf $(BUILD) dragoman

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

.PHONY: all python python-missing wheel cuda cuda-kit cuda-objects nvcc-found dragoman libraries deps demo unit-programs test-data check test test-long help bench install uninstall clean
