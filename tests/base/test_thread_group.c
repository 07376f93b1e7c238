/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that hang, and owners that do not wait for them. */
#include "test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/pool.h"
#include "base/thread/thread_group.h"

/* An object whose threads hang until they are let go. */
struct thing {
    struct thread_group group;
    unsigned seen; /* threads that looked at it */
};

static atomic_bool let_go;
static atomic_int freed, ran;

static void free_thing(void *of)
{
    atomic_fetch_add(&freed, 1);
    free(of);
}

static struct thing *new_thing(void)
{
    struct thing *thing = calloc(1, sizeof *thing);

    assert_non_null(thing);
    thread_group_init(&thing->group, free_thing, thing);
    return thing;
}

static void start(struct thing *thing, void (*run)(void *state))
{
    pthread_mutex_lock(&thing->group.lock);
    assert_true(thread_group_start(&thing->group, run, thing));
    pthread_mutex_unlock(&thing->group.lock);
}

static void look_until_closing(void *of)
{
    struct thing *thing = of;

    pthread_mutex_lock(&thing->group.lock);
    thing->seen++;
    thread_group_wake(&thing->group);
    while (!thing->group.closing)
        (void)thread_group_wait(&thing->group, MONO_NEVER);
    pthread_mutex_unlock(&thing->group.lock);
}

static void hang(void *of)
{
    (void)of;
    while (!atomic_load(&let_go))
        mono_sleep_s(0.001);
    atomic_fetch_add(&ran, 1);
}

static int prepare(void **state)
{
    (void)state;
    atomic_store(&let_go, false);
    atomic_store(&freed, 0);
    atomic_store(&ran, 0);
    return 0;
}

static void test_threads_that_end_are_waited_for(void **state)
{
    struct thing *thing = new_thing();

    (void)state;
    for (int i = 0; i < 3; i++)
        start(thing, look_until_closing);
    pthread_mutex_lock(&thing->group.lock);
    while (thing->seen < 3)
        (void)thread_group_wait(&thing->group, MONO_NEVER);
    assert_int_equal(thing->group.running, 3);
    pthread_mutex_unlock(&thing->group.lock);
    assert_true(thread_group_end(&thing->group, 3600));
    assert_int_equal(atomic_load(&freed), 0);
    thread_group_leave(&thing->group);
    assert_int_equal(atomic_load(&freed), 1);
    assert_false(left_threads_any());
}

static void test_a_thread_that_hangs_frees(void **state)
{
    struct thing *thing = new_thing();

    (void)state;
    start(thing, hang);
    start(thing, look_until_closing);
    assert_false(thread_group_end(&thing->group, 0.05));
    thread_group_leave(&thing->group);
    assert_true(left_threads_any());
    assert_int_equal(atomic_load(&freed), 0);
    atomic_store(&let_go, true);
    while (left_threads_any())
        mono_sleep_s(0.001);
    assert_int_equal(atomic_load(&freed), 1);
}

/* The lock may be held for ever there, and no thread runs. */
static void test_a_child_waits_for_nothing(void **state)
{
    struct thing *thing = new_thing();
    int status;
    pid_t child;

    (void)state;
    start(thing, look_until_closing);
    pthread_mutex_lock(&thing->group.lock);
    assert_false(thread_group_is_copy(&thing->group));
    child = fork();
    if (child == 0) {
        bool copy = thread_group_is_copy(&thing->group), ended = thread_group_end(&thing->group, 3600);

        thread_group_leave(&thing->group);
        _exit(copy && !ended && atomic_load(&freed) == 0 ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pthread_mutex_unlock(&thing->group.lock);
    assert_true(thread_group_end(&thing->group, 3600));
    thread_group_leave(&thing->group);
    assert_int_equal(atomic_load(&freed), 1);
}

static void drop(void *of)
{
    (void)of;
    atomic_fetch_add(&freed, 1);
}

static void count(void *of)
{
    (void)of;
    atomic_fetch_add(&ran, 1);
}

static void test_a_call_that_returns_is_the_callers(void **state)
{
    (void)state;
    assert_true(apart_run(count, drop, NULL, 3600));
    assert_int_equal(atomic_load(&ran), 1);
    assert_int_equal(atomic_load(&freed), 0);
    assert_false(left_threads_any());
}

static void test_a_call_that_hangs_is_dropped(void **state)
{
    struct apart *both[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        both[i] = apart_begin(hang, drop, NULL);
    assert_true(both[0] != NULL && both[1] != NULL);
    assert_false(apart_finish(both[0], mono_after_s(mono_now(), 0.05)));
    assert_true(left_threads_any());
    atomic_store(&let_go, true);
    assert_true(apart_finish(both[1], MONO_NEVER));
    while (left_threads_any())
        mono_sleep_s(0.001);
    assert_int_equal(atomic_load(&ran), 2);
    assert_int_equal(atomic_load(&freed), 1);
}

static void *count_once(void *of)
{
    count(of);
    return NULL;
}

static void test_a_pool_is_waited_for(void **state)
{
    struct pool pool = {.count = 0};

    (void)state;
    pool_join(&pool);
    for (int i = 0; i < 5; i++)
        assert_int_equal(pool_add(&pool, i % 2 == 0 ? 0 : 256 * 1024, count_once, NULL), 0);
    pool_join(&pool);
    assert_int_equal(atomic_load(&ran), 5);
    assert_int_equal(pool.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_threads_that_end_are_waited_for, prepare),
        cmocka_unit_test_setup(test_a_thread_that_hangs_frees, prepare),
        cmocka_unit_test_setup(test_a_child_waits_for_nothing, prepare),
        cmocka_unit_test_setup(test_a_call_that_returns_is_the_callers, prepare),
        cmocka_unit_test_setup(test_a_call_that_hangs_is_dropped, prepare),
        cmocka_unit_test_setup(test_a_pool_is_waited_for, prepare),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
