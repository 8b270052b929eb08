// SPDX-License-Identifier: MIT
// What a process may still do after its start: see dragoman/server.h.
//
// Landlock, by its three calls of the system, says which files can be read; it holds for the thread that enters and
// those that it starts. seccomp, by libseccomp, says which calls are left, for all threads. Both are for good. Structs
// and bits of Landlock stand here because headers of a system are often older than its kernel.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef DGM_HAVE_SECCOMP
#include <seccomp.h>
#endif

#include "base/mem.h"
#include "format/directed.h"
#include "server/server_private.h"

// ---- files ----------------------------------------------------------------------------------------

enum {
    LANDLOCK_CREATE = 444,
    LANDLOCK_ADD = 445,
    LANDLOCK_RESTRICT = 446
}; // the same on every architecture
enum { LANDLOCK_VERSION = 1, LANDLOCK_BENEATH = 1 };
enum { READ_FILE = 1 << 2, READ_DIR = 1 << 3 };

typedef struct ruleset {
    uint64_t files, net, scoped; // what is forbidden unless a rule allows it
} ruleset;

typedef struct __attribute__((packed)) beneath {
    uint64_t allowed;
    int32_t folder;
} beneath;

// Everything that this version of Landlock knows: each added some rights.
static ruleset everything(long version, size_t *size)
{
    const int rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
    ruleset r = {.files = ((uint64_t)1 << rights) - 1};
    *size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    if (version >= 4) r.net = 3;    // to bind and to connect TCP
    if (version >= 6) r.scoped = 1; // to connect to abstract sockets
    return r;
}

static dgm_status allow_reading(int rules, const char *path, dgm_error *err)
{
    struct stat st;
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) return DGM_OK; // what is not there cannot be read
    beneath b = {.allowed = READ_FILE, .folder = fd};
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) b.allowed |= READ_DIR;
    const long failed = syscall(LANDLOCK_ADD, rules, LANDLOCK_BENEATH, &b, 0);
    const int code = errno;
    close(fd);
    DGM_FAIL_IF(failed, err, DGM_ERR_IO, "sandbox: '%s': %s", path, strerror(code));
    return DGM_OK;
}

dgm_status dgm_sandbox_files(const char *const *readable, size_t count, dgm_error *err)
{
    size_t size = 0;
    const long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
    DGM_FAIL_IF(version < 1, err, DGM_ERR_UNSUPPORTED,
                "sandbox: this kernel has no Landlock, or it is switched off (Linux 5.13 or later "
                "has it): %s",
                strerror(errno));
    const ruleset r = everything(version, &size);
    const int rules = (int)syscall(LANDLOCK_CREATE, &r, size, 0);
    DGM_FAIL_IF(rules < 0, err, DGM_ERR_UNSUPPORTED, "sandbox: Landlock refuses its rules: %s",
                strerror(errno));
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < count && st == DGM_OK; i++) st = allow_reading(rules, readable[i], err);
    if (st == DGM_OK &&
        (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(LANDLOCK_RESTRICT, rules, 0) != 0))
        st = dgm_fail(err, DGM_ERR_UNSUPPORTED, "sandbox: Landlock refuses: %s", strerror(errno));
    close(rules);
    return st;
}

// ---- calls of the system --------------------------------------------------------------------------

#ifdef DGM_HAVE_SECCOMP
// Reading, memory, threads, clocks, and sockets that are open. Nothing that makes a socket, a process or a name.
static const char *const allowed[] = {"read",
                                      "readv",
                                      "pread64",
                                      "preadv",
                                      "preadv2",
                                      "write",
                                      "writev",
                                      "pwrite64",
                                      "close",
                                      "close_range",
                                      "lseek",
                                      "fstat",
                                      "fstat64",
                                      "newfstatat",
                                      "fstatat64",
                                      "stat",
                                      "lstat",
                                      "statx",
                                      "fstatfs",
                                      "statfs",
                                      "access",
                                      "faccessat",
                                      "faccessat2",
                                      "readlink",
                                      "readlinkat",
                                      "getdents64",
                                      "getcwd",
                                      "fcntl",
                                      "dup",
                                      "dup3",
                                      "flock",
                                      "fadvise64",
                                      "fsync",
                                      "fdatasync",
                                      "mmap",
                                      "mprotect",
                                      "munmap",
                                      "mremap",
                                      "madvise",
                                      "brk",
                                      "mincore",
                                      "membarrier",
                                      "futex",
                                      "set_robust_list",
                                      "rseq",
                                      "set_tid_address",
                                      "sched_yield",
                                      "sched_getaffinity",
                                      "sched_setaffinity",
                                      "sched_getparam",
                                      "sched_getscheduler",
                                      "sched_get_priority_min",
                                      "sched_get_priority_max",
                                      "getcpu",
                                      "getpid",
                                      "gettid",
                                      "getppid",
                                      "getuid",
                                      "geteuid",
                                      "getgid",
                                      "getegid",
                                      "getrandom",
                                      "clock_gettime",
                                      "clock_getres",
                                      "clock_nanosleep",
                                      "nanosleep",
                                      "gettimeofday",
                                      "times",
                                      "getrusage",
                                      "sysinfo",
                                      "uname",
                                      "getrlimit",
                                      "getpriority",
                                      "rt_sigaction",
                                      "rt_sigprocmask",
                                      "rt_sigreturn",
                                      "rt_sigtimedwait",
                                      "rt_sigsuspend",
                                      "rt_sigpending",
                                      "sigaltstack",
                                      "restart_syscall",
                                      "exit",
                                      "exit_group",
                                      "poll",
                                      "ppoll",
                                      "select",
                                      "pselect6",
                                      "epoll_create1",
                                      "epoll_ctl",
                                      "epoll_wait",
                                      "epoll_pwait",
                                      "epoll_pwait2",
                                      "eventfd2",
                                      "timerfd_create",
                                      "timerfd_settime",
                                      "timerfd_gettime",
                                      "pipe2",
                                      "accept",
                                      "accept4",
                                      "recvfrom",
                                      "recvmsg",
                                      "sendto",
                                      "sendmsg",
                                      "sendfile",
                                      "shutdown",
                                      "getsockname",
                                      "getpeername",
                                      "getsockopt",
                                      "setsockopt"};

static int allow_some(scmp_filter_ctx ctx)
{
    const uint64_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    const int nothing = SCMP_ACT_ERRNO(ENOSYS), io[] = {FIONBIO, FIONREAD, TCGETS};
    const int names[] = {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA};
    int failed = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, writing, 0));
#ifdef __x86_64__
    failed |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
                               SCMP_A1(SCMP_CMP_MASKED_EQ, writing, 0));
#endif
    // Flags of these are behind a pointer, where a filter cannot look: the C library then takes the older calls.
    failed |= seccomp_rule_add(ctx, (uint32_t)nothing, SCMP_SYS(clone3), 0);
    failed |= seccomp_rule_add(ctx, (uint32_t)nothing, SCMP_SYS(openat2), 0);
    failed |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    failed |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                               SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
    // Limits can be read, not changed.
    failed |=
        seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_EQ, 0, 0));
    for (size_t i = 0; i < sizeof io / sizeof io[0]; i++)
        failed |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                   SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)io[i], 0));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        failed |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
                                   SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)names[i], 0));
    return failed;
}

static int allow_all(scmp_filter_ctx ctx)
{
    int failed = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0] && !failed; i++) {
        const int number = seccomp_syscall_resolve_name(allowed[i]);
        // Of another architecture, or newer than the library.
        if (number != __NR_SCMP_ERROR && number >= 0)
            failed = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0);
    }
    return failed ? failed : allow_some(ctx);
}

dgm_status dgm_sandbox_calls(dgm_error *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!ctx) return dgm_no_memory(err);
    int failed = allow_all(ctx);
    if (!failed) failed = seccomp_load(ctx);
    seccomp_release(ctx);
    DGM_FAIL_IF(failed, err, DGM_ERR_UNSUPPORTED,
                "sandbox: this kernel takes no filter of calls (seccomp): %s", strerror(-failed));
    return DGM_OK;
}
#else
dgm_status dgm_sandbox_calls(dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "sandbox: this program was built without libseccomp");
}
#endif

// ---- a server -------------------------------------------------------------------------------------

// What any program reads: libraries that are loaded late, clocks, the machine's size, its own numbers.
static const char *const system_paths[] = {"/usr",
                                           "/lib",
                                           "/lib64",
                                           "/etc/ld.so.cache",
                                           "/etc/localtime",
                                           "/etc/fonts",
                                           "/proc/self",
                                           "/proc/meminfo",
                                           "/proc/cpuinfo",
                                           "/sys/fs/cgroup",
                                           "/sys/devices/system",
                                           "/dev/null",
                                           "/dev/urandom"};

typedef struct path_list {
    const char **items;
    char **made; // copies among them
    size_t count, cap, made_count, made_cap;
} path_list;

static dgm_status add(path_list *l, const char *path, dgm_error *err)
{
    DGM_TRY(dgm_grow(&l->items, &l->cap, l->count + 1, sizeof *l->items, err));
    l->items[l->count++] = path;
    return DGM_OK;
}

// The folder that a file lies in: one that is put in its place can be read, too.
static dgm_status add_folder_of(path_list *l, const char *path, dgm_error *err)
{
    if (!path || !path[0]) return DGM_OK;
    const char *slash = strrchr(path, '/');
    DGM_TRY(dgm_grow(&l->made, &l->made_cap, l->made_count + 1, sizeof *l->made, err));
    char *folder =
        !slash ? dgm_strdup(".") : dgm_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!folder) return dgm_no_memory(err);
    l->made[l->made_count++] = folder;
    return add(l, folder, err);
}

// "en-de=FILE,fr-de=FILE".
static dgm_status add_systems(path_list *l, const char *systems, dgm_error *err)
{
    for (dgm_text item; systems && (item = dgm_directed_next(&systems)).size;) {
        char *own = dgm_strndup(item.data, item.size);
        const dgm_status st = own ? add_folder_of(l, dgm_directed_read(own).name, err) : dgm_no_memory(err);
        dgm_free(own);
        DGM_TRY(st);
    }
    return DGM_OK;
}

static dgm_status list_paths(const dgm_server *s, path_list *l, dgm_error *err)
{
    const dgm_server_options *o = &s->options;
    char self[PATH_MAX] = "";
    for (size_t i = 0; i < sizeof system_paths / sizeof system_paths[0]; i++)
        DGM_TRY(add(l, system_paths[i], err));
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) DGM_TRY(add_folder_of(l, self, err));
    if (o->models_dir) DGM_TRY(add(l, o->models_dir, err));
    DGM_TRY(add_folder_of(l, o->api_keys, err));
    DGM_TRY(add_systems(l, s->settings.phrase_system, err));
    DGM_TRY(add_folder_of(l, s->settings.dictionary, err));
    for (size_t i = 0; i < DGM_TERMS_MAX && s->settings.terms[i]; i++)
        DGM_TRY(add_folder_of(l, dgm_directed_read(s->settings.terms[i]).name, err));
    for (size_t i = 0; i < dgm_pool_files(s); i++)
        DGM_TRY(add_folder_of(l, dgm_pool_file(s, i), err));
    return DGM_OK;
}

// Of `auto`: what this system has not is said, and the rest stands.
static dgm_status or_note(dgm_server *s, dgm_status st, dgm_error *err)
{
    if (st != DGM_ERR_UNSUPPORTED || s->options.sandbox != DGM_SANDBOX_AUTO) return st;
    dgm_server_note(s, "%s; going on without it", err->text);
    return DGM_OK;
}

dgm_status dgm_server_confine_files(dgm_server *s, dgm_error *err)
{
    path_list l = {0};
    dgm_error own;
    if (s->options.sandbox == DGM_SANDBOX_OFF) return DGM_OK;
    const char *device = s->settings.device;
    DGM_FAIL_IF(device && strncmp(device, "cpu", 3) != 0, err, DGM_ERR_UNSUPPORTED,
                "the sandbox is for the CPU: a device such as '%.40s' opens files of its driver "
                "when it likes",
                device);
    dgm_status st = list_paths(s, &l, &own);
    if (st == DGM_OK) st = or_note(s, dgm_sandbox_files(l.items, l.count, &own), &own);
    for (size_t i = 0; i < l.made_count; i++) dgm_free(l.made[i]);
    dgm_free(l.made);
    dgm_free(l.items);
    return st == DGM_OK ? DGM_OK : dgm_fail(err, st, "%s", own.text);
}

dgm_status dgm_server_confine_calls(dgm_server *s, dgm_error *err)
{
    dgm_error own;
    if (s->options.sandbox == DGM_SANDBOX_OFF) return DGM_OK;
    const dgm_status st = or_note(s, dgm_sandbox_calls(&own), &own);
    return st == DGM_OK ? DGM_OK : dgm_fail(err, st, "%s", own.text);
}
