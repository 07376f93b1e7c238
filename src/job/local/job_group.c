/* SPDX-License-Identifier: Apache-2.0 */
#include "job/local/job_group.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/fork_guard.h"
#include "base/thread/fork_lock.h"
#include "base/wait.h"
#include "job/core/job_words.h"
#include "store/store_address.h"

/* The share of the previous group's time that a leader waits for those who were in it. */
static const double gather_share = 0.25;

/* A call in the line; it is on its thread's stack. */
struct waiting {
    struct local_request *request;
    struct waiting *next;
    pthread_cond_t moved; /* signals that it is done, or is the first */
    int code;
    bool done, alone;
};

/* A line with its own writer. */
struct lane {
    struct job_group *group;
    pthread_mutex_t lock;
    pthread_cond_t gathered; /* signals that as many are in the line as expected */
    struct waiting *first, *last;
    size_t in_line;
    bool led;
    size_t expected; /* calls of the previous shared commit: a thread that got its answer soon asks again */
    double took_s;   /* time of that commit, with all that was done for it */

    struct job_local *writer; /* used by the leader alone */
};

struct job_group {
    struct job_group *next;
    char *address; /* opens the store from any working directory; owned */
    struct job_options options;
    uint64_t generation;  /* of fork_generation */
    unsigned members;     /* under the list's lock */
    atomic_bool together; /* there was more than one member; stays true */
    size_t lane_count;
    struct lane lanes[GROUP_LANES];
};

static struct job_group *groups;
static struct fork_lock groups_lock = FORK_LOCK_INIT;

/* ---- who belongs to it ---- */

static bool fits(const struct job_group *group, const char *address, const struct job_options *options)
{
    return group->generation == fork_generation() && strcmp(group->address, address) == 0 &&
           group->options.clock == options->clock && group->options.plugins == options->plugins &&
           group->options.wait_s == options->wait_s;
}

static void init_lane(struct lane *lane, struct job_group *group)
{
    lane->group = group;
    pthread_mutex_init(&lane->lock, NULL);
    mono_cond_init(&lane->gathered);
}

static struct job_group *make_group(const char *address, size_t lanes, const struct job_options *options)
{
    struct job_group *group = calloc(1, sizeof *group);

    if (group == NULL)
        return NULL;
    group->address = strdup(address);
    if (group->address == NULL) {
        free(group);
        return NULL;
    }
    group->options = (struct job_options){
        .clock = options->clock, .plugins = options->plugins, .wait_s = options->wait_s, .existing = true};
    group->generation = fork_generation();
    group->lane_count = lanes;
    for (size_t i = 0; i < lanes; i++)
        init_lane(&group->lanes[i], group);
    group->next = groups;
    groups = group;
    return group;
}

struct job_group *job_group_join(const char *store_address, const struct store *store,
                                 const struct job_options *options)
{
    struct store_address parsed;
    struct job_group *group;
    bool in_file;

    if (store_address_parse(store_address, &parsed, NULL) < 0)
        return NULL;
    in_file = parsed.place == STORE_IN_FILE;
    if (in_file)
        store_address = store_shown(store);
    (void)fork_generation();
    fork_lock_take(&groups_lock);
    group = groups;
    while (group != NULL && !fits(group, store_address, options))
        group = group->next;
    if (group == NULL)
        group = make_group(store_address, in_file ? 1 : GROUP_LANES, options);
    if (group != NULL && ++group->members > 1)
        atomic_store(&group->together, true);
    fork_lock_give(&groups_lock);
    return group;
}

static void take_out(struct job_group *group)
{
    struct job_group **place = &groups;

    while (*place != group)
        place = &(*place)->next;
    *place = group->next;
}

static void free_group(struct job_group *group)
{
    for (size_t i = 0; i < group->lane_count; i++) {
        struct lane *lane = &group->lanes[i];

        if (lane->writer != NULL)
            local_free(lane->writer);
        pthread_cond_destroy(&lane->gathered);
        pthread_mutex_destroy(&lane->lock);
    }
    free(group->address);
    free(group);
}

void job_group_leave(struct job_group *group)
{
    bool last;

    /* A parent's group stays with the parent: its lock may be held for ever here. */
    if (group == NULL || group->generation != fork_generation())
        return;
    fork_lock_take(&groups_lock);
    last = --group->members == 0;
    if (last)
        take_out(group);
    fork_lock_give(&groups_lock);
    /* Closing may wait for a disk; no other call waits for that. */
    if (last)
        free_group(group);
}

/* ---- who may change a job: its owners, operators, and of a trial whoever began it ---- */

void local_act_for(void *self, const struct job_caller *caller)
{
    ((struct job_local *)self)->caller = caller;
}

/* Returns 1 if the caller began the trial's newest attempt, else 0, or an error. */
static int began_it(struct local_change *change, uint64_t trial, struct fly_error *out_error)
{
    struct trial_past past;
    int code = trial > 0 ? local_past(change, trial, 0, &past, out_error) : FLY_ENOTFOUND;

    if (code < 0)
        return code == FLY_ENOTFOUND ? 0 : code;
    code = strcmp(past.origin.user, change->caller->name) == 0;
    trial_past_deinit(&past);
    return code;
}

int local_check_right(struct local_change *change, uint64_t trial, struct fly_error *out_error)
{
    const struct job_caller *caller = change->caller;
    const char *owners = change->state->owners;
    int code;

    if (caller == NULL || caller->operates || !change->state->defined || job_owners_have(owners, caller))
        return 0;
    code = began_it(change, trial, out_error);
    if (code != 0)
        return code < 0 ? code : 0;
    if (owners[0] == '\0')
        return error_set(out_error, FLY_EPERM,
                         "job '%s' belongs to the service's operator, and not to %s; ask for "
                         "'flyball job set %s --owners %s'",
                         change->job, caller->name, change->job, caller->name);
    return error_set(out_error, FLY_EPERM,
                     "job '%s' belongs to %.300s, and not to %s; ask for 'flyball job set %s --owners "
                     "%.300s,%s', or use a job of your own",
                     change->job, owners, caller->name, change->job, owners, caller->name);
}

/* Does within the change what the request asks for, if its caller may. */
static int local_within_right(struct local_change *change, const struct local_request *request)
{
    int code;

    change->caller = request->caller;
    code = local_check_right(change, request->trial, request->error);
    return code < 0 ? code : request->within(change, request->call, request->error);
}

/* ---- what the leader does ---- */

static void close_writer(struct lane *lane)
{
    local_free(lane->writer);
    lane->writer = NULL;
}

/* Opens the writer when it is first needed; NULL: it cannot be opened. */
static struct job_local *open_writer(struct lane *lane)
{
    struct job_local *made = NULL;

    if (lane->writer == NULL && local_make(lane->group->address, &lane->group->options, &made, NULL) == 0)
        lane->writer = made;
    return lane->writer;
}

static bool begin_group(struct lane *lane, struct waiting *const *calls, size_t count)
{
    const struct job_local *writer = open_writer(lane);
    const char *jobs[GROUP_CALLS_MAX];

    if (writer == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        jobs[i] = calls[i]->request->job;
    return store_group_begin(writer->store, jobs, count, NULL) == 0;
}

/* Does one call as a change of the group. */
static void do_one(struct lane *lane, struct waiting *call)
{
    struct local_request *request = call->request;
    struct local_change change;

    call->code = local_begin(lane->writer, request->job, request->make, &change, request->error);
    if (call->code == 0) {
        call->code = local_finish(&change, local_within_right(&change, request), request->error);
        request->lost = change.last;
        request->expired = lane->writer->expired;
        lane->writer->expired = (struct job_expiries){0};
    }
    /* The others need not wait for the process that holds this job; nothing of the call is in the group. */
    if (call->code == FLY_EBUSY && store_group_holds(lane->writer->store)) {
        call->alone = true;
        request->lost = (struct local_mark){0};
    }
}

/* All were in the line while the leader waited for the lock: the first one's error holds for all. */
static void refuse_all(struct waiting **calls, size_t count, const struct waiting *first)
{
    for (size_t i = 0; i < count; i++) {
        calls[i]->code = first->code;
        if (calls[i] != first)
            *calls[i]->request->error = *first->request->error;
    }
}

static void all_alone(struct lane *lane, struct waiting **calls, size_t count, int code)
{
    for (size_t i = 0; i < count; i++) {
        calls[i]->alone = true;
        calls[i]->request->unsure = code == FLY_EUNSURE;
        if (code != FLY_EUNSURE)
            calls[i]->request->lost = (struct local_mark){0};
    }
    if (lane->writer != NULL)
        close_writer(lane);
}

/* Takes the calls that are in the line now, as far as there is room. */
static size_t take_line(struct lane *lane, struct waiting **calls, size_t count)
{
    pthread_mutex_lock(&lane->lock);
    while (lane->first != NULL && count < GROUP_CALLS_MAX) {
        calls[count++] = lane->first;
        lane->first = lane->first->next;
        lane->in_line--;
    }
    if (lane->first == NULL)
        lane->last = NULL;
    pthread_mutex_unlock(&lane->lock);
    return count;
}

/* Waits for those who were in the previous group, for a share of its time. Call it with the lock held. */
static void gather(struct lane *lane)
{
    struct mono_time until = mono_after_s(mono_now(), fmin(lane->took_s * gather_share, 1e-6 * GATHER_US));

    while (lane->in_line < lane->expected && mono_wait(&lane->gathered, &lane->lock, until))
        ;
}

/* Returns how many calls there were; all of them are done, or must be done alone. */
static size_t lead(struct lane *lane, struct waiting **calls)
{
    struct mono_time begun = mono_now();
    size_t count = take_line(lane, calls, 0), done = 0;
    int code;

    if (!begin_group(lane, calls, count)) {
        all_alone(lane, calls, count, 0);
        return count;
    }
    while (done < count) {
        do_one(lane, calls[done]);
        if (calls[done]->code == FLY_EBUSY && !store_group_holds(lane->writer->store)) {
            refuse_all(calls + done, count - done, calls[done]);
            break;
        }
        done++;
        if (done == count && mono_elapsed_s(begun, mono_now()) < 1e-6 * GROUP_OPEN_US)
            count = take_line(lane, calls, count);
    }
    code = store_group_end(lane->writer->store, NULL);
    if (code < 0)
        all_alone(lane, calls, count, code);
    return count;
}

/* ---- the line ---- */

static void stand_in_line(struct lane *lane, struct waiting *call)
{
    if (lane->last != NULL)
        lane->last->next = call;
    else
        lane->first = call;
    lane->last = call;
    if (++lane->in_line == lane->expected)
        pthread_cond_signal(&lane->gathered);
    while (!call->done && (lane->led || lane->first != call))
        pthread_cond_wait(&call->moved, &lane->lock);
}

static void let_go(struct lane *lane, struct waiting **calls, size_t count, const struct waiting *own)
{
    lane->led = false;
    for (size_t i = 0; i < count; i++) {
        calls[i]->done = true;
        /* It may be gone as soon as the lock is released. */
        if (calls[i] != own)
            pthread_cond_signal(&calls[i]->moved);
    }
    if (lane->first != NULL)
        pthread_cond_signal(&lane->first->moved);
}

/* All calls of one job use one line; otherwise their groups would lock the job for each other. */
static struct lane *lane_of(struct job_group *group, const char *job)
{
    size_t hash = 5381;

    for (; *job != '\0'; job++)
        hash = 33 * hash + (unsigned char)*job;
    return &group->lanes[hash % group->lane_count];
}

/*
 * Does the call together with others. True: it is done, and `out_code` has its code. False: the caller must
 * do it alone.
 */
static bool job_group_call(struct job_group *group, struct local_request *request, int *out_code)
{
    struct waiting *calls[GROUP_CALLS_MAX];
    struct waiting own = {.request = request};
    struct lane *lane;

    if (group == NULL || group->generation != fork_generation() || !atomic_load(&group->together) ||
        request->job == NULL)
        return false;
    lane = lane_of(group, request->job);
    pthread_mutex_lock(&lane->lock);
    pthread_cond_init(&own.moved, NULL);
    stand_in_line(lane, &own);
    if (!own.done) {
        struct mono_time begun;
        size_t count;

        lane->led = true;
        gather(lane);
        pthread_mutex_unlock(&lane->lock);
        begun = mono_now();
        count = lead(lane, calls);
        pthread_mutex_lock(&lane->lock);
        lane->took_s = mono_elapsed_s(begun, mono_now());
        lane->expected = count;
        let_go(lane, calls, count, &own);
    }
    pthread_mutex_unlock(&lane->lock);
    pthread_cond_destroy(&own.moved);
    *out_code = own.code;
    return !own.alone;
}

/* ---- a call as one change, even when the result of its commit is not known ---- */

int local_unsure(int code, bool lost, struct fly_error *out_error)
{
    char text[FLY_ERROR_TEXT_MAX] = "";

    if (!lost || (code != FLY_EUNREACHABLE && code != FLY_EBUSY))
        return code;
    if (out_error != NULL)
        snprintf(text, sizeof text, "%s", out_error->text);
    return error_set(out_error, FLY_EUNSURE, "it may have been written, but since then %s", text);
}

/* Does the call as a change of its own, over the handle's own connection. */
static int call_alone(struct job_local *local, struct local_request *request)
{
    int code = FLY_EUNSURE;

    for (int i = 0; i < LOCAL_UNSURE_RETRIES && code == FLY_EUNSURE; i++) {
        struct local_change change;

        code = local_begin(local, request->job, request->make, &change, request->error);
        if (code < 0)
            return local_unsure(code, request->unsure, request->error);
        change.lost = request->lost;
        code = local_finish(&change, local_within_right(&change, request), request->error);
        /* A call that only read has its answer, whatever became of its commit. */
        if (code == FLY_EUNSURE && change.last.number == 0)
            code = 0;
        request->lost = change.last;
        request->unsure = true;
    }
    return code;
}

int local_call(struct job_local *local, const char *job, uint64_t trial, bool make, local_within *within,
               void *call, struct fly_error *out_error)
{
    struct fly_error error = {.code = 0};
    struct local_request request = {.job = job,
                                    .trial = trial,
                                    .make = make,
                                    .caller = local->caller,
                                    .within = within,
                                    .call = call,
                                    .error = &error};
    int code;

    if (job_group_call(local->group, &request, &code))
        local_add_expired(local, &request.expired);
    else
        code = call_alone(local, &request);
    if (code < 0 && out_error != NULL)
        *out_error = error;
    return code;
}

int local_call_alone(struct job_local *local, const char *job, bool make, local_within *within, void *call,
                     struct fly_error *out_error)
{
    struct fly_error error = {.code = 0};
    struct local_request request = {
        .job = job, .make = make, .caller = local->caller, .within = within, .call = call, .error = &error};
    int code = call_alone(local, &request);

    if (code < 0 && out_error != NULL)
        *out_error = error;
    return code;
}

struct comparing {
    const struct local_mark *mark;
    bool same;
};

static int compare_mark(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct comparing *comparing = context;
    const struct local_mark *mark = comparing->mark;

    (void)out_error;
    comparing->same = event->number == mark->number && event->time_us == mark->time_us &&
                      event->trial == mark->trial && record_kind_parse(event->kind) == mark->kind;
    return 1;
}

int local_lost_is_there(struct local_change *change, struct fly_error *out_error)
{
    const struct local_mark *lost = &change->lost;
    const struct store_query query = {.after = lost->number - 1, .limit = 1};
    struct comparing comparing = {.mark = lost};
    int code;

    if (lost->number == 0 || lost->job_id != store_change_job_id(change->change))
        return 0;
    code = store_change_read(change->change, &query, compare_mark, &comparing, out_error);
    return code < 0 ? code : comparing.same;
}
