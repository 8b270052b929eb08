// SPDX-License-Identifier: MIT
// A GPU that is none: CUDA's runtime on this machine's processor, as strict as the real one and stricter where
// that finds mistakes. Kernels run in blocks.cc.
//
//   - Device memory is separate: between operations it cannot be touched, behind each allocation lies a page
//     that never can, and a kernel sees the memory of its own device alone.
//   - Work waits in its stream until somebody waits for the stream: what the host changes too early, or
//     reads too early, is wrong.
//   - Threads of a block are fibers that run until they meet a barrier, in an order that the seed decides;
//     shared memory is rubbish when a block begins. A barrier that threads reach in different lines,
//     or that not all of a warp reach, is an error.
//
// Environment: SOFTCUDA_SEED; SOFTCUDA_DEVICES, SOFTCUDA_MEMORY (MiB or a list), SOFTCUDA_CAPABILITY (90: 9.0);
// SOFTCUDA_CURRENT (the device that somebody else has made every thread's); SOFTCUDA_CODE (80: kernels are for 8.0);
// SOFTCUDA_DRIVER (0: none, 12000: one of CUDA 12.0); SOFTCUDA_FAIL (number of a launch that fails); SOFTCUDA_COUNT
// (1: says at the end what was asked of it); SOFTCUDA_IDLE (1: kernels and copies do nothing, rank finds words at
// random: what is left is what the host costs).
#include "softcuda.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#undef gridDim // members of CUDA's structures here
#undef blockDim

enum { PAGE = 4096, ALIGN = 64 };

static std::recursive_mutex gate; // one operation at a time, whoever asks
static const bool idle = softcuda_setting("SOFTCUDA_IDLE", 0) != 0;

static double milliseconds(clockid_t clock = CLOCK_MONOTONIC)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

// What SOFTCUDA_COUNT prints at the end.
static struct counters {
    long launches, graphs, changes, copies, waits;
    double busy;          // milliseconds
    double before, while_it_runs; // of the host, in threads that ask: without work for the device, and beside it
    size_t bytes; // of device memory at most
    ~counters()
    {
        if (softcuda_setting("SOFTCUDA_COUNT", 0))
            fprintf(stderr,
                    "softcuda: %ld launches, %ld graphs, %ld changes, %ld copies, %ld waits; %.1f MiB; "
                    "%.1f ms, of the host %.1f before and %.1f beside it\n",
                    launches, graphs, changes, copies, waits, (double)bytes / 1048576, busy, before, while_it_runs);
    }
} counted;

// What a thread computes between a wait and the next work for the device, and from then on until it waits again.
static thread_local double host_since = -1;
static thread_local bool host_started;

static void host_starts()
{
    if (host_started || host_since < 0) return;
    const double now = milliseconds(CLOCK_THREAD_CPUTIME_ID);
    counted.before += now - host_since;
    host_since = now;
    host_started = true;
}

static void host_waits()
{
    if (host_started) counted.while_it_runs += milliseconds(CLOCK_THREAD_CPUTIME_ID) - host_since;
}

static void host_waited()
{
    host_since = milliseconds(CLOCK_THREAD_CPUTIME_ID);
    host_started = false;
}

// ---- memory -----------------------------------------------------------------------------------------

struct allocation {
    char *map, *base; // base .. base + size ends where the guard page begins
    size_t mapped, size;
    int device; // -1: the host's, page-locked
};

static std::vector<allocation> allocations;
static thread_local int current_device = (int)softcuda_setting("SOFTCUDA_CURRENT", 0);
static thread_local cudaError_t last_error;

static cudaError_t answer(cudaError_t e)
{
    if (e != cudaSuccess) last_error = e;
    return e;
}

// Is this call to fail? tests/faults/shim.c says so where it is there.
static bool fails()
{
    static bool (*const ask)() = (bool (*)())dlsym(RTLD_DEFAULT, "faults_cuda");
    return ask && ask();
}

static void on_fault(int, siginfo_t *info, void *)
{
    const char *at = (const char *)info->si_addr, *whose = "memory that is nobody's";
    for (const allocation &a : allocations)
        if (at >= a.map && at < a.map + a.mapped)
            whose = at < a.base || at >= a.base + a.size ? "what lies beside an allocation"
                    : a.device < 0                       ? "page-locked memory"
                                                         : "device memory";
    softcuda_say("touches %s at %p", whose, (const void *)at);
    signal(SIGSEGV, SIG_DFL);
}

static void *reserve(size_t bytes, int device)
{
    static bool once = [] {
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO;
        return sigaction(SIGSEGV, &action, nullptr) == 0;
    }();
    (void)once;
    const size_t size = (bytes + ALIGN - 1) / ALIGN * ALIGN, pages = (size + PAGE - 1) / PAGE * PAGE;
    allocation a = {nullptr, nullptr, pages + 2 * PAGE, size, device};
    a.map = (char *)mmap(nullptr, a.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a.map == MAP_FAILED) return nullptr;
    a.base = a.map + PAGE + pages - size;
    mprotect(a.map + PAGE, pages, PROT_READ | PROT_WRITE);
    if (size <= 1 << 20) memset(a.base, 0xff, size); // no numbers; larger ones stay untouched pages
    if (device >= 0 && !idle) mprotect(a.map + PAGE, pages, PROT_NONE);
    allocations.push_back(a);
    return a.base;
}

static cudaError_t give_back(void *p, bool host)
{
    if (!p) return cudaSuccess;
    std::lock_guard<std::recursive_mutex> lock(gate);
    for (size_t i = 0; i < allocations.size(); i++) {
        if (allocations[i].base != p || (allocations[i].device < 0) != host) continue;
        munmap(allocations[i].map, allocations[i].mapped);
        allocations.erase(allocations.begin() + (long)i);
        return cudaSuccess;
    }
    softcuda_stop("memory is given back that nobody has");
    return cudaErrorInvalidValue;
}

// SOFTCUDA_MEMORY is a number for all devices, or a list.
static size_t memory_of(int device)
{
    const char *list = getenv("SOFTCUDA_MEMORY");
    for (; list && device > 0 && strchr(list, ','); device--) list = strchr(list, ',') + 1;
    return (size_t)(list && *list ? atol(list) : 4096) << 20;
}

static size_t used_on(int device)
{
    size_t sum = 0;
    for (const allocation &a : allocations) sum += a.device == device ? a.size : 0;
    return sum;
}

static void open_memory(int device, int how)
{
    for (const allocation &a : allocations)
        if (a.device == device) mprotect(a.map + PAGE, a.mapped - 2 * PAGE, how);
}

// Where bytes from p on lie: the device's number, -1 page-locked, -2 ordinary memory.
static int home_of(const void *p, size_t bytes)
{
    const char *from = (const char *)p, *end = from + bytes;
    for (const allocation &a : allocations) {
        if (end <= a.map || from >= a.map + a.mapped) continue;
        if (from < a.base || end > a.base + a.size) softcuda_stop("a copy beyond an allocation");
        return a.device;
    }
    return -2;
}

extern "C" cudaError_t cudaMalloc(void **p, size_t bytes)
{
    if (fails()) return answer(cudaErrorMemoryAllocation);
    std::lock_guard<std::recursive_mutex> lock(gate);
    *p = nullptr;
    if (bytes + used_on(current_device) > memory_of(current_device)) return answer(cudaErrorMemoryAllocation);
    *p = reserve(bytes, current_device);
    counted.bytes = std::max(counted.bytes, used_on(current_device));
    return answer(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}

extern "C" cudaError_t cudaFree(void *p)
{
    return give_back(p, false);
}

extern "C" cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
    if (fails()) return answer(cudaErrorMemoryAllocation);
    std::lock_guard<std::recursive_mutex> lock(gate);
    *p = reserve(bytes, -1);
    return answer(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}

extern "C" cudaError_t cudaFreeHost(void *p)
{
    return give_back(p, true);
}

extern "C" cudaError_t cudaMemGetInfo(size_t *available, size_t *all)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    *all = memory_of(current_device);
    *available = *all - std::min(*all, used_on(current_device));
    return cudaSuccess;
}

// ---- devices ----------------------------------------------------------------------------------------

enum { RUNTIME = 13000 };

extern "C" cudaError_t cudaDriverGetVersion(int *version)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    *version = (int)softcuda_setting("SOFTCUDA_DRIVER", RUNTIME);
    return cudaSuccess;
}

extern "C" cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    *version = RUNTIME;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetDeviceCount(int *count)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    *count = 0;
    if (softcuda_setting("SOFTCUDA_DRIVER", RUNTIME) < RUNTIME) return answer(cudaErrorInsufficientDriver);
    *count = (int)softcuda_setting("SOFTCUDA_DEVICES", 1);
    return answer(*count ? cudaSuccess : cudaErrorNoDevice);
}

extern "C" cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    if (device < 0 || device >= softcuda_setting("SOFTCUDA_DEVICES", 1)) return answer(cudaErrorInvalidDevice);
    const int capability = (int)softcuda_setting("SOFTCUDA_CAPABILITY", 90);
    *p = {};
    snprintf(p->name, sizeof p->name, "Software GPU");
    p->totalGlobalMem = memory_of(device);
    p->major = capability / 10;
    p->minor = capability % 10;
    p->multiProcessorCount = (int)softcuda_setting("SOFTCUDA_PROCESSORS", 4);
    p->sharedMemPerBlockOptin = (size_t)softcuda_setting("SOFTCUDA_SHARED", SOFTCUDA_DYNAMIC);
    return cudaSuccess;
}

extern "C" cudaError_t cudaSetDevice(int device)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    if (device < 0 || device >= softcuda_setting("SOFTCUDA_DEVICES", 1)) return answer(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetLastError(void)
{
    const cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

extern "C" const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "invalid argument";
    }
}

// ---- streams ----------------------------------------------------------------------------------------

struct CUstream_st {
    int device;
    bool failed;
    std::deque<std::function<void()>> work;
};

static CUstream_st *default_stream()
{
    static CUstream_st streams[16];
    CUstream_st *s = &streams[current_device % 16];
    s->device = current_device;
    return s;
}

static CUstream_st *stream_of(cudaStream_t s)
{
    if (s && s->device != current_device) softcuda_stop("a stream of another device than the current one");
    return s ? s : default_stream();
}

static void run_all(CUstream_st *s)
{
    counted.waits++;
    if (s->work.empty()) return;
    const double begin = milliseconds();
    if (!idle) open_memory(s->device, PROT_READ | PROT_WRITE);
    while (!s->work.empty()) {
        s->work.front()();
        s->work.pop_front();
    }
    if (!idle) open_memory(s->device, PROT_NONE);
    counted.busy += milliseconds() - begin;
}

struct known {
    std::string name;
    size_t argument_bytes;
    softcuda_caller caller;
};

static std::map<const void *, size_t> most_shared; // beyond 48 KiB

static std::map<const void *, known> &kernels()
{
    static std::map<const void *, known> all;
    return all;
}

void softcuda_know(const char *name, const void *kernel, size_t argument_bytes, const softcuda_caller &caller)
{
    std::lock_guard<std::recursive_mutex> lock(gate);
    if (!kernels().count(kernel)) kernels()[kernel] = {name, argument_bytes, caller};
}

// What a launch does, or nothing where its sizes are wrong.
static std::function<void()> work_of(const struct cudaKernelNodeParams &p)
{
    const auto found = kernels().find(p.func);
    if (found == kernels().end()) softcuda_stop("a kernel that nobody knows");
    const known &k = found->second;
    const dim3 grid = p.gridDim, block = p.blockDim;
    const size_t threads = (size_t)block.x * block.y * block.z, shared = p.sharedMemBytes;
    const bool fits = threads > 0 && threads <= SOFTCUDA_THREADS && block.y == 1 && block.z == 1 &&
                      shared <= std::max((size_t)48 << 10, most_shared[p.func]) && k.argument_bytes <= 4096;
    if (!fits || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
        grid.z > 65535)
        return nullptr;
    const char *name = k.name.c_str();
    if (idle) return softcuda_idle(name, p.kernelParams);
    const std::function<void()> f = k.caller(p.kernelParams);
    return [=] { softcuda_run(name, grid, block, shared, f); };
}

static void count_launch(CUstream_st *s)
{
    if (++counted.launches == softcuda_setting("SOFTCUDA_FAIL", -1)) s->failed = true;
}

// Of code for several kinds of GPU the latest that the device can run.
extern "C" cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    const int device = (int)softcuda_setting("SOFTCUDA_CAPABILITY", 90);
    const int code = (int)softcuda_setting("SOFTCUDA_CODE", device);
    if (code > device) return answer(cudaErrorInvalidDeviceFunction);
    *a = {code, device};
    return cudaSuccess;
}

extern "C" cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute, int value)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    if (value > softcuda_setting("SOFTCUDA_SHARED", SOFTCUDA_DYNAMIC)) return answer(cudaErrorInvalidValue);
    most_shared[kernel] = (size_t)value;
    return cudaSuccess;
}

extern "C" cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                        size_t shared, cudaStream_t stream)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    CUstream_st *s = stream_of(stream);
    std::function<void()> f = work_of({(void *)kernel, grid, block, (unsigned)shared, arguments, nullptr});
    if (!f) return answer(cudaErrorInvalidConfiguration);
    host_starts();
    count_launch(s);
    s->work.push_back(f);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    *s = new CUstream_st{current_device, false, {}};
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    CUstream_st *s = stream_of(stream);
    host_waits();
    run_all(s);
    host_waited();
    return answer(s->failed ? cudaErrorLaunchFailure : cudaSuccess);
}

extern "C" cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    const cudaError_t e = cudaStreamSynchronize(s);
    delete s;
    return e;
}

// ---- events -----------------------------------------------------------------------------------------

// What an event says is the time at which its stream came to it.
struct CUevent_st {
    int device;
    bool recorded, reached;
    double at; // milliseconds
};

extern "C" cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    *e = new CUevent_st{current_device, false, false, 0};
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    std::lock_guard<std::recursive_mutex> lock(gate);
    if (e->recorded && !e->reached) softcuda_stop("an event is given back before its stream came to it");
    delete e;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    CUstream_st *s = stream_of(stream);
    if (e->device != s->device) softcuda_stop("an event of another device than its stream");
    e->recorded = true;
    e->reached = false;
    s->work.push_back([=] {
        e->at = milliseconds();
        e->reached = true;
    });
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    if (from->device != to->device || !from->recorded || !to->recorded)
        return answer(cudaErrorInvalidResourceHandle);
    if (!from->reached || !to->reached) return answer(cudaErrorNotReady);
    *milliseconds = (float)(to->at - from->at);
    return cudaSuccess;
}

// ---- copies -----------------------------------------------------------------------------------------

static void check_copy(const void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, int device,
                       bool pinned)
{
    const int target = home_of(to, bytes), source = home_of(from, bytes);
    const bool down = kind == cudaMemcpyDeviceToHost, up = kind == cudaMemcpyHostToDevice;
    if ((!down && target != device) || (!up && source != device))
        softcuda_stop("a copy with a side that is not on the stream's device");
    if ((down && target >= 0) || (up && source >= 0)) softcuda_stop("a copy in another direction than it says");
    if (pinned && ((down && target != -1) || (up && source != -1)))
        softcuda_stop("a copy that should not wait, with memory that is not page-locked");
}

static std::function<void()> copy_of(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                     int device)
{
    check_copy(to, from, bytes, kind, device, true);
    if (idle && kind != cudaMemcpyDeviceToHost) return [] {};
    return [=] { memcpy(to, from, bytes); };
}

extern "C" cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                       cudaStream_t stream)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    if (bytes == 0) return cudaSuccess;
    CUstream_st *s = stream_of(stream);
    counted.copies++;
    host_starts();
    s->work.push_back(copy_of(to, from, bytes, kind, s->device));
    return cudaSuccess;
}

// To the device: the host's memory is read at once, the copy comes in the default stream's turn.
extern "C" cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    if (bytes == 0) return cudaSuccess;
    CUstream_st *s = default_stream();
    check_copy(to, from, bytes, kind, s->device, false);
    if (kind == cudaMemcpyHostToDevice) {
        const std::vector<char> kept((const char *)from, (const char *)from + bytes);
        s->work.push_back([=] { memcpy(to, kept.data(), kept.size()); });
        return cudaSuccess;
    }
    s->work.push_back([=] { memcpy(to, from, bytes); });
    run_all(s);
    return cudaSuccess;
}

// Whole pages of zeros are fresh ones.
static void fill(char *to, int value, size_t bytes)
{
    char *first = (char *)(((uintptr_t)to + PAGE - 1) / PAGE * PAGE);
    char *last = (char *)((uintptr_t)(to + bytes) / PAGE * PAGE);
    if (value || first + (1 << 20) > last) {
        memset(to, value, bytes);
        return;
    }
    memset(to, 0, (size_t)(first - to));
    madvise(first, (size_t)(last - first), MADV_DONTNEED);
    memset(last, 0, (size_t)(to + bytes - last));
}

extern "C" cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    CUstream_st *s = stream_of(stream);
    if (home_of(to, bytes) != s->device) softcuda_stop("zeros on another device");
    s->work.push_back([=] { fill((char *)to, value, bytes); });
    return cudaSuccess;
}

// ---- graphs -----------------------------------------------------------------------------------------

struct CUgraphNode_st {
    size_t index;
    const void *kernel; // NULL: a copy
    std::function<void()> work;
    bool follows; // waits for the one before
};

struct CUgraph_st {
    std::deque<CUgraphNode_st> nodes;
    int device;
};

// A copy of the graph as it was: later changes of one are none of the other's.
struct CUgraphExec_st {
    std::deque<CUgraphNode_st> nodes;
    int device;
};

extern "C" cudaError_t cudaGraphCreate(cudaGraph_t *g, unsigned)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    *g = new CUgraph_st{{}, current_device};
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}

// Graphs of this device are chains: every node waits for the one before.
static cudaError_t add(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *, size_t befores,
                       const void *kernel, std::function<void()> work)
{
    if (befores) softcuda_stop("a node of a graph that is to wait without saying how");
    if (!work) return answer(cudaErrorInvalidValue);
    g->nodes.push_back({g->nodes.size(), kernel, work, false});
    *n = &g->nodes.back();
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                                const cudaGraphEdgeData *edges, size_t count)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    if (count != 1 || (*from)->index + 1 != (*to)->index) softcuda_stop("a graph that is no chain");
    const bool early = edges && edges->type == cudaGraphDependencyTypeProgrammatic;
    if (early && !((*from)->kernel && (*to)->kernel)) return answer(cudaErrorInvalidValue);
    if (early && edges->from_port != cudaGraphKernelNodePortProgrammatic) return answer(cudaErrorInvalidValue);
    (*to)->follows = true;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *before,
                                              size_t befores, const struct cudaKernelNodeParams *p)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    return add(n, g, before, befores, p->func, work_of(*p));
}

extern "C" cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *n, cudaGraph_t g,
                                                const cudaGraphNode_t *before, size_t befores, void *to,
                                                const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    return add(n, g, before, befores, nullptr, copy_of(to, from, bytes, kind, g->device));
}

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t *e, cudaGraph_t g, unsigned long long)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    for (const CUgraphNode_st &n : g->nodes)
        if (n.index > 0 && !n.follows) softcuda_stop("a node of a graph that does not wait for the one before it");
    *e = new CUgraphExec_st{g->nodes, g->device};
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e)
{
    delete e;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t n,
                                                        const struct cudaKernelNodeParams *p)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    CUgraphNode_st &own = e->nodes[n->index];
    counted.changes++;
    std::function<void()> work = work_of(*p);
    if (own.kernel != p->func || !work) return answer(cudaErrorInvalidValue);
    own.work = work;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t e, cudaGraphNode_t n, void *to,
                                                          const void *from, size_t bytes,
                                                          enum cudaMemcpyKind kind)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    CUgraphNode_st &own = e->nodes[n->index];
    counted.changes++;
    if (own.kernel || bytes == 0) return answer(cudaErrorInvalidValue);
    own.work = copy_of(to, from, bytes, kind, e->device);
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t stream)
{
    if (fails()) return answer(cudaErrorLaunchFailure);
    std::lock_guard<std::recursive_mutex> lock(gate);
    CUstream_st *s = stream_of(stream);
    if (s->device != e->device) softcuda_stop("a graph of another device");
    counted.graphs++;
    host_starts();
    for (const CUgraphNode_st &n : e->nodes) {
        if (n.kernel)
            count_launch(s);
        else
            counted.copies++;
        s->work.push_back(n.work);
    }
    return cudaSuccess;
}
