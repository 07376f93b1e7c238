/* SPDX-License-Identifier: Apache-2.0 */
/* Structs through JSON and back: what is written is read again, and nothing else is. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/core/definition.h"
#include "job/core/shapes.h"
#include "shape_kinds.h"

enum { ROUNDS = 40, ARENA_MAX = 8 << 20, ENTRIES = KINDS_PAIRS };

static const struct shape *const shapes[] = {
    &shape_definition, &shape_definition_asked,
    &shape_setting,    &shape_question,
    &shape_profile,    &shape_beat,
    &shape_epoch,      &shape_end,
    &shape_registered, &shape_proposal,
    &shape_choice,     &shape_answered,
    &shape_ended,      &shape_expired,
    &shape_list,       &shape_shown,
    &shape_failure,    &shape_objective,
    &shape_hardware,   &shape_origin,
    &shape_point,      &shape_summary,
    &shape_event,      &shape_kinds,
};

/* ---- structs of any content that their shape allows ---- */

struct making {
    uint64_t random;
    struct arena arena;
    json_t *json; /* for members that are any */
};

static void make_struct(struct making *making, const struct shape *shape, char *out);

static uint64_t make_whole(struct making *making, const struct shape_field *field)
{
    switch (test_below(&making->random, 4)) {
    case 0:
        return field->least;
    case 1:
        return field->most;
    default:
        return field->least +
               (uint64_t)(test_uniform(&making->random) * (double)(field->most - field->least) / 2);
    }
}

static double make_number(struct making *making, const struct shape_field *field, bool entry)
{
    const struct shape_bounds *bounds = shape_bounds_of(field->range);
    double least = isfinite(bounds->least) ? bounds->least : -1e9,
           most = isfinite(bounds->most) ? bounds->most : 1e12;

    if (field->null != SHAPE_NOT_NULL && !entry && test_below(&making->random, 4) == 0)
        return shape_of_null(field->null);
    return least + (most - least) * (test_uniform(&making->random) * 0.999 + 1e-6);
}

static const char *make_text(struct making *making, const struct shape_field *field)
{
    static const char *const texts[] = {"", "a", "\xc3\xa4\xe2\x82\xac \"quoted\" \\ /", "%s"};
    char *text;

    if (field->free_text && test_below(&making->random, 3) == 0)
        return "two\n\tlines\x01";
    if (test_below(&making->random, 3) > 0 || field->longest > 10000)
        return texts[test_below(&making->random, field->longest < 16 ? 2 : COUNT(texts))];
    text = arena_alloc(&making->arena, field->longest + 1, 1);
    assert_non_null(text);
    memset(text, 'x', field->longest);
    return text;
}

static size_t make_list(struct making *making, const struct shape_field *field, char *out)
{
    size_t count = test_below(&making->random, ENTRIES + 1);
    size_t size = shape_inside(field) != NULL    ? field->shape->size
                  : field->kind == SHAPE_NUMBERS ? sizeof(double)
                                                 : sizeof(uint32_t);
    char *entries = out;

    if (field->kind != SHAPE_STRUCTS_HERE) {
        entries = arena_alloc(&making->arena, ENTRIES, size);
        assert_non_null(entries);
        memcpy(out, &entries, sizeof entries);
    }
    for (size_t i = 0; i < count; i++) {
        double number = make_number(making, field, true);
        uint32_t whole = (uint32_t)make_whole(making, field);

        if (shape_inside(field) != NULL)
            make_struct(making, field->shape, entries + i * size);
        else if (field->kind == SHAPE_NUMBERS)
            memcpy(entries + i * size, &number, sizeof number);
        else
            memcpy(entries + i * size, &whole, sizeof whole);
    }
    return count;
}

static void make_value(struct making *making, const struct shape_field *field, char *from)
{
    char *out = from + field->at;
    uint64_t whole;
    uint32_t narrow;
    double number;
    const char *text;
    size_t count;
    json_t *json;

    switch (field->kind) {
    case SHAPE_U32:
    case SHAPE_I32:
        narrow = (uint32_t)make_whole(making, field);
        memcpy(out, &narrow, sizeof narrow);
        break;
    case SHAPE_U64:
    case SHAPE_I64:
        whole = make_whole(making, field);
        memcpy(out, &whole, sizeof whole);
        break;
    case SHAPE_SIZE:
        count = (size_t)make_whole(making, field);
        memcpy(out, &count, sizeof count);
        break;
    case SHAPE_NUMBER:
        number = make_number(making, field, false);
        memcpy(out, &number, sizeof number);
        break;
    case SHAPE_BOOL:
        *(bool *)out = test_below(&making->random, 2) == 1;
        break;
    case SHAPE_WORD:
        narrow = test_below(&making->random, (uint32_t)field->word_count);
        memcpy(out, &narrow, sizeof narrow);
        break;
    case SHAPE_TEXT:
        text = test_below(&making->random, 4) == 0 ? NULL : make_text(making, field);
        memcpy(out, &text, sizeof text);
        break;
    case SHAPE_CHARS:
        snprintf(out, field->longest + 1, "%s", make_text(making, field));
        break;
    case SHAPE_OBJECT:
        text = "{\"a\":[1,2.5,null],\"b\":{}}";
        memcpy(out, &text, sizeof text);
        break;
    case SHAPE_JSON:
    case SHAPE_MERGED:
    case SHAPE_POINTED:
    case SHAPE_MADE:
    case SHAPE_JSON_OBJECT:
        json = making->json;
        memcpy(out, &json, sizeof json);
        break;
    case SHAPE_CODED:
        *(uint64_t *)out = test_below(&making->random, 1000);
        break;
    case SHAPE_STRUCT:
        make_struct(making, field->shape, out);
        break;
    case SHAPE_U32S:
    case SHAPE_NUMBERS:
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        count = make_list(making, field, out);
        memcpy(from + field->beside, &count, sizeof count);
        break;
    case SHAPE_TEXTS: /* test_shape_foreign.c has these */
    case SHAPE_MAP:
    case SHAPE_REST:
        break;
    }
    if (field->need == SHAPE_FLAGGED)
        *(bool *)(from + field->beside) = test_below(&making->random, 2) == 1;
}

static void make_struct(struct making *making, const struct shape *shape, char *out)
{
    for (size_t i = 0; i < shape->count; i++)
        make_value(making, &shape->fields[i], out);
}

/* ---- there and back ---- */

static json_t *write_json(const struct shape *shape, const void *from)
{
    struct fly_error error = {.text = ""};
    json_t *json = NULL;

    if (shape_write(shape, from, &json, &error) < 0)
        fail_msg("%s: %s", shape->name, error.text);
    return json;
}

static void test_round_trips(void **state)
{
    struct making making = {.random = 7, .json = json_pack("{s:[i,{}]}", "any", 1)};

    (void)state;
    for (size_t i = 0; i < COUNT(shapes) * ROUNDS; i++) {
        const struct shape *shape = shapes[i / ROUNDS];
        char *made = calloc(1, shape->size), *read = calloc(1, shape->size), *text;
        struct fly_error error = {.text = ""};
        json_t *json, *parsed, *again;

        arena_init(&making.arena, ARENA_MAX);
        make_struct(&making, shape, made);
        json = write_json(shape, made);
        text = json_dumps(json, 0);
        if (shape_parse(text, strlen(text), &parsed, &error) < 0 ||
            shape_read(shape, parsed, SHAPE_STRICT, &making.arena, read, &error) < 0)
            fail_msg("%s: %s of %s", shape->name, error.text, text);
        again = write_json(shape, read);
        if (!json_equal(json, again))
            fail_msg("%s: %s became %s", shape->name, text, json_dumps(again, 0));
        json_decref(json);
        json_decref(parsed);
        json_decref(again);
        arena_deinit(&making.arena);
        free(made);
        free(read);
        free(text);
    }
    json_decref(making.json);
}

/* Each member: left out, it is named or has its default; null or of another kind, it is named or is fine. */
static void check_member(struct making *making, const struct shape *shape, const struct shape_field *field,
                         json_t *json)
{
    static const char *const values[] = {"null", "true", "-1", "1e400", "\"\\u0001\"", "[[]]", "{\"zz\":1}"};
    char *read = calloc(1, shape->size);

    for (size_t i = 0; i <= COUNT(values); i++) {
        json_t *changed = json_copy(json);
        struct fly_error error = {.text = ""};
        int code;

        if (i == COUNT(values))
            json_object_del(changed, field->name);
        else
            json_object_set_new(changed, field->name, json_loads(values[i], JSON_DECODE_ANY, NULL));
        code = shape_read(shape, changed, SHAPE_STRICT, &making->arena, read, &error);
        if (code < 0 && strstr(error.text, field->name) == NULL)
            fail_msg("%s.%s: '%s'", shape->name, field->name, error.text);
        if (i == COUNT(values))
            assert_int_equal(code < 0, field->need == SHAPE_NEEDED);
        if (i == 0)
            assert_int_equal(code < 0, field->null == SHAPE_NOT_NULL && field->kind != SHAPE_JSON);
        json_decref(changed);
    }
    free(read);
}

static void test_members(void **state)
{
    struct making making = {.random = 11, .json = json_pack("{s:[i,{}]}", "any", 1)};

    (void)state;
    arena_init(&making.arena, ARENA_MAX);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        char *made = calloc(1, shapes[i]->size);
        json_t *json;

        make_struct(&making, shapes[i], made);
        for (size_t k = 0; k < shapes[i]->count; k++) {
            if (shapes[i]->fields[k].need == SHAPE_FLAGGED)
                *(bool *)(made + shapes[i]->fields[k].beside) = true;
        }
        json = write_json(shapes[i], made);
        for (size_t k = 0; k < shapes[i]->count; k++)
            check_member(&making, shapes[i], &shapes[i]->fields[k], json);
        json_decref(json);
        free(made);
    }
    arena_deinit(&making.arena);
    json_decref(making.json);
}

/* Members of later are not there where they say nothing: a service of before refuses what it does not know.
 */
static void test_spared(void **state)
{
    static const uint32_t size = 8;
    struct fly_job_definition definition = job_definition_default;
    const struct job_epoch epochs[] = {{.attempt = 1, .epoch = 1, .reference_per_kwh = NAN},
                                       {.attempt = 1, .epoch = 1, .reference_per_kwh = 230.5}};
    json_t *json;

    (void)state;
    definition.name = "job";
    definition.batch_sizes = &size;
    definition.batch_count = 1;
    definition.default_batch_size = 8;
    definition.max_epochs = 1;
    for (size_t i = 0; i < 3; i++) {
        definition.grid = i == 0 ? NULL : i == 1 ? "" : "gb:national";
        json = write_json(&shape_definition, &definition);
        assert_int_equal(json_object_get(json, "grid") != NULL, i == 2);
        assert_non_null(json_object_get(json, "client"));
        json_decref(json);
    }
    for (size_t i = 0; i < COUNT(epochs); i++) {
        json = write_json(&shape_epoch, &epochs[i]);
        assert_int_equal(json_object_get(json, "reference_per_kwh") != NULL, i == 1);
        json_decref(json);
    }
}

static int read_text(const struct shape *shape, const char *text, enum shape_manners manners, void *out,
                     struct arena *arena, struct fly_error *out_error)
{
    json_t *json = NULL;
    int code = shape_parse(text, strlen(text), &json, out_error);

    if (code == 0)
        code = shape_read(shape, json, manners, arena, out, out_error);
    json_decref(json);
    return code;
}

static void test_defaults(void **state)
{
    struct fly_job_definition definition;
    struct job_question question;
    struct job_beat beat;
    struct fly_error error;
    struct arena arena;

    (void)state;
    arena_init(&arena, ARENA_MAX);
    assert_int_equal(read_text(&shape_definition_asked,
                               "{\"batch_sizes\":[8],\"default_batch_size\":8,\"max_epochs\":3}",
                               SHAPE_STRICT, &definition, &arena, &error),
                     0);
    assert_string_equal(definition.policy, ""); /* nobody named one */
    assert_string_equal(definition.client, "");
    check_double(definition.beta, 2.0);
    assert_true(isnan(definition.objective.max_slowdown) && isnan(definition.objective.eta)); /* likewise */
    assert_int_equal(definition.explorations, 2);
    assert_int_equal(read_text(&shape_beat, "{\"attempt\":1}", SHAPE_STRICT, &beat, &arena, &error), 0);
    assert_true(isnan(beat.energy_j) && isnan(beat.time_s));
    assert_int_equal(
        read_text(
            &shape_question,
            "{\"hardware\":{\"gpu_model\":\"G\",\"gpu_count\":1,\"world_size\":1,\"later\":1},\"newer\":0}",
            SHAPE_LENIENT, &question, &arena, &error),
        0);
    assert_string_equal(question.origin.user, "");
    assert_true(isnan(question.ran_limit_w));
    assert_int_equal(question.hardware.limit_count, 0);
    arena_deinit(&arena);
}

/* What could not be read again is not written. */
static void test_unwritable(void **state)
{
    const struct job_epoch epochs[] = {
        {.attempt = 1, .epoch = 1, .energy_j = INFINITY},
        {.attempt = 1, .epoch = 1, .energy_j = -1.0},
        {.attempt = 1, .epoch = 1, .metric = INFINITY},
        {.attempt = 0, .epoch = 1},
    };
    static const char *const names[COUNT(epochs)] = {"energy_j", "energy_j", "metric", "attempt"};
    struct job_end end = {.attempt = 1, .outcome = TRIAL_EXPIRED};
    struct fly_error error;
    json_t *json;

    (void)state;
    for (size_t i = 0; i < COUNT(epochs); i++) {
        assert_int_equal(shape_write(&shape_epoch, &epochs[i], &json, &error), FLY_EDATA);
        check_contains(error.text, names[i]);
    }
    assert_int_equal(shape_write(&shape_end, &end, &json, &error), FLY_EDATA);
    end = (struct job_end){.attempt = 1, .text = "\xff"};
    assert_int_equal(shape_write(&shape_end, &end, &json, &error), FLY_EDATA);
    check_contains(error.text, "UTF-8");
}

/* ---- schemas ---- */

static void test_schemas(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        json_t *schema = shape_schema(shapes[i], true), *properties = json_object_get(schema, "properties");
        const char *name;
        json_t *property;

        assert_int_equal(json_object_size(properties), shapes[i]->count);
        json_object_foreach(properties, name, property)
        {
            const char *about = json_string_value(json_object_get(property, "description"));

            if (about == NULL || about[0] == '\0' ||
                (strcmp(name, "any") != 0 && json_object_get(property, "type") == NULL &&
                 json_object_get(property, "$ref") == NULL))
                fail_msg("%s.%s has no description or type", shapes[i]->name, name);
        }
        json_decref(schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_members), cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_unwritable),  cmocka_unit_test(test_schemas), cmocka_unit_test(test_spared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
