/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded profiles as 'flyball profile' writes them: its report, and the file for 'flyball run --tune'. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/patient_file.h"
#include "emulator/measured.h"
#include "shapes/shape_rows.h"

enum { FILE_MAX = 16 << 20, ARENA_MAX = 32 << 20, GPUS_MAX = 128 };

static const char report_schema[] = "flyball.profile/", saved_format[] = "flyball power profile 1";

/* A point of either; NAN: null. */
struct point {
    double limit_w, ceiling_mhz, power_w, time_s;
    const char *mark;
};
static const struct point point_usual = {.ceiling_mhz = NAN};

#define NUMBER(title, member) \
    SHAPE_AT_AS(title, point, member), SHAPE_IS_NUMBER(SHAPE_ABOVE_0), .null = SHAPE_UNKNOWN
static const struct shape_field report_rows[] = {
    {NUMBER("limit_w", limit_w)},
    {NUMBER("ceiling_mhz", ceiling_mhz), .need = SHAPE_OPTIONAL},
    {NUMBER("power_w", power_w)},
    {NUMBER("step_time_s", time_s)},
    {SHAPE_AT(point, mark), SHAPE_IS_TEXT(UINT32_MAX)},
};
static const struct shape_field saved_rows[] = {
    {SHAPE_AT(point, limit_w), SHAPE_IS_NUMBER(SHAPE_ABOVE_0)},
    {SHAPE_AT(point, power_w), SHAPE_IS_NUMBER(SHAPE_ABOVE_0)},
    {SHAPE_AT(point, time_s), SHAPE_IS_NUMBER(SHAPE_ABOVE_0)},
};
static const struct shape report_point = {SHAPE_OF(point, report_rows), .defaults = &point_usual};
static const struct shape saved_point = {SHAPE_OF(point, saved_rows)};

struct gpu {
    const char *name;
};
static const struct shape_field gpu_rows[] = {{SHAPE_AT(gpu, name), SHAPE_IS_TEXT(UINT32_MAX)}};
static const struct shape gpu_shape = {SHAPE_OF(gpu, gpu_rows)};

/* What is taken of either document. */
struct document {
    const char *schema, *format, *knob, *gpu_model;
    const struct gpu *gpus;
    size_t gpu_list_count;
    uint32_t gpu_count;
    const struct point *points;
    size_t point_count;
};

static const struct shape_field head_rows[] = {
    {SHAPE_AT(document, schema), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .loose = true},
    {SHAPE_AT(document, format), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .loose = true},
    {SHAPE_AT(document, knob), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .loose = true},
};
static const struct shape_field report_document_rows[] = {
    {SHAPE_AT(document, gpus), SHAPE_IS_STRUCTS(&gpu_shape, GPUS_MAX, document, gpu_list_count)},
    {SHAPE_AT_AS("rows", document, points), SHAPE_IS_STRUCTS(&report_point, 4096, document, point_count)},
};
static const struct shape_field saved_document_rows[] = {
    {SHAPE_AT(document, gpu_model), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(document, gpu_count), SHAPE_IS_U32(1, UINT32_MAX)},
    {SHAPE_AT(document, points), SHAPE_IS_STRUCTS(&saved_point, 4096, document, point_count)},
};
static const struct shape head_shape = {SHAPE_OF(document, head_rows)};
static const struct shape report_shape = {SHAPE_OF(document, report_document_rows)};
static const struct shape saved_shape = {SHAPE_OF(document, saved_document_rows)};

/* A text, how it is read, and where its texts and lists go. */
struct source {
    const char *path;
    struct buffer text;
    struct arena arena;
};

static int refuse(const struct source *source, int code, const struct shape_fault *fault,
                  struct fly_error *out_error)
{
    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    if (fault->no_json)
        return error_set(out_error, FLY_EDATA, "%s:%zu: no JSON: %.150s; correct the file", source->path,
                         fault->line, fault->expected);
    return error_set(out_error, FLY_EDATA,
                     "%s:%zu: field '%.100s': expected %.150s, found %s; correct the file", source->path,
                     fault->line, fault->path, fault->expected, fault->found);
}

static int read_as(struct source *source, const struct shape *shape, struct document *document,
                   struct fly_error *out_error)
{
    struct shape_fault fault = {.line = 0};
    int code = shape_read_text(shape, source->text.data, source->text.length, SHAPE_LENIENT, &source->arena,
                               document, &fault, NULL);

    return code < 0 ? refuse(source, code, &fault, out_error) : 0;
}

static int add_points(const struct source *source, const struct document *document, double gpus,
                      struct measured *measured, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < document->point_count && code == 0; i++) {
        const struct point *at = &document->points[i];
        struct fly_power_point point = {at->limit_w, at->power_w / gpus, at->time_s};

        if (at->ceiling_mhz > 0.0 || (at->mark != NULL && strcmp(at->mark, "valid") != 0))
            continue;
        if (isnan(at->limit_w) || isnan(at->power_w) || isnan(at->time_s))
            return error_set(out_error, FLY_EDATA,
                             "%s: field 'rows[%zu]': expected numbers above 0 in a valid row, found null; "
                             "correct the file",
                             source->path, i);
        code = measured_add(measured, &point, source->path, out_error);
    }
    return code;
}

static int take_report(struct source *source, struct measured *measured, struct fly_error *out_error)
{
    struct document document;
    int code = read_as(source, &report_shape, &document, out_error);

    if (code < 0)
        return code;
    if (document.gpu_list_count == 0)
        return error_set(out_error, FLY_EDATA,
                         "%s: field 'gpus': expected a GPU, found none; correct the file", source->path);
    snprintf(measured->gpu, sizeof measured->gpu, "%.90s", document.gpus[0].name);
    return add_points(source, &document, (double)document.gpu_list_count, measured, out_error);
}

static int take_saved(struct source *source, struct measured *measured, struct fly_error *out_error)
{
    struct document document;
    int code = read_as(source, &saved_shape, &document, out_error);

    if (code < 0)
        return code;
    snprintf(measured->gpu, sizeof measured->gpu, "%.90s", document.gpu_model);
    return add_points(source, &document, document.gpu_count, measured, out_error);
}

static int take(struct source *source, struct measured *measured, struct fly_error *out_error)
{
    struct document head;
    int code = read_as(source, &head_shape, &head, out_error);

    if (code < 0)
        return code;
    if (head.schema != NULL && strncmp(head.schema, report_schema, strlen(report_schema)) == 0)
        return take_report(source, measured, out_error);
    if (head.format == NULL || strcmp(head.format, saved_format) != 0)
        return error_set(
            out_error, FLY_EDATA,
            "%s: field 'schema': expected flyball.profile/3, or a field 'format' with '%s'; choose "
            "a file that 'flyball profile' or 'flyball record' wrote",
            source->path, saved_format);
    if (head.knob != NULL && head.knob[0] != '\0' && strcmp(head.knob, "power") != 0)
        return error_set(out_error, FLY_EDATA,
                         "%s: field 'knob': expected power, found %.20s; choose a profile of power limits",
                         source->path, head.knob);
    return take_saved(source, measured, out_error);
}

int measured_read_json(const char *path, struct measured *measured, struct fly_error *out_error)
{
    struct source source = {.path = path};
    int code;

    buffer_init(&source.text, FILE_MAX);
    arena_init(&source.arena, ARENA_MAX);
    measured->of_steps = true;
    code = patient_file_read_all(path, &source.text, out_error);
    if (code == 0)
        code = take(&source, measured, out_error);
    arena_deinit(&source.arena);
    buffer_deinit(&source.text);
    return code;
}
