/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/process_view.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROC_PATH_MAX = 300, LINE_MAX_BYTES = 512, DECIMAL = 10 };

static uint64_t space_of(const char *process)
{
    char path[PROC_PATH_MAX];
    struct stat status;

    snprintf(path, sizeof path, "/proc/%s/ns/pid", process);
    return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

struct emulator_owner process_self(void)
{
    /* A child may be in another namespace than its parent, whose pid it then does not have. */
    static _Thread_local struct emulator_owner known;

    if (known.pid != getpid())
        known = (struct emulator_owner){.pid = getpid(), .pid_space = space_of("self")};
    return known;
}

/* The last pid of the line "NSpid:", which is that in the process's own namespace; 0: there is none. */
static pid_t innermost_pid(const char *process)
{
    char path[PROC_PATH_MAX], line[LINE_MAX_BYTES];
    FILE *file;
    long pid = 0;

    snprintf(path, sizeof path, "/proc/%s/status", process);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *last;

        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        last = strrchr(line, '\t');
        pid = last != NULL ? strtol(last + 1, NULL, DECIMAL) : 0;
        break;
    }
    if (file != NULL)
        fclose(file);
    return (pid_t)pid;
}

pid_t process_view(const struct emulator_owner *owner)
{
    const struct dirent *entry;
    pid_t found = 0;
    DIR *processes;

    if (owner->pid == 0 || owner->pid_space == process_self().pid_space)
        return owner->pid;
    processes = opendir("/proc");
    while (processes != NULL && found == 0 && (entry = readdir(processes)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && innermost_pid(entry->d_name) == owner->pid &&
            space_of(entry->d_name) == owner->pid_space)
            found = (pid_t)strtol(entry->d_name, NULL, DECIMAL);
    }
    if (processes != NULL)
        closedir(processes);
    return found;
}
