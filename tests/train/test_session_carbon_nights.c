/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences that follow the grid, over a real log in a file. */
#include "carbon_day.h"
#include "job/jobs.h"

#include <sys/stat.h>

/* Night after night: the last one measures nothing, and knows how long it takes. */
enum { NIGHTS = 4, NEEDED = 6 };

static struct jobs open_log(void)
{
    static char path[128];
    struct fly_error error;
    struct jobs jobs;

    snprintf(path, sizeof path, "%s/store.sqlite", spool);
    (void)mkdir(spool, 0700);
    if (jobs_open(path, NULL, &jobs, &error) < 0)
        fail_msg("%s", error.text);
    return jobs;
}

/* What each night took, until the target; those that follow end a little later or earlier than the others. */
static struct taken night(struct scene *scene, bool follows)
{
    enum fly_answer answer = FLY_GO_ON;
    struct taken taken = {0};

    day_begin(scene);
    scene->jobs = open_log();
    scene->options.batch_sizes = &scene_batch_sizes[1];
    scene->options.batch_count = 1;
    scene->options.default_batch_size = scene_batch_sizes[1];
    scene->options.objective.max_slowdown = 1.12;
    scene->options.target = FLY_TARGET_AT_LEAST;
    scene->options.target_metric = 0.9;
    scene->options.profile_steps = 10;
    scene->options.warmup_steps = 2;
    scene->options.run = NULL;
    if (!follows)
        scene->options.carbon = NULL;
    scene_open(scene);
    for (int i = 1; answer == FLY_GO_ON; i++)
        answer = epoch(scene, i < NEEDED ? 0.1 : 0.95, &taken);
    assert_int_equal(answer, FLY_REACHED);
    return taken;
}

static void end_night(struct scene *scene)
{
    scene_end(scene);
    jobs_close(&scene->jobs);
}

static void test_nights(void **state)
{
    struct taken taken[NIGHTS], fixed;
    struct scene scene;

    (void)state;
    for (int i = 0; i < NIGHTS; i++) {
        taken[i] = night(&scene, true);
        check_close(status_of(&scene).energy_j, taken[i].energy_j, 0.02);
        assert_string_equal(status_of(&scene).text, "");
        if (i == 0)
            check_contains(carbon_of(&scene).reason, "how many steps are left is not known");
        end_night(&scene);
    }
    fixed = night(&scene, false);
    end_night(&scene);
    assert_int_equal(fixed.limits, 1);
    for (int i = 1; i < NIGHTS; i++) {
        assert_true(taken[i].limits > 2);
        assert_true(clean_w(&taken[i]) > dirty_w(&taken[i]) + 20.0);
        assert_true(taken[i].kwh_g < 0.97 * fixed.kwh_g);
        assert_true(taken[i].time_s <= 1.12 * fastest_s(&scene, NEEDED * EPOCH_STEPS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_nights, forget_grid),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
