/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_options.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "cli/options/output_path.h"
#include "cli/options/small_options.h"
#include "cli/sim/plugin_crash.h"
#include "sim/crew.h"

int sim_run_begin(struct sim_run *run, const struct cli_call *call, const char *header, uint64_t units,
                  struct fly_error *out_error)
{
    int code = 0;

    *run = (struct sim_run){.has_tries = cli_set(call, "tries")};
    if (run->has_tries)
        code = output_path_open(cli_text(call, "tries"), &run->tries, out_error);
    if (code < 0)
        return code;
    if (run->has_tries)
        fputs(header, run->tries.stream); /* commit reports a failure */
    plugin_crash_remove(run->tries.temporary);
    cli_progress_begin(call, &run->progress, "simulations", units);
    return 0;
}

int sim_run_sink(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    struct sim_run *run = context;

    if (fwrite(bytes, 1, count, run->tries.stream) == count)
        return 0;
    /* The commit reports the cause; it fails because this write has failed. */
    return atomic_file_commit(&run->tries, out_error);
}

int sim_run_progress(void *context, uint64_t done, uint64_t total)
{
    struct sim_run *run = context;

    (void)total;
    progress_add(&run->progress, done - run->progress.done);
    progress_tick(&run->progress);
    return 0;
}

int sim_run_end(struct sim_run *run, int code, struct fly_error *out_error)
{
    progress_end(&run->progress);
    plugin_crash_remove(NULL);
    if (code < 0)
        atomic_file_discard(&run->tries);
    else if (run->has_tries)
        code = atomic_file_commit(&run->tries, out_error);
    return code;
}

static int add_asked(struct sim_policies *policies, const struct cli_call *call, size_t place,
                     struct fly_error *out_error)
{
    const struct cli_list *asked = cli_list(call, "policy");

    if (asked->choices[place] >= 0)
        return sim_policies_add(policies, (enum sim_policy)asked->choices[place], out_error);
    if (cli_source(call, "policy") == CLI_FILE)
        return cli_value_error(call, "policy", asked->words[place],
                               "no path, since a file must not bring code along: name plug-ins on the "
                               "command line",
                               out_error);
    return sim_policies_add_plugin(policies, asked->words[place], out_error);
}

/* Reads --profile-window as a share, 0.1 for 10%; 0 if it is not set. */
static int read_window(const struct cli_call *call, double *out_share, struct fly_error *out_error)
{
    const char *text = cli_text(call, "profile-window");
    size_t length = text != NULL ? strlen(text) : 0;
    char number[NUMBER_TEXT_MAX] = "";
    double percent;

    *out_share = 0.0;
    if (text == NULL)
        return 0;
    if (length > 0 && length <= sizeof number && text[length - 1] == '%')
        memcpy(number, text, length - 1);
    if (!number_parse_double(number, &percent) || !(percent > 0.0 && percent <= 100.0))
        return cli_value_error(call, "profile-window", text,
                               "a percentage above 0% and up to 100%, as in 10%", out_error);
    *out_share = percent / 100.0;
    return 0;
}

static int open_policies(struct sim_policies *policies, const struct cli_call *call,
                         struct fly_error *out_error)
{
    const char *power = cli_text(call, "power-policy");
    int code = 0;

    sim_policies_init(policies);
    for (size_t i = 0; i < cli_list(call, "policy")->count && code == 0; i++)
        code = add_asked(policies, call, i, out_error);
    if (code == 0 && power != NULL)
        code = sim_policies_load_power(policies, power, out_error);
    if (code == 0)
        sim_policies_complete(policies);
    else
        sim_policies_close(policies);
    return code;
}

int policy_options_open(struct sim_policies *policies, struct policy_parameters *out_parameters,
                        const struct cli_call *call, struct fly_error *out_error)
{
    double profile_window;
    int code = read_window(call, &profile_window, out_error);

    if (code == 0)
        code = open_policies(policies, call, out_error);
    if (code < 0)
        return code;
    *out_parameters = (struct policy_parameters){.beta = cli_real(call, "beta"),
                                                 .window = (uint32_t)cli_integer(call, "window"),
                                                 .generator = (enum generator)cli_choice(call, "generator"),
                                                 .guard = (enum guard_choice)cli_choice(call, "guard"),
                                                 .profile_window = profile_window,
                                                 .power = sim_policies_power(policies)};
    return 0;
}

int objective_option_read(const struct cli_call *call, struct fly_objective *out_objective,
                          struct fly_error *out_error)
{
    const char *text = cli_text(call, "objective");
    struct fly_objective objective = {FLY_OBJECTIVE_COST, cli_real(call, "eta"), INFINITY};
    int code;

    if (text != NULL && cli_given(call, "eta"))
        return cli_usage(call, out_error, "--objective and --eta both say what to make small; give one");
    /* The lowest limit says nothing about a batch size. */
    if (text != NULL &&
        (fly_objective_parse(text, &objective, NULL) < 0 || objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT))
        return cli_value_error(call, "objective", text, "energy, time, cost:ETA, carbon or money", out_error);
    code = slowdown_option_read(call, &objective.max_slowdown, out_error);
    if (code == 0)
        *out_objective = objective;
    return code;
}
