/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/findings.h"

#include <math.h>

double paired_student(size_t degrees)
{
    /* Tabulated where the expansion below is too coarse. */
    static const double tabulated[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624,
                                       2.306004,  2.262157, 2.228139, 2.200985, 2.178813, 2.160369, 2.144787,
                                       2.131450,  2.119905, 2.109816, 2.100922, 2.093024, 2.085963};
    const double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    const double n = (double)degrees;

    if (degrees <= sizeof tabulated / sizeof tabulated[0])
        return tabulated[degrees - 1];
    /* Cornish and Fisher's expansion about the normal quantile (Abramowitz and Stegun, 26.7.5). */
    return z + (z3 + z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n) +
           (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n);
}

struct paired paired_of(const double *ours, const double *theirs, size_t count)
{
    struct paired paired = {.count = count, .low = NAN, .high = NAN};
    double ratio, squares = 0.0, half;

    for (size_t i = 0; i < count; i++) {
        paired.ours += ours[i];
        paired.theirs += theirs[i];
    }
    ratio = paired.ours / paired.theirs;
    paired.change = ratio - 1.0;
    if (count < 2)
        return paired;
    /* The differences sum to 0, so their mean need not be subtracted. */
    for (size_t i = 0; i < count; i++) {
        double difference = ours[i] - ratio * theirs[i];

        squares += difference * difference;
    }
    half = paired_student(count - 1) * sqrt(squares / (double)(count - 1)) / sqrt((double)count) /
           (paired.theirs / (double)count);
    paired.low = paired.change - half;
    paired.high = paired.change + half;
    return paired;
}

double demo_check_cost_j(const struct demo_job *job, size_t batch, size_t limit)
{
    const struct demo_try *checks = job->checks[batch][limit];
    double cost_j = 0.0, reached = 0.0;

    for (size_t s = 0; s < DEMO_CHECK_SEEDS; s++) {
        cost_j += checks[s].cost_j;
        reached += checks[s].reached;
    }
    return reached > 0.0 ? cost_j / reached : INFINITY;
}

/* One side, recurrence by recurrence. */
struct course {
    double of[DEMO_MEASURES][DEMO_RECURRENCES_MAX];
    const struct demo_try *last[DEMO_RECURRENCES_MAX]; /* the try that reached the target */
};

/* Energy, time and cost are sums over all tries of a recurrence; the accuracy is that of its last try. */
static void follow(const struct demo_run *run, struct course *course)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct demo_try *at = &run->tries[i];
        size_t r = (size_t)at->recurrence;

        course->of[DEMO_ENERGY][r] += at->energy_j;
        course->of[DEMO_TIME][r] += at->time_s;
        course->of[DEMO_COST][r] += at->cost_j;
        course->of[DEMO_ACCURACY][r] = 100.0 * at->correct / DIGITS_HELD_OUT;
        course->last[r] = at;
    }
}

static size_t find_paid_off(const struct course *ours, const struct course *theirs, size_t completed)
{
    double lead_j = 0.0;
    size_t last_behind = 0;

    for (size_t r = 0; r < completed; r++) {
        lead_j += theirs->of[DEMO_COST][r] - ours->of[DEMO_COST][r];
        if (!(lead_j > 0.0))
            last_behind = r + 1;
    }
    return last_behind < completed ? last_behind + 1 : 0;
}

static bool same_choice(const struct demo_try *a, const struct demo_try *b)
{
    return a->batch_size == b->batch_size && a->power_limit_w == b->power_limit_w;
}

static struct demo_choice choice_of(const struct demo_try *at)
{
    struct demo_choice choice = {0};

    while ((uint32_t)DEMO_SMALLEST_BATCH << choice.batch != at->batch_size)
        choice.batch++;
    choice.limit = (size_t)((at->power_limit_w - GPU_LOWEST_W) / GPU_LIMIT_STEP_W);
    return choice;
}

/* Among recurrences first .. completed - 1, at least one. */
static struct demo_choice most_common(const struct course *course, size_t first, size_t completed)
{
    size_t common = first, most = 0;

    for (size_t r = first; r < completed; r++) {
        size_t count = 0;

        for (size_t other = first; other < completed; other++)
            count += same_choice(course->last[r], course->last[other]);
        if (count >= most) {
            most = count;
            common = r;
        }
    }
    return choice_of(course->last[common]);
}

static void compare_with_best(const struct demo_job *job, struct findings *findings)
{
    const struct demo_try *ours = job->checks[findings->ours.batch][findings->ours.limit];
    const struct demo_try *best = job->checks[findings->best.batch][findings->best.limit];
    double ours_j[DEMO_CHECK_SEEDS], best_j[DEMO_CHECK_SEEDS];
    bool all_reached = true;

    for (size_t s = 0; s < DEMO_CHECK_SEEDS; s++) {
        ours_j[s] = ours[s].cost_j;
        best_j[s] = best[s].cost_j;
        all_reached = all_reached && ours[s].reached && best[s].reached;
    }
    findings->above = paired_of(ours_j, best_j, DEMO_CHECK_SEEDS);
    if (all_reached)
        return;
    findings->above.change = demo_check_cost_j(job, findings->ours.batch, findings->ours.limit) /
                                 demo_check_cost_j(job, findings->best.batch, findings->best.limit) -
                             1.0;
    findings->above.low = findings->above.high = NAN;
}

static void rank_ours(const struct demo_job *job, struct findings *findings)
{
    double ours_j = demo_check_cost_j(job, findings->ours.batch, findings->ours.limit);
    double least_j = INFINITY;

    findings->rank = 1;
    findings->choices = (size_t)DEMO_BATCHES * GPU_LIMITS;
    for (size_t b = 0; b < DEMO_BATCHES; b++) {
        for (size_t l = GPU_LIMITS; l-- > 0;) {
            double cost_j = demo_check_cost_j(job, b, l);

            findings->rank += cost_j < ours_j;
            findings->sharing += cost_j == ours_j && (b != findings->ours.batch || l != findings->ours.limit);
            if (cost_j < least_j) {
                least_j = cost_j;
                findings->best = (struct demo_choice){b, l};
            }
        }
    }
    compare_with_best(job, findings);
}

void findings_of(const struct demo_job *job, struct findings *out_findings)
{
    struct course ours = {0}, theirs = {0};
    size_t completed =
        job->chosen.completed < job->baseline.completed ? job->chosen.completed : job->baseline.completed;
    size_t first = completed > FINDINGS_TAIL ? completed - FINDINGS_TAIL : 0;
    struct findings findings = {.completed = completed};

    follow(&job->chosen, &ours);
    follow(&job->baseline, &theirs);
    for (int m = 0; m < DEMO_MEASURES && completed > 0; m++) {
        findings.figures[m][DEMO_LAST] =
            paired_of(ours.of[m] + first, theirs.of[m] + first, completed - first);
        findings.figures[m][DEMO_WHOLE] = paired_of(ours.of[m], theirs.of[m], completed);
    }
    if (completed > 0) {
        findings.paid_off = find_paid_off(&ours, &theirs, completed);
        findings.ours = most_common(&ours, first, completed);
        rank_ours(job, &findings);
    }
    *out_findings = findings;
}

bool findings_claims(const struct findings *findings, enum demo_measure measure, enum demo_span span)
{
    return findings->completed > 0 && measure != DEMO_ACCURACY &&
           findings->figures[DEMO_COST][span].high < 0.0 && findings->figures[measure][span].high < 0.0;
}

bool findings_claim_any(const struct findings *findings)
{
    return findings_claims(findings, DEMO_COST, DEMO_LAST) ||
           findings_claims(findings, DEMO_COST, DEMO_WHOLE);
}
