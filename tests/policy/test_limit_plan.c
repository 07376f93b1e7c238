/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits are measured where profiles of other batch sizes are known. */
#include <math.h>

#include "test.h"

#include "policy/limit_plan.h"

enum { LIMITS = 9, CURVES = 3, ROUNDS = 100 };

/* A GPU as it is: time and power under each limit, and how wrong the figures of single limits are. */
struct board {
    double needed_w, share, exponent;
    double throttles_w;   /* below it time rises by the square of the limit besides; 0: nowhere */
    double wrong[LIMITS]; /* as fractions, highest limit first */
};

static double limit_at(size_t place)
{
    return 300.0 - 25.0 * (double)place;
}

static struct fly_power_point truth(const struct board *board, size_t place)
{
    double limit_w = limit_at(place), r = fmin(limit_w / board->needed_w, 1.0);
    double time_s = (1.0 + board->share * (pow(r, -board->exponent) - 1.0)) * (1.0 + board->wrong[place]);

    if (limit_w < board->throttles_w)
        time_s *= pow(board->throttles_w / limit_w, 2.0);
    return (struct fly_power_point){limit_w, fmin(limit_w, board->needed_w), time_s};
}

static struct limit_curve curve_of(const struct board *board, double octaves,
                                   struct fly_power_point points[LIMITS])
{
    for (size_t i = 0; i < LIMITS; i++)
        points[i] = truth(board, LIMITS - 1 - i);
    return (struct limit_curve){points, LIMITS, octaves};
}

/* Measures as planned; returns how many limits, and by how much the best of them is above the best of all. */
static size_t measure(const struct board *board, const struct limit_curve *curves, size_t curve_count,
                      double eta, size_t left_out, double *out_excess)
{
    struct limit_arm room[LIMITS];
    const struct limit_arms arms = {.arms = room,
                                    .count = LIMITS,
                                    .open = LIMITS,
                                    .objective = {FLY_OBJECTIVE_COST, eta, INFINITY},
                                    .max_power_w = 300.0,
                                    .indifference = 0.01};
    size_t place = LIMITS, count = 0;
    double best = INFINITY, least = INFINITY;

    for (size_t i = 0; i < LIMITS; i++)
        room[i] = (struct limit_arm){
            .limit = limit_at(i), .time_s = NAN, .power_w = NAN, .left_out = i == left_out};
    while (limit_plan_next(&arms, curves, curve_count, &place)) {
        struct fly_power_point point = truth(board, place);

        assert_true(place < LIMITS && place != left_out && isnan(room[place].time_s));
        if (count++ == 0)
            assert_int_equal(place, left_out == 0 ? 1 : 0);
        room[place].time_s = point.time_s;
        room[place].power_w = point.power_w;
        best = fmin(best, limit_arms_score(&arms, place));
    }
    for (size_t i = 0; i < LIMITS; i++) {
        struct fly_power_point point = truth(board, i);

        if (i != left_out)
            least = fmin(least, limit_arms_score_of(&arms, point.limit_w, point.power_w, point.time_s));
    }
    *out_excess = best / least - 1.0;
    return count;
}

static double between(uint64_t *random, double from, double to)
{
    return from + (to - from) * test_uniform(random);
}

/* About a normal number. */
static double scatter(uint64_t *random)
{
    double sum = -6.0;

    for (int i = 0; i < 12; i++)
        sum += test_uniform(random);
    return sum;
}

static struct board draw_convex(uint64_t *random)
{
    return (struct board){.needed_w = between(random, 180.0, 330.0),
                          .share = between(random, 0.03, 0.23),
                          .exponent = between(random, 2.0, 4.0)};
}

static struct board draw_plateau(uint64_t *random)
{
    struct board board = draw_convex(random);

    board.needed_w = between(random, 80.0, 150.0);
    return board;
}

static struct board draw_throttling(uint64_t *random)
{
    struct board board = draw_convex(random);

    board.throttles_w = between(random, 110.0, 220.0);
    return board;
}

static struct board draw_two_minima(uint64_t *random)
{
    struct board board = draw_convex(random);
    size_t dip = 1 + test_below(random, LIMITS - 2);
    double depth = between(random, 0.02, 0.08);

    board.wrong[dip] = -depth;
    board.wrong[dip - 1] = board.wrong[dip + 1] = -0.6 * depth;
    return board;
}

/* Draws what one batch size has from what the job has, by another need for power and a roughness. */
static struct board draw_batch(const struct board *job, double rough, uint64_t *random)
{
    struct board board = *job;

    board.needed_w *= between(random, 0.85, 1.15);
    for (size_t i = 0; i < LIMITS; i++)
        board.wrong[i] += rough * scatter(random);
    return board;
}

static const struct family {
    const char *name;
    struct board (*draw)(uint64_t *random);
    double rough;
    double most; /* limits that are measured, in the mean */
} families[] = {
    {"convex", draw_convex, 0.0, 4.5},           {"plateau", draw_plateau, 0.0, 7.5},
    {"throttling", draw_throttling, 0.0, 4.5},   {"two minima", draw_two_minima, 0.0, 5.0},
    {"a little rough", draw_convex, 0.005, 5.5}, {"rough", draw_convex, 0.03, 7.5},
};

/* Few limits are needed where figures are smooth, and in hardly any round one is missed that matters. */
static void test_families(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(families); i++) {
        uint64_t random = 3;
        size_t measured = 0, missed = 0;

        for (int round = 0; round < ROUNDS; round++) {
            struct board job = families[i].draw(&random),
                         board = draw_batch(&job, families[i].rough, &random);
            struct fly_power_point points[CURVES][LIMITS];
            struct limit_curve curves[CURVES];
            double excess;

            for (size_t k = 0; k < CURVES; k++) {
                struct board other = draw_batch(&job, families[i].rough, &random);

                curves[k] = curve_of(&other, (double)k + 1.0, points[k]);
            }
            measured += measure(&board, curves, CURVES, test_uniform(&random), LIMITS, &excess);
            missed += excess > 0.01;
        }
        print_message("# %s: %.2f limits, %zu missed\n", families[i].name, (double)measured / ROUNDS, missed);
        if ((double)measured > families[i].most * ROUNDS || missed > ROUNDS / 100)
            fail_msg("%s: %.2f limits of %d measured, the best missed in %zu of %d rounds", families[i].name,
                     (double)measured / ROUNDS, LIMITS, missed, ROUNDS);
    }
}

static const struct board smooth = {.needed_w = 260.0, .share = 0.1, .exponent = 3.0};

/* The same where another profile has only some limits. */
static void test_sparse_curves(void **state)
{
    struct fly_power_point points[2][LIMITS];
    struct limit_curve curves[] = {curve_of(&smooth, 1.0, points[0]), curve_of(&smooth, 2.0, points[1])};
    double excess;

    (void)state;
    points[0][0] = points[0][3];
    points[0][1] = points[0][4];
    points[0][2] = points[0][LIMITS - 1];
    curves[0].count = 3;
    assert_in_range(measure(&smooth, curves, 2, 0.5, LIMITS, &excess), 4, 6);
    check_double(excess, 0.0);
    measure(&smooth, curves, 1, 0.5, LIMITS, &excess);
    check_double(excess, 0.0);
}

/* Without another profile every limit is measured; where figures scatter, all that could be the best. */
static void test_all(void **state)
{
    struct board scatters = smooth;
    struct fly_power_point points[LIMITS];
    struct limit_curve curve = curve_of(&smooth, 1.0, points);
    double excess;

    (void)state;
    for (size_t i = 0; i < LIMITS; i++)
        scatters.wrong[i] = i % 2 == 1 ? 0.05 : -0.05;
    assert_int_equal(measure(&smooth, NULL, 0, 0.5, LIMITS, &excess), LIMITS);
    assert_in_range(measure(&smooth, &curve, 1, 0.5, LIMITS, &excess), 4, 6);
    assert_in_range(measure(&scatters, &curve, 1, 0.5, LIMITS, &excess), LIMITS - 1, LIMITS);
    check_double(excess, 0.0);
    curve = curve_of(&scatters, 1.0, points);
    assert_in_range(measure(&smooth, &curve, 1, 0.5, LIMITS, &excess), LIMITS - 1, LIMITS);
    check_double(excess, 0.0);
}

/* Other profiles that do not fit what is measured are not believed. */
static void test_misleading(void **state)
{
    static const struct board boards[] = {{.needed_w = 110.0, .share = 0.2, .exponent = 4.0},
                                          {.needed_w = 330.0, .share = 0.2, .exponent = 4.0}};
    struct fly_power_point points[2][LIMITS];

    (void)state;
    for (size_t i = 0; i < COUNT(boards); i++) {
        const struct board *other = &boards[1 - i];
        const struct limit_curve curves[] = {curve_of(other, 1.0, points[0]),
                                             curve_of(other, 2.0, points[1])};

        for (double eta = 0.0; eta <= 1.0; eta += 0.25) {
            double excess;
            size_t count = measure(&boards[i], curves, COUNT(curves), eta, LIMITS, &excess);

            if (excess > 0.01)
                fail_msg("board %zu, eta %g: %.2f %% above the best after %zu limits", i, eta, 100.0 * excess,
                         count);
        }
    }
}

/* A limit of which no figure can be had is no neighbour; without the highest one, all others are measured. */
static void test_left_out(void **state)
{
    struct fly_power_point points[LIMITS];
    struct limit_curve curve = curve_of(&smooth, 1.0, points);
    double excess;

    (void)state;
    for (size_t i = 1; i < LIMITS; i++) {
        assert_in_range(measure(&smooth, &curve, 1, 0.5, i, &excess), 3, 6);
        check_double(excess, 0.0);
    }
    assert_int_equal(measure(&smooth, &curve, 1, 0.5, 0, &excess), LIMITS - 1);
}

/* Limits of other profiles that this one does not have say nothing; too many limits are all measured. */
static void test_other_limits(void **state)
{
    enum { MANY = 60 };
    struct fly_power_point points[LIMITS];
    struct limit_curve curve = curve_of(&smooth, 1.0, points);
    struct limit_arm room[MANY];
    const struct limit_arms arms = {.arms = room,
                                    .count = MANY,
                                    .open = MANY,
                                    .objective = {FLY_OBJECTIVE_ENERGY, NAN, INFINITY},
                                    .max_power_w = 300.0};
    size_t count = 0, place = 0;
    double excess;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        room[i] = (struct limit_arm){.limit = 300.0 - (double)i, .time_s = NAN, .power_w = NAN};
    for (; limit_plan_next(&arms, &curve, 1, &place); count++) {
        assert_int_equal(place, count);
        room[place].time_s = 1.0;
        room[place].power_w = room[place].limit;
    }
    assert_int_equal(count, MANY);
    for (size_t i = 0; i < LIMITS; i++)
        points[i].limit_w += 10.0;
    assert_int_equal(measure(&smooth, &curve, 1, 0.5, LIMITS, &excess), LIMITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families), cmocka_unit_test(test_sparse_curves),
        cmocka_unit_test(test_all),      cmocka_unit_test(test_misleading),
        cmocka_unit_test(test_left_out), cmocka_unit_test(test_other_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
