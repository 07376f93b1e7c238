/* SPDX-License-Identifier: Apache-2.0 */
/* How counters and power sensors change, as far as a short watch shows. */
#include <math.h>
#include <stdlib.h>

#include "cli/machine/facts_parts.h"
#include "meter/selftest/selftest.h"

enum { PERIODS_MAX = 1024 };
static const double watched_s = 1.0, poll_s = 0.002;

_Static_assert((int)SELFTEST_WATCHED <= (int)FACTS_LOOKS_MAX, "a file of facts takes as many looks");

/* One figure of one device. */
struct monitored {
    bool wanted;
    struct updates updates;
    double periods_s[PERIODS_MAX];
    int64_t last;
    uint64_t least_step, divisor; /* 0: no change was seen */
};

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* A counter that wrapped or was reset does not show the size of its steps. */
static void note_step(struct monitored *watch, bool counts, int64_t value)
{
    int64_t change = value - watch->last;
    uint64_t step = (uint64_t)(change < 0 ? -change : change);

    if (watch->updates.polls > 0 && change != 0 && !(counts && change < 0)) {
        watch->least_step = watch->least_step == 0 || step < watch->least_step ? step : watch->least_step;
        watch->divisor = greatest_common_divisor(step, watch->divisor);
    }
    watch->last = value;
}

static void poll_device(const struct device *device, struct monitored watches[SELFTEST_WATCHED])
{
    for (size_t i = 0; i < SELFTEST_WATCHED; i++) {
        enum quantity quantity = selftest_watched[i];
        struct device_reading reading;

        if (!watches[i].wanted)
            continue;
        device_read(device, &clock_real, QUANTITY_BIT(quantity), &reading);
        if (reading.values[quantity].state != READING_OK)
            continue;
        note_step(&watches[i], quantity == QUANTITY_ENERGY, reading.values[quantity].value);
        updates_add(&watches[i].updates, reading.after, reading.values[quantity].value);
    }
}

static void poll_all(const struct device_list *list, struct monitored (*watches)[SELFTEST_WATCHED])
{
    struct mono_time now = clock_real.now(clock_real.state), end = mono_after_s(now, watched_s);

    while (now.ns < end.ns) {
        struct mono_time next = mono_after_s(now, poll_s);

        for (size_t i = 0; i < list->count; i++)
            poll_device(&list->devices[i], watches[i]);
        clock_real.sleep_until(clock_real.state, next);
        now = clock_real.now(clock_real.state);
    }
}

static struct facts_look look_of(enum quantity quantity, struct monitored *watch)
{
    struct update_finding finding = updates_find(&watch->updates);

    return (struct facts_look){
        .quantity = quantity,
        .polls = (uint32_t)finding.polls,
        .changes = (uint32_t)finding.changes,
        .watched_s = finding.polls > 1 ? mono_elapsed_s(watch->updates.first, watch->updates.last) : NAN,
        .period_s = finding.period_s.median,
        .least_period_s = finding.period_s.lowest,
        .at_most = finding.at_most,
        .least_step = watch->least_step > 0 ? (double)watch->least_step : NAN,
        .common_divisor = watch->divisor > 0 ? (double)watch->divisor : NAN,
    };
}

static void keep_looks(struct facts_maker *maker, struct facts_device *device,
                       struct monitored watches[SELFTEST_WATCHED])
{
    device->looks = facts_room(maker, SELFTEST_WATCHED, sizeof *device->looks);
    for (size_t i = 0; device->looks != NULL && i < SELFTEST_WATCHED; i++) {
        if (watches[i].wanted)
            device->looks[device->look_count++] = look_of(selftest_watched[i], &watches[i]);
    }
}

/* A figure that is not answered is not watched, and so does not count as a look. */
static void choose(const struct facts_device *device, struct monitored watches[SELFTEST_WATCHED])
{
    for (size_t i = 0; i < SELFTEST_WATCHED; i++) {
        updates_init(&watches[i].updates, watches[i].periods_s, PERIODS_MAX);
        for (size_t j = 0; j < device->answer_count; j++)
            watches[i].wanted |=
                device->answers[j].quantity == selftest_watched[i] && device->answers[j].state == READING_OK;
    }
}

void facts_watch(struct facts_maker *maker)
{
    struct facts *facts = maker->facts;
    struct monitored(*watches)[SELFTEST_WATCHED] = calloc(facts->device_count + 1, sizeof *watches);

    if (watches == NULL) {
        maker->exhausted = true;
        return;
    }
    for (size_t i = 0; i < facts->device_count; i++)
        choose(&facts->devices[i], watches[i]);
    if (facts->device_count == maker->list->count && facts->device_count > 0)
        poll_all(maker->list, watches);
    for (size_t i = 0; i < facts->device_count; i++)
        keep_looks(maker, &facts->devices[i], watches[i]);
    free(watches);
}
