/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of clocks: a floor and a ceiling for the GPU's and for its memory's. */
#include "lease_support.h"

static struct lease_scene scene;

static bool locks_are(unsigned floor_mhz, unsigned ceiling_mhz, unsigned memory_floor_mhz,
                      unsigned memory_ceiling_mhz)
{
    struct emulator_locks now = emulator_locks(scene.machine.emulator, 0);

    return now.floor_mhz == floor_mhz && now.ceiling_mhz == ceiling_mhz &&
           now.memory_floor_mhz == memory_floor_mhz && now.memory_ceiling_mhz == memory_ceiling_mhz;
}

/* Both clocks between floors and ceilings; each is free again when it is not asked for any more. */
static void test_clocks(void **state)
{
    struct lease_request request = request_of(getpid(), 1, 0);
    struct lease lease;

    (void)state;
    scene_start(&scene, "gpus=1,model=a100");
    request.wish = (struct lease_wish){.asked = LEASE_GPU_CLOCK, .floor_mhz = 900, .ceiling_mhz = 1200};
    lease = must_grant(&scene, &request);
    assert_true(locks_are(900, 1200, 0, 0));
    request.wish.asked |= LEASE_MEMORY_CLOCK;
    request.wish.memory_floor_mhz = 405;
    request.wish.memory_ceiling_mhz = 1000;
    assert_int_equal(leases_change(scene.leases, lease.id, NULL, &request.wish, &lease, NULL), 0);
    assert_true(locks_are(900, 1200, 405, 1000));
    /* A floor alone is under the highest clock. */
    request.wish.asked = QUANTITY_BIT(QUANTITY_CLOCK_FLOOR) | LEASE_MEMORY_CLOCK;
    assert_int_equal(leases_change(scene.leases, lease.id, NULL, &request.wish, &lease, NULL), 0);
    assert_true(locks_are(900, 1410, 405, 1000));
    /* All or nothing. */
    request.wish.asked |= LEASE_GPU_CLOCK | LEASE_LIMIT;
    request.wish.limit_mw = 1;
    assert_true(leases_change(scene.leases, lease.id, NULL, &request.wish, &lease, NULL) < 0);
    assert_true(locks_are(900, 1410, 405, 1000));
    request.wish.asked = LEASE_MEMORY_CLOCK;
    assert_int_equal(leases_change(scene.leases, lease.id, NULL, &request.wish, &lease, NULL), 0);
    assert_true(locks_are(0, 0, 405, 1000));
    assert_int_equal(leases_end(scene.leases, lease.id, NULL, NULL), 0);
    assert_true(locks_are(0, 0, 0, 0));
    /* Of a client that knows no leases: one clock after the other. */
    request.wish = (struct lease_wish){.asked = LEASE_GPU_CLOCK, .floor_mhz = 900, .ceiling_mhz = 1200};
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), 0);
    request.wish =
        (struct lease_wish){.asked = LEASE_MEMORY_CLOCK, .memory_floor_mhz = 405, .memory_ceiling_mhz = 1000};
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), 0);
    assert_true(locks_are(900, 1200, 405, 1000));
    request.wish.asked = 0;
    assert_int_equal(leases_turn(scene.leases, &request, LEASE_GPU_CLOCK, NULL), 0);
    assert_true(locks_are(0, 0, 405, 1000));
    scene_stop(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
