/* SPDX-License-Identifier: Apache-2.0 */
/* Many clients at once: no limit is ever outside floor and ceiling, and all goes back. */
#include "lease_support.h"

#include <pthread.h>

enum { CLIENTS = 4, CALLS = 400, FLOOR_W = 180, CEILING_W = 300, DEFAULT_W = 400 };

static struct lease_scene scene;
static _Atomic int clients_left;

static struct lease_wish some_wish(uint64_t *random)
{
    struct lease_wish wish = {.asked = LEASE_LIMIT, .limit_mw = 100000 + test_below(random, 300) * 1000};

    if (test_below(random, 3) == 0) {
        wish.asked |= LEASE_CLOCK;
        wish.ceiling_mhz = 600 + test_below(random, 50) * 15;
    }
    return wish;
}

/* Each client is a connection; half of them know no leases. */
static void *be_client(void *number)
{
    uint64_t connection = *(const uint64_t *)number, random = connection;
    struct lease lease = {.id = ""};

    for (int i = 0; i < CALLS; i++) {
        struct lease_request request =
            request_of(random % 2 == 0 ? getpid() : 0, 1 + test_below(&random, 3), 0);

        request.wish = some_wish(&random);
        request.bounds.floor_mw = test_below(&random, 2) * 200000;
        request.holder.connection = connection;
        switch (test_below(&random, 6)) {
        case 0:
            leases_connection_closed(scene.leases, connection);
            break;
        case 1:
            leases_end(scene.leases, lease.id, NULL, NULL);
            break;
        case 2:
            leases_change(scene.leases, lease.id, NULL, &request.wish, &lease, NULL);
            break;
        case 3:
            leases_turn(scene.leases, &request, test_below(&random, 2) * LEASE_CLOCK, NULL);
            break;
        default:
            request.expires_s = test_below(&random, 2) * 0.01;
            leases_grant(scene.leases, &request, &lease, NULL);
        }
        leases_tick(scene.leases);
    }
    leases_connection_closed(scene.leases, connection);
    clients_left--;
    return NULL;
}

static void watch_limits(void)
{
    unsigned long looks = 0, leased = 0;

    while (clients_left > 0) {
        for (unsigned gpu = 0; gpu < scene.machine.list.count; gpu++) {
            double limit_w = emulator_limit_w(scene.machine.emulator, gpu);

            if (limit_w != DEFAULT_W && (limit_w < FLOOR_W || limit_w > CEILING_W))
                fail_msg("GPU %u is at %g W", gpu, limit_w);
            leased += limit_w != DEFAULT_W;
            looks++;
        }
    }
    print_message("# %lu of %lu looks saw a leased limit\n", leased, looks);
    assert_true(leased > 0);
}

static void check_clients(enum lease_rule rule)
{
    uint64_t numbers[CLIENTS];
    pthread_t threads[CLIENTS];

    scene.rule = rule;
    scene_start(&scene, "gpus=2,model=a100");
    for (size_t gpu = 0; gpu < 2; gpu++)
        leases_bound(scene.leases, gpu,
                     &(struct lease_bounds){.floor_mw = FLOOR_W * 1000, .ceiling_mw = CEILING_W * 1000});
    clients_left = CLIENTS;
    for (size_t i = 0; i < CLIENTS; i++) {
        numbers[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, be_client, &numbers[i]), 0);
    }
    watch_limits();
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(leases_release(scene.leases, lease_patience_s, NULL), 0);
    for (unsigned gpu = 0; gpu < 2; gpu++) {
        check_double(emulator_limit_w(scene.machine.emulator, gpu), DEFAULT_W);
        assert_int_equal(emulator_ceiling_mhz(scene.machine.emulator, gpu), 0);
    }
    assert_int_equal(knob_machine_entries(&scene.machine), 0);
    scene_stop(&scene);
}

static void test_the_later_is_refused(void **state)
{
    (void)state;
    check_clients(LEASE_RULE_REFUSE);
}

static void test_the_lower_wins(void **state)
{
    (void)state;
    check_clients(LEASE_RULE_LOWER);
}

static void close_connection(struct lease_scene *leased)
{
    leases_connection_closed(leased->leases, 7);
}

/* A lease that ends while its session is being opened turns nothing, not even for a moment. */
static void test_ends_while_it_opens(void **state)
{
    char path[RUNTIME_PATH_MAX], text[4096] = "";
    struct lease_request request;
    struct lease lease = {.id = ""};
    FILE *log;

    (void)state;
    scene = (struct lease_scene){.rule = LEASE_RULE_REFUSE};
    knob_machine_start(&scene.machine, "gpus=1,model=a100", NULL);
    snprintf(path, sizeof path, "%s/audit", scene.machine.locks);
    assert_int_equal(audit_open(path, false, &scene.audit, NULL), 0);
    scene_open(&scene);
    scene_settle(&scene);
    scene.on_borrow = close_connection;
    request = request_of(getpid(), 1, 250000);
    request.holder.connection = 7;
    leases_grant(scene.leases, &request, &lease, NULL);
    scene.on_borrow = NULL;
    scene_settle(&scene);
    log = fopen(path, "re");
    assert_non_null(log);
    assert_true(fread(text, 1, sizeof text - 1, log) > 0);
    fclose(log);
    check_contains(text, "\"end\"");
    assert_null(strstr(text, "\"turn\""));
    assert_int_equal(leases_close(scene.leases, lease_patience_s), 0);
    audit_close(scene.audit);
    unlink(path);
    knob_machine_stop(&scene.machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_later_is_refused),
        cmocka_unit_test(test_the_lower_wins),
        cmocka_unit_test(test_ends_while_it_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
