/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "device/device.h"

static int replay_open(const struct device_options *options, struct device_list *list,
                       struct fly_error *out_error)
{
    (void)list;
    return error_set(out_error, FLY_EUNSUPPORTED, "'%s': recordings cannot be replayed yet",
                     options->replay_path);
}

const struct device_backend device_backend_replay = {
    .name = "replay", .title = "a recording", .open = replay_open};
