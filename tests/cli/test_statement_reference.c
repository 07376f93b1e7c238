/* SPDX-License-Identifier: Apache-2.0 */
/* What a run took and what it would have: random ledgers against a slow reference. */
#include "statement_fixture.h"

/* The integral of a series, piece by piece. */
static long double slow_amount(const struct grid_series *series, double from_s, double to_s, double energy_j)
{
    long double sum = 0.0L;

    for (size_t i = 0; i < series->count; i++) {
        long double low = fmaxl(from_s, (long double)series->periods[i].start_s);
        long double high = fminl(to_s, (long double)series->periods[i].end_s);

        if (high > low)
            sum += (high - low) / ((long double)to_s - from_s) * energy_j / 3.6e6L * series->periods[i].value;
    }
    return sum;
}

struct slow {
    long double energy_j, amount[CARBON_SIGNALS], time_s;
};

/* All slices at one limit of the three; NAN: as they were. */
static struct slow slow_way(const struct statement_fixture *fixture, double limit_w)
{
    struct slow slow = {0};
    long double shift_s = 0.0L;

    for (size_t i = 0; i < fixture->ledgers[0].slice_count; i++) {
        const struct energy_slice *slice = &fixture->slices[0][i];
        long double time_s = (long double)slice->end_s - slice->start_s, energy_j = slice->gpu_j;
        double host_w = slice->limit_w == 0.0 ? 0.0 : 40.0, taken_s;
        const struct fly_power_point *from = NULL, *to = NULL;

        for (size_t j = 0; j < 3; j++) {
            from = statement_points[j].limit_w == slice->limit_w ? &statement_points[j] : from;
            to = statement_points[j].limit_w == limit_w ? &statement_points[j] : to;
        }
        taken_s = (double)time_s;
        if (to != NULL && slice->limit_w == 0.0) {
            shift_s -= time_s;
            continue;
        }
        if (to != NULL && from != NULL && slice->steps > 0.0) {
            taken_s = (double)(time_s * to->time_s / from->time_s);
            energy_j *= to->power_w * to->time_s / (from->power_w * from->time_s);
        }
        if (!isnan(slice->gpu_j)) {
            slow.energy_j += (energy_j + host_w * taken_s) * 1.2L;
            for (int s = 0; s < CARBON_SIGNALS; s++)
                slow.amount[s] += slow_amount(&fixture->answers[s].actual, (double)(slice->start_s + shift_s),
                                              (double)(slice->start_s + shift_s + taken_s),
                                              (double)((energy_j + host_w * taken_s) * 1.2L));
        }
        slow.time_s += taken_s;
        shift_s += taken_s - time_s;
    }
    return slow;
}

static void fill_at_random(struct statement_fixture *fixture, uint64_t *seed)
{
    double at_s = 0.0;

    for (int i = 0; i < 60; i++) {
        static const double limits_w[] = {200.0, 250.0, 300.0, 300.0, 250.0, 0.0, NAN, 390.0};
        double length_s = 60.0 + 240.0 * test_uniform(seed);
        double limit_w = limits_w[test_below(seed, COUNT(limits_w))];
        struct energy_slice *slice = &fixture->slices[0][fixture->ledgers[0].slice_count];

        statement_add_slice(fixture, 0, at_s, length_s, length_s * (50 + 200 * test_uniform(seed)), limit_w);
        slice->steps = test_below(seed, 4) == 0 || limit_w == 0.0 ? 0.0 : 10.0;
        at_s += length_s;
        if (test_below(seed, 10) == 0)
            at_s += 2000.0 * (test_uniform(seed) - 0.3); /* the clock jumps */
    }
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        int64_t at = statement_hours_s - 24 * STATEMENT_HOUR_S, step_s = signal == 0 ? 1800 : 900;

        for (int i = 0; i < STATEMENT_PERIODS_MAX; i++, at += step_s)
            statement_add_value(fixture, signal, at, at + step_s,
                                signal == 0 ? 20.0 + 400.0 * test_uniform(seed) : test_uniform(seed) - 0.2);
    }
    fixture->ledgers[0].head.surroundings = (struct carbon_surroundings){40.0, 1.2};
    fixture->ledgers[0].head.max_slowdown = 1.1;
}

static void random_runs_agree_with_a_slow_reference(void **state)
{
    uint64_t seed = 7;

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct statement_fixture fixture;
        double limits_w[STATEMENT_WAYS] = {NAN, 300.0, 0.0};
        double energy_j = 0.0, amounts[CARBON_SIGNALS] = {0.0};

        statement_begin(&fixture);
        fill_at_random(&fixture, &seed);
        statement_make(&fixture);
        limits_w[STATEMENT_STATIC] = fixture.statement.ways[STATEMENT_STATIC].limit_w;
        for (int way = 0; way < STATEMENT_MIX; way++) {
            const struct statement_figures *figures = &fixture.statement.ways[way];
            struct slow slow = slow_way(&fixture, limits_w[way]);

            check_close(figures->time_s, (double)slow.time_s, 1e-9);
            check_close(figures->energy_j[STATEMENT_ALL], (double)slow.energy_j, 1e-9);
            for (int s = 0; s < CARBON_SIGNALS; s++)
                check_close(figures->amount[s][STATEMENT_ALL], (double)slow.amount[s], 1e-9);
        }
        for (size_t i = 0; i < fixture.statement.period_count; i++) {
            energy_j += fixture.statement.periods[i].energy_j[STATEMENT_ALL];
            for (int s = 0; s < CARBON_SIGNALS; s++)
                amounts[s] += fixture.statement.periods[i].amount[s];
        }
        check_close(energy_j, fixture.statement.ways[0].energy_j[STATEMENT_ALL], 1e-9);
        for (int s = 0; s < CARBON_SIGNALS; s++)
            check_close(amounts[s], fixture.statement.ways[0].amount[s][STATEMENT_ALL], 1e-9);
        statement_end(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_runs_agree_with_a_slow_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
