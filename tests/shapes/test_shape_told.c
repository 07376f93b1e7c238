/* SPDX-License-Identifier: Apache-2.0 */
/* What is only written: what is not known has its reason. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "shapes/shape_told.h"

struct place {
    uint32_t index;
    char name[8];
};

struct told {
    double energy_j, share;
    int rank;
    const char *why, *note;
    const struct place *place, *other;
    size_t count;
    const struct place *places;
};

static json_t *half(const void *from)
{
    const struct told *told = from;

    return told->energy_j > 0.0 ? json_real(told->energy_j / 2.0) : NULL;
}

static const struct shape_field place_rows[] = {
    {SHAPE_AT(place, index), TOLD_U32},
    {SHAPE_AT(place, name), TOLD_CHARS(place, name), TOLD_ELSE("it has none")},
};
static const struct shape shape_place = {SHAPE_OF(place, place_rows)};
static const struct shape_field told_rows[] = {
    {SHAPE_AT(told, energy_j), TOLD_NUMBER, TOLD_ELSE("no counter"), TOLD_ELSE_AT(told, why)},
    {SHAPE_AT_AS("percent", told, share), TOLD_TIMES(100.0)},
    {SHAPE_AT(told, rank), TOLD_I32, TOLD_ELSE("nobody says")},
    {SHAPE_AT(told, place), TOLD_MERGED(&shape_place)},
    {SHAPE_AT(told, other), TOLD_POINTED(&shape_place)},
    {SHAPE_AT(told, note), TOLD_TEXT},
    {.name = "half", TOLD_MADE(half), TOLD_ELSE("nothing to halve")},
    {SHAPE_AT(told, places), SHAPE_IS_STRUCTS(&shape_place, UINT32_MAX, told, count)},
};
static const struct shape shape_told = {SHAPE_OF(told, told_rows)};

static void test_tell(void **state)
{
    static const struct place named = {2, "a"}, nameless = {3, ""};
    static const struct {
        struct told told;
        const char *text;
    } rows[] = {
        {{.energy_j = 3.0,
          .share = 0.5,
          .rank = 7,
          .note = "b\xff",
          .place = &named,
          .other = &nameless,
          .count = 1,
          .places = &named},
         "{\"energy_j\":3.0,\"percent\":50.0,\"rank\":7,\"index\":2,\"name\":\"a\",\"other\":{\"index\":3,"
         "\"name\":null,\"name_unavailable\":\"it has none\"},\"note\":\"b?\","
         "\"half\":1.5,\"places\":[{\"index\":2,\"name\":\"a\"}]}"},
        {{.energy_j = NAN, .share = INFINITY, .rank = -1, .why = "it fell off\n", .place = &nameless},
         "{\"energy_j\":null,\"energy_j_unavailable\":\"it fell off\\n\",\"percent\":null,"
         "\"rank\":null,\"rank_unavailable\":\"nobody says\",\"index\":3,"
         "\"name\":null,\"name_unavailable\":\"it has none\",\"other\":null,\"note\":null,"
         "\"half\":null,\"half_unavailable\":\"nothing to halve\",\"places\":[]}"},
        {{.energy_j = -INFINITY, .place = &named},
         "{\"energy_j\":null,\"energy_j_unavailable\":\"no counter\",\"percent\":0.0,\"rank\":0,"
         "\"index\":2,\"name\":\"a\",\"other\":null,\"note\":null,"
         "\"half\":null,\"half_unavailable\":\"nothing to halve\",\"places\":[]}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *json = shape_tell(&shape_told, &rows[i].told);
        char *text = json_dumps(json, JSON_COMPACT);

        assert_string_equal(text, rows[i].text);
        free(text);
        json_decref(json);
    }
}

/* Members of what is merged have its reason where they have none of their own. */
static void test_inherited(void **state)
{
    static const struct shape_field bare_rows[] = {{SHAPE_AT(place, name), TOLD_CHARS(place, name)}};
    static const struct shape bare_shape = {SHAPE_OF(place, bare_rows)};
    static const struct shape_field rows[] = {
        {SHAPE_AT(told, place), TOLD_MERGED(&bare_shape), TOLD_ELSE_AT(told, why)},
        {SHAPE_AT(told, other), TOLD_POINTED(&bare_shape), .need = SHAPE_SPARING},
    };
    static const struct shape shape = {SHAPE_OF(told, rows)};
    static const struct place nameless = {.name = ""};
    static const struct told told[] = {{.place = &nameless, .why = "lost"},
                                       {.place = &nameless, .other = &nameless}};
    json_t *json = shape_tell_list(&shape, told, COUNT(told));
    char *text = json_dumps(json, JSON_COMPACT);

    (void)state;
    assert_string_equal(text, "[{\"name\":null,\"name_unavailable\":\"lost\"},"
                              "{\"name\":null,\"other\":{\"name\":null}}]");
    free(text);
    json_decref(json);
    json = shape_tell_texts((const char *const[]){"a", "\xff"}, 2);
    text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, "[\"a\",\"?\"]");
    free(text);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tell), cmocka_unit_test(test_inherited)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
