/* SPDX-License-Identifier: Apache-2.0 */
/* Reads facts from a file and as a document, and checks what the shapes cannot express. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/patient_file.h"
#include "device/recording/facts_private.h"

enum { ARENA_BYTES_MAX = 1 << 25, PIECE = 4096 };

/* Above this, doubles cannot represent every whole number. */
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

/* Fails with "a.facts:17: member 'devices[0].kind': expected ..., found 7; ..." */
static int refuse(const char *name, int code, const struct shape_fault *fault, struct fly_error *out_error)
{
    static const char next[] = "name a file that 'flyball record --facts' wrote";

    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    if (fault->no_json)
        return error_set(out_error, FLY_EDATA, "%.120s:%zu:%zu: expected a JSON document: %.120s; %s", name,
                         fault->line, fault->column, fault->expected, next);
    return error_set(out_error, code, "%.120s:%zu: member '%.120s': expected %.160s%s%s; %s", name,
                     fault->line > 0 ? fault->line : 1, fault->path, fault->expected,
                     fault->found[0] != '\0' ? ", found " : "", fault->found, next);
}

/* Returns FLY_EDATA, with what is expected at the path. */
__attribute__((format(printf, 3, 4))) static int wrong(struct shape_fault *out_fault, const char *expected,
                                                       const char *path, ...)
{
    va_list values;

    va_start(values, path);
    vsnprintf(out_fault->path, sizeof out_fault->path, path, values);
    va_end(values);
    snprintf(out_fault->expected, sizeof out_fault->expected, "%s", expected);
    return FLY_EDATA;
}

static bool names_backend(const struct facts *facts, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < facts->backend_count; i++)
        found = found || strcmp(facts->backends[i].name, name) == 0;
    return found;
}

/* An answer has a value if it was read, and each quantity occurs once. */
static int check_answers(const struct facts_device *device, size_t place, struct shape_fault *out_fault)
{
    quantity_set seen = 0;

    for (size_t i = 0; i < device->answer_count; i++) {
        const struct facts_answer *answer = &device->answers[i];

        if ((seen & QUANTITY_BIT(answer->quantity)) != 0)
            return wrong(out_fault, "each quantity once", "devices[%zu].answers[%zu].quantity", place, i);
        if ((answer->state == READING_OK) != !isnan(answer->value) || fabs(answer->value) > value_max)
            return wrong(out_fault, "a number up to 2^53 with the state 'ok', else null",
                         "devices[%zu].answers[%zu].value", place, i);
        seen |= QUANTITY_BIT(answer->quantity);
    }
    return 0;
}

static int check_device(const struct facts *facts, size_t place, struct shape_fault *out_fault)
{
    const struct facts_device *device = &facts->devices[place];

    if (!names_backend(facts, device->backend))
        return wrong(out_fault, "the name of one of the back ends", "devices[%zu].backend", place);
    if (device->pseudonym[0] == '\0')
        return wrong(out_fault, "what tells the device from others", "devices[%zu].pseudonym", place);
    for (size_t i = 0; i < place; i++) {
        if (strcmp(facts->devices[i].pseudonym, device->pseudonym) == 0)
            return wrong(out_fault, "one that no other device has", "devices[%zu].pseudonym", place);
    }
    return check_answers(device, place, out_fault);
}

static int read_facts(const char *text, size_t length, struct facts *facts, struct shape_fault *out_fault)
{
    struct arena arena = facts->arena;
    int code = shape_read_text(&facts_shape, text, length, SHAPE_LENIENT, &arena, facts, out_fault, NULL);

    facts->arena = arena;
    if (code < 0)
        return code;
    for (size_t i = 0; code == 0 && i < facts->device_count; i++)
        code = check_device(facts, i, out_fault);
    if (code < 0)
        shape_fault_locate(out_fault, text, length);
    return code;
}

int facts_parse(const char *name, const char *text, size_t length, struct facts **out_facts,
                struct fly_error *out_error)
{
    struct shape_fault fault = {.line = 0};
    struct facts *facts = facts_new();
    int code;

    if (facts == NULL)
        return error_no_memory(out_error);
    code = read_facts(text, length, facts, &fault);
    if (code < 0) {
        facts_free(facts);
        return refuse(name, code, &fault, out_error);
    }
    *out_facts = facts;
    return 0;
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
