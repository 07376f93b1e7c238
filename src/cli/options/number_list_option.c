/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/number_list_option.h"

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
