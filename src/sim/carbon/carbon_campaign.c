/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/carbon/carbon_campaign.h"

#include "base/error.h"
#include "base/math/philox.h"
#include "sim/crew.h"

enum { START_STREAM = 1 };

struct shared {
    const struct carbon_campaign *campaign;
    struct carbon_outcome *outcomes;
};

/* Finds the time that all records cover. */
static void find_record(const struct carbon_world *world, int64_t *out_from_s, int64_t *out_to_s)
{
    *out_from_s = INT64_MIN;
    *out_to_s = INT64_MAX;
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_series *series;

        if (world->answers[i] == NULL || world->answers[i]->actual.count == 0)
            continue;
        series = &world->answers[i]->actual;
        if (series->periods[0].start_s > *out_from_s)
            *out_from_s = series->periods[0].start_s;
        if (series->periods[series->count - 1].end_s < *out_to_s)
            *out_to_s = series->periods[series->count - 1].end_s;
    }
}

int carbon_campaign_start(const struct carbon_campaign *campaign, size_t start, int64_t *out_start_s,
                          struct fly_error *out_error)
{
    int64_t from_s, to_s, bound_s = (int64_t)campaign->world->bound_s + 1;

    find_record(campaign->world, &from_s, &to_s);
    from_s += CARBON_SKIP_S;
    to_s -= bound_s;
    if (to_s < from_s)
        return error_set(out_error, FLY_EDATA,
                         "the record of the grid is %lld s too short: eight days for the forecast and the "
                         "job's time are needed; give it less work",
                         (long long)(from_s - to_s));
    *out_start_s = from_s;
    if (campaign->seed != 0) {
        struct philox stream = philox_open(philox_key(campaign->seed, "sim carbon"), START_STREAM, start, 0);

        *out_start_s += (int64_t)(philox_u64(&stream) % (uint64_t)(to_s - from_s + 1));
    } else if (campaign->starts > 1)
        *out_start_s += (to_s - from_s) / (int64_t)(campaign->starts - 1) * (int64_t)start +
                        (to_s - from_s) % (int64_t)(campaign->starts - 1) * (int64_t)start /
                            (int64_t)(campaign->starts - 1);
    return 0;
}

/* Runs one unit: one start under all policies. */
static int run_unit(void *context, struct crew_unit *unit, struct fly_error *out_error)
{
    const struct shared *shared = context;
    const struct carbon_campaign *campaign = shared->campaign;
    struct carbon_worker worker;
    int64_t start_s = 0;
    int code = carbon_campaign_start(campaign, (size_t)unit->number, &start_s, out_error);

    if (code == 0)
        code = carbon_worker_init(&worker, campaign->world, out_error);
    if (code < 0)
        return code;
    for (size_t i = 0; i < campaign->policy_count && code == 0; i++)
        code = carbon_job_run(&worker, campaign->policies[i], start_s,
                              &shared->outcomes[i * campaign->starts + unit->number], out_error);
    carbon_worker_deinit(&worker);
    return code;
}

int carbon_campaign_run(const struct carbon_campaign *campaign, struct carbon_outcome *outcomes,
                        struct fly_error *out_error)
{
    struct shared shared = {campaign, outcomes};
    const struct crew_plan plan = {
        .units = campaign->starts,
        .threads = campaign->threads,
        .run = run_unit,
        .context = &shared,
        .thread_begun = campaign->thread_begun,
        .progress = campaign->progress,
        .progress_context = campaign->progress_context,
    };

    return crew_run(&plan, out_error);
}
