/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a GPU: monotone, bounded, and the law that its header states. */
#include "test.h"

#include "model/gpu_model.h"

enum { CASES = 20000 };

/* Any load on any shape, and a limit that can be set on it. */
struct question {
    const struct gpu_shape *shape;
    struct gpu_load load;
    double batch_size, limit_w, samples;
};

static size_t shape_count(void)
{
    size_t count = 0;

    while (gpu_shapes[count].name != NULL)
        count++;
    return count;
}

static struct question draw(uint64_t *state)
{
    const struct gpu_shape *shape = &gpu_shapes[test_below(state, (uint32_t)shape_count())];

    return (struct question){
        .shape = shape,
        .load = {.sample_s = 1e-6 + test_uniform(state) * 0.1,
                 .step_s = test_uniform(state) * 0.2,
                 .half_busy_batch = 0.5 + test_uniform(state) * 500.0,
                 .nature = {.clock_share = test_uniform(state)}},
        .batch_size = 1 + test_below(state, 4096),
        .limit_w = gpu_limit_w(shape, test_below(state, gpu_limit_count(shape))),
        .samples = 1 + test_below(state, 100000),
    };
}

static struct fly_power_point answer(const struct question *question)
{
    return gpu_work(question->shape, &question->load, question->samples, question->batch_size,
                    question->limit_w);
}

static void test_shapes_make_sense(void **state)
{
    (void)state;
    for (const struct gpu_shape *shape = gpu_shapes; shape->name != NULL; shape++) {
        assert_ptr_equal(gpu_shape_find(shape->name), shape);
        assert_true(0.0 < shape->idle_w && shape->idle_w < shape->lowest_limit_w);
        assert_true(shape->lowest_limit_w < shape->highest_limit_w);
        assert_true(shape->idle_w < shape->busy_w);
        check_double(gpu_limit_w(shape, 0), shape->lowest_limit_w);
        check_double(gpu_limit_w(shape, gpu_limit_count(shape) - 1), shape->highest_limit_w);
    }
    assert_null(gpu_shape_find("abacus"));
}

/* Worked out by hand: b = 48 wants half of 180 W above 70 W; at 100 W a third of that is left. */
static void test_known_values(void **state)
{
    const struct gpu_shape *shape = gpu_shape_find("v100-like");
    const struct gpu_load load = {
        .sample_s = 0.001, .step_s = 0.048, .half_busy_batch = 48.0, .nature = {.clock_share = 0.5}};
    struct fly_power_point at;

    (void)state;
    check_double(gpu_wanted_w(shape, &load, 48.0), 160.0);
    check_close(gpu_clock(shape, 160.0, 100.0), cbrt(1.0 / 3.0), 1e-14);
    at = gpu_work(shape, &load, 480.0, 48.0, 250.0);
    check_double(at.limit_w, 250.0);
    check_double(at.power_w, 160.0);
    check_close(at.time_s, 480.0 * 0.002, 1e-14);
    at = gpu_work(shape, &load, 480.0, 48.0, 100.0);
    check_double(at.power_w, 100.0);
    check_close(at.time_s, 480.0 * 0.002 * (0.5 * cbrt(3.0) + 0.5), 1e-14);
}

static void test_bounded(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct question question = draw(&random);
        struct fly_power_point at = answer(&question);
        double full_clock_s =
            question.samples * (question.load.sample_s + question.load.step_s / question.batch_size);
        double slowest = gpu_clock(question.shape, question.shape->busy_w, question.limit_w);
        double wanted_w = gpu_wanted_w(question.shape, &question.load, question.batch_size);
        double least_w = gpu_power_w(question.shape, wanted_w, question.shape->lowest_clock);

        /* Only a GPU at its lowest clock may draw more than the limit. */
        assert_true(question.shape->idle_w < at.power_w &&
                    at.power_w <= fmax(question.limit_w, least_w) * (1.0 + 1e-15));
        assert_true(at.power_w < question.shape->busy_w);
        assert_true(at.time_s >= full_clock_s * (1.0 - 1e-15));
        assert_true(at.time_s <= full_clock_s / slowest * (1.0 + 1e-14));
    }
}

static void test_monotone_in_limit(void **state)
{
    uint64_t random = 2;

    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct question question = draw(&random);
        struct fly_power_point low = answer(&question), high;

        question.limit_w += test_uniform(&random) * (question.shape->highest_limit_w - question.limit_w);
        high = answer(&question);
        assert_true(high.time_s <= low.time_s && high.power_w >= low.power_w);
    }
}

static void test_monotone_in_batch(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct question question = draw(&random);
        double wanted_w = gpu_wanted_w(question.shape, &question.load, question.batch_size);
        struct fly_power_point small, large;

        question.limit_w = question.shape->busy_w; /* never below what is wanted */
        small = answer(&question);
        question.batch_size += 1 + test_below(&random, 1000);
        large = answer(&question);
        assert_true(gpu_wanted_w(question.shape, &question.load, question.batch_size) > wanted_w);
        assert_true(large.power_w >= small.power_w && large.time_s <= small.time_s);
    }
}

static void test_time_is_in_proportion_to_the_work(void **state)
{
    uint64_t random = 4;

    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct question question = draw(&random);
        struct fly_power_point once = answer(&question), twice;

        question.samples *= 2.0;
        twice = answer(&question);
        check_double(twice.time_s, 2.0 * once.time_s);
        check_double(twice.power_w, once.power_w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_make_sense), cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_bounded),           cmocka_unit_test(test_monotone_in_limit),
        cmocka_unit_test(test_monotone_in_batch), cmocka_unit_test(test_time_is_in_proportion_to_the_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
