// SPDX-License-Identifier: MIT
// CUDA backend: a worker, its memory, and the ways of numbers between host and device.
//
//     host arrays  ->  ring (page-locked)  ->  its copy (device)    one for all arrays since the last wait
//     results      <-  back (page-locked)  <-  device
//
// The ring is filled from the front, and begins again whenever the worker has waited at the end of an
// operation: every step does, in rank. An operation that finds less than half of it free waits first, so
// that what it sends stays where it is until its kernels have read it.
#include <string.h>

#include "backend/cuda/cuda_private.h"
#include "base/mem.h"

enum { WANTED = 4096, ALIGN = 64 };

static dgm_status page_lock(void *p, size_t bytes, dgm_error *err)
{
    return cuda_status(cudaHostAlloc(p, bytes, cudaHostAllocDefault), "page-locked memory of a worker", err);
}

static dgm_status open_own(dgm_backend *b, cuda_exec_own *o, dgm_error *err)
{
    static const char *const ring = "the ring of a worker", *const less = "fewer --threads";
    o->ring.size = CUDA_RING;
    o->back_size = CUDA_BACK;
    o->weights_size = CUDA_WEIGHTS / sizeof(float);
    o->wanted_room = WANTED;
    o->wanted = dgm_malloc(WANTED * sizeof *o->wanted);
    o->starts = dgm_malloc(WANTED * sizeof *o->starts);
    if (!o->wanted || !o->starts) return dgm_no_memory(err);
    DGM_TRY(cuda_status(cudaStreamCreateWithFlags(&o->stream, cudaStreamNonBlocking), "a stream", err));
    DGM_TRY(cuda_tape_open(&o->tape, b, o->stream, &o->ring, err));
    DGM_TRY(page_lock(&o->ring.host, CUDA_RING, err));
    DGM_TRY(page_lock(&o->back, CUDA_BACK, err));
    DGM_TRY(page_lock(&o->weights, CUDA_WEIGHTS, err));
    DGM_TRY(cuda_take(b, (void **)&o->ring.device, CUDA_RING, ring, less, err));
    DGM_TRY(cuda_take(b, (void **)&o->device_back, CUDA_BACK, ring, less, err));
    return cuda_take(b, (void **)&o->device_weights, CUDA_WEIGHTS, ring, less, err);
}

dgm_status cuda_exec_open(dgm_exec *x, size_t device_bytes, dgm_error *err)
{
    cuda_exec_own *o = x->own = dgm_calloc(1, sizeof *o);
    if (!o) return dgm_no_memory(err);
    DGM_TRY(cuda_status(cuda_use(x->backend), "opening it", err));
    DGM_TRY(open_own(x->backend, o, err));
    void *base = NULL;
    const char *helps = device_bytes > CUDA_WORKER ? "a smaller --workspace, --batch or --beam, or fewer --threads"
                                                   : "fewer --threads, or end other programs on the GPU";
    device_bytes += CUDA_SCRATCH;
    DGM_TRY(cuda_take(x->backend, &base, device_bytes, "a worker", helps, err));
    x->device = (dgm_arena){.base = base, .size = device_bytes};
    return cuda_status(cudaMemsetAsync(base, 0, device_bytes, o->stream), "a worker's memory", err);
}

void cuda_exec_close(dgm_exec *x)
{
    cuda_exec_own *o = x->own;
    if (!o) return;
    cuda_use(x->backend);
    if (o->stream) cudaStreamSynchronize(o->stream);
    cuda_tape_close(&o->tape);
    cuda_timer_close(&o->clock);
    if (o->stream) cudaStreamDestroy(o->stream);
    cudaFree(x->device.base);
    cudaFreeHost(o->ring.host);
    cudaFree(o->ring.device);
    cudaFreeHost(o->back);
    cudaFree(o->device_back);
    cudaFreeHost(o->weights);
    cudaFree(o->device_weights);
    dgm_free(o->wanted);
    dgm_free(o->starts);
    dgm_free(o);
    x->own = NULL;
    memset(&x->device, 0, sizeof x->device);
    cuda_count_free(x->backend);
}

// ---- to the device ------------------------------------------------------------------------------

// Up to an eighth more than asked for, so that what follows lies where it lay a step before: a tape whose
// arguments stay is played without a change.
static size_t rounded(size_t bytes)
{
    size_t step = ALIGN;
    while (step * 8 < bytes) step *= 2;
    return (bytes + step - 1) / step * step;
}

// Room for so many bytes in the ring, or NULL.
static char *take(dgm_exec *x, size_t bytes)
{
    cuda_ring *r = &cuda_own(x)->ring;
    if (rounded(bytes) <= r->size - r->at)
        bytes = rounded(bytes);
    else
        bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > r->size - r->at) return NULL;
    char *place = r->host + r->at;
    r->at += bytes;
    return place;
}

static void *there(dgm_exec *x, const char *place)
{
    const cuda_ring *r = &cuda_own(x)->ring;
    return r->device + (place - r->host);
}

void cuda_begin(dgm_exec *x)
{
    cuda_ring *r = &cuda_own(x)->ring;
    if (r->at <= r->size / 2) return;
    cuda_wait(x, "waiting");
    r->at = r->sent = 0;
}

static void *too_long(dgm_exec *x, size_t bytes)
{
    if (x->failed == DGM_OK)
        x->failed = dgm_fail(&x->why, DGM_ERR_MEMORY,
                             "device %s: a list of %zu bytes is too long for it",
                             x->backend->props.name, bytes);
    return NULL;
}

void *cuda_send(dgm_exec *x, const void *host, size_t bytes)
{
    char *place = take(x, bytes ? bytes : 1);
    if (!place) return too_long(x, bytes);
    if (bytes) memcpy(place, host, bytes);
    return there(x, place);
}

void *cuda_room(dgm_exec *x, size_t bytes)
{
    char *place = take(x, bytes ? bytes : 1);
    return place ? there(x, place) : too_long(x, bytes);
}

// Bytes first .. first + bytes - 1 of parts, one behind the other, into page-locked memory.
typedef struct filling {
    char *to;
    const cuda_part *parts;
    size_t first, bytes;
    int cuts;
} filling;

static size_t cut_of(const filling *f, int part)
{
    return f->bytes / (size_t)f->cuts * (size_t)part / ALIGN * ALIGN;
}

static void fill(const void *arg, int cut)
{
    const filling *f = arg;
    const size_t from = cut_of(f, cut), end = cut + 1 < f->cuts ? cut_of(f, cut + 1) : f->bytes;
    size_t at = f->first + from, left = end - from; // `at` begins in the part at hand, or behind it
    char *to = f->to + from;
    for (const cuda_part *p = f->parts; left; p++) {
        if (at >= p->bytes) {
            at -= p->bytes;
            continue;
        }
        const size_t n = p->bytes - at < left ? p->bytes - at : left;
        memcpy(to, (const char *)p->from + at, n);
        to += n;
        left -= n;
        at = 0;
    }
}

// Who made a long list together with others copies it with them, too: it lies in their cores' memory.
void cuda_send_parts(dgm_exec *x, void *device, const cuda_part *parts, int count)
{
    enum { SPEED = 8 }; // bytes of one thread in a nanosecond, about
    const size_t most = cuda_own(x)->ring.size / 4;
    size_t all = 0;
    for (int i = 0; i < count; i++) all += parts[i].bytes;
    for (size_t at = 0; at < all; at += most) {
        const size_t n = all - at < most ? all - at : most;
        cuda_begin(x);
        char *place = take(x, n);
        const int cuts = dgm_team_parts(x->team, (double)n / SPEED, DGM_TEAM_PARTS);
        const filling f = {place, parts, at, n, cuts};
        dgm_team_run(x->team, fill, &f, cuts);
        cuda_tape_copy(cuda_tape_of(x), (char *)device + at, place, n, cudaMemcpyHostToDevice);
    }
}

void cuda_write(dgm_exec *x, dgm_mat y, const float *host)
{
    const size_t row = (size_t)y.cols * sizeof(float);
    const int most = row ? (int)(cuda_own(x)->ring.size / 4 / row) : y.rows;
    for (int at = 0; at < y.rows; at += most) {
        const int n = y.rows - at < most ? y.rows - at : most;
        cuda_begin(x);
        float *sent = cuda_send(x, host + (size_t)at * (size_t)y.cols, row * (size_t)n);
        if (!sent) return;
        cuda_run_copy(cuda_tape_of(x), cuda_view(dgm_mat_rows(y, at, n)), NULL,
                      (cuda_rows){sent, n, y.cols, y.cols}, NULL, n, 0);
    }
}

// ---- to the host --------------------------------------------------------------------------------

bool cuda_wait(dgm_exec *x, const char *what)
{
    cuda_exec_own *o = x->own;
    cuda_tape_copy(o->tape, o->weights, o->device_weights, o->weights_used * sizeof(float),
                   cudaMemcpyDeviceToHost);
    if (!cuda_fine(x, cuda_tape_play(o->tape), what) ||
        !cuda_fine(x, cudaStreamSynchronize(o->stream), what))
        return false;
    cuda_timer_take(o->clock);
    for (int i = 0; i < o->wanted_count; i++) {
        const cuda_wanted *w = &o->wanted[i];
        memcpy(w->to, o->weights + w->at, (size_t)w->count * sizeof(float));
    }
    o->wanted_count = 0;
    o->weights_used = 0;
    return true;
}

// A second play costs about ten microseconds: less than the host has to do for so many rows until their rank.
void cuda_start(dgm_exec *x, int rows)
{
    if (rows >= CUDA_EARLY && x->failed == DGM_OK)
        cuda_fine(x, cuda_tape_start(cuda_tape_of(x)), "starting");
}

void cuda_sync(dgm_exec *x)
{
    cuda_ring *r = &cuda_own(x)->ring;
    if (cuda_wait(x, "waiting")) r->at = r->sent = 0;
}

bool cuda_fetch(dgm_exec *x, void *host, const void *device, size_t bytes)
{
    cuda_exec_own *o = x->own;
    char *to = host;
    const char *from = device;
    while (bytes) {
        const size_t n = bytes < o->back_size ? bytes : o->back_size;
        cuda_tape_copy(o->tape, o->back, from, n, cudaMemcpyDeviceToHost);
        if (!cuda_wait(x, "fetching results")) return false;
        memcpy(to, o->back, n);
        to += n;
        from += n;
        bytes -= n;
    }
    return true;
}

void cuda_read(dgm_exec *x, float *host, dgm_mat in)
{
    cuda_exec_own *o = x->own;
    const size_t row = (size_t)in.cols * sizeof(float);
    const int most = row ? (int)(o->back_size / row) : in.rows;
    for (int at = 0; at < in.rows && row; at += most) {
        const int n = in.rows - at < most ? in.rows - at : most;
        const cuda_rows packed = {(float *)(void *)o->device_back, n, in.cols, in.cols};
        cuda_run_copy(o->tape, packed, NULL, cuda_view(dgm_mat_rows(in, at, n)), NULL, n, 0);
        if (!cuda_fetch(x, host + (size_t)at * (size_t)in.cols, packed.data, row * (size_t)n)) return;
    }
}

// ---- rows and caches ----------------------------------------------------------------------------

// Rows begin at multiples of 32 bytes.
static int row_stride(int cols)
{
    return (cols + 7) / 8 * 8;
}

static int cache_elem(dgm_precision precision)
{
    return precision == DGM_PRECISION_F32 ? sizeof(float) : sizeof(uint16_t);
}

size_t cuda_mat_bytes(const dgm_backend *b, int rows, int cols)
{
    (void)b;
    return dgm_arena_cost((size_t)rows * (size_t)row_stride(cols) * sizeof(float));
}

dgm_mat cuda_mat(dgm_exec *x, int rows, int cols)
{
    dgm_mat m = {NULL, rows, cols, row_stride(cols), sizeof(float)};
    m.data = dgm_arena_array(&x->device, (size_t)rows * (size_t)m.stride, sizeof(float));
    return m;
}

size_t cuda_cache_bytes(const dgm_backend *b, int rows, int cols, dgm_precision precision)
{
    (void)b;
    return dgm_arena_cost((size_t)rows * (size_t)row_stride(cols) * (size_t)cache_elem(precision));
}

dgm_mat cuda_cache(dgm_exec *x, int rows, int cols, dgm_precision precision)
{
    dgm_mat m = {NULL, rows, cols, row_stride(cols), cache_elem(precision)};
    m.data = dgm_arena_array(&x->device, (size_t)rows * (size_t)m.stride, (size_t)m.elem);
    return m;
}

// A block is 16 rows of keys and values, one behind the other.
static size_t block_elements(int heads, int dk, int dv)
{
    return (size_t)heads * (size_t)(dk + dv) * DGM_BLOCK_POSITIONS;
}

size_t cuda_blocks_bytes(const dgm_backend *b, int count, int heads, int dk, int dv,
                         dgm_precision precision)
{
    (void)b;
    return dgm_arena_cost((size_t)count * block_elements(heads, dk, dv) *
                          (size_t)cache_elem(precision));
}

dgm_blocks cuda_blocks(dgm_exec *x, int count, int heads, int dk, int dv, dgm_precision precision)
{
    dgm_blocks b = {NULL, block_elements(heads, dk, dv), cache_elem(precision), heads, dk, dv};
    b.data = dgm_arena_array(&x->device, (size_t)count * b.block, (size_t)b.elem);
    return b;
}
