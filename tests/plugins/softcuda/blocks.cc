// SPDX-License-Identifier: MIT
// Kernels of the software GPU: the threads of a block are fibers, which take turns at barriers.
//
// A fiber runs until it has to wait: for its block (__syncthreads) or for its warp (shuffles, votes, products of
// a warp). The order of warps and lanes is the seed's, another one after every barrier.
#include "softcuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <vector>

enum { STACK = 128 << 10, SLOT = 64 };

softcuda_thread softcuda_now;
dim3 softcuda_block_size, softcuda_grid_size;
static const char *running = "no kernel";

long softcuda_setting(const char *name, long otherwise)
{
    const char *value = getenv(name);
    return value && *value ? atol(value) : otherwise;
}

void softcuda_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "softcuda: %s: block %u,%u thread %u: ", running, softcuda_now.block.x,
            softcuda_now.block.y, softcuda_now.thread.x);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

void softcuda_stop(const char *why)
{
    softcuda_say("%s", why);
    abort();
}

static uint64_t random_number()
{
    static uint64_t state = (uint64_t)softcuda_setting("SOFTCUDA_SEED", 1) * 0x9e3779b97f4a7c15u + 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// ---- fibers -----------------------------------------------------------------------------------------

enum state { READY, AT_BARRIER, IN_WARP, PAUSED, DONE };

struct later {
    void *to;
    const void *from;
    int bytes, valid;
};

struct fiber {
    jmp_buf where;
    std::deque<std::vector<later>> copies; // groups, the open one last
    bool begun, waited; // waited: for the kernel before
    state now;
    const char *file; // of the barrier
    int line;
};

struct warp {
    char slots[2][32 * SLOT], results[2][32 * SLOT];
    int arrived, turn;
    const char *file;
    int line;
};

static fiber fibers[SOFTCUDA_THREADS];
static warp warps[SOFTCUDA_THREADS / 32];
static ucontext_t contexts[SOFTCUDA_THREADS];
static jmp_buf scheduler;
static int self, live, waiting;
static uint64_t changes; // of barriers in shared memory
static const std::function<void()> *body;
alignas(1024) static char dynamic_shared[SOFTCUDA_DYNAMIC];

extern char __start_softcuda_shared[] __attribute__((weak));
extern char __stop_softcuda_shared[] __attribute__((weak));

void *softcuda_dynamic_shared()
{
    return dynamic_shared;
}

static void leave(state how)
{
    fiber *f = &fibers[self];
    f->now = how;
    if (!_setjmp(f->where)) _longjmp(scheduler, 1);
}

// A fiber lives as long as the program: it runs one thread after the other.
static void fiber_main()
{
    for (;;) {
        (*body)();
        for (const std::vector<later> &group : fibers[self].copies)
            if (!group.empty()) softcuda_stop("a thread ends with copies under way");
        if (!fibers[self].waited) softcuda_stop("a thread that ends and did not wait for the kernel before");
        fibers[self].copies.clear();
        live--;
        leave(DONE);
    }
}

static void resume(int t)
{
    self = t;
    fiber *f = &fibers[t];
    if (f->begun) {
        if (!_setjmp(scheduler)) _longjmp(f->where, 1);
        return;
    }
    static char *stacks = (char *)mmap(nullptr, (size_t)SOFTCUDA_THREADS * STACK, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    f->begun = true;
    getcontext(&contexts[t]);
    contexts[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
    contexts[t].uc_stack.ss_size = STACK;
    contexts[t].uc_link = nullptr;
    makecontext(&contexts[t], fiber_main, 0);
    if (!_setjmp(scheduler)) setcontext(&contexts[t]);
}

void softcuda_wait_for_others()
{
    fibers[self].waited = true;
}

void softcuda_copy_later(void *to, const void *from, int bytes, int valid)
{
    fiber *f = &fibers[self];
    if ((uintptr_t)to % bytes || (uintptr_t)from % bytes || valid < 0 || valid > bytes)
        softcuda_stop("a copy that is not aligned");
    if (f->copies.empty()) f->copies.emplace_back();
    f->copies.back().push_back({to, from, bytes, valid});
}

void softcuda_copies_commit()
{
    fiber *f = &fibers[self];
    if (f->copies.empty()) f->copies.emplace_back();
    f->copies.emplace_back();
}

void softcuda_copies_wait(int others)
{
    fiber *f = &fibers[self];
    while ((int)f->copies.size() - 1 > others) {
        for (const later &c : f->copies.front()) {
            memset(c.to, 0, (size_t)c.bytes);
            memcpy(c.to, c.from, (size_t)c.valid);
        }
        f->copies.pop_front();
    }
}

void softcuda_barrier(const char *file, int line)
{
    fiber *f = &fibers[self];
    f->file = file;
    f->line = line;
    waiting++;
    leave(AT_BARRIER);
}

void softcuda_pause()
{
    leave(PAUSED);
}

void softcuda_changed()
{
    changes++;
}

// True for the lane that came last.
static bool arrive(warp *w, const void *mine, size_t bytes, const char *file, int line)
{
    if (bytes > SLOT) softcuda_stop("too much for a meeting of a warp");
    if (w->arrived == 0) {
        w->file = file;
        w->line = line;
    } else if (w->line != line || strcmp(w->file, file) != 0) {
        fprintf(stderr, "softcuda: lanes of a warp are in %s:%d and %s:%d\n", w->file, w->line, file, line);
        softcuda_stop("a warp that went apart");
    }
    if (bytes) memcpy(w->slots[w->turn] + self % 32 * SLOT, mine, bytes);
    return ++w->arrived == 32;
}

static void release(warp *w)
{
    w->arrived = 0;
    w->turn ^= 1;
    for (int i = self / 32 * 32; i < self / 32 * 32 + 32; i++)
        if (fibers[i].now == IN_WARP) fibers[i].now = READY;
}

const char *softcuda_meet(const void *mine, size_t bytes, const char *file, int line)
{
    warp *w = &warps[self / 32];
    const int turn = w->turn;
    if (arrive(w, mine, bytes, file, line))
        release(w);
    else
        leave(IN_WARP);
    return w->slots[turn];
}

void softcuda_together(const void *mine, size_t bytes, void (*work)(const char *all, char *results),
                       void *result, size_t result_bytes, const char *file, int line)
{
    warp *w = &warps[self / 32];
    const int turn = w->turn;
    if (arrive(w, mine, bytes, file, line)) {
        work(w->slots[turn], w->results[turn]);
        release(w);
    } else {
        leave(IN_WARP);
    }
    memcpy(result, w->results[turn] + self % 32 * SLOT, result_bytes);
}

// ---- a block ----------------------------------------------------------------------------------------

// Threads that wait for a barrier in shared memory may look again; false: there are none.
static bool wake(int threads, uint64_t *seen)
{
    bool any = false;
    for (int t = 0; t < threads; t++) {
        if (fibers[t].now != PAUSED) continue;
        any = true;
        fibers[t].now = READY;
    }
    if (any && *seen == changes) softcuda_stop("threads wait for a barrier that never changes");
    *seen = changes;
    return any;
}

// Every thread of a warp until all of them wait for others or are done.
static void run_warp(int first, int lanes, bool backwards)
{
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < lanes; i++) {
            const int t = first + (backwards ? lanes - 1 - i : i);
            if (fibers[t].now != READY) continue;
            any = true;
            softcuda_now.thread.x = (unsigned)t;
            resume(t);
        }
    }
}

static void cross_barrier(int threads)
{
    if (waiting != live) softcuda_stop("threads wait for others that never come");
    const fiber *first = nullptr;
    for (int t = 0; t < threads; t++) {
        fiber *f = &fibers[t];
        if (f->now == DONE) continue;
        if (first && (first->line != f->line || strcmp(first->file, f->file) != 0)) {
            fprintf(stderr, "softcuda: threads of a block are in %s:%d and %s:%d\n", first->file, first->line,
                    f->file, f->line);
            softcuda_stop("a barrier that threads reach in two places");
        }
        first = f;
        f->now = READY;
    }
    waiting = 0;
}

static void run_block(int threads)
{
    if (__start_softcuda_shared)
        memset(__start_softcuda_shared, 0xff, (size_t)(__stop_softcuda_shared - __start_softcuda_shared));
    for (int t = 0; t < threads; t++) {
        fibers[t].now = READY;
        fibers[t].waited = false;
    }
    live = threads;
    waiting = 0;
    const int count = (threads + 31) / 32;
    uint64_t seen = ~(uint64_t)0;
    while (live) {
        const uint64_t random = random_number();
        for (int w = 0; w < count; w++) {
            const int turn = random & 64 ? w : count - 1 - w;
            const int which = ((int)(random % 61) + turn) % count;
            run_warp(32 * which, std::min(32, threads - 32 * which), random & 128);
        }
        if (live && !wake(threads, &seen)) cross_barrier(threads);
    }
}

void softcuda_run(const char *name, dim3 grid, dim3 block, size_t shared,
                       const std::function<void()> &f)
{
    running = name;
    body = &f;
    softcuda_block_size = block;
    softcuda_grid_size = grid;
    for (warp &w : warps) w.arrived = w.turn = 0;
    const size_t all = (size_t)grid.x * grid.y * grid.z;
    const size_t start = random_number() % all;
    const bool backwards = random_number() & 1;
    for (size_t i = 0; i < all; i++) {
        const size_t b = (start + (backwards ? all - i : i)) % all;
        memset(dynamic_shared, 0xff, shared);
        softcuda_now.block = dim3((unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                                  (unsigned)(b / grid.x / grid.y));
        run_block((int)block.x);
    }
    running = "no kernel";
}
