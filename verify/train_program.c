/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_train [OPTION ...]: trains on one GPU for a time, reports its steps, and measures windows of them.
 *
 *     --gpu N          as the driver counts them (0)
 *     --nvml FILE, --cuda FILE   the driver's libraries, if they are not where the loader looks
 *     --seconds S      for how long (10); --steps N ends it sooner
 *     --step-ms MS     how long a step is to take (20)
 *     --work-steps N   a unit of work is so many steps (1),
 *     --pause-ms MS    and so long a pause (0)
 *     --windows FILE   measures windows over units, as lines of CSV (verify/unit_windows.h)
 *     --steps-file FILE  when each unit began and ended, in ns of the monotonic clock
 *
 * What was done follows on standard output as lines of NAME VALUE. The status is 0 also after Ctrl-C, and
 * that of the error otherwise. Steps are reported to a `flyball run` around it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "train/program/step_writer.h"
#include "verify/gpu_at_hand.h"
#include "verify/training.h"
#include "verify/unit_windows.h"

static volatile sig_atomic_t stopped;

struct wishes {
    unsigned gpu, work_steps;
    unsigned long steps;
    const char *nvml_path, *cuda_path, *windows_path, *steps_path;
    double duration_s, step_s, pause_s;
};

struct run {
    struct wishes wishes;
    struct gpu_at_hand gpu;
    struct training training;
    struct step_writer report;
    struct unit_windows windows;
    FILE *windows_out, *steps_out;
    unsigned long steps, units;
    double loss_first, loss_last;
    double time_s, counter_j;
};

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static int read_wishes(int argc, char **argv, struct wishes *out)
{
    static const struct option options[] = {
        {"gpu", 1, NULL, 'g'},        {"nvml", 1, NULL, 'n'},     {"cuda", 1, NULL, 'c'},
        {"seconds", 1, NULL, 's'},    {"steps", 1, NULL, 'S'},    {"step-ms", 1, NULL, 'm'},
        {"work-steps", 1, NULL, 'w'}, {"pause-ms", 1, NULL, 'p'}, {"windows", 1, NULL, 'W'},
        {"steps-file", 1, NULL, 'f'}, {NULL, 0, NULL, 0}};
    int option;

    *out = (struct wishes){.work_steps = 1, .steps = -1UL, .duration_s = 10.0, .step_s = 0.02};
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        switch (option) {
        case 'g':
            out->gpu = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'n':
            out->nvml_path = optarg;
            break;
        case 'c':
            out->cuda_path = optarg;
            break;
        case 's':
            out->duration_s = strtod(optarg, NULL);
            break;
        case 'S':
            out->steps = strtoul(optarg, NULL, 10);
            break;
        case 'm':
            out->step_s = strtod(optarg, NULL) * 1e-3;
            break;
        case 'w':
            out->work_steps = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'p':
            out->pause_s = strtod(optarg, NULL) * 1e-3;
            break;
        case 'W':
            out->windows_path = optarg;
            break;
        case 'f':
            out->steps_path = optarg;
            break;
        default:
            return FLY_EUSAGE;
        }
    }
    return optind == argc && out->duration_s > 0.0 && out->step_s > 0.0 && out->work_steps > 0 ? 0
                                                                                               : FLY_EUSAGE;
}

static int open_file(const char *path, FILE **out_file, struct fly_error *out_error)
{
    *out_file = path != NULL ? fopen(path, "w") : NULL;
    if (path != NULL && *out_file == NULL)
        return error_set(out_error, FLY_EWRITE, "'%s' cannot be written", path);
    return 0;
}

static int prepare(struct run *run, struct fly_error *out_error)
{
    const struct wishes *wishes = &run->wishes;
    struct training_options options = {.library_path = wishes->cuda_path, .step_s = wishes->step_s};
    int code = gpu_open(wishes->nvml_path, wishes->gpu, &run->gpu, out_error);

    if (code < 0)
        return code;
    /* The GPU is named by its place on the bus, but the variable could hide it. */
    unsetenv("CUDA_VISIBLE_DEVICES");
    options.pci = run->gpu.pci;
    code = training_open(&options, &run->training, out_error);
    if (code == 0 && wishes->windows_path != NULL)
        code = gpu_open_meter(&run->gpu, out_error);
    if (code == 0)
        code = open_file(wishes->windows_path, &run->windows_out, out_error);
    if (code == 0)
        code = open_file(wishes->steps_path, &run->steps_out, out_error);
    (void)step_writer_open(&run->report);
    return code;
}

/* One unit of work: some steps, and a pause that ends at a set time after the last of them. */
static int do_unit(struct run *run, struct fly_error *out_error)
{
    struct mono_time begin = mono_now();
    int code = 0;

    for (unsigned i = 0; code == 0 && i < run->wishes.work_steps; i++) {
        step_writer_write(&run->report, "step %lu", run->steps + 1);
        code = training_step(&run->training, out_error);
        run->steps += code == 0;
    }
    if (run->steps_out != NULL)
        fprintf(run->steps_out, "%" PRId64 ",%" PRId64 "\n", begin.ns, mono_now().ns);
    if (code == 0 && run->wishes.pause_s > 0.0)
        clock_real.sleep_until(NULL, mono_after_s(mono_now(), run->wishes.pause_s));
    run->units += code == 0;
    return code;
}

/* Settles clocks and temperature a little, and takes the time of a unit. */
static int warm_up(struct run *run, double *out_unit_s, struct fly_error *out_error)
{
    enum { UNITS = 10 };
    struct mono_time start = mono_now();
    int code = 0;

    for (int i = 0; code == 0 && i < UNITS && !stopped; i++) {
        code = training_step(&run->training, out_error);
        if (code == 0 && i == 0)
            code = training_loss(&run->training, &run->loss_first, out_error);
    }
    *out_unit_s = mono_elapsed_s(start, mono_now()) / UNITS * run->wishes.work_steps + run->wishes.pause_s;
    return code;
}

static int train(struct run *run, struct fly_error *out_error)
{
    struct unit_windows_parts parts = {.gpu = &run->gpu, .out = run->windows_out};
    struct mono_time start, end;
    double unit_s;
    int code = warm_up(run, &unit_s, out_error);

    if (run->windows_out != NULL)
        unit_windows_open(&parts, unit_s, &run->windows);
    step_writer_write(&run->report, "epoch 1");
    start = mono_now();
    end = mono_after_s(start, run->wishes.duration_s);
    run->counter_j = -gpu_counter_j(&run->gpu);
    while (code == 0 && !stopped && run->steps < run->wishes.steps && mono_now().ns < end.ns) {
        if (run->windows_out != NULL)
            code = unit_windows_between(&run->windows, out_error);
        if (code == 0)
            code = do_unit(run, out_error);
    }
    run->counter_j += gpu_counter_j(&run->gpu);
    run->time_s = mono_elapsed_s(start, mono_now());
    step_writer_write(&run->report, "epoch end");
    if (run->windows_out != NULL)
        unit_windows_close(&run->windows);
    return code == 0 ? training_loss(&run->training, &run->loss_last, out_error) : code;
}

static void tell(const struct run *run)
{
    const struct training *training = &run->training;

    printf("kernels %s\nprocessors %d\nmatrix_rows %u\nparameters %u\nrounds %u\nupdates %u\n",
           training_variant_name(training->variant), training->cuda.processors, training->n,
           training->parameters, training->rounds, training->updates);
    printf("multiply_us %.3f\nupdate_us %.3f\nstep_flop %.6g\nstep_bytes %.6g\n", training->multiply_s * 1e6,
           training->update_s * 1e6, training_step_flop(training), training_step_bytes(training));
    printf("steps %lu\nunits %lu\ntime_s %.6f\ncounter_j %.3f\nloss_first %.6g\nloss_last %.6g\n", run->steps,
           run->units, run->time_s, run->counter_j, run->loss_first, run->loss_last);
    printf("stopped %d\n", stopped != 0);
}

static void close_all(struct run *run)
{
    step_writer_close(&run->report);
    if (run->windows_out != NULL)
        fclose(run->windows_out);
    if (run->steps_out != NULL)
        fclose(run->steps_out);
    training_close(&run->training);
    gpu_close(&run->gpu);
}

int main(int argc, char **argv)
{
    static struct run run = {.report = {.fd = -1}};
    struct sigaction on_signal = {.sa_handler = stop};
    struct fly_error error = {0};
    int code = read_wishes(argc, argv, &run.wishes);

    if (code < 0) {
        fprintf(stderr, "verify_train: an option is wrong; see the head of verify/train_program.c\n");
        return fly_error_exit_status(code);
    }
    sigaction(SIGINT, &on_signal, NULL);
    sigaction(SIGTERM, &on_signal, NULL);
    code = prepare(&run, &error);
    if (code == 0)
        code = train(&run, &error);
    if (code == 0)
        tell(&run);
    else
        fprintf(stderr, "verify_train: %s\n", error.text);
    close_all(&run);
    return code == 0 ? 0 : fly_error_exit_status(code);
}
