/* SPDX-License-Identifier: Apache-2.0 */
/* A program that exits while a thread of it is in a library that cleans up at the exit. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/exit_gate.h"

enum { FINE = 3, CALLED_WHEN_GONE = 4 };

/* A library's memory. */
static atomic_bool is_gone;
static atomic_int calls;

static void clean_up(void)
{
    atomic_store(&is_gone, true);
    usleep(20000); /* what is running comes by meanwhile */
}

static void call_library(useconds_t takes_us)
{
    exit_gate_enter();
    usleep(takes_us);
    if (atomic_load(&is_gone))
        _exit(CALLED_WHEN_GONE);
    atomic_fetch_add(&calls, 1);
    exit_gate_leave();
}

static void *call_for_ever(void *state)
{
    for (;;)
        call_library(*(const useconds_t *)state);
    return NULL;
}

static void call_as_it_ends(void)
{
    call_library(0);
}

static void start(useconds_t *takes_us)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, call_for_ever, takes_us), 0);
    while (atomic_load(&calls) == 0)
        usleep(100);
}

static int status_of(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void exit_with_gate(bool forks)
{
    static useconds_t takes_us = 3000;

    atexit(clean_up);
    atexit(call_as_it_ends); /* whoever exits may still call */
    exit_gate_install();
    exit_gate_install();
    start(&takes_us);
    if (forks) {
        pid_t child = fork(); /* in which nobody is inside, whoever was */

        if (child == 0) {
            alarm(30);
            call_library(0);
            exit(FINE);
        }
        exit(status_of(child));
    }
    exit(FINE);
}

static void test_exit(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        pid_t child = fork();

        if (child == 0)
            exit_with_gate(false);
        assert_int_equal(status_of(child), FINE);
    }
}

static void test_exit_of_fork(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0)
        exit_with_gate(true);
    assert_int_equal(status_of(child), FINE);
}

/* Without the gate the thread is met in the library that is gone. */
static void test_no_gate(void **state)
{
    static useconds_t takes_us = 1000;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        atexit(clean_up);
        start(&takes_us);
        exit(FINE);
    }
    assert_int_equal(status_of(child), CALLED_WHEN_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_exit_of_fork),
        cmocka_unit_test(test_no_gate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
