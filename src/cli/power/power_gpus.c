/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/power/power_gpus.h"

#include <stdio.h>

#include "base/error.h"
#include "cli/options/knob_options.h"

/* Keeps the GPUs of the open list. */
static int take(const struct cli_call *call, struct power_gpus *gpus, struct fly_error *out_error)
{
    gpus->count = 0;
    for (size_t i = 0; i < gpus->list.count; i++) {
        if (gpus->list.devices[i].info.kind == DEVICE_GPU)
            gpus->devices[gpus->count++] = &gpus->list.devices[i];
    }
    gpus->options = cli_knob_options(call, "flyball power", gpus->readonly_path);
    if (gpus->count > 0)
        return 0;
    if (gpus->hidden[0] != '\0')
        error_set(out_error, FLY_EUNSUPPORTED, "there is no GPU: %s; name some with -i", gpus->hidden);
    else
        error_set(out_error, FLY_EUNSUPPORTED,
                  "there is no GPU whose power could be limited; 'flyball doctor' says why");
    device_list_close(&gpus->list);
    return FLY_EUNSUPPORTED;
}

int power_gpus_open(const struct cli_call *call, enum gpus_without_choice without, enum leftovers leftovers,
                    struct power_gpus *out_gpus, struct fly_error *out_error)
{
    int result = cli_open_devices_and(call, without, leftovers, &out_gpus->list, out_gpus->hidden, out_error);

    return result < 0 ? result : take(call, out_gpus, out_error);
}

int power_gpus_open_or_facts(const struct cli_call *call, struct power_gpus *out_gpus,
                             struct fly_error *out_error)
{
    int result = cli_open_devices_or_facts(call, &out_gpus->list, out_error);

    out_gpus->hidden[0] = '\0';
    return result < 0 ? result : take(call, out_gpus, out_error);
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
