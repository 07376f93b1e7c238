/* SPDX-License-Identifier: Apache-2.0 */
/* What Prometheus is told. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/process_metrics.h"
#include "http/traffic.h"
#include "serve/metrics.h"

static struct serve_note ended(const char *job, const char *gpu_model, enum trial_outcome outcome,
                               double energy_j)
{
    struct serve_note note = {.ended = true, .outcome = outcome, .energy_j = energy_j};

    snprintf(note.job, sizeof note.job, "%s", job);
    snprintf(note.gpu_model, sizeof note.gpu_model, "%s", gpu_model);
    return note;
}

static void count(struct metrics *metrics, struct serve_note note)
{
    metrics_count(metrics, &note, 0.0);
}

/* Takes the text. */
static void check_text(struct buffer *text, const char *const *there, const char *const *missing)
{
    assert_int_equal(text->error, 0);
    for (; there != NULL && *there != NULL; there++)
        check_contains(text->data, *there);
    for (; missing != NULL && *missing != NULL; missing++) {
        if (strstr(text->data, *missing) != NULL)
            fail_msg("there is '%s' in\n%s", *missing, text->data);
    }
    buffer_deinit(text);
}

static void check_lines(struct metrics *metrics, const char *const *there, const char *const *missing)
{
    struct buffer text;

    buffer_init(&text, 1 << 20);
    process_metrics_write_version(&text);
    metrics_write(metrics, &text);
    check_text(&text, there, missing);
}

static void check_traffic(struct traffic *traffic, const char *const *there, const char *const *missing)
{
    struct buffer text;

    buffer_init(&text, 1 << 20);
    traffic_write(traffic, 3, 2, &text);
    check_text(&text, there, missing);
}

static int new_metrics(void **state)
{
    return metrics_new((struct metrics **)state, NULL);
}

static int free_metrics(void **state)
{
    metrics_free(*state);
    return 0;
}

static void test_nothing_yet(void **state)
{
    check_lines(*state,
                (const char *const[]){"\nflyball_build_info{version=\"0.2.0\"} 1\n",
                                      "\nflyball_decision_seconds_count 0\n", NULL},
                (const char *const[]){"\nflyball_trials_total", "\nflyball_trial_energy_joules_total", NULL});
}

static void test_trials(void **state)
{
    struct serve_note left = ended("words", "", TRIAL_CRASHED, 0.0);

    count(*state, ended("digits", "A100", TRIAL_REACHED, 1000.5));
    count(*state, ended("digits", "A100", TRIAL_REACHED, 0.25));
    count(*state, ended("digits", "A100", TRIAL_STOPPED, NAN));
    count(*state, ended("digits", "H100", TRIAL_EXPIRED, NAN));
    count(*state, ended("words", "", TRIAL_CRASHED, 0.0));
    left.left = true;
    count(*state, left);
    check_lines(
        *state,
        (const char *const[]){
            "\nflyball_trials_total{outcome=\"reached\",training_job=\"digits\",gpu_model=\"A100\"} 2\n",
            "\nflyball_trials_total{outcome=\"stopped\",training_job=\"digits\",gpu_model=\"A100\"} 1\n",
            "\nflyball_trials_total{outcome=\"expired\",training_job=\"digits\",gpu_model=\"H100\"} 1\n",
            "\nflyball_trials_total{outcome=\"crashed\",training_job=\"words\"} 1\n",
            "\nflyball_trials_total{outcome=\"left\",training_job=\"words\"} 1\n",
            "\nflyball_trial_energy_joules_total{training_job=\"digits\",gpu_model=\"A100\"} 1000.75\n",
            NULL},
        (const char *const[]){"joules_total{training_job=\"digits\",gpu_model=\"H100\"}",
                              "joules_total{training_job=\"words\"", "nan", "gpu_model=\"\"",
                              "{job=", "instance=", NULL});
}

/* What a run took after its trial had ended. */
static void test_energy_afterwards(void **state)
{
    struct serve_note more = ended("digits", "A100", TRIAL_REACHED, 500.0);

    count(*state, ended("digits", "A100", TRIAL_REACHED, 2000.0));
    more.ended = false;
    count(*state, more);
    check_lines(
        *state,
        (const char *const[]){
            "\nflyball_trials_total{outcome=\"reached\",training_job=\"digits\",gpu_model=\"A100\"} 1\n",
            "\nflyball_trial_energy_joules_total{training_job=\"digits\",gpu_model=\"A100\"} 2500\n", NULL},
        NULL);
}

static void test_labels_are_escaped(void **state)
{
    count(*state, ended("j", "a \"b\" \\ c\nd", TRIAL_REACHED, 1.0));
    count(*state, ended("k",
                        "V\xc2\x9b"
                        "100",
                        TRIAL_REACHED, 1.0));
    count(*state, ended("k",
                        "V\xe2\x80\xae"
                        "100",
                        TRIAL_REACHED, 1.0)); /* it looks the same: one series */
    check_lines(
        *state,
        (const char *const[]){"gpu_model=\"a \\\"b\\\" \\\\ c?d\"} 1\n", "gpu_model=\"V?100\"} 2\n", NULL},
        NULL);
}

static void test_too_many_series(void **state)
{
    char name[32];

    for (int i = 0; i < METRICS_SERIES_MAX + 10; i++) {
        snprintf(name, sizeof name, "job%d", i);
        count(*state, ended(name, "A100", TRIAL_REACHED, 2.0));
    }
    count(*state, ended("job0", "A100", TRIAL_REACHED, 2.0));
    check_lines(
        *state,
        (const char *const[]){"training_job=\"job0\",gpu_model=\"A100\"} 2\n",
                              "training_job=\"job499\",gpu_model=\"A100\"} 1\n",
                              "{outcome=\"reached\",training_job=\"(other)\",gpu_model=\"(other)\"} 10\n",
                              "joules_total{training_job=\"(other)\",gpu_model=\"(other)\"} 20\n", NULL},
        (const char *const[]){"job500", NULL});
}

static void test_decisions(void **state)
{
    static const double seconds[] = {0.0, 0.001, 0.0011, 0.3, 10.0, 11.0};
    const struct serve_note decided = {.decided = true, .energy_j = NAN};
    const struct serve_note none = {.energy_j = NAN};

    for (size_t i = 0; i < COUNT(seconds); i++)
        metrics_count(*state, &decided, seconds[i]);
    metrics_count(*state, &none, 0.5);
    check_lines(*state,
                (const char *const[]){"_bucket{le=\"0.001\"} 2\n", "_bucket{le=\"0.0025\"} 3\n",
                                      "_bucket{le=\"0.25\"} 3\n", "_bucket{le=\"0.5\"} 4\n",
                                      "_bucket{le=\"10\"} 5\n", "_bucket{le=\"+Inf\"} 6\n",
                                      "_seconds_sum 21.3021\n", "_seconds_count 6\n", NULL},
                NULL);
}

static void test_traffic(void **state)
{
    static struct traffic traffic;

    (void)state;
    traffic_init(&traffic);
    check_traffic(&traffic, NULL, (const char *const[]){"\nflyball_http_requests_total", NULL});
    traffic_count(&traffic, "v1", 200);
    traffic_count(&traffic, "v1", 409);
    traffic_count(&traffic, "none", 404);
    traffic_count(&traffic, "v1", 409);
    check_traffic(&traffic,
                  (const char *const[]){
                      "\nflyball_http_requests_total{family=\"v1\",status=\"200\"} 1\n",
                      "{family=\"v1\",status=\"409\"} 2\n", "{family=\"none\",status=\"404\"} 1\n",
                      "\nflyball_http_connections 3\n", "\nflyball_http_requests_in_flight 2\n", NULL},
                  NULL);
    for (int status = 1000; status < 2000; status++)
        traffic_count(&traffic, "v1", status);
    check_traffic(&traffic, NULL, (const char *const[]){"status=\"1999\"", NULL});
    traffic_deinit(&traffic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_yet, new_metrics, free_metrics),
        cmocka_unit_test_setup_teardown(test_trials, new_metrics, free_metrics),
        cmocka_unit_test_setup_teardown(test_energy_afterwards, new_metrics, free_metrics),
        cmocka_unit_test_setup_teardown(test_labels_are_escaped, new_metrics, free_metrics),
        cmocka_unit_test_setup_teardown(test_too_many_series, new_metrics, free_metrics),
        cmocka_unit_test_setup_teardown(test_decisions, new_metrics, free_metrics),
        cmocka_unit_test(test_traffic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
