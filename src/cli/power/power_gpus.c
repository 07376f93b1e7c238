/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/power/power_gpus.h"

#include <stdio.h>

#include "base/error.h"
#include "cli/options/knob_options.h"

int power_gpus_open(const struct cli_call *call, enum gpus_without_choice without, enum leftovers leftovers,
                    struct power_gpus *out_gpus, struct fly_error *out_error)
{
    int result = cli_open_devices_and(call, without, leftovers, &out_gpus->list, out_gpus->hidden, out_error);

    if (result < 0)
        return result;
    out_gpus->count = 0;
    for (size_t i = 0; i < out_gpus->list.count; i++) {
        if (out_gpus->list.devices[i].info.kind == DEVICE_GPU)
            out_gpus->devices[out_gpus->count++] = &out_gpus->list.devices[i];
    }
    out_gpus->options = cli_knob_options(call, "flyball power", out_gpus->readonly_path);
    if (out_gpus->count > 0)
        return 0;
    if (out_gpus->hidden[0] != '\0')
        error_set(out_error, FLY_EUNSUPPORTED, "there is no GPU: %s; name some with -i", out_gpus->hidden);
    else
        error_set(out_error, FLY_EUNSUPPORTED,
                  "there is no GPU whose power could be limited; 'flyball doctor' says why");
    device_list_close(&out_gpus->list);
    return FLY_EUNSUPPORTED;
}

void power_gpus_close(struct power_gpus *gpus)
{
    device_list_close(&gpus->list);
}

static char *join(const struct power_gpus *gpus, const bool *chosen, const char *start, const char *between,
                  char text[POWER_NAMES_MAX])
{
    size_t length = (size_t)snprintf(text, POWER_NAMES_MAX, "%s", start);
    const char *before = "";

    for (size_t i = 0; i < gpus->count && length < POWER_NAMES_MAX; i++) {
        if (chosen != NULL && !chosen[i])
            continue;
        length += (size_t)snprintf(text + length, POWER_NAMES_MAX - length, "%s%u", before,
                                   gpus->devices[i]->info.index);
        before = between;
    }
    return text;
}

char *power_gpus_names(const struct power_gpus *gpus, const bool *chosen, char text[POWER_NAMES_MAX])
{
    return join(gpus, chosen, "GPU ", ", ", text);
}

char *power_gpus_list(const struct power_gpus *gpus, const bool *chosen, char text[POWER_NAMES_MAX])
{
    return join(gpus, chosen, "", ",", text);
}

int power_refused(const struct cli_call *call, int code, const struct fly_error *error)
{
    if (code != FLY_ESTATE)
        return code;
    cli_say(call, error->text);
    cli_exit_with(call, POWER_STATUS_IN_USE);
    return 0;
}

char *power_limit_text(int64_t limit_mw, char text[POWER_LIMIT_TEXT_MAX])
{
    if (limit_mw <= 0)
        snprintf(text, POWER_LIMIT_TEXT_MAX, "an unknown limit");
    else
        snprintf(text, POWER_LIMIT_TEXT_MAX, "%.10g W", (double)limit_mw / 1e3);
    return text;
}

void power_gpus_add_limit(struct table *table, int64_t limit_mw, const char *reason)
{
    if (limit_mw > 0)
        table_add_real(table, (double)limit_mw / 1e3);
    else
        table_add_unavailable(table, "-", reason);
}
