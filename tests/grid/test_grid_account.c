/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts of the grid against a slow reference that is written down here a second time: of all periods as
 * they were sent, unsettled, it looks for the one that counts between each two borders of anything, and
 * adds up in long double.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text/iso_time.h"
#include "grid/forecast.h"
#include "grid/grid_account.h"
#include "model/grid_series.h"
#include "test_data.h"

enum { HOUR_S = 3600, DAY_S = 86400, RAW_MAX = 20000, SLICES_MAX = 12000, NEAR_MAX = 512 };

/* Far less than what is asked of accounts, 1e-9. */
static const double near = 1e-12;

/* Periods as a provider sends them. */
struct raw {
    struct grid_period periods[RAW_MAX];
    size_t count;
};

/* A grid's figures and the energy used. */
struct scene {
    struct raw actual, published;
    struct energy_slice slices[SLICES_MAX];
    size_t slice_count;
    struct grid_answer answer; /* of the same periods */
};

/* What the reference finds; what is neither actual nor published stands under GRID_UNKNOWN. */
struct reference {
    long double energy_j[GRID_QUALITY_COUNT], grams[GRID_QUALITY_COUNT], all_j, time_s, unmeasured_s;
};

/* The share of the energy that has a figure of that quality; NaN if no energy is known. */
static double share_of(const struct grid_account *account, enum grid_quality quality)
{
    return account->all_j > 0.0 ? account->energy_j[quality] / account->all_j : NAN;
}

/* The shortest stretch of whole seconds that contains all slices. */
static void reach_of(const struct energy_slice *slices, size_t count, int64_t *out_from_s, int64_t *out_to_s)
{
    double from_s = INFINITY, to_s = -INFINITY;

    for (size_t i = 0; i < count; i++) {
        from_s = fmin(from_s, slices[i].start_s);
        to_s = fmax(to_s, slices[i].end_s);
    }
    *out_from_s = (int64_t)floor(from_s);
    *out_to_s = (int64_t)ceil(to_s);
    *out_to_s += *out_to_s == *out_from_s;
}

static void send(struct raw *raw, int64_t start_s, int64_t length_s, double value, enum grid_quality quality,
                 int64_t issued_s)
{
    assert_true(raw->count < RAW_MAX);
    raw->periods[raw->count++] = (struct grid_period){start_s, start_s + length_s, value, quality, issued_s};
}

static void use(struct scene *scene, double start_s, double end_s, double energy_j)
{
    assert_true(scene->slice_count < SLICES_MAX);
    scene->slices[scene->slice_count++] =
        (struct energy_slice){.start_s = start_s, .end_s = end_s, .gpu_j = energy_j};
}

static struct scene *make_scene(void)
{
    struct scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    return scene;
}

static void settle_all(const struct raw *raw, struct grid_series *series)
{
    static const struct grid_kind kind = {
        .quantity = GRID_CARBON, .signal = GRID_AVERAGE, .provider = "test"};

    grid_series_init(series, &kind, 1 << 18);
    for (size_t i = 0; i < raw->count; i++)
        assert_int_equal(grid_series_add(series, &raw->periods[i], NULL), 0);
    assert_int_equal(grid_series_settle(series, NULL), 0);
}

static void free_scene(struct scene *scene)
{
    grid_answer_deinit(&scene->answer);
    free(scene);
}

/* Those of a list that a slice could meet. */
static size_t pick(const struct raw *raw, const struct energy_slice *slice, const struct grid_period **out)
{
    size_t count = 0;

    for (size_t i = 0; i < raw->count; i++) {
        if ((double)raw->periods[i].end_s > slice->start_s &&
            (double)raw->periods[i].start_s < slice->end_s) {
            assert_true(count < NEAR_MAX);
            out[count++] = &raw->periods[i];
        }
    }
    return count;
}

/* The one that counts at a moment: issued last, then the shorter, then the later one; or NULL. */
static const struct grid_period *best_at(const struct grid_period *const *near_by, size_t count,
                                         double time_s)
{
    const struct grid_period *best = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct grid_period *period = near_by[i];
        int64_t length_s = period->end_s - period->start_s;

        if (time_s < (double)period->start_s || time_s >= (double)period->end_s)
            continue;
        if (!(period->value > 0.0 && period->value <= GRID_CARBON_MOST))
            continue;
        if (best == NULL || period->issued_s > best->issued_s ||
            (period->issued_s == best->issued_s && length_s <= best->end_s - best->start_s))
            best = period;
    }
    return best;
}

static double next_border(const struct grid_period *const *near_by, size_t count, double time_s, double end_s)
{
    for (size_t i = 0; i < count; i++) {
        const double borders[] = {(double)near_by[i]->start_s, (double)near_by[i]->end_s};

        for (size_t b = 0; b < 2; b++) {
            if (borders[b] > time_s && borders[b] < end_s)
                end_s = borders[b];
        }
    }
    return end_s;
}

static struct reference count_slowly(const struct scene *scene)
{
    struct reference found = {.all_j = 0.0L};

    for (size_t s = 0; s < scene->slice_count; s++) {
        const struct energy_slice *slice = &scene->slices[s];
        const struct grid_period *actual[NEAR_MAX], *published[NEAR_MAX];
        size_t actual_count = pick(&scene->actual, slice, actual);
        size_t published_count = pick(&scene->published, slice, published);

        found.time_s += (long double)slice->end_s - (long double)slice->start_s;
        if (isnan(slice->gpu_j)) {
            found.unmeasured_s += (long double)slice->end_s - (long double)slice->start_s;
            continue;
        }
        found.all_j += slice->gpu_j;
        for (double at_s = slice->start_s; at_s < slice->end_s;) {
            double end_s = next_border(actual, actual_count, at_s, slice->end_s);
            const struct grid_period *period = best_at(actual, actual_count, at_s);
            enum grid_quality quality = GRID_UNKNOWN;
            long double energy_j;

            end_s = next_border(published, published_count, at_s, end_s);
            if (period != NULL) {
                quality = period->quality;
            } else {
                period = best_at(published, published_count, at_s);
                quality = period != NULL ? GRID_FORECAST : GRID_UNKNOWN;
            }
            energy_j = (long double)slice->gpu_j * ((long double)end_s - at_s) /
                       ((long double)slice->end_s - slice->start_s);
            found.energy_j[quality] += energy_j;
            found.grams[quality] += period != NULL ? energy_j / 3.6e6L * period->value : 0.0L;
            at_s = end_s;
        }
    }
    return found;
}

static struct grid_account count_quickly(const struct scene *scene)
{
    struct grid_account_sum sum = {0};
    struct grid_filler filler;
    struct fly_error error;
    int64_t from_s, to_s;

    reach_of(scene->slices, scene->slice_count, &from_s, &to_s);
    if (grid_filler_init(&filler, &scene->answer, NAN, from_s, to_s, &error) < 0)
        fail_msg("%s", error.text);
    for (size_t i = 0; i < scene->slice_count; i++)
        grid_account_add(&sum, &filler, scene->slices[i].start_s, scene->slices[i].end_s,
                         scene->slices[i].gpu_j);
    for (size_t i = 0; i < filler.filled.count; i++)
        assert_true(i == 0 || filler.filled.periods[i].start_s == filler.filled.periods[i - 1].end_s);
    assert_int_equal(filler.filled.periods[0].start_s, from_s);
    assert_int_equal(filler.filled.periods[filler.filled.count - 1].end_s, to_s);
    grid_filler_deinit(&filler);
    return grid_account_read(&sum);
}

/* Both ways; the quick one's answer. */
static struct grid_account compare(const char *what, struct scene *scene)
{
    struct reference slow;
    struct grid_account quick;
    double guessed_j, parts_j = 0.0, grams = 0.0, shares = 0.0;

    grid_answer_deinit(&scene->answer);
    settle_all(&scene->actual, &scene->answer.actual);
    settle_all(&scene->published, &scene->answer.published);
    slow = count_slowly(scene);
    quick = count_quickly(scene);
    print_message("# %s: %.0f J, %.1f %% actual\n", what, quick.all_j,
                  100 * (share_of(&quick, GRID_MEASURED) + share_of(&quick, GRID_ESTIMATED)));
    for (int i = GRID_MEASURED; i <= GRID_FORECAST; i++) {
        check_close(quick.energy_j[i], (double)slow.energy_j[i], near);
        check_close(quick.amount_by[i], (double)slow.grams[i], near);
    }
    guessed_j =
        quick.energy_j[GRID_OWN_FORECAST] + quick.energy_j[GRID_FALL_BACK] + quick.energy_j[GRID_UNKNOWN];
    check_close(guessed_j, (double)slow.energy_j[GRID_UNKNOWN], near);
    check_close(quick.all_j, (double)slow.all_j, near);
    check_close(quick.time_s, (double)slow.time_s, near);
    check_close(quick.unmeasured_s, (double)slow.unmeasured_s, near);
    for (int i = 0; i < GRID_QUALITY_COUNT; i++) {
        parts_j += quick.energy_j[i];
        grams += quick.amount_by[i];
        shares += share_of(&quick, i);
    }
    check_close(parts_j, quick.all_j, 1e-15);
    check_close(shares, 1.0, 1e-15);
    check_double(quick.amount_by[GRID_UNKNOWN], 0);
    check_close(quick.amount, grams, 1e-15);
    return quick;
}

/* How often, out of 100, something is wrong with a period. */
struct oddities {
    const char *name;
    int64_t step_s, offset_s;
    uint32_t null, zero, absurd, twice, revised, overlapping, absent;
    bool mixed, unordered, jumps, fractions;
    int64_t published_s; /* length of published periods; 0: none */
};

static void send_odd(struct raw *raw, const struct oddities *odd, int64_t start_s, uint64_t *seed)
{
    double value = 50 + 400 * test_uniform(seed);
    enum grid_quality quality = test_below(seed, 3) == 0 ? GRID_ESTIMATED : GRID_MEASURED;
    int64_t issued_s = start_s + odd->step_s;

    if (test_below(seed, 100) < odd->absent)
        return;
    if (test_below(seed, 100) < odd->revised) {
        send(raw, start_s, odd->step_s, value + 30, quality, issued_s + 900);
        send(raw, start_s, odd->step_s, value + 10, quality, issued_s - 900);
    }
    if (test_below(seed, 100) < odd->null)
        value = NAN;
    if (test_below(seed, 100) < odd->zero)
        value = 0.0;
    if (test_below(seed, 100) < odd->absurd)
        value = test_below(seed, 2) == 0 ? -3.0 : INFINITY;
    send(raw, start_s, odd->step_s, value, quality, issued_s);
    if (test_below(seed, 100) < odd->twice)
        send(raw, start_s, odd->step_s, 50 + 400 * test_uniform(seed), quality, issued_s);
    if (test_below(seed, 100) < odd->overlapping)
        send(raw, start_s + 60 * (int64_t)test_below(seed, 60), 300 + 60 * (int64_t)test_below(seed, 100),
             50 + 400 * test_uniform(seed), quality, issued_s - 30 + (int64_t)test_below(seed, 60));
}

static void send_figures(struct scene *scene, const struct oddities *odd, int64_t from_s, int64_t to_s,
                         uint64_t *seed)
{
    static const int64_t lengths[] = {300, 900, 1800, 3600};
    struct oddities now = *odd;

    for (int64_t start_s = from_s + odd->offset_s; start_s < to_s; start_s += now.step_s) {
        if (odd->mixed)
            now.step_s = lengths[test_below(seed, COUNT(lengths))];
        send_odd(&scene->actual, &now, start_s, seed);
    }
    for (int64_t start_s = from_s; odd->published_s > 0 && start_s < to_s; start_s += odd->published_s) {
        if (test_below(seed, 100) < 60)
            send(&scene->published, start_s, odd->published_s, 50 + 400 * test_uniform(seed), GRID_ESTIMATED,
                 start_s - HOUR_S); /* whatever it says, it is a forecast */
    }
    for (size_t i = scene->actual.count; odd->unordered && i > 1; i--) {
        size_t other = test_below(seed, (uint32_t)i);
        struct grid_period kept = scene->actual.periods[i - 1];

        scene->actual.periods[i - 1] = scene->actual.periods[other];
        scene->actual.periods[other] = kept;
    }
}

/* Slices as a training writes them: cut at five minutes and at changes of the limit, by a clock that may
 * jump. */
static void use_energy(struct scene *scene, const struct oddities *odd, double at_s, double end_s,
                       uint64_t *seed)
{
    double off_s = 0.0;

    while (at_s < end_s) {
        double until_s = (floor(at_s / ENERGY_SLICE_BORDER_S) + 1) * ENERGY_SLICE_BORDER_S;

        if (odd->fractions && test_below(seed, 4) == 0)
            until_s = at_s + (until_s - at_s) * (0.01 + 0.98 * test_uniform(seed));
        if (odd->jumps && test_below(seed, 12) == 0)
            off_s += floor(8000 * (test_uniform(seed) - 0.5)) + 0.25;
        use(scene, at_s + off_s, until_s + off_s,
            test_below(seed, 40) == 0 ? NAN : (until_s - at_s) * (80 + 300 * test_uniform(seed)));
        at_s = until_s;
    }
}

static void test_oddities_of_data(void **state)
{
    static const struct oddities cases[] = {
        {.name = "5 min", .step_s = 300, .fractions = true},
        {.name = "15 min", .step_s = 900, .fractions = true},
        {.name = "30 min from :20", .step_s = 1800, .offset_s = 1200, .fractions = true},
        {.name = "60 min", .step_s = 3600},
        {.name = "7 min", .step_s = 420, .offset_s = 77, .fractions = true},
        {.name = "lengths mixed", .step_s = 300, .mixed = true, .fractions = true},
        {.name = "nulls", .step_s = 1800, .null = 20},
        {.name = "zeros", .step_s = 1800, .zero = 20},
        {.name = "absurd", .step_s = 900, .absurd = 20},
        {.name = "absent", .step_s = 900, .absent = 30, .published_s = 1800},
        {.name = "absent, published finer", .step_s = 3600, .absent = 30, .published_s = 300},
        {.name = "twice", .step_s = 1800, .twice = 30},
        {.name = "revised", .step_s = 1800, .revised = 40},
        {.name = "unordered", .step_s = 1800, .unordered = true, .revised = 10, .twice = 10},
        {.name = "overlapping", .step_s = 1800, .overlapping = 60, .unordered = true, .fractions = true},
        {.name = "clock jumps", .step_s = 1800, .jumps = true, .fractions = true},
        {"all", 1800, 1200, 10, 10, 10, 20, 20, 40, 10, true, true, true, true, 1800},
    };
    uint64_t seed = 11;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        /* Five years apart, so that seconds since 1970 are of all usual sizes. */
        int64_t from_s = INT64_C(1577836800) + (int64_t)i * 5 * 365 * DAY_S / 17;
        struct scene *scene = make_scene();

        from_s -= from_s % HOUR_S;
        send_figures(scene, &cases[i], from_s, from_s + 3 * DAY_S, &seed);
        use_energy(scene, &cases[i], (double)from_s + HOUR_S * test_uniform(&seed),
                   (double)from_s + 2 * DAY_S, &seed);
        compare(cases[i].name, scene);
        free_scene(scene);
    }
}

/* Figures of the recorded series as they stand in the file, without any help of the reader's. */
static struct scene *make_recorded(void)
{
    char path[TEST_PATH_MAX], line[512];
    struct scene *scene;
    FILE *file;

    test_data_need("carbon/gb_2023h1.csv", path);
    scene = make_scene();
    file = test_data_open(path);
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[8];
        int64_t start_s;

        assert_true(test_data_split(line, fields, COUNT(fields)) >= 5);
        assert_true(iso_time_parse_utc(fields[0], true, &start_s));
        send(&scene->actual, start_s, 1800, fields[1][0] == '\0' ? NAN : strtod(fields[1], NULL),
             GRID_ESTIMATED, 0);
        send(&scene->published, start_s, 1800, fields[2][0] == '\0' ? NAN : strtod(fields[2], NULL),
             GRID_FORECAST, 0);
    }
    pclose(file);
    return scene;
}

static void test_half_a_year_of_great_britain(void **state)
{
    struct scene *scene = make_recorded();
    struct grid_account account;
    uint64_t seed = 5;

    (void)state;
    for (int64_t at_s = scene->actual.periods[0].start_s;
         at_s < scene->actual.periods[scene->actual.count - 1].end_s - 1600; at_s += 1500)
        use(scene, (double)at_s + 77.5, (double)at_s + 1577.5, 1500 * (100 + 200 * test_uniform(&seed)));
    account = compare("recorded", scene);
    /* Five nulls and five zeros of 8688 half-hours have the forecast. */
    check_close(share_of(&account, GRID_FORECAST), 10.0 / 8688, 0.3);
    check_double(account.energy_j[GRID_UNKNOWN], 0);
    free_scene(scene);
}

/* Takes away what a service that was down never gave. */
static void lose(struct raw *raw, int64_t from_s, int64_t to_s)
{
    size_t kept = 0;

    for (size_t i = 0; i < raw->count; i++) {
        if (raw->periods[i].start_s < from_s || raw->periods[i].start_s >= to_s)
            raw->periods[kept++] = raw->periods[i];
    }
    raw->count = kept;
}

static void test_an_outage_of_91_half_hours(void **state)
{
    struct scene *scene = make_recorded();
    struct grid_account whole, gap, published;
    int64_t start_s, from_s, to_s;
    long double grams = 0.0L;

    (void)state;
    start_s = scene->actual.periods[0].start_s + 40 * DAY_S;
    from_s = start_s + 30 * HOUR_S;
    to_s = from_s + 91 * 1800;
    for (int64_t at_s = start_s; at_s < start_s + 5 * DAY_S; at_s += 300)
        use(scene, (double)at_s, (double)at_s + 300, 300 * 250);
    whole = compare("without outage", scene);
    check_double(share_of(&whole, GRID_ESTIMATED), 1);

    lose(&scene->actual, from_s, to_s);
    published = compare("outage, published before", scene);
    check_close(published.energy_j[GRID_FORECAST], 91 * 1800 * 250, 1e-15);
    check_close(published.amount, whole.amount, 0.1);

    lose(&scene->published, from_s, to_s);
    gap = compare("outage", scene);
    check_close(gap.energy_j[GRID_OWN_FORECAST], 91 * 1800 * 250, 1e-15);
    check_close(gap.energy_j[GRID_ESTIMATED], (5 * DAY_S - 91 * 1800) * 250.0, 1e-15);
    check_double(gap.energy_j[GRID_UNKNOWN], 0);
    /* Each half-hour by what had ended before it. */
    for (int64_t at_s = from_s; at_s < to_s; at_s += 1800) {
        const struct grid_forecast_request request = {
            .actual = &scene->answer.actual, .now_s = at_s, .until_s = at_s + 1800, .yearly_mean = NAN};
        struct grid_period period;

        assert_int_equal(grid_forecast(&request, &period, 1), 1);
        grams += (long double)period.value * 1800 * 250 / 3.6e6L;
    }
    check_close(gap.amount_by[GRID_OWN_FORECAST], (double)grams, near);
    /* It is a guess, but no wild one, and no zero. */
    check_close(gap.amount_by[GRID_OWN_FORECAST], whole.amount - gap.amount_by[GRID_ESTIMATED], 0.5);
    free_scene(scene);
}

/* Some energy without a figure: the amount is of the rest, and the shares say so. */
static void test_unknown_energy_is_counted_apart(void **state)
{
    struct scene *scene = make_scene();
    struct grid_account account;

    (void)state;
    send(&scene->actual, 0, HOUR_S, 100, GRID_MEASURED, 0);
    use(scene, -300, 0, 1.8e6);
    use(scene, 0, 300, 3.6e6);
    use(scene, -150, 150, 3.6e6); /* a clock set back: counts with its own energy */
    account = compare("apart", scene);
    check_close(account.amount, 150, 1e-15);
    check_close(account.energy_j[GRID_UNKNOWN], 3.6e6, 1e-15);
    check_close(share_of(&account, GRID_MEASURED), 0.6, 1e-15);
    check_double(account.time_s, 900);
    free_scene(scene);
}

/* A clock that stood at 1970 before it was set: accounts take no longer, and do not fail. */
static void test_a_clock_that_was_never_set(void **state)
{
    struct scene *scene = make_recorded();
    struct grid_account account;
    double now_s;

    (void)state;
    now_s = (double)scene->actual.periods[1000].start_s;
    use(scene, 12.5, 312.5, 1e5);
    use(scene, now_s, now_s + 300, 2e5);
    use(scene, now_s * 3, now_s * 3 + 300, 4e5);
    account = compare("from 1970 to 2130", scene);
    check_double(account.energy_j[GRID_ESTIMATED], 2e5);
    check_double(account.energy_j[GRID_UNKNOWN], 5e5);
    free_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oddities_of_data),
        cmocka_unit_test(test_half_a_year_of_great_britain),
        cmocka_unit_test(test_an_outage_of_91_half_hours),
        cmocka_unit_test(test_unknown_energy_is_counted_apart),
        cmocka_unit_test(test_a_clock_that_was_never_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
