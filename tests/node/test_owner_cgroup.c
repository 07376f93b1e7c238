/* SPDX-License-Identifier: Apache-2.0 */
/* Whose control group it is: the forms that Slurm, kubelets and container runtimes give its path. */
#include "test.h"

#include <stdio.h>

#include "node/owner/owner_cgroup.h"

#define A "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define POD "72f7f152-440c-66ac-9084-e0fc1d8a910c"
#define POD_ "72f7f152_440c_66ac_9084_e0fc1d8a910c"
#define POD2_ "fd41c180_5ddf_4baa_94f8_68d01c999136"
#define POD2 "fd41c180-5ddf-4baa-94f8-68d01c999136"
#define STATIC "3d9b7f5c1e2a4b6c8d0e1f2a3b4c5d6e"
#define DOCKER_SCOPE "/system.slice/docker-" A ".scope"
#define LONG_SEGMENT                                                                                         \
    "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaaa"
#define LONG_PATH LONG_SEGMENT LONG_SEGMENT LONG_SEGMENT LONG_SEGMENT LONG_SEGMENT LONG_SEGMENT

/* What a text is expected to say; NULL: "". `cgroup` NULL: the path of the only line; "?": not visible. */
static const struct sighting {
    const char *what, *text, *runtime, *id, *pod, *job, *step;
    bool claimed;
    const char *cgroup;
} sightings[] = {
    {.what = "none", .text = "0::/\n", .runtime = "none"},
    {.what = "a kernel thread on v1",
     .text = "9:name=systemd:/\n1:cpu:/\n0::/\n",
     .runtime = "none",
     .cgroup = "/"},
    {.what = "a login", .text = "0::/user.slice/user-1000.slice/session-3.scope\n", .runtime = "systemd"},
    {.what = "a service", .text = "0::/system.slice/ollama.service\n", .runtime = "systemd"},
    {.what = "a user's service",
     .text = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service\n",
     .runtime = "systemd"},
    {.what = "Slurm v1",
     .text = "10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n",
     .runtime = "slurm",
     .job = "280678",
     .step = "interactive"},
    {.what = "Slurm v1, batch",
     .text = "4:memory:/slurm/uid_1001/job_1/step_batch/task_0\n",
     .runtime = "slurm",
     .job = "1",
     .step = "batch"},
    {.what = "Slurm v1, several slurmd",
     .text = "4:memory:/slurm_node17/uid_0/job_991/step_3/task_12\n",
     .runtime = "slurm",
     .job = "991",
     .step = "3"},
    {.what = "Slurm v1, extern, named by a number",
     .text = "4:freezer:/slurm/uid_7/job_5/step_4294967295\n",
     .runtime = "slurm",
     .job = "5",
     .step = "4294967295"},
    {.what = "Slurm v1, some hierarchies",
     .text = "11:cpuset:/slurm/uid_1001/job_77/step_0/task_1\n10:freezer:/slurm/uid_1001/job_77/step_0\n"
             "5:pids:/system.slice/slurmd.service\n1:name=systemd:/system.slice/slurmd.service\n",
     .runtime = "slurm",
     .job = "77",
     .step = "0",
     .cgroup = "/slurm/uid_1001/job_77/step_0/task_1"},
    {.what = "Slurm v1, the job's own",
     .text = "3:cpuset:/slurm/uid_1001/job_77\n",
     .runtime = "slurm",
     .job = "77"},
    {.what = "Slurm v2",
     .text = "0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n",
     .runtime = "slurm",
     .job = "1392969",
     .step = "0"},
    {.what = "Slurm v2, batch",
     .text = "0::/system.slice/slurmstepd.scope/job_4/step_batch/user/task_special\n",
     .runtime = "slurm",
     .job = "4",
     .step = "batch"},
    {.what = "Slurm v2, extern",
     .text = "0::/system.slice/slurmstepd.scope/job_42/step_extern/user\n",
     .runtime = "slurm",
     .job = "42",
     .step = "extern"},
    {.what = "Slurm v2, several slurmd",
     .text = "0::/system.slice/gpu01_slurmstepd.scope/job_8/step_1/user/task_3\n",
     .runtime = "slurm",
     .job = "8",
     .step = "1"},
    {.what = "Slurm v2, its own process",
     .text = "0::/system.slice/slurmstepd.scope/system\n",
     .runtime = "systemd"},
    {.what = "Slurm's daemon", .text = "0::/system.slice/slurmd.service\n", .runtime = "systemd"},
    {.what = "no job's number",
     .text = "0::/system.slice/slurmstepd.scope/job_abc/step_0\n",
     .runtime = "systemd"},
    {.what = "a user's own 'Slurm'",
     .text = "0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_1/step_0\n",
     .runtime = "systemd"},
    {.what = "a user's own 'pod'",
     .text = "0::/user.slice/user-1000.slice/user@1000.service/kubepods/burstable/pod" POD "/" A "\n",
     .runtime = "container",
     .id = A},
    {.what = "docker, v2 and systemd", .text = "0::" DOCKER_SCOPE "\n", .runtime = "docker", .id = A},
    {.what = "docker, v1",
     .text = "12:perf_event:/docker/" A "\n11:memory:/docker/" A "\n1:name=systemd:/docker/" A
             "\n0::/system.slice/docker.service\n",
     .runtime = "docker",
     .id = A,
     .cgroup = "/docker/" A},
    {.what = "docker, hybrid",
     .text = "1:name=systemd:" DOCKER_SCOPE "\n0::" DOCKER_SCOPE "\n",
     .runtime = "docker",
     .id = A,
     .cgroup = DOCKER_SCOPE},
    {.what = "docker, long ago", .text = "10:net_prio:/" A "\n", .runtime = "container", .id = A},
    {.what = "docker, rootless",
     .text = "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope\n",
     .runtime = "docker",
     .id = A},
    {.what = "docker, another parent", .text = "0::/actions_job/" A "\n", .runtime = "container", .id = A},
    {.what = "docker within docker", .text = "0::/docker/" A "/docker/" B "\n", .runtime = "docker", .id = B},
    {.what = "docker, an init inside",
     .text = "0::" DOCKER_SCOPE "/init.scope\n",
     .runtime = "docker",
     .id = A},
    {.what = "docker's daemon", .text = "0::/system.slice/docker.service\n", .runtime = "systemd"},
    {.what = "docker, removed meanwhile",
     .text = "0::" DOCKER_SCOPE " (deleted)\n",
     .runtime = "docker",
     .id = A,
     .cgroup = DOCKER_SCOPE},
    {.what = "an id that is too short",
     .text = "0::/system.slice/docker-0a1b2c3d.scope\n",
     .runtime = "systemd"},
    {.what = "an id in capitals",
     .text = "0::/docker/0A1B2C3D4E5F60718293A4B5C6D7E8F90A1B2C3D4E5F60718293A4B5C6D7E8F9\n",
     .runtime = "none"},
    {.what = "podman",
     .text = "0::/machine.slice/libpod-" A ".scope/container\n",
     .runtime = "podman",
     .id = A},
    {.what = "podman, rootless",
     .text = "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope/container\n",
     .runtime = "podman",
     .id = A},
    {.what = "podman's monitor",
     .text = "0::/machine.slice/libpod-conmon-" A ".scope\n",
     .runtime = "systemd"},
    {.what = "podman by plain groups",
     .text = "0::/libpod_parent/libpod-" A "\n",
     .runtime = "podman",
     .id = A},
    {.what = "podman in a service",
     .text = "0::/system.slice/kepler.service/libpod-payload-" A "\n",
     .runtime = "podman",
     .id = A},
    {.what = "its monitor", .text = "0::/system.slice/kepler.service/runtime\n", .runtime = "systemd"},
    {.what = "podman's pod",
     .text = "0::/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope\n",
     .runtime = "podman",
     .id = A},
    {.what = "nerdctl", .text = "0::/system.slice/nerdctl-" A ".scope\n", .runtime = "containerd", .id = A},
    {.what = "nerdctl by plain groups", .text = "0::/default/" A "\n", .runtime = "containerd", .id = A},
    {.what = "kubelet, systemd, containerd",
     .text = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
             ".slice/cri-containerd-" A ".scope\n",
     .runtime = "containerd",
     .id = A,
     .pod = POD},
    {.what = "kubelet, guaranteed",
     .text = "0::/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" A ".scope\n",
     .runtime = "containerd",
     .id = A,
     .pod = POD},
    {.what = "kubelet, CRI-O",
     .text = "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice/crio-" A
             ".scope\n",
     .runtime = "crio",
     .id = A,
     .pod = POD},
    {.what = "CRI-O, a group within",
     .text = "0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" A ".scope/container\n",
     .runtime = "crio",
     .id = A,
     .pod = POD},
    {.what = "CRI-O's monitor",
     .text = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/crio-conmon-" A
             ".scope\n",
     .runtime = "kubernetes",
     .pod = POD},
    {.what = "kubelet, docker",
     .text = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/docker-" A
             ".scope\n",
     .runtime = "docker",
     .id = A,
     .pod = POD},
    {.what = "kubelet by plain groups",
     .text = "4:memory:/kubepods/burstable/pod" POD "/" A "\n",
     .runtime = "kubernetes",
     .id = A,
     .pod = POD},
    {.what = "kubelet by plain groups, guaranteed",
     .text = "4:memory:/kubepods/pod" POD "/" A "\n",
     .runtime = "kubernetes",
     .id = A,
     .pod = POD},
    {.what = "CRI-O by plain groups",
     .text = "0::/kubepods/besteffort/pod" POD "/crio-" A "\n",
     .runtime = "crio",
     .id = A,
     .pod = POD},
    {.what = "a static pod",
     .text = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC
             ".slice/cri-containerd-" A ".scope\n",
     .runtime = "containerd",
     .id = A,
     .pod = STATIC},
    {.what = "a static pod by plain groups",
     .text = "0::/kubepods/burstable/pod" STATIC "/" A "\n",
     .runtime = "kubernetes",
     .id = A,
     .pod = STATIC},
    {.what = "a slice as a plain group",
     .text = "9:cpuset:/kubepods-besteffort-pod" POD_ ".slice:cri-containerd:" A "\n",
     .runtime = "containerd",
     .id = A,
     .pod = POD},
    {.what = "the same in containerd's service",
     .text = "11:devices:/system.slice/containerd.service/kubepods-pod" POD_ ".slice:cri-containerd:" A "\n",
     .runtime = "containerd",
     .id = A,
     .pod = POD},
    {.what = "a cgroup root of its own",
     .text = "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
             "kubelet-kubepods-besteffort-pod" POD_ ".slice/cri-containerd-" A ".scope\n",
     .runtime = "containerd",
     .id = A,
     .pod = POD},
    {.what = "kind: a kubelet within docker",
     .text = "0::/docker/" B "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_
             ".slice/cri-containerd-" A ".scope\n",
     .runtime = "containerd",
     .id = A,
     .pod = POD},
    {.what = "a kubelet within a pod",
     .text = "0::/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" A
             ".scope/kubelet/kubepods/burstable/pod" POD2 "/" B "\n",
     .runtime = "kubernetes",
     .id = B,
     .pod = POD},
    {.what = "docker within a pod",
     .text = "0::/kubepods/burstable/pod" POD "/" A "/docker/" B "\n",
     .runtime = "docker",
     .id = B,
     .pod = POD},
    {.what = "no pod's uid",
     .text = "0::/kubepods.slice/kubepods-pod123.slice/cri-containerd-" A ".scope\n",
     .runtime = "containerd",
     .id = A},
    {.what = "docker within Slurm",
     .text = "0::/system.slice/slurmstepd.scope/job_9/step_0/user/task_0/docker/" A "\n",
     .runtime = "docker",
     .id = A,
     .job = "9",
     .step = "0"},
    {.what = "Slurm within docker",
     .text = "0::/docker/" A "/system.slice/slurmstepd.scope/job_9/step_0/user/task_0\n",
     .runtime = "docker",
     .id = A,
     .job = "9",
     .step = "0",
     .claimed = true},
    {.what = "Slurm v1 and docker in different hierarchies",
     .text = "4:memory:/docker/" A "\n3:cpuset:/slurm/uid_5/job_66/step_1/task_0\n",
     .runtime = "docker",
     .id = A,
     .job = "66",
     .step = "1",
     .cgroup = "/docker/" A},
    {.what = "outside the cgroup namespace",
     .text = "0::/../../kubepods-pod" POD_ ".slice/cri-containerd-" A ".scope\n",
     .runtime = "none",
     .cgroup = "?"},
    {.what = "just outside", .text = "0::/..\n", .runtime = "none", .cgroup = "?"},
    {.what = "partly outside",
     .text = "4:memory:/../" A "\n0::" DOCKER_SCOPE "\n",
     .runtime = "docker",
     .id = A,
     .cgroup = DOCKER_SCOPE},
    {.what = "a name that only begins so", .text = "0::/..hidden\n", .runtime = "none"},
    {.what = "nothing", .text = "", .runtime = "none", .cgroup = "?"},
    {.what = "no lines of groups",
     .text = "hello\n\n0::\n:::\n0:relative\n",
     .runtime = "none",
     .cgroup = "?"},
    {.what = "without an end of line",
     .text = "0::" DOCKER_SCOPE,
     .runtime = "docker",
     .id = A,
     .cgroup = DOCKER_SCOPE},
    {.what = "letters that a terminal obeys",
     .text = "0::/a\033[2Jb\n",
     .runtime = "none",
     .cgroup = "/a?[2Jb"},
};

static bool same(const char *found, const char *expected)
{
    return strcmp(found, expected != NULL ? expected : "") == 0;
}

/* The path of a text of one line. */
static const char *only_path(const struct sighting *sighting, char out_path[OWNER_PATH_MAX])
{
    const char *path = strchr(strchr(sighting->text, ':') + 1, ':') + 1;

    snprintf(out_path, OWNER_PATH_MAX, "%.*s", (int)strcspn(path, "\n"), path);
    return out_path;
}

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sightings); i++) {
        const struct sighting *expected = &sightings[i];
        struct owner owner = {.pid = 1};
        char path[OWNER_PATH_MAX];
        bool visible = expected->cgroup == NULL || strcmp(expected->cgroup, "?") != 0;
        const char *cgroup = expected->cgroup != NULL ? expected->cgroup : only_path(expected, path);

        owner_cgroup_read(expected->text, &owner);
        if (!same(owner_runtime_word(owner.runtime), expected->runtime) ||
            !same(owner.container_id, expected->id) || !same(owner.pod_uid, expected->pod) ||
            !same(owner.slurm_job, expected->job) || !same(owner.slurm_step, expected->step) ||
            owner.slurm_claimed != expected->claimed || owner.cgroup_known != visible ||
            !same(owner.cgroup, visible ? cgroup : ""))
            fail_msg("%s: %s, container '%s', pod '%s', job '%s'%s, step '%s', known %d, group '%s'",
                     expected->what, owner_runtime_word(owner.runtime), owner.container_id, owner.pod_uid,
                     owner.slurm_job, owner.slurm_claimed ? " (claimed)" : "", owner.slurm_step,
                     owner.cgroup_known, owner.cgroup);
    }
}

/* The name of a pod's container is found by the container that the kubelet made. */
static void test_container_of_pod(void **state)
{
    static const struct {
        const char *text, *id;
    } cases[] = {
        {"0::/kubepods/burstable/pod" POD "/" A "\n", A},
        {"0::/kubepods/burstable/pod" POD "/" A "/docker/" B "\n", A},
        {"0::/docker/" B "/kubelet/kubepods/pod" POD "/" A "\n", A},
        {"0::/kubepods/burstable/pod" POD "\n", ""},
        {"0::/docker/" B "\n", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct owner owner = {.pid = 1};

        owner_cgroup_read(cases[i].text, &owner);
        assert_string_equal(owner.pod_container_id, cases[i].id);
    }
}

static void test_long_paths(void **state)
{
    struct owner owner = {.pid = 1}, other = {.pid = 1};
    static const char begin[] = {'0', ':', ':', '/'};
    static char text[2 * OWNER_PATH_MAX];

    (void)state;
    owner_cgroup_read("0::" LONG_PATH DOCKER_SCOPE "\n", &owner);
    assert_string_equal(owner.container_id, A);
    assert_int_equal(strlen(owner.cgroup), OWNER_CGROUP_MAX - 1);
    assert_memory_equal(owner.cgroup, "...aaa", 6);
    check_contains(owner.cgroup, DOCKER_SCOPE);
    /* A line that is too long is nobody's, and the next one counts. */
    memset(text, 'a', sizeof text);
    memcpy(text, begin, sizeof begin);
    snprintf(text + OWNER_PATH_MAX + 10, 200, "\n0::" DOCKER_SCOPE "\n");
    owner_cgroup_read(text, &other);
    assert_string_equal(other.cgroup, DOCKER_SCOPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_container_of_pod),
        cmocka_unit_test(test_long_paths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
