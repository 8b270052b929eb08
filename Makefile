# Dragoman: one Makefile. `make help` lists targets and switches.
#
# Libraries are found by pkg-config; what is missing is named, with its packages (scripts/packages).
# SIMD files are taken by suffix: src/kernel/x86/*_avx2.c gets the flags of avx2, and so on.

VERSION := $(shell cat VERSION)
SOVERSION := 1
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
PLUGINDIR ?= $(LIBDIR)
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

BUILD ?= build$(if $(ASAN),-asan)$(if $(TSAN),-tsan)$(if $(MSAN),-msan)
SANITIZED := $(ASAN)$(TSAN)$(MSAN)
OPT ?= $(if $(SANITIZED),-O1,-O2)
WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wwrite-strings -Wundef
WARN_C := -Wstrict-prototypes -Wmissing-prototypes
COMMA := ,
SAN := $(if $(ASAN),-fsanitize=address$(COMMA)undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
SAN += $(if $(TSAN),-fsanitize=thread -fno-omit-frame-pointer)
SAN += $(if $(MSAN),-fsanitize=memory -fno-omit-frame-pointer)
# Checks that make a mistake harder to use (docs/internals/TESTING.md has their cost); _FORTIFY_SOURCE needs an optimiser.
HARDEN_x86_64 := -fcf-protection
HARDEN_aarch64 := -mbranch-protection=standard
HARDEN = $(if $(SANITIZED),,$(if $(filter -O0,$(OPT)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3) -fstack-protector-strong \
         -fstack-clash-protection $(HARDEN_$(ARCH)))
# The same bytes in any folder.
ANYWHERE := -ffile-prefix-map=$(CURDIR)=.
FLAGS = $(OPT) -g -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -pthread $(SAN) \
         $(if $(WERROR),-Werror)
RELRO := -Wl,-z,relro,-z,now,-z,noexecstack
LINK = $(FLAGS) $(RELRO)
CFLAGS_ALL = -std=c11 $(FLAGS) $(HARDEN) $(ANYWHERE) $(WARN) $(WARN_C) $(CFLAGS)
# Checks of C++ types need UBSan's C++ runtime, which a program linked by a C compiler lacks.
CXX_SAN := $(if $(ASAN),-fno-sanitize=vptr$(if $(findstring clang,$(CXX)),$(COMMA)function))
CXXFLAGS_ALL = -std=c++17 $(FLAGS) $(HARDEN) $(ANYWHERE) $(CXX_SAN) $(WARN) $(CXXFLAGS)
CPPFLAGS_LIB := -Iinclude -Isrc -DDGM_VERSION='"$(VERSION)"' -DDGM_SHARE_DIR='"$(PREFIX)/share/dragoman"' -DDGM_BUILDING
CPPFLAGS_LIB += -DDGM_LIB_DIR='"$(PLUGINDIR)"'
CPPFLAGS_APP := -Iinclude -Iapps/cli -DDGM_VERSION='"$(VERSION)"'

# ---- libraries -----------------------------------------------------------------------------
PKG_CONFIG ?= pkg-config
PACKAGES := jansson libutf8proc zlib libzip yaml-0.1 gumbo md4c expat libmicrohttpd
LIBS := $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null) -lm -lpthread -lstdc++
LIBS += -lcld2 # has no pkg-config file
LIBS += -ldl # devices as shared objects; in the C library itself since glibc 2.34
CPPFLAGS_LIB += $(strip $(filter-out -DUTF8PROC_EXPORTS,$(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)))
PDF := $(if $(shell $(PKG_CONFIG) --exists poppler-glib 2>/dev/null && echo yes),$(BUILD)/libdragoman-pdf.so)
# What a server may do after its start: where libseccomp is, calls of the system are filtered, too.
SECCOMP := $(shell $(PKG_CONFIG) --exists libseccomp 2>/dev/null && echo yes)
LIBS += $(if $(SECCOMP),$(shell $(PKG_CONFIG) --libs libseccomp))
$(BUILD)/src/server/sandbox.o: CPPFLAGS_LIB += $(if $(SECCOMP),-DDGM_HAVE_SECCOMP $(shell $(PKG_CONFIG) --cflags libseccomp))
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
CXX_SRC := src/text/cld2_shim.cc
ARCH := $(or $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1),$(shell uname -m))
ifeq ($(ARCH),x86_64)
LIB_SRC += $(wildcard src/kernel/x86/*.c)
endif
ifeq ($(ARCH),aarch64)
LIB_SRC += $(wildcard src/kernel/arm/*.c)
endif
# Pages of the server, with their styles and scripts in them, as C.
PAGES := $(BUILD)/src/server/pages.c
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(CXX_SRC:%.cc=$(BUILD)/%.o) $(PAGES:.c=.o)

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
$(BUILD)/src/kernel/x86/%_avx512bf16.o: ISA := $(AVX512) -mavx512bf16
$(BUILD)/src/kernel/x86/%_amx.o: ISA := $(AVX512) -mavx512vnni -mamx-tile -mamx-int8 -mamx-bf16
$(BUILD)/src/kernel/arm/%_dotprod.o: ISA := -march=armv8.2-a+dotprod
$(BUILD)/src/kernel/arm/%_i8mm.o: ISA := -march=armv8.2-a+dotprod+i8mm
$(BUILD)/src/kernel/%.o: OPT := $(if $(SANITIZED),-O1,-O3)
# Kernels see numbers alone, whose counts their callers checked; protected stacks cost up to 20 % in the smallest of them.
$(BUILD)/src/kernel/%.o: HARDEN = $(if $(SANITIZED),,$(HARDEN_$(ARCH)))
$(addprefix $(BUILD)/src/format/,gguf_get.o quantize.o): OPT := $(if $(SANITIZED),-O1,-O3)

$(BUILD)/src/%.o: src/%.c | libraries
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(ISA) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@

$(BUILD)/src/%.o: src/%.cc | libraries
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@

$(PAGES): scripts/embed_page $(wildcard src/server/page/*)
	@mkdir -p $(@D)
	scripts/embed_page translate=src/server/page/translate.html status=src/server/page/status.html > $@.new && mv $@.new $@

$(BUILD)/src/%.o: $(BUILD)/src/%.c | libraries
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@

$(BUILD)/apps/%.o: apps/%.c | libraries
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_APP) -MMD -MP -c $< -o $@

$(BUILD)/libdragoman.a: $(LIB_OBJ) Makefile
	@rm -f $@
	ar rcsD $@ $(LIB_OBJ)

$(BUILD)/libdragoman.so.$(SOVERSION): $(LIB_OBJ) src/dragoman.map
	$(CXX) -shared $(LINK) -Wl,-soname,libdragoman.so.$(SOVERSION) \
	    -Wl,--version-script=src/dragoman.map $(LDFLAGS) -o $@ $(LIB_OBJ) $(LIBS)

$(BUILD)/libdragoman.so: $(BUILD)/libdragoman.so.$(SOVERSION)
	@ln -sf libdragoman.so.$(SOVERSION) $@

# The library inside program and Python module; SHARED=1: its shared object, as packages of a system want it.
LINKED := $(BUILD)/libdragoman.$(if $(SHARED),so,a)
LINKED_LIBS = $(if $(SHARED),-L$(BUILD) -ldragoman -Wl$(COMMA)--as-needed,$(BUILD)/libdragoman.a) $(LIBS)
$(BUILD)/dragoman: $(CLI_OBJ) $(LINKED)
	$(CXX) -pie $(LINK) $(LDFLAGS) -o $@ $(CLI_OBJ) $(LINKED_LIBS)

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
	$(CC) $(CFLAGS_ALL) -Isrc $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags poppler-glib)) -shared $(RELRO) -o $@ $< \
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
# What later GPUs translate: those of 10.0 to 11.0 what was made for 9.0, later ones what was made for the last.
CUDA_PTX = $(sort $(filter 90,$(CUDA_ARCHS)) $(CUDA_LAST))
CUDA_CODE = $(foreach a,$(CUDA_NAMES),-gencode arch=compute_$a$(COMMA)code=sm_$a) \
            $(foreach a,$(CUDA_PTX),-gencode arch=compute_$a$(COMMA)code=compute_$a)
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
	$(CXX) -shared $(LINK) -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $^ \
	    -L$(CUDA_HOME)/lib64 -lcudart_static -lm -lpthread -ldl -lrt

# Program, device and what they need in one archive.
cuda-kit: cuda $(BUILD)/dragoman $(BUILD)/checkbackend $(addprefix $(BUILD)/bench/,cells clusters products)
	scripts/cuda_kit $(BUILD)

# The same device on this machine's processor, for tests: no CUDA, no GPU (tests/plugins/softcuda).
SOFT := tests/plugins/softcuda
SOFT_FLAGS := -I$(SOFT) -DCUDA_HAS_GROUPS=1 -DCUDA_RING=0x100000 -DCUDA_POOL=0x200000 -DCUDA_EARLY=2 -DCUDA_SPARE=0
SOFT_ISA := $(if $(filter x86_64,$(ARCH)),-march=native) # products are emulated: built and run in one place
SOFT_OBJ := $(patsubst %,$(BUILD)/soft/%.o,$(wildcard src/backend/cuda/*.c src/backend/cuda/*.cu $(SOFT)/*.cc))
$(BUILD)/soft/%.cu.o: %.cu | libraries
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) -fno-strict-aliasing $(SOFT_ISA) $(SOFT_FLAGS) $(CPPFLAGS_LIB) -include softcuda.h -MMD -MP -x c++ -c $< -o $@
# Fibers jump from one stack to another, which _FORTIFY_SOURCE takes for a mistake.
$(BUILD)/soft/%.cc.o: %.cc | libraries
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) -U_FORTIFY_SOURCE $(SOFT_FLAGS) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@
$(BUILD)/soft/%.c.o: %.c | libraries
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(SOFT_FLAGS) $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@
$(BUILD)/tests/softcuda/libdragoman-cuda.so: $(SOFT_OBJ) $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CXX) -shared $(LINK) -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $^ -lm -lpthread -ldl

# The same with the sizes of a real one, for what the host costs (bench/gpu/host).
IDLE_OBJ := $(patsubst %,$(BUILD)/idle/%.o,$(wildcard src/backend/cuda/*.c))
$(BUILD)/idle/%.c.o: %.c | libraries
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -I$(SOFT) -DCUDA_HAS_GROUPS=1 $(CPPFLAGS_LIB) -MMD -MP -c $< -o $@
$(BUILD)/bench/idle/libdragoman-cuda.so: $(filter-out %.c.o,$(SOFT_OBJ)) $(IDLE_OBJ) $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CXX) -shared $(LINK) -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $^ -lm -lpthread -ldl

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
$(BUILD)/python/dragoman/_dragoman.abi3.so: $(PYTHON_OBJ) $(LINKED)
	@mkdir -p $(@D)
	$(CXX) -shared $(LINK) -Wl,--exclude-libs,ALL $(LDFLAGS) -o $@ $(PYTHON_OBJ) $(LINKED_LIBS)
$(BUILD)/python/dragoman/%: python/dragoman/%
	@mkdir -p $(@D)
	@cp $< $@

# Devices as shared objects, for tests: each carries what it needs of the library.
PLUGINS := $(patsubst tests/plugins/%.c,$(BUILD)/tests/plugins/libdragoman-%.so,$(wildcard tests/plugins/*.c))
$(BUILD)/tests/plugins/libdragoman-%.so: tests/plugins/%.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -shared -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $< $(BUILD)/libdragoman.a -lm -lpthread -ldl
$(BUILD)/tests/test_backend_devices: | $(PLUGINS)

# Calls that fail on demand, before those of the C library (tests/system/faults). It is itself what is instrumented otherwise.
$(BUILD)/tests/libfaults.so: tests/faults/shim.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -fPIC -fvisibility=hidden -fno-builtin -pthread $(WARN) $(WARN_C) $(if $(WERROR),-Werror) -shared -o $@ $< -ldl

$(BUILD)/checkbackend: $(CHECKBACKEND_SRC) tests/checkbackend/checkbackend.h $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Itests -o $@ $(CHECKBACKEND_SRC) $(BUILD)/libdragoman.a $(LIBS)

# The sources for AMX on tiles in software.
SOFT_TILES := $(if $(filter x86_64,$(ARCH)),$(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/checkkernel/soft/*.c)))
$(BUILD)/tests/checkkernel/soft/%.o: tests/checkkernel/soft/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(AVX512) -mavx512vnni $(CPPFLAGS_LIB) -Itests -MMD -MP -c $< -o $@

$(BUILD)/checkkernel: $(CHECKKERNEL_SRC) tests/checkkernel/checkkernel.h $(SOFT_TILES) $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Itests -o $@ $(CHECKKERNEL_SRC) $(SOFT_TILES) $(BUILD)/libdragoman.a $(LIBS)

# The same without libraries, for another machine (scripts/check_arm).
ALONE := $(filter $(BUILD)/src/kernel/%,$(LIB_OBJ)) $(addprefix $(BUILD)/src/base/,status.o mem.o bytes.o number.o clock.o)
$(BUILD)/checkkernel-alone: $(CHECKKERNEL_SRC) $(SOFT_TILES) $(ALONE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Itests -static -o $@ $(CHECKKERNEL_SRC) $(SOFT_TILES) $(ALONE) -lm -lpthread

# Answers of our SentencePiece segmenter, for tests/oracle/check_spm.py.
$(BUILD)/tests/oracle/spm_answers: tests/oracle/spm_answers.c $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -o $@ $< $(BUILD)/libdragoman.a $(LIBS)

# Benchmark programs; their rivals are installed first, once per build directory.
$(BUILD)/.bench-packages: scripts/packages
	scripts/deps bench
	@mkdir -p $(@D)
	@touch $@

GEMM := $(addprefix bench/programs/,gemm.c gemm_int.c gemm_int_bounds.c gemm_int_data.c gemm_int_rivals.c ceilings.c)
$(BUILD)/bench/gemm: $(GEMM) bench/programs/gemm.h bench/programs/gemm_int.h bench/programs/ceilings.h bench/programs/rivals.h $(BUILD)/libdragoman.a | $(BUILD)/.bench-packages
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ $(GEMM) $(BUILD)/libdragoman.a -lopenblas -ldnnl $(LIBS)

$(BUILD)/bench/roofline: bench/programs/roofline.c bench/programs/ceilings.c bench/programs/ceilings.h $(BUILD)/libdragoman.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CPPFLAGS_LIB) -Ibench/programs -o $@ bench/programs/roofline.c bench/programs/ceilings.c $(BUILD)/libdragoman.a $(LIBS)

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

$(BUILD)/bench/stream: bench/programs/stream.c $(BUILD)/libdragoman.a
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

# Fuzz targets in one program that goes through their corpora; libFuzzer drives them in `make fuzz`. Benchmarks that need
# none of their rivals' headers are compiled only, so that a change of an interface cannot leave them behind.
FUZZ := $(sort $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_OBJ := $(FUZZ:%=$(BUILD)/fuzz/%.o) $(BUILD)/fuzz/replay.o
BENCH_OBJ := $(addprefix $(BUILD)/bench/programs/,ceilings.o ceilings_print.o clusters.o devlin2017.o devlin2017_model.o headlines.o moe.o products.o roofline.o)
# The software GPU is made of fibers, which sanitizers do not know.
SOFTCUDA := $(if $(SANITIZED),,$(BUILD)/tests/softcuda/libdragoman-cuda.so)
unit-programs: test-data $(UNIT) $(BUILD)/checkkernel $(BUILD)/checkbackend $(BUILD)/fuzz-replay $(BENCH_OBJ) $(addprefix $(BUILD)/bench/,cells clusters products) $(SOFTCUDA) $(BUILD)/tests/libfaults.so

$(BUILD)/fuzz/%.o: tests/fuzz/fuzz_%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(CPPFLAGS_LIB) -Itests -DLLVMFuzzerTestOneInput=fuzz_one_$* \
	    -DLLVMFuzzerCustomMutator=fuzz_mutate_$* -MMD -MP -c $< -o $@
$(BUILD)/fuzz/fuzz_targets.h: $(wildcard tests/fuzz/fuzz_*.c)
	@mkdir -p $(@D)
	@printf 'TARGET(%s)\n' $(FUZZ) > $@
$(BUILD)/fuzz/replay.o: tests/fuzz/replay.c tests/fuzz/table.h $(BUILD)/fuzz/fuzz_targets.h
	$(CC) $(CFLAGS_ALL) -I$(BUILD)/fuzz -MMD -MP -c $< -o $@
$(BUILD)/fuzz-replay: $(FUZZ_OBJ) $(BUILD)/libdragoman.a | test-data
	$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)
$(BUILD)/bench/programs/%.o: bench/programs/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(CPPFLAGS_LIB) -Ibench/programs -MMD -MP -c $< -o $@

check: unit-programs
	@scripts/run_tests --build $(BUILD) unit

# Tiers (docs/internals/TESTING.md): each ends the run when it fails. The second compiler builds library and program only, in
# a folder of its own, without optimising: it is asked for its warnings.
OTHER := $(if $(findstring clang,$(CC)),gcc,clang)
# Instrumented code makes gcc warn of what is not there.
STRICT := $(if $(SANITIZED),,WERROR=1)
STRICT_SAYS := $(if $(STRICT),$(COMMA) warnings are errors)
RUN_TESTS = @CC="$(CC)" CXX="$(CXX)" SANFLAGS="$(strip $(SAN))" scripts/run_tests --build $(BUILD)

test:
	$(INSTALL) build test
	$(RUN_TESTS) source
	@echo "building with $(CC)$(STRICT_SAYS)"
	$(AGAIN) $(STRICT) all unit-programs python
ifeq ($(SANITIZED),)
	@echo "building with $(OTHER), warnings are errors"
	$(AGAIN) CC=$(OTHER) CXX=$(if $(filter gcc,$(OTHER)),g++,clang++) BUILD=build-$(OTHER) OPT=-O0 WERROR=1 build-$(OTHER)/dragoman
endif
	@echo "$(if $(NVCC),building the GPU device for one kind of GPU,no nvcc: the GPU device is not built)"
	$(if $(NVCC),$(AGAIN) $(STRICT) CUDA_ARCHS=90 cuda-objects)
	$(RUN_TESTS) source unit system

# The suite again under sanitizers, Arm under qemu, fuzzing, full-size checks, goldens made again by the programs of others.
# RECURRENT_MODELS, WRITING_MODELS: further models for tests/system/optimisations and tests/system/writing.
test-long:
	$(INSTALL) build test long arm bench
	$(AGAIN) WERROR=1 all unit-programs python $(BUILD)/tests/oracle/spm_answers
	@CC="$(CC)" CXX="$(CXX)" RECURRENT_MODELS="$(RECURRENT_MODELS)" WRITING_MODELS="$(WRITING_MODELS)" \
	    scripts/run_tests --build $(BUILD) long

# ---- hardening: each prints one line of counts (docs/internals/TESTING.md) ---------------------
# MINUTES in all; without it one for each target.
fuzz:
	$(INSTALL) build test harden
	@scripts/fuzz $(if $(MINUTES),--minutes $(MINUTES)) $(TARGETS)

# The suite under a sanitizer; TIERS="unit system" and PART=2/5 choose a part of it. MSan knows only what it compiled:
# tests/suite.py names the tests that use libraries of others.
check-asan check-tsan check-msan:
	$(INSTALL) build test $(if $(filter %msan,$@),harden)
	$(AGAIN) $(if $(filter %asan,$@),ASAN=1,$(if $(filter %tsan,$@),TSAN=1,MSAN=1 CC=clang CXX=clang++)) check-sanitized
check-sanitized: unit-programs $(if $(MSAN),,all python)
	$(RUN_TESTS) -k $(if $(PART),--part $(PART)) $(or $(TIERS),$(if $(MSAN),memory,unit system))

check-analyzer:
	$(INSTALL) build
	@scripts/check_analyzers gcc
check-tidy:
	$(INSTALL) build harden
	@scripts/check_analyzers tidy

# The models that ship, from text: training/models_en_de.sh says what DATA holds and what else can be set.
models-en-de: all
	@training/models_en_de.sh "$(or $(DATA),$(error models-en-de needs DATA=FOLDER))" "$(or $(WORK),$(error models-en-de needs WORK=FOLDER))" $(STAGES)

# The tracked files of the last commit, with its date and no owner: the same bytes everywhere.
DIST := $(BUILD)/dist/dragoman-$(VERSION).tar.gz
dist:
	@mkdir -p $(dir $(DIST))
	@git archive --format=tar --prefix=dragoman-$(VERSION)/ HEAD | gzip -9n > $(DIST).new && mv $(DIST).new $(DIST)
	@echo "$(DIST): $$(gzip -dc $(DIST) | tar -t | grep -vc '/$$') files, $$(sha256sum < $(DIST) | cut -c1-64)"

check-reproducible:
	$(INSTALL) build test harden
	@scripts/check_reproducible

# Calls that fail in turn, commands that are killed, a service and a corpus job for long. FAULTS, KILLS, SOAK: further options.
# Under ASAN=1 the first finds leaks, of failing allocations alone.
check-faults: all unit-programs $(if $(SANITIZED),,python)
	@SANFLAGS="$(strip $(SAN))" tests/system/faults $(BUILD) $(if $(SANITIZED),--parts commands) $(FAULTS)
check-kills: all unit-programs
	@tests/system/kills $(BUILD) $(KILLS)
soak: all unit-programs
	@tests/system/soak $(BUILD) $(if $(MINUTES),--minutes $(MINUTES)) $(SOAK)

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
	@echo 'make fuzz        fuzzing of all targets, MINUTES=N in all, or of TARGETS="gguf zip"'
	@echo 'make check-asan  the suite under ASan and UBSan; check-tsan, check-msan; TIERS="unit system" PART=1/4'
	@echo 'make check-analyzer, check-tidy   the source under gcc -fanalyzer and clang-tidy'
	@echo 'make models-en-de  the models that ship, from text: DATA=FOLDER WORK=FOLDER STAGES="text back ..." (training/README.md)'
	@echo 'make dist        an archive of the tracked files; check-reproducible: two builds, the same bytes'
	@echo 'make check-faults  calls of the system, of CUDA and of malloc fail in turn; check-kills: commands are killed, disks full'
	@echo 'make soak        a server with 128 clients and a corpus job that is interrupted, MINUTES=30'
	@echo 'make bench       products against OpenBLAS and oneDNN (bench/README.md has the others)'
	@echo 'make install     PREFIX=/usr/local LIBDIR=PREFIX/lib DESTDIR=; make uninstall takes it away again'
	@echo 'make deb         packages for Debian, in build/deb: program, library, headers, Python, models'
	@echo 'make manual      the manual as HTML and as man pages, in build/manual (needs pandoc)'
	@echo 'make release     everything checked; packages, wheels, sources, manual, SBOM with sha256, in build/release'
	@echo 'make clean       remove the build folder'
	@echo
	@echo 'Switches: CC=clang  WERROR=1  ASAN=1  TSAN=1  SHARED=1  OPT=-O2  BUILD=build  CFLAGS= LDFLAGS=  PKG_CONFIG=pkg-config'

# ---- installation --------------------------------------------------------------------------
COMMANDS = $(shell $(RUN_HERE) $(BUILD)/dragoman help --names)
RUN_HERE = $(if $(SHARED),LD_LIBRARY_PATH=$(BUILD))
TO_BIN = $(DESTDIR)$(PREFIX)/bin
TO_LIB = $(DESTDIR)$(LIBDIR)
TO_INCLUDE = $(DESTDIR)$(PREFIX)/include/dragoman
TO_SHARE = $(DESTDIR)$(PREFIX)/share/dragoman
TO_MAN = $(DESTDIR)$(PREFIX)/share/man/man1
TO_BASH = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
TO_ZSH = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
TO_FISH = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
TO_UNIT = $(DESTDIR)$(PREFIX)/lib/systemd/system
SONAME := libdragoman.so.$(SOVERSION)
CONFIG = VERSION=$(VERSION) PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) SONAME=$(SONAME) LIBS="$(LIBS)" packaging/config

# What is installed can be read by all, whatever the umask. A library in a folder that the loader does not search is said.
install: UMASK = umask 022;
install: all
	@$(UMASK) install -d $(TO_BIN) $(TO_LIB)/pkgconfig $(TO_LIB)/cmake/dragoman $(TO_INCLUDE) $(TO_SHARE)/models $(TO_MAN) $(TO_BASH) $(TO_ZSH) $(TO_FISH) $(TO_UNIT)
	install -m 755 $(BUILD)/dragoman $(TO_BIN)/dragoman
	install -m 755 $(BUILD)/$(SONAME) $(TO_LIB)/$(SONAME)
	@ln -sf $(SONAME) $(TO_LIB)/libdragoman.so
	@$(if $(PDF),install -D -m 755 $(PDF) $(DESTDIR)$(PLUGINDIR)/libdragoman-pdf.so)
	install -m 644 $(BUILD)/libdragoman.a $(TO_LIB)/libdragoman.a
	install -m 644 include/dragoman/*.h $(TO_INCLUDE)
	@$(UMASK) $(CONFIG) pkg-config > $(TO_LIB)/pkgconfig/dragoman.pc
	@$(UMASK) $(CONFIG) cmake > $(TO_LIB)/cmake/dragoman/dragoman-config.cmake
	@$(UMASK) $(CONFIG) cmake-version > $(TO_LIB)/cmake/dragoman/dragoman-config-version.cmake
	@$(UMASK) $(RUN_HERE) $(BUILD)/dragoman help --man dragoman > $(TO_MAN)/dragoman.1
	@$(UMASK) for c in $(COMMANDS); do $(RUN_HERE) $(BUILD)/dragoman help --man $$c > $(TO_MAN)/dragoman-$$c.1 || exit 1; done
	@$(UMASK) $(RUN_HERE) $(BUILD)/dragoman help --completion bash > $(TO_BASH)/dragoman
	@$(UMASK) $(RUN_HERE) $(BUILD)/dragoman help --completion zsh > $(TO_ZSH)/_dragoman
	@$(UMASK) $(RUN_HERE) $(BUILD)/dragoman help --completion fish > $(TO_FISH)/dragoman.fish
	@for m in models/*.gguf; do cp -P $$m $(TO_SHARE)/models/ && { [ -L $$m ] || chmod 644 $(TO_SHARE)/$$m; } || exit 1; done
	@$(UMASK) sed 's,@BINDIR@,$(PREFIX)/bin,' packaging/dragoman.service > $(TO_UNIT)/dragoman.service
	@install -m 644 packaging/dragoman.socket $(TO_UNIT)/dragoman.socket
	@install -m 644 packaging/nginx.conf $(TO_SHARE)/nginx.conf
	@$(if $(DESTDIR),,$(CONFIG) installed)

uninstall:
	rm -f $(TO_BIN)/dragoman $(TO_LIB)/$(SONAME) $(TO_LIB)/libdragoman.so $(TO_LIB)/libdragoman.a $(DESTDIR)$(PLUGINDIR)/libdragoman-pdf.so
	rm -f $(TO_LIB)/pkgconfig/dragoman.pc $(TO_LIB)/cmake/dragoman/*.cmake $(TO_MAN)/dragoman.1 $(TO_MAN)/dragoman-*.1
	rm -f $(TO_BASH)/dragoman $(TO_ZSH)/_dragoman $(TO_FISH)/dragoman.fish $(TO_UNIT)/dragoman.service $(TO_UNIT)/dragoman.socket $(TO_SHARE)/nginx.conf
	for h in include/dragoman/*.h; do rm -f $(TO_INCLUDE)/$${h##*/}; done
	for m in models/*.gguf; do rm -f $(TO_SHARE)/$$m; done
	rmdir --ignore-fail-on-non-empty $(TO_INCLUDE) $(TO_LIB)/cmake/dragoman $(TO_SHARE)/models $(TO_SHARE) 2>/dev/null || true

# ---- packages, manual, release ---------------------------------------------------------------
deb:
	@scripts/deps build deb
	packaging/deb $(BUILD)/deb

manual: all
	@scripts/deps manual
	packaging/manual $(BUILD)/dragoman $(BUILD)/manual

# CANDIDATE=1: a version that the change log still calls unreleased; CHECKS=quick: without make test.
release:
	@scripts/deps build test deb manual release
	packaging/release $(BUILD)

clean:
	rm -rf $(BUILD) dragoman

-include $(shell find $(BUILD) -path $(BUILD)/deb -prune -o -path $(BUILD)/debian -prune -o -type f -name '*.d' -print 2>/dev/null)

.PHONY: models-en-de all python python-missing wheel cuda cuda-kit cuda-objects nvcc-found dragoman libraries deps demo unit-programs test-data check test test-long fuzz check-asan check-tsan check-msan check-sanitized check-analyzer check-tidy check-faults check-kills soak dist \
        check-reproducible help bench install uninstall deb manual release clean
