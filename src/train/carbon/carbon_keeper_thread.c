/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's own thread, the only one that writes to the disk: it cuts the energy at borders, and writes
 * what is queued. Without a thread the owner does this.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/left_threads.h"
#include "base/thread/quiet_thread.h"
#include "base/wait.h"
#include "train/carbon/carbon_keeper_private.h"

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

    pthread_mutex_lock(&keeper->lock);
    any = slicer_front(&keeper->count.slicer, &slice, &number);
    pthread_mutex_unlock(&keeper->lock);
    if (!any)
        return false;
    code = carbon_ledger_slice(&keeper->ledger, &slice, &error);
    pthread_mutex_lock(&keeper->lock);
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
    pthread_mutex_unlock(&keeper->lock);
    return code == 0 || is_hopeless(keeper, code);
}

static void write_profile(struct carbon_keeper *keeper)
{
    struct fly_power_point points[CARBON_POINTS_MAX];
    struct fly_error error = {.code = 0};
    uint64_t profile;
    size_t count;
    int code;

    pthread_mutex_lock(&keeper->lock);
    count = keeper->point_count;
    profile = keeper->profiles;
    memcpy(points, keeper->points, sizeof points);
    pthread_mutex_unlock(&keeper->lock);
    if (count == 0)
        return;
    code = carbon_ledger_profile(&keeper->ledger, points, count, &error);
    pthread_mutex_lock(&keeper->lock);
    if (code < 0 && code != FLY_ESTATE)
        memcpy(keeper->trouble, error.text, sizeof keeper->trouble);
    if ((code == 0 || is_hopeless(keeper, code)) && profile == keeper->profiles)
        keeper->point_count = 0;
    pthread_mutex_unlock(&keeper->lock);
}

void keeper_open_ledger(struct carbon_keeper *keeper)
{
    struct fly_error error = {.code = 0};
    int code = carbon_ledger_create(&keeper->ledger, keeper->directory, &keeper->head, &error);

    pthread_mutex_lock(&keeper->lock);
    if (code == 0)
        memcpy(keeper->path, keeper->ledger.path, sizeof keeper->path);
    else
        memcpy(keeper->trouble, error.text, sizeof keeper->trouble);
    keeper->opened = true;
    pthread_cond_broadcast(&keeper->wake);
    pthread_mutex_unlock(&keeper->lock);
}

/* Writes all that can be written; the rest waits. */
void keeper_write_all(struct carbon_keeper *keeper)
{
    while (write_slice(keeper))
        ;
    write_profile(keeper);
}

void keeper_turn(struct carbon_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    if (!keeper->stopping)
        counter_cut(&keeper->count, CUT_BORDERS);
    pthread_mutex_unlock(&keeper->lock);
    keeper_write_all(keeper);
}

/* Waits until the next border, or until there is something to write; false when it is time to end. */
static bool wait_for_work(struct carbon_keeper *keeper)
{
    struct mono_time now = mono_now(), border, until = mono_after_s(now, look_s);
    bool stopping;

    pthread_mutex_lock(&keeper->lock);
    border = slicer_next(&keeper->count.slicer);
    if (border.ns < until.ns && !keeper->count.rests)
        until = border;
    while (!keeper->stopping && !keeper->to_write && mono_wait(&keeper->wake, &keeper->lock, until))
        ;
    keeper->to_write = false;
    stopping = keeper->stopping;
    pthread_mutex_unlock(&keeper->lock);
    return !stopping;
}

/* Frees all but the feed. */
void keeper_free(struct carbon_keeper *keeper)
{
    carbon_ledger_close(&keeper->ledger);
    carbon_energy_deinit(&keeper->count.energy);
    free(keeper->directory);
    free(keeper);
}

static void *run(void *data)
{
    struct carbon_keeper *keeper = data;
    bool left;

    keeper_open_ledger(keeper);
    while (wait_for_work(keeper))
        keeper_turn(keeper);
    keeper_write_all(keeper);
    carbon_ledger_close(&keeper->ledger);
    pthread_mutex_lock(&keeper->lock);
    keeper->ended = true;
    left = keeper->left;
    pthread_cond_broadcast(&keeper->wake);
    pthread_mutex_unlock(&keeper->lock);
    if (left) {
        keeper_free(keeper);
        left_threads_remove();
    }
    return NULL;
}

bool keeper_start_thread(struct carbon_keeper *keeper)
{
    keeper->threaded = quiet_thread_start(&keeper->thread, run, keeper);
    return keeper->threaded;
}

/*
 * Lets the thread write the last line. Call it with the lock held; it unlocks. False when the disk holds the
 * thread up: then the thread is left running, and owns the keeper.
 */
bool keeper_end_thread(struct carbon_keeper *keeper, struct carbon_keeper_summary *out_summary)
{
    struct mono_time until = mono_after_s(mono_now(), keeper->goodbye_s);
    bool ended;

    pthread_cond_broadcast(&keeper->wake);
    while (!keeper->ended && mono_wait(&keeper->wake, &keeper->lock, until))
        ;
    ended = keeper->ended;
    if (!ended) {
        *out_summary = (struct carbon_keeper_summary){.energy_j = NAN, .slices = keeper->written};
        if (keeper->opened)
            snprintf(out_summary->text, sizeof out_summary->text,
                     "the disk does not answer, so the end of the account '%.300s' may be missing; 'flyball "
                     "carbon report' tells",
                     keeper->path);
        else
            snprintf(out_summary->text, sizeof out_summary->text, "the disk with it does not answer");
        keeper->left = true;
        left_threads_add();
        pthread_detach(keeper->thread);
    }
    pthread_mutex_unlock(&keeper->lock);
    if (ended)
        pthread_join(keeper->thread, NULL);
    return ended;
}
