/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works as the published group simulator does, except that OVERLAPPING_TRIES_MAX ends a job that
 * never converges; the published one would try it for ever.
 */
#include "sim/overlapping.h"
#include "base/array.h"

#include <math.h>
#include <stdlib.h>

#include <flyball/cost.h>

enum { STATE_MAX = 512 << 20 };

struct flight {
    struct submission submission;
    uint64_t number;   /* of the submission */
    uint64_t launched; /* order of launches; decides between trials that end at the same time */
    uint32_t tries;    /* of this submission, this one included */
    uint32_t path;
    struct fly_trial ended;
};

int overlapping_init(struct overlapping *job, const struct workload *workload, const char *name,
                     const struct batch_policy *policy, const struct policy_parameters *parameters,
                     struct fly_error *out_error)
{
    struct policy_parameters overlapping = *parameters;
    int code;

    *job = (struct overlapping){
        .workload = workload, .spec = workload->spec, .tries_max = OVERLAPPING_TRIES_MAX};
    job->spec.name = name;
    overlapping.overlapping = true;
    arena_init(&job->arena, STATE_MAX);
    environment_init(&job->environment, workload, name, parameters->seed, parameters->generator);
    job->environment.profile_window = parameters->profile_window;
    code = decider_init(&job->decider, &job->spec, policy, &overlapping, &job->arena, out_error);
    if (code < 0)
        arena_deinit(&job->arena);
    return code;
}

void overlapping_deinit(struct overlapping *job)
{
    free(job->flights);
    decider_deinit(&job->decider);
    arena_deinit(&job->arena);
}

static bool ends_before(const struct flight *a, const struct flight *b)
{
    return a->submission.end_s < b->submission.end_s ||
           (a->submission.end_s == b->submission.end_s && a->launched < b->launched);
}

static int push_flight(struct overlapping *job, const struct flight *flight, struct fly_error *out_error)
{
    size_t at = job->flight_count;
    struct flight *flights = array_grow(job->flights, at, &job->flight_capacity, sizeof flights[0]);

    if (flights == NULL)
        return error_no_memory(out_error);
    job->flights = flights;
    job->flight_count++;
    for (; at > 0 && ends_before(flight, &job->flights[(at - 1) / 2]); at = (at - 1) / 2)
        job->flights[at] = job->flights[(at - 1) / 2];
    job->flights[at] = *flight;
    return 0;
}

static struct flight pop_flight(struct overlapping *job)
{
    struct flight top = job->flights[0], last = job->flights[--job->flight_count];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < job->flight_count) {
        if (child + 1 < job->flight_count && ends_before(&job->flights[child + 1], &job->flights[child]))
            child++;
        if (!ends_before(&job->flights[child], &last))
            break;
        job->flights[at] = job->flights[child];
        at = child;
    }
    job->flights[at] = last;
    return top;
}

/* Decides, draws and computes a trial of the flight's submission, which is then in flight. */
static int launch(struct overlapping *job, struct flight *flight, struct fly_error *out_error)
{
    struct trial trial;
    int code;

    job->beside += job->flight_count > 0;
    code = trial_run(&job->decider, &job->environment, flight->number, flight->tries, &trial, out_error);
    if (code < 0)
        return code;
    flight->tries++;
    flight->launched = job->launches++;
    flight->path = trial.path;
    flight->ended = trial.ended;
    return push_flight(job, flight, out_error);
}

static void record(struct overlapping *job, const struct flight *flight)
{
    double ratio = flight->submission.runtime_ratio;
    double energy_j = flight->ended.energy_j * ratio, time_s = flight->ended.time_s * ratio;
    const struct try_record line = {
        .recurrence = flight->number,
        .number = job->records++,
        .batch_size = job->spec.batches[flight->ended.batch].size,
        .power_limit_w = flight->ended.limit_w,
        .path = flight->path,
        .reached = flight->ended.outcome == TRIAL_REACHED,
        .energy_j = energy_j,
        .time_s = time_s,
        .cost_j = fly_cost(job->spec.eta, job->spec.max_power_w, energy_j, time_s),
        .batch = flight->ended.batch,
        .outcome = flight->ended.outcome,
        .epochs = flight->ended.epochs,
    };

    if (job->observer != NULL)
        job->observer(job->observer_context, &line);
}

/* Ends the first trial in flight, and submits it again if it did not reach its target. */
static int reap(struct overlapping *job, struct fly_error *out_error)
{
    struct flight flight = pop_flight(job);
    double took_s = flight.submission.end_s - flight.submission.start_s;
    int code = trial_fold(&job->decider, &job->environment, &flight.ended, out_error);

    if (code < 0)
        return code;
    if (trial_ran(&flight.ended))
        record(job, &flight);
    if (flight.ended.outcome == TRIAL_REACHED)
        return 0;
    if (flight.tries == job->tries_max)
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "submission %llu did not reach its target in %u tries; raise beta, allow more epochs or choose "
            "another target",
            (unsigned long long)flight.number, job->tries_max);
    flight.submission.start_s = flight.submission.end_s;
    flight.submission.end_s += took_s;
    return launch(job, &flight, out_error);
}

static int reap_until(struct overlapping *job, double now_s, struct fly_error *out_error)
{
    int code = 0;

    while (code == 0 && job->flight_count > 0 && job->flights[0].submission.end_s <= now_s)
        code = reap(job, out_error);
    return code;
}

int overlapping_submit(struct overlapping *job, const struct submission *submission,
                       struct fly_error *out_error)
{
    struct flight flight = {.submission = *submission, .number = job->submissions};
    int code = reap_until(job, submission->start_s, out_error);

    if (code == 0)
        code = decider_fold(&job->decider, &(struct event){.kind = EVENT_RECURRENCE_BEGUN}, out_error);
    if (code < 0)
        return code;
    job->submissions++;
    return launch(job, &flight, out_error);
}

int overlapping_finish(struct overlapping *job, struct fly_error *out_error)
{
    return reap_until(job, INFINITY, out_error);
}
