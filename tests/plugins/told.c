/* SPDX-License-Identifier: Apache-2.0 */
/* The default batch size; appends what it is told to the file that FLYBALL_TOLD names, a line for each call.
 */
#include <stdio.h>
#include <stdlib.h>

#include <flyball/plugin.h>

struct told {
    const struct fly_batch_job *job;
    FILE *file;
};

static int create(const struct fly_batch_job *job, void **out_state, const char **out_reason)
{
    const char *path = getenv("FLYBALL_TOLD");
    struct told *told = calloc(1, sizeof *told);

    if (told == NULL || path == NULL || (told->file = fopen(path, "a")) == NULL) {
        *out_reason = "FLYBALL_TOLD names no file";
        free(told);
        return 1;
    }
    setvbuf(told->file, NULL, _IOLBF, 0);
    told->job = job;
    fprintf(told->file, "create objective %d eta %g max_slowdown %g gpus %u overlapping %d no_default %d\n",
            (int)job->objective.kind, job->eta, job->objective.max_slowdown, job->gpu_count, job->overlapping,
            job->no_default);
    *out_state = told;
    return 0;
}

static void destroy(void *state)
{
    struct told *told = state;

    fclose(told->file);
    free(told);
}

static void profile(void *state, size_t batch, const struct fly_power_point *points, size_t count)
{
    (void)state, (void)batch, (void)points, (void)count;
    abort(); /* `measure` stands in its place */
}

static void measure(void *state, const struct fly_profile *profile)
{
    fprintf(((struct told *)state)->file,
            "measure batch %zu points %zu chosen %zu units %g window %g energy %.6g time %.6g\n",
            profile->batch, profile->count, profile->chosen, profile->units_per_epoch, profile->window,
            profile->energy_j, profile->time_s);
}

static void begin(void *state, size_t batch)
{
    fprintf(((struct told *)state)->file, "begin batch %zu\n", batch);
}

static void write_trial(const struct told *told, const char *what, const struct fly_trial *trial)
{
    fprintf(told->file,
            "%s trial %llu batch %zu outcome %d epochs %g late %d crashed %d by_itself %d dearer %g\n", what,
            (unsigned long long)trial->trial, trial->batch, (int)trial->outcome, trial->epochs, trial->late,
            trial->crashed, trial->by_itself, trial->dearer);
}

static void observe(void *state, const struct fly_trial *trial)
{
    write_trial(state, "observe", trial);
}

static void see(void *state, const struct fly_trial *trial)
{
    write_trial(state, "see", trial);
}

static void bring(void *state, const struct fly_past *past)
{
    fprintf(((struct told *)state)->file,
            "bring kind %d batch %zu reached %llu epochs %.4f squares %.4f stopped %llu failed %llu most %g "
            "epoch_cost %.6g following %zu\n",
            (int)past->kind, past->batch, (unsigned long long)past->reached, past->epochs,
            past->log_epochs_squares, (unsigned long long)past->stopped, (unsigned long long)past->failed,
            past->stopped_epochs, past->epoch_cost_j, past->following);
}

static void bar(void *state, size_t batch, enum fly_bar why)
{
    fprintf(((struct told *)state)->file, "bar batch %zu why %d\n", batch, (int)why);
}

static int propose(const void *state, const struct fly_batch_question *question,
                   struct fly_batch_decision *out_decision)
{
    const struct told *told = state;

    fprintf(told->file, "propose trial %llu left %g beside %llu\n", (unsigned long long)question->trial,
            question->recurrences_left, (unsigned long long)question->in_flight);
    out_decision->batch = told->job->default_batch;
    return 0;
}

static uint32_t epoch_cap(const void *state, size_t batch, double epoch_energy_j, double epoch_time_s)
{
    (void)state, (void)batch, (void)epoch_energy_j, (void)epoch_time_s;
    abort(); /* `cap` stands in its place */
}

static uint32_t cap(const void *state, const struct fly_cap_question *question)
{
    const struct told *told = state;

    fprintf(told->file, "cap batch %zu energy %.6g time %.6g highest %g left %g\n", question->batch,
            question->epoch_energy_j, question->epoch_time_s, question->highest_limit_w,
            question->recurrences_left);
    return told->job->max_epochs;
}

const struct fly_batch_policy fly_batch_policy_plugin = {
    .abi = FLY_PLUGIN_ABI,
    .size = sizeof(struct fly_batch_policy),
    .name = "told",
    .version = 1,
    .create = create,
    .destroy = destroy,
    .profile = profile,
    .observe = observe,
    .propose = propose,
    .epoch_cap = epoch_cap,
    .begin = begin,
    .measure = measure,
    .bring = bring,
    .see = see,
    .bar = bar,
    .cap = cap,
};
