// SPDX-License-Identifier: MIT
// Signals that end the program; see interrupt.h.
#define _GNU_SOURCE
#include "io/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
enum { CAUGHT = sizeof caught / sizeof caught[0] };

volatile int interrupted;

static void note(int signal_number)
{
    interrupted = signal_number;
}

void interrupt_catch(void)
{
    struct sigaction on = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    struct sigaction old;
    for (int i = 0; i < CAUGHT; i++)
        if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) // nohup
            sigaction(caught[i], &on, NULL);
}

void interrupt_hold(bool hold)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < CAUGHT; i++) sigaddset(&set, caught[i]);
    pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void end_by_signal(int signal_number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    signal(signal_number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(signal_number);
    _Exit(128 + signal_number); // not reached unless the signal cannot end us
}
