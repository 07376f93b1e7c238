/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays facts: devices give the answers they gave then, through back ends that have the names of
 * the real ones and set nothing.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "device/recording/facts.h"

static void play_close(struct device *device)
{
    (void)device; /* the list owns everything */
}

static void play_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    const struct facts_device *played = device->state;

    readings_fail(values, wanted, READING_NOT_READ, 0);
    for (size_t i = 0; i < played->answer_count; i++) {
        const struct facts_answer *answer = &played->answers[i];

        if ((wanted & QUANTITY_BIT(answer->quantity)) != 0)
            values[answer->quantity] =
                (struct reading){.state = answer->state,
                                 .code = (int)answer->code,
                                 .value = answer->state == READING_OK ? (int64_t)answer->value : 0};
    }
}

static int play_processes(const struct device *device, unsigned kinds, struct device_process *processes,
                          size_t maximum, size_t *out_count)
{
    static const int codes[] = {[PROCESSES_NOT_OFFERED] = FLY_EUNSUPPORTED,
                                [PROCESSES_SEEN] = 0,
                                [PROCESSES_DENIED] = FLY_EPERM,
                                [PROCESSES_FAILED] = FLY_EREAD};
    const struct facts_device *played = device->state;

    (void)kinds;
    (void)processes;
    (void)maximum;
    if (codes[played->processes] == 0)
        *out_count = 0;
    return codes[played->processes];
}

static int play_clocks(const struct device *device, enum quantity quantity, int64_t *clocks_mhz,
                       size_t maximum, size_t *out_count)
{
    const struct facts_device *played = device->state;

    if (played->clock_count == 0 || quantity != QUANTITY_CLOCK_CEILING)
        return FLY_EUNSUPPORTED;
    *out_count = played->clock_count < maximum ? played->clock_count : maximum;
    for (size_t i = 0; i < *out_count; i++)
        clocks_mhz[i] = played->clocks_mhz[i];
    return 0;
}

static struct sensor_facts sensor_of(const struct facts_sensor *sensor)
{
    return (struct sensor_facts){
        .counter_period_s = isnan(sensor->counter_period_s) ? 0.0 : sensor->counter_period_s,
        .power_period_s = isnan(sensor->power_period_s) ? 0.0 : sensor->power_period_s,
        .power_window_s = isnan(sensor->power_window_s) ? 0.0 : sensor->power_window_s,
        .gain_error = isnan(sensor->gain_error) ? 0.0 : sensor->gain_error,
        .counter_from_power = sensor->counter_from_power,
        .source = sensor->source,
    };
}

static void keep(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text != NULL ? text : "");
}

static struct device_info info_of(const struct facts *facts, const struct facts_device *played)
{
    struct device_info info = {
        .kind = played->kind,
        .minor = played->has_minor ? (int)played->minor : -1,
        .emulated = played->emulated,
        .estimated = played->estimated,
        .module_power = played->module_power,
        .mig = played->mig,
        .denied = played->denied,
        .memory_bytes = played->memory_bytes,
        .energy_modulus_uj = played->energy_modulus_uj,
        .sensor = sensor_of(&played->sensor),
    };

    keep(info.name, sizeof info.name, played->name);
    keep(info.uuid, sizeof info.uuid, played->pseudonym);
    keep(info.pci, sizeof info.pci, played->bus);
    keep(info.driver, sizeof info.driver, played->driver);
    if ((size_t)snprintf(info.note, sizeof info.note, "facts of %s%s%s", facts->date,
                         played->note != NULL ? "; " : "",
                         played->note != NULL ? played->note : "") >= sizeof info.note)
        snprintf(info.note + sizeof info.note - sizeof "...", sizeof "...", "...");
    return info;
}

/* Makes the back end of each report, owned by the facts. */
static struct device_backend *make_backends(struct facts *facts)
{
    struct device_backend *backends = arena_alloc(&facts->arena, facts->backend_count + 1, sizeof *backends);

    for (size_t i = 0; backends != NULL && i < facts->backend_count; i++)
        backends[i] = (struct device_backend){.name = facts->backends[i].name,
                                              .title = facts->backends[i].title,
                                              .kind = facts->backends[i].kind,
                                              .close = play_close,
                                              .read = play_read,
                                              .processes = play_processes,
                                              .clocks = play_clocks};
    return backends;
}

static void add_report(const struct facts_backend *played, const struct device_backend *backend,
                       struct device_list *list)
{
    static const int codes[] = {[FACTS_WORKS] = 0,
                                [FACTS_ABSENT] = FLY_EUNSUPPORTED,
                                [FACTS_DENIED] = FLY_EPERM,
                                [FACTS_BROKEN] = FLY_EREAD};
    struct backend_report *report = &list->reports[list->report_count++];

    *report = (struct backend_report){.backend = backend, .error.code = codes[played->state]};
    keep(report->error.text, sizeof report->error.text, played->error);
}

/* facts_parse has made sure that there is one. */
static const struct device_backend *backend_of(const struct facts *facts,
                                               const struct device_backend *backends, const char *name)
{
    size_t i = 0;

    while (i + 1 < facts->backend_count && strcmp(facts->backends[i].name, name) != 0)
        i++;
    return &backends[i];
}

static void free_played(void *facts)
{
    facts_free(facts);
}

int facts_play(struct facts *facts, struct device_list *list, struct fly_error *out_error)
{
    const struct device_backend *backends = make_backends(facts);
    int code = 0;

    list->played = facts;
    list->free_played = free_played;
    if (backends == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < facts->backend_count; i++)
        add_report(&facts->backends[i], &backends[i], list);
    for (size_t i = 0; i < facts->device_count && code == 0; i++) {
        struct device_info info = info_of(facts, &facts->devices[i]);

        code = device_list_add(list, backend_of(facts, backends, facts->devices[i].backend), &info,
                               &facts->devices[i], out_error);
    }
    return code;
}

const struct facts *facts_played(const struct device_list *list)
{
    return list->free_played == free_played ? list->played : NULL;
}
