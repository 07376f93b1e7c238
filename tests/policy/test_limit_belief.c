/* SPDX-License-Identifier: Apache-2.0 */
/* What is believed of limits that were not measured. */
#include <math.h>

#include "test.h"

#include "policy/limit_belief.h"

enum { LIMITS = 9, ASKED = 6 };

static double bowl(size_t place)
{
    double apart = (double)place - 4.0;

    return 0.01 * apart * apart - 0.16;
}

/* Two other batch sizes were measured whole; of the own one the first `own` limits. Figures are off by `off`,
 * up and down in turn. */
static struct limit_evidence evidence_of(size_t own, double off)
{
    struct limit_evidence evidence = {.place_count = LIMITS, .octaves = {0.0, 1.0, 2.0}};

    for (size_t i = 0; i < LIMITS; i++)
        evidence.limits[i] = 300.0 - 25.0 * (double)i;
    for (size_t batch = 0; batch < 3; batch++) {
        for (size_t i = 0; i < (batch == 0 ? own : LIMITS); i++)
            evidence.figures[evidence.figure_count++] =
                (struct limit_figure){i, batch, bowl(i) + ((i + batch) % 2 == 0 ? off : -off)};
    }
    return evidence;
}

static struct limit_belief ask(const struct limit_evidence *evidence, double below)
{
    const size_t place = ASKED;
    struct limit_belief belief;

    limit_belief_of(evidence, &place, 1, below, &belief);
    return belief;
}

/* What other batch sizes show is expected here, and is nearly certain where all of them fit. */
static void test_expects_what_others_show(void **state)
{
    struct limit_evidence evidence = evidence_of(3, 0.0);
    struct limit_belief belief = ask(&evidence, bowl(ASKED) - 0.02);

    (void)state;
    check_close(belief.expected, bowl(ASKED), 0.05);
    assert_true(belief.chance < 0.01);
    assert_true(ask(&evidence, bowl(ASKED) + 0.02).chance > 0.99);
}

static void test_chance_grows_with_what_is_asked(void **state)
{
    struct limit_evidence evidence = evidence_of(3, 0.01);
    double last = 0.0;

    (void)state;
    for (double below = -0.5; below < 0.5; below += 0.01) {
        double chance = ask(&evidence, below).chance;

        assert_true(chance >= last && chance <= 1.0);
        last = chance;
    }
    assert_true(last > 0.99);
}

/* Where figures scatter, a limit may be better than it looks. */
static void test_scatter_makes_unsure(void **state)
{
    static const double offs[] = {0.0, 0.005, 0.02, 0.05};
    double last = 0.0;

    (void)state;
    for (size_t i = 0; i < COUNT(offs); i++) {
        struct limit_evidence evidence = evidence_of(4, offs[i]);
        double chance = ask(&evidence, bowl(ASKED) - 0.04).chance;

        assert_true(chance > last);
        last = chance;
    }
    assert_true(last > 0.05);
}

/* So it is where the batch size itself is not as the others are. */
static void test_misfit_makes_unsure(void **state)
{
    struct limit_evidence fits = evidence_of(4, 0.0), differs = fits;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        differs.figures[i].y += i % 2 == 0 ? 0.03 : -0.03;
    assert_true(ask(&differs, bowl(ASKED) - 0.04).chance > 10.0 * ask(&fits, bowl(ASKED) - 0.04).chance);
}

static void test_order_does_not_matter(void **state)
{
    struct limit_evidence evidence = evidence_of(4, 0.01), turned = evidence;
    struct limit_belief one = ask(&evidence, -0.1), other;

    (void)state;
    for (size_t i = 0; i < evidence.figure_count; i++)
        turned.figures[i] = evidence.figures[evidence.figure_count - 1 - i];
    other = ask(&turned, -0.1);
    check_close(other.expected, one.expected, 1e-9);
    check_close(other.chance, one.chance, 1e-6);
}

/* What is above the highest limit's score is told less exactly: it is never the best. */
static void test_steep_rise_is_compressed(void **state)
{
    struct limit_evidence evidence = evidence_of(LIMITS - 1, 0.0);
    const size_t place = LIMITS - 1;
    struct limit_belief belief;

    (void)state;
    for (size_t i = 0; i < evidence.figure_count; i++) {
        if (evidence.figures[i].place == place)
            evidence.figures[i].y = 1.0;
    }
    limit_belief_of(&evidence, &place, 1, 0.0, &belief);
    check_close(belief.expected, 0.1 * log(11.0), 0.1);
    assert_true(belief.chance < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expects_what_others_show),
        cmocka_unit_test(test_chance_grows_with_what_is_asked),
        cmocka_unit_test(test_scatter_makes_unsure),
        cmocka_unit_test(test_misfit_makes_unsure),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_steep_rise_is_compressed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
