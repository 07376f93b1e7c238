/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/usage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "job/core/job_owner.h"
#include "job/core/job_record.h"
#include "job/core/job_words.h"
#include "job/past/name_index.h"

enum { USAGE_MOMENT_WORDS = USAGE_MOMENTS / 64, NUMBER_SIZE = 24, WORD_BITS = 64 };

static const double us_per_s = 1e6;

/* A GPU's host and model, by the newest attempt on it. */
struct place {
    const char *host; /* in the index of texts */
    const char *model;
};

/* In which parts of the period trials held a GPU: a bit for each. */
struct held {
    uint64_t moments[USAGE_MOMENT_WORDS];
};

/* A row's part in what an attempt takes. An attempt's parts add up to 1. */
struct usage_part {
    size_t row;
    double share;
};

/* One trial while the log is read: what it has taken, where, and up to when that is known. */
struct usage_trial {
    uint64_t number; /* 0: none */
    bool first_try;
    size_t line; /* the kind of hardware */
    uint32_t gpu_count;

    uint32_t attempt;
    struct usage_part *parts; /* owned; of the attempt */
    size_t part_count;
    size_t *held; /* owned; of the attempt: numbers of its GPUs, as usage_hold gives them */
    size_t held_count, held_capacity;
    int64_t attempt_us;   /* when the attempt began */
    int64_t known_us;     /* up to when it is known what the trial took */
    double past_energy_j; /* of earlier attempts */
    double past_time_s;
    double energy_j; /* of this attempt */
    double time_s;
    double total_energy_j; /* as far as returned in pieces; of all attempts */
    double total_time_s;

    bool ended, silent, closed;
    bool cut_off;
    bool nothing_learnt; /* it counts for no recurrence, and for no outcome */
    bool unknown;        /* the energy is, in the newest figure */
    enum trial_outcome outcome;

    bool inside;     /* some of it lies within the period */
    size_t *touched; /* owned; the rows that have a part within the period, each once */
    size_t touched_count, touched_capacity;
};

/* What the trial took from one moment to another. Its parts tell where. */
struct usage_piece {
    int64_t from_us, to_us;
    double energy_j, time_s;
};

struct usage {
    struct usage_options options;
    struct name_index names; /* of the rows */
    struct usage_sums *done; /* owned; per row, over the jobs that were added */
    struct usage_sums *now;  /* owned; per row, over the current job */
    size_t capacity;
    struct usage_sums total_done, total_now;
    struct usage_row *rows; /* owned; made on demand */
    size_t row_count;
    struct name_index gpus;
    struct place *places; /* owned; per GPU */
    size_t place_capacity;
    struct name_index texts;      /* hosts and models */
    struct usage_trial *slots;    /* owned; trials by their number modulo the count */
    struct name_index held_names; /* UUIDs, and "" with hosts */
    struct held *held;            /* owned; by their numbers */
    size_t held_capacity;
};

static void usage_trial_deinit(struct usage_trial *trial)
{
    free(trial->parts);
    free(trial->touched);
    free(trial->held);
    *trial = (struct usage_trial){.number = 0};
}

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

/* ---- who held what ---- */

/* When trials held which GPUs, for whoever has other figures of the same GPUs and must not count twice. */

/* Adds a GPU to those that the attempt holds; "": GPUs whose UUIDs are not on record. */
static int usage_hold(struct usage *usage, struct usage_trial *trial, const char *uuid, const char *host,
                      struct fly_error *out_error)
{
    struct held *held;
    size_t *numbers;
    size_t number, count = usage->held_names.count;
    int code = name_index_take(&usage->held_names, uuid, uuid[0] == '\0' ? host : "", &number, out_error);

    if (code < 0)
        return code;
    held = array_grow(usage->held, number, &usage->held_capacity, sizeof held[0]);
    if (held == NULL)
        return error_no_memory(out_error);
    usage->held = held;
    if (number == count)
        usage->held[number] = (struct held){{0}};
    numbers = array_grow(trial->held, trial->held_count, &trial->held_capacity, sizeof numbers[0]);
    if (numbers == NULL)
        return error_no_memory(out_error);
    trial->held = numbers;
    trial->held[trial->held_count++] = number;
    return 0;
}

/* Returns the part of the period in which a moment lies; the first or the last one for others. */
static size_t moment_of(const struct usage_options *options, int64_t time_us)
{
    int64_t ends_us = options->ends_us != 0 ? options->ends_us : options->until_us;
    double part = (double)(time_us - options->since_us) / (double)(ends_us - options->since_us);

    if (!(part > 0.0))
        return 0;
    return part < 1.0 ? (size_t)(part * USAGE_MOMENTS) : USAGE_MOMENTS - 1;
}

static void usage_note_held(struct usage *usage, const struct usage_trial *trial,
                            const struct usage_piece *piece)
{
    size_t first = moment_of(&usage->options, piece->from_us);
    size_t last = moment_of(&usage->options, piece->to_us);

    for (size_t i = 0; i < trial->held_count; i++)
        for (size_t at = first; at <= last; at++)
            usage->held[trial->held[i]].moments[at / WORD_BITS] |= (uint64_t)1 << (at % WORD_BITS);
}

/* ---- sums ---- */

/* The share of the piece within the period, from 0 to 1; a moment lies within it or not. */
static double usage_piece_within(const struct usage_piece *piece, int64_t since_us, int64_t until_us)
{
    int64_t from_us = piece->from_us > since_us ? piece->from_us : since_us;
    int64_t to_us = piece->to_us < until_us ? piece->to_us : until_us;

    if (piece->from_us == piece->to_us)
        return piece->from_us >= since_us && piece->from_us < until_us ? 1.0 : 0.0;
    return to_us > from_us ? (double)(to_us - from_us) / (double)(piece->to_us - piece->from_us) : 0.0;
}

/* Notes that the row has a part in the trial within the period; false without memory. */
static bool usage_trial_touch(struct usage_trial *trial, size_t row)
{
    size_t *touched;

    trial->inside = true;
    for (size_t i = 0; i < trial->touched_count; i++) {
        if (trial->touched[i] == row)
            return true;
    }
    touched = array_grow(trial->touched, trial->touched_count, &trial->touched_capacity, sizeof touched[0]);
    if (touched == NULL)
        return false;
    trial->touched = touched;
    trial->touched[trial->touched_count++] = row;
    return true;
}

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

/* Counts the trial once in its rows (1), or takes that back (-1). */
static void usage_count(struct usage *usage, const struct usage_trial *trial, int times)
{
    struct usage_sums counts = counts_of(trial);

    if (!trial->inside)
        return;
    for (size_t i = 0; i < trial->touched_count; i++)
        add_counts(&usage->now[trial->touched[i]], &counts, times);
    add_counts(&usage->total_now, &counts, times);
}

/*
 * Adds the part of the piece within the period to the attempt's rows; only notes it when `added`, as an
 * earlier pass has added it.
 */
static int usage_spend(struct usage *usage, struct usage_trial *trial, const struct usage_piece *piece,
                       bool added, struct fly_error *out_error)
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

/* Stores a text that lives as long as the usage. */
static int usage_take_text(struct usage *usage, const char *text, const char **out_text,
                           struct fly_error *out_error)
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

/* Sets the parts of the trial's attempt. */
static int usage_part_attempt(struct usage *usage, struct usage_trial *trial, const char *job,
                              const char *model, const struct attempt_record *record,
                              struct fly_error *out_error)
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

/* Adds what the log of the current job said to what is done, or drops it. */
static void usage_settle(struct usage *usage, bool taken)
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

/* ---- the log ---- */

/* The GPUs of a kind of hardware. */
struct machine {
    const char *model; /* in the index of texts */
    uint32_t gpu_count;
};

/* A pass over the log of one job. */
struct pass {
    struct usage *usage;
    const char *job;
    struct machine machines[JOB_HARDWARE_MAX];
    size_t machine_count;
    uint64_t newest;          /* trial */
    struct name_index missed; /* numbers of the trials whose slot another trial took */
    uint64_t *missed_from;    /* owned; for each, the first event that was skipped */
    size_t missed_capacity;
    uint64_t from; /* while one of these is read once more: events before this one were added already */
    struct usage_trial *trial; /* whose event is read */
    bool added;                /* an earlier pass has added the event */
};

static int take_machine(struct pass *pass, const struct proposed_record *record, struct fly_error *out_error)
{
    struct machine *machine = &pass->machines[pass->machine_count];
    int code;

    if (!record->new_line || record->line < pass->machine_count || pass->machine_count == JOB_HARDWARE_MAX)
        return 0;
    code = usage_take_text(pass->usage, record->hardware.gpu_model, &machine->model, out_error);
    machine->gpu_count = record->hardware.gpu_count;
    pass->machine_count += code == 0;
    return code;
}

static int on_proposed(void *fold, const struct log_event *at, const struct proposed_record *proposed)
{
    struct pass *pass = fold;
    struct usage_trial *trial = pass->trial;
    int code = take_machine(pass, proposed, at->error);

    if (code < 0)
        return code;
    if (proposed->line >= pass->machine_count)
        return error_set(at->error, FLY_EDATA, "a trial runs on hardware that is not described");
    trial->first_try = proposed->try_number == 0;
    trial->line = proposed->line;
    trial->gpu_count = pass->machines[proposed->line].gpu_count;
    return 0;
}

static int on_attempt(void *fold, const struct log_event *at, const struct attempt_record *attempt)
{
    struct pass *pass = fold;
    struct usage_trial *trial = pass->trial;
    const struct usage_piece moment = {.from_us = at->event->time_us, .to_us = at->event->time_us};
    int code;

    if (trial->gpu_count == 0)
        return error_set(at->error, FLY_EDATA, "an attempt at a trial that was never proposed");
    trial->cut_off |= trial->attempt > 0;
    trial->attempt = attempt->attempt;
    trial->attempt_us = trial->known_us = at->event->time_us;
    trial->past_energy_j += trial->energy_j;
    trial->past_time_s += trial->time_s;
    trial->energy_j = trial->time_s = 0.0;
    trial->silent = false;
    code = usage_part_attempt(pass->usage, trial, pass->job, pass->machines[trial->line].model, attempt,
                              at->error);
    return code < 0 ? code : usage_spend(pass->usage, trial, &moment, pass->added, at->error);
}

/*
 * Raises the totals to these figures, and spends what was added. Figures of the whole run may also be lower
 * than the earlier sums; then the sums stay. An unknown energy leaves the total where it is.
 */
static int rise(struct pass *pass, const struct log_event *at, double energy_j, double time_s, bool whole)
{
    struct usage_trial *trial = pass->trial;
    double told_us = (double)trial->attempt_us + (time_s - trial->past_time_s) * us_per_s;
    int64_t time_us = at->event->time_us;
    int64_t moment_us = told_us < (double)time_us ? (int64_t)told_us : time_us;
    struct usage_piece piece;

    trial->unknown = isnan(energy_j);
    if (trial->unknown)
        energy_j = trial->total_energy_j;
    if (!whole) {
        energy_j = fmax(energy_j, trial->total_energy_j);
        time_s = fmax(time_s, trial->total_time_s);
    }
    if (moment_us < trial->known_us)
        moment_us = trial->known_us;
    piece = (struct usage_piece){.from_us = trial->known_us,
                                 .to_us = moment_us,
                                 .energy_j = energy_j - trial->total_energy_j,
                                 .time_s = time_s - trial->total_time_s};
    trial->known_us = moment_us;
    trial->total_energy_j = energy_j;
    trial->total_time_s = time_s;
    return usage_spend(pass->usage, trial, &piece, pass->added, at->error);
}

static int on_heartbeat(void *fold, const struct log_event *at, const struct heartbeat_record *heartbeat)
{
    struct usage_trial *trial = ((struct pass *)fold)->trial;

    if (heartbeat->attempt != trial->attempt)
        return 0;
    trial->silent = false;
    if (trial->closed || !isfinite(heartbeat->energy_j) || !isfinite(heartbeat->time_s))
        return 0;
    trial->energy_j = fmax(trial->energy_j, heartbeat->energy_j);
    trial->time_s = fmax(trial->time_s, heartbeat->time_s);
    return rise(fold, at, trial->past_energy_j + trial->energy_j, trial->past_time_s + trial->time_s, false);
}

static int on_epoch(void *fold, const struct log_event *at, const struct epoch_record *epoch)
{
    struct usage_trial *trial = ((struct pass *)fold)->trial;

    if (epoch->attempt != trial->attempt)
        return 0;
    trial->silent = false;
    if (trial->closed)
        return 0;
    if (!isnan(epoch->energy_j))
        trial->energy_j = epoch->energy_j;
    trial->time_s = epoch->time_s;
    return rise(fold, at, trial->past_energy_j + epoch->energy_j, trial->past_time_s + trial->time_s, false);
}

static int on_ended(void *fold, const struct log_event *at, const struct ended_record *ended)
{
    struct usage_trial *trial = ((struct pass *)fold)->trial;

    trial->outcome = ended->outcome;
    trial->nothing_learnt = ended->nothing_learnt;
    trial->silent = ended->outcome == TRIAL_EXPIRED;
    trial->ended |= !trial->silent;
    /* An end that was reported without knowing more than the last report has no figure of its own. */
    trial->cut_off |= ended->stop == JOB_STOP_NONE &&
                      (ended->outcome == TRIAL_CRASHED || ended->outcome == TRIAL_OUT_OF_MEMORY) &&
                      ended->energy_j == trial->past_energy_j + trial->energy_j;
    return rise(fold, at, ended->energy_j, ended->time_s, false);
}

static int on_closed(void *fold, const struct log_event *at, const struct closed_record *closed)
{
    ((struct pass *)fold)->trial->closed = true;
    return rise(fold, at, closed->energy_j, closed->time_s, true);
}

static const struct log_visitor visitor = {.knows_all = true,
                                           .on_proposed = on_proposed,
                                           .on_attempt = on_attempt,
                                           .on_heartbeat = on_heartbeat,
                                           .on_epoch = on_epoch,
                                           .on_ended = on_ended,
                                           .on_closed = on_closed};

/* ---- a job ---- */

static void shut(struct usage *usage, struct usage_trial *trial)
{
    if (trial->number != 0)
        usage_count(usage, trial, 1);
    usage_trial_deinit(trial);
}

/* Notes an event of a trial whose slot another trial has: the log must be read once more for it. */
static int miss(struct pass *pass, const struct store_event *event, struct fly_error *out_error)
{
    size_t before = pass->missed.count, number;
    char name[NUMBER_SIZE];
    uint64_t *from;
    int code;

    snprintf(name, sizeof name, "%" PRIu64, event->trial);
    code = name_index_take(&pass->missed, name, "", &number, out_error);
    if (code < 0 || number < before)
        return code;
    from = array_grow(pass->missed_from, number, &pass->missed_capacity, sizeof from[0]);
    if (from == NULL)
        return error_no_memory(out_error);
    pass->missed_from = from;
    pass->missed_from[number] = event->number;
    return 0;
}

static bool tells(enum record_kind kind)
{
    return kind != RECORD_DEFINED && kind != RECORD_SET && kind != RECORD_PROFILED &&
           kind != RECORD_PROFILED_PART && kind != RECORD_BROUGHT;
}

static int visit(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct pass *pass = context;
    struct usage *usage = pass->usage;
    enum record_kind kind = record_kind_parse(event->kind);

    pass->trial = &usage->slots[event->trial % usage->options.slots];
    if (kind == RECORD_KINDS)
        return log_tell(&visitor, pass, event, NULL, out_error);
    if (event->trial == 0 || !tells(kind))
        return 0;
    if (event->trial > pass->newest) {
        if (kind != RECORD_PROPOSED)
            return error_set(out_error, FLY_EDATA, "event %" PRIu64 ": trial %" PRIu64 " was never proposed",
                             event->number, event->trial);
        pass->newest = event->trial;
        shut(usage, pass->trial);
        pass->trial->number = event->trial;
    }
    return pass->trial->number != event->trial ? miss(pass, event, out_error)
                                               : log_tell(&visitor, pass, event, NULL, out_error);
}

static int visit_again(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct pass *pass = context;

    if (!tells(record_kind_parse(event->kind)))
        return 0;
    if (event->number >= pass->from && pass->from != 0) {
        usage_count(pass->usage, pass->trial, -1);
        pass->from = 0;
    }
    pass->added = pass->from != 0;
    return log_tell(&visitor, pass, event, NULL, out_error);
}

static int read_missed(struct pass *pass, const struct jobs *jobs, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < pass->missed.count && code == 0; i++) {
        const struct store_query query = {.trial = strtoull(pass->missed.entries[i].name, NULL, 10)};

        pass->trial = &pass->usage->slots[0];
        pass->trial->number = query.trial;
        pass->from = pass->missed_from[i];
        code = jobs->backend->read(jobs->self, pass->job, &query, visit_again, pass, out_error);
        if (code == 0)
            shut(pass->usage, pass->trial);
    }
    return code;
}

int usage_add_job(struct usage *usage, const struct jobs *jobs, const char *job, struct fly_error *out_error)
{
    static const struct store_query everything = {0};
    struct pass *pass = calloc(1, sizeof *pass);
    int code;

    if (pass == NULL)
        return error_no_memory(out_error);
    pass->usage = usage;
    pass->job = job;
    name_index_init(&pass->missed, USAGE_REVISITS_MAX);
    code = jobs->backend->read(jobs->self, job, &everything, visit, pass, out_error);
    for (size_t i = 0; i < usage->options.slots; i++)
        shut(usage, &usage->slots[i]);
    if (code == 0)
        code = read_missed(pass, jobs, out_error);
    usage_trial_deinit(&usage->slots[0]);
    usage_settle(usage, code == 0);
    name_index_deinit(&pass->missed);
    free(pass->missed_from);
    free(pass);
    return code;
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

static bool was_held(const struct usage *usage, size_t number, int64_t from_us, int64_t to_us)
{
    size_t last = moment_of(&usage->options, to_us);

    for (size_t at = moment_of(&usage->options, from_us); at <= last; at++)
        if ((usage->held[number].moments[at / WORD_BITS] >> (at % WORD_BITS) & 1) != 0)
            return true;
    return false;
}

bool usage_has_held(const struct usage *usage, const char *uuid, const char *host, int64_t from_us,
                    int64_t to_us)
{
    bool held = false;

    for (size_t i = 0; i < usage->held_names.count && !held; i++) {
        const struct name_entry *entry = &usage->held_names.entries[i];
        bool same = entry->name[0] != '\0'
                        ? strcmp(entry->name, uuid) == 0
                        : host[0] == '\0' || entry->detail[0] == '\0' || strcmp(entry->detail, host) == 0;

        held = same && was_held(usage, i, from_us, to_us);
    }
    return held;
}
