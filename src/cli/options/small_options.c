/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/small_options.h"

#include <math.h>
#include <unistd.h>

#include <flyball/objective.h>

#include "base/text/number_list.h"

int number_list_option(const struct cli_call *call, const char *name, uint32_t minimum, size_t most,
                       struct arena *arena, uint32_t **out_numbers, size_t *out_count,
                       struct fly_error *out_error)
{
    const char *text = cli_text(call, name);
    struct fly_error error;
    int code =
        text != NULL ? number_list_parse(text, minimum, most, arena, out_numbers, out_count, &error) : 0;

    if (code == FLY_EUSAGE)
        return cli_value_error(call, name, text, error.text, out_error);
    return code < 0 ? error_no_memory(out_error) : 0;
}

int slowdown_option_read(const struct cli_call *call, double *out_factor, struct fly_error *out_error)
{
    const char *text = cli_text(call, "max-slowdown");

    if (text == NULL || fly_slowdown_parse(text, out_factor, NULL) == 0)
        return 0;
    return cli_value_error(call, "max-slowdown", text,
                           "a percentage from 0% or a factor from 1x, as in 3% or 1.03x, or none", out_error);
}

int slowdown_option_read_finite(const struct cli_call *call, double *out_factor, struct fly_error *out_error)
{
    int code = slowdown_option_read(call, out_factor, out_error);

    return code < 0 || isfinite(*out_factor)
               ? code
               : cli_value_error(call, "max-slowdown", cli_text(call, "max-slowdown"),
                                 "a percentage or a factor, since a plan has an end", out_error);
}

unsigned thread_option(const struct cli_call *call)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (cli_set(call, "threads"))
        return (unsigned)cli_integer(call, "threads");
    return processors < 1 ? 1 : processors > CREW_THREADS_MAX ? CREW_THREADS_MAX : (unsigned)processors;
}
