/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables: one of variables that name a job, one of variables that number its processes. The
 * order decides if several are set. For the job, schedulers come before launchers. For the rank,
 * the innermost comes first, since an outer one numbers the launcher and not its children.
 */
#include "meter/identity.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

enum { NUMBER_MAX = 1 << 30, HASH_DIGITS = 8, JOB_TEXT_MAX = 1024 };

struct job_row {
    const char *source;
    const char *variable;
    const char *prefix;
    const char *meaningless; /* a value that many jobs share, or NULL */
    const char *second;      /* a variable that must be set too and becomes part of the name, or NULL */
    bool launcher;
};

static const struct job_row job_rows[] = {
    {"Slurm", "SLURM_JOB_ID", "slurm-", NULL, NULL, false},
    {"PBS", "PBS_JOBID", "pbs-", NULL, NULL, false},
    {"LSF", "LSB_JOBID", "lsf-", NULL, NULL, false},
    {"Flux", "FLUX_JOB_ID", "flux-", NULL, NULL, false},
    {"Cray PALS", "PALS_APID", "pals-", NULL, NULL, false},
    {"AWS Batch", "AWS_BATCH_JOB_ID", "aws-", NULL, NULL, false},
    {"torchrun", "TORCHELASTIC_RUN_ID", "torchrun-", "none", NULL, true},
    /* The address where its processes meet; no two jobs use it at the same time. */
    {"PyTorch", "MASTER_ADDR", "pytorch-", NULL, "MASTER_PORT", true},
    {"PMIx", "PMIX_NAMESPACE", "pmix-", NULL, NULL, true},
    {"Open MPI", "OMPI_MCA_ess_base_jobid", "ompi-", NULL, NULL, true},
};

/* Variables with the numbers of a process; NULL if a launcher sets none. */
struct rank_row {
    const char *source;
    const char *needs; /* a variable without which the others have no meaning, or NULL */
    const char *rank, *world_size, *local_rank, *local_size;
};

static const struct rank_row rank_rows[] = {
    {"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", NULL, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH2", NULL, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"Cray PALS", NULL, "PALS_RANKID", NULL, "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    {"Flux", NULL, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", NULL},
    {"Hydra", NULL, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PMIx", NULL, "PMIX_RANK", NULL, NULL, NULL},
    /* A batch script has a process number too, but it is not a task; only steps have a number. */
    {"Slurm", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL},
    {"PyTorch", "WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
};

struct node_row {
    const char *rank, *count;
};

static const struct node_row node_rows[] = {
    {"SLURM_NODEID", "SLURM_STEP_NUM_NODES"},
    {"SLURM_NODEID", "SLURM_JOB_NUM_NODES"},
    {"GROUP_RANK", "GROUP_WORLD_SIZE"},
    {"PALS_NODEID", NULL},
};

/* Names of this machine that are the same in all containers on it. */
static const char *const node_names[] = {"SLURMD_NODENAME", "FLUX_NODE_NAME", "NODE_NAME"};

const char *identity_variable(const char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    }
    return NULL;
}

/* Like identity_variable, but an empty value counts as not set, and name may be NULL. */
static const char *value_of(const char *const *environment, const char *name)
{
    const char *value = name != NULL ? identity_variable(environment, name) : NULL;

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static int number_of(const char *const *environment, const char *name)
{
    const char *value = value_of(environment, name);
    uint64_t number;

    return value != NULL && number_parse_u64(value, NUMBER_MAX, &number) ? (int)number : -1;
}

static uint32_t hash_of(const char *text)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT32_C(16777619);
    return hash;
}

const char identity_alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@:+-";

char *identity_name(const char *prefix, const char *text, char name[IDENTITY_TEXT_MAX])
{
    enum { KEPT = IDENTITY_TEXT_MAX - HASH_DIGITS - 2 };
    size_t length = (size_t)snprintf(name, KEPT, "%s", prefix);
    const char *from = text;

    for (; *from != '\0' && length < KEPT; from++)
        name[length++] = *from;
    name[length] = '\0';
    for (char *at = name + strspn(name, identity_alphabet); *at != '\0'; at += strspn(at, identity_alphabet))
        *at = '_';
    if (*from != '\0' || text[strspn(text, identity_alphabet)] != '\0')
        snprintf(name + length, IDENTITY_TEXT_MAX - length, "-%08x", (unsigned)hash_of(text));
    return name;
}

static void find_job(const char *const *environment, struct identity *identity)
{
    for (size_t i = 0; i < sizeof job_rows / sizeof job_rows[0]; i++) {
        const struct job_row *row = &job_rows[i];
        const char *value = value_of(environment, row->variable);
        char text[JOB_TEXT_MAX];

        if (value == NULL || (row->meaningless != NULL && strcmp(value, row->meaningless) == 0))
            continue;
        if (row->second == NULL)
            snprintf(text, sizeof text, "%s", value);
        else if (value_of(environment, row->second) != NULL)
            snprintf(text, sizeof text, "%s:%s", value, value_of(environment, row->second));
        else
            continue;
        identity_name(row->prefix, text, identity->job);
        identity->job_source = row->source;
        identity->job_of_launcher = row->launcher;
        return;
    }
}

static void fill(int *known, int number)
{
    if (*known < 0)
        *known = number;
}

/*
 * The first launcher that states a rank is believed; others that state the same rank add what it
 * leaves out.
 */
static void find_rank(const char *const *environment, struct identity *identity)
{
    for (size_t i = 0; i < sizeof rank_rows / sizeof rank_rows[0]; i++) {
        const struct rank_row *row = &rank_rows[i];
        int rank = number_of(environment, row->rank);

        if (rank < 0 || (row->needs != NULL && value_of(environment, row->needs) == NULL))
            continue;
        if (identity->rank_source == NULL) {
            identity->rank_source = row->source;
            identity->rank = rank;
        }
        if (rank != identity->rank)
            continue;
        fill(&identity->world_size, number_of(environment, row->world_size));
        fill(&identity->local_rank, number_of(environment, row->local_rank));
        fill(&identity->local_size, number_of(environment, row->local_size));
    }
}

static void find_node(const char *const *environment, const char *host, struct identity *identity)
{
    const char *name = NULL;

    for (size_t i = 0; name == NULL && i < sizeof node_names / sizeof node_names[0]; i++)
        name = value_of(environment, node_names[i]);
    identity_name("", name != NULL ? name : host, identity->node);
    for (size_t i = 0; i < sizeof node_rows / sizeof node_rows[0]; i++) {
        fill(&identity->node_rank, number_of(environment, node_rows[i].rank));
        fill(&identity->node_count, number_of(environment, node_rows[i].count));
    }
}

void identity_find(const char *const *environment, const char *host, struct identity *out_identity)
{
    const char *step = value_of(environment, "SLURM_STEP_ID");

    *out_identity = (struct identity){
        .rank = -1, .world_size = -1, .local_rank = -1, .local_size = -1, .node_rank = -1, .node_count = -1};
    find_job(environment, out_identity);
    find_rank(environment, out_identity);
    find_node(environment, host, out_identity);
    if (step != NULL)
        identity_name("", step, out_identity->step);
}
