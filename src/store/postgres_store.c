/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "store/store_backend.h"

static int open_server(const struct store_address *address, const struct store_options *options,
                       void **out_state, char **out_shown, struct fly_error *out_error)
{
    (void)address, (void)options, (void)out_state, (void)out_shown;
    return error_set(out_error, FLY_EUNSUPPORTED, "this build keeps no log on a server; name a file");
}

const struct store_backend postgres_backend = {.name = "postgres", .open = open_server};
