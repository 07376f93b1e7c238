/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program and measures it. Every failure of measuring becomes a sentence in the report;
 * the program runs as if Flyball were not there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flyball/record.h>

#include "base/disabled.h"
#include "base/error.h"
#include "base/thread/thread_group.h"
#include "cli/measure/run_result.h"
#include "cli/options/knob_options.h"
#include "cli/options/open_devices.h"
#include "cli/options/store_option.h"
#include "cli/program/child.h"
#include "cli/run/run_carbon.h"
#include "cli/run/run_commands.h"
#include "cli/run/run_job.h"
#include "cli/run/run_report.h"
#include "cli/run/run_tune.h"
#include "meter/meter.h"
#include "meter/process_claims.h"
#include "train/program/step_file.h"

/*
 * The measurement around a program, or around all programs of a recurring job.
 *
 *     run_window_begin(&window, &devices, "train.py", &result);
 *     ... a program starts:       run_window_start(&window);
 *     ... and when it has ended:  run_window_note(&window);
 *     run_window_end(&window);
 *
 * Without the two in the middle, it measures from the first call to the last. With them, it
 * measures from the first start to the last end: time spent waiting for a job's log before and
 * after is not counted. Each call updates the result. Borrows everything.
 */
struct run_window {
    struct metered_devices *devices;
    struct run_result *result;
    const char *name;
    struct fly_device_energy energies[DEVICES_MAX];
    struct reading modules[DEVICES_MAX]; /* energy counters at the beginning */
    double module_energies_j[DEVICES_MAX];
    fly_window window;
    struct mono_time begin;
    bool started, noted;
};

static struct reading read_module(const struct run_window *window, size_t device)
{
    struct device_reading reading;

    device_read(&window->devices->list.devices[device], &clock_real, QUANTITY_BIT(QUANTITY_ENERGY_MODULE),
                &reading);
    return reading.values[QUANTITY_ENERGY_MODULE];
}

static void begin_modules(struct run_window *window)
{
    for (size_t i = 0; i < window->devices->list.count; i++)
        window->modules[i] = read_module(window, i);
}

/* A counter that went back was reset: what the module used is not known then. */
static void take_modules(struct run_window *window)
{
    for (size_t i = 0; i < window->devices->list.count; i++) {
        const struct reading *before = &window->modules[i];
        struct reading now = before->state == READING_OK ? read_module(window, i) : *before;
        bool known = before->state == READING_OK && now.state == READING_OK && now.value >= before->value;

        window->module_energies_j[i] = known ? (double)(now.value - before->value) * 1e-6 : NAN;
    }
    window->result->module_energies_j = window->module_energies_j;
}

/* Begins a window now; without a meter it only takes the time. Returns false if none could be begun. */
static bool begin_window(struct run_window *window, struct fly_error *out_error)
{
    fly_window begun;

    if (window->devices->meter != NULL &&
        fly_meter_begin(window->devices->meter, window->name, &begun, out_error) < 0)
        return false;
    if (window->devices->meter != NULL)
        window->window = begun;
    window->begin = mono_now();
    begin_modules(window);
    window->result->measured.start_unix_s = (double)clock_real.date(clock_real.state).ns * 1e-9;
    return true;
}

/* If no window can be begun, closes the meter; the devices' fault says why. */
static void run_window_begin(struct run_window *out_window, struct metered_devices *devices, const char *name,
                             struct run_result *result)
{
    struct run_window *window = out_window;

    window->devices = devices;
    window->result = result;
    window->name = name;
    window->started = window->noted = false;
    if (begin_window(window, &devices->fault))
        return;
    fly_meter_close(devices->meter);
    devices->meter = NULL;
    (void)begin_window(window, NULL);
}

/* fly_meter_end, or fly_meter_peek. */
typedef int meter_look(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                       struct fly_error *out_error);

/* Takes the result of this moment. */
static int take_result(struct run_window *window, meter_look *look)
{
    struct fly_measurement *measured = &window->result->measured;
    struct metered_devices *devices = window->devices;

    measured->time_s = mono_elapsed_s(window->begin, mono_now());
    measured->size = sizeof *measured;
    measured->devices = window->energies;
    measured->device_capacity = DEVICES_MAX;
    take_modules(window);
    return devices->meter != NULL ? look(devices->meter, window->window, measured, &devices->fault) : 0;
}

static void drop(struct run_window *window, fly_window dropped)
{
    struct fly_measurement rest = {.size = sizeof rest};

    if (window->devices->meter != NULL)
        (void)fly_meter_end(window->devices->meter, dropped, &rest, NULL);
}

static void run_window_start(struct run_window *window)
{
    fly_window before = window->window;

    if (!window->started && begin_window(window, NULL))
        drop(window, before);
    window->started = true;
}

static void run_window_note(struct run_window *window)
{
    window->noted = take_result(window, fly_meter_peek) == 0;
}

static void run_window_end(struct run_window *window)
{
    if (window->noted)
        drop(window, window->window);
    else if (take_result(window, fly_meter_end) < 0)
        window->result->fault = window->devices->fault.text;
    if (window->devices->meter == NULL)
        window->result->fault = window->devices->fault.text;
}

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS_SHOWN(
        "If not given, those that the program will see, by CUDA_VISIBLE_DEVICES and its like.", true),
    {.name = "output",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help =
         "Write the report to this file as JSON; %t in its name is the rank, %j the job, %h the machine, %p "
         "the process. Where another run that has not ended writes it, a name beside it is taken.",
     .often = true},
    {.name = "csv",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help =
         "Add a line to this CSV file: start_time, window_name, elapsed_time and each GPU's energy; %t, %j, "
         "%h and %p as in --output."},
    {.name = "start-within",
     .type = CLI_REAL,
     .placeholder = "SECONDS",
     .minimum = 0,
     .maximum = 1e6,
     .default_text = "60",
     .help = "Start the program after this time at the latest, even when the devices are not open yet, and "
             "wait no "
             "longer for a driver when the program has ended."},
    {.name = "no-idle-boost",
     .type = CLI_FLAG,
     .help =
         "Set CUDA_DISABLE_PERF_BOOST=1 for the program: a driver from 580.105 on then lets an NVIDIA GPU's "
         "clocks fall while the program does not use it."},
};

/* Printed if a call into the driver does not return. */
static const char never_opened[] = "flyball: energy unavailable: the devices could not be opened while the "
                                   "program ran; see 'flyball doctor'\n";

static const char never_ended[] = "flyball: energy unavailable: a driver did not answer after the program "
                                  "had ended; see 'flyball doctor'\n";

/* How long the start of a run waits for the disk with the claims. */
static const double claim_most_s = 2.0;

/* Large; there is only one. */
struct run {
    struct metered_devices devices;
    struct claims claims;
    char variable[CLAIM_VARIABLE_MAX + sizeof CLAIM_VARIABLE + 1];
    struct identity identity;
    struct run_window window;
    struct run_result result;
    struct run_tune tune;
    struct run_job job;
    struct run_carbon carbon;
    struct idle_boost idle_boost;
    struct run_paths paths;
    struct child child;
};

/* Reports what became of the wish for no idle boost, if there was one; the devices are open. */
static void judge_idle_boost(const struct cli_call *call, struct run *run)
{
    static const struct device_list none;

    if (!cli_flag(call, "no-idle-boost"))
        return;
    idle_boost_judge(run->devices.opened ? &run->devices.list : &none, &run->idle_boost);
    run->result.idle_boost = &run->idle_boost;
    if (run->idle_boost.driver == IDLE_BOOST_TOO_OLD)
        cli_warn(call, "--no-idle-boost changes nothing with driver %s: %s", run->idle_boost.version,
                 idle_boost_text(IDLE_BOOST_TOO_OLD));
}

/* Claims that a thread takes; it may wait for the disk for ever. */
struct claiming {
    const struct device_list *list; /* in static storage */
    struct identity identity;
    struct claims claims;
};

static void claim_now(void *of)
{
    struct claiming *claiming = of;

    process_claims_take(claiming->list, &claiming->identity, &claiming->claims);
}

static void drop_claims(void *of)
{
    struct claiming *claiming = of;

    claims_release(&claiming->claims);
    free(claiming);
}

/* Without an answer nothing is claimed, and all is counted here. */
static void claim_in_time(struct run *run, const struct device_list *list)
{
    static const char silent[] = "the disk with the claims does not answer";
    struct claiming *claiming = calloc(1, sizeof *claiming);

    if (claiming != NULL) {
        claiming->list = list;
        if (apart_run(claim_now, drop_claims, claiming, claim_most_s)) {
            run->identity = claiming->identity;
            run->claims = claiming->claims;
            free(claiming);
            return;
        }
    }
    snprintf(run->claims.fault, sizeof run->claims.fault, "%s", silent);
}

static void claim_devices(struct run *run)
{
    static const struct device_list none;
    const struct device_list *list = run->devices.meter != NULL ? &run->devices.list : &none;
    size_t length;

    claim_in_time(run, list);
    if (run->devices.meter != NULL)
        meter_set_claims(run->devices.meter, &run->claims);
    length = (size_t)snprintf(run->variable, sizeof run->variable, "%s=", CLAIM_VARIABLE);
    claims_variable(&run->claims, list, run->variable + length);
}

static void begin(struct run *run, char *const *arguments)
{
    const char *slash = strrchr(arguments[0], '/');

    claim_devices(run);
    run_window_begin(&run->window, &run->devices, slash != NULL ? slash + 1 : arguments[0], &run->result);
}

/* Called when a program of a recurring job starts, and when it has ended. */
static void note_begin(void *data)
{
    struct run *run = data;

    run_window_start(&run->window);
    run_carbon_start(&run->carbon);
}

static void note_end(void *data)
{
    struct run *run = data;

    run_window_note(&run->window);
    run_carbon_note(&run->carbon);
}

static void end(struct run *run)
{
    run_window_end(&run->window);
    claims_release(&run->claims);
}

/* The account begins before the program; a tuner that follows the grid then continues it. */
static void begin_account(struct run *run, const char *job)
{
    const struct run_carbon_place place = {.meter = run->devices.meter,
                                           .list = &run->devices.list,
                                           .claims = &run->claims,
                                           .identity = &run->identity,
                                           .job = job,
                                           .rests = run->job.wanted};

    run_carbon_begin(&run->carbon, &place);
    run_job_take_grid(&run->job, &run->carbon);
    if (run->carbon.keeper == NULL || !run->carbon.followed)
        return;
    run->tune.carbon = &run->carbon.options;
    run->tune.keeper = run->carbon.keeper;
    run->tune.epochs = run->carbon.epochs;
}

/* Lets the waiting program start, and reports on it. */
static void measure(const struct cli_call *call, struct child *child, char *const *arguments, struct run *run)
{
    judge_idle_boost(call, run);
    child_guard_begin(child, never_opened);
    begin(run, arguments);
    begin_account(run, cli_text(call, "job"));
    child_guard_end(child);
    if (child_start(child, run->variable) < 0) {
        program_say_not_run(call, arguments[0], child->exec_errno, child->status);
        run_carbon_end(&run->carbon);
        claims_release(&run->claims);
        return;
    }
    if (run->tune.wanted)
        run_tune_wait(&run->tune, child, &run->devices.list, run->devices.meter);
    else
        child_wait(child);
    child_guard_begin(child, never_ended);
    end(run);
    run_tune_end(&run->tune);
    run_carbon_end(&run->carbon);
    run->carbon.report = run->tune.carbon_report;
    if (run->devices.opened)
        leftovers_repair(call, &run->devices.list, LEFTOVERS_AFTER_GUARD);
    child_guard_end(child);
    run->result.arguments = arguments;
    run->result.status = child->status;
    run->result.signal = child->signal;
    run->result.early_s = child->early_s > 0 ? child->early_s : 0;
    cli_exit_with(call, child->status);
    run_report_emit(call, &run->result, run->devices.meter);
}

/*
 * Reports lines that could not be added before the program starts; `meter` NULL: as far as can be
 * known without it.
 */
static int check_csv(const struct run *run, const struct fly_meter *meter, struct fly_error *out_error)
{
    return run->result.csv != NULL ? run_csv_check(meter, run->result.csv, out_error) : 0;
}

/* Runs a submission of a recurring job: as many programs as it takes, one report. */
static int run_recurrence(const struct cli_call *call, char *const *arguments, struct run *run,
                          struct fly_error *out_error)
{
    int result;

    run_job_watch(&run->job);
    run_job_reserve(&run->job);
    result = metered_devices_open(call, &run->devices, out_error);
    if (result < 0)
        return result;
    result = check_csv(run, run->devices.meter, out_error);
    if (result < 0) {
        metered_devices_close(&run->devices);
        return result;
    }
    judge_idle_boost(call, run);
    begin(run, arguments);
    begin_account(run, cli_text(call, "job"));
    run->job.begins = note_begin;
    run->job.ended = note_end;
    run->job.moment_data = run;
    result = run_job_tries(&run->job, arguments, run->variable, run->devices.meter, &run->child, out_error);
    end(run);
    run_carbon_end(&run->carbon);
    run->carbon.report = run->job.carbon_report;
    if (run->devices.opened)
        leftovers_repair(call, &run->devices.list, LEFTOVERS_AFTER_GUARD);
    run->result.arguments = arguments;
    run->result.status = run->job.status;
    run->result.signal = run->job.status == 0 ? 0 : run->child.signal;
    cli_exit_with(call, run->job.status);
    if (result == 0 && run->child.exec_errno != 0)
        program_say_not_run(call, arguments[0], run->child.exec_errno, run->child.status);
    if (result == 0)
        run_report_emit(call, &run->result, run->devices.meter);
    metered_devices_close(&run->devices);
    return result;
}

/* Ends when the program has ended and the report is written. */
static int run_measured(const struct cli_call *call, char *const *arguments, struct run *run,
                        struct fly_error *out_error)
{
    int result;

    step_file_keep_low();
    run->result = (struct run_result){.list = &run->devices.list,
                                      .claims = &run->claims,
                                      .identity = &run->identity,
                                      .selection = run->devices.selection};
    result = run_paths_name(call, &run->paths, &run->result, out_error);
    if (result < 0)
        return result;
    if (cli_flag(call, "no-idle-boost"))
        idle_boost_disable();
    result = run_tune_read(call, &run->tune, out_error);
    if (result < 0)
        return result;
    if (run->tune.wanted)
        run->result.tune = &run->tune;
    result = run_job_read(call, &run->job, out_error);
    if (result == 0)
        result = run_carbon_read(call, &run->carbon, out_error);
    if (result == 0 && run->carbon.wanted)
        run->result.carbon = &run->carbon;
    if (result == 0 && run->job.wanted)
        result = run_job_take_words(&run->job, arguments, out_error);
    if (result == 0)
        result = check_csv(run, NULL, out_error);
    if (result == 0)
        run_output_hold(call, &run->paths, &run->result);
    if (result == 0 && run->job.wanted) {
        run->result.job = &run->job;
        result = run_recurrence(call, arguments, run, out_error);
    }
    if (result < 0 || run->job.wanted) {
        run_carbon_free(&run->carbon);
        run_job_free(&run->job);
        return result;
    }
    run_tune_prepare(&run->tune);
    result = child_fork(&run->child, arguments, cli_real(call, "start-within"), &run->devices.fault);
    run_tune_forked(&run->tune);
    if (result < 0) {
        cli_warn(call, "nothing is measured: %s", run->devices.fault.text);
        output_path_release(&run->paths.output);
        return program_replace(call, arguments);
    }
    child_guard_begin(&run->child, never_opened);
    result = metered_devices_open(call, &run->devices, out_error);
    child_guard_end(&run->child);
    if (result == 0)
        result = check_csv(run, run->devices.meter, out_error);
    if (result == 0)
        measure(call, &run->child, arguments, run);
    else
        child_abandon(&run->child);
    child_guard_begin(&run->child, "");
    metered_devices_close(&run->devices);
    child_guard_end(&run->child);
    run_carbon_free(&run->carbon);
    return result;
}

static int run_program(const struct cli_call *call, char *const *arguments, struct fly_error *out_error)
{
    static struct run run;
    int result = run_measured(call, arguments, &run, out_error);

    output_path_release(&run.paths.output);
    if (result == 0)
        child_follow(&run.child);
    return result;
}

/* Runs a submission of a job as if Flyball were not there: fills in the default's values. */
static int replace_plainly(const struct cli_call *call, char *const *arguments, struct fly_error *out_error)
{
    char **words;
    int result = run_job_plain_words(call, arguments, &words, out_error);

    if (result < 0)
        return result;
    result = program_replace(call, words);
    free(words);
    return result;
}

static int run_run(const struct cli_call *call, struct fly_error *out_error)
{
    char **arguments;
    int result;

    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no program to run; name one behind --");
    arguments = program_words(call, cli_operand_count(call), cli_operand);
    if (arguments == NULL)
        return error_no_memory(out_error);
    if (disabled_by_user() && cli_text(call, "job") != NULL && !cli_flag(call, "tune"))
        result = replace_plainly(call, arguments, out_error);
    else if (disabled_by_user())
        result = program_replace(call, arguments);
    else
        result = run_program(call, arguments, out_error);
    free(arguments);
    return result;
}

const struct cli_command cmd_run = {
    .words = "run",
    .summary = "run a program and report the energy it took",
    .paragraphs =
        {"Runs any program as it stands and measures the devices of this machine from its start to its end. "
         "The program has this one's standard streams; nothing is written to standard output, and the report "
         "follows on standard error when the program has ended: what it took and what was saved, and with "
         "-v all that is known. --format says in which form, --quiet leaves it out. With --tune the steps of "
         "the program find the best power limit; with --job its log of earlier runs chooses the batch size "
         "too; with --carbon the grid is accounted for or followed.",
         "For every device the report names with -v its energy, where the figure comes from (the device's "
         "own "
         "counter, "
         "sampled power, or an estimate) and an interval that holds the true energy in 95 of 100 runs; the "
         "error of the board's sensor itself, which no software sees, stands beside it. What is not known "
         "says why. CPUs and memory are measured for the whole machine, whoever uses them.",
         "With --tune, a program that reports its steps gets the power limit that is best for --objective "
         "within "
         "--max-slowdown: limits are tried on its steps as they come, the best is kept, and what stood "
         "before is put "
         "back at the end, by a guard process also after kill -9. The program appends a line for each step "
         "to the file that FLYBALL_STEPS names (path, device and inode; shells write to the descriptor whose "
         "number is in FLYBALL_STEP_FD); 'epoch 1' begins an epoch and 'epoch end' ends it, so that "
         "evaluation is left out. Such a write never waits, whatever becomes of this process. Of several "
         "processes the lowest rank's lines count. "
         "The steps of a PyTorch program are found by a start-up module for Python, which is put on "
         "PYTHONPATH "
         "unless --no-hook is given. "
         "Where limits "
         "may not be turned the program runs as it is, and the report says why.",
         "With --carbon or --price the energy of each five minutes is written down as it is used, and the "
         "report "
         "says what was emitted and paid for it, as far as that is known by then; 'flyball carbon report' "
         "says it "
         "later. With --tune too, the best limit follows the grid within --max-slowdown (5% unless given) or "
         "--finish-by: slower in dirty hours, faster in clean ones. For that it has to know how long the "
         "training is: --steps or --epochs; with --job its log knows. Nothing ever waits for the network.",
         "With --job the run is one submission of a recurring job: its log says which batch size and power "
         "limit to use, the program reports 'epoch 1 metric 0.61' after each epoch to the same file "
         "(or "
         "on standard output or error, by --metric-regex, or as --metric-name where a Trainer logs it), and "
         "is "
         "started again after a try that grew too expensive, "
         "ran out of memory or crashed, as long as --tries last. {batch_size}, {local_batch_size}, "
         "{learning_rate}, {seed}, {max_epochs} and {try_directory} in its words are filled in, and stand in "
         "variables "
         "(FLYBALL_BATCH_SIZE and so on). The program is ended when it has "
         "reached the target, so it should save its model before it reports. A line 'out of memory' says "
         "that "
         "the batch size does not fit.",
         "With --no-idle-boost the program finds CUDA_DISABLE_PERF_BOOST=1 in its environment. From driver "
         "580.105 on, the clocks of an NVIDIA GPU then fall while the program that has it open computes "
         "nothing; an older driver ignores it, and a warning says so. "
         "Without --tune and --job nothing is set on any device, except that what a program left that was "
         "killed "
         "together "
         "with its guard is put back: before the start, and at the end what this program left. A fault of "
         "measuring never stops the program nor "
         "changes its exit "
         "status; with FLYBALL_DISABLE=1 the program takes the place of this one at once.",
         "Signals sent to this process are passed on to the program; those of the terminal reach it from the "
         "terminal. The program runs on should this process be killed.",
         "Each device is counted once: where several ranks of a job, or one of these commands inside "
         "another, "
         "measure the same device, one counts it and the others say which one. 'flyball tally' adds up the "
         "reports of a job. A job is known by the variables of its scheduler or launcher."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&run_tune_options, &run_job_options, &store_options, &run_carbon_options, &device_options},
    .operands = "-- PROGRAM [ARGUMENT...]",
    .runs_program = true,
    .exit_status =
        "That of the program; 126 when it cannot be executed, 127 when it is not found, 128 and the "
        "number of a signal that ended it; with --job 0 for one that was ended at its target, and 75 where "
        "it "
        "should be started again; a program that a Ctrl-C ended ends this command the same way. "
        "When the command line, a variable or a configuration file "
        "is wrong, the program does not start, and the status is as in flyball(1).",
    .examples = {{"flyball run -- python train.py", "measure a training run"},
                 {"flyball run -i 0,1 --output run.json -- ./train.sh --epochs 3",
                  "measure two GPUs, and keep the report"},
                 {"flyball run --tune --max-slowdown 3% -- python train.py",
                  "tune a training that reports its steps"},
                 {"flyball run --tune --carbon gb:national --epochs 90 --max-slowdown 3% -- python train.py",
                  "follow the grid with the power limit"},
                 {"flyball run --job digits --tries 3 --batch-sizes 32,64,128 --default-batch-size 64 "
                  "--target-metric 0.95 --max-epochs 100 -- python train.py --batch-size {batch_size}",
                  "submit a recurring job"},
                 {"srun flyball run --output run-%t.json -- python train.py",
                  "measure every task of a Slurm job; each GPU counts once"}},
    .run = run_run,
};
