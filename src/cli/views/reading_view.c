/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/views/reading_view.h"

#include <stdio.h>

const char *device_label(const struct device_info *info, char label[DEVICE_LABEL_MAX])
{
    const struct {
        bool holds;
        const char *word;
    } words[] = {
        {info->emulated, "emulated"},
        {info->estimated, "estimated"},
        {info->module_power, "module"},
        {info->mig, "MIG"},
    };
    size_t length = 0;

    label[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].holds)
            length += (size_t)snprintf(label + length, DEVICE_LABEL_MAX - length, "%s%s",
                                       length > 0 ? ", " : "", words[i].word);
    }
    return label;
}

const char *reading_reason(const struct reading *reading, char reason[READING_REASON_MAX])
{
    const char *clause = reading_state_clause(reading->state);

    if (reading->state == READING_FAILED && reading->code != 0)
        snprintf(reason, READING_REASON_MAX, "%s (code %d)", clause, reading->code);
    else
        snprintf(reason, READING_REASON_MAX, "%s", clause);
    return reason;
}

void table_add_reading(struct table *table, const struct reading *reading, double divisor)
{
    char reason[READING_REASON_MAX];

    if (reading->state != READING_OK)
        table_add_unavailable(table, "-", reading_reason(reading, reason));
    else
        table_add_real(table, (double)reading->value / divisor);
}

/* Returns the first of two readings that has a value; the first one if neither has. */
static const struct reading *either(const struct reading *first, const struct reading *second)
{
    return first->state != READING_OK && second->state == READING_OK ? second : first;
}

const struct reading *reading_power(const struct device_reading *reading)
{
    return either(&reading->values[QUANTITY_POWER_INSTANT], &reading->values[QUANTITY_POWER_AVERAGE]);
}

const struct reading *reading_limit(const struct device_reading *reading)
{
    return either(&reading->values[QUANTITY_POWER_LIMIT_ENFORCED], &reading->values[QUANTITY_POWER_LIMIT]);
}
