/* SPDX-License-Identifier: Apache-2.0 */
/* Who am I: the variables of every launcher and scheduler, alone, within each other, and broken. */
#include "meter/identity.h"

#include "test.h"

struct identity_case {
    const char *name;
    const char *environment[14];
    const char *job;
    const char *rank_source;
    int rank, world_size, local_rank, local_size, node_rank, node_count;
    const char *node;
};

#define SLURM_BATCH \
    "SLURM_JOB_ID=4711", "SLURMD_NODENAME=n17", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NODEID=0"
#define SLURM_STEP                                                                                     \
    "SLURM_JOB_ID=4711", "SLURMD_NODENAME=n17", "SLURM_PROCID=5", "SLURM_LOCALID=1", "SLURM_NODEID=1", \
        "SLURM_STEP_ID=2", "SLURM_STEP_NUM_TASKS=8", "SLURM_STEP_NUM_NODES=2", "SLURM_JOB_NUM_NODES=4"

static const struct identity_case cases[] = {
    {"nothing", {NULL}, "", NULL, -1, -1, -1, -1, -1, -1, "host"},
    {"Slurm step", {SLURM_STEP, NULL}, "slurm-4711", "Slurm", 5, 8, 1, -1, 1, 2, "n17"},
    {"Slurm batch script", {SLURM_BATCH, NULL}, "slurm-4711", NULL, -1, -1, -1, -1, 0, -1, "n17"},
    {"torchrun in a Slurm step",
     {SLURM_STEP, "TORCHELASTIC_RUN_ID=abc", "RANK=3", "WORLD_SIZE=16", "LOCAL_RANK=3", NULL},
     "slurm-4711",
     "torchrun",
     3,
     16,
     3,
     -1,
     1,
     2,
     "n17"},
    {"torchrun",
     {"TORCHELASTIC_RUN_ID=abc", "RANK=3", "WORLD_SIZE=16", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
      "GROUP_RANK=1", "GROUP_WORLD_SIZE=8", NULL},
     "torchrun-abc",
     "torchrun",
     3,
     16,
     1,
     2,
     1,
     8,
     "host"},
    {"torchrun without a run's name",
     {"TORCHELASTIC_RUN_ID=none", "RANK=0", "WORLD_SIZE=1", NULL},
     "",
     "torchrun",
     0,
     1,
     -1,
     -1,
     -1,
     -1,
     "host"},
    {"ranks that meet at an address",
     {"TORCHELASTIC_RUN_ID=none", "MASTER_ADDR=n1", "MASTER_PORT=29500", "RANK=1", "WORLD_SIZE=2", NULL},
     "pytorch-n1:29500",
     "torchrun",
     1,
     2,
     -1,
     -1,
     -1,
     -1,
     "host"},
    {"half an address", {"MASTER_ADDR=n1", NULL}, "", NULL, -1, -1, -1, -1, -1, -1, "host"},
    {"Open MPI",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
      "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1733361665", "PMIX_RANK=1", NULL},
     "pmix-1733361665",
     "Open MPI",
     1,
     4,
     1,
     2,
     -1,
     -1,
     "host"},
    {"Hydra",
     {"PMI_RANK=6", "PMI_SIZE=8", "MPI_LOCALRANKID=2", "MPI_LOCALNRANKS=4", NULL},
     "",
     "Hydra",
     6,
     8,
     2,
     4,
     -1,
     -1,
     "host"},
    {"PMI and PMIx in a Slurm step",
     {SLURM_STEP, "PMI_RANK=5", "PMIX_RANK=5", NULL},
     "slurm-4711",
     "Hydra",
     5,
     8,
     1,
     -1,
     1,
     2,
     "n17"},
    {"MVAPICH2",
     {"MV2_COMM_WORLD_RANK=6", "MV2_COMM_WORLD_SIZE=8", "MV2_COMM_WORLD_LOCAL_RANK=2",
      "MV2_COMM_WORLD_LOCAL_SIZE=4", NULL},
     "",
     "MVAPICH2",
     6,
     8,
     2,
     4,
     -1,
     -1,
     "host"},
    {"PALS",
     {"PALS_APID=a-b", "PALS_RANKID=2", "PALS_LOCAL_RANKID=0", "PALS_NODEID=1", NULL},
     "pals-a-b",
     "Cray PALS",
     2,
     -1,
     0,
     -1,
     1,
     -1,
     "host"},
    {"Flux",
     {"FLUX_JOB_ID=f2", "FLUX_TASK_RANK=1", "FLUX_JOB_SIZE=2", "FLUX_TASK_LOCAL_ID=1", NULL},
     "flux-f2",
     "Flux",
     1,
     2,
     1,
     -1,
     -1,
     -1,
     "host"},
    {"PMIx alone", {"PMIX_RANK=1", NULL}, "", "PMIx", 1, -1, -1, -1, -1, -1, "host"},
    {"a launcher that sets PyTorch's variables",
     {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", NULL},
     "",
     "PyTorch",
     1,
     2,
     1,
     -1,
     -1,
     -1,
     "host"},
    {"a rank that means something else", {"RANK=1", NULL}, "", NULL, -1, -1, -1, -1, -1, -1, "host"},
    {"PBS", {"PBS_JOBID=12[3].server", NULL}, "pbs-12_3_.server-", NULL, -1, -1, -1, -1, -1, -1, "host"},
    {"LSF", {"LSB_JOBID=9", "NODE_NAME=k8s-node", NULL}, "lsf-9", NULL, -1, -1, -1, -1, -1, -1, "k8s-node"},
    {"broken numbers",
     {"SLURM_JOB_ID=", "SLURM_STEP_ID=0", "SLURM_PROCID=-1", "OMPI_COMM_WORLD_RANK=two",
      "PMI_RANK=99999999999", "SLURM_NODEID=1x", NULL},
     "",
     NULL,
     -1,
     -1,
     -1,
     -1,
     -1,
     -1,
     "host"},
    {"a broken size does not hide the rank",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=", "OMPI_COMM_WORLD_LOCAL_RANK= 1", NULL},
     "",
     "Open MPI",
     1,
     -1,
     -1,
     -1,
     -1,
     -1,
     "host"},
};

static void check_text(const char *name, const char *what, const char *found, const char *expected)
{
    if ((found == NULL) != (expected == NULL) || (found != NULL && strcmp(found, expected) != 0))
        fail_msg("%s: %s is '%s', expected '%s'", name, what, found, expected);
}

static void check_number(const char *name, const char *what, int found, int expected)
{
    if (found != expected)
        fail_msg("%s: %s is %d, expected %d", name, what, found, expected);
}

static void test_launchers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct identity_case *at = &cases[i];
        struct identity found;

        identity_find(at->environment, "host", &found);
        if (at->job[0] != '\0' &&
            at->job[strlen(at->job) - 1] == '-') /* with a number that is not stated here */
            found.job[strlen(at->job)] = '\0';
        check_text(at->name, "job", found.job, at->job);
        check_text(at->name, "rank source", found.rank_source, at->rank_source);
        check_text(at->name, "node", found.node, at->node);
        check_number(at->name, "rank", found.rank, at->rank);
        check_number(at->name, "world size", found.world_size, at->world_size);
        check_number(at->name, "local rank", found.local_rank, at->local_rank);
        check_number(at->name, "local size", found.local_size, at->local_size);
        check_number(at->name, "node rank", found.node_rank, at->node_rank);
        check_number(at->name, "node count", found.node_count, at->node_count);
        assert_int_equal(found.job_source == NULL, found.job[0] == '\0');
    }
}

/* Names stay apart when they are changed to fit a file's name. */
static void test_names(void **state)
{
    char one[IDENTITY_TEXT_MAX];
    char other[IDENTITY_TEXT_MAX];
    char text[4 * IDENTITY_TEXT_MAX];

    (void)state;
    assert_string_equal(identity_name("p-", "a.b:c@d+e-F9", one), "p-a.b:c@d+e-F9");
    assert_string_not_equal(identity_name("", "a/b", one), identity_name("", "a b", other));
    assert_null(strchr(one, '/'));
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    identity_name("job-", text, one);
    text[sizeof text - 2] = 'y';
    identity_name("job-", text, other);
    assert_int_equal(strlen(one), strlen(other));
    assert_true(strlen(one) < IDENTITY_TEXT_MAX);
    assert_string_not_equal(one, other);
    assert_string_equal(identity_name("", "", one), "");
    identity_find(NULL, "host", &(struct identity){.rank = 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
