/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_restore.h"

#include "base/error.h"
#include "device/open/backends.h"
#include "knob/repair.h"
#include "node/node_daemon.h"
#include "node/node_log.h"

enum { REPAIRS_MAX = JOURNAL_KIND_COUNT * DEVICES_MAX };

static bool is_left(enum repair_end end)
{
    return end == REPAIR_FAILED || end == REPAIR_ABSENT || end == REPAIR_IN_USE;
}

static int repair_all(const struct knob_options *options, const struct device_list *list,
                      struct fly_error *out_error)
{
    static struct repair repairs[REPAIRS_MAX];
    int count = knob_repair(options, list, false, repairs, REPAIRS_MAX, out_error), left = 0;

    if (count < 0)
        return count;
    for (int i = 0; i < count && i < REPAIRS_MAX; i++) {
        bool stays = is_left(repairs[i].end);

        log_say(stays ? SAY_WARNING : SAY_INFO, "%s", repairs[i].text);
        left += stays;
    }
    if (left > 0)
        return error_set(out_error, FLY_EUNSURE,
                         "%d settings could not be put back now; the next start of flyballd tries again",
                         left);
    return 0;
}

int node_restore(const struct config *config, struct fly_error *out_error)
{
    static struct device_list list;
    struct device_options devices;
    struct knob_options options;
    int code;

    daemon_device_options(config, &devices, &options);
    if (!knob_repair_is_due(&options))
        return 0;
    code = device_list_open(&devices, &list, out_error);
    if (code < 0)
        return code;
    code = repair_all(&options, &list, out_error);
    device_list_close(&list);
    return code;
}
