/* SPDX-License-Identifier: Apache-2.0 */
/* All commands, in the order in which help lists them. */
#include "cli/commands.h"

#include "cli/carbon/carbon_commands.h"
#include "cli/frame/frame_commands.h"
#include "cli/job/job_commands.h"
#include "cli/machine/machine_commands.h"
#include "cli/power/power_commands.h"
#include "cli/report/report_commands.h"
#include "cli/run/run_commands.h"
#include "cli/serve/serve_commands.h"
#include "cli/sim/sim_commands.h"
#include "cli/top/top_commands.h"

/* One command a line, so that merges stay simple. */
/* clang-format off */
static const struct cli_command *const commands[] = {
    &cmd_run,
    &cmd_profile,
    &cmd_tally,
    &cmd_power_get,
    &cmd_power_set,
    &cmd_power_reset,
    &cmd_power_restore,
    &cmd_devices,
    &cmd_doctor,
    &cmd_monitor,
    &cmd_top,
    &cmd_record,
    &cmd_selftest,
    &cmd_demo,
    &cmd_report,
    &cmd_job_list,
    &cmd_job_show,
    &cmd_job_history,
    &cmd_job_why,
    &cmd_job_pareto,
    &cmd_job_set,
    &cmd_job_delete,
    &cmd_job_export,
    &cmd_job_import,
    &cmd_job_backup,
    &cmd_job_restore,
    &cmd_carbon_now,
    &cmd_carbon_forecast,
    &cmd_carbon_history,
    &cmd_carbon_plan,
    &cmd_carbon_report,
    &cmd_serve,
    &cmd_token,
    &cmd_token_issue,
    &cmd_sim_job,
    &cmd_sim_group,
    &cmd_sim_compare,
    &cmd_sim_pareto,
    &cmd_sim_carbon,
    &cmd_sim_replay,
    &cmd_sim_make_trace,
    &cmd_sim_make_groups,
    &cmd_config_show,
    &cmd_help,
    &cmd_version,
    NULL,
};
/* clang-format on */

static const struct cli_group groups[] = {
    {"power", "power limits of GPUs, set and turned back"},
    {"job", "recurring jobs: what was observed, chosen and saved"},
    {"carbon", "the grid's carbon intensity, plans that follow it, and what runs emitted"},
    {"sim", "simulated jobs, replayed from recorded traces"},
    {"config", "settings and where they come from"},
    {NULL, NULL},
};

/* What a beginner looks for, on one screen; help lists the rest elsewhere. */
static const struct cli_section sections[] = {
    {"train", "run", "run a program: energy, best power limit, recurring job"},
    {"", "profile", "measure what each power limit does to a program"},
    {"", "demo", "a first look: real trainings on an emulated GPU"},
    {"", "tally", "add up the reports of ranks and nodes"},
    {"jobs", "job", "recurring jobs: what was observed, chosen and saved"},
    {"", "report", "who used what energy"},
    {"", "serve", "serve a store of jobs to other machines"},
    {"machine", "devices", "GPUs, CPUs and memory whose energy can be known"},
    {"", "doctor", "what can be read here, and what mends the rest"},
    {"", "monitor", "watch power, energy, heat and throttling"},
    {"", "top", "watch who uses which GPU, as flyballd says"},
    {"", "record", "write down what the devices say, to play it back"},
    {"", "power", "get, set and put back power limits"},
    {"carbon", "carbon", "the grid's carbon intensity, and what runs emitted"},
    {"simulate", "sim", "jobs replayed from recorded traces"},
    {NULL, NULL, NULL},
};

static const struct cli_variable variables[] = {
    {"FLYBALL_ATTEMPT",
     "Set by 'flyball run --job' for what it runs: number of the attempt at the trial, from 1."},
    {"FLYBALL_BATCH_SIZE", "Set by 'flyball run --job' for what it runs: batch size of all ranks together."},
    {"FLYBALL_CARBON_AWARE_URL", "Address of the site's Carbon Aware SDK, as http://HOST:PORT."},
    {"FLYBALL_CARBON_CACHE", "Directory of the grid's figures that were fetched; "
                             "$XDG_CACHE_HOME/flyball/carbon, or ~/.cache/flyball/carbon, unless set."},
    {"FLYBALL_CARBON_TIMEOUT", "Seconds that an answer about the grid may take, 0.1 to 600; 20 unless set."},
    {"FLYBALL_CA_FILE", "Certificates of who vouches for an https:// service that keeps jobs, or daemon that "
                        "sets limits; the system's "
                        "unless set."},
    {"FLYBALL_COUNTED_BY",
     "Set by 'flyball run' for what it runs: which devices it counts, so that another one inside does not."},
    {"FLYBALL_DISABLE", "Set to 1, training runs as if Flyball were not there."},
    {"FLYBALL_ELECTRICITY_MAPS_HEADER", "Header in which that service wants the key; auth-token, or "
                                        "X-BLOBR-KEY at api-access.electricitymaps.com, "
                                        "unless set."},
    {"FLYBALL_ELECTRICITY_MAPS_KEY",
     "Key for Electricity Maps, unless FLYBALL_ELECTRICITY_MAPS_KEY_FILE is set."},
    {"FLYBALL_ELECTRICITY_MAPS_KEY_FILE", "File with that key."},
    {"FLYBALL_ELECTRICITY_MAPS_URL", "Another address of Electricity Maps, with the version of its API; "
                                     "https://api.electricitymaps.com/v4 unless set."},
    {"FLYBALL_EMULATOR", "Settings of an emulator that is yet to be started, such as 'gpus=4,model=h100'."},
    {"FLYBALL_EMULATOR_STATE", "File of the emulated GPUs, where flyball-emulator started some."},
    {"FLYBALL_GB_URL", "Another address of the GB Carbon Intensity API."},
    {"FLYBALL_CONTAINED",
     "Set to 1 in a container that has its GPUs for itself: what cannot be seen there keeps "
     "no knob from turning (docs/howto/power.md)."},
    {"FLYBALL_GUARD", "Path of flyball-guard, where it is neither beside the program or library nor "
                      "installed."},
    {"FLYBALL_JOB_NAME", "Set by 'flyball run --job' for what it runs: the job's name."},
    {"FLYBALL_JOB_REQUEST",
     "Set by 'flyball run --job' for what it runs: by which a session inside takes up the same trial."},
    {"FLYBALL_KNOB_COMMANDS",
     "Not supported: while it is set, no knob is turned; flyballd sets limits for users."},
    {"FLYBALL_KNOB_DAEMON",
     "Address (unix:PATH, http://HOST:PORT, https://HOST:PORT) of flyballd, or of Zeus's daemon, that sets "
     "power limits for users whom the driver does not let; "
     "ZEUSD_SOCK_PATH, ZEUSD_HOST_PORT, /run/flyballd/flyballd.sock, or /run/zeusd/zeusd.sock, where it is, "
     "unless set."},
    {"FLYBALL_KNOB_DAEMON_USER",
     "User, by name or number, who besides root may listen at this daemon's socket and be given a token."},
    {"FLYBALL_KNOB_DEVICES", "Directory of the files nvidia0, nvidia1 and so on that are shown to flyballd "
                             "as a proof; /dev unless set."},
    {"FLYBALL_KNOB_TOKEN_FILE",
     "File with the token that this daemon wants; the token in ZEUSD_TOKEN unless set."},
    {"FLYBALL_LEARNING_RATE",
     "Set by 'flyball run --job' for what it runs: learning rate for its batch size."},
    {"FLYBALL_LOCAL_BATCH_SIZE", "Set by 'flyball run --job' for what it runs: batch size of one rank."},
    {"FLYBALL_MAX_EPOCHS", "Set by 'flyball run --job' for what it runs: epochs that it may train at most."},
    {"FLYBALL_METRIC_NAME", "Set by 'flyball run --job --metric-name' for what it runs: the metric that the "
                            "hook for Python reports."},
    {"FLYBALL_PLUGINS",
     "Files of plug-ins that are policies of live jobs, with colons between them; loaded by whoever "
     "keeps the jobs' log: commands over a store, and a service whose operator sets it."},
    {"FLYBALL_RUNTIME_DIR", "Directory of the locks and the journal of GPUs whose power limits are set; "
                            "/run/flyball, or /tmp/flyball-knobs, unless set."},
    {"FLYBALL_PYTHON_HOOK",
     "Directory of the start-up hook for Python, where it is neither beside the program nor installed."},
    {"FLYBALL_QUIET", "Set to 1, a Tuner or a Session in Python writes no line on stderr when it ends."},
    {"FLYBALL_RUN_ID",
     "A name of the run that stays when it is requeued; the scheduler's job and step unless set."},
    {"FLYBALL_SEED", "Set by 'flyball run --job' for what it runs: a number for its own luck."},
    {"FLYBALL_SPOOL", "The directory, a whole path, where reports wait that a job's log did not take; it may "
                      "be one that machines "
                      "share. $XDG_STATE_HOME/flyball/spool unless set, else ~/.local/state/flyball/spool."},
    {"FLYBALL_STEPS",
     "Set by 'flyball run' for what it runs: path, device and inode of the file for lines that "
     "report steps and epochs."},
    {"FLYBALL_STEP_FD", "Set by 'flyball run' for what it runs: a descriptor of that file, for shells."},
    {"FLYBALL_TEST_DATA", "Directory of the recorded traces that the tests and benchmarks use."},
    {"FLYBALL_TEST_EMULATOR", "Directory of the emulator's driver library that the tests use."},
    {"FLYBALL_TOKEN", "Token for a service that keeps jobs, unless FLYBALL_TOKEN_FILE is set."},
    {"FLYBALL_TOKEN_FILE", "File with that token; read again when the service refuses the one before."},
    {"FLYBALL_TRIAL", "Set by 'flyball run --job' for what it runs: number of the trial in the job's log."},
    {"FLYBALL_TRY",
     "Set by 'flyball run --job' for what it runs: number of the try in this submission, from 0."},
    {"FLYBALL_WATTTIME_PASSWORD",
     "Password of the account at WattTime, unless FLYBALL_WATTTIME_PASSWORD_FILE is set."},
    {"FLYBALL_WATTTIME_PASSWORD_FILE", "File with that password."},
    {"FLYBALL_WATTTIME_URL", "Another address of WattTime."},
    {"FLYBALL_WATTTIME_USER", "Name of the account at WattTime."},
    {NULL, NULL},
};

const struct cli_program flyball_program = {
    .commands = commands, .groups = groups, .sections = sections, .variables = variables};
