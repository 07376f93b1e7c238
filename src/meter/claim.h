/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_CLAIM_H
#define FLYBALL_METER_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "device/device.h"
#include "meter/identity.h"

/*
 * Decides which process counts a device for a job on a node. Each device counts once, however
 * many ranks and nested wrappers of the job measure it.
 *
 *     struct claim_options options = {...};
 *     static struct claims claims;
 *
 *     claims_take(&options, &list, &claims);
 *     if (claims.devices[i].counted)
 *         total_j += energy_j;
 *     claims_release(&claims);
 *
 * Each process that measures a device tries to take a lock in a directory of the user on this
 * node, with one file for each job and device. The lock is held while the window is open and ends
 * with the process, also after kill -9. A process that finds the lock taken still measures, and
 * says which process counts the device. If the directory is not shared (inside a container), a
 * nested wrapper learns the same from the variable FLYBALL_COUNTED_BY, which claims_variable
 * writes for the program that is run. The next process that takes claims removes the files of
 * runs that were killed (claim_sweep.h).
 *
 * Nothing here fails: a device that could not be claimed is counted, and `fault` says what that
 * means for the sum. Processes forked while claims are held keep them held. Not thread-safe.
 */
enum { CLAIM_BY_MAX = 160, CLAIM_PATH_MAX = 512, CLAIM_VARIABLE_MAX = 1 << 14 };

#define CLAIM_VARIABLE "FLYBALL_COUNTED_BY"

struct claim_options {
    const struct identity *identity;
    const char *inherited;         /* the value of CLAIM_VARIABLE, or NULL */
    const char *runtime_directory; /* XDG_RUNTIME_DIR, or NULL */
    const char *fallback;          /* where the directory is made without one: "/tmp" */
    const char *last; /* a directory of the user's own, for this node; if somebody else has the name there */
    uid_t uid;
    pid_t pid;
    double start_unix_s; /* begin of this process's window; with the pid it names a job that has no name */
};

struct claim {
    bool counted;          /* by this process; else by the one in `by` */
    char by[CLAIM_BY_MAX]; /* "process 4711 on node n17, rank 0" */
    char path[CLAIM_PATH_MAX];
    int lock; /* file descriptor of the lock that is held, or -1 */
};

struct claims {
    char job[IDENTITY_TEXT_MAX];  /* from the scheduler, or the wrapper around this process, or made up */
    char node[IDENTITY_TEXT_MAX]; /* of the identity */
    char self[CLAIM_BY_MAX];      /* how other processes name this one */
    char directory[CLAIM_PATH_MAX];
    char directory_id[64];      /* distinguishes it from a directory of the same name elsewhere */
    char fault[CLAIM_PATH_MAX]; /* a clause: why a device may be counted twice; "" if it cannot */
    const char *inherited;      /* borrowed, or NULL: what the variable says is counted for this process */
    size_t count;
    struct claim devices[DEVICES_MAX]; /* in the order of the list */
};

void claims_take(const struct claim_options *options, const struct device_list *list,
                 struct claims *out_claims);
void claims_release(struct claims *claims);

/*
 * Writes the value of CLAIM_VARIABLE for a program run inside, including what the variable
 * already said. Returns `value`, "" if it would be too long.
 *
 *     job;node;by;directory;GPU.GPU-8f3a,CPU.cpu-0|...
 */
char *claims_variable(const struct claims *claims, const struct device_list *list,
                      char value[CLAIM_VARIABLE_MAX]);

/*
 * One entry of that variable, for the reader and its tests. The function takes the next entry off
 * `*rest`, which becomes NULL after the last. Returns false for a malformed entry. The parts are
 * borrowed from the text, each with its length.
 */
struct claim_entry {
    const char *job, *node, *by, *directory, *devices;
    int job_length, node_length, by_length, directory_length, devices_length;
};
bool claim_entry_next(const char **rest, struct claim_entry *out_entry);

#endif
