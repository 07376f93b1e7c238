/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_PROCESS_TREE_H
#define FLYBALL_CLI_PROGRAM_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * A process and all processes that it started, as far as they are its descendants now: these must
 * end when a program ends. Guards (knob/guard.h) are never included: they end by themselves after
 * they have restored the settings.
 *
 *     struct process_tree tree;
 *
 *     process_tree_find(pid, &tree);
 *     process_tree_signal(&tree, SIGTERM);
 *     ...
 *     process_tree_signal(&tree, SIGKILL);       those that are still there
 */
enum { PROCESS_TREE_MAX = 4096 };

struct process_tree {
    size_t count;
    struct {
        pid_t pid;
        unsigned long long
            start; /* start time of the process, so that a reused number is not mistaken for it */
    } processes[PROCESS_TREE_MAX];
};

/*
 * Adds the processes that are not in the tree yet, the root first. `tree` is empty or comes from
 * an earlier call.
 */
void process_tree_find(pid_t root, struct process_tree *tree);

/*
 * Does the same for children of this process that began at `since` or later (process_stat.h),
 * including those that it inherited as a subreaper.
 */
void process_tree_find_adopted(unsigned long long since, struct process_tree *tree);

void process_tree_signal(const struct process_tree *tree, int signal);
/* Returns whether one of them still exists; one that has ended and waits for its parent does not count. */
bool process_tree_lives(const struct process_tree *tree);

#endif
