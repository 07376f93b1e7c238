/* SPDX-License-Identifier: Apache-2.0 */
/* Which process made a journal's entry, in which boot of the machine. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/harmless.h"
#include "knob/journal.h"

enum { STAT_BYTES = 1024, START_FIELD = 22 };

/* Reads the first bytes of a file of the kernel as text; empty if it cannot be read. */
static void read_text(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, bytes - 1) : 0;

    text[length > 0 ? length : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static void read_boot(char boot[JOURNAL_BOOT_MAX])
{
    read_text("/proc/sys/kernel/random/boot_id", boot, JOURNAL_BOOT_MAX);
    boot[strcspn(boot, "\n")] = '\0';
    if (boot[0] == '\0')
        snprintf(boot, JOURNAL_BOOT_MAX, "unknown");
}

uint64_t journal_start_of(pid_t pid)
{
    char path[64], text[STAT_BYTES];
    const char *at;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    read_text(path, text, sizeof text);
    at = strrchr(text, ')'); /* the second field is a name, which may contain anything */
    for (int field = 2; at != NULL && field < START_FIELD; field++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

void journal_begin(const char *uuid, const char *program, struct journal_entry *out_entry)
{
    *out_entry = (struct journal_entry){
        .pid = getpid(), .start_ticks = journal_start_of(getpid()), .date_s = (int64_t)time(NULL)};
    snprintf(out_entry->uuid, sizeof out_entry->uuid, "%s", uuid);
    snprintf(out_entry->program, sizeof out_entry->program, "%s", program);
    harmless_hide_controls(out_entry->program);
    read_boot(out_entry->boot);
}

bool journal_is_of_this_boot(const struct journal_entry *entry)
{
    char boot[JOURNAL_BOOT_MAX];

    read_boot(boot);
    return strcmp(boot, entry->boot) == 0;
}

bool journal_maker_lives(const struct journal_entry *entry)
{
    return entry->pid > 0 && entry->start_ticks != 0 && journal_start_of(entry->pid) == entry->start_ticks;
}
