/* SPDX-License-Identifier: Apache-2.0 */
/* Each GPU is put back by a thread of its own, so that one that hangs in the driver holds up no other. */
#include "node/node_restore.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/thread/thread_group.h"
#include "device/open/backends.h"
#include "knob/repair.h"
#include "node/node_daemon.h"
#include "node/node_log.h"

enum { REPAIRS_MAX = JOURNAL_KIND_COUNT * DEVICES_MAX, REPAIRS_OF_ONE = JOURNAL_KIND_COUNT * 2 };
static const double patience_s = 8;

/* A GPU, as a list of one. */
struct part {
    const struct knob_options *options;
    struct apart *apart;
    struct device_list list;
    int count; /* of repairs, or a negative code */
    struct repair repairs[REPAIRS_OF_ONE];
    struct fly_error error;
};

static bool is_left(enum repair_end end)
{
    return end == REPAIR_FAILED || end == REPAIR_OWED || end == REPAIR_ABSENT || end == REPAIR_IN_USE;
}

static void run(void *state)
{
    struct part *part = state;
    /* Entries of GPUs that are not in the list count as well, and are many at most. */
    struct repair *repairs = calloc(REPAIRS_MAX, sizeof *repairs);
    int kept = 0, count = repairs != NULL ? knob_repair(part->options, &part->list, false, repairs,
                                                        REPAIRS_MAX, &part->error)
                                          : error_no_memory(&part->error);

    for (int i = 0; i < count && i < REPAIRS_MAX; i++) {
        if (repairs[i].end != REPAIR_ABSENT && kept < REPAIRS_OF_ONE)
            part->repairs[kept++] = repairs[i];
    }
    free(repairs);
    part->count = count < 0 ? count : kept;
}

/* Returns NULL if memory is exhausted. */
static struct part *begin(const struct knob_options *options, const struct device *device)
{
    struct part *part = calloc(1, sizeof *part);

    if (part == NULL)
        return NULL;
    part->options = options;
    part->list.devices[part->list.count++] = *device;
    part->apart = apart_begin(run, free, part);
    if (part->apart == NULL)
        run(part);
    return part;
}

/* Says what became of an entry; returns whether it is left. */
static bool say(const struct repair *repair)
{
    bool stays = is_left(repair->end);

    log_say(stays ? SAY_WARNING : SAY_INFO, "%s", repair->text);
    return stays;
}

/* Waits for a GPU; returns how many of its settings are left, at least. */
static int finish(struct part *part, struct mono_time until, bool *hangs)
{
    unsigned index = part->list.devices[0].info.index;
    int left = 0;

    if (part->apart != NULL && !apart_finish(part->apart, until)) {
        *hangs = true;
        log_say(SAY_WARNING, "GPU %u does not answer its driver, so that nothing could be put back there",
                index);
        return 1;
    }
    if (part->count < 0) {
        log_say(SAY_WARNING, "GPU %u: %s", index, part->error.text);
        left = 1;
    }
    for (int i = 0; i < part->count; i++)
        left += say(&part->repairs[i]);
    free(part);
    return left;
}

/* What is left of GPUs that are not here. */
static int say_absent(const struct knob_options *options, const struct device_list *list)
{
    struct repair *repairs = calloc(REPAIRS_MAX, sizeof *repairs);
    int left = 0, count = repairs != NULL ? knob_repair(options, list, false, repairs, REPAIRS_MAX, NULL) : 0;

    for (int i = 0; i < count && i < REPAIRS_MAX; i++)
        left += repairs[i].end == REPAIR_ABSENT && say(&repairs[i]);
    free(repairs);
    return left;
}

static int repair_all(const struct knob_options *options, const struct device_list *list,
                      struct fly_error *out_error)
{
    struct mono_time until = mono_after_s(mono_now(), patience_s);
    struct part *parts[DEVICES_MAX];
    size_t count = 0;
    bool hangs = false;
    int left = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind == DEVICE_GPU && !list->devices[i].info.silent)
            parts[count++] = begin(options, &list->devices[i]);
    }
    for (size_t i = 0; i < count; i++)
        left += parts[i] != NULL ? finish(parts[i], until, &hangs) : 0;
    if (!hangs)
        left += say_absent(options, list);
    if (left > 0)
        return error_set(out_error, FLY_EUNSURE,
                         "%d settings could not be put back now; the next start of flyballd tries again",
                         left);
    return 0;
}

int node_restore(const struct config *config, struct fly_error *out_error)
{
    static struct device_list list;
    static struct device_options devices;
    static struct knob_options options;
    int code;

    daemon_device_options(config, &devices, &options);
    if (!knob_repair_is_due(&options))
        return 0;
    code = device_list_open(&devices, &list, out_error);
    if (code < 0)
        return code;
    code = repair_all(&options, &list, out_error);
    if (!left_threads_any())
        device_list_close(&list);
    return code;
}
