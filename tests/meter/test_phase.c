/* SPDX-License-Identifier: Apache-2.0 */
/* The moments of a counter's updates, followed in virtual time against counters that keep worse and worse
 * time. */
#include "meter/phase.h"

#include <stdio.h>
#include <stdlib.h>

#include "test.h"

/* A counter of 1 J a millisecond, its sampler, and what the phase was asked at random moments. */
struct made_counter {
    const char *name;
    double stated_s, period_s, jitter_s;
    double drift; /* of its clock against the reader's */
    double slew, slew_from_s, slew_to_s;
    double skipped;     /* share of updates that do not come */
    double sleeps_at_s; /* > 0: its clock goes on by a third of a period */
    double sample_s, latency_s;
    double settles_s; /* when it is to be tracked */
    enum phase_state ends_as;
    double tracked;     /* at least this share of the moments after settles_s, */
    double held;        /* and of these ages this share holds the last update */
    double half_most_s; /* median of half the width of an age */
};

/* The board's clock at a moment of the reader's. */
static double board_s(const struct made_counter *made, double at_s)
{
    double slewed_s = fmin(fmax(at_s - made->slew_from_s, 0.0), made->slew_to_s - made->slew_from_s);
    double slept_s = made->sleeps_at_s > 0.0 && at_s >= made->sleeps_at_s ? 0.37 * made->period_s : 0.0;

    return at_s * (1.0 + made->drift) + slewed_s * made->slew + slept_s;
}

static double random_of(int64_t number, uint64_t stream)
{
    uint64_t random = (uint64_t)number * 0x9e3779b97f4a7c15u + stream;

    (void)test_uniform(&random);
    return test_uniform(&random);
}

/* Gives the last update at or before a moment: its number and when it came. A counter without a period is new
 * at any moment. */
static int64_t last_update(const struct made_counter *made, double at_s, double *out_update_s)
{
    double now_s = board_s(made, at_s);
    int64_t number;

    *out_update_s = at_s;
    if (made->period_s == 0.0)
        return (int64_t)(at_s * 1e6);
    number = (int64_t)floor((now_s - 0.3 * made->period_s) / made->period_s) + 1;
    for (;; number--) {
        double due_s = 0.3 * made->period_s + (double)number * made->period_s;

        if (random_of(number, 1) < made->skipped)
            continue;
        due_s += made->jitter_s * random_of(number, 2);
        if (due_s <= now_s) {
            *out_update_s = at_s - (now_s - due_s) / (1.0 + made->drift);
            return number;
        }
    }
}

static struct mono_time moment(double at_s)
{
    return (struct mono_time){(int64_t)(at_s * 1e9)};
}

static void read_counter(struct phase *phase, const struct made_counter *made, double at_s)
{
    double update_s;
    uint64_t value = (uint64_t)(last_update(made, at_s, &update_s) + 1000) * 1000000;

    phase_take(phase, moment(at_s - 0.5 * made->latency_s), moment(at_s + 0.5 * made->latency_s), value);
}

enum { ASKED = 4000, EXTRAS_MAX = 4096 };

struct outcome {
    int asked, known, held;
    double halves_s[ASKED];
    double extras_s[EXTRAS_MAX];
    int extras;
};

static int order(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;

    return (first > second) - (first < second);
}

static void ask(struct phase *phase, const struct made_counter *made, double at_s, struct outcome *outcome)
{
    double update_s, slack_s = made->latency_s;
    struct phase_age age;

    read_counter(phase, made, at_s);
    (void)last_update(made, at_s, &update_s);
    age = phase_age(phase, moment(at_s), 0.0, INFINITY);
    outcome->asked++;
    if (!age.known)
        return;
    outcome->halves_s[outcome->known++] = 0.5 * (age.high_s - age.low_s);
    outcome->held += at_s - update_s >= age.low_s - slack_s && at_s - update_s <= age.high_s + slack_s;
}

static void follow(struct phase *phase, const struct made_counter *made, double until_s,
                   struct outcome *outcome)
{
    double now_s = 1.0, sample_s = now_s, ask_s = made->settles_s;
    uint64_t random = 5;

    memset(outcome, 0, sizeof *outcome);
    phase_init(phase, made->stated_s);
    while (now_s < until_s) {
        struct mono_time extra = phase_next_read(phase, moment(now_s));
        double extra_s = extra.ns == INT64_MAX ? INFINITY : (double)extra.ns * 1e-9;

        now_s = fmin(fmin(sample_s, ask_s), extra_s);
        if (now_s == extra_s) {
            read_counter(phase, made, now_s);
            phase_extra_read(phase, moment(now_s));
            if (outcome->extras < EXTRAS_MAX)
                outcome->extras_s[outcome->extras++] = now_s;
        } else if (now_s == ask_s) {
            ask(phase, made, now_s, outcome);
            ask_s += 0.01 + 0.3 * test_uniform(&random);
        } else {
            read_counter(phase, made, now_s);
            sample_s += made->sample_s;
        }
    }
}

static void check_extras(const struct outcome *outcome, const char *name)
{
    for (int i = 0; i + 60 < outcome->extras; i++) {
        if (outcome->extras_s[i + 60] - outcome->extras_s[i] < 59.9)
            fail_msg("%s: 61 extra readings in %g s", name, outcome->extras_s[i + 60] - outcome->extras_s[i]);
    }
}

static const struct made_counter counters[] = {
    {"steady, 100 ms", 0.1, 0.1, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 1.4,
     .ends_as = PHASE_TRACKED, .tracked = 0.99, .held = 0.95, .half_most_s = 0.0015},
    {"steady, 20 ms", 0.02, 0.02, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 1.15,
     .ends_as = PHASE_TRACKED, .tracked = 0.99, .held = 0.95, .half_most_s = 0.0015},
    {"101.14 ms, 100 ms stated", 0.1, 0.10114, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 1.4,
     .ends_as = PHASE_TRACKED, .tracked = 0.99, .held = 0.95, .half_most_s = 0.0015},
    {"97 ms, 100 ms stated", 0.1, 0.097, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 2.0,
     .ends_as = PHASE_TRACKED, .tracked = 0.9, .held = 0.95, .half_most_s = 0.003},
    {"50 ms, 100 ms stated", 0.1, 0.05, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 1.4,
     .ends_as = PHASE_STATE_COUNT, .tracked = 0.3, .held = 0.95},
    {"drifts by 100 ppm", 0.1, 0.1, .drift = 100e-6, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 4.0,
     .ends_as = PHASE_TRACKED, .tracked = 0.97, .held = 0.95, .half_most_s = 0.0015},
    {"drifts back by 100 ppm", 0.02, 0.02, .drift = -100e-6, .sample_s = 0.1, .latency_s = 50e-6,
     .settles_s = 4.0, .ends_as = PHASE_TRACKED, .tracked = 0.97, .held = 0.95, .half_most_s = 0.0015},
    {"jitter of 1 ms", 0.1, 0.1, .jitter_s = 0.001, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 20.0,
     .ends_as = PHASE_TRACKED, .tracked = 0.9, .held = 0.95, .half_most_s = 0.002},
    {"jitter of 5 ms", 0.1, 0.1, .jitter_s = 0.005, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 20.0,
     .ends_as = PHASE_TRACKED, .tracked = 0.75, .held = 0.9, .half_most_s = 0.006},
    {"one update of 50 does not come", 0.1, 0.1, .skipped = 0.02, .sample_s = 0.1, .latency_s = 50e-6,
     .settles_s = 20.0, .ends_as = PHASE_TRACKED, .tracked = 0.8, .held = 0.95, .half_most_s = 0.003},
    {"slewed by 500 ppm for a minute", 0.1, 0.1, .slew = 500e-6, .slew_from_s = 60.0, .slew_to_s = 120.0,
     .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 20.0, .ends_as = PHASE_TRACKED, .tracked = 0.8,
     .held = 0.9, .half_most_s = 0.003},
    {"slept", 0.1, 0.1, .sleeps_at_s = 100.0, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 4.0,
     .ends_as = PHASE_TRACKED, .tracked = 0.95, .held = 0.95, .half_most_s = 0.0015},
    {"made when read", 0.1, 0.0, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 1.1,
     .ends_as = PHASE_FRESH, .tracked = 1.0, .held = 1.0, .half_most_s = 0.0003},
    {"made when read, 20 ms stated", 0.02, 0.0, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 1.1,
     .ends_as = PHASE_FRESH, .tracked = 1.0, .held = 1.0, .half_most_s = 0.0003},
    {"1.3 ms, 100 ms stated", 0.1, 0.0013, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 4.0,
     .ends_as = PHASE_FRESH, .tracked = 0.99, .held = 0.99, .half_most_s = 0.0015},
    {"too fast to matter", 0.001, 0.001, .sample_s = 0.1, .settles_s = 60.0, .ends_as = PHASE_NONE},
    {"keeps no time", 0.02, 0.02, .jitter_s = 0.02, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 20.0,
     .ends_as = PHASE_STATE_COUNT},
};

static void test_counters(void **state)
{
    static struct outcome outcome;
    static struct phase phase;

    (void)state;
    for (size_t i = 0; i < COUNT(counters); i++) {
        const struct made_counter *made = &counters[i];
        double half_s, share;

        follow(&phase, made, 300.0, &outcome);
        qsort(outcome.halves_s, (size_t)outcome.known, sizeof(double), order);
        half_s = outcome.known > 0 ? outcome.halves_s[outcome.known / 2] : NAN;
        share = (double)outcome.known / outcome.asked;
        printf(
            "# %-36s known %5.1f %%, held %5.1f %%, half %5.2f ms, period %.4f ms, %d extra readings; %s\n",
            made->name, 100.0 * share, 100.0 * outcome.held / fmax(outcome.known, 1), 1e3 * half_s,
            1e3 * phase.line.period_s, outcome.extras, phase_state_clause(phase.state));
        check_extras(&outcome, made->name);
        if (made->tracked > 0.0 && outcome.held < made->held * outcome.known)
            fail_msg("%s: %d of %d ages hold the update", made->name, outcome.held, outcome.known);
        if (made->ends_as == PHASE_FRESH || made->ends_as == PHASE_NONE)
            assert_int_equal(phase.state, made->ends_as);
        if (share < made->tracked)
            fail_msg("%s: known in %g of the moments", made->name, share);
        if (made->half_most_s > 0.0 && !(half_s <= made->half_most_s))
            fail_msg("%s: half widths of %g s", made->name, half_s);
    }
}

/* What other readings show sharpens an age, and settles whether one more update came. */
static void test_age_by_readings(void **state)
{
    static struct outcome outcome;
    static struct phase phase;
    const struct made_counter *made = &counters[0];
    double update_s, due_s;
    struct phase_age age;

    (void)state;
    follow(&phase, made, 20.0, &outcome);
    (void)last_update(made, 20.0, &update_s);
    due_s = update_s + 2.0 * made->period_s;
    age = phase_age(&phase, moment(due_s), 0.0, INFINITY);
    assert_true(age.known && age.high_s > 0.09 && age.low_s < 0.01); /* it may or may not have come */
    age = phase_age(&phase, moment(due_s), 0.05, INFINITY);
    assert_true(age.known && age.low_s > 0.09);
    age = phase_age(&phase, moment(due_s), 0.0, 0.05);
    assert_true(age.known && age.high_s < 0.01);
    age = phase_age(&phase, moment(due_s + 0.03), 0.0, INFINITY);
    check_close(0.5 * (age.low_s + age.high_s), 0.03, 0.1);
    age = phase_age(&phase, moment(due_s + 0.03), 0.06, INFINITY); /* it was skipped */
    check_close(0.5 * (age.low_s + age.high_s), 0.13, 0.1);
}

/* A counter that was fresh and is updated every 100 ms from then on is taken for fresh no longer. */
static void test_fresh_no_longer(void **state)
{
    static struct outcome outcome;
    static struct phase phase;
    struct made_counter made = {"made when read", 0.1, .sample_s = 0.1, .latency_s = 50e-6, .settles_s = 1.1};
    struct phase_age age;

    (void)state;
    follow(&phase, &made, 5.0, &outcome);
    assert_int_equal(phase.state, PHASE_FRESH);
    age = phase_age(&phase, moment(5.0), 0.0, INFINITY);
    assert_true(age.known && age.low_s == 0.0 && age.high_s == phase.fresh_s);
    age = phase_age(&phase, moment(5.0), 0.001, INFINITY); /* it was there a millisecond ago */
    assert_false(age.known);
    made.period_s = 0.1;
    read_counter(&phase, &made, 5.04);
    assert_int_equal(phase.state, PHASE_FRESH);
    read_counter(&phase, &made, 5.06);
    assert_int_equal(phase.state, PHASE_SEARCHED);
}

/* A busy machine reads late: what lies between the readings is all that they show. */
static void test_fresh_read_late(void **state)
{
    struct phase phase;
    double now_s = 1.0;

    (void)state;
    phase_init(&phase, 0.1);
    phase_take(&phase, moment(now_s), moment(now_s + 50e-6), (uint64_t)(now_s * 1e9));
    for (int i = 0; i < 40 && phase.state != PHASE_FRESH; i++) {
        struct mono_time next = phase_next_read(&phase, moment(now_s + 100e-6));

        assert_true(next.ns != INT64_MAX);
        now_s = fmax((double)next.ns * 1e-9, now_s) + 0.003;
        phase_take(&phase, moment(now_s), moment(now_s + 50e-6), (uint64_t)(now_s * 1e9));
        phase_extra_read(&phase, moment(now_s + 50e-6));
    }
    assert_int_equal(phase.state, PHASE_FRESH);
    assert_true(phase.fresh_s > 0.003 && phase.fresh_s < 0.005);
}

/* After a reading that failed nothing more is asked for a while. */
static void test_failed_reading(void **state)
{
    struct phase phase;

    (void)state;
    phase_init(&phase, 0.1);
    assert_true(phase_next_read(&phase, moment(1.0)).ns == INT64_MAX);
    phase_take(&phase, moment(1.0), moment(1.0), 7000);
    assert_true(phase_next_read(&phase, moment(1.0)).ns == moment(1.0).ns);
    phase_read_failed(&phase, moment(1.0));
    assert_true(phase_next_read(&phase, moment(3.0)).ns == INT64_MAX);
    assert_true(phase_next_read(&phase, moment(7.0)).ns == moment(7.0).ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),        cmocka_unit_test(test_age_by_readings),
        cmocka_unit_test(test_fresh_no_longer), cmocka_unit_test(test_fresh_read_late),
        cmocka_unit_test(test_failed_reading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
