/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of energy: cut at borders, adding up to the whole, whatever the clocks do. */
#include "test.h"

#include "train/account/carbon_slicer.h"

static const int64_t second_ns = 1000000000;
static const int64_t border_ns = 300 * INT64_C(1000000000);

/* A run in made-up time, with a meter that tells all but for a while. */
struct scene {
    struct carbon_slicer slicer;
    int64_t now_ns, ahead_ns; /* of the date */
    double power_w, used_j, taken_j;
    int64_t blind_until_ns;
    bool has_gpu;
    unsigned anew;
};

static struct mono_time now(const struct scene *scene)
{
    return (struct mono_time){scene->now_ns};
}

static struct wall_time date(const struct scene *scene)
{
    return (struct wall_time){scene->now_ns + scene->ahead_ns};
}

static void set_up(struct scene *scene, double start_s)
{
    *scene = (struct scene){.now_ns = 77 * second_ns,
                            .ahead_ns = (int64_t)(start_s * 1e9) - 77 * second_ns,
                            .power_w = 300.0,
                            .has_gpu = true};
    slicer_init(&scene->slicer, now(scene), date(scene));
}

static void pass(struct scene *scene, double time_s)
{
    int64_t ns = (int64_t)(time_s * 1e9);

    scene->now_ns += ns;
    scene->used_j += scene->power_w * (double)ns * 1e-9;
}

static void cut(struct scene *scene, enum slicer_cut_kind kind)
{
    bool blind = scene->now_ns < scene->blind_until_ns;
    const struct slicer_energy energy = {.gpu_j =
                                             blind || !scene->has_gpu ? NAN : scene->used_j - scene->taken_j,
                                         .host_j = 0.5 * (scene->used_j - scene->taken_j),
                                         .has_gpu = scene->has_gpu};
    struct slicer_result result = slicer_cut(&scene->slicer, kind, now(scene), date(scene), &energy);

    assert_true(result.share >= 0.0 && result.share <= 1.0);
    scene->taken_j += result.share * (scene->used_j - scene->taken_j);
    scene->anew += result.anew;
    if (result.anew)
        scene->taken_j = scene->used_j;
}

static bool next(struct scene *scene, struct energy_slice *out_slice)
{
    uint64_t number;

    if (!slicer_front(&scene->slicer, out_slice, &number))
        return false;
    slicer_pop(&scene->slicer, number);
    slicer_pop(&scene->slicer, number);
    return true;
}

#define check_slice(scene, start, end, gpu, steps_count, did_jump) \
    do {                                                           \
        struct energy_slice slice_;                                \
        assert_true(next(scene, &slice_));                         \
        check_close(slice_.start_s, start, 1e-15);                 \
        check_close(slice_.end_s, end, 1e-15);                     \
        if (isnan(gpu))                                            \
            assert_true(isnan(slice_.gpu_j));                      \
        else                                                       \
            check_close(slice_.gpu_j, gpu, 1e-9);                  \
        check_double(slice_.steps, steps_count);                   \
        assert_int_equal(slice_.jumped, did_jump);                 \
    } while (0)

static void check_none(struct scene *scene)
{
    struct energy_slice slice;

    assert_false(next(scene, &slice));
}

static void cut_at_borders(void **state)
{
    struct scene scene;

    (void)state;
    set_up(&scene, 1500000100.0); /* 200 s before one */
    assert_false(slicer_is_due(&scene.slicer, now(&scene), date(&scene)));
    assert_int_equal(slicer_next(&scene.slicer).ns, (77 + 200) * second_ns);
    scene.slicer.limit_w = 250.0;
    scene.slicer.steps = 100;
    pass(&scene, 199.0);
    cut(&scene, CUT_BORDERS);
    check_none(&scene);
    pass(&scene, 1.0);
    assert_true(slicer_is_due(&scene.slicer, now(&scene), date(&scene)));
    cut(&scene, CUT_BORDERS);
    check_slice(&scene, 1500000100.0, 1500000300.0, 60000.0, 100.0, false);
    check_none(&scene);
    scene.slicer.steps += 30;
    pass(&scene, 303.0); /* three seconds late */
    cut(&scene, CUT_BORDERS);
    check_slice(&scene, 1500000300.0, 1500000600.0, 90000.0, 30.0, false);
    check_none(&scene);
    pass(&scene, 7.0);
    cut(&scene, CUT_LAST);
    check_slice(&scene, 1500000600.0, 1500000610.0, 3000.0, 0.0, false);
    check_none(&scene);
}

/* A machine that stood still for a quarter of an hour. */
static void cut_many_borders(void **state)
{
    struct scene scene;

    (void)state;
    set_up(&scene, 1500000100.0);
    scene.slicer.steps = 1000;
    pass(&scene, 1000.0);
    cut(&scene, CUT_NOW);
    check_slice(&scene, 1500000100.0, 1500000300.0, 60000.0, 200.0, false);
    check_slice(&scene, 1500000300.0, 1500000600.0, 90000.0, 300.0, false);
    check_slice(&scene, 1500000600.0, 1500000900.0, 90000.0, 300.0, false);
    check_slice(&scene, 1500000900.0, 1500001100.0, 60000.0, 200.0, false);
    check_none(&scene);
}

static void leave_out_short_ones(void **state)
{
    struct scene scene;

    (void)state;
    set_up(&scene, 1500000100.0);
    cut(&scene, CUT_NOW);
    pass(&scene, 0.0005);
    cut(&scene, CUT_NOW);
    check_none(&scene);
    pass(&scene, 1.0);
    cut(&scene, CUT_NOW);
    check_slice(&scene, 1500000100.0, 1500000101.0005, 300.15, 0.0, false);
    pass(&scene, 0.0005);
    cut(&scene, CUT_LAST);
    check_slice(&scene, 1500000101.0005, 1500000101.001, 0.15, 0.0, false);
    cut(&scene, CUT_LAST);
    check_none(&scene);
    check_close(scene.taken_j, scene.used_j, 1e-12);
}

/* The end is what the clock says after the jump, the length is monotonic. */
static void follow_jumps(void **state)
{
    struct scene scene;

    (void)state;
    set_up(&scene, 1500000100.0);
    pass(&scene, 100.0);
    scene.ahead_ns += 3600 * second_ns;
    assert_true(slicer_is_due(&scene.slicer, now(&scene), date(&scene)));
    cut(&scene, CUT_BORDERS);
    check_slice(&scene, 1500003700.0, 1500003800.0, 30000.0, 0.0, true);
    pass(&scene, 100.0);
    scene.ahead_ns -= 3600 * second_ns;
    cut(&scene, CUT_BORDERS); /* lies over the first, in the other date */
    check_slice(&scene, 1500000200.0, 1500000300.0, 30000.0, 0.0, true);
    pass(&scene, 50.0);
    scene.ahead_ns += 290 * second_ns; /* 540 to 640: over a border, which cuts it */
    pass(&scene, 50.0);
    cut(&scene, CUT_BORDERS);
    check_slice(&scene, 1500000590.0, 1500000600.0, 3000.0, 0.0, true);
    check_slice(&scene, 1500000600.0, 1500000690.0, 27000.0, 0.0, true);
    scene.ahead_ns += second_ns / 20; /* no jump, but slewing */
    pass(&scene, 10.0);
    cut(&scene, CUT_NOW);
    check_slice(&scene, 1500000690.0, 1500000700.0, 3000.0, 0.0, false);
    check_none(&scene);
}

/* What was too short to tell is told with what follows. */
static void wait_for_energy(void **state)
{
    struct scene scene;

    (void)state;
    set_up(&scene, 1500000000.0);
    scene.blind_until_ns = scene.now_ns + 3 * second_ns;
    pass(&scene, 1.0);
    cut(&scene, CUT_NOW);
    pass(&scene, 1.0);
    cut(&scene, CUT_NOW);
    check_none(&scene);
    pass(&scene, 2.0);
    cut(&scene, CUT_NOW);
    check_slice(&scene, 1500000000.0, 1500000001.0, 300.0, 0.0, false);
    check_slice(&scene, 1500000001.0, 1500000002.0, 300.0, 0.0, false);
    check_slice(&scene, 1500000002.0, 1500000004.0, 600.0, 0.0, false);
    check_none(&scene);
    assert_int_equal(scene.anew, 0);
}

static void give_up_energy(void **state)
{
    struct scene scene;

    (void)state;
    set_up(&scene, 1500000000.0);
    scene.blind_until_ns = scene.now_ns + 310 * second_ns;
    pass(&scene, 1.0);
    cut(&scene, CUT_NOW);
    pass(&scene, 301.0);
    cut(&scene, CUT_BORDERS);
    assert_int_equal(scene.anew, 1);
    check_slice(&scene, 1500000000.0, 1500000001.0, NAN, 0.0, false);
    check_slice(&scene, 1500000001.0, 1500000300.0, NAN, 0.0, false);
    check_slice(&scene, 1500000300.0, 1500000302.0, NAN, 0.0, false);
    pass(&scene, 298.0);
    cut(&scene, CUT_BORDERS);
    check_slice(&scene, 1500000302.0, 1500000600.0, 89400.0, 0.0, false);
    scene.blind_until_ns = INT64_MAX;
    pass(&scene, 1.0);
    cut(&scene, CUT_NOW);
    check_none(&scene);
    cut(&scene, CUT_LAST);
    check_slice(&scene, 1500000600.0, 1500000601.0, NAN, 0.0, false);
    check_none(&scene);
}

/* Without a GPU nothing is waited for, and the host's is told. */
static void do_without_gpus(void **state)
{
    struct energy_slice slice;
    struct scene scene;

    (void)state;
    set_up(&scene, 1500000000.0);
    scene.has_gpu = false;
    pass(&scene, 1.0);
    cut(&scene, CUT_NOW);
    assert_true(next(&scene, &slice));
    assert_true(isnan(slice.gpu_j));
    check_close(slice.host_j, 150.0, 1e-12);
    assert_int_equal(scene.anew, 0);
}

static void count_what_is_lost(void **state)
{
    struct energy_slice slice;
    struct scene scene;
    unsigned left = 0;

    (void)state;
    set_up(&scene, 1500000000.0);
    for (unsigned i = 0; i < SLICER_QUEUE_MAX + 10; i++) {
        pass(&scene, 1.0);
        cut(&scene, CUT_NOW);
    }
    assert_true(scene.slicer.lost >= 10);
    while (next(&scene, &slice))
        left++;
    assert_int_equal(left, SLICER_QUEUE_MAX);
    check_double(slice.end_s, (double)(scene.now_ns + scene.ahead_ns) * 1e-9);
}

/* Whatever happens, slices add up to what was used, none crosses a border, and without jumps they abut. */
static void add_up(void **state)
{
    unsigned whole = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        double sum_j = 0.0, host_j = 0.0, length_s = 0.0, steps = 0.0, last_s, counted = 0.0;
        uint64_t random = seed;
        bool jumps = seed % 3 == 0;
        struct energy_slice slice;
        struct scene scene;
        int64_t begun_ns;

        set_up(&scene, 1500000000.0 + floor(1e6 * test_uniform(&random)) / 1e3);
        begun_ns = scene.now_ns;
        last_s = (double)scene.slicer.from_ns * 1e-9;
        for (unsigned i = 0; i < 60; i++) {
            uint64_t more = test_below(&random, 50);

            scene.power_w = 500.0 * test_uniform(&random);
            scene.slicer.steps += more;
            counted += (double)more;
            scene.slicer.limit_w = (double)i;
            if (test_below(&random, 4) == 0)
                scene.blind_until_ns = scene.now_ns + (int64_t)(2.9e10 * test_uniform(&random));
            pass(&scene,
                 test_below(&random, 3) == 0 ? 700.0 * test_uniform(&random) : 25.0 * test_uniform(&random));
            if (scene.now_ns < scene.blind_until_ns + 30 * second_ns && test_below(&random, 2) == 0)
                pass(&scene, 30.0);
            if (jumps && test_below(&random, 5) == 0)
                scene.ahead_ns += (int64_t)(1e12 * (test_uniform(&random) - 0.5));
            cut(&scene, i == 59 ? CUT_LAST : test_below(&random, 2) == 0 ? CUT_NOW : CUT_BORDERS);
            assert_true(scene.slicer.limit_w == (double)i);
            while (next(&scene, &slice)) {
                assert_true(slice.end_s > slice.start_s);
                assert_true(slice.limit_w <= (double)i);
                assert_true(floor(slice.start_s / 300.0 + 1e-9) == ceil(slice.end_s / 300.0 - 1e-9) - 1.0);
                if (!jumps)
                    check_double(slice.start_s, last_s);
                last_s = slice.end_s;
                sum_j += slice.gpu_j;
                host_j += slice.host_j;
                length_s += slice.end_s - slice.start_s;
                steps += slice.steps;
            }
        }
        if (scene.anew > 0)
            continue;
        whole++;
        check_close(sum_j, scene.used_j, 1e-9);
        check_close(host_j, 0.5 * scene.used_j, 1e-9);
        check_close(length_s, (double)(scene.now_ns - begun_ns) * 1e-9, 1e-8);
        check_double(steps, counted);
        if (!jumps)
            check_double(last_s, (double)(scene.now_ns + scene.ahead_ns) * 1e-9);
        assert_int_equal(slicer_next(&scene.slicer).ns + scene.slicer.ahead_ns,
                         (scene.slicer.from_ns / border_ns + 1) * border_ns);
    }
    assert_true(whole > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_at_borders),
        cmocka_unit_test(cut_many_borders),
        cmocka_unit_test(leave_out_short_ones),
        cmocka_unit_test(follow_jumps),
        cmocka_unit_test(wait_for_energy),
        cmocka_unit_test(give_up_energy),
        cmocka_unit_test(do_without_gpus),
        cmocka_unit_test(count_what_is_lost),
        cmocka_unit_test(add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
