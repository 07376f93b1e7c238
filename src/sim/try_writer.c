/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/try_writer.h"

#include <stdio.h>
#include <string.h>

#include "base/text/csv_quote.h"

enum { LINE_MAX_BYTES = 256, PREFIX_MAX = 1 << 18 };

const char try_header[] =
    "gpu,dataset,policy,seed,recurrence,try,batch_size,power_limit_w,reached,energy_j,time_s,cost_j\n";
const char try_header_of_groups[] =
    "gpu,group,dataset,policy,seed,recurrence,try,batch_size,power_limit_w,reached,energy_j,time_s,cost_j\n";

void try_writer_init(struct try_writer *writer, struct crew_unit *unit, const char *gpu, const char *group,
                     const char *dataset, const char *policy, uint32_t seed)
{
    const char *const texts[] = {gpu, group, dataset, policy};

    writer->unit = unit;
    buffer_init(&writer->prefix, PREFIX_MAX);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i] == NULL)
            continue;
        csv_quote(&writer->prefix, texts[i]);
        buffer_puts(&writer->prefix, ",");
    }
    buffer_printf(&writer->prefix, "%u,", seed);
}

void try_writer_deinit(struct try_writer *writer)
{
    buffer_deinit(&writer->prefix);
}

void try_writer_observe(void *context, const struct try_record *record)
{
    struct try_writer *writer = context;
    char line[LINE_MAX_BYTES];
    int length = snprintf(line, sizeof line, "%llu,%llu,%u,%.17g,%d,%.17g,%.17g,%.17g\n",
                          (unsigned long long)record->recurrence, (unsigned long long)record->number,
                          record->batch_size, record->power_limit_w, record->reached, record->energy_j,
                          record->time_s, record->cost_j);

    ordered_part_write(&writer->unit->part, writer->prefix.data, writer->prefix.length);
    ordered_part_write(&writer->unit->part, line, (size_t)length);
}

void try_writer_keep(void *context, const struct try_record *record)
{
    struct try_writer *writer = context;
    struct try_kept kept;

    memset(&kept, 0, sizeof kept); /* the gaps between its members are written too */
    kept.unit = writer->unit->number;
    kept.record = *record;
    ordered_part_write(&writer->unit->part, (const char *)&kept, sizeof kept);
}
