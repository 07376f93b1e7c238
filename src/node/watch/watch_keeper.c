/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that opens and closes the driver. Calls of the driver may hang, and then only this
 * thread does.
 */
#include "node/watch/watch_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/open/backends.h"

/* ---- places ---- */

static bool is_of(const struct place *place, const struct device_info *info)
{
    return place->known && place->info.kind == info->kind && strcmp(place->info.uuid, info->uuid) == 0;
}

static void resume_total(struct watch *watch, struct place *place)
{
    for (size_t i = 0; i < watch->saved_count; i++) {
        if (strcmp(watch->saved[i].uuid, place->info.uuid) != 0)
            continue;
        watch_total_resume(&place->total, &watch->saved[i].total);
        place->shares = watch->saved[i].shares;
    }
}

/* Returns the device's place, a new one if it has none yet; NULL if there is no more room. */
static struct place *place_of(struct watch *watch, const struct device_info *info)
{
    bool gpu = info->kind == DEVICE_GPU;
    size_t *count = gpu ? &watch->gpu_count : &watch->cpu_count;
    size_t first = gpu ? 0 : WATCH_CPU_FIRST, maximum = gpu ? WATCH_GPUS_MAX : WATCH_CPUS_MAX;
    struct place *made;

    for (size_t i = first; i < first + *count; i++) {
        if (is_of(&watch->places[i], info))
            return &watch->places[i];
    }
    if (*count == maximum)
        return NULL;
    made = &watch->places[first + *count];
    made->watch = watch;
    made->info = *info;
    if (!thread_group_start(&watch->group, watch_eye, made))
        return NULL;
    made->known = true;
    ++*count;
    resume_total(watch, made);
    return made;
}

/* Gives every place without a device that of the new list, if it has one. */
static void take_list(struct watch *watch, struct generation *made)
{
    for (size_t i = 0; i < made->list.count; i++) {
        const struct device *device = &made->list.devices[i];
        bool passed_over = device->info.denied || device->info.silent;
        struct place *place = passed_over ? NULL : place_of(watch, &device->info);

        if (place == NULL || place->device != NULL)
            continue;
        place->device = device;
        place->generation = made;
        place->info = device->info;
        place->lost = false;
        watch->comings++;
        generation_use(made);
    }
}

/* ---- opening and closing ---- */

static bool wants_open(const struct watch *watch)
{
    if (watch->released)
        return false;
    for (size_t i = 0; i < PLACES_MAX; i++) {
        if (watch->places[i].known && watch->places[i].device == NULL)
            return true;
    }
    return watch->gpu_count == 0 || watch->silent_count > 0;
}

static size_t count_silent(const struct device_list *list)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        count += list->devices[i].info.silent;
    return count;
}

/* Says why not all GPUs are open; "" if they are. */
static void say_why(const struct device_list *list, char why[MESSAGE_MAX])
{
    size_t silent = count_silent(list), count = device_list_count(list, DEVICE_GPU);

    if (silent > 0)
        snprintf(why, MESSAGE_MAX, "%zu of %zu GPUs do not answer their driver", silent, count);
    if (count > 0)
        return;
    snprintf(why, MESSAGE_MAX, "no driver of a GPU answers");
    for (size_t i = 0; i < list->report_count; i++) {
        const struct backend_report *report = &list->reports[i];

        if (report->backend->kind == DEVICE_GPU && report->error.code < 0 && report->error.text[0] != '\0') {
            snprintf(why, MESSAGE_MAX, "%.300s", report->error.text);
            return;
        }
    }
}

/* Unlocks while it opens. */
static void open_driver(struct watch *watch)
{
    struct generation *made = calloc(1, sizeof *made);
    struct fly_error error = {.text = "memory is exhausted"};
    size_t before = watch->gpu_count;
    char why[MESSAGE_MAX] = "";
    int code = -1;

    pthread_mutex_unlock(&watch->group.lock);
    if (made != NULL)
        code = watch->options.open_list(watch->options.devices, &made->list, &error);
    if (code < 0)
        snprintf(why, sizeof why, "%.300s", error.text);
    else
        say_why(&made->list, why);
    pthread_mutex_lock(&watch->group.lock);
    if (code < 0) {
        free(made);
    } else {
        watch->open_lists++;
        watch->silent_count = count_silent(&made->list);
        generation_use(made);
        if (!watch->released && !watch->group.closing)
            take_list(watch, made);
        generation_drop(watch, made);
    }
    watch->opened = true;
    thread_group_wake(&watch->group);
    if (strcmp(watch->why, why) == 0 && before == watch->gpu_count)
        return;
    memcpy(watch->why, why, sizeof why);
    before = watch->gpu_count;
    pthread_mutex_unlock(&watch->group.lock);
    if (why[0] != '\0' && before == 0)
        watch_tell(watch, true, "no GPU is watched: %s; it is tried again", why);
    else if (why[0] != '\0')
        watch_tell(watch, true, "%zu GPUs are watched; %s; it is tried again", before, why);
    else
        watch_tell(watch, false, "%zu GPUs are watched", before);
    pthread_mutex_lock(&watch->group.lock);
}

/* Unlocks while it closes. */
static void close_ended(struct watch *watch)
{
    while (watch->ended != NULL) {
        struct generation *ended = watch->ended;

        watch->ended = ended->next;
        pthread_mutex_unlock(&watch->group.lock);
        device_list_close(&ended->list);
        free(ended);
        pthread_mutex_lock(&watch->group.lock);
        watch->open_lists--;
        thread_group_wake(&watch->group);
    }
}

static void leave_all(struct watch *watch)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        place_leave(&watch->places[i], "the driver was released; resume it");
}

static struct mono_time earlier(struct mono_time one, struct mono_time other)
{
    return one.ns < other.ns ? one : other;
}

void watch_keeper(void *state)
{
    struct watch *watch = state;
    struct mono_time try_at = mono_now();

    pthread_mutex_lock(&watch->group.lock);
    while (!watch->group.closing) {
        struct mono_time now = mono_now();

        if (watch->released)
            leave_all(watch);
        close_ended(watch);
        if (now.ns >= try_at.ns || watch->retry_now) {
            watch->retry_now = false;
            if (wants_open(watch))
                open_driver(watch);
            try_at = mono_after_s(mono_now(), watch->options.retry_s);
        }
        if (now.ns >= watch->save_due.ns)
            watch_save(watch);
        if (watch->ended == NULL && !watch->group.closing && !watch->retry_now)
            (void)thread_group_wait(&watch->group, earlier(try_at, watch->save_due));
    }
    leave_all(watch);
    close_ended(watch);
    /* Calls that are under way still use theirs; one that hangs keeps this thread, and nobody else. */
    while (watch->open_lists > 0) {
        (void)thread_group_wait(&watch->group, MONO_NEVER);
        close_ended(watch);
    }
    pthread_mutex_unlock(&watch->group.lock);
}
