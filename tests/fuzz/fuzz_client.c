// SPDX-License-Identifier: MIT
// Fuzz target: what a server answers to our client. A thread takes connections on a socket and sends the input, in two
// parts where its first byte says so; the client must take it or say in one line why not. Addresses of servers are the
// input, too.
// Parsers: src/server/client.c
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "dragoman/server.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    uint8_t data[1 << 16]; // a copy: the thread may still send when the client has gone
    size_t size, cut;      // cut: bytes of the first part
    int listener;
    pthread_mutex_t lock;
} answer = {.lock = PTHREAD_MUTEX_INITIALIZER};
static char url[128];

static void *serve(void *arg)
{
    (void)arg;
    for (;;) {
        char request[4096];
        const int fd = accept(answer.listener, NULL, NULL);
        if (fd < 0) abort();
        if (recv(fd, request, sizeof request, 0) > 0) {
            pthread_mutex_lock(&answer.lock);
            (void)!send(fd, answer.data, answer.cut, MSG_NOSIGNAL);
            (void)!send(fd, answer.data + answer.cut, answer.size - answer.cut, MSG_NOSIGNAL);
            pthread_mutex_unlock(&answer.lock);
        }
        close(fd);
    }
    return NULL;
}

static void start(void)
{
    pthread_t thread;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "/tmp/dragoman-fuzz-client-%d", (int)getpid());
    snprintf(url, sizeof url, "unix:%s", at.sun_path);
    answer.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (answer.listener < 0 || bind(answer.listener, (const struct sockaddr *)&at, sizeof at) != 0 ||
        listen(answer.listener, 8) != 0 || pthread_create(&thread, NULL, serve, NULL) != 0)
        abort();
}

// The body of an answer is JSON; the head says how long it is.
static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    const uint8_t *end = size > 1 ? memmem(data + 1, size - 1, "\r\n\r\n", 4) : NULL;
    if (!end) return LLVMFuzzerMutate(data, size, max);
    const size_t at = (size_t)(end - data) + 4;
    char head[128];
    if (fuzz_below(r, 6) == 0) return 1 + fuzz_fields(data + 1, size - 1, max - 1, "\r\n", r);
    size = at + fuzz_json(data + at, size - at, max - at, r);
    const int n = snprintf(head, sizeof head, "HTTP/1.1 %d OK\r\nContent-Length: %zu\r\n\r\n",
                           fuzz_below(r, 4) ? 200 : 400, size - at);
    return fuzz_put(data, size, max, (fuzz_span){1, at}, head, (size_t)n);
}
FUZZ_MUTATOR(mutate)

static void open_any(const uint8_t *data, size_t size)
{
    char text[256];
    dgm_client *c = NULL;
    dgm_error err = {""};
    const size_t n = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, n);
    text[n] = 0;
    if (dgm_client_open(&c, text, "key", &err) != DGM_OK && (!err.text[0] || strchr(err.text, '\n'))) abort();
    dgm_client_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {"a", "b"};
    dgm_client *c = NULL;
    dgm_results *r = NULL;
    dgm_error err = {""};
    if (!url[0]) start();
    if (size < 1 || size > sizeof answer.data) return 0;
    if (data[0] == 'u') {
        open_any(data + 1, size - 1);
        return 0;
    }
    pthread_mutex_lock(&answer.lock);
    memcpy(answer.data, data + 1, size - 1);
    answer.size = size - 1;
    answer.cut = data[0] < size ? data[0] : 0;
    pthread_mutex_unlock(&answer.lock);
    if (dgm_client_open(&c, url, NULL, &err) != DGM_OK) abort();
    for (int i = 0; i < 2; i++) { // over a connection that the server closed, too
        if (dgm_client_translate(c, "en", "de", texts, 1 + (data[0] & 1), NULL, &r, &err) != DGM_OK) {
            if (r || !err.text[0] || strchr(err.text, '\n')) abort();
        } else if (r->count != 1u + (data[0] & 1)) {
            abort();
        }
        dgm_results_free(&r);
    }
    dgm_client_close(&c);
    return 0;
}
