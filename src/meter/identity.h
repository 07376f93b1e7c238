/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_IDENTITY_H
#define FLYBALL_METER_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds which job this process belongs to, and which of the job's ranks it is, from the variables
 * that schedulers and launchers set.
 *
 *     struct identity identity;
 *     char host[256];
 *
 *     gethostname(host, sizeof host);
 *     identity_find((const char *const *)environ, host, &identity);
 *     if (identity.rank >= 0)
 *         printf("rank %d of %d, says %s\n", identity.rank, identity.world_size, identity.rank_source);
 *
 * A pure function of the variables. The innermost launcher knows the rank (torchrun inside
 * Slurm), the outermost scheduler knows the job. A variable with a value that its launcher would
 * never set counts as not set.
 */
enum { IDENTITY_TEXT_MAX = 96 };

struct identity {
    char job[IDENTITY_TEXT_MAX]; /* "slurm-4711"; letters, digits and ._@:+- only; "": unknown */
    const char *job_source;      /* "Slurm"; NULL: unknown */
    bool job_of_launcher; /* not from a scheduler: a wrapper around the launcher knows the job better */
    char step[IDENTITY_TEXT_MAX]; /* of the job, "0"; "": none */
    char node[IDENTITY_TEXT_MAX]; /* the scheduler's name for this machine, else the host's name */
    const char *rank_source;      /* "torchrun"; NULL: unknown */
    int rank, world_size;         /* among all processes of the job or step; -1: unknown, also below */
    int local_rank, local_size;   /* among the processes on this node */
    int node_rank, node_count;
};

/*
 * Fills in the identity. `environment` holds "NAME=value" and ends with NULL, or is NULL; `host`
 * is borrowed for the call.
 */
void identity_find(const char *const *environment, const char *host, struct identity *out_identity);

/* Returns the value of a variable, or NULL. */
const char *identity_variable(const char *const *environment, const char *name);

/*
 * Appends `text` to a job's or node's name. Characters that are not allowed become '_'. A text
 * that had to be changed or cut gets a number at its end, so that it stays distinct from others.
 * Returns `name`.
 */
char *identity_name(const char *prefix, const char *text, char name[IDENTITY_TEXT_MAX]);

/* The characters allowed in such names. */
extern const char identity_alphabet[];

#endif
