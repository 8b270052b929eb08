// SPDX-License-Identifier: MIT
// What a process in its sandbox cannot do any more, tried from inside: each time in a process of its own.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "dragoman/server.h"

static char inside[64], outside[80], file[96], secret[96];
static int kept = -1; // opened before the sandbox

static int set_up(void **state)
{
    (void)state;
    snprintf(inside, sizeof inside, "/tmp/dgm_sandbox_%ld", (long)getpid());
    snprintf(outside, sizeof outside, "%s_out", inside);
    snprintf(file, sizeof file, "%s/model", inside);
    snprintf(secret, sizeof secret, "%s/secret", outside);
    if (mkdir(inside, 0700) != 0 || mkdir(outside, 0700) != 0) return -1;
    const char *const both[] = {file, secret};
    for (int i = 0; i < 2; i++) {
        const int fd = open(both[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, "x", 1) != 1) return -1;
        close(fd);
    }
    kept = open(secret, O_WRONLY | O_APPEND | O_CLOEXEC);
    return kept < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(kept);
    unlink(file);
    unlink(secret);
    rmdir(inside);
    rmdir(outside);
    return 0;
}

static bool opens(const char *path, int flags)
{
    const int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static bool connects(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    // Refused by whoever is at the other end means that it was tried.
    return fd >= 0 &&
           (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == ECONNREFUSED);
}

static bool makes_process(void)
{
    const pid_t child = fork();
    if (child == 0) _exit(0);
    return child > 0;
}

static bool runs_program(void)
{
    char *const words[] = {(char[]){"/bin/true"}, NULL};
    execv(words[0], words); // comes back only if it fails
    return false;
}

static void *nothing(void *arg)
{
    return arg;
}

static bool starts_thread(void)
{
    pthread_t t;
    return pthread_create(&t, NULL, nothing, NULL) == 0 && pthread_join(t, NULL) == 0;
}

static void *other_thread(void *arg) // began before the filter
{
    int *pipes = arg;
    char c;
    if (read(pipes[0], &c, 1) != 1) return arg;
    return socket(AF_UNIX, SOCK_STREAM, 0) < 0 && !opens(secret, O_WRONLY) ? NULL : arg;
}

// What is wrong, as bits.
static int try_files(void)
{
    const char *const readable[] = {inside, "/usr", "/lib", "/lib64", "/no/such/folder"};
    dgm_error err;
    const dgm_status st = dgm_sandbox_files(readable, 5, &err);
    if (st == DGM_ERR_UNSUPPORTED) return strncmp(err.text, "sandbox: ", 9) == 0 ? 77 : 99;
    char fresh[128];
    snprintf(fresh, sizeof fresh, "%s/fresh", inside);
    return (st != DGM_OK) | !opens(file, O_RDONLY) << 1 | opens(secret, O_RDONLY) << 2 |
           opens(file, O_WRONLY) << 3 | opens(fresh, O_WRONLY | O_CREAT) << 4 |
           (unlink(file) == 0) << 5 | (write(kept, "y", 1) != 1) << 6;
}

static int try_calls(void)
{
    dgm_error err;
    int pipes[2];
    pthread_t t;
    void *wrong = NULL;
    if (pipe(pipes) != 0 || pthread_create(&t, NULL, other_thread, pipes) != 0) return 99;
    const dgm_status st = dgm_sandbox_calls(&err);
    if (st == DGM_ERR_UNSUPPORTED) return strncmp(err.text, "sandbox: ", 9) == 0 ? 77 : 99;
    const int bits = (st != DGM_OK) | (!opens(file, O_RDONLY) || !starts_thread()) << 1 |
                     opens(secret, O_WRONLY) << 2 | connects() << 3 | makes_process() << 4 |
                     runs_program() << 5 | (unlink(file) == 0) << 6;
    if (write(pipes[1], "!", 1) != 1 || pthread_join(t, &wrong) != 0 || wrong) return 98;
    if (write(kept, "y", 1) != 1) return 97;
    if (rename(file, secret) == 0 || mkdir("/tmp/dgm_sandbox_none", 0700) == 0 ||
        truncate(file, 0) == 0)
        return 96;
    const struct rlimit none = {0, 0};
    return setrlimit(RLIMIT_CORE, &none) == 0 ? 95 : bits;
}

static void in_child(int (*what)(void))
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(what());
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        print_message("this system has no such sandbox, and says so\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_files(void **state)
{
    (void)state;
    in_child(try_files);
}

static void test_calls(void **state)
{
    (void)state;
    in_child(try_calls);
}

// Modes that there are not, and a device that needs more than the sandbox leaves it.
static void test_refused(void **state)
{
    (void)state;
    dgm_server_options o;
    dgm_settings settings;
    dgm_server *s = NULL;
    dgm_error err;
    dgm_server_default(&o);
    o.port = -1;
    o.sandbox = 7;
    assert_int_equal(dgm_server_open(&s, &o, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "sandbox must be 0 to 2, not 7");
    dgm_settings_default(&settings);
    settings.device = "cuda:1";
    o.settings = &settings;
    o.sandbox = DGM_SANDBOX_AUTO;
    o.models[0] = "models/en-de.gguf";
    assert_int_equal(dgm_server_open(&s, &o, &err), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "the sandbox is for the CPU"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
