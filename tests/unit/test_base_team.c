// SPDX-License-Identifier: MIT
// Teams: every part is run once, whoever comes, goes or sleeps; who has nothing to do leaves.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above.
#include <cmocka.h>
#include <pthread.h>
#include <time.h>

#include "base/mem.h"
#include "base/team.h"

enum { HELPERS = 4, CELLS = 512 };

typedef struct crowd {
    dgm_team *team;
    pthread_t threads[HELPERS];
    atomic_uint alarm;
    atomic_int visits; // how often somebody came to help
} crowd;

static void *help(void *arg)
{
    crowd *c = arg;
    while (atomic_load(&c->alarm) == 0) {
        atomic_fetch_add(&c->visits, 1);
        dgm_team_help(c->team, &c->alarm, 0, dgm_team_patience);
    }
    return NULL;
}

static void gather(crowd *c, int count)
{
    assert_int_equal(dgm_team_open(&c->team, NULL), DGM_OK);
    for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&c->threads[i], NULL, help, c), 0);
    while (atomic_load(&c->visits) < count) nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void dismiss(crowd *c, int count)
{
    atomic_store(&c->alarm, 1);
    for (int i = 0; i < count; i++) pthread_join(c->threads[i], NULL);
    dgm_team_close(&c->team);
    assert_null(c->team);
}

// Plain memory: threads that are not ordered by the team are a race, which TSan sees.
typedef struct board {
    int parts, round;
    int cells[CELLS];
} board;

static void fill(const void *arg, int part)
{
    board *b = (board *)(uintptr_t)arg;
    for (int i = CELLS * part / b->parts; i < CELLS * (part + 1) / b->parts; i++) b->cells[i] += b->round;
}

static void test_every_part_is_run_once(void **state)
{
    (void)state;
    crowd c = {0};
    board b = {0};
    int sum = 0;
    dgm_team_least(0);
    gather(&c, HELPERS);
    for (b.round = 1; b.round < 20000; b.round++) {
        b.parts = 1 + b.round % DGM_TEAM_PARTS;
        dgm_team_run(c.team, fill, &b, b.parts);
        sum += b.round;
        assert_int_equal(b.cells[b.round % CELLS], sum);
    }
    for (int i = 0; i < CELLS; i++) assert_int_equal(b.cells[i], sum);
    b.round = 0;
    while (dgm_team_taken(c.team) == 0) { // helpers that had no core so far
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        dgm_team_run(c.team, fill, &b, b.parts);
    }
    dismiss(&c, HELPERS);
    dgm_team_least(-1);
}

static void test_alone(void **state)
{
    (void)state;
    board b = {.parts = 7, .round = 1};
    dgm_team *team = NULL;
    assert_int_equal(dgm_team_parts(NULL, 1e9, 8), 1);
    assert_false(dgm_team_wants(NULL));
    assert_int_equal(dgm_team_open(&team, NULL), DGM_OK);
    assert_true(dgm_team_wants(team));
    assert_int_equal(dgm_team_parts(team, 1e9, 8), 1); // nobody is there
    dgm_team_run(team, fill, &b, b.parts);             // and nobody is needed
    for (int i = 0; i < CELLS; i++) assert_int_equal(b.cells[i], 1);
    assert_int_equal(dgm_team_taken(team), 0);
    dgm_team_close(&team);
    b.parts = 1;
    dgm_team_run(NULL, fill, &b, 1);
    for (int i = 0; i < CELLS; i++) assert_int_equal(b.cells[i], 2);
}

static void *come(void *arg)
{
    crowd *c = arg;
    dgm_team_help(c->team, &c->alarm, 0, dgm_team_patience);
    return NULL;
}

static void test_who_has_nothing_to_do_leaves(void **state)
{
    (void)state;
    crowd c = {0};
    pthread_t thread;
    assert_int_equal(dgm_team_open(&c.team, NULL), DGM_OK);
    assert_int_equal(pthread_create(&thread, NULL, come, &c), 0);
    pthread_join(thread, NULL); // by itself: the alarm is never given
    assert_int_equal(dgm_team_parts(c.team, 1e9, 8), 1);
    dgm_team_close(&c.team);
}

// Short work is not cut up, long work into as many parts as there are threads for.
static void test_parts(void **state)
{
    (void)state;
    crowd c = {0};
    dgm_team_least(1000);
    gather(&c, 1);
    int parts = 1;
    for (int tries = 0; parts == 1 && tries < 10000; tries++) {
        parts = dgm_team_parts(c.team, 1e6, 8); // 1: it is just about to come again
        if (parts == 1) nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    assert_int_equal(parts, 8);
    assert_int_equal(dgm_team_parts(c.team, 1e6, 1), 1);
    assert_int_equal(dgm_team_parts(c.team, 1999, 8), 1);
    assert_true(dgm_team_parts(c.team, 3000, 8) <= 3);
    dismiss(&c, 1);
    dgm_team_least(-1);
}

// A member that is stopped in its part: the leader waits for it, and works alone from then on.
typedef struct trap {
    atomic_int held;
    pthread_t leader;
} trap;

static void fall_asleep(const void *arg, int part)
{
    trap *t = (trap *)(uintptr_t)arg;
    (void)part;
    if (pthread_equal(pthread_self(), t->leader)) {
        for (int i = 0; i < 20000 && !atomic_load(&t->held); i++) nanosleep(&(struct timespec){0, 100000}, NULL);
    } else {
        atomic_store(&t->held, 1);
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
}

static void test_late_members_are_not_asked_again(void **state)
{
    (void)state;
    crowd c = {0};
    trap t = {.leader = pthread_self()};
    gather(&c, 1);
    dgm_team_run(c.team, fall_asleep, &t, 2);
    assert_int_equal(atomic_load(&t.held), 1);
    assert_false(dgm_team_wants(c.team));
    int operations = 0;
    while (!dgm_team_wants(c.team) && operations < 100000) {
        assert_int_equal(dgm_team_parts(c.team, 1e9, 8), 1);
        operations++;
    }
    assert_in_range(operations, 1, 99999); // for a time only
    dismiss(&c, 1);
}

static void test_full(void **state)
{
    (void)state;
    crowd c = {0};
    assert_int_equal(dgm_team_open(&c.team, NULL), DGM_OK);
    atomic_store(&c.alarm, 1);
    dgm_team_help(c.team, &c.alarm, 0, dgm_team_patience); // an alarm that was given before
    dgm_team_close(&c.team);
    dgm_mem_inject(1, 1);
    dgm_error error;
    assert_int_equal(dgm_team_open(&c.team, &error), DGM_ERR_MEMORY);
    dgm_mem_inject(0, 0);
    assert_null(c.team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_part_is_run_once), cmocka_unit_test(test_alone),
        cmocka_unit_test(test_who_has_nothing_to_do_leaves), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_late_members_are_not_asked_again), cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
