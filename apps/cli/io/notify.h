// SPDX-License-Identifier: MIT
// What a service tells whoever started it: the protocol of systemd's Type=notify, without its library.
#ifndef DGM_APPS_CLI_IO_NOTIFY_H
#define DGM_APPS_CLI_IO_NOTIFY_H

// "READY=1", "STOPPING=1". Nobody listens (NOTIFY_SOCKET is not set): nothing happens.
void notify_open(void); // before a sandbox; without it nobody is told
void notify(const char *state);

#endif
