/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_MAX = 1024, PATH_BYTES_MAX = 64, ROUNDS_MAX = 64 };

/* Of /proc/PID/stat, as proc(5) counts them. */
enum { FIELD_PARENT = 4, FIELD_START = 22 };

/* Parent and start of a process; false when there is none. */
static bool read_stat(pid_t pid, pid_t *out_parent, unsigned long long *out_start, char *out_state)
{
    char path[PATH_BYTES_MAX], text[STAT_MAX], *at;
    ssize_t length;
    int file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    /* A program's name may hold anything, a parenthesis too. */
    at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ' || at[2] == '\0')
        return false;
    *out_state = at[2];
    at += 3;
    *out_parent = (pid_t)strtol(at, &at, 10);
    for (int i = FIELD_PARENT + 1; i < FIELD_START; i++)
        (void)strtoll(at, &at, 10);
    *out_start = strtoull(at, &at, 10);
    return *out_parent >= 0 && *at == ' ';
}

static bool has(const struct process_tree *tree, pid_t pid)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->processes[i].pid == pid)
            return true;
    }
    return false;
}

static void add(struct process_tree *tree, pid_t pid, unsigned long long start)
{
    if (tree->count == PROCESS_TREE_MAX || has(tree, pid))
        return;
    tree->processes[tree->count].pid = pid;
    tree->processes[tree->count++].start = start;
}

/* Children of those that are known; whether there were new ones. */
static bool add_children(struct process_tree *tree, DIR *processes)
{
    size_t before = tree->count;
    const struct dirent *entry;

    rewinddir(processes);
    /* cppcheck-suppress readdirCalled ; of a stream of its own */
    while ((entry = readdir(processes)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), parent;
        unsigned long long start;
        char state;

        if (pid > 0 && read_stat(pid, &parent, &start, &state) && has(tree, parent))
            add(tree, pid, start);
    }
    return tree->count > before;
}

void process_tree_find(pid_t root, struct process_tree *tree)
{
    DIR *processes = opendir("/proc");
    unsigned long long start;
    char state;
    pid_t parent;

    if (read_stat(root, &parent, &start, &state))
        add(tree, root, start);
    for (int i = 0; processes != NULL && i < ROUNDS_MAX && add_children(tree, processes); i++) {
    }
    if (processes != NULL)
        closedir(processes);
}

void process_tree_signal(const struct process_tree *tree, int signal)
{
    for (size_t i = 0; i < tree->count; i++) {
        unsigned long long start;
        char state;
        pid_t parent;

        if (read_stat(tree->processes[i].pid, &parent, &start, &state) && start == tree->processes[i].start)
            kill(tree->processes[i].pid, signal);
    }
}

bool process_tree_lives(const struct process_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        unsigned long long start;
        char state;
        pid_t parent;

        if (read_stat(tree->processes[i].pid, &parent, &start, &state) && start == tree->processes[i].start &&
            state != 'Z' && state != 'X')
            return true;
    }
    return false;
}
