/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the grid as they come to a training, in virtual time. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "own_directory.h"
#include "standin_gb.h"
#include "train/carbon/carbon_feed.h"

static char directory[OWN_DIRECTORY_MAX], cache[80];

static int make_directory(void **state)
{
    (void)state;
    if (!own_directory_make("feed", directory))
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return own_directory_remove(directory) ? 0 : -1;
}

static struct wall_time date_of(void *state)
{
    return *(const struct wall_time *)state;
}

struct scene {
    struct wall_time date;
    struct clock clock;
    struct carbon_feed_options options;
    struct carbon_feed *feed;
    char text[FLY_ERROR_TEXT_MAX];
};

static void set_up(struct scene *scene, const char *source, const char *price)
{
    *scene = (struct scene){.date = {INT64_C(1700000010000000000)}};
    scene->clock = (struct clock){.name = "made up", .date = date_of, .state = &scene->date};
    scene->options = (struct carbon_feed_options){.clock = &scene->clock, .threadless = true};
    snprintf(scene->options.sources[CARBON_INTENSITY], CARBON_SOURCE_MAX, "%s", source);
    snprintf(scene->options.sources[CARBON_PRICE], CARBON_SOURCE_MAX, "%s", price);
}

static void open_feed(struct scene *scene)
{
    struct fly_error error;

    if (carbon_feed_open(&scene->options, &scene->feed, &error) < 0)
        fail_msg("%s", error.text);
}

static void pass(struct scene *scene, int64_t time_s)
{
    for (; time_s > 0; time_s -= 10) {
        scene->date.ns += 10 * INT64_C(1000000000);
        carbon_feed_turn(scene->feed);
    }
}

static const char *text_of(struct scene *scene)
{
    carbon_feed_text(scene->feed, scene->text);
    return scene->text;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A file that is revised, spoilt and mended while it is followed. */
static void give_figures_of_a_file(void **state)
{
    static const char first[] = "timestamp,g_per_kwh\n2023-11-14T22:00Z,100\n2023-11-14T22:30Z,120\n";
    static const char revised[] = "timestamp,g_per_kwh\n2023-11-14T22:00Z,90\n2023-11-14T22:30Z,120\n";
    const struct grid_answer *answers[CARBON_SIGNALS] = {NULL, NULL};
    struct scene scene;
    char path[96];

    (void)state;
    snprintf(path, sizeof path, "%s/grid.csv", directory);
    write_file(path, first);
    set_up(&scene, path, "constant:0.25");
    open_feed(&scene);
    assert_true(carbon_feed_take(scene.feed, answers));
    assert_non_null(answers[CARBON_PRICE]);
    check_double(answers[CARBON_PRICE]->actual.periods[0].value, 0.25);
    check_double(answers[CARBON_INTENSITY]->actual.periods[0].value, 100.0);
    assert_false(carbon_feed_take(scene.feed, answers));
    check_double(answers[CARBON_INTENSITY]->actual.periods[0].value, 100.0);
    write_file(path, revised);
    pass(&scene, 400);
    check_double(answers[CARBON_INTENSITY]->actual.periods[0].value, 100.0);
    assert_true(carbon_feed_take(scene.feed, answers));
    check_double(answers[CARBON_INTENSITY]->actual.periods[0].value, 90.0);
    write_file(path, "nonsense\n");
    pass(&scene, 400);
    assert_true(carbon_feed_take(scene.feed, answers)); /* the price */
    check_double(answers[CARBON_INTENSITY]->actual.periods[0].value, 90.0);
    check_contains(text_of(&scene), "grid.csv");
    write_file(path, first);
    pass(&scene, 130);
    assert_true(carbon_feed_take(scene.feed, answers));
    check_double(answers[CARBON_INTENSITY]->actual.periods[0].value, 100.0);
    assert_string_equal(text_of(&scene), "");
    carbon_feed_close(scene.feed);
}

static void refuse_sources(void **state)
{
    static const struct {
        int signal;
        const char *source, *says;
    } cases[] = {
        {CARBON_INTENSITY, "/nowhere/grid.csv", "/nowhere/grid.csv"},
        {CARBON_INTENSITY, "gbb:national", "gbb:national"},
        {CARBON_INTENSITY, "constant:lots", "constant"},
        {CARBON_INTENSITY, "constant:-3", "constant"},
        {CARBON_INTENSITY, "gb:no where", "place"},
        {CARBON_PRICE, "gb:national", "price"},
    };

    (void)state;
    setenv("FLYBALL_CARBON_CACHE", cache, 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_error error = {.text = ""};
        struct scene scene;

        set_up(&scene, cases[i].signal == CARBON_INTENSITY ? cases[i].source : "",
               cases[i].signal == CARBON_PRICE ? cases[i].source : "");
        if (carbon_feed_open(&scene.options, &scene.feed, &error) != FLY_EUSAGE)
            fail_msg("'%s': %s", cases[i].source, error.text);
        check_contains(error.text, cases[i].says);
    }
}

/* What the service said of the last half-hour but one; NAN for nothing. */
static double value_after(struct scene *scene, struct standin_gb *gb, int64_t time_s, bool *out_any)
{
    const struct grid_answer *answers[CARBON_SIGNALS];

    atomic_fetch_add(&gb->words->now_s, time_s);
    pass(scene, time_s);
    *out_any = carbon_feed_take(scene->feed, answers);
    return answers[CARBON_INTENSITY] != NULL && answers[CARBON_INTENSITY]->actual.count > 0
               ? answers[CARBON_INTENSITY]->actual.periods[answers[CARBON_INTENSITY]->actual.count - 2].value
               : NAN;
}

/* A service that is there, is ill for hours, comes back, and has revised what it said. */
static void outlive_an_outage(void **state)
{
    struct standin_gb gb;
    struct scene scene;
    unsigned asked;
    bool any;

    (void)state;
    assert_true(standin_gb_start(&gb, cache));
    set_up(&scene, "gb:national", "");
    atomic_store(&gb.words->now_s, scene.date.ns / 1000000000);
    open_feed(&scene);
    check_contains(text_of(&scene), "has not answered yet");
    assert_int_equal(atomic_load(&gb.words->requests), 0);
    assert_true(isnan(value_after(&scene, &gb, 0, &any)) || any);
    if (strstr(text_of(&scene), "libcurl") != NULL)
        skip();
    check_double(value_after(&scene, &gb, 3600, &any), 200.0);
    assert_true(any);
    assert_string_equal(text_of(&scene), "");
    atomic_store(&gb.words->mood, GB_SICK);
    check_double(value_after(&scene, &gb, 3600, &any), 200.0);
    check_contains(text_of(&scene), "gb:national");
    asked = atomic_load(&gb.words->requests);
    (void)value_after(&scene, &gb, 4 * 3600, &any);
    assert_true(atomic_load(&gb.words->requests) - asked <= 20); /* it is left alone */
    atomic_store(&gb.words->mood, GB_WELL);
    atomic_store(&gb.words->value, 170);
    check_double(value_after(&scene, &gb, 2 * 3600, &any), 170.0);
    assert_true(any);
    assert_string_equal(text_of(&scene), "");
    carbon_feed_close(scene.feed);
    standin_gb_stop(&gb);
}

/* With `cached_only` the service is never asked, and what another one brought is there. */
static void ask_nobody(void **state)
{
    const struct grid_answer *answers[CARBON_SIGNALS];
    struct standin_gb gb;
    struct scene scene;

    (void)state;
    assert_true(standin_gb_start(&gb, cache));
    set_up(&scene, "gb:national", "");
    scene.options.cached_only = true;
    open_feed(&scene);
    pass(&scene, 3600);
    assert_int_equal(atomic_load(&gb.words->requests), 0);
    assert_false(carbon_feed_take(scene.feed, answers));
    assert_null(answers[CARBON_INTENSITY]);
    check_contains(text_of(&scene), "gb:national");
    assert_null(strstr(text_of(&scene), "not answered yet"));
    carbon_feed_close(scene.feed);
    standin_gb_stop(&gb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(give_figures_of_a_file),
        cmocka_unit_test(refuse_sources),
        cmocka_unit_test(ask_nobody),
        cmocka_unit_test(outlive_an_outage),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
