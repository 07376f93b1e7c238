/* SPDX-License-Identifier: Apache-2.0 */
/* Workload power profiles of emulated boards, as programs call NVML for them, and what they do to work. */
#include "emulator_support.h"

static const unsigned ids[] = {0, 1, 2, 3, 7, 13, 20};

static bool has(const struct nvml_workload_mask *mask, unsigned id)
{
    return (mask->words[id / 32] >> id % 32 & 1U) != 0;
}

static struct nvml_workload_mask mask_of(unsigned id)
{
    struct nvml_workload_mask mask = {{0}};

    mask.words[id / 32] = 1U << id % 32;
    return mask;
}

static int update(unsigned operation, unsigned id)
{
    struct nvml_workloads_update wanted = {.operation = operation, .mask = mask_of(id)};

    return nvml.nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1(device(0), &wanted);
}

static struct nvml_workloads_current current(void)
{
    struct nvml_workloads_current now = {.version = NVML_WORKLOADS_CURRENT};

    assert_int_equal(nvml.nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(device(0), &now), NVML_SUCCESS);
    return now;
}

static void test_info(void **state)
{
    static struct nvml_workload_infos infos;
    struct emulator *emulator = start("model=b200,time=virtual", NULL);
    unsigned supported = 0;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    infos.version = NVML_WORKLOAD_INFOS;
    assert_int_equal(nvml.nvmlDeviceWorkloadPowerProfileGetProfilesInfo(device(0), &infos), NVML_SUCCESS);
    for (unsigned id = 0; id < NVML_WORKLOADS_MAX; id++)
        supported += has(&infos.supported, id);
    assert_int_equal(supported, COUNT(ids));
    for (size_t i = 0; i < COUNT(ids); i++) {
        const struct nvml_workload_info *info = &infos.profiles[ids[i]];

        assert_true(has(&infos.supported, ids[i]));
        assert_int_equal(info->version, NVML_WORKLOAD_INFO);
        assert_int_equal(info->id, ids[i]);
        for (size_t other = 0; other < COUNT(ids); other++) {
            const struct nvml_workload_info *second = &infos.profiles[ids[other]];

            assert_int_equal(has(&info->conflicts, ids[other]), has(&second->conflicts, ids[i]));
            assert_true(i == other || info->priority != second->priority);
        }
        assert_false(has(&info->conflicts, ids[i]));
    }
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* What is requested changes by each operation; what is enforced follows from conflicts and priorities. */
static void test_operations(void **state)
{
    struct emulator *emulator = start("model=b200,time=virtual,any-user=yes", NULL);
    struct nvml_workloads_requested requested = {.version = NVML_WORKLOADS_REQUESTED, .mask = mask_of(20)};
    struct nvml_workloads_current now;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(update(NVML_WORKLOADS_SET, 13), NVML_SUCCESS);
    assert_int_equal(update(NVML_WORKLOADS_SET, 1), NVML_SUCCESS);
    now = current();
    assert_true(has(&now.requested, 13) && has(&now.requested, 1));
    assert_memory_equal(&now.requested, &now.enforced, sizeof now.requested);
    assert_int_equal(update(NVML_WORKLOADS_SET, 7),
                     NVML_SUCCESS); /* which conflicts with 13 and precedes it */
    now = current();
    assert_true(has(&now.requested, 13) && has(&now.enforced, 7) && !has(&now.enforced, 13));
    assert_int_equal(update(NVML_WORKLOADS_CLEAR, 7), NVML_SUCCESS);
    now = current();
    assert_true(has(&now.enforced, 13) && !has(&now.requested, 7));
    assert_int_equal(update(NVML_WORKLOADS_OVERWRITE, 3), NVML_SUCCESS);
    now = current();
    assert_true(has(&now.requested, 3) && !has(&now.requested, 13) && !has(&now.requested, 1));
    assert_int_equal(update(NVML_WORKLOADS_SET, 4), NVML_INVALID_ARGUMENT); /* which the board lacks */
    assert_int_equal(update(3, 1), NVML_INVALID_ARGUMENT);
    /* The functions before that one add and take away. */
    assert_int_equal(nvml.nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(device(0), &requested),
                     NVML_SUCCESS);
    now = current();
    assert_true(has(&now.requested, 3) && has(&now.requested, 20));
    assert_int_equal(nvml.nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(device(0), &requested),
                     NVML_SUCCESS);
    now = current();
    assert_true(has(&now.requested, 3) && !has(&now.requested, 20));
    requested.version = 1;
    assert_int_equal(nvml.nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(device(0), &requested),
                     NVML_ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(nvml.nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1(device(0), NULL),
                     NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

static void test_other_boards_and_users(void **state)
{
    struct nvml_workloads_current now = {.version = NVML_WORKLOADS_CURRENT};
    struct emulator *emulator = start("model=h100,time=virtual,any-user=yes", NULL);

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(device(0), &now),
                     NVML_NOT_SUPPORTED);
    assert_int_equal(update(NVML_WORKLOADS_SET, 1), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
    emulator = start("model=b200,time=virtual", NULL);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    now.version = 2;
    assert_int_equal(nvml.nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(device(0), &now),
                     NVML_ARGUMENT_VERSION_MISMATCH);
    if (geteuid() == 0) {
        assert_int_equal(seteuid(65534), 0);
        assert_int_equal(update(NVML_WORKLOADS_SET, 1), NVML_NO_PERMISSION);
        assert_int_equal(seteuid(0), 0);
    } else {
        assert_int_equal(update(NVML_WORKLOADS_SET, 1), NVML_NO_PERMISSION);
    }
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* Power and speed of a busy GPU under each profile: slower by at most 3 %, and at most 15 % less energy. */
static void test_effect(void **state)
{
    struct emulator *emulator = start("model=b200,time=virtual,any-user=yes", NULL);
    double power_w, speed;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    emulator_set_load(emulator, 0, 800.0);
    emulator_advance_s(emulator, 5.0);
    power_w = emulator_truth_power_w(emulator, 0, emulator_now(emulator));
    speed = emulator_speed(emulator, 0);
    for (size_t i = 0; i <= COUNT(ids); i++) {
        double power, slowed;

        if (i < COUNT(ids)) {
            assert_int_equal(update(NVML_WORKLOADS_OVERWRITE, ids[i]), NVML_SUCCESS);
        } else { /* three at once */
            assert_int_equal(update(NVML_WORKLOADS_OVERWRITE, 1), NVML_SUCCESS);
            assert_int_equal(update(NVML_WORKLOADS_SET, 3), NVML_SUCCESS);
            assert_int_equal(update(NVML_WORKLOADS_SET, 7), NVML_SUCCESS);
        }
        emulator_advance_s(emulator, 5.0);
        power = emulator_truth_power_w(emulator, 0, emulator_now(emulator)) / power_w;
        slowed = emulator_speed(emulator, 0) / speed;
        assert_true(power <= 1.0 && slowed <= 1.0);
        assert_true(slowed >= 0.969);
        assert_true(power / slowed <= 1.0 && power / slowed >= 0.85);
        assert_true((power == 1.0) == (i == 0)); /* MAX_P is how the board runs anyway */
    }
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_other_boards_and_users),
        cmocka_unit_test(test_effect),
    };
    int status = emulator_support_begin();

    return status != 0 ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
