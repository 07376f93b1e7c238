/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a guard; when the session's GPUs are let go, it settles what is owed to them. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/wait.h"
#include "knob/gpu_lock.h"
#include "knob/guard.h"
#include "knob/guard_private.h"
#include "knob/journal.h"
#include "knob/repair.h"

enum { FILE_MAX = 512 };
/* For how long, and how often, what is owed is tried after that. */
static const double owed_s = 3600, first_pause_s = 0.25, last_pause_s = 60, longer = 1.5;

/*
 * Takes it on to settle what is owed to a GPU, by a lock on that file; OTHERS if another guard does. The file
 * is another one after each change. Without a file there may be what could not even be written down.
 */
enum { OTHERS = -2, NO_FILE = -1 };
static int take_on(const struct guarding *guarding, const char *uuid)
{
    char path[FILE_MAX];
    int fd;

    snprintf(path, sizeof path, "%.255s/%.96s.owed", guarding->directory, uuid);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return OTHERS;
}

/* What the guard knows counts while the session's own entry is there: nobody else has put it back. */
static void put_back_again(struct guarding *guarding, const char *uuid)
{
    struct journal_entry entry;
    bool is_ours = false;
    int lock;

    if (gpu_lock_take(guarding->directory, uuid, GUARD_PROGRAM GPU_LOCK_BRIEFLY, &lock, NULL) < 0)
        return;
    for (int kind = JOURNAL_TURNED; kind <= JOURNAL_TURNED_2; kind++)
        is_ours =
            is_ours || (journal_read(guarding->directory, (enum journal_kind)kind, uuid, &entry, NULL) == 0 &&
                        entry.pid == guarding->session);
    if (is_ours)
        guarding_put_back(guarding, uuid);
    gpu_lock_release(lock);
}

/* Returns the GPU, opened again if it cannot be read: its driver may have been reloaded. */
static const struct device *device_again(struct guarding *guarding, const struct held *held)
{
    const struct device *device = guarding_device(guarding, held->uuid);
    struct setting now;

    if (device != NULL && setting_read(device, QUANTITY_POWER_LIMIT, &now) == READING_OK)
        return device;
    device_list_close(&guarding->list);
    memset(&guarding->list, 0, sizeof guarding->list);
    (void)guard_open_devices(guarding->nvml_path, guarding->amdsmi_path, held->pci, &guarding->list, NULL);
    return guarding_device(guarding, held->uuid);
}

static struct knob_options repair_options(const struct guarding *guarding)
{
    return (struct knob_options){.runtime_directory = guarding->directory,
                                 .nvml_path = guarding->nvml_path,
                                 .amdsmi_path = guarding->amdsmi_path,
                                 .daemon = guarding->site.daemon,
                                 .program = GUARD_PROGRAM};
}

static void settle_one(struct guarding *guarding, const struct held *held)
{
    const struct knob_options options = repair_options(guarding);
    struct repair repairs[JOURNAL_KIND_COUNT * 2];
    const struct device *device = device_again(guarding, held);

    if (device == NULL)
        return;
    if (guarding_is_told_of(guarding, held->uuid, JOURNAL_TURNED) ||
        guarding_is_told_of(guarding, held->uuid, JOURNAL_TURNED_2))
        put_back_again(guarding, held->uuid);
    (void)knob_repair_device(&options, device, repairs, JOURNAL_KIND_COUNT * 2, NULL);
}

static bool is_due(const struct guarding *guarding, size_t place)
{
    const struct knob_options options = repair_options(guarding);

    return knob_repair_due_for(&options, guarding->held[place].uuid) != REPAIR_NOTHING_DUE;
}

/* Keeps trying, ever more rarely, until nothing is owed, other guards have taken that on, or it is too long.
 */
static void settle(struct guarding *guarding)
{
    struct mono_time end = mono_after_s(mono_now(), owed_s);
    double pause_s = first_pause_s;
    bool stays = true;

    while (stays && mono_elapsed_s(mono_now(), end) > 0) {
        int taken[DEVICES_MAX] = {0};

        stays = false;
        for (size_t i = 0; i < guarding->lock_count; i++) {
            taken[i] = is_due(guarding, i) ? take_on(guarding, guarding->held[i].uuid) : OTHERS;
            stays = stays || taken[i] != OTHERS;
        }
        if (stays)
            mono_sleep_s(pause_s);
        pause_s = fmin(pause_s * longer, last_pause_s);
        for (size_t i = 0; i < guarding->lock_count; i++) {
            if (taken[i] != OTHERS)
                settle_one(guarding, &guarding->held[i]);
            if (taken[i] >= 0)
                close(taken[i]);
        }
    }
}

int guard_main(int argc, char **argv)
{
    static struct guarding guarding;
    int code = guarding_begin(argc, argv, &guarding);

    if (code < 0)
        return fly_error_exit_status(code);
    guarding_attend(&guarding);
    settle(&guarding);
    device_list_close(&guarding.list);
    return 0;
}
