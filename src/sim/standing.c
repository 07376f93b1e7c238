/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/standing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/philox.h"
#include "base/math/portable_math.h"
#include "sim/statistics.h"

static const double errors_allowed = 2.0, interval_low = 0.025, interval_high = 0.975, normal_95 = 1.96;

/* One job of the set. */
struct job_standing {
    double regret, rival_regret; /* means over the seeds */
    size_t cluster;              /* index of the jobs of its name */
};

/* Sums over the jobs of one name. */
struct cluster {
    double regret, rival_regret;
};

/* What is added up over the set. */
struct sums {
    const struct campaign_plan *plan;
    const struct campaign *campaign;
    const struct standing_question *question;
    struct job_standing *jobs;
    struct cluster *clusters;
    double *pool;        /* regrets of all runs */
    double *differences; /* of one job's seeds */
    double wins;
    size_t pairs;
    size_t reached, dear;   /* runs that came so far, and those among them with too many dear recurrences */
    size_t bounded, beyond; /* runs of jobs with a bound, and those among them that are beyond it */
    size_t near;            /* jobs near the default */
    double log_energy, log_time, log_cost;
};

/* Returns the curve of a run if it reached the horizon, else NULL. */
static const struct curve *curve_at(const struct sums *sums, size_t workload, size_t policy, size_t seed)
{
    const struct curve *curve = &campaign_curves(sums->plan, sums->campaign, workload, policy)[seed];

    return curve->taken > sums->question->horizon ? curve : NULL;
}

/* Returns the regret of a run at the horizon; NaN if it ended before. */
static double regret_of(const struct sums *sums, size_t workload, size_t policy, size_t seed)
{
    const struct curve *curve = curve_at(sums, workload, policy, seed);

    return curve != NULL ? curve->regret[sums->question->horizon] : NAN;
}

/* Returns the mean of a policy's regret over the seeds of one job. */
static double mean_regret(const struct sums *sums, size_t workload, size_t policy)
{
    double sum = 0.0;
    size_t count = 0;

    for (size_t seed = 0; seed < sums->plan->seed_count; seed++) {
        double regret = regret_of(sums, workload, policy, seed);

        if (isfinite(regret)) {
            sum += regret;
            count++;
        }
    }
    return count > 0 ? sum / (double)count : NAN;
}

/* Keeps the greatest of known values, and whose it is. */
static void take_worst(double value, size_t workload, double *worst, size_t *worst_job)
{
    if (isfinite(value) && !(value <= *worst)) {
        *worst = value;
        *worst_job = workload;
    }
}

/* Compares the paired runs of one job with the rival's. */
static void take_pairs(struct sums *sums, size_t workload, struct standing *standing)
{
    const struct standing_question *question = sums->question;
    struct statistics differences;

    for (size_t seed = 0; seed < sums->plan->seed_count; seed++) {
        double difference = regret_of(sums, workload, question->policy, seed) -
                            regret_of(sums, workload, question->rival, seed);

        sums->differences[seed] = difference;
        if (isfinite(difference)) {
            sums->wins += difference < 0.0 ? 1.0 : difference == 0.0 ? 0.5 : 0.0;
            sums->pairs++;
        }
    }
    differences = statistics_of(sums->differences, sums->plan->seed_count);
    take_worst(differences.mean - errors_allowed * differences.standard_error, workload,
               &standing->worst_excess, &standing->worst_excess_job);
}

/* Counts the runs of one job that ended early, and those in which too many recurrences were dear. */
static void take_runs(struct sums *sums, size_t workload, struct standing *standing)
{
    const struct standing_question *question = sums->question;
    const struct comparison *runs = campaign_cell(sums->plan, sums->campaign, workload, question->policy);

    for (size_t seed = 0; seed < sums->plan->seed_count; seed++) {
        const struct curve *curve = curve_at(sums, workload, question->policy, seed);

        standing->ended +=
            runs[seed].ended < 0 && runs[seed].completed < sums->plan->horizons[question->horizon];
        if (curve == NULL)
            continue;
        sums->reached++;
        sums->dear += curve->dear[question->horizon] > STANDING_DEAR;
        sums->bounded += isfinite(curve->slowness[question->horizon]);
        sums->beyond += curve->slowness[question->horizon] > STANDING_BEYOND; /* false for NaN */
    }
}

/* Compares one job's totals with the default's, over the seeds at which both reached the horizon. */
static void take_totals(struct sums *sums, size_t workload, struct standing *standing)
{
    const struct standing_question *question = sums->question;
    struct recurrence ours = {0}, theirs = {0};

    for (size_t seed = 0; seed < sums->plan->seed_count; seed++) {
        const struct curve *curve = curve_at(sums, workload, question->policy, seed);
        const struct curve *standard = curve_at(sums, workload, question->standard, seed);

        if (curve == NULL || standard == NULL)
            continue;
        recurrence_add(&ours, &curve->totals[question->horizon]);
        recurrence_add(&theirs, &standard->totals[question->horizon]);
    }
    sums->log_energy += portable_log(ours.energy_j / theirs.energy_j);
    sums->log_time += portable_log(ours.time_s / theirs.time_s);
    sums->log_cost += portable_log(ours.cost_j / theirs.cost_j);
    sums->near += theirs.cost_j > 0.0 && ours.cost_j <= STANDING_NEAR * theirs.cost_j;
    take_worst(ours.cost_j / theirs.cost_j, workload, &standing->worst_cost, &standing->worst_cost_job);
}

/* Returns the regret as a share of the rival's; NaN if the rival has none to compare with. */
static double ratio_of(double regret, double rival)
{
    return rival > 0.0 ? regret / rival : NAN;
}

/* Fills in the regret over all jobs and runs. */
static void take_regrets(struct sums *sums, struct standing *standing)
{
    const struct standing_question *question = sums->question;
    size_t seeds = sums->plan->seed_count;
    struct statistics pooled;
    double rival = 0.0;

    for (size_t job = 0; job < question->count; job++) {
        for (size_t seed = 0; seed < seeds; seed++)
            sums->pool[job * seeds + seed] = regret_of(sums, question->first + job, question->policy, seed);
        standing->regret += sums->jobs[job].regret / (double)question->count;
        rival += sums->jobs[job].rival_regret / (double)question->count;
        standing->jobs_won += sums->jobs[job].regret < sums->jobs[job].rival_regret;
    }
    pooled = statistics_of(sums->pool, standing->runs);
    standing->regret_p90 = statistics_quantile(sums->pool, pooled.count, 0.9);
    standing->regret_p99 = statistics_quantile(sums->pool, pooled.count, 0.99);
    standing->regret_worst = statistics_quantile(sums->pool, pooled.count, 1.0);
    standing->ratio = ratio_of(standing->regret, rival);
}

/* Numbers the jobs' names, and adds up the jobs of each. Returns how many names there are. */
static size_t find_clusters(struct sums *sums)
{
    const struct workload *workloads = &sums->plan->workloads[sums->question->first];
    struct job_standing *jobs = sums->jobs;
    size_t clusters = 0;

    for (size_t job = 0; job < sums->question->count; job++) {
        size_t before = 0;

        while (strcmp(workloads[before].job.name, workloads[job].job.name) != 0)
            before++;
        jobs[job].cluster = before < job ? jobs[before].cluster : clusters++;
        sums->clusters[jobs[job].cluster].regret += jobs[job].regret;
        sums->clusters[jobs[job].cluster].rival_regret += jobs[job].rival_regret;
    }
    return clusters;
}

static int find_interval(struct sums *sums, struct standing *standing, struct fly_error *out_error)
{
    size_t clusters = find_clusters(sums);
    const struct philox_key key = philox_key(0, "standing");
    double *ratios = calloc(STANDING_REPLICATES, sizeof ratios[0]);
    struct statistics drawn;

    if (ratios == NULL)
        return error_no_memory(out_error);
    for (uint32_t replicate = 0; replicate < STANDING_REPLICATES; replicate++) {
        struct philox draws = philox_open(key, 1, replicate, 0);
        double regret = 0.0, rival = 0.0;

        for (size_t i = 0; i < clusters; i++) {
            const struct cluster *cluster = &sums->clusters[philox_below(&draws, (uint32_t)clusters)];

            regret += cluster->regret;
            rival += cluster->rival_regret;
        }
        ratios[replicate] = ratio_of(regret, rival);
    }
    drawn = statistics_of(ratios, STANDING_REPLICATES);
    standing->ratio_low = standing->ratio_high = NAN;
    if (clusters > 1 && isfinite(standing->ratio)) {
        standing->ratio_low = statistics_quantile(ratios, drawn.count, interval_low);
        standing->ratio_high = statistics_quantile(ratios, drawn.count, interval_high);
    }
    free(ratios);
    return 0;
}

static int take_all(struct sums *sums, struct standing *standing, struct fly_error *out_error)
{
    const struct standing_question *question = sums->question;
    double count = (double)question->count;

    for (size_t job = 0; job < question->count; job++) {
        size_t workload = question->first + job;

        sums->jobs[job].regret = mean_regret(sums, workload, question->policy);
        sums->jobs[job].rival_regret = mean_regret(sums, workload, question->rival);
        take_runs(sums, workload, standing);
        take_pairs(sums, workload, standing);
        take_totals(sums, workload, standing);
    }
    take_regrets(sums, standing);
    standing->runs_won = sums->pairs > 0 ? sums->wins / (double)sums->pairs : NAN;
    standing->runs_dear = sums->reached > 0 ? (double)sums->dear / (double)sums->reached : NAN;
    standing->runs_beyond = sums->bounded > 0 ? (double)sums->beyond / (double)sums->bounded : NAN;
    standing->near_default = (double)sums->near / count;
    standing->energy = portable_exp(sums->log_energy / count);
    standing->time = portable_exp(sums->log_time / count);
    standing->cost = portable_exp(sums->log_cost / count);
    return find_interval(sums, standing, out_error);
}

int standing_find(const struct campaign_plan *plan, const struct campaign *campaign,
                  const struct standing_question *question, struct standing *out_standing,
                  struct fly_error *out_error)
{
    struct standing standing = {
        .runs = question->count * plan->seed_count, .worst_excess = NAN, .worst_cost = NAN};
    struct sums sums = {.plan = plan, .campaign = campaign, .question = question};
    int code;

    sums.jobs = calloc(question->count, sizeof sums.jobs[0]);
    sums.clusters = calloc(question->count, sizeof sums.clusters[0]);
    sums.pool = calloc(standing.runs, sizeof sums.pool[0]);
    sums.differences = calloc(plan->seed_count, sizeof sums.differences[0]);
    if (sums.jobs == NULL || sums.clusters == NULL || sums.pool == NULL || sums.differences == NULL)
        code = error_no_memory(out_error);
    else
        code = take_all(&sums, &standing, out_error);
    free(sums.differences);
    free(sums.pool);
    free(sums.clusters);
    free(sums.jobs);
    if (code == 0)
        *out_standing = standing;
    return code;
}

int standing_ratio_of_job(const struct campaign_plan *plan, const struct campaign *campaign,
                          const struct standing_question *question, struct standing_ratio *out_ratio,
                          struct fly_error *out_error)
{
    const struct sums sums = {.plan = plan, .campaign = campaign, .question = question};
    double ours = mean_regret(&sums, question->first, question->policy);
    double theirs = mean_regret(&sums, question->first, question->rival);
    double *left = calloc(plan->seed_count, sizeof left[0]);
    struct standing_ratio ratio = {ratio_of(ours, theirs), NAN, NAN};
    double error;

    if (left == NULL)
        return error_no_memory(out_error);
    for (size_t seed = 0; seed < plan->seed_count; seed++)
        left[seed] = regret_of(&sums, question->first, question->policy, seed) -
                     ratio.ratio * regret_of(&sums, question->first, question->rival, seed);
    error = statistics_of(left, plan->seed_count).standard_error / theirs;
    free(left);
    ratio.low = ratio.ratio - normal_95 * error;
    ratio.high = ratio.ratio + normal_95 * error;
    *out_ratio = ratio;
    return 0;
}

int standing_worst_runs(const struct campaign_plan *plan, const struct campaign *campaign,
                        const struct standing_question *question, size_t most, double *out_regrets,
                        size_t *out_count, struct fly_error *out_error)
{
    const struct sums sums = {.plan = plan, .campaign = campaign, .question = question};
    size_t runs = question->count * plan->seed_count, known;
    double *pool = calloc(runs, sizeof pool[0]);

    if (pool == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < runs; i++)
        pool[i] =
            regret_of(&sums, question->first + i / plan->seed_count, question->policy, i % plan->seed_count);
    known = statistics_of(pool, runs).count;
    *out_count = known < most ? known : most;
    for (size_t i = 0; i < *out_count; i++)
        out_regrets[i] = pool[known - 1 - i];
    free(pool);
    return 0;
}
