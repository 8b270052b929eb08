// SPDX-License-Identifier: MIT
// CUDA backend: what a worker asks of its device, gathered and played at once.
//
// A launch costs the host about four microseconds, a graph of a hundred of them about as much as one. So launches and
// copies are written onto a tape, and the tape is played when somebody waits for results: once a step. A
// tape of the same kernels in the same order as one before becomes a graph; from then on only arguments that
// changed are replaced in it. The order is that of the tape, whichever way it is played.
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_private.h"
#include "base/mem.h"

enum {
    NODES = 512,        // of a tape; a longer one is played in parts
    BYTES = 128 << 10,  // of their arguments
    ARGUMENTS = 12,     // of a kernel
    GRAPHS = 32,        // kept
    SEEN = 64,          // tapes that were played once
    SMALL = 6,          // shorter tapes are not worth a graph
    ALLOWED = 16,
    LOOK_BACK = 4,      // launches that make rows, between one of them and one that reads its halves
    POOL_PARTS = 4,     // halves of one launch take such a part of the pool, at most
    PLENTY = 48 << 10   // shared memory that every kernel may have
};

typedef struct node {
    const void *kernel; // NULL: a copy
    unsigned x, y, block, shared;
    uint32_t at[ARGUMENTS]; // where in `bytes` arguments are
    int count;
    uint32_t end; // of the arguments
    bool product, none; // none: makes no rows
    cuda_rows made;     // data NULL: it did not say what it makes
    uint32_t halves;    // where in `bytes` its cuda_halves is
    size_t taken;       // of the pool, when it was written
    void *to;
    const void *from;
    size_t size;
    enum cudaMemcpyKind kind;
} node;

// Nodes with their arguments.
typedef struct list {
    node *nodes;
    char *bytes;
    int count;
    size_t used;
} list;

typedef struct kept {
    uint64_t signature, last_use; // signature 0: none
    list as;                      // what the graph holds now
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t *handles;
} kept;

// What the last launch of a tape made that was started early: the next one may read its halves. Whether it does is only
// known afterwards, so they are made where those of the start before were asked for.
typedef struct carried {
    cuda_rows made; // data NULL: none
    cuda_halves halves;
    size_t taken; // of the pool until then
    bool asked;
    int bf16; // that type was asked for
} carried;

struct cuda_tape {
    const dgm_backend *backend;
    cudaStream_t stream;
    cuda_ring *ring;
    cuda_timer *clock; // NULL: nobody wants to know
    list now; // its first node is the copy of the ring
    kept graphs[GRAPHS];
    uint64_t seen[SEEN], plays;
    bool plain;         // no graphs
    bool early;         // a kernel starts while the one before runs
    cudaError_t failed; // since it was last asked
    char *pool;                   // device: halves
    size_t pool_at, pool_taken;   // from its beginning, in all
    carried carried;
    const void *allowed[ALLOWED]; // kernels that may have more shared memory than others
};

static bool open_list(list *l)
{
    l->nodes = dgm_calloc(NODES, sizeof *l->nodes);
    l->bytes = dgm_malloc(BYTES);
    return l->nodes && l->bytes;
}

dgm_status cuda_tape_open(cuda_tape **out, dgm_backend *b, cudaStream_t stream, cuda_ring *ring,
                          dgm_error *err)
{
    cuda_tape *t = *out = dgm_calloc(1, sizeof *t);
    if (!t) return dgm_no_memory(err);
    const char *graphs = getenv("DRAGOMAN_CUDA_GRAPHS");
    t->plain = graphs && strcmp(graphs, "0") == 0;
    t->backend = b;
    t->early = b->capability >= 90;
    t->stream = stream;
    t->ring = ring;
    DGM_TRY(cuda_take(b, (void **)&t->pool, CUDA_POOL, "rows of halves", "fewer --threads", err));
    bool fine = open_list(&t->now);
    for (int i = 0; i < GRAPHS && fine; i++) {
        t->graphs[i].handles = dgm_calloc(NODES, sizeof *t->graphs[i].handles);
        fine = t->graphs[i].handles && open_list(&t->graphs[i].as);
    }
    return fine ? DGM_OK : dgm_no_memory(err);
}

static void forget(kept *g)
{
    if (g->exec) cudaGraphExecDestroy(g->exec);
    if (g->graph) cudaGraphDestroy(g->graph);
    g->exec = NULL;
    g->graph = NULL;
    g->signature = 0;
    g->as.count = 0;
    g->as.used = 0;
}

void cuda_tape_close(cuda_tape **tape)
{
    cuda_tape *t = *tape;
    if (!t) return;
    for (int i = 0; i < GRAPHS; i++) {
        forget(&t->graphs[i]);
        dgm_free(t->graphs[i].handles);
        dgm_free(t->graphs[i].as.nodes);
        dgm_free(t->graphs[i].as.bytes);
    }
    cudaFree(t->pool);
    dgm_free(t->now.nodes);
    dgm_free(t->now.bytes);
    dgm_free(t);
    *tape = NULL;
}

// ---- writing ------------------------------------------------------------------------------------

static void note(cuda_tape *t, cudaError_t e)
{
    if (t->failed == cudaSuccess) t->failed = e;
}

static node *next_node(cuda_tape *t, size_t bytes)
{
    if (t->now.count == NODES || t->now.used + bytes > BYTES) note(t, cuda_tape_play(t));
    if (t->now.count == 0) t->now.count = 1; // send_ring fills it in
    node *n = &t->now.nodes[t->now.count++];
    memset(n, 0, sizeof *n);
    n->taken = t->pool_taken;
    return n;
}

void cuda_allow_shared(cuda_tape *t, const void *kernel, size_t bytes)
{
    if (bytes <= PLENTY) return;
    int i = 0;
    while (i < ALLOWED && t->allowed[i] && t->allowed[i] != kernel) i++;
    if (i < ALLOWED && t->allowed[i]) return;
    note(t, cuda_use_still(t->backend));
    note(t, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    if (i < ALLOWED) t->allowed[i] = kernel;
}

void cuda_tape_launch(cuda_tape *t, const void *kernel, unsigned x, unsigned y, unsigned block,
                      size_t shared, const void *const *arguments, const size_t *sizes, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += (sizes[i] + 15) / 16 * 16;
    if (count > ARGUMENTS || bytes > BYTES) {
        note(t, cudaErrorInvalidValue);
        return;
    }
    node *n = next_node(t, bytes);
    n->kernel = kernel;
    n->x = x;
    n->y = y;
    n->block = block;
    n->shared = (unsigned)shared;
    n->count = count;
    for (int i = 0; i < count; i++) {
        n->at[i] = (uint32_t)t->now.used;
        memcpy(t->now.bytes + t->now.used, arguments[i], sizes[i]);
        const size_t whole = (sizes[i] + 15) / 16 * 16;
        memset(t->now.bytes + t->now.used + sizes[i], 0, whole - sizes[i]);
        t->now.used += whole;
    }
    n->end = (uint32_t)t->now.used;
}

void cuda_tape_product(cuda_tape *t)
{
    if (t->now.count) t->now.nodes[t->now.count - 1].product = true;
}

cuda_product *cuda_last_product(cuda_tape *t, int before)
{
    const node *n = t->now.count > before ? &t->now.nodes[t->now.count - 1 - before] : NULL;
    return n && n->product ? (cuda_product *)(void *)(t->now.bytes + n->at[0]) : NULL;
}

void cuda_tape_made(cuda_tape *t, cuda_rows rows, int argument, size_t at)
{
    if (t->now.count == 0) return;
    node *n = &t->now.nodes[t->now.count - 1];
    n->made = rows;
    n->halves = n->at[argument] + (uint32_t)at;
}

void cuda_tape_made_none(cuda_tape *t)
{
    if (t->now.count) t->now.nodes[t->now.count - 1].none = true;
}

// What had been taken of the pool before the last so many launches that make rows.
static size_t taken_before(const cuda_tape *t, int launches)
{
    int i = t->now.count - 1;
    for (; i > 1 && launches > 0; i--) launches -= !t->now.nodes[i].none;
    return i > 0 ? t->now.nodes[i].taken : t->pool_taken;
}

// The pool is taken from the front again and again. Halves that some launch after the one that makes the new ones may
// still read were asked for within the last 2 * LOOK_BACK launches: all of these stay.
static void *take_pool(cuda_tape *t, size_t bytes)
{
    bytes = (bytes + 255) / 256 * 256;
    const size_t most = CUDA_POOL / POOL_PARTS, recent = t->pool_taken - taken_before(t, 2 * LOOK_BACK);
    if (bytes > most || recent + bytes > CUDA_POOL - most) return NULL; // `most`: what is left at its end
    if (t->pool_at + bytes > CUDA_POOL) t->pool_at = 0;
    char *place = t->pool + t->pool_at;
    t->pool_at += bytes;
    t->pool_taken += bytes;
    return place;
}

// Of all rows that the launch makes.
static cuda_halves ask(cuda_tape *t, node *n, int bf16)
{
    cuda_halves *h = (cuda_halves *)(void *)(t->now.bytes + n->halves);
    if (h->data) return h->bf16 == bf16 ? *h : (cuda_halves){0};
    const int stride = (n->made.cols + 63) / 64 * 64;
    *h = (cuda_halves){take_pool(t, (size_t)n->made.rows * (size_t)stride * sizeof(uint16_t)), stride, bf16};
    return *h;
}

enum { APART = -1, ASKEW = -2 };

// Which of the numbers of m the first of `rows` is; or they have nothing in common, or something, but not whole rows.
static ptrdiff_t place_in(cuda_rows m, cuda_rows rows)
{
    const float *end = rows.data + (size_t)rows.rows * (size_t)rows.stride;
    if (!m.data || m.data >= end || rows.data >= m.data + (size_t)m.rows * (size_t)m.stride)
        return m.data ? APART : ASKEW;
    const ptrdiff_t apart = rows.data - m.data;
    if (apart < 0 || rows.stride != m.stride || apart % m.stride + rows.cols > m.cols) return ASKEW;
    return apart / m.stride + rows.rows > m.rows ? ASKEW : apart;
}

static cuda_halves from_place(cuda_halves h, cuda_rows m, ptrdiff_t place)
{
    if (h.data) h.data = (uint16_t *)h.data + place / m.stride * h.stride + place % m.stride;
    return h;
}

// Of the tape before. Half of the pool may be taken again until what was carried could be overwritten.
static cuda_halves carried_halves(cuda_tape *t, cuda_rows rows, int bf16)
{
    carried *c = &t->carried;
    const ptrdiff_t place = place_in(c->made, rows);
    if (place < 0 || t->pool_taken - c->taken > CUDA_POOL / 2) return (cuda_halves){0};
    c->asked = true;
    c->bf16 = bf16;
    return c->halves.bf16 == bf16 ? from_place(c->halves, c->made, place) : (cuda_halves){0};
}

// Whoever made the rows last is found by going back; a launch that may have changed them ends that.
cuda_halves cuda_tape_halves(cuda_tape *t, cuda_rows rows, int bf16)
{
    int i = t->now.count - 1;
    for (int left = LOOK_BACK; i > 0 && left > 0; i--) {
        node *n = &t->now.nodes[i];
        if (n->none) continue;
        left--;
        const ptrdiff_t place = place_in(n->made, rows);
        if (place == APART) continue;
        return place >= 0 ? from_place(ask(t, n, bf16), n->made, place) : (cuda_halves){0};
    }
    return i <= 0 ? carried_halves(t, rows, bf16) : (cuda_halves){0};
}

void cuda_tape_copy(cuda_tape *t, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    if (bytes == 0) return;
    node *n = next_node(t, 0);
    n->to = to;
    n->from = from;
    n->size = bytes;
    n->kind = kind;
    n->end = (uint32_t)t->now.used;
}

// ---- playing ------------------------------------------------------------------------------------

static void arguments_of(const list *l, const node *n, void *out[ARGUMENTS])
{
    for (int i = 0; i < n->count; i++) out[i] = l->bytes + n->at[i];
}

static cudaError_t play_plain(cuda_tape *t)
{
    for (int i = 0; i < t->now.count; i++) {
        const node *n = &t->now.nodes[i];
        void *arguments[ARGUMENTS];
        arguments_of(&t->now, n, arguments);
        const dim3 grid = {n->x, n->y, 1}, block = {n->block, 1, 1};
        const cudaError_t e =
            n->kernel ? cudaLaunchKernel(n->kernel, grid, block, arguments, n->shared, t->stream)
                      : cudaMemcpyAsync(n->to, n->from, n->size, n->kind, t->stream);
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}

// Never 0.
static uint64_t signature_of(const list *l)
{
    uint64_t h = 0xcbf29ce484222325u + (uint64_t)l->count;
    for (int i = 0; i < l->count; i++) {
        const node *n = &l->nodes[i];
        h = (h ^ (n->kernel ? (uint64_t)(uintptr_t)n->kernel : (uint64_t)n->kind)) * 0x100000001b3u;
    }
    return h | 1;
}

static struct cudaKernelNodeParams launch_of(const list *l, const node *n, void *arguments[ARGUMENTS])
{
    arguments_of(l, n, arguments);
    void *kernel;
    memcpy(&kernel, &n->kernel, sizeof kernel); // CUDA takes it without const
    return (struct cudaKernelNodeParams){.func = kernel,
                                         .gridDim = {n->x, n->y, 1},
                                         .blockDim = {n->block, 1, 1},
                                         .sharedMemBytes = n->shared,
                                         .kernelParams = arguments};
}

// A kernel behind a kernel may start early where the device can: all of ours wait by themselves (ptx.cuh).
static cudaError_t follow(const cuda_tape *t, kept *g, int i)
{
    static const cudaGraphEdgeData early = {.from_port = cudaGraphKernelNodePortProgrammatic,
                                            .type = cudaGraphDependencyTypeProgrammatic};
    const bool both = g->as.nodes[i].kernel && g->as.nodes[i - 1].kernel && t->early;
    const cudaGraphEdgeData *edge = both ? &early : NULL;
#if CUDART_VERSION >= 13000
    return cudaGraphAddDependencies(g->graph, &g->handles[i - 1], &g->handles[i], edge, 1);
#else
    return cudaGraphAddDependencies_v2(g->graph, &g->handles[i - 1], &g->handles[i], edge, 1);
#endif
}

static cudaError_t add_node(const cuda_tape *t, kept *g, int i)
{
    const node *n = &g->as.nodes[i];
    cudaError_t e;
    if (n->kernel) {
        void *arguments[ARGUMENTS];
        const struct cudaKernelNodeParams p = launch_of(&g->as, n, arguments);
        e = cudaGraphAddKernelNode(&g->handles[i], g->graph, NULL, 0, &p);
    } else {
        e = cudaGraphAddMemcpyNode1D(&g->handles[i], g->graph, NULL, 0, n->to, n->from, n->size, n->kind);
    }
    return e == cudaSuccess && i > 0 ? follow(t, g, i) : e;
}

static void copy_list(list *to, const list *from)
{
    memcpy(to->nodes, from->nodes, (size_t)from->count * sizeof *to->nodes);
    memcpy(to->bytes, from->bytes, from->used);
    to->count = from->count;
    to->used = from->used;
}

static cudaError_t build(const cuda_tape *t, kept *g, const list *from, uint64_t signature)
{
    forget(g);
    copy_list(&g->as, from);
    cudaError_t e = cudaGraphCreate(&g->graph, 0);
    for (int i = 0; i < from->count && e == cudaSuccess; i++) e = add_node(t, g, i);
    if (e == cudaSuccess) e = cudaGraphInstantiate(&g->exec, g->graph, 0);
    if (e == cudaSuccess)
        g->signature = signature;
    else
        forget(g);
    return e;
}

static bool same_node(const list *a, const list *b, int i)
{
    const node *n = &a->nodes[i], *m = &b->nodes[i];
    const size_t begin = i > 0 ? a->nodes[i - 1].end : 0;
    // Kernels of one order have arguments of one layout.
    return n->x == m->x && n->y == m->y && n->to == m->to && n->from == m->from && n->size == m->size &&
           memcmp(a->bytes + begin, b->bytes + begin, n->end - begin) == 0;
}

static cudaError_t change(kept *g, const list *to)
{
    for (int i = 0; i < to->count; i++) {
        const node *n = &to->nodes[i];
        if (same_node(&g->as, to, i)) continue;
        cudaError_t e;
        if (n->kernel) {
            void *arguments[ARGUMENTS];
            const struct cudaKernelNodeParams p = launch_of(to, n, arguments);
            e = cudaGraphExecKernelNodeSetParams(g->exec, g->handles[i], &p);
        } else {
            e = cudaGraphExecMemcpyNodeSetParams1D(g->exec, g->handles[i], n->to, n->from, n->size, n->kind);
        }
        if (e != cudaSuccess) return e;
    }
    copy_list(&g->as, to);
    return cudaSuccess;
}

static kept *find(cuda_tape *t, uint64_t signature)
{
    for (int i = 0; i < GRAPHS; i++)
        if (t->graphs[i].signature == signature && t->graphs[i].as.count == t->now.count)
            return &t->graphs[i];
    return NULL;
}

static kept *oldest(cuda_tape *t)
{
    kept *g = &t->graphs[0];
    for (int i = 1; i < GRAPHS; i++)
        if (t->graphs[i].signature == 0 || (g->signature && t->graphs[i].last_use < g->last_use))
            g = &t->graphs[i];
    return g;
}

// True if such a tape was played before; else it is remembered.
static bool seen_before(cuda_tape *t, uint64_t signature)
{
    for (int i = 0; i < SEEN; i++)
        if (t->seen[i] == signature) return true;
    t->seen[t->plays % SEEN] = signature;
    return false;
}

// There is always such a copy, so that tapes look alike.
static void send_ring(cuda_tape *t)
{
    cuda_ring *r = t->ring;
    const size_t least = 64, from = r->sent < r->at ? r->sent : 0;
    node *n = &t->now.nodes[0];
    memset(n, 0, sizeof *n);
    n->to = r->device + from;
    n->from = r->host + from;
    n->size = r->sent < r->at ? r->at - r->sent : least;
    n->kind = cudaMemcpyHostToDevice;
    r->sent = r->at;
}

// A graph that cannot be changed is built again, one that cannot be built is played without.
static cudaError_t play_graph(cuda_tape *t)
{
    const uint64_t signature = signature_of(&t->now);
    kept *g = find(t, signature);
    if (!g && !seen_before(t, signature)) return play_plain(t);
    bool ready = g && change(g, &t->now) == cudaSuccess;
    if (!ready) {
        if (!g) g = oldest(t);
        ready = build(t, g, &t->now, signature) == cudaSuccess;
    }
    if (!ready) {
        cudaGetLastError(); // what failed was an offer
        return play_plain(t);
    }
    g->last_use = t->plays;
    return cudaGraphLaunch(g->exec, t->stream);
}

cudaError_t cuda_tape_play(cuda_tape *t)
{
    const cudaError_t before = t->failed;
    t->failed = cudaSuccess;
    cudaError_t e = before;
    t->plays++;
    if (e == cudaSuccess) e = cuda_use_still(t->backend);
    if (t->now.count) send_ring(t);
    if (e == cudaSuccess && t->now.count) {
        e = cuda_timer_begin(t->clock);
        if (e == cudaSuccess) e = t->plain || t->now.count < SMALL ? play_plain(t) : play_graph(t);
        if (e == cudaSuccess) e = cuda_timer_end(t->clock);
    }
    t->now.count = 0;
    t->now.used = 0;
    t->pool_at = 0; // rows that were made are not looked for any more
    t->carried.made = (cuda_rows){0};
    return e;
}

cudaError_t cuda_tape_start(cuda_tape *t)
{
    carried c = {.asked = false, .bf16 = t->carried.bf16};
    int i = t->now.count - 1;
    while (i > 0 && t->now.nodes[i].none) i--;
    if (i > 0) c.made = t->now.nodes[i].made;
    if (c.made.data && t->carried.asked) c.halves = ask(t, &t->now.nodes[i], c.bf16);
    c.taken = t->pool_taken;
    const size_t at = t->pool_at;
    const cudaError_t e = cuda_tape_play(t);
    t->pool_at = at;
    t->carried = c;
    return e;
}

void cuda_tape_time(cuda_tape *t, cuda_timer *c)
{
    t->clock = c;
}
