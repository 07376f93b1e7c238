/* SPDX-License-Identifier: Apache-2.0 */
/* Which ailments follow from which facts, and that the table is complete. */
#include "cli/machine/doctor.h"

#include <stdio.h>

#include "base/words.h"
#include "test.h"

struct doctor_case {
    const char *name;
    struct doctor_facts facts;
    const char *pieces[4]; /* of the findings or remedies that hold */
    const char *never[3];  /* of those that must not */
};

/* A machine on which all is well; the first without memory's figures. */
#define WELL_BUT_MEMORY                                                                                     \
    .machine.nvidia_on_bus = true, .machine.nvidia_module = true, .nvidia_works = true, .gpus = 2,          \
    .machine.powercap = true, .machine.perf_power = true, .machine.perf_paranoid = 2, .cpu_measured = true, \
    .anything = true
#define WELL WELL_BUT_MEMORY, .dram_measured = true

static const struct doctor_case cases[] = {
    {"all is well", {WELL}, {NULL}, {"modprobe", "chmod", "sysctl"}},
    {"nothing at all",
     {.machine.perf_paranoid = 2},
     {"no NVIDIA GPU", "modprobe intel_rapl_msr", "--cpu-tdp"},
     {"chmod", "sysctl"}},
    {"a virtual machine",
     {.machine.virtual_machine = true, .machine.perf_paranoid = 2},
     {"measure on its host", "--cpu-tdp"},
     {"modprobe"}},
    {"driver not loaded",
     {.machine.nvidia_on_bus = true},
     {"sudo modprobe nvidia"},
     {"no NVIDIA GPU", "docker"}},
    {"library missing",
     {.machine.nvidia_on_bus = true, .machine.nvidia_module = true},
     {"libnvidia-ml1"},
     {"sudo modprobe nvidia ", "docker run --gpus"}},
    {"versions differ",
     {.machine.nvidia_on_bus = true, .machine.nvidia_module = true, .nvidia_mismatch = true},
     {"sudo reboot"},
     {"libnvidia-ml1"}},
    {"file denied",
     {.machine.nvidia_on_bus = true, .machine.nvidia_module = true, .machine.nvidia_file_denied = true},
     {"usermod"},
     {"libnvidia-ml1"}},
    {"container without GPUs",
     {.machine.nvidia_on_bus = true, .machine.nvidia_module = true, .machine.container = true},
     {"docker run --gpus all ..."},
     {"libnvidia-ml1", "sudo modprobe nvidia ", "modprobe intel"}},
    {"container without utility",
     {.machine.nvidia_module = true, .machine.container = true, .machine.utility_left_out = true},
     {"NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
     {"docker run --gpus all ...   (Podman"}},
    {"users outside of the container",
     {WELL, .machine.container = true, .others_unseen = 1},
     {"docker run --pid=host ...   (where the GPU is the container's alone: export FLYBALL_CONTAINED=1)"},
     {"docker run --gpus all ..."}},
    {"a GPU that does not answer", {WELL, .gpus_silent = 1}, {"nvidia-smi -q"}, {NULL}},
    {"no counter, no persistence, MIG",
     {WELL, .without_counter = 1, .without_persistence = 1, .with_mig = 1},
     {"does not count energy", "nvidia-smi -pm 1", "divided by MIG"},
     {NULL}},
    {"counters of the CPU denied",
     {.machine.powercap = true,
      .machine.powercap_denied = true,
      .machine.perf_power = true,
      .machine.perf_paranoid = 2},
     {"sudo chmod -R a+r", "70-powercap.rules", "setcap cap_dac_read_search", "perf_event_paranoid=0"},
     {"modprobe intel"}},
    {"perf events stand in for powercap",
     {.machine.powercap = true,
      .machine.powercap_denied = true,
      .machine.perf_power = true,
      .cpu_measured = true,
      .dram_measured = true},
     {NULL},
     {"chmod", "sysctl"}},
    {"perf events are allowed",
     {.machine.perf_power = true, .machine.reads_perf = true, .machine.perf_paranoid = 2},
     {NULL},
     {"sysctl"}},
    {"perf events are open", {.machine.perf_power = true, .machine.perf_paranoid = 0}, {NULL}, {"sysctl"}},
    {"AMD without a driver", {.machine.amd_on_bus = true}, {"sudo modprobe amdgpu"}, {"amd-smi-lib"}},
    {"AMD without a library",
     {.machine.amd_on_bus = true, .machine.amd_module = true},
     {"amd-smi-lib"},
     {"modprobe amdgpu"}},
    {"AMD denied",
     {.machine.amd_module = true, .machine.amd_file_denied = true},
     {"render,video"},
     {"amd-smi-lib"}},
    {"container without the CPU's counters",
     {.machine.container = true},
     {"-v /sys/class/powercap"},
     {"modprobe intel"}},
    {"memory's counters denied",
     {WELL_BUT_MEMORY, .machine.powercap_denied = true},
     {"those of memory among them", "chmod"},
     {"setcap"}},
    {"an estimate", {.cpu_estimated = true, .machine.powercap = true}, {"is an estimate"}, {"--cpu-tdp"}},
    {"no memory", {WELL_BUT_MEMORY}, {"memory apart"}, {NULL}},
    {"WSL", {.machine.wsl = true}, {"Windows Subsystem"}, {"modprobe intel"}},
    {"processes", {WELL, .processes_denied = 1}, {"--pid=host"}, {NULL}},
    {"chosen and emulated",
     {WELL, .machine.cuda_visible_devices = true, .emulated = true},
     {"-i all", "emulated"},
     {NULL}},
};

static bool some_holds(const struct doctor_facts *facts, const char *piece)
{
    for (const struct ailment *ailment = doctor_ailments; ailment->topic != NULL; ailment++) {
        if (ailment->holds(facts) && (strstr(ailment->finding, piece) != NULL ||
                                      (ailment->remedy != NULL && strstr(ailment->remedy, piece) != NULL)))
            return true;
    }
    return false;
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (size_t j = 0; j < COUNT(cases[i].pieces) && cases[i].pieces[j] != NULL; j++) {
            if (!some_holds(&cases[i].facts, cases[i].pieces[j]))
                fail_msg("%s: nothing says '%s'", cases[i].name, cases[i].pieces[j]);
        }
        for (size_t j = 0; j < COUNT(cases[i].never) && cases[i].never[j] != NULL; j++) {
            if (some_holds(&cases[i].facts, cases[i].never[j]))
                fail_msg("%s: something says '%s'", cases[i].name, cases[i].never[j]);
        }
    }
}

/* Every ailment has a topic of the list and is met by some case, so that no row is dead. */
static void test_table(void **state)
{
    size_t topics = 0;

    (void)state;
    while (doctor_topics[topics] != NULL)
        topics++;
    for (const struct ailment *ailment = doctor_ailments; ailment->topic != NULL; ailment++) {
        bool met = false;

        assert_true(word_index(ailment->topic, doctor_topics, topics) >= 0);
        assert_true(ailment->severity == SEVERITY_NOTE || ailment->remedy != NULL);
        for (size_t i = 0; i < COUNT(cases); i++)
            met = met || ailment->holds(&cases[i].facts);
        if (!met)
            fail_msg("no case has: %s", ailment->finding);
    }
}

static void test_settable(void **state)
{
    static const char place[] = "/run/flyballd/flyballd.sock";
    static const struct {
        struct doctor_facts facts;
        const char *text, *remedy; /* a piece of each; NULL: there is no remedy */
    } wanted[] = {
        {{.gpus = 0}, "no GPU", NULL},
        {{.gpus = 1, .machine.root = true}, "you are root", NULL},
        {{.gpus = 1, .machine.wsl = true, .machine.root = true}, "WSL", NULL},
        {{.gpus = 1}, "power limits need root, as 'sudo nvidia-smi -i 0 -pl WATTS' does (nothing", NULL},
        {{.gpus = 1, .daemon.sought = true}, "does not run here", "systemctl enable --now flyballd"},
        {{.gpus = 1, .daemon = {.place = place, .sought = true, .why = "nobody answers"}},
         "does not run here (nothing was set to find out): nobody answers",
         "systemctl enable"},
        {{.gpus = 2, .daemon = {.place = place, .answers = true, .lets = 2}},
         "flyballd at '/run/flyballd/flyballd.sock' does it for this user",
         NULL},
        {{.gpus = 3,
          .daemon = {.place = place, .answers = true, .lets = 2, .refuses = 1, .why = "pass a file"}},
         "on 2 of 3 GPUs: pass a file",
         "allow = control"},
        {{.gpus = 1, .daemon = {.place = place, .answers = true, .unasked = 1}},
         "does not say beforehand",
         NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(wanted); i++) {
        char text[DOCTOR_SETTABLE_MAX];
        const char *remedy = doctor_settable(&wanted[i].facts, text);

        check_contains(text, wanted[i].text);
        assert_int_equal(remedy != NULL, wanted[i].remedy != NULL);
        if (remedy != NULL)
            check_contains(remedy, wanted[i].remedy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_settable),
    };

    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
