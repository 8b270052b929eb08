// SPDX-License-Identifier: MIT
// Datagrams to the socket that NOTIFY_SOCKET names.
#define _GNU_SOURCE
#include "io/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int fd = -1; // connected

void notify_open(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@')) return;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@') to.sun_path[0] = 0; // a name without a file
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, size) == 0) return;
    close(fd);
    fd = -1;
}

void notify(const char *state)
{
    if (fd >= 0) (void)!send(fd, state, strlen(state), MSG_NOSIGNAL);
}
