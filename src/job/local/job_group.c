/* SPDX-License-Identifier: Apache-2.0 */
#include "job/local/job_group.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/fork_guard.h"
#include "base/thread/fork_lock.h"
#include "base/wait.h"
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

bool job_group_call(struct job_group *group, struct local_request *request, int *out_code)
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
