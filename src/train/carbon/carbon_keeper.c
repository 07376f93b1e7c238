/* SPDX-License-Identifier: Apache-2.0 */
/* What the training's thread asks and tells the keeper. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "base/wait.h"
#include "train/carbon/carbon_keeper_private.h"

/* For the first line of the account, and for the last: nobody waits for a disk that takes longer. */
static const double default_goodbye_s = 0.5;

enum { NS_PER_S = 1000000000 };

static bool is_inert(const struct carbon_keeper *keeper)
{
    return keeper->forks != fork_generation();
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
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->opened && mono_wait(&keeper->wake, &keeper->lock, until))
        ;
    pthread_mutex_unlock(&keeper->lock);
    return true;
}

static struct carbon_keeper *new_keeper(const struct carbon_keeper_options *options)
{
    struct carbon_keeper *keeper = calloc(1, sizeof *keeper);

    if (keeper == NULL)
        return NULL;
    keeper->forks = fork_generation();
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
    pthread_mutex_init(&keeper->lock, NULL);
    mono_cond_init(&keeper->wake);
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
    pthread_mutex_lock(&keeper->lock);
    keeper->to_write = true;
    pthread_cond_signal(&keeper->wake);
    pthread_mutex_unlock(&keeper->lock);
}

void carbon_keeper_go(struct carbon_keeper *keeper)
{
    if (is_inert(keeper))
        return;
    pthread_mutex_lock(&keeper->lock);
    counter_go(&keeper->count);
    pthread_mutex_unlock(&keeper->lock);
    let_write(keeper);
}

void carbon_keeper_rest(struct carbon_keeper *keeper)
{
    if (is_inert(keeper))
        return;
    pthread_mutex_lock(&keeper->lock);
    counter_rest(&keeper->count);
    pthread_mutex_unlock(&keeper->lock);
}

void carbon_keeper_limit(struct carbon_keeper *keeper, double limit_w)
{
    bool other;

    if (is_inert(keeper))
        return;
    pthread_mutex_lock(&keeper->lock);
    other = counter_limit(&keeper->count, limit_w);
    pthread_mutex_unlock(&keeper->lock);
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
    pthread_mutex_lock(&keeper->lock);
    if (count <= CARBON_POINTS_MAX) {
        keeper->point_count = count;
        memcpy(keeper->points, points, count * sizeof points[0]);
        keeper->profiles++;
    } else
        snprintf(keeper->trouble, sizeof keeper->trouble,
                 "a power profile of %zu points is not in the account, which has room for %d", count,
                 CARBON_POINTS_MAX);
    pthread_mutex_unlock(&keeper->lock);
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

struct carbon_keeper_summary carbon_keeper_look(struct carbon_keeper *keeper)
{
    struct carbon_keeper_summary summary = {.energy_j = NAN};

    if (is_inert(keeper)) {
        snprintf(summary.text, sizeof summary.text,
                 "the account of energy was opened before a fork and is the parent's");
        return summary;
    }
    pthread_mutex_lock(&keeper->lock);
    memcpy(summary.path, keeper->path, sizeof summary.path);
    summary.slices = keeper->written;
    if (keeper->written > 0 && keeper->count.slicer.lost + keeper->refused == 0)
        summary.energy_j = keeper->written_j;
    tell_trouble(keeper, summary.text);
    pthread_mutex_unlock(&keeper->lock);
    if (summary.text[0] == '\0')
        carbon_feed_text(keeper->feed, summary.text);
    return summary;
}

/* Writes down what was used up to now, as far as possible; returns false like keeper_end_thread. */
static bool end_account(struct carbon_keeper *keeper, struct carbon_keeper_summary *out_summary)
{
    if (keeper->count.energy.taken == NULL) /* it was never begun */
        return true;
    pthread_mutex_lock(&keeper->lock);
    keeper->stopping = true;
    counter_cut(&keeper->count, CUT_LAST);
    if (!keeper->threaded) {
        pthread_mutex_unlock(&keeper->lock);
        keeper_write_all(keeper);
    } else if (!keeper_end_thread(keeper, out_summary)) {
        return false;
    }
    pthread_mutex_lock(&keeper->lock);
    keeper->refused += keeper->count.slicer.end - keeper->count.slicer.first;
    keeper->count.slicer.first = keeper->count.slicer.end;
    pthread_mutex_unlock(&keeper->lock);
    return true;
}

void carbon_keeper_close(struct carbon_keeper *keeper, struct carbon_keeper_summary *out_summary)
{
    struct carbon_keeper_summary summary = {.path = ""};
    struct carbon_feed *feed;
    bool ours = true;

    if (keeper == NULL)
        return;
    feed = keeper->feed;
    if (!is_inert(keeper) && feed != NULL) {
        carbon_feed_abandon(feed);
        ours = end_account(keeper, &summary);
    }
    if (out_summary != NULL)
        *out_summary = ours ? carbon_keeper_look(keeper) : summary;
    if (ours)
        keeper_free(keeper);
    carbon_feed_close(feed);
}
