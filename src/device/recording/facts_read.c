/* SPDX-License-Identifier: Apache-2.0 */
/* Facts from a file and as a document, and what has to hold beyond what the shapes say. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/patient_file.h"
#include "device/recording/facts_private.h"
#include "shapes/json_place.h"

enum { ARENA_BYTES_MAX = 1 << 25, PATH_MAX_BYTES = 256, PIECE = 4096 };

/* Beyond this a value in a double is no whole number any more. */
static const double value_max = 9007199254740992.0;

struct facts *facts_new(void)
{
    struct facts *facts = calloc(1, sizeof *facts);

    if (facts != NULL)
        arena_init(&facts->arena, ARENA_BYTES_MAX);
    return facts;
}

void facts_free(struct facts *facts)
{
    if (facts == NULL)
        return;
    arena_deinit(&facts->arena);
    free(facts);
}

bool facts_begin(const char *text, size_t length)
{
    return memmem(text, length, "\"flyball.facts/", strlen("\"flyball.facts/")) != NULL;
}

/* "devices[1].kind" as "/devices/1/kind". */
static void as_pointer(const char *path, size_t length, char pointer[PATH_MAX_BYTES])
{
    size_t written = 0;

    pointer[written++] = '/';
    for (size_t i = 0; i < length && written < PATH_MAX_BYTES - 1; i++) {
        if (path[i] != ']')
            pointer[written++] = (char)(path[i] == '.' || path[i] == '[' ? '/' : path[i]);
    }
    pointer[written] = '\0';
}

/* The line that an error of the shapes is about: its own number, or that of the member it names. */
static size_t line_of(const char *text, const char *message)
{
    static const char before[] = "member '", line[] = "line ";
    char pointer[PATH_MAX_BYTES];

    if (strncmp(message, line, strlen(line)) == 0)
        return strtoul(message + strlen(line), NULL, 10);
    if (strncmp(message, before, strlen(before)) != 0)
        return 1;
    message += strlen(before);
    as_pointer(message, strcspn(message, "'"), pointer);
    return json_place_line(text, pointer);
}

static int refuse(const char *name, const char *text, const struct fly_error *why,
                  struct fly_error *out_error)
{
    if (why->code == FLY_ENOMEM)
        return error_no_memory(out_error);
    return error_set(out_error, why->code == FLY_ELIMIT ? FLY_ELIMIT : FLY_EDATA,
                     "%.120s:%zu: %.240s; name a file that 'flyball record --facts' wrote", name,
                     line_of(text, why->text), why->text);
}

static bool names_backend(const struct facts *facts, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < facts->backend_count; i++)
        found = found || strcmp(facts->backends[i].name, name) == 0;
    return found;
}

/* An answer has a value when it was read, and stands there once. */
static int check_answers(const struct facts_device *device, size_t place, struct fly_error *out_error)
{
    quantity_set seen = 0;

    for (size_t i = 0; i < device->answer_count; i++) {
        const struct facts_answer *answer = &device->answers[i];

        if ((seen & QUANTITY_BIT(answer->quantity)) != 0)
            return error_set(out_error, FLY_EDATA,
                             "member 'devices[%zu].answers[%zu].quantity': expected each quantity once",
                             place, i);
        if ((answer->state == READING_OK) != !isnan(answer->value) || fabs(answer->value) > value_max)
            return error_set(out_error, FLY_EDATA,
                             "member 'devices[%zu].answers[%zu].value': expected a number up to 2^53 with "
                             "the state 'ok', else null",
                             place, i);
        seen |= QUANTITY_BIT(answer->quantity);
    }
    return 0;
}

static int check_device(const struct facts *facts, size_t place, struct fly_error *out_error)
{
    const struct facts_device *device = &facts->devices[place];

    if (!names_backend(facts, device->backend))
        return error_set(out_error, FLY_EDATA,
                         "member 'devices[%zu].backend': expected the name of one of the back ends", place);
    if (device->pseudonym[0] == '\0')
        return error_set(out_error, FLY_EDATA,
                         "member 'devices[%zu].pseudonym': expected what tells the device from others",
                         place);
    for (size_t i = 0; i < place; i++) {
        if (strcmp(facts->devices[i].pseudonym, device->pseudonym) == 0)
            return error_set(out_error, FLY_EDATA,
                             "member 'devices[%zu].pseudonym': expected one that no other device has", place);
    }
    return check_answers(device, place, out_error);
}

static int read_facts(json_t *json, struct facts *facts, struct fly_error *out_error)
{
    struct arena arena = facts->arena;
    struct facts head;
    int code = shape_read(&facts_head_shape, json, SHAPE_LENIENT, &arena, &head, out_error);

    if (code == 0 && strcmp(head.schema, FACTS_SCHEMA) != 0)
        code = error_set(out_error, FLY_EDATA, "member 'schema': expected '" FACTS_SCHEMA "'");
    if (code == 0)
        code = shape_read(&facts_shape, json, SHAPE_LENIENT, &arena, facts, out_error);
    facts->arena = arena;
    for (size_t i = 0; code == 0 && i < facts->device_count; i++)
        code = check_device(facts, i, out_error);
    return code;
}

int facts_parse(const char *name, const char *text, size_t length, struct facts **out_facts,
                struct fly_error *out_error)
{
    struct facts *facts = facts_new();
    struct fly_error why;
    json_t *json = NULL;
    int code;

    if (facts == NULL)
        return error_no_memory(out_error);
    code = shape_parse(text, length, &json, &why);
    if (code == 0)
        code = read_facts(json, facts, &why);
    if (code < 0)
        code = refuse(name, text, &why, out_error);
    json_decref(json);
    if (code < 0)
        facts_free(facts);
    else
        *out_facts = facts;
    return code;
}

int facts_load_stream(const char *name, const char *head, size_t head_length, FILE *stream,
                      struct facts **out_facts, struct fly_error *out_error)
{
    struct buffer text;
    char piece[PIECE];
    size_t count;
    int code;

    buffer_init(&text, FACTS_BYTES_MAX);
    buffer_append(&text, head, head_length);
    while (text.error == 0 && (count = fread(piece, 1, sizeof piece, stream)) > 0)
        buffer_append(&text, piece, count);
    if (ferror(stream))
        code = error_set(out_error, FLY_EREAD, "%s: reading failed: %s; copy the file to a sound disk", name,
                         patient_file_cause(errno));
    else if (text.error == FLY_ELIMIT)
        code = error_set(out_error, FLY_ELIMIT,
                         "%s: more than %d bytes; name a file that 'flyball record --facts' wrote", name,
                         FACTS_BYTES_MAX);
    else if (text.error < 0)
        code = error_no_memory(out_error);
    else
        code = facts_parse(name, text.data, text.length, out_facts, out_error);
    buffer_deinit(&text);
    return code;
}

int facts_document(const struct facts *facts, json_t **out_document, struct fly_error *out_error)
{
    return shape_write(&facts_shape, facts, out_document, out_error);
}
