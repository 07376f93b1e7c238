/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits are measured where profiles of other batch sizes are known. */
#include <math.h>

#include "test.h"

#include "policy/limit_plan.h"

enum { LIMITS = 9, ROUNDS = 300 };

/* A GPU as it is: time and power under each limit, and how wrong the figures of single limits are. */
struct board {
    double needed_w, share, exponent;
    double wrong[LIMITS]; /* as fractions */
};

static double limit_at(size_t place)
{
    return 300.0 - 25.0 * (double)place;
}

static struct fly_power_point truth(const struct board *board, size_t place)
{
    double limit_w = limit_at(place), r = fmin(limit_w / board->needed_w, 1.0);

    return (struct fly_power_point){limit_w, fmin(limit_w, board->needed_w),
                                    (1.0 + board->share * (pow(r, -board->exponent) - 1.0)) *
                                        (1.0 + board->wrong[place])};
}

static struct limit_curve curve_of(const struct board *board, struct fly_power_point points[LIMITS])
{
    for (size_t i = 0; i < LIMITS; i++)
        points[i] = truth(board, LIMITS - 1 - i);
    return (struct limit_curve){points, LIMITS};
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
                                    .max_power_w = 300.0};
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

/* Boards at random, and another batch size that draws less or more: few limits are needed, and none missed.
 */
static void test_finds_the_best(void **state)
{
    struct fly_power_point points[2][LIMITS];
    size_t measured = 0;
    uint64_t random = 3;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct board board = {.needed_w = 180.0 + 150.0 * test_uniform(&random),
                              .share = 0.03 + 0.2 * test_uniform(&random),
                              .exponent = 2.0 + 2.0 * test_uniform(&random)};
        struct board near = board, far = board;
        struct limit_curve curves[2];
        double excess;

        near.needed_w *= 0.9 + 0.2 * test_uniform(&random);
        far.needed_w *= 0.7 + 0.6 * test_uniform(&random);
        curves[0] = curve_of(&near, points[0]);
        curves[1] = curve_of(&far, points[1]);
        measured += measure(&board, curves, 2, test_uniform(&random), LIMITS, &excess);
        if (excess > 0.01)
            fail_msg("round %d: %.2f %% above the best", round, 100.0 * excess);
    }
    assert_true(measured < ROUNDS * 6);
}

/* The same where the other profiles have only some limits. */
static void test_sparse_curves(void **state)
{
    static const struct board board = {.needed_w = 260.0, .share = 0.1, .exponent = 3.0};
    struct fly_power_point points[LIMITS];
    struct limit_curve curve = curve_of(&board, points);
    double excess;

    (void)state;
    points[0] = points[3];
    points[1] = points[4];
    points[2] = points[LIMITS - 1];
    curve.count = 3;
    assert_true(measure(&board, &curve, 1, 0.5, LIMITS, &excess) < 7);
    check_double(excess, 0.0);
}

/* Without another profile, and where what is known scatters, every limit is measured. */
static void test_all(void **state)
{
    struct board board = {.needed_w = 260.0, .share = 0.1, .exponent = 3.0}, scatters = board;
    struct fly_power_point points[LIMITS];
    struct limit_curve curve = curve_of(&board, points);
    double excess;

    (void)state;
    assert_int_equal(measure(&board, NULL, 0, 0.5, LIMITS, &excess), LIMITS);
    assert_true(measure(&board, &curve, 1, 0.5, LIMITS, &excess) < 6);
    scatters.wrong[4] = 0.1;
    curve = curve_of(&scatters, points);
    assert_int_equal(measure(&board, &curve, 1, 0.5, LIMITS, &excess), LIMITS);
    curve = curve_of(&board, points);
    for (size_t i = 2; i < LIMITS; i += 2)
        scatters.wrong[i] = 0.1;
    assert_int_equal(measure(&scatters, &curve, 1, 0.5, LIMITS, &excess), LIMITS);
}

/* A limit of which no figure can be had is no neighbour; without the highest one, all others are measured. */
static void test_left_out(void **state)
{
    static const struct board board = {.needed_w = 260.0, .share = 0.1, .exponent = 3.0};
    struct fly_power_point points[LIMITS];
    struct limit_curve curve = curve_of(&board, points);
    double excess;

    (void)state;
    for (size_t i = 1; i < LIMITS; i++) {
        assert_true(measure(&board, &curve, 1, 0.5, i, &excess) < 6);
        check_double(excess, 0.0);
    }
    assert_int_equal(measure(&board, &curve, 1, 0.5, 0, &excess), LIMITS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_best),
        cmocka_unit_test(test_sparse_curves),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
