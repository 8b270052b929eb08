// SPDX-License-Identifier: MIT
// CUDA backend: the driver, a device, its properties and its table of functions.
//
// The runtime is linked into the shared object and finds the driver by itself, so that what is
// missing on a machine is an error of the first call, with a sentence that says what to do.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_private.h"
#include "base/mem.h"

#define CUDA_OP(result, name, parameters) .name = cuda_##name,
const dgm_backend_ops cuda_ops = {DGM_BACKEND_OPS(CUDA_OP)};
#undef CUDA_OP

enum { OLDEST = 75 }; // compute capability 7.5

// ---- errors -------------------------------------------------------------------------------------

dgm_status cuda_status(cudaError_t e, const char *what, dgm_error *err)
{
    switch (e) {
    case cudaSuccess: return DGM_OK;
    case cudaErrorInsufficientDriver: {
        int has = 0, needs = 0;
        cudaDriverGetVersion(&has);
        cudaRuntimeGetVersion(&needs);
        if (has == 0)
            return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                            "device cuda: there is no NVIDIA driver on this machine");
        return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                        "device cuda: the NVIDIA driver is too old: it knows CUDA %d.%d, %d.%d is "
                        "needed",
                        has / 1000, has % 1000 / 10, needs / 1000, needs % 1000 / 10);
    }
    case cudaErrorNoDevice:
        return dgm_fail(err, DGM_ERR_UNSUPPORTED, "device cuda: there is no GPU on this machine");
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
        return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                        "device cuda: this build has no code for this kind of GPU: see CUDA_ARCHS of 'make cuda'");
    case cudaErrorMemoryAllocation:
        return dgm_fail(err, DGM_ERR_MEMORY, "device cuda: out of memory: %s", what);
    default:
        return dgm_fail(err, DGM_ERR_UNSUPPORTED, "device cuda: %s: %s", what,
                        cudaGetErrorString(e));
    }
}

bool cuda_fine(dgm_exec *x, cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return true;
    if (x->failed == DGM_OK) x->failed = cuda_status(e, what, &x->why);
    return false;
}

// What weights and workers may take: code of kernels comes when they run for the first time, and graphs take some, too.
static uint64_t beside_spare(size_t available)
{
    return available > CUDA_SPARE ? available - CUDA_SPARE : 0;
}

dgm_status cuda_take(dgm_backend *b, void **p, size_t bytes, const char *what, const char *helps,
                     dgm_error *err)
{
    size_t available = 0, all = 0;
    const cudaError_t e = cudaMalloc(p, bytes);
    cudaMemGetInfo(&available, &all);
    b->props.memory_free = beside_spare(available);
    if (e != cudaErrorMemoryAllocation) return cuda_status(e, what, err);
    cudaGetLastError(); // it was said
    return dgm_fail(err, DGM_ERR_MEMORY,
                    "device %s: out of memory: %s take%s %.1f MiB more, %.1f of %.1f MiB are free: use %s",
                    b->props.name, what, strcmp(what, "weights") == 0 ? "" : "s", (double)bytes / 1048576,
                    (double)available / 1048576, (double)all / 1048576, helps);
}

static _Thread_local int current = -1; // what we made the thread's last

static cudaError_t use(int device)
{
    const cudaError_t e = cudaSetDevice(device);
    current = e == cudaSuccess ? device : -1;
    return e;
}

cudaError_t cuda_use(const dgm_backend *b)
{
    return use(b->device);
}

// A call of the runtime for every operation would cost as much as launching one.
cudaError_t cuda_use_still(const dgm_backend *b)
{
    return b->device == current ? cudaSuccess : use(b->device);
}

// ---- devices ------------------------------------------------------------------------------------

static dgm_status describe_props(int device, dgm_backend *b, dgm_error *err)
{
    struct cudaDeviceProp d;
    dgm_backend_props *p = &b->props;
    DGM_TRY(cuda_status(cudaGetDeviceProperties(&d, device), "its properties", err));
    *p = (dgm_backend_props){
        .memory = d.totalGlobalMem,
        .memory_free = d.totalGlobalMem,
        .precisions = 1u << DGM_PRECISION_F32 | 1u << DGM_PRECISION_I8 | 1u << DGM_PRECISION_F16,
        .encode_tokens = 3072, // what a layer leaves as halves fits the pool, and 96 tiles of 512 outputs
        .encode_tokens_recurrent = 8192,
        .gather_max = INT32_MAX, // a list costs its numbers alone
        .keeps_lists = true,
        .usual = DGM_PRECISION_F16,
        .workers = 2, // one's host work beside the other's kernels
        .batch_tokens = 65536,
        .batch_sentences = 1024,
        .worker_bytes = CUDA_WORKER,
    };
    b->ops = &cuda_ops;
    b->device = device;
    b->capability = d.major * 10 + d.minor;
    b->processors = d.multiProcessorCount;
    b->shared = (int)d.sharedMemPerBlockOptin;
    if (b->capability < OLDEST) p->precisions = 0;
    snprintf(p->name, sizeof p->name, "cuda:%d", device);
    snprintf(p->title, sizeof p->title, "%.127s", d.name);
    return DGM_OK;
}

// Free memory is known of a device that is in use: asking opens it.
static dgm_status ask_memory(int device, dgm_backend_props *p, dgm_error *err)
{
    size_t available = 0, all = 0;
    DGM_TRY(cuda_status(use(device), "opening it", err));
    DGM_TRY(cuda_status(cudaMemGetInfo(&available, &all), "its memory", err));
    p->memory_free = beside_spare(available);
    return DGM_OK;
}

// A build for older GPUs runs on later ones, without what only these have: what counts is what its code was made for.
static dgm_status look_at_code(dgm_backend *b, dgm_error *err)
{
    struct cudaFuncAttributes code;
    DGM_TRY(cuda_status(cudaFuncGetAttributes(&code, cuda_some_kernel()), "its code", err));
    if (code.ptxVersion > 0 && code.ptxVersion < b->capability) b->capability = code.ptxVersion;
    b->props.i8_as_f16 = cuda_way(b->capability, DGM_PRECISION_I8, INT32_MAX, INT32_MAX) == CUDA_F16;
    if (b->capability >= 80) b->props.precisions |= 1u << DGM_PRECISION_BF16;
    return DGM_OK;
}

void cuda_count_free(dgm_backend *b)
{
    ask_memory(b->device, &b->props, NULL);
}

static bool probe(int index, dgm_backend_props *props)
{
    int count = 0;
    dgm_backend b = {0};
    if (cudaGetDeviceCount(&count) != cudaSuccess || index >= count) {
        cudaGetLastError(); // forgotten: nobody asked for this device
        return false;
    }
    bool fine = describe_props(index, &b, NULL) == DGM_OK && ask_memory(index, &b.props, NULL) == DGM_OK;
    if (fine && b.props.precisions && look_at_code(&b, NULL) != DGM_OK) b.props.precisions = 0;
    *props = b.props;
    return fine;
}

static dgm_status parse_unit(const char *unit, int count, int *device, dgm_error *err)
{
    char *end = NULL;
    const long n = unit ? strtol(unit, &end, 10) : 0;
    const bool number = !unit || (unit[0] >= '0' && unit[0] <= '9' && !*end);
    DGM_FAIL_IF(!number, err, DGM_ERR_ARGUMENT,
                "device cuda: '%s' is no number of a GPU: it must be cuda or cuda:0 to cuda:%d", unit,
                count - 1);
    DGM_FAIL_IF(n >= count, err, DGM_ERR_ARGUMENT,
                "device cuda:%s: this machine has %d GPU%s, numbered from 0", unit, count,
                count == 1 ? "" : "s");
    *device = (int)n;
    return DGM_OK;
}

static dgm_status open_device(dgm_backend **out, const char *unit, dgm_error *err)
{
    int count = 0, device = 0;
    dgm_backend found = {0};
    *out = NULL;
    DGM_TRY(cuda_status(cudaGetDeviceCount(&count), "counting GPUs", err));
    DGM_TRY(parse_unit(unit, count, &device, err));
    DGM_TRY(describe_props(device, &found, err));
    DGM_FAIL_IF(found.capability < OLDEST, err, DGM_ERR_UNSUPPORTED,
                "device cuda:%d: %s has compute capability %d.%d, at least %d.%d is needed", device,
                found.props.title, found.capability / 10, found.capability % 10, OLDEST / 10, OLDEST % 10);
    DGM_TRY(ask_memory(device, &found.props, err));
    DGM_TRY(look_at_code(&found, err));
    dgm_backend *b = dgm_malloc(sizeof *b);
    if (!b) return dgm_no_memory(err);
    *b = found;
    *out = b;
    return DGM_OK;
}

__attribute__((visibility("default"))) const dgm_device_driver *dragoman_device(void);

const dgm_device_driver *dragoman_device(void)
{
    static const dgm_device_driver driver = {.interface = DGM_DEVICE_INTERFACE,
                                             .ops_size = sizeof(dgm_backend_ops),
                                             .name = "cuda",
                                             .probe = probe,
                                             .open = open_device};
    return &driver;
}

void cuda_close(dgm_backend **b)
{
    if ((*b)->epoch) cudaEventDestroy((*b)->epoch);
    dgm_free(*b);
    *b = NULL;
}

const dgm_backend_props *cuda_properties(const dgm_backend *b)
{
    return &b->props;
}

const char *cuda_describe(const dgm_backend *b, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s: %s", b->props.name, b->props.title);
    return buffer;
}

// Ways are chosen as products come (ways_cuda.c).
const char *cuda_variants(dgm_backend *b, char *buffer, size_t size)
{
    (void)b;
    if (size) buffer[0] = '\0';
    return buffer;
}

void cuda_static_scales(dgm_backend *b, bool on)
{
    b->static_scales = on;
}

// The device's own functions are as fast as a table and more exact.
void cuda_activations(dgm_backend *b, dgm_activations how)
{
    (void)b;
    (void)how;
}
