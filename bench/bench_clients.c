/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store under load: clients propose and report one after the other without a pause, compared with bare
 * durable inserts over the same number of connections to the same database.
 *
 *     bench_clients STORE [JOBS]
 *
 * STORE is a path that does not exist yet, or postgresql://...; JOBS is the address that the clients use: the
 * store itself, unless you name a service in front of it (unix:..., http://...). Each client is a thread with
 * its own handle and its own job; in the last row all share one job. A pair is two durable requests, an
 * insert is one. Nothing here passes or fails.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare_inserts.h"
#include "base/clock.h"
#include "base/math/order.h"
#include "job/core/definition.h"
#include "job/jobs.h"

enum { CLIENTS_MAX = 32, TIMES_MAX = 1 << 15, PHASES = 3 };
static const double phase_s = 1.0;

__attribute__((noreturn)) static void die(const char *what, const struct fly_error *error)
{
    fprintf(stderr, "bench_clients: %s: %s\n", what, error->text);
    exit(1);
}

struct client {
    const char *address;
    char job[JOB_NAME_MAX + 1];
    pthread_t thread;
    pthread_barrier_t *start;
    void (*act)(struct client *client);
    struct bare bare;
    struct jobs jobs;
    size_t count;
    double times_s[TIMES_MAX];
};

static void insert(struct client *client)
{
    bare_insert(&client->bare);
}

static void propose_and_report(struct client *client)
{
    static const double limits_w[] = {100, 150, 200};
    const struct job_question question = {
        .job = client->job,
        .hardware = {
            .gpu_model = "GPU", .gpu_count = 1, .world_size = 1, .limits_w = limits_w, .limit_count = 3}};
    struct job_epoch epoch = {.job = client->job,
                              .attempt = 1,
                              .epoch = 1,
                              .metric = 0.95,
                              .energy_j = 1000.0 + (double)(client->count % 7),
                              .time_s = 10};
    struct job_proposal proposal;
    struct job_answered answered;
    struct fly_error error;

    if (client->jobs.backend->propose(client->jobs.self, &question, &proposal, &error) < 0)
        die("propose", &error);
    epoch.trial = proposal.trial;
    if (client->jobs.backend->report(client->jobs.self, &epoch, &answered, &error) < 0)
        die("report", &error);
}

static void *run(void *data)
{
    struct client *client = data;
    struct mono_time begin, end = {0};

    pthread_barrier_wait(client->start);
    begin = mono_now();
    for (client->count = 0; client->count < TIMES_MAX && mono_elapsed_s(begin, mono_now()) < phase_s;
         client->count++) {
        struct mono_time start = mono_now();

        client->act(client);
        end = mono_now();
        client->times_s[client->count] = mono_elapsed_s(start, end);
    }
    return NULL;
}

static void define(struct client *client)
{
    static const uint32_t sizes[] = {8, 16, 32, 64, 128};
    struct fly_job_definition definition = job_definition_default;
    struct job_registered registered;
    struct fly_error error;

    definition.name = client->job;
    definition.batch_sizes = sizes;
    definition.batch_count = sizeof sizes / sizeof sizes[0];
    definition.default_batch_size = 32;
    definition.target = FLY_TARGET_AT_LEAST;
    definition.target_metric = 0.9;
    definition.max_epochs = 20;
    if (jobs_open(client->address, NULL, &client->jobs, &error) < 0 ||
        client->jobs.backend->define(client->jobs.self, &definition, &registered, &error) < 0)
        die(client->address, &error);
}

struct figures {
    double per_s, median_s, p99_s;
};

static struct figures measure(struct client *clients, unsigned count, void (*act)(struct client *client))
{
    static double times_s[(size_t)CLIENTS_MAX * TIMES_MAX];
    struct mono_time begin;
    pthread_barrier_t start;
    double took_s;
    size_t all = 0;

    pthread_barrier_init(&start, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        clients[i].start = &start;
        clients[i].act = act;
        if (pthread_create(&clients[i].thread, NULL, run, &clients[i]) != 0)
            exit(1);
    }
    pthread_barrier_wait(&start);
    begin = mono_now();
    for (unsigned i = 0; i < count; i++) {
        pthread_join(clients[i].thread, NULL);
        memcpy(times_s + all, clients[i].times_s, clients[i].count * sizeof times_s[0]);
        all += clients[i].count;
    }
    took_s = mono_elapsed_s(begin, mono_now());
    pthread_barrier_destroy(&start);
    qsort(times_s, all, sizeof times_s[0], order_doubles);
    return (struct figures){(double)all / took_s, times_s[all / 2], times_s[all * 99 / 100]};
}

static struct figures better(struct figures a, struct figures b)
{
    return a.per_s > b.per_s ? a : b;
}

/* Measures both in turns, so that they see the same disk; takes the best turn of each. */
static void compare(const char *store, const char *jobs, unsigned count, bool shared)
{
    static struct client clients[CLIENTS_MAX];
    struct figures pairs = {0}, inserts = {0};

    for (unsigned i = 0; i < count; i++) {
        clients[i].address = jobs;
        snprintf(clients[i].job, sizeof clients[i].job, "load-%u%s-%u", count, shared ? "-shared" : "",
                 shared ? 0 : i);
        bare_open(&clients[i].bare, store);
        define(&clients[i]);
    }
    for (int turn = 0; turn < PHASES; turn++) {
        inserts = better(inserts, measure(clients, count, insert));
        pairs = better(pairs, measure(clients, count, propose_and_report));
    }
    for (unsigned i = 0; i < count; i++) {
        jobs_close(&clients[i].jobs);
        bare_close(&clients[i].bare);
    }
    printf(
        "%2u client%s  %6.0f pairs/s  median %7.2f ms  p99 %7.2f ms (%.1f clients/rate); bare inserts %6.0f "
        "/s  p99 %7.2f ms: pairs at %.2f of their rate\n",
        count,
        count == 1 ? "        "
        : shared   ? "s, 1 job"
                   : "s       ",
        pairs.per_s, 1e3 * pairs.median_s, 1e3 * pairs.p99_s, pairs.p99_s * pairs.per_s / count,
        inserts.per_s, 1e3 * inserts.p99_s, pairs.per_s / inserts.per_s);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const unsigned counts[] = {1, 8, CLIENTS_MAX};

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: bench_clients STORE [JOBS]\n");
        return 64;
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        compare(argv[1], argv[argc - 1], counts[i], false);
    compare(argv[1], argv[argc - 1], CLIENTS_MAX, true);
    return 0;
}
