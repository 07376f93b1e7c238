/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/top_group.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const struct shape_field figure_rows[] = {
    REAL(top_figures, power_w),
    REAL(top_figures, power_limit_w),
    REAL(top_figures, power_limit_enforced_w),
    REAL(top_figures, temperature_c),
    REAL(top_figures, utilization_percent),
};

static const struct shape shape_figures = {SHAPE_OF(top_figures, figure_rows)};

static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(top_gpu, index), SHAPE_IS_U64(0, UINT32_MAX)},
    TEXT(top_gpu, uuid),
    TEXT(top_gpu, name),
    REAL(top_gpu, leases),
    {SHAPE_AT(top_gpu, figures), SHAPE_IS_STRUCT(&shape_figures), SHAPE_IF(top_gpu, has_figures),
     .null = SHAPE_AS_MISSING},
};

static const struct shape shape_gpu = {SHAPE_OF(top_gpu, gpu_rows)};

static const struct shape_field gpus_rows[] = {
    {SHAPE_AT(top_answer, gpus), SHAPE_IS_STRUCTS(&shape_gpu, TOP_GPUS_MAX, top_answer, gpu_count)},
};

static const struct shape shape_gpus = {SHAPE_OF(top_answer, gpus_rows)};

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

static const struct shape_field usages_rows[] = {
    {SHAPE_AT(top_answer, rows), SHAPE_IS_STRUCTS(&shape_usage_row, TOP_ROWS_MAX, top_answer, row_count)},
};

static const struct shape shape_usage = {SHAPE_OF(top_answer, usages_rows)};

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

int top_answer_read(const char *gpus, size_t gpus_length, const char *usage, size_t usage_length,
                    struct arena *arena, struct top_answer *out_answer, struct fly_error *out_error)
{
    struct top_answer answer = {.gpu_count = 0}, rows = {.row_count = 0};
    int code = read_answer(&shape_gpus, "/v1/gpus", gpus, gpus_length, arena, &answer, out_error);

    if (code == 0)
        code = read_answer(&shape_usage, "/v1/usage", usage, usage_length, arena, &rows, out_error);
    if (code < 0)
        return code;
    for (size_t i = 0; i < answer.gpu_count; i++) {
        struct top_gpu *gpu = &answer.gpus[i];

        if (!gpu->has_figures)
            gpu->figures = (struct top_figures){NAN, NAN, NAN, NAN, NAN};
        if (!isnan(gpu->figures.power_limit_enforced_w))
            gpu->figures.power_limit_w = gpu->figures.power_limit_enforced_w;
    }
    answer.rows = rows.rows;
    answer.row_count = rows.row_count;
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

const char *const top_bys[] = {"process", "job", "pod", "user", "slurm", NULL};

_Static_assert(sizeof top_bys / sizeof top_bys[0] == TOP_BYS + 1, "a word for each");

const char *const top_sorts[] = {"power", "energy", NULL};

_Static_assert(sizeof top_sorts / sizeof top_sorts[0] == TOP_SORTS + 1, "a word for each");

enum { KEYS_MAX = 2, WORD_BITS = 64 };

/* In what the processes of a group agree; an unknown text agrees with an unknown one. */
static const struct key {
    size_t count;
    enum top_text texts[KEYS_MAX];
} keys[TOP_BYS] = {
    [TOP_BY_JOB] = {1, {TOP_TEXT_TRAINING_JOB}},
    [TOP_BY_POD] = {2, {TOP_TEXT_NAMESPACE, TOP_TEXT_POD}},
    [TOP_BY_USER] = {1, {TOP_TEXT_USER}},
    [TOP_BY_SLURM] = {1, {TOP_TEXT_SLURM_JOB}},
};

static int compare_texts(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "");
}

/* A user without a name is known by his number, and a pod without one by its uid. */
static int compare_rest(const struct top_usage *a, const struct top_usage *b, enum top_by by)
{
    if (by == TOP_BY_USER && a->texts[TOP_TEXT_USER] == NULL && !(isnan(a->uid) && isnan(b->uid)))
        return isnan(a->uid) ? -1 : isnan(b->uid) ? 1 : (a->uid > b->uid) - (a->uid < b->uid);
    if (by == TOP_BY_POD)
        return compare_texts(a->texts[TOP_TEXT_POD_UID], b->texts[TOP_TEXT_POD_UID]);
    return 0;
}

/* Orders rows so that those of a group stand together. */
static int compare_keys(const struct top_usage *a, const struct top_usage *b, enum top_by by)
{
    int order = (int)a->kind - (int)b->kind;

    for (size_t i = 0; order == 0 && a->kind == TOP_PROCESS && i < keys[by].count; i++)
        order = compare_texts(a->texts[keys[by].texts[i]], b->texts[keys[by].texts[i]]);
    if (order == 0 && a->kind == TOP_PROCESS)
        order = compare_rest(a, b, by);
    return order;
}

static int compare_rows(const void *a, const void *b, void *by)
{
    return compare_keys(*(const struct top_usage *const *)a, *(const struct top_usage *const *)b,
                        *(const enum top_by *)by);
}

static bool has_ended(const struct top_usage *row)
{
    return row->kind == TOP_PROCESS && !isnan(row->ended_unix_ms);
}

static void begin_group(const struct top_usage *row, struct top_group *out_group)
{
    *out_group = (struct top_group){.kind = row->kind,
                                    .uuid = row->uuid,
                                    .pid = row->pid,
                                    .uid = row->uid,
                                    .started_unix_ms = row->started_unix_ms,
                                    .memory_bytes = 0};
    memcpy(out_group->texts, row->texts, sizeof out_group->texts);
}

static void agree(struct top_group *group, const struct top_usage *row)
{
    for (size_t i = 0; i < TOP_TEXTS; i++)
        if (compare_texts(group->texts[i], row->texts[i]) != 0 || group->differs[i]) {
            group->texts[i] = NULL;
            group->differs[i] = true;
        }
    if (group->uuid == NULL || row->uuid == NULL || strcmp(group->uuid, row->uuid) != 0)
        group->uuid = NULL;
    if (group->uid != row->uid)
        group->uid = NAN;
    if (group->pid != row->pid || group->started_unix_ms != row->started_unix_ms)
        group->pid = group->started_unix_ms = NAN;
}

/* Adds what is there now. A driver may not say how much memory a process has; then the sum is not known. */
static void add_living(struct top_group *group, const struct top_usage *row)
{
    group->living++;
    if (isnan(row->power_w))
        group->missing_power++;
    group->power_w += row->power_w;
    if (row->kind == TOP_PROCESS)
        group->memory_bytes += row->memory_bytes;
}

/* What is not known apart from others' is in a row of kind shared, so the rest is still a sum. */
static void add_energy(struct top_group *group, const struct top_usage *row)
{
    if (isnan(row->energy_j)) {
        group->missing_energy++;
        return;
    }
    group->energy_j += row->energy_j;
    group->half_width_j += row->half_width_j;
}

static void add_row(struct top_group *group, const struct top_usage *row)
{
    if (group->processes > 0)
        agree(group, row);
    group->processes++;
    if (row->gpu < TOP_GPUS_MAX)
        group->gpus[row->gpu / WORD_BITS] |= (uint64_t)1 << (row->gpu % WORD_BITS);
    add_energy(group, row);
    group->time_s += row->time_s;
    if (!has_ended(row))
        add_living(group, row);
}

/* Other kinds than processes have no memory of their own. */
static void end_group(struct top_group *group)
{
    if (group->kind != TOP_PROCESS)
        group->memory_bytes = NAN;
    if (group->missing_energy == group->processes)
        group->energy_j = group->half_width_j = NAN;
    if (group->living == 0)
        group->power_w = group->memory_bytes = NAN;
}

static double value_of(const struct top_group *group, enum top_sort sort)
{
    double value = sort == TOP_SORT_POWER ? group->power_w : group->energy_j;

    return isnan(value) ? -INFINITY : value;
}

static int compare_groups(const void *a, const void *b, void *sort)
{
    const struct top_group *one = a, *two = b;
    enum top_sort first = *(const enum top_sort *)sort;
    int order = 0;

    for (int i = 0; order == 0 && i < TOP_SORTS; i++) {
        enum top_sort by = i == 0 ? first : (enum top_sort)(1 - (int)first);

        order = (value_of(two, by) > value_of(one, by)) - (value_of(two, by) < value_of(one, by));
    }
    if (order == 0)
        order = (int)one->kind - (int)two->kind;
    return order != 0 ? order : (one->pid > two->pid) - (one->pid < two->pid);
}

static void make_groups(const struct top_usage **rows, size_t count, const struct top_wish *wish,
                        struct top_groups *groups)
{
    for (size_t i = 0; i < count;) {
        struct top_group *group = &groups->groups[groups->count];
        size_t first = i;

        begin_group(rows[i], group);
        do
            add_row(group, rows[i++]);
        while (wish->by != TOP_BY_PROCESS && i < count && compare_keys(rows[first], rows[i], wish->by) == 0);
        end_group(group);
        if (group->living > 0 || wish->ended)
            groups->count++;
        else
            groups->hidden++;
    }
}

int top_group_make(const struct top_answer *answer, const struct top_wish *wish, struct arena *arena,
                   struct top_groups *out_groups, struct fly_error *out_error)
{
    const struct top_usage **rows = arena_alloc(arena, answer->row_count + 1, sizeof rows[0]);
    struct top_groups groups = {.count = 0};
    enum top_by by = wish->by;
    enum top_sort sort = wish->sort;

    groups.groups = arena_alloc(arena, answer->row_count + 1, sizeof groups.groups[0]);
    if (rows == NULL || groups.groups == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < answer->row_count; i++)
        rows[i] = &answer->rows[i];
    if (by != TOP_BY_PROCESS)
        qsort_r(rows, answer->row_count, sizeof rows[0], compare_rows, &by);
    make_groups(rows, answer->row_count, wish, &groups);
    qsort_r(groups.groups, groups.count, sizeof groups.groups[0], compare_groups, &sort);
    *out_groups = groups;
    return 0;
}

static bool has_gpu(const struct top_group *group, unsigned index)
{
    return index < TOP_GPUS_MAX && (group->gpus[index / WORD_BITS] >> (index % WORD_BITS) & 1) != 0;
}

const char *top_gpus_text(const struct top_group *group, char text[TOP_GPUS_TEXT_MAX])
{
    size_t length = 0;

    text[0] = '\0';
    for (unsigned first = 0; first < TOP_GPUS_MAX; first++) {
        unsigned last = first;

        if (!has_gpu(group, first))
            continue;
        while (has_gpu(group, last + 1))
            last++;
        length += (size_t)snprintf(text + length, TOP_GPUS_TEXT_MAX - length,
                                   last > first ? "%s%u-%u" : "%s%u", length > 0 ? "," : "", first, last);
        first = last;
    }
    return text;
}
