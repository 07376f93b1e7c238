/* SPDX-License-Identifier: Apache-2.0 */
/* All providers, and which one a source means. */
#include "grid/provider.h"

#include <string.h>

#include "base/error.h"

const struct grid_provider *const grid_providers[] = {
    &grid_provider_carbon_aware,
    &grid_provider_constant,
    &grid_provider_csv,
    &grid_provider_electricity_maps,
    &grid_provider_gb,
    &grid_provider_watttime,
    NULL,
};

int grid_read(const char *source, struct grid_request *request, struct grid_answer *out_answer,
              struct fly_error *out_error)
{
    const char *colon = strchr(source, ':');

    for (size_t i = 0; colon != NULL && grid_providers[i] != NULL; i++) {
        const char *name = grid_providers[i]->name;

        if (strlen(name) == (size_t)(colon - source) && strncmp(source, name, strlen(name)) == 0) {
            request->place = colon + 1;
            return grid_providers[i]->read(request, out_answer, out_error);
        }
    }
    /* Whatever else it may be, it can be the name of a file. */
    request->place = source;
    return grid_provider_csv.read(request, out_answer, out_error);
}

void grid_answer_deinit(struct grid_answer *answer)
{
    grid_series_deinit(&answer->actual);
    grid_series_deinit(&answer->published);
}
