/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball-emulator train`: does to a GPU what a training job would, without one. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/program/program.h"
#include "model/gpu_model.h"
#include "train/program/step_writer.h"

enum { GIB_BITS = 30, BUSY_MAX = 16 };

static const double evaluation_share = 0.4; /* of a step's time, forward only; its dynamic power is 0.7 */
static const double evaluation_power = 0.7;

static volatile sig_atomic_t stopped;

struct job {
    struct emulator *emulator;
    struct clock clock;
    const struct gpu_shape *shape;
    unsigned gpus; /* bits */
    int slots[EMULATOR_GPUS_MAX];
    struct gpu_load load;
    double batch_size, gap_s, wanted_w;
    double full_clock_s; /* of a step */
    struct emulator_role role;
    double busy[BUSY_MAX]; /* share of the time with kernels, of one step after the other */
    unsigned busy_count;
    unsigned steps, epochs, evaluation_steps, turn;
    uint64_t memory_bytes;
    struct step_writer report; /* to whom steps are reported */
};

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static void put_load(struct job *job, double wanted_w, double utilization)
{
    struct emulator_load load = {wanted_w, utilization, job->memory_bytes, true, job->load.nature};

    for (unsigned i = 0; i < EMULATOR_GPUS_MAX; i++) {
        if ((job->gpus & 1U << i) != 0)
            emulator_work_change(job->emulator, i, job->slots[i], &load);
    }
}

/* A work that keeps the processors busy for a share of the time draws that share of what it wants above idle.
 */
static void put_share(struct job *job, double wanted_w, double share)
{
    put_load(job, job->shape->idle_w + share * (wanted_w - job->shape->idle_w), share);
}

/*
 * Reports "step 3", "epoch 2", and "epoch end" for number 0, to a command that wants it. It does not matter
 * whether anybody reads it.
 */
static void tell(const struct job *job, const char *what, unsigned number)
{
    if (number > 0)
        step_writer_write(&job->report, "%s %u", what, number);
    else
        step_writer_write(&job->report, "%s end", what);
}

/* A program on a GPU that falls off the bus ends soon. */
static bool is_lost(const struct job *job)
{
    for (unsigned i = 0; i < EMULATOR_GPUS_MAX; i++) {
        if ((job->gpus & 1U << i) != 0 && emulator_is_lost(job->emulator, i))
            return true;
    }
    return false;
}

/* The GPU that slows the work most sets the pace of all. */
static double slowdown(const struct job *job)
{
    double most = 1.0;

    for (unsigned i = 0; i < EMULATOR_GPUS_MAX; i++) {
        double own = (job->gpus & 1U << i) != 0 ? emulator_slowdown(job->emulator, i) : 1.0;

        most = own > most ? own : most;
    }
    return most;
}

/* Does `steps` steps, each `length` times as long as one of training; returns the seconds. */
static double work(struct job *job, unsigned steps, double wanted_w, double length, bool told)
{
    struct mono_time start = job->clock.now(job->clock.state);
    struct mono_time next = start;

    for (unsigned i = 0; i < steps && !stopped && !is_lost(job); i++) {
        if (told)
            tell(job, "step", i + 1);
        put_share(job, wanted_w, job->busy[job->turn++ % job->busy_count]);
        next = mono_after_s(next, length * job->full_clock_s * slowdown(job));
        job->clock.sleep_until(job->clock.state, next);
        if (job->gap_s > 0.0) {
            put_load(job, job->shape->idle_w, 0.0);
            next = mono_after_s(next, job->gap_s);
            job->clock.sleep_until(job->clock.state, next);
        }
    }
    return mono_elapsed_s(start, job->clock.now(job->clock.state));
}

static void train(struct job *job)
{
    double evaluation_w = job->shape->idle_w + evaluation_power * (job->wanted_w - job->shape->idle_w);
    double total_s = 0.0;

    for (unsigned epoch = 1; epoch <= job->epochs && !stopped && !is_lost(job); epoch++) {
        double time_s, evaluation_s;

        tell(job, "epoch", epoch);
        time_s = work(job, job->steps, job->wanted_w, 1.0, true);
        tell(job, "epoch", 0);
        evaluation_s = work(job, job->evaluation_steps, evaluation_w, evaluation_share, false);
        total_s += time_s + evaluation_s;
        printf("epoch %u of %u: %u steps of batch size %g in %.3f s", epoch, job->epochs, job->steps,
               job->batch_size, time_s);
        if (job->evaluation_steps > 0)
            printf(", %u evaluation steps in %.3f s", job->evaluation_steps, evaluation_s);
        putchar('\n');
        fflush(stdout);
    }
    printf("%s: %.3f s on emulated GPUs\n", stopped || is_lost(job) ? "stopped" : "done", total_s);
}

static int read_job(const struct program_call *call, struct job *job, struct fly_error *out_error)
{
    double steps = 0.0, epochs = 0.0, evaluation_steps = 0.0, memory_gib = 0.0;
    const struct {
        const char *name;
        double lowest, highest, otherwise;
        double *out;
        double unit;
    } rows[] = {
        {"batch-size", 1, 1e6, 64, &job->batch_size, 1},
        {"steps", 1, 1e9, 100, &steps, 1},
        {"epochs", 1, 1e6, 1, &epochs, 1},
        {"evaluation-steps", 0, 1e9, 0, &evaluation_steps, 1},
        {"step-gap-ms", 0, 1e6, 0, &job->gap_s, 1e-3},
        {"sample-ms", 1e-6, 1e6, 0.2, &job->load.sample_s, 1e-3},
        {"step-ms", 0, 1e6, 5, &job->load.step_s, 1e-3},
        {"half-busy-batch", 1e-3, 1e6, 32, &job->load.half_busy_batch, 1},
        {"clock-share", 0, 1, 0.7, &job->load.nature.clock_share, 1},
        {"memory-gib", 0, 1e4, 8, &memory_gib, 1},
    };
    int code = 0;

    for (size_t i = 0; code == 0 && i < sizeof rows / sizeof rows[0]; i++) {
        code = program_number(call, rows[i].name, rows[i].lowest, rows[i].highest, rows[i].otherwise,
                              rows[i].out, out_error);
        if (code == 0)
            *rows[i].out *= rows[i].unit;
    }
    job->steps = (unsigned)steps;
    job->epochs = (unsigned)epochs;
    job->evaluation_steps = (unsigned)evaluation_steps;
    job->memory_bytes = (uint64_t)(memory_gib * (double)(UINT64_C(1) << GIB_BITS));
    return code;
}

static int bad_value(const struct program_call *call, const char *name, const char *expected,
                     struct fly_error *out_error)
{
    return error_set(out_error, FLY_EUSAGE, "bad value '%.80s' of --%s: expected %s",
                     program_value(call, name), name, expected);
}

static int read_busy(const struct program_call *call, struct job *job, struct fly_error *out_error)
{
    const char *text = program_value(call, "busy") != NULL ? program_value(call, "busy") : "1";
    char *end;

    do {
        double share = strtod(text, &end);

        if (end == text || !(share >= 0.0 && share <= 1.0) || (*end != ',' && *end != '\0') ||
            job->busy_count == BUSY_MAX)
            return bad_value(call, "busy", "up to 16 numbers from 0 to 1, such as 0.5 or 0.2,0.9", out_error);
        job->busy[job->busy_count++] = share;
        text = end + 1;
    } while (*end == ',');
    return 0;
}

static int read_role(const struct program_call *call, struct job *job, struct fly_error *out_error)
{
    const char *word = program_value(call, "kind");
    double instance;
    int kind = 0;

    while (word != NULL && kind < EMULATOR_WORK_MPS_SERVER && strcmp(word, emulator_work_words[kind]) != 0)
        kind++;
    if (kind == EMULATOR_WORK_MPS_SERVER)
        return bad_value(call, "kind", "compute, graphics or mps", out_error);
    job->role.kind = (enum emulator_work_kind)kind;
    job->role.instance = -1;
    if (program_value(call, "instance") == NULL)
        return 0;
    if (program_number(call, "instance", 0, EMULATOR_INSTANCES_MAX - 1, 0, &instance, out_error) < 0)
        return FLY_EUSAGE;
    job->role.instance = (int)instance;
    return 0;
}

static bool is_one_given(const struct program_call *call, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (program_value(call, *names) != NULL)
            return true;
    }
    return false;
}

/* What the work wants and takes: as the options say, else as in the board's recorded profile. */
static void describe_work(const struct program_call *call, struct job *job)
{
    static const char *const of_power[] = {"batch-size", "half-busy-batch", NULL};
    static const char *const of_time[] = {"batch-size", "sample-ms", "step-ms", NULL};
    const struct emulator_workload *recorded = emulator_workload_of(job->emulator);

    job->wanted_w = recorded->is_known && !is_one_given(call, of_power)
                        ? recorded->wanted_w
                        : gpu_wanted_w(job->shape, &job->load, job->batch_size);
    job->full_clock_s = recorded->is_known && recorded->full_clock_s > 0.0 && !is_one_given(call, of_time)
                            ? recorded->full_clock_s
                            : job->load.sample_s * job->batch_size + job->load.step_s;
    if (recorded->is_known && program_value(call, "clock-share") == NULL)
        job->load.nature = recorded->nature;
}

/* Takes a place on every GPU, or on none. Where MIG divides it, work is always in an instance. */
static int begin(struct job *job, struct fly_error *out_error)
{
    struct emulator_load load = {job->shape->idle_w, 0.0, job->memory_bytes, true, job->load.nature};
    int code = 0;

    for (unsigned i = 0; code == 0 && i < EMULATOR_GPUS_MAX; i++) {
        struct emulator_role role = job->role;

        if ((job->gpus & 1U << i) == 0)
            continue;
        if (role.instance < 0 && emulator_instances(emulator_settings_of(job->emulator), i) > 0)
            role.instance = 0;
        code = emulator_work_begin_as(job->emulator, i, &role, &load, &job->slots[i], out_error);
    }
    return code;
}

static void end(const struct job *job)
{
    for (unsigned i = 0; i < EMULATOR_GPUS_MAX; i++) {
        if ((job->gpus & 1U << i) != 0 && job->slots[i] >= 0)
            emulator_work_end(job->emulator, i, job->slots[i]);
    }
}

static int train_run(const struct program_call *call, struct fly_error *out_error)
{
    struct job job = {.gpus = 0, .report = {.fd = -1}};
    int code = read_job(call, &job, out_error);

    if (code == 0)
        code = read_busy(call, &job, out_error);
    for (int i = 0; i < EMULATOR_GPUS_MAX; i++)
        job.slots[i] = -1;
    if (code == 0)
        code = emulator_open_or_create(call->state, &job.emulator, out_error);
    if (code < 0)
        return code;
    code = program_gpus(call, job.emulator, "0", &job.gpus, out_error);
    if (code == 0)
        code = read_role(call, &job, out_error);
    if (code == 0) {
        (void)step_writer_open(&job.report);
        job.clock = emulator_clock(job.emulator);
        job.shape = emulator_shape(job.emulator, 0);
        describe_work(call, &job);
        code = begin(&job, out_error);
        if (code == 0) {
            signal(SIGINT, stop);
            signal(SIGTERM, stop);
            train(&job);
            if (is_lost(&job))
                code = error_set(out_error, FLY_EREAD,
                                 "a GPU of the training fell off the bus; the training ends");
        }
        end(&job);
        step_writer_close(&job.report);
    }
    emulator_close(job.emulator);
    return code < 0 || !stopped ? code : 128 + SIGTERM;
}

const struct program_command program_train = {
    .name = "train",
    .summary = "train on emulated GPUs: load that follows batch size and power limit",
    .text =
        "A step takes (sample-ms * batch size + step-ms) * (clock-share / clock + 1 - clock-share), with "
        "the\n"
        "clock that the power limit leaves; a batch size of half-busy-batch wants half of the power above\n"
        "idle. On GPUs of a recorded profile the work is that of the profile, except for what is given.\n"
        "The load ends with the program, however it ends. In virtual time nothing is waited for.\n"
        "With FLYBALL_STEPS set it writes a line there at every step, as 'flyball run --tune' wants it.",
    .options =
        {{"gpu", "LIST", "Which GPUs, such as 0,1; 0 unless given."},
         {"batch-size", "N", "Samples in a step on each GPU; 64 unless given."},
         {"steps", "N", "Steps in an epoch; 100 unless given."},
         {"epochs", "N", "How many epochs; 1 unless given."},
         {"evaluation-steps", "N", "Lighter steps behind every epoch; none unless given."},
         {"step-gap-ms", "MS", "Time without load behind every step; none unless given."},
         {"sample-ms", "MS", "Time of a sample at full clock; 0.2 unless given."},
         {"step-ms", "MS", "Time of a step besides its samples; 5 unless given."},
         {"half-busy-batch", "N", "See above; 32 unless given."},
         {"clock-share", "SHARE", "Part of the time that the clock stretches; 0.7 unless given."},
         {"memory-gib", "GIB", "Memory in use on each GPU; 8 unless given."},
         {"busy", "SHARE[,...]",
          "Share of the time with kernels, of each step in turn, and of the power above idle; 1 unless "
          "given."},
         {"kind", "WORD",
          "How the driver lists it: compute, graphics, or as a client of MPS, mps; compute unless given."},
         {"instance", "N", "Index of the MIG instance, from 0; 0 unless given, where there are any."}},
    .run = train_run,
};
