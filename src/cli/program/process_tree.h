/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_PROCESS_TREE_H
#define FLYBALL_CLI_PROGRAM_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * A process with all that it started, as far as those are its descendants now: what has
 * to end when a program does. Guards (knob/guard.h) are never among them: they end by themselves when they
 * have put back.
 *
 *     struct process_tree tree;
 *
 *     process_tree_find(pid, &tree);
 *     process_tree_signal(&tree, SIGTERM);
 *     ...
 *     process_tree_signal(&tree, SIGKILL);       whoever of them is still there
 */
enum { PROCESS_TREE_MAX = 4096 };

struct process_tree {
    size_t count;
    struct {
        pid_t pid;
        unsigned long long start; /* of the process, so that its number is not taken for another's */
    } processes[PROCESS_TREE_MAX];
};

/* Adds those that are not in it yet, the first one first; `tree` is empty or of an earlier look. */
void process_tree_find(pid_t root, struct process_tree *tree);

/*
 * The same for children of this process that began at `since` or later (process_stat.h), those that it
 * inherited as a subreaper among them.
 */
void process_tree_find_adopted(unsigned long long since, struct process_tree *tree);

void process_tree_signal(const struct process_tree *tree, int signal);
/* Whether one of them is still there; one that has ended and waits for its parent is not. */
bool process_tree_lives(const struct process_tree *tree);

#endif
