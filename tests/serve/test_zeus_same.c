/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same trainings through the public batch-size server's routes and through the
 * service's own, each over a store of its own: equal choices, one by one.
 */
#include "zeus_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "v1_client.h"

enum { SEQUENCES = 8, STEPS = 60, OPEN_MAX = 4, BODY_MAX = 1024 };

/* A trial that runs. */
struct running {
    struct zeus_given given;
    int epoch;
    double energy_j;
};

static struct zeus_fixture public;
static struct job_fixture own;

static int setup(void **state)
{
    (void)state;
    zeus_fixture_open(&public);
    job_fixture_open(&own);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    job_fixture_close(&own);
    zeus_fixture_close(&public);
    return 0;
}

/* ---- both ---- */

struct wish {
    double beta;                            /* 0: none */
    int rounds, explorations, window, seed; /* seed -1: none */
    bool higher;
};

static void define_both(const struct wish *wish)
{
    char body[BODY_MAX], beta[32] = "null", more[128] = "";
    json_t *job = json_pack("{s:i, s:i, s:i, s:b, s:o, s:o}", "num_pruning_rounds", wish->rounds,
                            "mab_num_explorations", wish->explorations, "window_size", wish->window,
                            "higher_is_better_metric", (int)wish->higher, "beta_knob",
                            wish->beta > 0 ? json_real(wish->beta) : json_null(), "mab_seed",
                            wish->seed >= 0 ? json_integer(wish->seed) : json_null());

    zeus_fixture_register(&public, job);
    if (wish->beta > 0)
        snprintf(beta, sizeof beta, "%g", wish->beta);
    if (wish->seed >= 0)
        snprintf(more, sizeof more, ", \"seed\": %d, \"generator\": \"numpy\"", wish->seed);
    snprintf(body, sizeof body,
             "{\"batch_sizes\": [8, 16, 32, 64, 128], \"default_batch_size\": 32, "
             "\"objective\": {\"kind\": \"cost\", \"eta\": 0.5}, \"beta\": %s, \"target\": \"%s\", "
             "\"target_metric\": 0.9, \"max_epochs\": 20, \"policy\": \"zeus-server\", "
             "\"pruning_rounds\": %d, \"explorations\": %d, \"window\": %d%s}",
             beta, wish->higher ? "at_least" : "at_most", wish->rounds, wish->explorations, wish->window,
             more);
    v1_do(&own.jobs, 200, "PUT", "/v1/jobs/job-1", body);
}

static struct zeus_given propose_both(void)
{
    struct zeus_given given = zeus_fixture_predict(&public, "job-1");
    struct v1_answer answer =
        v1_well(&own.jobs, 200, "POST", "/v1/jobs/job-1/trials",
                "{\"tries\": 0, \"hardware\": {\"gpu_model\": \"V100\", \"gpu_count\": 1, "
                "\"world_size\": 1, \"max_power_w\": 250}}");

    check_double(v1_number(&answer, "trial"), (double)given.trial);
    check_double(v1_number(&answer, "batch_size"), (double)given.batch_size);
    v1_answer_free(&answer);
    return given;
}

/* Whether it stops. */
static bool report_both(struct running *running, double energy_j, double metric)
{
    char body[BODY_MAX], target[128], number[32];
    struct v1_answer answer;
    bool converged, stop;

    running->epoch++;
    running->energy_j += energy_j;
    stop =
        zeus_fixture_report(&public, running->given, running->epoch, running->energy_j, metric, &converged);
    snprintf(number, sizeof number, "%.17g", running->energy_j / (100 + running->given.batch_size));
    snprintf(target, sizeof target, "/v1/jobs/job-1/trials/%u/epochs", (unsigned)running->given.trial);
    snprintf(body, sizeof body,
             "{\"attempt\": 1, \"epoch\": %d, \"metric\": %.17g, \"energy_j\": %.17g, \"time_s\": %s}",
             running->epoch, metric, running->energy_j, number);
    answer = v1_well(&own.jobs, 200, "POST", target, body);
    assert_int_equal(strcmp(v1_text(&answer, "answer"), "go_on") != 0, stop);
    assert_int_equal(stop && strcmp(v1_text(&answer, "outcome"), "reached") == 0, converged);
    v1_answer_free(&answer);
    return stop;
}

static void leave_both(const struct running *running)
{
    char target[128];

    assert_int_equal(zeus_fixture_leave(&public, running->given), 200);
    snprintf(target, sizeof target, "/v1/jobs/job-1/trials/%u/end", (unsigned)running->given.trial);
    v1_do(&own.jobs, 200, "POST", target, "{\"attempt\": 1, \"outcome\": \"crashed\"}");
}

/* ---- sequences ---- */

static struct wish any_wish(uint64_t *random, int number)
{
    return (struct wish){.beta = number % 3 == 0 ? 0.0 : 1.2 + test_uniform(random),
                         .rounds = (int)test_below(random, 4),
                         .explorations = (int)test_below(random, 4),
                         .window = (int)test_below(random, 3) * 3,
                         .seed = number % 2 == 0 ? number : -1,
                         .higher = number % 5 != 0};
}

/* One epoch of a trial: now and then its client goes, with or without a word, or all wait for a day. */
static bool step(uint64_t *random, struct running *running, bool higher)
{
    double drawn = test_uniform(random), good = higher ? 0.95 : 0.1, bad = higher ? 0.1 : 3.0;
    double energy_j = (100 + running->given.batch_size) * (0.8 + 0.4 * test_uniform(random));

    if (drawn < 0.04) {
        leave_both(running);
        return true;
    }
    if (drawn < 0.06)
        return true; /* killed */
    if (drawn < 0.07) {
        public.jobs.now_us += (int64_t)86401e6;
        own.now_us += (int64_t)86401e6;
    }
    if (!report_both(running, energy_j, test_uniform(random) < 0.6 ? good : bad))
        return false;
    leave_both(running);
    return true;
}

static void run_sequence(uint64_t *random, int number)
{
    struct running open[OPEN_MAX];
    struct wish wish = any_wish(random, number);
    size_t count = 0, most = 1 + number % OPEN_MAX;

    define_both(&wish);
    for (int i = 0; i < STEPS; i++) {
        while (count < most)
            open[count++] = (struct running){.given = propose_both()};
        for (size_t at = count; at-- > 0;) {
            if (step(random, &open[at], wish.higher))
                open[at] = open[--count];
        }
    }
    assert_int_equal(zeus_fixture_ask(&public, "DELETE", "/jobs", "job-1", ""), 200);
    v1_do(&own.jobs, 204, "DELETE", "/v1/jobs/job-1", NULL);
}

static void test_equal_choices(void **state)
{
    uint64_t random = 20;

    (void)state;
    for (int i = 0; i < SEQUENCES; i++)
        run_sequence(&random, i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_equal_choices, setup, teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
