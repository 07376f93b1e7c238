/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's own thread, the only one that writes to the disk: it cuts the energy at borders, and writes
 * what is queued. Without a thread the owner does this.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
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

void keeper_open_ledger(struct carbon_keeper *keeper)
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
void keeper_write_all(struct carbon_keeper *keeper)
{
    while (write_slice(keeper))
        ;
    write_profile(keeper);
}

void keeper_turn(struct carbon_keeper *keeper)
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

void keeper_free(void *of)
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

bool keeper_start_thread(struct carbon_keeper *keeper)
{
    pthread_mutex_lock(&keeper->group.lock);
    keeper->threaded = thread_group_start(&keeper->group, run, keeper);
    pthread_mutex_unlock(&keeper->group.lock);
    return keeper->threaded;
}
