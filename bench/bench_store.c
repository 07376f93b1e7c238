/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable appends to a job's log: their rate and their slowest percent, compared in turns with bare durable
 * inserts into a plain table of the same database.
 *
 *     bench_store ADDRESS
 *
 * A path is created and left behind; a server's database should be empty.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare_inserts.h"
#include "base/clock.h"
#include "base/math/order.h"
#include "store/store.h"

enum { TURNS = 10, APPENDS = 100, WRITERS = 4, FILL_AT_ONCE = 1000 };

static void die(const char *text)
{
    fprintf(stderr, "bench_store: %s\n", text);
    exit(1);
}

static struct store *open_store(const char *address)
{
    struct fly_error error;
    struct store *store;

    if (store_open(address, NULL, &store, &error) < 0)
        die(error.text);
    return store;
}

static void append(struct store *store, const char *job, const char *prefix, int count)
{
    struct store_change *change;
    struct fly_error error;
    char key[64];
    int code = store_change_begin(store, job, STORE_MAKE_JOB, &change, &error);

    for (int i = 0; i < count && code == 0; i++) {
        const struct store_event event = {
            .kind = "epoch_reported", .key = key, .body = bare_body, .trial = 1};

        snprintf(key, sizeof key, "%s/%" PRIu64, prefix, store_change_head(change));
        code = store_change_append(change, &event, NULL, &error);
    }
    if (code == 0)
        code = store_change_commit(change, &error);
    if (code < 0)
        die(error.text);
}

struct figures {
    double per_s, median_ms, p99_ms;
};

static struct figures figures_of(double *times_s, size_t count)
{
    double sum_s = 0.0;

    for (size_t i = 0; i < count; i++)
        sum_s += times_s[i];
    qsort(times_s, count, sizeof times_s[0], order_doubles);
    return (struct figures){(double)count / sum_s, times_s[count / 2] * 1e3, times_s[count * 99 / 100] * 1e3};
}

static void bench_one_writer(struct store *store, struct bare *bare, const char *name)
{
    static double ours_s[TURNS * APPENDS], bare_s[TURNS * APPENDS];
    struct figures ours, theirs;

    for (int i = 0; i < TURNS * APPENDS; i++) {
        struct mono_time start = mono_now(), middle;

        append(store, "one writer", "w", 1);
        middle = mono_now();
        bare_insert(bare);
        ours_s[i] = mono_elapsed_s(start, middle);
        bare_s[i] = mono_elapsed_s(middle, mono_now());
    }
    ours = figures_of(ours_s, TURNS * APPENDS);
    theirs = figures_of(bare_s, TURNS * APPENDS);
    printf("%-10s durable appends            %8.0f /s, p99 %7.2f ms; bare inserts %8.0f /s, p99 %7.2f ms: "
           "%.2f of "
           "their rate, %.2f of their p99\n",
           name, ours.per_s, ours.p99_ms, theirs.per_s, theirs.p99_ms, ours.per_s / theirs.per_s,
           ours.p99_ms / theirs.p99_ms);
}

struct writer {
    const char *address;
    pthread_t thread;
    double times_s[TURNS * APPENDS / WRITERS];
};

static void *write_alone(void *state)
{
    struct writer *writer = state;
    struct store *store = open_store(writer->address);
    char prefix[32];

    snprintf(prefix, sizeof prefix, "%p", state);
    for (int i = 0; i < TURNS * APPENDS / WRITERS; i++) {
        struct mono_time start = mono_now();

        append(store, "many writers", prefix, 1);
        writer->times_s[i] = mono_elapsed_s(start, mono_now());
    }
    store_close(store);
    return NULL;
}

static void bench_many_writers(const char *address, const char *name)
{
    static struct writer writers[WRITERS];
    static double times_s[TURNS * APPENDS];
    struct mono_time start = mono_now();
    struct figures figures;
    double elapsed_s;

    for (int i = 0; i < WRITERS; i++) {
        writers[i].address = address;
        if (pthread_create(&writers[i].thread, NULL, write_alone, &writers[i]) != 0)
            die("no thread");
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        memcpy(times_s + (size_t)i * TURNS * APPENDS / WRITERS, writers[i].times_s,
               sizeof writers[i].times_s);
    }
    elapsed_s = mono_elapsed_s(start, mono_now());
    figures = figures_of(times_s, TURNS * APPENDS);
    printf("%-10s %d writers of one job       %8.0f /s in all, median %.2f ms, p99 %.2f ms each\n", name,
           WRITERS, TURNS * APPENDS / elapsed_s, figures.median_ms, figures.p99_ms);
}

static void bench_long_logs(struct store *store, const char *name)
{
    static const int lengths[] = {10, 1000, 100000};
    static double times_s[2 * APPENDS];
    double first_ms = 0.0;
    int events = 0;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct figures figures;

        while (events < lengths[i]) {
            int count = lengths[i] - events < FILL_AT_ONCE ? lengths[i] - events : FILL_AT_ONCE;

            append(store, "long", "fill", count);
            events += count;
        }
        for (int k = 0; k < 2 * APPENDS; k++, events++) {
            struct mono_time start = mono_now();

            append(store, "long", "one", 1);
            times_s[k] = mono_elapsed_s(start, mono_now());
        }
        figures = figures_of(times_s, 2 * APPENDS);
        if (i == 0)
            first_ms = figures.median_ms;
        printf("%-10s append to %6d events     median %7.2f ms, p99 %7.2f ms: %.2f of the shortest log's "
               "median\n",
               name, lengths[i], figures.median_ms, figures.p99_ms, figures.median_ms / first_ms);
    }
}

int main(int argc, char **argv)
{
    struct store *store;
    struct bare bare;
    const char *name;

    if (argc != 2)
        die("usage: bench_store ADDRESS");
    store = open_store(argv[1]);
    bare_open(&bare, argv[1]);
    name = bare.link != NULL ? "PostgreSQL" : "SQLite";
    bench_one_writer(store, &bare, name);
    bench_many_writers(argv[1], name);
    bench_long_logs(store, name);
    bare_close(&bare);
    store_close(store);
    return 0;
}
