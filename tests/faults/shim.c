// SPDX-License-Identifier: MIT
// Calls that fail on demand: a shared object for LD_PRELOAD (tests/system/faults).
//
// Memory, threads and locks are functions that stand before those of the C library. Calls of the system are caught
// below it, so that those of the C library itself (fopen, fwrite, exit) are among them: a seccomp filter turns each
// into a signal, whose handler makes the call, from the one address that the filter lets pass, or has it fail.
//
// What fails is said in a file, named by FAULTS, which both sides map: a test that talks to a running server can change
// it between two requests. Counting begins with main. Messages (descriptor 2) are never lost.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

// The order is that of KINDS in tests/faults/faults.py.
enum { MEMORY, MAP, THREAD, LOCK, OPEN, READ, WRITE, SYNC, NAME, CLOSE, SOCKET, CUDA, KINDS };

typedef struct faults {
    _Atomic uint64_t kinds; // which count: bits
    _Atomic uint64_t at;    // how many calls until one fails: 1 is the next, 0 none
    _Atomic uint64_t
        more; // failures behind that one; of memory: it is used up, and what is freed can be had again
    _Atomic uint64_t failed;       // failures so far
    _Atomic uint64_t error;        // errno of calls of the system
    _Atomic uint64_t calls[KINDS]; // so far
} faults;

static faults *shared; // NULL until main begins

static bool strike(int kind)
{
    if (!shared) return false;
    atomic_fetch_add(&shared->calls[kind], 1);
    if (!(atomic_load(&shared->kinds) >> kind & 1)) return false;
    uint64_t at = atomic_load(&shared->at);
    do
        if (at == 0) return false;
    while (!atomic_compare_exchange_weak(&shared->at, &at, at - 1));
    if (at > 1) return false;
    atomic_fetch_add(&shared->failed, 1);
    if (atomic_load(&shared->more)) {
        atomic_fetch_sub(&shared->more, 1);
        atomic_store(&shared->at, 1);
    }
    return true;
}

// What the software GPU asks before each of its calls (tests/plugins/softcuda).
SHOWN bool faults_cuda(void);
SHOWN bool faults_cuda(void)
{
    return strike(CUDA);
}

// ---- memory, threads, locks ------------------------------------------------------------------
// dlsym needs memory itself, before it has found who gives some: that comes from here and stays.
static _Alignas(64) char early[1 << 16];
static _Atomic size_t early_used;

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof early;
}

static void *early_take(size_t size)
{
    const size_t at = atomic_fetch_add(&early_used, (size + 63) / 64 * 64);
    return at + size <= sizeof early ? early + at : NULL;
}

static void *find(const char *name)
{
    static __thread bool inside;
    if (inside) return NULL;
    inside = true;
    void *f = dlsym(RTLD_NEXT, name);
    inside = false;
    return f;
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real) real = (__typeof__(&name))find(#name)

// Is there no memory for this? Of memory that is used up what was given back is there.
static _Atomic uint64_t freed;

static bool refused(size_t size)
{
    if (!shared || !strike(MEMORY)) return false;
    uint64_t left = atomic_load(&freed);
    while (atomic_load(&shared->more) && left >= size)
        if (atomic_compare_exchange_weak(&freed, &left, left - size)) return false;
    return true;
}

static void give_back(size_t size)
{
    if (shared && atomic_load(&shared->failed) && atomic_load(&shared->more))
        atomic_fetch_add(&freed, size);
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

SHOWN void *malloc(size_t size)
{
    REAL(malloc);
    if (!real) return early_take(size);
    return refused(size) ? no_memory() : real(size);
}

SHOWN void *calloc(size_t count, size_t size)
{
    REAL(calloc);
    if (!real) return early_take(count * size);
    return refused(count * size) ? no_memory() : real(count, size);
}

SHOWN void *realloc(void *p, size_t size)
{
    REAL(realloc);
    if (!real || is_early(p)) {
        char *fresh = malloc(size);
        const size_t room = is_early(p) ? (size_t)(early + sizeof early - (char *)p) : 0;
        if (fresh && p) memcpy(fresh, p, size < room ? size : room);
        return fresh;
    }
    return refused(size) ? no_memory() : real(p, size);
}

SHOWN void free(void *p)
{
    REAL(free);
    if (!real || is_early(p)) return;
    if (p) give_back(malloc_usable_size(p));
    real(p);
}

SHOWN int posix_memalign(void **p, size_t align, size_t size)
{
    REAL(posix_memalign);
    return refused(size) ? ENOMEM : real(p, align, size);
}

SHOWN void *aligned_alloc(size_t align, size_t size)
{
    REAL(aligned_alloc);
    return refused(size) ? no_memory() : real(align, size);
}

SHOWN void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (!strike(MAP)) return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

SHOWN int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                         void *(*main)(void *), void *restrict arg)
{
    REAL(pthread_create);
    return strike(THREAD) ? EAGAIN : real(thread, attributes, main, arg);
}

SHOWN int pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *attributes)
{
    REAL(pthread_mutex_init);
    return strike(LOCK) ? ENOMEM : real(lock, attributes);
}

SHOWN int pthread_cond_init(pthread_cond_t *restrict condition,
                            const pthread_condattr_t *restrict attributes)
{
    REAL(pthread_cond_init);
    return strike(LOCK) ? ENOMEM : real(condition, attributes);
}

// A thread that blocks every signal would die of ours.
static const sigset_t *without_ours(const sigset_t *set, sigset_t *room)
{
    if (!set) return NULL;
    *room = *set;
    sigdelset(room, SIGSYS);
    return room;
}

SHOWN int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    REAL(pthread_sigmask);
    sigset_t room;
    return real(how, how == SIG_UNBLOCK ? set : without_ours(set, &room), old);
}

SHOWN int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    REAL(sigprocmask);
    sigset_t room;
    return real(how, how == SIG_UNBLOCK ? set : without_ours(set, &room), old);
}

// ---- calls of the system ---------------------------------------------------------------------
static const struct {
    int number, kind;
} calls[] = {
#ifdef SYS_open
    {SYS_open, OPEN},        {SYS_rename, NAME},     {SYS_link, NAME},
    {SYS_mkdir, NAME},
#endif
    {SYS_openat, OPEN},      {SYS_read, READ},       {SYS_pread64, READ},
    {SYS_readv, READ},       {SYS_recvfrom, READ},   {SYS_getdents64, READ},
    {SYS_write, WRITE},      {SYS_pwrite64, WRITE},  {SYS_writev, WRITE},
    {SYS_sendto, WRITE},     {SYS_sendmsg, WRITE},   {SYS_fsync, SYNC},
    {SYS_fdatasync, SYNC},   {SYS_renameat, NAME},   {SYS_renameat2, NAME},
    {SYS_linkat, NAME},      {SYS_mkdirat, NAME},    {SYS_ftruncate, NAME},
    {SYS_close, CLOSE},      {SYS_socket, SOCKET},   {SYS_bind, SOCKET},
    {SYS_listen, SOCKET},    {SYS_accept4, SOCKET},  {SYS_epoll_create1, SOCKET},
    {SYS_epoll_ctl, SOCKET}, {SYS_eventfd2, SOCKET}, {SYS_pipe2, SOCKET},
};
enum { CALLS = sizeof calls / sizeof *calls };

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
__asm__(".text\nfaults_call:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\nmov %r9, "
        "%r8\nmov 8(%rsp), %r9\n"
        "syscall\nfaults_called:\nret\n");
#define ARGUMENT(c, i)                                                                             \
    ((c)->uc_mcontext.gregs[(const int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9}[i]])
#define RESULT(c) ((c)->uc_mcontext.gregs[REG_RAX])
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
__asm__(".text\nfaults_call:\n"
        "mov x8, x0\nmov x0, x1\nmov x1, x2\nmov x2, x3\nmov x3, x4\nmov x4, x5\nmov x5, x6\n"
        "svc #0\nfaults_called:\nret\n");
#define ARGUMENT(c, i) ((long long)(c)->uc_mcontext.regs[i])
#define RESULT(c) ((c)->uc_mcontext.regs[0])
#endif
long faults_call(long number, long a, long b, long c, long d, long e, long f)
    __attribute__((visibility("hidden")));
extern char faults_called[] __attribute__((visibility("hidden")));

static void on_call(int number, siginfo_t *info, void *context)
{
    (void)number;
    const int saved = errno, call = info->si_syscall;
    ucontext_t *c = context;
    int kind = READ;
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == call) kind = calls[i].kind;
    const bool message = kind == WRITE && ARGUMENT(c, 0) == STDERR_FILENO;
    // What gives something back needs nothing that could be missing.
    const bool gives = call == SYS_epoll_ctl && ARGUMENT(c, 1) == EPOLL_CTL_DEL;
    const bool fails = !message && !gives && strike(kind);
    long result = 0;
    // A descriptor is gone whatever close says.
    if (!fails || kind == CLOSE)
        result = faults_call(call, ARGUMENT(c, 0), ARGUMENT(c, 1), ARGUMENT(c, 2), ARGUMENT(c, 3),
                             ARGUMENT(c, 4), ARGUMENT(c, 5));
    if (fails) result = -(long)atomic_load(&shared->error);
    RESULT(c) = result;
    errno = saved;
}

static void catch_calls(void)
{
    struct sock_filter filter[CALLS * 2 + 16];
    unsigned short n = 0;
    const uint64_t pass = (uint64_t)(uintptr_t)faults_called;
#define ADD(...) filter[n++] = (struct sock_filter)__VA_ARGS__
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)pass, 0, 3));
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(pass >> 32), 0, 1));
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (int i = 0; i < CALLS; i++) {
        ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number, 0, 1));
        ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    }
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const struct sock_fprog program = {n, filter};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        abort();
}

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **environment)
{
    const char *path = getenv("FAULTS");
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) abort();
    void *map = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) abort();
    unsetenv("LD_PRELOAD");
    if (!getenv("FAULTS_MEMORY_ONLY")) catch_calls();
    shared = map;
    return real_main(argc, argv, environment);
}

SHOWN int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                            void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                            void *stack_end);
SHOWN int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                            void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                            void *stack_end)
{
    real_main = main;
    int (*start)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                 void (*)(void), void *);
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
