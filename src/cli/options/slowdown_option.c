/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/slowdown_option.h"

#include <math.h>

#include <flyball/objective.h>

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
