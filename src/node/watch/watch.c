/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing, and what others ask of a watch. */
#include "node/watch/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file/user_directory.h"
#include "device/open/backends.h"
#include "node/watch/watch_private.h"

enum { RING_OF_A_PLACE = 64, STATE_MODE = 0750 };

static const double poll_default_s = 0.1, save_default_s = 10.0, retry_default_s = 2.0, first_most_s = 10.0,
                    close_most_s = 2.0, stale_extra_s = 0.5;

static void load(struct watch *watch)
{
    char boot[WATCH_BOOT_MAX];
    struct fly_error error;

    watch_boot_id(watch->boot);
    if (watch->state_path == NULL || watch->saved == NULL)
        return;
    (void)user_directory_make_above(watch->state_path, STATE_MODE); /* writing says why it cannot be made */
    if (watch_state_read(watch->state_path, watch->saved, SAVED_MAX, &watch->saved_count, boot, &error) < 0) {
        watch->saved_count = 0;
        watch_tell(watch, true, "totals of energy begin at 0, and are not saved: %s", error.text);
        return;
    }
    watch->save_wanted = true;
    if (boot[0] != '\0' && strcmp(boot, watch->boot) == 0)
        return;
    for (size_t i = 0; i < watch->saved_count; i++)
        watch_total_reboot(&watch->saved[i].total);
}

/* ---- opening and closing ---- */

static void fill_options(struct watch_options *options)
{
    options->poll_s = options->poll_s > 0.0 ? options->poll_s : poll_default_s;
    options->save_s = options->save_s > 0.0 ? options->save_s : save_default_s;
    options->retry_s = options->retry_s > 0.0 ? options->retry_s : retry_default_s;
    options->ring = options->ring > 0 ? options->ring : RING_OF_A_PLACE * PLACES_MAX;
    if (options->clock == NULL)
        options->clock = &clock_real;
    if (options->open_list == NULL)
        options->open_list = device_list_open;
}

static void free_watch(void *of)
{
    struct watch *watch = of;

    pthread_mutex_destroy(&watch->listener_lock);
    free(watch->ring);
    free(watch->saved);
    free(watch->state_path);
    free(watch);
}

int watch_open(const struct watch_options *options, struct watch **out_watch, struct fly_error *out_error)
{
    struct mono_time until = mono_after_s(mono_now(), first_most_s);
    struct watch *made = calloc(1, sizeof *made);
    bool whole;

    if (made == NULL)
        return error_no_memory(out_error);
    made->options = *options;
    fill_options(&made->options);
    made->ring = calloc(made->options.ring, sizeof *made->ring);
    made->saved = calloc(SAVED_MAX, sizeof *made->saved);
    made->state_path = options->state_path != NULL ? strdup(options->state_path) : NULL;
    made->options.state_path = NULL;
    whole = made->ring != NULL && made->saved != NULL &&
            (made->state_path != NULL || options->state_path == NULL);
    thread_group_init(&made->group, free_watch, made);
    pthread_mutex_init(&made->listener_lock, NULL);
    load(made);
    made->save_due = mono_after_s(mono_now(), made->options.save_s);
    pthread_mutex_lock(&made->group.lock);
    if (!whole || !thread_group_start(&made->group, watch_keeper, made)) {
        thread_group_leave(&made->group);
        return error_no_memory(out_error);
    }
    while (!made->opened && thread_group_wait(&made->group, until))
        ;
    pthread_mutex_unlock(&made->group.lock);
    *out_watch = made;
    return 0;
}

void watch_close(struct watch *watch)
{
    if (watch == NULL)
        return;
    watch_listen(watch, NULL, NULL);
    (void)thread_group_end(&watch->group, close_most_s);
    watch_save(watch);
    thread_group_leave(&watch->group);
}

/* ---- what others ask ---- */

static struct place *place_at(struct watch *watch, size_t gpu)
{
    return gpu < PLACES_MAX && watch->places[gpu].known ? &watch->places[gpu] : NULL;
}

size_t watch_gpu_count(struct watch *watch)
{
    size_t count;

    pthread_mutex_lock(&watch->group.lock);
    count = watch->gpu_count;
    pthread_mutex_unlock(&watch->group.lock);
    return count;
}

size_t watch_cpu_count(struct watch *watch)
{
    size_t count;

    pthread_mutex_lock(&watch->group.lock);
    count = watch->cpu_count;
    pthread_mutex_unlock(&watch->group.lock);
    return count;
}

double place_silent_s(const struct place *place)
{
    return place->call_began.ns == 0 ? 0.0 : mono_elapsed_s(place->call_began, mono_now());
}

void watch_look(struct watch *watch, size_t gpu, struct watch_device *out_device)
{
    const struct place *place;

    *out_device = (struct watch_device){.present = false};
    pthread_mutex_lock(&watch->group.lock);
    place = place_at(watch, gpu);
    if (place != NULL)
        *out_device = (struct watch_device){.info = place->info,
                                            .present = place->device != NULL,
                                            .silent_s = place_silent_s(place),
                                            .total = place->total,
                                            .shares = place->shares};
    pthread_mutex_unlock(&watch->group.lock);
}

void watch_gpu_info(struct watch *watch, size_t gpu, struct device_info *out_info)
{
    struct watch_device device;

    watch_look(watch, gpu, &device);
    *out_info = device.info;
}

void watch_raise(struct watch *watch, size_t gpu, int64_t energy_uj)
{
    struct place *place;

    pthread_mutex_lock(&watch->group.lock);
    place = place_at(watch, gpu);
    if (place != NULL && place->total.energy_uj < energy_uj)
        place->total.energy_uj = energy_uj;
    pthread_mutex_unlock(&watch->group.lock);
}

int place_check_fresh(const struct place *place, struct fly_error *out_error)
{
    const struct watch *watch = place->watch;
    double age_s = place->latest.id == 0 ? INFINITY : mono_elapsed_s(place->latest.at, mono_now());
    const struct device_info *info = &place->info;

    if (place->device == NULL)
        return error_set(out_error, FLY_EREAD, "%s %u is not read: %s", device_kind_name(info->kind),
                         info->index, place->why[0] != '\0' ? place->why : "its driver is not open");
    if (age_s <= 2.0 * watch->options.poll_s + stale_extra_s)
        return 0;
    if (place_silent_s(place) > 0.0)
        return error_set(out_error, FLY_EREAD,
                         "%s %u does not answer: a call of its driver has hung for %.1f s",
                         device_kind_name(info->kind), info->index, place_silent_s(place));
    return error_set(out_error, FLY_EREAD, "%s %u gave no figure yet; try again",
                     device_kind_name(info->kind), info->index);
}

int watch_latest(struct watch *watch, size_t gpu, struct watch_sample *out_sample,
                 struct fly_error *out_error)
{
    const struct place *place;
    int code;

    pthread_mutex_lock(&watch->group.lock);
    place = place_at(watch, gpu);
    if (place == NULL)
        code = error_set(out_error, FLY_ENOTFOUND, "there is no device %zu", gpu);
    else
        code = place_check_fresh(place, out_error);
    if (code == 0)
        *out_sample = place->latest;
    pthread_mutex_unlock(&watch->group.lock);
    return code;
}

size_t watch_since(struct watch *watch, uint64_t after_id, struct watch_sample *out_samples, size_t max,
                   uint64_t *out_lost)
{
    size_t count = 0;
    uint64_t oldest, id;

    pthread_mutex_lock(&watch->group.lock);
    oldest = watch->newest_id > watch->options.ring ? watch->newest_id - watch->options.ring + 1 : 1;
    id = after_id + 1 > oldest ? after_id + 1 : oldest;
    *out_lost = after_id == 0 ? 0 : id - (after_id + 1);
    for (; id <= watch->newest_id && count < max; id++)
        out_samples[count++] = watch->ring[id % watch->options.ring];
    pthread_mutex_unlock(&watch->group.lock);
    return count;
}

uint64_t watch_stamp(struct watch *watch)
{
    uint64_t stamp;

    pthread_mutex_lock(&watch->group.lock);
    stamp = watch->newest_id + watch->comings; /* both only rise */
    pthread_mutex_unlock(&watch->group.lock);
    return stamp;
}

void watch_listen(struct watch *watch, void (*fresh)(void *state), void *state)
{
    pthread_mutex_lock(&watch->listener_lock);
    watch->fresh = fresh;
    watch->fresh_state = state;
    pthread_mutex_unlock(&watch->listener_lock);
}

int watch_borrow(struct watch *watch, size_t gpu, const struct device **out_device,
                 struct fly_error *out_error)
{
    struct place *place;
    int code = 0;

    pthread_mutex_lock(&watch->group.lock);
    place = place_at(watch, gpu);
    if (place == NULL || watch->released || (place->device == NULL && place->borrowers == 0))
        code = error_set(out_error, FLY_EUNSUPPORTED, "GPU %zu is not there now: %s", gpu,
                         place == NULL ? watch->why : place->why);
    if (code == 0 && place->borrowers++ == 0) {
        place->lent = place->generation;
        place->lent_device = place->device;
        generation_use(place->lent);
    }
    if (code == 0)
        *out_device = place->lent_device;
    pthread_mutex_unlock(&watch->group.lock);
    return code;
}

void watch_give_back(struct watch *watch, size_t gpu)
{
    struct place *place;

    pthread_mutex_lock(&watch->group.lock);
    place = place_at(watch, gpu);
    if (place != NULL && place->borrowers > 0 && --place->borrowers == 0) {
        generation_drop(watch, place->lent);
        place->lent = NULL;
    }
    pthread_mutex_unlock(&watch->group.lock);
}

int watch_release(struct watch *watch, double most_s, struct fly_error *out_error)
{
    struct mono_time until = mono_after_s(mono_now(), most_s);
    int code = 0;

    pthread_mutex_lock(&watch->group.lock);
    watch->released = watch->retry_now = true;
    thread_group_wake(&watch->group);
    while (watch->released && watch->open_lists > 0 && thread_group_wait(&watch->group, until))
        ;
    if (watch->released && watch->open_lists > 0)
        code = error_set(
            out_error, FLY_EBUSY,
            "the driver is still in use: a GPU is lent, or a call hangs; it is closed when that ends");
    pthread_mutex_unlock(&watch->group.lock);
    return code;
}

void watch_resume(struct watch *watch)
{
    pthread_mutex_lock(&watch->group.lock);
    watch->released = false;
    watch->retry_now = true;
    thread_group_wake(&watch->group);
    pthread_mutex_unlock(&watch->group.lock);
}
