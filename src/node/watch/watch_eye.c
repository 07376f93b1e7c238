/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads one device. It holds no lock while it is in the driver, so nobody waits for a
 * call that hangs.
 */
#include "node/watch/watch_private.h"

enum {
    FACTS_EVERY = 20,  /* readings; what hardly changes is read so seldom */
    FAILURES_MAX = 10, /* readings in a row without a figure, after which the device counts as lost */
};

static const quantity_set seldom =
    QUANTITY_BIT(QUANTITY_POWER_LIMIT_DEFAULT) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) |
    QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX) | QUANTITY_BIT(QUANTITY_CLOCK_GPU_MAX) |
    QUANTITY_BIT(QUANTITY_PERSISTENCE) | QUANTITY_BIT(QUANTITY_MIG);

static bool is_read(const struct device_reading *reading, enum quantity quantity)
{
    return reading->values[quantity].state == READING_OK;
}

static bool is_gone(const struct device_reading *reading)
{
    return reading->values[QUANTITY_ENERGY].state == READING_LOST ||
           reading->values[QUANTITY_POWER_INSTANT].state == READING_LOST ||
           reading->values[QUANTITY_POWER_AVERAGE].state == READING_LOST;
}

static void keep_facts(const struct place *place, struct device_reading *reading)
{
    for (int quantity = 0; quantity < QUANTITY_COUNT; quantity++) {
        if (seldom & QUANTITY_BIT(quantity))
            reading->values[quantity] = place->latest.reading.values[quantity];
    }
}

/* A failure is not at once the end: drivers have bad moments. */
static void note_failure(struct place *place, const struct device_reading *reading)
{
    bool gone = is_gone(reading);

    if (!gone && ++place->failures < FAILURES_MAX)
        return;
    place->lost = true;
    place->failures = 0;
    place_leave(place, gone ? "the driver says that it is lost" : "the driver does not read it any more");
    thread_group_wake(&place->watch->group);
}

static void take(struct place *place, struct device_reading *reading, bool with_facts)
{
    struct watch *watch = place->watch;
    const struct clock *clock = watch->options.clock;
    struct watch_sample *sample = &place->latest;
    double elapsed_s = sample->id == 0 ? 0.0 : mono_elapsed_s(sample->at, reading->after);
    double energy_j;

    if (!with_facts)
        keep_facts(place, reading);
    energy_j = (double)watch_total_take(&place->total, &place->info, reading) * 1e-6;
    /* What went on in a gap is not known, and not told by the reading at its end. */
    if (sample->id != 0 && elapsed_s <= WATCH_GAP_S)
        shares_take(&place->shares, reading->values, elapsed_s, energy_j);
    *sample = (struct watch_sample){
        .id = ++watch->newest_id,
        .at = reading->after,
        .unix_ms = clock->date(clock->state).ns / 1000000,
        .gpu = (size_t)(place - watch->places),
        .reading = *reading,
        .energy_total_j = (double)place->total.energy_uj * 1e-6,
        .energy_j = energy_j,
        .since_s = elapsed_s,
    };
    watch->ring[sample->id % watch->options.ring] = *sample;
    place->failures = 0;
    place->why[0] = '\0';
}

static void tell_listener(struct watch *watch)
{
    pthread_mutex_lock(&watch->listener_lock);
    if (watch->fresh != NULL)
        watch->fresh(watch->fresh_state);
    pthread_mutex_unlock(&watch->listener_lock);
}

/* Reads once; unlocks meanwhile. */
static void poll_once(struct place *place)
{
    struct watch *watch = place->watch;
    struct generation *generation = place->generation;
    const struct device *device = place->device;
    bool with_facts = place->latest.id == 0 || place->polls++ % FACTS_EVERY == 0, taken = false;
    struct device_reading reading;

    generation_use(generation);
    place->call_began = mono_now();
    pthread_mutex_unlock(&watch->group.lock);
    device_read(device, watch->options.clock, with_facts ? QUANTITY_ALL : QUANTITY_ALL & ~seldom, &reading);
    pthread_mutex_lock(&watch->group.lock);
    place->call_began.ns = 0;
    /* Meanwhile it may have been left, and what came back is of the past. */
    if (place->device == device) {
        taken = is_read(&reading, QUANTITY_ENERGY) || is_read(&reading, QUANTITY_POWER_INSTANT) ||
                is_read(&reading, QUANTITY_POWER_AVERAGE);
        if (taken)
            take(place, &reading, with_facts);
        else
            note_failure(place, &reading);
    }
    generation_drop(watch, generation);
    if (taken && !watch->group.closing) {
        pthread_mutex_unlock(&watch->group.lock);
        tell_listener(watch);
        pthread_mutex_lock(&watch->group.lock);
    }
}

/* The schedule does not drift; polls that were missed are left out. */
static struct mono_time next_poll(struct mono_time due, double poll_s)
{
    struct mono_time now = mono_now(), next = mono_after_s(due, poll_s);

    return next.ns > now.ns ? next : mono_after_s(now, poll_s);
}

void watch_eye(void *state)
{
    struct place *place = state;
    struct watch *watch = place->watch;
    struct mono_time due = mono_now();

    pthread_mutex_lock(&watch->group.lock);
    while (!watch->group.closing) {
        if (place->device == NULL) {
            (void)thread_group_wait(&watch->group, MONO_NEVER);
            due = mono_now();
            continue;
        }
        if (mono_now().ns < due.ns) {
            (void)thread_group_wait(&watch->group, due);
            continue;
        }
        poll_once(place);
        due = next_poll(due, watch->options.poll_s);
    }
    pthread_mutex_unlock(&watch->group.lock);
}
