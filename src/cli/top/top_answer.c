/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/top_answer.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/http_client.h"
#include "base/service_address.h"
#include "shapes/shape_rows.h"

enum { ANSWER_BYTES_MAX = 32 << 20, NAME_BYTES = 256, PATH_BYTES = 8192 };

static const double connect_s = 2, answer_s = 10;

/* ---- forms ---- */

#define REAL(type, member)                                                                                \
    {                                                                                                     \
        SHAPE_AT(type, member), SHAPE_IS_NUMBER(SHAPE_ANY), .need = SHAPE_OPTIONAL, .null = SHAPE_UNKNOWN \
    }
#define TEXT(type, member)                                                                               \
    {                                                                                                    \
        SHAPE_AT(type, member), SHAPE_IS_TEXT(PATH_BYTES), .need = SHAPE_OPTIONAL, .null = SHAPE_OR_NULL \
    }

/* The figures of a GPU that does not answer are null, or not there. */
struct figures {
    double power_w, power_limit_w, power_limit_enforced_w, temperature_c, utilization_percent;
};
static const struct shape_field figure_rows[] = {
    REAL(figures, power_w),       REAL(figures, power_limit_w),       REAL(figures, power_limit_enforced_w),
    REAL(figures, temperature_c), REAL(figures, utilization_percent),
};
static const struct shape shape_figures = {SHAPE_OF(figures, figure_rows)};

struct gpu {
    uint64_t index;
    const char *uuid, *name;
    struct figures figures;
    bool has_figures;
};
static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(gpu, index), SHAPE_IS_U64(0, UINT32_MAX)},
    TEXT(gpu, uuid),
    TEXT(gpu, name),
    {SHAPE_AT(gpu, figures), SHAPE_IS_STRUCT(&shape_figures), SHAPE_IF(gpu, has_figures),
     .null = SHAPE_AS_MISSING},
};
static const struct shape shape_gpu = {SHAPE_OF(gpu, gpu_rows)};

struct gpus {
    size_t count;
    struct gpu *gpus;
};
static const struct shape_field gpus_rows[] = {
    {SHAPE_AT(gpus, gpus), SHAPE_IS_STRUCTS(&shape_gpu, TOP_GPUS_MAX, gpus, count)},
};
static const struct shape shape_gpus = {SHAPE_OF(gpus, gpus_rows)};

static const char *const kinds[] = {"process", "idle", "shared", "unobserved"};
_Static_assert(sizeof kinds / sizeof kinds[0] == TOP_KINDS, "a word for each kind");

/* clang-format off */
#define TEXT_ROW(name, member) \
    {SHAPE_AT_AS(#member, top_usage, texts[TOP_TEXT_##name]), SHAPE_IS_TEXT(PATH_BYTES), .need = SHAPE_OPTIONAL, \
     .null = SHAPE_OR_NULL},
/* clang-format on */
static const struct shape_field usage_rows[] = {
    {SHAPE_AT(top_usage, kind), SHAPE_IS_WORD(kinds, TOP_KINDS)},
    {SHAPE_AT(top_usage, gpu), SHAPE_IS_U64(0, UINT32_MAX)},
    TEXT(top_usage, uuid),
    REAL(top_usage, pid),
    REAL(top_usage, uid),
    REAL(top_usage, started_unix_ms),
    REAL(top_usage, ended_unix_ms),
    TOP_TEXT_MAP(TEXT_ROW) REAL(top_usage, energy_j),
    REAL(top_usage, half_width_j),
    REAL(top_usage, time_s),
    REAL(top_usage, power_w),
    REAL(top_usage, memory_bytes),
};
static const struct shape shape_usage_row = {SHAPE_OF(top_usage, usage_rows)};

struct usage {
    size_t count;
    struct top_usage *rows;
};
static const struct shape_field usages_rows[] = {
    {SHAPE_AT(usage, rows), SHAPE_IS_STRUCTS(&shape_usage_row, TOP_ROWS_MAX, usage, count)},
};
static const struct shape shape_usage = {SHAPE_OF(usage, usages_rows)};

/* What the daemon says in place of an answer. */
struct trouble {
    const char *message;
};
static const struct shape_field trouble_rows[] = {TEXT(trouble, message)};
static const struct shape shape_trouble = {SHAPE_OF(trouble, trouble_rows)};
struct refusal {
    struct trouble error;
};
static const struct shape_field refusal_rows[] = {
    {SHAPE_AT(refusal, error), SHAPE_IS_STRUCT(&shape_trouble)}};
static const struct shape shape_refusal = {SHAPE_OF(refusal, refusal_rows)};

/* ---- reading ---- */

static int read_answer(const struct shape *shape, const char *what, const char *text, size_t length,
                       struct arena *arena, void *out_struct, struct fly_error *out_error)
{
    struct fly_error fault = {.code = 0};
    int code = shape_read_text(shape, text, length, SHAPE_LENIENT, arena, out_struct, NULL, &fault);

    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    return code == 0 ? 0
                     : error_set(out_error, FLY_EREAD, "the answer to '%s' is none of flyballd's: %s", what,
                                 fault.text);
}

static double known_limit_w(const struct figures *figures)
{
    return !isnan(figures->power_limit_enforced_w) ? figures->power_limit_enforced_w : figures->power_limit_w;
}

static int take_gpus(const struct gpus *from, struct arena *arena, struct top_answer *out_answer,
                     struct fly_error *out_error)
{
    static const struct figures unknown = {NAN, NAN, NAN, NAN, NAN};

    out_answer->gpus = arena_alloc(arena, from->count + 1, sizeof out_answer->gpus[0]);
    if (out_answer->gpus == NULL)
        return error_no_memory(out_error);
    out_answer->gpu_count = from->count;
    for (size_t i = 0; i < from->count; i++) {
        const struct gpu *gpu = &from->gpus[i];
        const struct figures *figures = gpu->has_figures ? &gpu->figures : &unknown;

        out_answer->gpus[i] = (struct top_gpu){.index = gpu->index,
                                               .uuid = gpu->uuid,
                                               .name = gpu->name,
                                               .power_w = figures->power_w,
                                               .power_limit_w = known_limit_w(figures),
                                               .temperature_c = figures->temperature_c,
                                               .utilization_percent = figures->utilization_percent};
    }
    return 0;
}

int top_answer_read(const char *gpus, size_t gpus_length, const char *usage, size_t usage_length,
                    struct arena *arena, struct top_answer *out_answer, struct fly_error *out_error)
{
    struct top_answer answer = {.gpu_count = 0};
    struct gpus machine = {.count = 0};
    struct usage rows = {.count = 0};
    int code = read_answer(&shape_gpus, "/v1/gpus", gpus, gpus_length, arena, &machine, out_error);

    if (code == 0)
        code = read_answer(&shape_usage, "/v1/usage", usage, usage_length, arena, &rows, out_error);
    if (code == 0)
        code = take_gpus(&machine, arena, &answer, out_error);
    if (code < 0)
        return code;
    answer.rows = rows.rows;
    answer.row_count = rows.count;
    *out_answer = answer;
    return 0;
}

/* ---- asking ---- */

static int refused(const char *daemon, const char *path, const struct http_answer *answer,
                   struct arena *arena, struct fly_error *out_error)
{
    struct refusal refusal = {{NULL}};
    const char *said = "";

    if (shape_read_text(&shape_refusal, answer->body.data, answer->body.length, SHAPE_LENIENT, arena,
                        &refusal, NULL, NULL) == 0 &&
        refusal.error.message != NULL)
        said = refusal.error.message;
    if (answer->status == 404)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "the daemon at '%s' does not answer '%s'; it is older than this program, or no flyballd", daemon,
            path);
    if (answer->status == 401 || answer->status == 403)
        return error_set(out_error, FLY_EPERM,
                         "the daemon at '%s' does not let you read: %s; ask its operator for a rule", daemon,
                         said);
    return error_set(out_error, FLY_EREAD, "the daemon at '%s' answered '%s' with status %d%s%s", daemon,
                     path, answer->status, said[0] != '\0' ? ": " : "", said);
}

static int ask(const char *daemon, const char *path, struct arena *arena, struct http_answer *out_answer,
               struct fly_error *out_error)
{
    char url[SERVICE_ADDRESS_MAX + NAME_BYTES];
    struct service_address address;
    struct http_request request = {.url = url,
                                   .answer_maximum = ANSWER_BYTES_MAX,
                                   .connect_timeout_s = connect_s,
                                   .total_timeout_s = answer_s,
                                   .past_proxies = true};
    struct fly_error fault = {.code = 0};
    int code = service_address_parse(daemon, &address, out_error);

    if (code < 0)
        return code;
    request.unix_socket = address.socket[0] != '\0' ? address.socket : NULL;
    snprintf(url, sizeof url, "%s%s", address.url, path);
    code = http_ask(&request, out_answer, &fault);
    if (code == FLY_ENOTFOUND)
        return error_set(
            out_error, code,
            "no daemon listens at '%s'; start it ('systemctl start flyballd'), or name its address with "
            "--daemon",
            daemon);
    if (code < 0)
        return error_set(out_error, code, "the daemon at '%s': %s", daemon, fault.text);
    if (out_answer->status == 200)
        return 0;
    code = refused(daemon, path, out_answer, arena, out_error);
    http_answer_deinit(out_answer);
    return code;
}

int top_ask(const char *daemon, struct arena *arena, struct top_answer *out_answer,
            struct fly_error *out_error)
{
    struct http_answer gpus, usage;
    int code = ask(daemon, "/v1/gpus", arena, &gpus, out_error);

    if (code < 0)
        return code;
    code = ask(daemon, "/v1/usage", arena, &usage, out_error);
    if (code == 0) {
        code = top_answer_read(gpus.body.data, gpus.body.length, usage.body.data, usage.body.length, arena,
                               out_answer, out_error);
        http_answer_deinit(&usage);
    }
    http_answer_deinit(&gpus);
    return code;
}
