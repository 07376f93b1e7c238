/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>

#include "base/process_stat.h"

enum { ROUNDS_MAX = 64 };

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
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct process_stat stat;

        if (pid > 0 && process_stat_read(pid, &stat) && has(tree, stat.parent))
            add(tree, pid, stat.start);
    }
    return tree->count > before;
}

void process_tree_find(pid_t root, struct process_tree *tree)
{
    DIR *processes = opendir("/proc");
    struct process_stat stat;

    if (process_stat_read(root, &stat))
        add(tree, root, stat.start);
    for (int i = 0; processes != NULL && i < ROUNDS_MAX && add_children(tree, processes); i++) {
    }
    if (processes != NULL)
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
