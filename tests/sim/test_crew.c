/* SPDX-License-Identifier: Apache-2.0 */
/* Work on several threads: every unit once, output in order, failures told. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/error.h"
#include "sim/crew.h"

static int append(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)out_error;
    buffer_append(context, bytes, count);
    return 0;
}

enum { WRITERS = 4, UNITS = 40, LINES = 40000 };

struct writing {
    struct ordered_output output;
    pthread_mutex_t lock;
    uint64_t next;
};

static void *write_units(void *context)
{
    struct writing *writing = context;

    for (;;) {
        struct ordered_part part;
        uint64_t unit;
        char line[32];

        pthread_mutex_lock(&writing->lock);
        unit = writing->next++;
        pthread_mutex_unlock(&writing->lock);
        if (unit >= UNITS)
            return NULL;
        ordered_part_begin(&part, &writing->output, unit);
        for (int i = 0; i < LINES; i++)
            ordered_part_write(&part, line,
                               (size_t)snprintf(line, sizeof line, "%llu %d\n", (unsigned long long)unit, i));
        ordered_part_end(&part);
    }
}

/* More than a part may hold, by more threads than processors: everything comes, in order. */
static void test_ordered_output(void **state)
{
    struct writing writing = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct buffer text;
    pthread_t threads[WRITERS];
    const char *at;

    (void)state;
    buffer_init(&text, 64 << 20);
    ordered_output_init(&writing.output, append, &text);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_units, &writing), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(text.error, 0);
    at = text.data;
    for (unsigned long unit = 0; unit < UNITS; unit++) {
        for (unsigned long i = 0; i < LINES; i++) {
            char *end;

            assert_int_equal(strtoul(at, &end, 10), unit);
            assert_int_equal(strtoul(end, &end, 10), i);
            at = end + 1;
        }
    }
    assert_int_equal(*at, '\0');
    ordered_output_deinit(&writing.output);
    buffer_deinit(&text);
}

enum { CREW_UNITS = 500, BAD_UNIT = 321 };

struct labour {
    atomic_int times[CREW_UNITS];
    bool fails;
};

static int count_unit(void *context, struct crew_unit *unit, struct fly_error *out_error)
{
    struct labour *labour = context;

    atomic_fetch_add(&labour->times[unit->number], 1);
    return labour->fails && unit->number == BAD_UNIT ? error_set(out_error, FLY_EDATA, "made-up failure") : 0;
}

/* Every unit once, on however many threads; the first failure ends it with its own message. */
static void test_crew(void **state)
{
    static const unsigned threads[] = {0, 1, 2, 7, CREW_THREADS_MAX};

    (void)state;
    for (size_t i = 0; i < COUNT(threads); i++) {
        static struct labour labour;
        struct fly_error error = {0};
        struct crew_plan plan = {
            .units = CREW_UNITS, .threads = threads[i], .run = count_unit, .context = &labour};

        memset(&labour, 0, sizeof labour);
        assert_int_equal(crew_run(&plan, &error), 0);
        for (size_t u = 0; u < CREW_UNITS; u++)
            assert_int_equal(atomic_load(&labour.times[u]), 1);
        labour.fails = true;
        assert_int_equal(crew_run(&plan, &error), FLY_EDATA);
        assert_string_equal(error.text, "made-up failure");
    }
    assert_int_equal(crew_run(&(struct crew_plan){.threads = CREW_THREADS_MAX + 1}, NULL), FLY_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ordered_output), cmocka_unit_test(test_crew)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
