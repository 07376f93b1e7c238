/* SPDX-License-Identifier: Apache-2.0 */
/* The network of the demo: it learns, its gradient is one, and the same seed trains to the same bits. */
#include "test.h"

#include <stdlib.h>

#include "demo/digits_network.h"

static const char *const job = "test";

static struct digits_plan plan_of(uint32_t seed, uint64_t index, uint32_t batch_size, uint32_t max_epochs,
                                  uint32_t target)
{
    return (struct digits_plan){.seed = {luck_key(seed, job), index},
                                .batch_size = batch_size,
                                .max_epochs = max_epochs,
                                .target = target};
}

/* FNV-1a over the bits of all weights. */
static uint64_t digest(const struct digits_weights *weights)
{
    const float *values = (const float *)weights;
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < sizeof *weights / sizeof values[0]; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }
    return hash;
}

static void test_data_is_whole(void **state)
{
    uint32_t of_digit[DIGITS_CLASSES] = {0}, ink = 0;

    (void)state;
    for (int i = 0; i < DIGITS_COUNT; i++) {
        assert_in_range(digits_labels[i], 0, DIGITS_CLASSES - 1);
        of_digit[digits_labels[i]]++;
        for (int p = 0; p < DIGITS_PIXELS; p++) {
            assert_in_range(digits_pixels[i][p], 0, DIGITS_PIXEL_MAX);
            ink += digits_pixels[i][p];
        }
    }
    for (int k = 0; k < DIGITS_CLASSES; k++)
        assert_in_range(of_digit[k], 170, 185);
    assert_int_equal(ink, 561718);
}

/* Nothing is held out twice the same way here, so some splits are harder than others. */
static void test_network_learns(void **state)
{
    enum { SPLITS = 6 };
    uint32_t correct = 0;

    (void)state;
    for (uint32_t seed = 1; seed <= SPLITS; seed++) {
        struct digits_plan plan = plan_of(seed, 0, 16, 60, DIGITS_HELD_OUT);
        struct digits_result result = digits_train(&plan);

        assert_false(result.reached);
        assert_int_equal(result.epochs, 60);
        assert_in_range(result.correct, DIGITS_HELD_OUT * 95 / 100, DIGITS_HELD_OUT - 1);
        correct += result.correct;
    }
    assert_in_range(correct, SPLITS * DIGITS_HELD_OUT * 97 / 100, SPLITS * DIGITS_HELD_OUT);
}

static void test_training_ends_at_its_target(void **state)
{
    struct digits_plan plan = plan_of(1, 3, 32, 100, 340);
    struct digits_result first = digits_train(&plan), shorter;

    (void)state;
    assert_true(first.reached && first.correct >= 340 && first.epochs < 100);
    plan.max_epochs = first.epochs;
    shorter = digits_train(&plan);
    assert_true(shorter.reached);
    assert_int_equal(shorter.epochs, first.epochs);
    plan.max_epochs = first.epochs - 1;
    shorter = digits_train(&plan);
    assert_false(shorter.reached);
    assert_int_equal(shorter.epochs, first.epochs - 1);
}

static void test_large_batches_need_more_epochs(void **state)
{
    static const uint32_t sizes[] = {16, 128, 512};
    uint32_t before = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        uint32_t epochs = 0;

        for (uint64_t index = 0; index < 5; index++) {
            struct digits_plan plan = plan_of(1, index, sizes[i], 200, 342);

            epochs += digits_train(&plan).epochs;
        }
        assert_true(epochs > before + before / 3);
        before = epochs;
    }
}

/* Recorded: results of trainings, and weights; the same on every machine, compiler and sanitizer. */
static void test_same_seed_same_bits(void **state)
{
    static const struct {
        uint32_t seed, batch_size, epochs, correct;
        uint64_t index;
    } recorded[] = {
        {1, 8, 15, 347, 0},
        {1, 64, 19, 347, 5},
        {9, 512, 51, 346, 2},
        {4294967295, 100, 27, 346, 77},
    };
    struct digits_training training;
    struct digits_seed seed = {luck_key(7, job), 1};

    (void)state;
    for (size_t i = 0; i < COUNT(recorded); i++) {
        struct digits_plan plan =
            plan_of(recorded[i].seed, recorded[i].index, recorded[i].batch_size, 100, 346);
        struct digits_result result = digits_train(&plan);

        if (result.epochs != recorded[i].epochs || result.correct != recorded[i].correct)
            fail_msg("case %zu: %u epochs, %u correct", i, result.epochs, result.correct);
    }
    digits_begin(&training, &seed, 24);
    if (digest(&training.weights) != 0x2a3a77214e0d277cu)
        fail_msg("digest of the first weights: %#llx", (unsigned long long)digest(&training.weights));
    digits_epoch(&training);
    while (digits_step(&training)) {
    }
    if (digest(&training.weights) != 0x34384499cd0e6c5u)
        fail_msg("digest after an epoch: %#llx", (unsigned long long)digest(&training.weights));
}

/* The slope of the loss along one weight, from both sides. */
static double slope(struct digits_weights *weights, float *weight, const uint16_t *images, uint32_t count)
{
    struct digits_weights unused;
    const float kept = *weight, step = 1e-3f;
    double above, below, width;

    *weight = kept + step;
    width = (double)*weight;
    above = (double)digits_loss(weights, images, count, &unused);
    *weight = kept - step;
    width -= (double)*weight;
    below = (double)digits_loss(weights, images, count, &unused);
    *weight = kept;
    return (above - below) / width;
}

static void test_gradient_is_the_slope_of_the_loss(void **state)
{
    struct digits_seed seed = {luck_key(2, job), 0};
    struct digits_weights weights, gradient;
    uint16_t images[40];
    uint64_t random = 5;
    double worst = 0.0;

    (void)state;
    digits_weights_init(&weights, &seed);
    for (size_t i = 0; i < COUNT(images); i++)
        images[i] = (uint16_t)test_below(&random, DIGITS_COUNT);
    digits_loss(&weights, images, COUNT(images), &gradient);
    for (int i = 0; i < 400; i++) {
        size_t at = test_below(&random, sizeof weights / sizeof(float));
        double expected = slope(&weights, (float *)&weights + at, images, COUNT(images));
        double found = (double)((const float *)&gradient)[at];

        /* A unit that turns on or off within the step, or single precision, costs a little. */
        worst = fmax(worst, fabs(found - expected) / (fabs(expected) + 0.05));
    }
    if (worst > 0.05)
        fail_msg("a gradient is off by %g of itself", worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_is_whole),
        cmocka_unit_test(test_network_learns),
        cmocka_unit_test(test_training_ends_at_its_target),
        cmocka_unit_test(test_large_batches_need_more_epochs),
        cmocka_unit_test(test_same_seed_same_bits),
        cmocka_unit_test(test_gradient_is_the_slope_of_the_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
