/* SPDX-License-Identifier: Apache-2.0 */
#include "train/carbon/carbon_keeper.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread/thread_group.h"
#include "train/account/carbon_counter.h"
#include "train/carbon/carbon_feed.h"

/*
 * The training's thread and the keeper's own share one lock, held at most for a reading of the meter. Only
 * the keeper's thread writes to the disk; what it has not written yet waits in the slicer.
 */
struct carbon_keeper {
    const struct clock *clock;
    double goodbye_s;
    bool threaded;
    struct carbon_feed *feed; /* owned */
    /* Used by the writer only: the thread, or the owner when there is none. */
    struct carbon_ledger ledger;
    struct ledger_head head;
    char *directory; /* owned; NULL: the user's own */

    struct thread_group group; /* its lock guards what follows */
    bool to_write;
    bool opened; /* the ledger is open, or cannot be: `path` or `trouble` says so */
    char path[LEDGER_PATH_MAX];
    struct carbon_counter count;
    struct fly_power_point points[CARBON_POINTS_MAX]; /* still to be written; point_count 0: none */
    size_t point_count;
    uint64_t profiles, written, refused;
    double written_j;
    char trouble[FLY_ERROR_TEXT_MAX]; /* with the ledger; "" for none */
};

/* ---- the keeper's thread ---- */

/* It cuts the energy at borders, and writes what is queued. Without a thread the owner does this. */

/* At least this often the two clocks are compared, and what could not be written is tried again. */
static const double look_s = 10.0;

/* Whether to drop a line: one that can never be written. Any other trouble may pass. */
static bool is_hopeless(const struct carbon_keeper *keeper, int code)
{
    return code == FLY_EUSAGE || keeper->ledger.file < 0;
}

static bool write_slice(struct carbon_keeper *keeper)
{
    struct fly_error error = {.code = 0};
    struct energy_slice slice;
    uint64_t number;
    bool any;
    int code;

    pthread_mutex_lock(&keeper->group.lock);
    any = slicer_front(&keeper->count.slicer, &slice, &number);
    pthread_mutex_unlock(&keeper->group.lock);
    if (!any)
        return false;
    code = carbon_ledger_slice(&keeper->ledger, &slice, &error);
    pthread_mutex_lock(&keeper->group.lock);
    if (code == 0) {
        keeper->written++;
        keeper->written_j += slice.gpu_j;
        keeper->trouble[0] = '\0';
    } else {
        keeper->refused += is_hopeless(keeper, code);
        if (code != FLY_ESTATE)
            memcpy(keeper->trouble, error.text, sizeof keeper->trouble);
    }
    if (code == 0 || is_hopeless(keeper, code))
        slicer_pop(&keeper->count.slicer, number);
    pthread_mutex_unlock(&keeper->group.lock);
    return code == 0 || is_hopeless(keeper, code);
}

static void write_profile(struct carbon_keeper *keeper)
{
    struct fly_power_point points[CARBON_POINTS_MAX];
    struct fly_error error = {.code = 0};
    uint64_t profile;
    size_t count;
    int code;

    pthread_mutex_lock(&keeper->group.lock);
    count = keeper->point_count;
    profile = keeper->profiles;
    memcpy(points, keeper->points, sizeof points);
    pthread_mutex_unlock(&keeper->group.lock);
    if (count == 0)
        return;
    code = carbon_ledger_profile(&keeper->ledger, points, count, &error);
    pthread_mutex_lock(&keeper->group.lock);
    if (code < 0 && code != FLY_ESTATE)
        memcpy(keeper->trouble, error.text, sizeof keeper->trouble);
    if ((code == 0 || is_hopeless(keeper, code)) && profile == keeper->profiles)
        keeper->point_count = 0;
    pthread_mutex_unlock(&keeper->group.lock);
}

/* Makes the ledger. */
static void keeper_open_ledger(struct carbon_keeper *keeper)
{
    struct fly_error error = {.code = 0};
    int code = carbon_ledger_create(&keeper->ledger, keeper->directory, &keeper->head, &error);

    pthread_mutex_lock(&keeper->group.lock);
    if (code == 0)
        memcpy(keeper->path, keeper->ledger.path, sizeof keeper->path);
    else
        memcpy(keeper->trouble, error.text, sizeof keeper->trouble);
    keeper->opened = true;
    thread_group_wake(&keeper->group);
    pthread_mutex_unlock(&keeper->group.lock);
}

/* Writes all that can be written; the rest waits. */
static void keeper_write_all(struct carbon_keeper *keeper)
{
    while (write_slice(keeper))
        ;
    write_profile(keeper);
}

/* Cuts at the borders that have passed, and writes. */
static void keeper_turn(struct carbon_keeper *keeper)
{
    pthread_mutex_lock(&keeper->group.lock);
    if (!keeper->group.closing)
        counter_cut(&keeper->count, CUT_BORDERS);
    pthread_mutex_unlock(&keeper->group.lock);
    keeper_write_all(keeper);
}

/* Waits until the next border, or until there is something to write; false when it is time to end. */
static bool wait_for_work(struct carbon_keeper *keeper)
{
    struct mono_time now = mono_now(), border, until = mono_after_s(now, look_s);
    bool stopping;

    pthread_mutex_lock(&keeper->group.lock);
    border = slicer_next(&keeper->count.slicer);
    if (border.ns < until.ns && !keeper->count.rests)
        until = border;
    while (!keeper->group.closing && !keeper->to_write && thread_group_wait(&keeper->group, until))
        ;
    keeper->to_write = false;
    stopping = keeper->group.closing;
    pthread_mutex_unlock(&keeper->group.lock);
    return !stopping;
}

/* Frees all but the feed of a struct carbon_keeper. */
static void keeper_free(void *of)
{
    struct carbon_keeper *keeper = of;

    carbon_ledger_close(&keeper->ledger);
    carbon_energy_deinit(&keeper->count.energy);
    free(keeper->directory);
    free(keeper);
}

static void run(void *data)
{
    struct carbon_keeper *keeper = data;

    keeper_open_ledger(keeper);
    while (wait_for_work(keeper))
        keeper_turn(keeper);
    keeper_write_all(keeper);
    carbon_ledger_close(&keeper->ledger);
}

/* Starts the thread; false when the system allows none. */
static bool keeper_start_thread(struct carbon_keeper *keeper)
{
    pthread_mutex_lock(&keeper->group.lock);
    keeper->threaded = thread_group_start(&keeper->group, run, keeper);
    pthread_mutex_unlock(&keeper->group.lock);
    return keeper->threaded;
}

/* ---- what the training's thread asks and tells ---- */

/* For the first line of the account, and for the last: nobody waits for a disk that takes longer. */
static const double default_goodbye_s = 0.5;

enum { NS_PER_S = 1000000000 };

static bool is_inert(const struct carbon_keeper *keeper)
{
    return thread_group_is_copy(&keeper->group);
}

static int open_feed(struct carbon_keeper *keeper, const struct carbon_keeper_options *options,
                     bool threadless, struct fly_error *out_error)
{
    struct carbon_feed_options feed = {
        .clock = keeper->clock, .threadless = threadless, .cached_only = options->cached_only};

    _Static_assert((int)CARBON_SOURCE_MAX == (int)LEDGER_TEXT_MAX, "a source fits");
    memcpy(feed.sources, options->head.sources, sizeof feed.sources);
    return carbon_feed_open(&feed, &keeper->feed, out_error);
}

static void write_head(struct carbon_keeper *keeper, const struct ledger_head *head, struct wall_time date)
{
    keeper->head = *head;
    keeper->head.start_s = date.ns / NS_PER_S;
    if (gethostname(keeper->head.host, sizeof keeper->head.host - 1) < 0)
        keeper->head.host[0] = '\0';
}

/* Starts the thread, and waits a moment for it to make the ledger; false: there is no thread. */
static bool begin_thread(struct carbon_keeper *keeper)
{
    struct mono_time until = mono_after_s(mono_now(), keeper->goodbye_s);

    if (!keeper_start_thread(keeper))
        return false;
    pthread_mutex_lock(&keeper->group.lock);
    while (!keeper->opened && thread_group_wait(&keeper->group, until))
        ;
    pthread_mutex_unlock(&keeper->group.lock);
    return true;
}

static struct carbon_keeper *new_keeper(const struct carbon_keeper_options *options)
{
    struct carbon_keeper *keeper = calloc(1, sizeof *keeper);

    if (keeper == NULL)
        return NULL;
    keeper->goodbye_s = options->goodbye_s > 0.0 ? options->goodbye_s : default_goodbye_s;
    keeper->clock = options->clock != NULL ? options->clock : &clock_real;
    keeper->ledger.file = -1;
    if (options->directory != NULL) {
        keeper->directory = strdup(options->directory);
        if (keeper->directory == NULL) {
            free(keeper);
            return NULL;
        }
    }
    thread_group_init(&keeper->group, keeper_free, keeper);
    return keeper;
}

int carbon_keeper_open(const struct carbon_keeper_options *options, struct carbon_keeper **out_keeper,
                       struct fly_error *out_error)
{
    struct carbon_keeper *keeper = new_keeper(options);
    struct wall_time date;
    struct mono_time now;
    bool threadless;
    int code;

    if (keeper == NULL)
        return error_no_memory(out_error);
    threadless = keeper->clock != &clock_real;
    code = open_feed(keeper, options, threadless, out_error);
    if (code < 0) {
        carbon_keeper_close(keeper, NULL);
        return code;
    }
    counter_clocks(keeper->clock, &now, &date);
    write_head(keeper, &options->head, date);
    if (threadless)
        keeper_open_ledger(keeper);
    counter_clocks(keeper->clock, &now, &date);
    if (!counter_init(&keeper->count, keeper->clock, options->meter, options->rests))
        code = error_no_memory(out_error);
    else if (!threadless && !begin_thread(keeper))
        code = error_set(out_error, FLY_ENOMEM,
                         "no thread can be started to keep the account of energy; raise the limit of "
                         "processes (ulimit -u)");
    if (code < 0)
        carbon_keeper_close(keeper, NULL);
    else
        *out_keeper = keeper;
    return code;
}

/* Lets the thread write what is queued, or writes it now when there is no thread. */
static void let_write(struct carbon_keeper *keeper)
{
    if (!keeper->threaded) {
        keeper_write_all(keeper);
        return;
    }
    pthread_mutex_lock(&keeper->group.lock);
    keeper->to_write = true;
    thread_group_wake(&keeper->group);
    pthread_mutex_unlock(&keeper->group.lock);
}

void carbon_keeper_go(struct carbon_keeper *keeper)
{
    if (is_inert(keeper))
        return;
    pthread_mutex_lock(&keeper->group.lock);
    counter_go(&keeper->count);
    pthread_mutex_unlock(&keeper->group.lock);
    let_write(keeper);
}

void carbon_keeper_rest(struct carbon_keeper *keeper)
{
    if (is_inert(keeper))
        return;
    pthread_mutex_lock(&keeper->group.lock);
    counter_rest(&keeper->count);
    pthread_mutex_unlock(&keeper->group.lock);
}

void carbon_keeper_limit(struct carbon_keeper *keeper, double limit_w)
{
    bool other;

    if (is_inert(keeper))
        return;
    pthread_mutex_lock(&keeper->group.lock);
    other = counter_limit(&keeper->count, limit_w);
    pthread_mutex_unlock(&keeper->group.lock);
    if (other)
        let_write(keeper);
}

void carbon_keeper_steps(struct carbon_keeper *keeper, uint64_t steps)
{
    atomic_fetch_add(&keeper->count.steps, steps);
}

void carbon_keeper_profile(struct carbon_keeper *keeper, const struct fly_power_point *points, size_t count)
{
    if (is_inert(keeper) || count == 0)
        return;
    pthread_mutex_lock(&keeper->group.lock);
    if (count <= CARBON_POINTS_MAX) {
        keeper->point_count = count;
        memcpy(keeper->points, points, count * sizeof points[0]);
        keeper->profiles++;
    } else
        snprintf(keeper->trouble, sizeof keeper->trouble,
                 "a power profile of %zu points is not in the account, which has room for %d", count,
                 CARBON_POINTS_MAX);
    pthread_mutex_unlock(&keeper->group.lock);
    let_write(keeper);
}

bool carbon_keeper_take(struct carbon_keeper *keeper, const struct grid_answer *out_answers[CARBON_SIGNALS])
{
    if (!is_inert(keeper))
        return carbon_feed_take(keeper->feed, out_answers);
    for (int i = 0; i < CARBON_SIGNALS; i++)
        out_answers[i] = NULL;
    return false;
}

void carbon_keeper_turn(struct carbon_keeper *keeper)
{
    if (is_inert(keeper) || keeper->threaded)
        return;
    keeper_turn(keeper);
    carbon_feed_turn(keeper->feed);
}

/* Call it with the lock held. */
static void tell_trouble(const struct carbon_keeper *keeper, char text[FLY_ERROR_TEXT_MAX])
{
    uint64_t missing = keeper->count.slicer.lost + keeper->refused;

    if (keeper->path[0] != '\0' && missing > 0)
        snprintf(text, FLY_ERROR_TEXT_MAX, "%" PRIu64 " stretches of time are missing in the account: %.400s",
                 missing, keeper->trouble[0] != '\0' ? keeper->trouble : "they could not be written in time");
    else
        snprintf(text, FLY_ERROR_TEXT_MAX, "%s", keeper->trouble);
}

/* Call it with the lock held. */
static struct carbon_keeper_summary look(struct carbon_keeper *keeper)
{
    struct carbon_keeper_summary summary = {.energy_j = NAN};

    memcpy(summary.path, keeper->path, sizeof summary.path);
    summary.slices = keeper->written;
    if (keeper->written > 0 && keeper->count.slicer.lost + keeper->refused == 0)
        summary.energy_j = keeper->written_j;
    tell_trouble(keeper, summary.text);
    if (summary.text[0] == '\0')
        carbon_feed_text(keeper->feed, summary.text);
    return summary;
}

struct carbon_keeper_summary carbon_keeper_look(struct carbon_keeper *keeper)
{
    struct carbon_keeper_summary summary = {.energy_j = NAN};

    if (is_inert(keeper)) {
        snprintf(summary.text, sizeof summary.text,
                 "the account of energy was opened before a fork and is the parent's");
        return summary;
    }
    pthread_mutex_lock(&keeper->group.lock);
    summary = look(keeper);
    pthread_mutex_unlock(&keeper->group.lock);
    return summary;
}

/* Cuts off what was used up to now, and asks the thread to end, or writes it when there is none. */
static void stop(struct carbon_keeper *keeper)
{
    if (keeper->count.energy.taken == NULL) /* it was never begun */
        return;
    pthread_mutex_lock(&keeper->group.lock);
    keeper->group.closing = true;
    counter_cut(&keeper->count, CUT_LAST);
    pthread_mutex_unlock(&keeper->group.lock);
    if (!keeper->threaded)
        keeper_write_all(keeper);
}

/* Of an account whose thread the disk holds up. */
static struct carbon_keeper_summary held_up(const struct carbon_keeper *keeper)
{
    struct carbon_keeper_summary summary = {.energy_j = NAN, .slices = keeper->written};

    if (keeper->opened)
        snprintf(summary.text, sizeof summary.text,
                 "the disk does not answer, so the end of the account '%.300s' may be missing; 'flyball "
                 "carbon report' tells",
                 keeper->path);
    else
        snprintf(summary.text, sizeof summary.text, "the disk with it does not answer");
    return summary;
}

void carbon_keeper_close(struct carbon_keeper *keeper, struct carbon_keeper_summary *out_summary)
{
    struct carbon_keeper_summary summary = {.path = ""};
    struct carbon_feed *feed;

    if (keeper == NULL)
        return;
    feed = keeper->feed;
    if (is_inert(keeper)) {
        summary = carbon_keeper_look(keeper);
        keeper_free(keeper);
    } else {
        if (feed != NULL)
            carbon_feed_abandon(feed);
        stop(keeper);
        if (!thread_group_end(&keeper->group, keeper->goodbye_s)) {
            summary = held_up(keeper);
        } else if (feed != NULL) {
            keeper->refused += keeper->count.slicer.end - keeper->count.slicer.first;
            keeper->count.slicer.first = keeper->count.slicer.end;
            summary = look(keeper);
        }
        thread_group_leave(&keeper->group);
    }
    if (out_summary != NULL)
        *out_summary = summary;
    carbon_feed_close(feed);
}
