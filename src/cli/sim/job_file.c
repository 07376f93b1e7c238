/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/job_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/order.h"
#include "base/number.h"
#include "base/text/number_list.h"
#include "base/words.h"
#include "cli/frame/config_file.h"
#include "model/job_spec.h"

enum { FIELD_COUNT = 8, WHERE_MAX = 512 };

enum field_kind { FIELD_TEXT, FIELD_NUMBER, FIELD_COUNT_FROM_1, FIELD_SIZES };

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset; /* in struct job_description */
};

#define FIELD(name, kind, member)                            \
    {                                                        \
        name, kind, offsetof(struct job_description, member) \
    }
static const struct field fields[FIELD_COUNT] = {
    FIELD("dataset", FIELD_TEXT, dataset),
    FIELD("network", FIELD_TEXT, network),
    FIELD("optimizer", FIELD_TEXT, optimizer),
    FIELD("target_metric", FIELD_NUMBER, target_metric),
    FIELD("max_epochs", FIELD_COUNT_FROM_1, max_epochs),
    FIELD("default_batch_size", FIELD_COUNT_FROM_1, default_batch_size),
    FIELD("batch_sizes", FIELD_SIZES, batch_sizes),
    FIELD("untold", FIELD_TEXT, untold),
};

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    }
    return NULL;
}

static int set_sizes(struct job_list *list, struct job_description *job, const char *value,
                     struct fly_error *out_error)
{
    uint32_t *sizes;
    size_t count;
    int code = number_list_parse(value, 1, JOB_BATCHES_MAX, &list->arena, &sizes, &count, out_error);

    if (code < 0)
        return code;
    qsort(sizes, count, sizeof sizes[0], order_u32);
    job->batch_sizes = sizes;
    job->batch_count = count;
    return 0;
}

static int set_text(struct job_list *list, const char **member, const char *value,
                    struct fly_error *out_error)
{
    const char *text = arena_strdup(&list->arena, value);

    if (*value == '\0')
        return error_set(out_error, FLY_EUSAGE, "a name");
    if (text == NULL)
        return error_no_memory(out_error);
    *member = text;
    return 0;
}

static int set_count(uint32_t *member, const char *value, struct fly_error *out_error)
{
    uint64_t count;

    if (!number_parse_u64(value, UINT32_MAX, &count) || count == 0)
        return error_set(out_error, FLY_EUSAGE, "a whole number from 1");
    *member = (uint32_t)count;
    return 0;
}

int job_file_set_field(struct job_list *list, struct job_description *job, const char *field_name,
                       const char *value, struct fly_error *out_error)
{
    const struct field *field = find_field(field_name);
    void *member = (char *)job + field->offset;

    switch (field->kind) {
    case FIELD_TEXT:
        return set_text(list, member, value, out_error);
    case FIELD_NUMBER:
        return number_parse_double(value, member) ? 0 : error_set(out_error, FLY_EUSAGE, "a number");
    case FIELD_COUNT_FROM_1:
        return set_count(member, value, out_error);
    case FIELD_SIZES:
        return set_sizes(list, job, value, out_error);
    }
    return FLY_EINTERNAL;
}

/* The state of loading a job file. */
struct loading {
    struct job_list *list;
    const char *path;
    struct job_description job; /* of the section being read; name NULL before the first */
    bool read[JOB_LIST_MAX];    /* which jobs of the list come from this file */
    size_t line;                /* where that section began */
    bool seen[FIELD_COUNT];
};

/* At the end of a section: checks its job and puts it into the list. */
static int finish_section(struct loading *loading, struct fly_error *out_error)
{
    struct job_description *known = NULL;
    char where[WHERE_MAX];
    int code;

    if (loading->job.name == NULL)
        return 0;
    snprintf(where, sizeof where, "%s:%zu", loading->path, loading->line);
    code = job_list_check(&loading->job, where, FLY_ECONFIG, out_error);
    if (code < 0)
        return code;
    known = job_list_find(loading->list, loading->job.name);
    if (known == NULL)
        code = job_list_add(loading->list, loading->job.name, &known, out_error);
    if (code < 0 || known == NULL)
        return code;
    if (loading->read[known - loading->list->jobs])
        return error_set(out_error, FLY_ECONFIG, "%s: job '%s' stands there twice; rename or remove one",
                         where, loading->job.name);
    loading->read[known - loading->list->jobs] = true;
    *known = loading->job;
    return 0;
}

static int begin_section(struct loading *loading, const struct config_entry *entry,
                         struct fly_error *out_error)
{
    char *name = arena_strdup(&loading->list->arena, entry->section);
    int code = finish_section(loading, out_error);

    if (code < 0)
        return code;
    if (name == NULL)
        return error_no_memory(out_error);
    if (*name == '\0')
        return error_set(out_error, FLY_ECONFIG,
                         "%s:%zu: expected the name of a job in brackets; rename this section", loading->path,
                         entry->line);
    loading->job = (struct job_description){.name = name, .target_metric = NAN};
    loading->line = entry->line;
    memset(loading->seen, 0, sizeof loading->seen);
    return 0;
}

static int refuse_field(const struct loading *loading, const struct config_entry *entry,
                        struct fly_error *out_error)
{
    const char *names[FIELD_COUNT];
    int nearest;

    for (size_t i = 0; i < FIELD_COUNT; i++)
        names[i] = fields[i].name;
    nearest = word_nearest(entry->name, names, FIELD_COUNT);
    return error_set(out_error, FLY_ECONFIG, "%s:%zu: unknown field '%s' of job '%s'; %s '%s'%s",
                     loading->path, entry->line, entry->name, entry->section,
                     nearest >= 0 ? "did you mean" : "known are",
                     nearest >= 0 ? names[nearest]
                                  : "dataset', 'network', 'optimizer', 'target_metric', "
                                    "'max_epochs', 'default_batch_size' and 'batch_sizes",
                     nearest >= 0 ? "?" : "");
}

static int take_entry(void *data, const struct config_entry *entry, struct fly_error *out_error)
{
    struct loading *loading = data;
    const struct field *field;
    struct fly_error error;
    int code;

    if (entry->name == NULL)
        return begin_section(loading, entry, out_error);
    if (loading->job.name == NULL)
        return error_set(out_error, FLY_ECONFIG,
                         "%s:%zu: '%s' stands before the first job; begin with [NAME]", loading->path,
                         entry->line, entry->name);
    field = find_field(entry->name);
    if (field == NULL)
        return refuse_field(loading, entry, out_error);
    if (loading->seen[field - fields])
        return error_set(out_error, FLY_ECONFIG, "%s:%zu: '%s' of job '%s' stands there twice; remove one",
                         loading->path, entry->line, entry->name, entry->section);
    loading->seen[field - fields] = true;
    code = job_file_set_field(loading->list, &loading->job, entry->name, entry->value, &error);
    if (code == FLY_EUSAGE)
        return error_set(out_error, FLY_ECONFIG,
                         "%s:%zu: bad value '%.60s' of '%s': expected %s; correct that line", loading->path,
                         entry->line, entry->value, entry->name, error.text);
    return code < 0 ? error_no_memory(out_error) : 0;
}

int job_file_load(struct job_list *list, const char *path, struct fly_error *out_error)
{
    struct loading loading = {.list = list, .path = path};
    struct buffer text;
    bool exists = false;
    int code;

    buffer_init(&text, CONFIG_FILE_MAX);
    code = config_file_read(path, &text, &exists, NULL, out_error);
    if (code == 0 && !exists)
        code = error_set(out_error, FLY_ENOTFOUND, "%s: no such file; expected a job file", path);
    if (code == 0)
        code = config_text_parse(path, text.data, text.length, take_entry, &loading, out_error);
    if (code == 0)
        code = finish_section(&loading, out_error);
    buffer_deinit(&text);
    return code;
}
