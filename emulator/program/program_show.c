/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball-emulator show`: shows the truth and the sensors' readings. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "emulator/gpu.h"
#include "emulator/identity.h"
#include "emulator/program/program.h"
#include "emulator/program/program_accounts.h"
#include "emulator/sensor.h"
#include "emulator/workload_profiles.h"

/* One GPU at one moment. */
struct shown {
    char name[IDENTITY_MAX], uuid[IDENTITY_MAX];
    double power_w, energy_j, temperature_c, limit_w, enforced_w, clock, utilization;
    double read_power_w, read_energy_j;
    unsigned floor_mhz, ceiling_mhz, memory_floor_mhz, memory_ceiling_mhz; /* 0: none */
    struct workload_set requested, enforced;
    unsigned processes[EMULATOR_SLOTS], process_count;
    bool lost;
    double idle_w;
    struct emulator_accounts *accounts;
};

static void look(struct emulated_gpu *gpu, int64_t now_ns, struct shown *out)
{
    const struct segment *segment;

    now_ns = gpu_settle(gpu, now_ns);
    segment = history_newest(&gpu->history);
    gpu_accounts_at(gpu, now_ns, out->accounts);
    *out = (struct shown){
        .accounts = out->accounts,
        .idle_w = gpu_shape_of(gpu)->idle_w,
        .power_w = history_power_w(&gpu->history, &gpu->inertia, now_ns),
        .energy_j = history_energy_j(&gpu->history, &gpu->inertia, now_ns),
        .temperature_c = history_temperature_c(&gpu->history, &gpu->inertia, now_ns),
        .limit_w = gpu->limit_mw / 1000.0,
        .enforced_w = gpu_enforced_mw(gpu) / 1000.0,
        .clock = segment->clock,
        .utilization = segment->utilization,
        .read_power_w = sensor_usage_mw(gpu, now_ns) / 1000.0,
        .read_energy_j = (double)sensor_counter_mj(gpu, now_ns) / 1000.0,
        .floor_mhz = gpu->locked_lowest_mhz,
        .ceiling_mhz = gpu->locked_highest_mhz,
        .memory_floor_mhz = gpu->memory_lowest_mhz,
        .memory_ceiling_mhz = gpu->memory_highest_mhz,
        .requested = gpu->requested,
        .enforced = workloads_enforced(gpu),
        .lost = gpu->lost,
    };
    identity_model(gpu, out->name);
    identity_uuid(gpu, out->uuid);
    for (int i = 0; i < EMULATOR_SLOTS; i++) {
        if (gpu->slots[i].used)
            out->processes[out->process_count++] = (unsigned)gpu->slots[i].owner.pid;
    }
}

static void print_row(unsigned index, const struct shown *shown)
{
    char text[WORKLOAD_TEXT_MAX];

    printf("%3u  %-34s %9.2f %12.2f %9.2f %12.2f %8.1f %6.0f %5.0f %4.0f  %s", index, shown->name,
           shown->power_w, shown->energy_j, shown->read_power_w, shown->read_energy_j, shown->limit_w,
           shown->clock * 100.0, shown->utilization * 100.0, shown->temperature_c,
           shown->lost ? "lost " : "");
    if (shown->enforced_w < shown->limit_w)
        printf("[enforced %.0f W] ", shown->enforced_w);
    if (shown->ceiling_mhz > 0)
        printf("[<= %u MHz] ", shown->ceiling_mhz);
    if (shown->memory_ceiling_mhz > 0)
        printf("[memory <= %u MHz] ", shown->memory_ceiling_mhz);
    if (!workload_is_empty(&shown->requested))
        printf("[%s] ", workload_text(&shown->enforced, text));
    for (unsigned i = 0; i < shown->process_count; i++)
        printf("%s%u", i > 0 ? "," : "", shown->processes[i]);
    putchar('\n');
}

static json_t *profiles_of(const struct workload_set *set)
{
    json_t *names = json_array();
    char name[WORKLOAD_NAME_MAX];

    for (unsigned id = 0; id < WORKLOADS_MAX; id++) {
        if (workload_has(set, id))
            json_array_append_new(names, json_string(workload_name(id, name)));
    }
    return names;
}

static json_t *clock_of(unsigned clock_mhz)
{
    return clock_mhz > 0 ? json_integer(clock_mhz) : json_null();
}

static json_t *object_of(unsigned index, const struct shown *shown)
{
    json_t *processes = json_array();

    for (unsigned i = 0; i < shown->process_count; i++)
        json_array_append_new(processes, json_integer(shown->processes[i]));
    return json_pack("{s:i, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:b, "
                     "s:o, s:o, s:o}",
                     "index", (int)index, "name", shown->name, "uuid", shown->uuid, "true_power_w",
                     shown->power_w, "true_energy_j", shown->energy_j, "read_power_w", shown->read_power_w,
                     "counter_j", shown->read_energy_j, "limit_w", shown->limit_w, "enforced_w",
                     shown->enforced_w, "clock", shown->clock, "utilization", shown->utilization,
                     "temperature_c", shown->temperature_c, "clock_ceiling_mhz", clock_of(shown->ceiling_mhz),
                     "clock_floor_mhz", clock_of(shown->floor_mhz), "memory_clock_ceiling_mhz",
                     clock_of(shown->memory_ceiling_mhz), "memory_clock_floor_mhz",
                     clock_of(shown->memory_floor_mhz), "lost", (int)shown->lost, "processes", processes,
                     "workload_profiles_requested", profiles_of(&shown->requested),
                     "workload_profiles_enforced", profiles_of(&shown->enforced));
}

static int print_json(const struct emulator *emulator, const struct shown *shown, int64_t now_ns)
{
    const struct emulator_state *state = emulator->state;
    json_t *gpus = json_array();
    json_t *document;
    int result;

    for (unsigned i = 0; i < state->gpu_count; i++) {
        json_t *gpu = object_of(i, &shown[i]);

        program_put_accounts(gpu, state, shown[i].idle_w, shown[i].accounts);
        json_array_append_new(gpus, gpu);
    }
    document =
        json_pack("{s:s, s:b, s:s, s:b, s:f, s:f, s:o}", "schema", "flyball.emulator.show/1", "emulated", 1,
                  "state", emulator->path, "virtual_time", (int)state->settings.virtual_time, "time_s",
                  (double)now_ns / 1e9, "age_s", (double)(now_ns - state->created_ns) / 1e9, "gpus", gpus);
    result = document != NULL ? json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : -1;
    putchar('\n');
    json_decref(document);
    return result;
}

static void print_table(const struct emulator *emulator, const struct shown *shown, int64_t now_ns)
{
    const struct emulator_state *state = emulator->state;

    printf("emulated GPUs in '%s', %.3f s old, %s time; no hardware answers\n", emulator->path,
           (double)(now_ns - state->created_ns) / 1e9, state->settings.virtual_time ? "virtual" : "real");
    printf("%3s  %-34s %9s %12s %9s %12s %8s %6s %5s %4s  %s\n", "", "", "true W", "true J", "read W",
           "counter J", "limit W", "clock%", "util%", "C", "processes");
    for (unsigned i = 0; i < state->gpu_count; i++)
        print_row(i, &shown[i]);
}

static int show_run(const struct program_call *call, struct fly_error *out_error)
{
    struct shown shown[EMULATOR_GPUS_MAX] = {0};
    struct emulator *emulator;
    struct emulator_accounts *accounts;
    int64_t now_ns;
    int code = emulator_open(call->state, &emulator, out_error);

    if (code < 0)
        return code;
    accounts = calloc(EMULATOR_GPUS_MAX, sizeof *accounts);
    if (accounts == NULL) {
        emulator_close(emulator);
        return error_no_memory(out_error);
    }
    state_lock(emulator->state);
    now_ns = state_now_ns(emulator->state);
    for (unsigned i = 0; i < emulator->state->gpu_count; i++) {
        shown[i].accounts = &accounts[i];
        look(&emulator->state->gpus[i], now_ns, &shown[i]);
    }
    state_unlock(emulator->state);
    if (program_value(call, "json") == NULL)
        print_table(emulator, shown, now_ns);
    else if (print_json(emulator, shown, now_ns) < 0)
        code = error_set(out_error, FLY_EWRITE, "writing JSON to standard output failed");
    free(accounts);
    emulator_close(emulator);
    return code;
}

const struct program_command program_show = {
    .name = "show",
    .summary = "show what emulated GPUs really draw, and what their sensors say",
    .text =
        "Energy is that since the start; the counter began elsewhere, as real ones do. JSON also has what "
        "each\n"
        "work drew: true_dynamic_j above the board's idle power, and of that true_idle_j, evenly for those\n"
        "that are there. With true_vacant_j and true_other_j they add up to true_energy_j.",
    .options = {{"json", NULL, "Print JSON for programs."}},
    .run = show_run,
};
