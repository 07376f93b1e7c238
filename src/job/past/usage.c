/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "job/core/job_owner.h"
#include "job/past/usage_private.h"

int usage_new(const struct usage_options *options, struct usage **out_usage, struct fly_error *out_error)
{
    struct usage *usage = calloc(1, sizeof *usage);

    if (usage == NULL)
        return error_no_memory(out_error);
    usage->options = *options;
    if (usage->options.slots == 0)
        usage->options.slots = USAGE_SLOTS;
    name_index_init(&usage->names, USAGE_ROWS_MAX);
    name_index_init(&usage->gpus, USAGE_ROWS_MAX);
    name_index_init(&usage->texts, 2 * USAGE_ROWS_MAX);
    name_index_init(&usage->held_names, 2 * USAGE_ROWS_MAX);
    usage->slots = calloc(usage->options.slots, sizeof usage->slots[0]);
    if (usage->slots == NULL) {
        usage_free(usage);
        return error_no_memory(out_error);
    }
    *out_usage = usage;
    return 0;
}

void usage_free(struct usage *usage)
{
    if (usage == NULL)
        return;
    for (size_t i = 0; usage->slots != NULL && i < usage->options.slots; i++)
        usage_trial_deinit(&usage->slots[i]);
    free(usage->slots);
    free(usage->done);
    free(usage->now);
    free(usage->rows);
    free(usage->places);
    name_index_deinit(&usage->names);
    name_index_deinit(&usage->gpus);
    name_index_deinit(&usage->texts);
    name_index_deinit(&usage->held_names);
    free(usage->held);
    free(usage);
}

/* ---- sums ---- */

/* Adds `more` `times` times; `times` may be negative. */
static void add_counts(struct usage_sums *sums, const struct usage_sums *more, int times)
{
    uint64_t *const counts[] = {&sums->trials, &sums->recurrences, &sums->running, &sums->without_energy,
                                &sums->cut_off};
    const uint64_t added[] = {more->trials, more->recurrences, more->running, more->without_energy,
                              more->cut_off};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        *counts[i] += (uint64_t)times * added[i];
    for (size_t i = 0; i < TRIAL_OUTCOME_COUNT; i++)
        sums->outcomes[i] += (uint64_t)times * more->outcomes[i];
}

static void add_sums(struct usage_sums *sums, const struct usage_sums *more)
{
    sums->energy_j += more->energy_j;
    sums->gpu_time_s += more->gpu_time_s;
    add_counts(sums, more, 1);
}

static struct usage_sums counts_of(const struct usage_trial *trial)
{
    struct usage_sums counts = {.trials = !trial->nothing_learnt,
                                .recurrences = trial->first_try && !trial->nothing_learnt};
    bool over = trial->ended || trial->silent;
    bool ran = !over || (trial->outcome != TRIAL_REFUSED && !trial->nothing_learnt);

    if (trial->nothing_learnt)
        return counts;
    if (over)
        counts.outcomes[trial->outcome]++;
    else
        counts.running++;
    if (ran && trial->total_energy_j == 0.0)
        counts.without_energy++;
    else if (over && (trial->cut_off || trial->unknown || (trial->silent && !trial->ended)))
        counts.cut_off++;
    return counts;
}

void usage_count(struct usage *usage, const struct usage_trial *trial, int times)
{
    struct usage_sums counts = counts_of(trial);

    if (!trial->inside)
        return;
    for (size_t i = 0; i < trial->touched_count; i++)
        add_counts(&usage->now[trial->touched[i]], &counts, times);
    add_counts(&usage->total_now, &counts, times);
}

int usage_spend(struct usage *usage, struct usage_trial *trial, const struct usage_piece *piece, bool added,
                struct fly_error *out_error)
{
    double within = usage_piece_within(piece, usage->options.since_us, usage->options.until_us);
    double energy_j = piece->energy_j * within;
    double gpu_time_s = piece->time_s * within * trial->gpu_count;

    if (within <= 0.0)
        return 0;
    usage_note_held(usage, trial, piece);
    for (size_t i = 0; i < trial->part_count; i++) {
        const struct usage_part *part = &trial->parts[i];

        if (!usage_trial_touch(trial, part->row))
            return error_no_memory(out_error);
        if (added)
            continue;
        usage->now[part->row].energy_j += energy_j * part->share;
        usage->now[part->row].gpu_time_s += gpu_time_s * part->share;
    }
    if (!added) {
        usage->total_now.energy_j += energy_j;
        usage->total_now.gpu_time_s += gpu_time_s;
    }
    return 0;
}

/* ---- rows ---- */

static bool make_room(struct usage *usage)
{
    size_t capacity = usage->names.capacity;
    struct usage_sums *done, *now;

    if (usage->names.count <= usage->capacity)
        return true;
    done = realloc(usage->done, capacity * sizeof done[0]);
    if (done == NULL)
        return false;
    usage->done = done;
    now = realloc(usage->now, capacity * sizeof now[0]);
    if (now == NULL)
        return false;
    usage->now = now;
    for (size_t i = usage->capacity; i < capacity; i++)
        done[i] = now[i] = (struct usage_sums){.trials = 0};
    usage->capacity = capacity;
    return true;
}

static int add_part(struct usage *usage, struct usage_trial *trial, const char *name, const char *model,
                    double share, struct fly_error *out_error)
{
    size_t row;
    int code = name_index_take(&usage->names, name, model, &row, out_error);

    if (code < 0)
        return code;
    if (!make_room(usage))
        return error_no_memory(out_error);
    trial->parts[trial->part_count++] = (struct usage_part){row, share};
    return 0;
}

int usage_take_text(struct usage *usage, const char *text, const char **out_text, struct fly_error *out_error)
{
    size_t number;
    int code = name_index_take(&usage->texts, text, "", &number, out_error);

    if (code == 0)
        *out_text = usage->texts.entries[number].name;
    return code;
}

/* Notes where a GPU is. */
static int take_place(struct usage *usage, const char *uuid, const char *model, const char *host,
                      struct fly_error *out_error)
{
    const char *kept = "";
    struct place *places;
    size_t number;
    int code = name_index_take(&usage->gpus, uuid, "", &number, out_error);

    if (code == 0)
        code = usage_take_text(usage, host, &kept, out_error);
    if (code < 0)
        return code;
    places = array_grow(usage->places, number, &usage->place_capacity, sizeof places[0]);
    if (places == NULL)
        return error_no_memory(out_error);
    usage->places = places;
    usage->places[number] = (struct place){kept, model};
    return 0;
}

static size_t count_gpus(const char *gpus)
{
    size_t gpu_count = gpus[0] != '\0';

    for (const char *at = gpus; *at != '\0'; at++)
        gpu_count += *at == ',';
    return gpu_count;
}

/* Gives the named GPUs equal parts, and the rest one row of the model. */
static int part_gpus(struct usage *usage, struct usage_trial *trial, const char *model, const char *host,
                     char *gpus, size_t named, struct fly_error *out_error)
{
    double all = named > trial->gpu_count ? (double)named : (double)trial->gpu_count;
    bool by_gpu = usage->options.key == USAGE_GPU;
    char *rest = gpus;
    int code = 0;

    for (size_t i = 0; i < named && code == 0; i++) {
        char *uuid = strsep(&rest, ",");

        code = take_place(usage, uuid, model, host, out_error);
        if (code == 0)
            code = usage_hold(usage, trial, uuid, host, out_error);
        if (code == 0 && by_gpu)
            code = add_part(usage, trial, uuid, model, 1.0 / all, out_error);
    }
    if (code == 0 && (double)named < all)
        code = usage_hold(usage, trial, "", host, out_error);
    if (code == 0 && by_gpu && (double)named < all)
        code = add_part(usage, trial, "", model, (all - (double)named) / all, out_error);
    return code;
}

int usage_part_attempt(struct usage *usage, struct usage_trial *trial, const char *job, const char *model,
                       const struct attempt_record *record, struct fly_error *out_error)
{
    char user[JOB_USER_MAX];
    const char *const names[USAGE_KEYS] = {job_user_told(record->user, user), record->account, job,
                                           record->host, NULL};
    size_t named = count_gpus(record->gpus);
    struct usage_part *parts = realloc(trial->parts, (named + 1) * sizeof parts[0]);
    char *gpus = strdup(record->gpus);
    int code = 0;

    if (parts != NULL)
        trial->parts = parts;
    trial->part_count = trial->held_count = 0;
    if (parts == NULL || gpus == NULL) {
        free(gpus);
        return error_no_memory(out_error);
    }
    code = part_gpus(usage, trial, model, record->host, gpus, named, out_error);
    if (code == 0 && names[usage->options.key] != NULL)
        code = add_part(usage, trial, names[usage->options.key], "", 1.0, out_error);
    free(gpus);
    return code;
}

void usage_settle(struct usage *usage, bool taken)
{
    for (size_t i = 0; i < usage->names.count && i < usage->capacity; i++) {
        if (taken)
            add_sums(&usage->done[i], &usage->now[i]);
        usage->now[i] = (struct usage_sums){.trials = 0};
    }
    if (taken)
        add_sums(&usage->total_done, &usage->total_now);
    usage->total_now = (struct usage_sums){.trials = 0};
}

/* ---- what it came to ---- */

static int compare_rows(const void *left, const void *right)
{
    const struct usage_row *a = left, *b = right;
    int order = (a->name[0] == '\0') - (b->name[0] == '\0');

    if (order == 0)
        order = (a->sums.energy_j < b->sums.energy_j) - (a->sums.energy_j > b->sums.energy_j);
    if (order == 0)
        order = strcmp(a->name, b->name);
    return order != 0 ? order : strcmp(a->model, b->model);
}

int usage_rows(struct usage *usage, const struct usage_row **out_rows, size_t *out_count,
               struct fly_error *out_error)
{
    struct usage_row *rows = realloc(usage->rows, (usage->names.count + 1) * sizeof rows[0]);

    if (rows == NULL)
        return error_no_memory(out_error);
    usage->rows = rows;
    usage->row_count = 0;
    for (size_t i = 0; i < usage->names.count && i < usage->capacity; i++) {
        const struct name_entry *entry = &usage->names.entries[i];

        if (usage->done[i].trials > 0)
            rows[usage->row_count++] = (struct usage_row){entry->name, entry->detail, usage->done[i]};
    }
    qsort(rows, usage->row_count, sizeof rows[0], compare_rows);
    *out_rows = rows;
    *out_count = usage->row_count;
    return 0;
}

const struct usage_sums *usage_total(const struct usage *usage)
{
    return &usage->total_done;
}

static const struct place *place_of(const struct usage *usage, const char *uuid)
{
    static const struct place unknown = {"", ""};
    size_t number;

    return name_index_find(&usage->gpus, uuid, "", &number) ? &usage->places[number] : &unknown;
}

const char *usage_host_of(const struct usage *usage, const char *uuid)
{
    return place_of(usage, uuid)->host;
}

const char *usage_model_of(const struct usage *usage, const char *uuid)
{
    return place_of(usage, uuid)->model;
}
