/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The energy of short windows against the emulator's truth: cells of a board, a counter, a load and noise,
 * and cells of counters with troubles. A cell fails if a binomial test at 1 % rejects that 95 % of its
 * intervals hold the truth. FLYBALL_TEST_WINDOWS=5000 asks for so many windows of each length in every cell
 * instead of a few in some; FLYBALL_TEST_CELLS=TEXT for the cells whose name contains the text alone.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "window_judge.h"

enum { SHORT_WINDOWS = 160 };

static const double least_covered = 0.95, rejected_below = 0.01;
/* Of the windows of each length. */
static const double least_figures = 0.99;

static const struct {
    const char *name;
    bool averages; /* it tells its power over a second, too, and its counter sums that one */
} models[] = {{"v100", false}, {"a40", true}, {"a100", false}, {"h100", true}};

static const struct {
    const char *name, *settings;
} counters[] = {{"truth", "counter=truth"},
                {"power", "counter=power"},
                {"integrated", "counter=none"},
                {"integrated averages", "counter=none,sensor=second"},
                {"truth, averages beside it", "counter=truth,sensor=second"}};
/* The last two only meet loads that beat with averages. */
enum { COUNTERS_OF_BOARDS = 3 };

static const double noises_w[] = {0.0, 5.0};

/* What counters do besides counting. */
static const struct {
    const char *name, *settings;
} troubles[] = {
    {"late by 0-5 ms", "counter-jitter-ms=5"},
    {"skips 20 %", "counter-skip=0.2"},
    {"updated by reading", "counter-update=read"},
    {"always fresh", "counter-period-ms=0"},
    {"steps of 1 J", "counter-step-mj=1000"},
    {"slews by 500 ppm", "counter-slew-ppm=500,counter-slew-s=60"},
    {"slews by 1000 ppm at once", "counter-slew-ppm=1000,counter-slew-s=40,counter-slew=steps"},
    {"machine sleeps", "suspend-every-s=15,suspend-s=0.137"},
    {"period of 50 ms", "counter-period-ms=50"},
    {"true stamps", "stamps=made"},
    {"false stamps", "stamps=late"},
    {"all at once",
     "counter-jitter-ms=5,counter-skip=0.1,counter-step-mj=100,counter-slew-ppm=300,counter-slew-s="
     "60,suspend-every-s=45,suspend-s=0.071"},
};

static struct tallies {
    unsigned cells, rejected;
} tallies;

static unsigned long long_windows(void)
{
    const char *text = getenv("FLYBALL_TEST_WINDOWS");

    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static bool is_chosen(const char *name)
{
    const char *text = getenv("FLYBALL_TEST_CELLS");

    return text == NULL || strstr(name, text) != NULL;
}

static double percent(size_t part, size_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : NAN;
}

static void print_head(void)
{
    printf("# %-46s %-9s %5s %8s | %29s | %29s\n", "", "", "", "", "the meter's figures, in %",
           "plain ones, in %");
    printf("# %-46s %-9s %5s %8s | %5s %5s %5s %5s %5s | %5s %5s %5s %5s %5s\n", "", "windows of", "",
           "disputed", "had", "error", "p95", "half", "cover", "had", "error", "p95", "half", "cover");
}

static void print_figures(const struct judge_figures *figures, size_t windows)
{
    printf(" | %5.1f %5.2f %5.1f %5.1f %5.1f", percent(figures->count, windows),
           100.0 * figures->error_median, 100.0 * figures->error_p95, 100.0 * figures->half_median,
           percent(figures->covered, figures->count));
}

static void print_finding(const char *cell, const char *span, const struct judge_finding *finding)
{
    printf("# %-46s %-9s %5zu %8.1f", cell, span, finding->windows,
           percent(finding->disputed, finding->windows));
    print_figures(&finding->meter, finding->windows);
    print_figures(&finding->plain, finding->windows);
    printf("\n");
}

/* Measures a cell and prints it; `held` says that its coverage has to be what is promised, and its figures.
 */
static void judge(const char *name, struct judge_case of, bool held)
{
    static const unsigned longest_share = 5; /* the longest windows would take most of the time */
    struct judged_windows spans[JUDGE_SPANS] = {{.windows = NULL}};
    unsigned windows = long_windows();
    size_t covered = 0, figures = 0;
    double chance;

    if (!is_chosen(name))
        return;
    if (tallies.cells == 0)
        print_head();
    for (int i = 0; i < JUDGE_SPANS; i++)
        of.windows[i] = windows > 0 ? windows : SHORT_WINDOWS;
    of.windows[JUDGE_SPANS - 1] = windows / longest_share;
    judge_measure(&of, spans);
    for (int i = 0; i < JUDGE_SPANS; i++) {
        struct judge_finding finding = judge_find(&spans[i]);

        if (finding.windows == 0)
            continue;
        print_finding(name, judge_spans[i].name, &finding);
        if (held && (double)finding.meter.count < least_figures * (double)finding.windows)
            fail_msg("%s: %zu of %zu windows of %s have a figure", name, finding.meter.count, finding.windows,
                     judge_spans[i].name);
        covered += finding.meter.covered;
        figures += finding.meter.count;
    }
    judge_free(spans);
    chance = judge_chance(covered, figures, least_covered);
    tallies.cells++;
    if (chance < rejected_below)
        printf("# %s: %.2f %% of %zu intervals hold the truth; 95 %% is rejected%s\n", name,
               100.0 * (double)covered / (double)figures, figures, held ? "" : " (listed only)");
    tallies.rejected += held && chance < rejected_below;
}

static void test_boards(void **state)
{
    bool all = long_windows() > 0;

    (void)state;
    tallies = (struct tallies){0};
    for (size_t model = 0; model < COUNT(models); model++) {
        for (size_t counter = 0; counter < COUNTERS_OF_BOARDS; counter++) {
            for (unsigned load = WINDOW_STEADY; load <= WINDOW_PERIODIC; load++) {
                for (size_t noise = 0; noise < COUNT(noises_w); noise++) {
                    struct judge_case of = {.model = models[model].name,
                                            .settings = counters[counter].settings,
                                            .noise_w = noises_w[noise],
                                            .load = load,
                                            .seed = 1 + model};
                    char name[96];

                    /* Of the short form every board meets every load once, and every counter. */
                    if (!all && (model != (load + counter) % COUNT(models) || noise != (load + model) % 2))
                        continue;
                    snprintf(name, sizeof name, "%s, %s, %s, noise of %.0f W", models[model].name,
                             counters[counter].name, window_load_name(load), noises_w[noise]);
                    judge(name, of, true);
                }
            }
        }
    }
    if (tallies.cells > 0)
        printf("# %u cells, %u of them rejected\n", tallies.cells, tallies.rejected);
    assert_int_equal(tallies.rejected, 0);
}

static void test_troubles(void **state)
{
    static const unsigned loads[] = {WINDOW_BURSTY, WINDOW_PERIODIC};
    bool all = long_windows() > 0;

    (void)state;
    tallies = (struct tallies){0};
    for (size_t i = 0; i < COUNT(troubles); i++) {
        for (size_t model = 0; model < COUNT(models); model++) {
            for (size_t load = 0; load < COUNT(loads); load++) {
                struct judge_case of = {.model = models[model].name,
                                        .settings = troubles[i].settings,
                                        .noise_w = 1.0,
                                        .load = loads[load],
                                        .seed = 11 + i};
                char name[96];

                if (!all && (model != i % COUNT(models) || load != i / 2 % 2))
                    continue;
                snprintf(name, sizeof name, "%s, %s, %s", models[model].name, troubles[i].name,
                         window_load_name(loads[load]));
                judge(name, of, true);
            }
        }
    }
    if (tallies.cells > 0)
        printf("# %u cells, %u of them rejected\n", tallies.cells, tallies.rejected);
    assert_int_equal(tallies.rejected, 0);
}

/* Loads that keep time with a sensor: their readings are those of another load. Listed, not held to anything.
 */
static void test_beats(void **state)
{
    (void)state;
    if (long_windows() == 0)
        return;
    tallies = (struct tallies){0};
    for (unsigned load = WINDOW_EVERY_530_MS; load < WINDOW_LOADS; load++) {
        for (size_t model = 0; model < COUNT(models); model++) {
            size_t count = models[model].averages ? COUNT(counters) : COUNTERS_OF_BOARDS;

            for (size_t counter = 0; counter < count; counter++) {
                struct judge_case of = {.model = models[model].name,
                                        .settings = counters[counter].settings,
                                        .noise_w = 1.0,
                                        .load = load,
                                        .seed = 31 + model};
                char name[96];

                snprintf(name, sizeof name, "%s, %s, %s", models[model].name, counters[counter].name,
                         window_load_name(load));
                judge(name, of, false);
            }
        }
    }
}

/* The test's own test: chances of a fair coin, and of one thousand throws. */
static void test_chance(void **state)
{
    (void)state;
    check_close(judge_chance(0, 1, 0.5), 0.5, 1e-9);
    check_close(judge_chance(1, 3, 0.5), 0.5, 1e-9);
    check_close(judge_chance(2, 2, 0.95), 1.0, 1e-9);
    check_close(judge_chance(932, 1000, 0.95), 0.0074077, 1e-5);
    check_close(judge_chance(933, 1000, 0.95), 0.0105913, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chance),
        cmocka_unit_test(test_boards),
        cmocka_unit_test(test_troubles),
        cmocka_unit_test(test_beats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
