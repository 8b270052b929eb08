// SPDX-License-Identifier: MIT
// Signals that end the program: what must be finished before.
#ifndef DGM_APPS_CLI_IO_INTERRUPT_H
#define DGM_APPS_CLI_IO_INTERRUPT_H

#include <stdbool.h>

// 0, or the signal (SIGINT, SIGTERM, SIGHUP) that came since interrupt_catch; a second one ends the
// program at once.
extern volatile int interrupted;
void interrupt_catch(void);
// While held, such a signal waits: lines that are being written are written whole.
void interrupt_hold(bool hold);
// Ends the program as this signal does, so that a shell or whoever started it can tell.
void end_by_signal(int signal_number);

#endif
