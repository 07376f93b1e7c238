/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process_stat.h"
#include "knob/guard.h"

enum { ROUNDS_MAX = 64 };

static bool has(const struct process_tree *tree, pid_t pid)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->processes[i].pid == pid)
            return true;
    }
    return false;
}

static void add(struct process_tree *tree, pid_t pid, const struct process_stat *stat)
{
    if (tree->count == PROCESS_TREE_MAX || has(tree, pid) || strcmp(stat->name, GUARD_PROGRAM) == 0)
        return;
    tree->processes[tree->count].pid = pid;
    tree->processes[tree->count++].start = stat->start;
}

/* Adds children of processes in the tree. Returns whether there were new ones. */
static bool add_children(struct process_tree *tree, DIR *processes)
{
    size_t before = tree->count;
    const struct dirent *entry;

    rewinddir(processes);
    /* cppcheck-suppress readdirCalled ; of a stream of its own */
    while ((entry = readdir(processes)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct process_stat stat;

        if (pid > 0 && process_stat_read(pid, &stat) && has(tree, stat.parent))
            add(tree, pid, &stat);
    }
    return tree->count > before;
}

static void add_descendants(struct process_tree *tree, DIR *processes)
{
    for (int i = 0; i < ROUNDS_MAX && add_children(tree, processes); i++) {
    }
}

void process_tree_find(pid_t root, struct process_tree *tree)
{
    DIR *processes = opendir("/proc");
    struct process_stat stat;

    if (process_stat_read(root, &stat))
        add(tree, root, &stat);
    if (processes == NULL)
        return;
    add_descendants(tree, processes);
    closedir(processes);
}

void process_tree_find_adopted(unsigned long long since, struct process_tree *tree)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;

    if (processes == NULL)
        return;
    /* cppcheck-suppress readdirCalled ; of a stream of its own */
    while ((entry = readdir(processes)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct process_stat stat;

        if (pid > 0 && process_stat_read(pid, &stat) && stat.parent == getpid() && stat.start >= since)
            add(tree, pid, &stat);
    }
    add_descendants(tree, processes);
    closedir(processes);
}

void process_tree_signal(const struct process_tree *tree, int signal)
{
    for (size_t i = 0; i < tree->count; i++) {
        struct process_stat stat;

        if (process_stat_read(tree->processes[i].pid, &stat) && stat.start == tree->processes[i].start)
            kill(tree->processes[i].pid, signal);
    }
}

bool process_tree_lives(const struct process_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        struct process_stat stat;

        if (process_stat_read(tree->processes[i].pid, &stat) && stat.start == tree->processes[i].start &&
            !process_stat_is_over(&stat))
            return true;
    }
    return false;
}
