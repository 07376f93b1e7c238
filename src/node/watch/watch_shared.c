/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of a watch do alike: let go of devices, save the totals, and tell. */
#include "node/watch/watch_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void watch_tell(const struct watch *watch, bool trouble, const char *format, ...)
{
    char line[MESSAGE_MAX + 100];
    va_list arguments;

    if (watch->options.tell == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    watch->options.tell(watch->options.tell_state, trouble, line);
}

void generation_use(struct generation *generation)
{
    generation->users++;
}

void generation_drop(struct watch *watch, struct generation *generation)
{
    if (--generation->users > 0)
        return;
    generation->next = watch->ended;
    watch->ended = generation;
    thread_group_wake(&watch->group);
}

void place_leave(struct place *place, const char *why)
{
    if (place->device == NULL)
        return;
    place->device = NULL;
    place->watch->comings++;
    snprintf(place->why, sizeof place->why, "%s", why);
    generation_drop(place->watch, place->generation);
    place->generation = NULL;
}

static size_t collect(const struct watch *watch, struct watch_saved *out_saved)
{
    size_t count = 0;

    for (size_t i = 0; i < PLACES_MAX; i++) {
        const struct place *place = &watch->places[i];

        if (!place->known)
            continue;
        snprintf(out_saved[count].uuid, sizeof out_saved[count].uuid, "%s", place->info.uuid);
        out_saved[count].total = place->total;
        out_saved[count++].shares = place->shares;
    }
    return count;
}

static bool is_among(const struct watch_saved *saved, size_t count, const char *uuid)
{
    while (count > 0 && strcmp(saved[count - 1].uuid, uuid) != 0)
        count--;
    return count > 0;
}

void watch_save(struct watch *watch)
{
    struct watch_saved *now = calloc(PLACES_MAX + SAVED_MAX, sizeof *now);
    struct fly_error error;
    size_t count, seen;
    int code;

    watch->save_due = mono_after_s(mono_now(), watch->options.save_s);
    if (now == NULL || !watch->save_wanted) {
        free(now);
        return;
    }
    seen = count = collect(watch, now);
    /* Devices that are away keep their totals. */
    for (size_t i = 0; i < watch->saved_count; i++) {
        if (!is_among(now, seen, watch->saved[i].uuid))
            now[count++] = watch->saved[i];
    }
    pthread_mutex_unlock(&watch->group.lock);
    code = watch_state_write(watch->state_path, now, count, watch->boot, &error);
    if (code < 0)
        watch_tell(watch, true, "totals of energy are not saved: %s", error.text);
    free(now);
    pthread_mutex_lock(&watch->group.lock);
}
