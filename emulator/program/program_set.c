/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball-emulator set`: sets loads, limits, faults and virtual time by hand. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "emulator/program/program.h"

/* What to do to each chosen GPU. */
struct wishes {
    double load_w, limit_w, enforced_w, ceiling_mhz, advance_s; /* below 0: nothing */
    bool lost, reset_counter;
    const struct workload_set *profiles; /* NULL: nothing */
};

static int read_profiles(const struct program_call *call, struct workload_set *set, struct wishes *out,
                         struct fly_error *out_error)
{
    const char *text = program_value(call, "workload-profiles");

    out->profiles = text != NULL ? set : NULL;
    if (text == NULL || workload_parse(text, set))
        return 0;
    return error_set(
        out_error, FLY_EUSAGE,
        "bad value '%s' of --workload-profiles: expected names or numbers, such as MAX_Q,13, or none", text);
}

static int read_wishes(const struct program_call *call, struct wishes *out, struct fly_error *out_error)
{
    int code = program_number(call, "load-w", 0.0, 10000.0, -1.0, &out->load_w, out_error);

    if (code == 0)
        code = program_number(call, "limit-w", 0.0, 10000.0, -1.0, &out->limit_w, out_error);
    if (code == 0)
        code = program_number(call, "enforced-w", 0.0, 10000.0, -1.0, &out->enforced_w, out_error);
    if (code == 0)
        code = program_number(call, "ceiling-mhz", 0.0, 10000.0, -1.0, &out->ceiling_mhz, out_error);
    if (code == 0)
        code = program_number(call, "advance-s", 0.0, 1e9, -1.0, &out->advance_s, out_error);
    out->lost = program_value(call, "lost") != NULL;
    out->reset_counter = program_value(call, "reset-counter") != NULL;
    return code;
}

static int fulfil(struct emulator *emulator, unsigned gpu, const struct wishes *wishes,
                  struct fly_error *out_error)
{
    int code = 0;

    if (wishes->limit_w >= 0.0)
        code = emulator_set_limit_w(emulator, gpu, wishes->limit_w, out_error);
    if (code == 0 && wishes->enforced_w >= 0.0)
        emulator_set_enforced_w(emulator, gpu, wishes->enforced_w);
    if (code == 0 && wishes->ceiling_mhz >= 0.0)
        code = emulator_set_ceiling_mhz(emulator, gpu, (unsigned)wishes->ceiling_mhz, out_error);
    if (code == 0 && wishes->profiles != NULL)
        code = emulator_request_workloads(emulator, gpu, wishes->profiles, out_error);
    if (code == 0 && wishes->load_w >= 0.0)
        emulator_set_load(emulator, gpu, wishes->load_w);
    if (code == 0 && wishes->reset_counter)
        emulator_reset_counter(emulator, gpu);
    if (code == 0 && wishes->lost)
        emulator_lose(emulator, gpu);
    return code;
}

static int take_faults(struct emulator *emulator, const char *path, struct fly_error *out_error)
{
    struct fault_list *faults = calloc(1, sizeof *faults);
    int code = faults != NULL ? faults_read(path, faults, out_error)
                              : error_set(out_error, FLY_ENOMEM, "memory is exhausted");

    if (code == 0)
        emulator_set_faults(emulator, faults);
    free(faults);
    return code;
}

static int set_run(const struct program_call *call, struct fly_error *out_error)
{
    struct emulator *emulator;
    struct workload_set profiles;
    struct wishes wishes;
    unsigned gpus;
    int code = emulator_open(call->state, &emulator, out_error);

    if (code < 0)
        return code;
    code = program_gpus(call, emulator, "all", &gpus, out_error);
    if (code == 0)
        code = read_wishes(call, &wishes, out_error);
    if (code == 0)
        code = read_profiles(call, &profiles, &wishes, out_error);
    if (code == 0 && wishes.advance_s >= 0.0 && !emulator_settings_of(emulator)->virtual_time)
        code = error_set(
            out_error, FLY_EUSAGE,
            "this emulator lives in real time, which passes by itself; start one with --time virtual");
    for (unsigned i = 0; code == 0 && i < emulator_gpu_count(emulator); i++)
        code = (gpus & 1U << i) != 0 ? fulfil(emulator, i, &wishes, out_error) : 0;
    if (code == 0 && program_value(call, "faults") != NULL)
        code = take_faults(emulator, program_value(call, "faults"), out_error);
    if (code == 0 && wishes.advance_s >= 0.0)
        emulator_advance_s(emulator, wishes.advance_s);
    emulator_close(emulator);
    return code;
}

const struct program_command program_set = {
    .name = "set",
    .summary = "put load on emulated GPUs, turn their limits, move virtual time, break them",
    .text = "What is given happens in the order of this list.",
    .options = {{"gpu", "LIST", "Which GPUs, such as 0,2; all unless given."},
                {"limit-w", "W", "The power limit, whoever asks."},
                {"enforced-w", "W", "The highest limit that the board enforces; 0: what is asked for."},
                {"ceiling-mhz", "MHZ", "Lock the clock up to this, whoever asks; 0 lifts that."},
                {"workload-profiles", "LIST",
                 "Request exactly these workload power profiles, whoever asks, such as MAX_Q,13; none."},
                {"load-w", "W", "The power that the GPU wants; 0 ends the load."},
                {"reset-counter", NULL, "Let the energy counter start again at 0."},
                {"lost", NULL, "Let the GPU fall off the bus."},
                {"faults", "FILE", "A fault script in place of the present one."},
                {"advance-s", "S", "Let so much virtual time pass."}},
    .run = set_run,
};
