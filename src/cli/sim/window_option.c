/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/window_option.h"

#include <string.h>

#include "base/number.h"

int window_option_read(const struct cli_call *call, double *out_share, struct fly_error *out_error)
{
    const char *text = cli_text(call, "profile-window");
    size_t length = text != NULL ? strlen(text) : 0;
    char number[NUMBER_TEXT_MAX] = "";
    double percent;

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
