/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of events, as tables of members in the order in which they are written. */
#include "job/core/job_record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "job/core/job_owner.h"
#include "job/core/job_words.h"
#include "job/core/shapes.h"
#include "shapes/shape_rows.h"

enum { RANDOM_WORDS = 4, RANDOM_DIGITS = 4 * 16 + 8 + 1 };

double record_known(double value)
{
    return isfinite(value) && value > 0.0 ? value : NAN;
}

/* ---- reading and writing ---- */

/* Borrows the body's texts, so that folding a long log copies none. */
static int read_body(const struct shape *shape, json_t *body, struct arena *arena, void *out_record,
                     struct fly_error *out_error)
{
    int code = shape_read(shape, body, SHAPE_BORROWING, arena, out_record, out_error);

    if (code < 0 && code != FLY_ENOMEM && out_error != NULL)
        out_error->code = FLY_EDATA;
    return code < 0 && code != FLY_ENOMEM ? FLY_EDATA : code;
}

static json_t *write_body(const struct shape *shape, const void *record)
{
    json_t *json = NULL;

    return shape_write(shape, record, &json, NULL) == 0 ? json : NULL;
}

/* Adds the event to its error; returns the code. */
static int record_refuse(const struct store_event *event, const struct fly_error *why,
                         struct fly_error *out_error)
{
    if (why->code == FLY_ENOMEM)
        return error_no_memory(out_error);
    return error_set(out_error, FLY_EDATA, "event %" PRIu64 " ('%s'): %.300s", event->number, event->kind,
                     why->text);
}

int record_parse(const struct store_event *event, json_t **out_body, struct fly_error *out_error)
{
    struct fly_error why;

    return shape_parse(event->body, strlen(event->body), out_body, &why) == 0
               ? 0
               : record_refuse(event, &why, out_error);
}

/* Rows. Unknown numbers are null; members that were added later are written only when they have a value. */
#define NUMBER SHAPE_IS_NUMBER(SHAPE_ANY)
#define NUMBER_OR_NULL SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE
#define ATTEMPT(type)                                        \
    {                                                        \
        SHAPE_AT(type, attempt), SHAPE_IS_U32(1, UINT32_MAX) \
    }
#define REFERENCE(type)                                                          \
    {                                                                            \
        SHAPE_AT(type, reference_per_kwh), NUMBER_OR_NULL, .need = SHAPE_SPARING \
    }
#define SHORT_TEXT SHAPE_IS_TEXT(JOB_TEXT_MAX - 1)
#define LONG_TEXT SHAPE_IS_TEXT(JOB_WHY_MAX)
#define EPOCHS(least) SHAPE_IS_U32(least, JOB_EPOCHS_MAX)

/* ---- the published generator ---- */

/* The next `digits` hexadecimal digits of a text. */
static uint64_t take_hex(const char **text, int digits)
{
    uint64_t value = 0;

    for (int i = 0; i < digits; i++, ++*text)
        value = value << 4 | (uint64_t)(**text <= '9' ? **text - '0' : **text - 'a' + 10);
    return value;
}

static bool read_random(const char *text, void *out_value)
{
    uint64_t words[RANDOM_WORDS] = {0};
    struct numpy_random random = {.state = 0};

    if (strlen(text) != RANDOM_DIGITS || strspn(text, "0123456789abcdef") != RANDOM_DIGITS)
        return false;
    for (size_t i = 0; i < RANDOM_WORDS; i++)
        words[i] = take_hex(&text, 16);
    random.state = (numpy_u128)words[0] << 64 | words[1];
    random.increment = (numpy_u128)words[2] << 64 | words[3];
    random.spare = (uint32_t)take_hex(&text, 8);
    random.has_spare = take_hex(&text, 1) == 1;
    memcpy(out_value, &random, sizeof random);
    return true;
}

static void write_random(const void *value, char text[SHAPE_CODED_MAX])
{
    struct numpy_random random;

    memcpy(&random, value, sizeof random);
    snprintf(text, SHAPE_CODED_MAX, "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%08" PRIx32 "%d",
             (uint64_t)(random.state >> 64), (uint64_t)random.state, (uint64_t)(random.increment >> 64),
             (uint64_t)random.increment, random.spare, random.has_spare);
}

/* Text, since JSON's integers end at 63 bits. */
static const struct shape_coding random_coding = {.expected = "where the generator stands",
                                                  .size = sizeof(struct numpy_random),
                                                  .read = read_random,
                                                  .write = write_random};

/* ---- proposed ---- */

static const char *const limit_words[] = {[LIMIT_PROFILED] = "profiled", [LIMIT_FIXED] = "fixed"};
enum { LIMIT_WORDS = sizeof limit_words / sizeof limit_words[0] };

static const struct shape_field hardware_rows[] = {
    {SHAPE_AT(job_hardware, gpu_model), SHORT_TEXT},
    {SHAPE_AT(job_hardware, gpu_count), SHAPE_IS_U32(1, UINT32_MAX)},
    {SHAPE_AT(job_hardware, gpu_memory_bytes), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(job_hardware, world_size), SHAPE_IS_U32(1, UINT32_MAX)},
    {SHAPE_AT(job_hardware, limits_w),
     SHAPE_IS_NUMBERS(SHAPE_ABOVE_0, JOB_LIMITS_MAX, job_hardware, limit_count)},
    {SHAPE_AT(job_hardware, max_power_w), NUMBER},
};
static const struct shape hardware = {SHAPE_OF(job_hardware, hardware_rows)};

static const struct shape_field proposed_rows[] = {
    {SHAPE_AT(proposed_record, recurrence), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT_AS("try", proposed_record, try_number), SHAPE_IS_U32(0, UINT32_MAX)},
    {SHAPE_AT(proposed_record, tries), SHAPE_IS_U32(0, UINT32_MAX)},
    {SHAPE_AT(proposed_record, submission), SHORT_TEXT},
    {SHAPE_AT(proposed_record, run), SHORT_TEXT},
    {SHAPE_AT(proposed_record, line), SHAPE_IS_SIZE(JOB_HARDWARE_MAX - 1)},
    {SHAPE_AT(proposed_record, batch_size), SHAPE_IS_U32(1, UINT32_MAX)},
    {SHAPE_AT_AS("limit", proposed_record, limit_rule), SHAPE_IS_WORD(limit_words, LIMIT_WORDS)},
    {SHAPE_AT(proposed_record, limit_w), NUMBER_OR_NULL},
    {SHAPE_AT(proposed_record, wants_profile), SHAPE_IS_BOOL},
    {SHAPE_AT(proposed_record, reason), SHAPE_IS_WORD(job_reason_words, REASON_COUNT)},
    {SHAPE_AT(proposed_record, policy), SHORT_TEXT},
    {SHAPE_AT(proposed_record, policy_version), SHAPE_IS_U32(0, UINT32_MAX)},
    {SHAPE_AT(proposed_record, counted), SHAPE_IS_BOOL},
    {SHAPE_AT(proposed_record, capped), SHAPE_IS_BOOL},
    {SHAPE_AT(proposed_record, last_try), SHAPE_IS_BOOL},
    {SHAPE_AT(proposed_record, epochs), EPOCHS(0)},
    {SHAPE_AT(proposed_record, stop_by_us), SHAPE_IS_TIME},
    {SHAPE_AT(proposed_record, heartbeat_s), NUMBER},
    {SHAPE_AT(proposed_record, why), LONG_TEXT},
    {SHAPE_AT(proposed_record, hardware), SHAPE_IS_STRUCT(&hardware), SHAPE_IF(proposed_record, new_line),
     .null = SHAPE_AS_MISSING},
    {SHAPE_AT(proposed_record, finish_by_us), SHAPE_IS_TIME, .need = SHAPE_OPTIONAL,
     .null = SHAPE_AS_MISSING},
    {SHAPE_AT_AS("random", proposed_record, random_after), .kind = SHAPE_CODED, .coding = &random_coding,
     SHAPE_IF(proposed_record, random), .null = SHAPE_AS_MISSING},
    {SHAPE_AT(proposed_record, numbers), .kind = SHAPE_JSON, .need = SHAPE_SPARING},
    {SHAPE_AT(proposed_record, guarded), .kind = SHAPE_BOOL, .need = SHAPE_SPARING},
};
static const struct shape proposed = {SHAPE_OF(proposed_record, proposed_rows)};

/* ---- attempt ---- */

static const struct shape_field attempt_rows[] = {
    ATTEMPT(attempt_record),
    {SHAPE_AT(attempt_record, user), SHORT_TEXT},
    {SHAPE_AT(attempt_record, account), SHORT_TEXT},
    {SHAPE_AT(attempt_record, host), SHORT_TEXT},
    {SHAPE_AT(attempt_record, gpus), SHAPE_IS_TEXT(JOB_GPUS_MAX - 1), .need = SHAPE_SPARING,
     .null = SHAPE_AS_MISSING},
};
static const struct shape attempt = {SHAPE_OF(attempt_record, attempt_rows)};

/* ---- profiled ---- */

static const struct shape_field point_rows[] = {
    {SHAPE_AT(fly_power_point, limit_w), NUMBER},
    {SHAPE_AT(fly_power_point, power_w), NUMBER},
    {SHAPE_AT(fly_power_point, time_s), NUMBER},
};
static const struct shape point = {SHAPE_OF(fly_power_point, point_rows), .as_list = true};

static const struct shape_field profiled_rows[] = {
    {SHAPE_AT(profiled_record, points), SHAPE_IS_STRUCTS_HERE(&point, profiled_record, points, count)},
    {SHAPE_AT(profiled_record, units_per_epoch), NUMBER},
    {SHAPE_AT(profiled_record, limit_w), NUMBER},
    {SHAPE_AT(profiled_record, epochs), EPOCHS(0)},
    {SHAPE_AT(profiled_record, refused), SHAPE_IS_BOOL},
    {SHAPE_AT(profiled_record, folded), SHAPE_IS_BOOL},
};
static const struct shape profiled = {SHAPE_OF(profiled_record, profiled_rows)};

static const struct shape_field part_rows[] = {
    {SHAPE_AT(profiled_part_record, line), SHAPE_IS_SIZE(JOB_HARDWARE_MAX - 1)},
    {SHAPE_AT(profiled_part_record, batch_size), SHAPE_IS_U32(1, UINT32_MAX)},
    {SHAPE_AT(profiled_part_record, points),
     SHAPE_IS_STRUCTS_HERE(&point, profiled_part_record, points, count)},
};
static const struct shape profiled_part = {SHAPE_OF(profiled_part_record, part_rows)};

/* ---- brought ---- */

static const struct shape_field brought_batch_rows[] = {
    {SHAPE_AT(brought_batch, batch_size), SHAPE_IS_U32(1, UINT32_MAX)},
    {SHAPE_AT(brought_batch, reached), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(brought_batch, log_epochs_mean), NUMBER},
    {SHAPE_AT(brought_batch, log_epochs_squares), NUMBER},
    {SHAPE_AT(brought_batch, stopped), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(brought_batch, stopped_epochs), NUMBER},
    {SHAPE_AT(brought_batch, failed), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(brought_batch, log_epoch_cost), NUMBER_OR_NULL},
};
static const struct shape brought_batch = {SHAPE_OF(brought_batch, brought_batch_rows)};

static const struct shape_field brought_rows[] = {
    {SHAPE_AT_AS("from", brought_record, kind), SHAPE_IS_WORD(job_past_words, PAST_KINDS)},
    {SHAPE_AT(brought_record, source), SHORT_TEXT},
    {SHAPE_AT(brought_record, revision), SHORT_TEXT},
    {SHAPE_AT(brought_record, line), SHAPE_IS_SIZE(JOB_HARDWARE_MAX - 1)},
    {SHAPE_AT(brought_record, batches),
     SHAPE_IS_STRUCTS_HERE(&brought_batch, brought_record, batches, count)},
    {SHAPE_AT(brought_record, hardware), SHAPE_IS_STRUCT(&hardware), SHAPE_IF(brought_record, of_line),
     .null = SHAPE_AS_MISSING},
};
static const struct shape brought = {SHAPE_OF(brought_record, brought_rows)};

/* ---- while it runs ---- */

static const struct shape_field heartbeat_rows[] = {
    ATTEMPT(heartbeat_record),
    {SHAPE_AT(heartbeat_record, energy_j), NUMBER_OR_NULL},
    {SHAPE_AT(heartbeat_record, time_s), NUMBER_OR_NULL},
};
static const struct shape heartbeat = {SHAPE_OF(heartbeat_record, heartbeat_rows)};

static const struct shape_field epoch_rows[] = {
    ATTEMPT(epoch_record),
    {SHAPE_AT(epoch_record, epoch), EPOCHS(1)},
    {SHAPE_AT(epoch_record, metric), NUMBER_OR_NULL},
    {SHAPE_AT(epoch_record, energy_j), NUMBER_OR_NULL},
    {SHAPE_AT(epoch_record, time_s), NUMBER},
    {SHAPE_AT(epoch_record, answer), SHAPE_IS_WORD(job_answer_words, JOB_ANSWERS)},
    {SHAPE_AT(epoch_record, stop), SHAPE_IS_WORD(job_stop_words, JOB_STOPS)},
    {SHAPE_AT(epoch_record, epochs), EPOCHS(0)},
    {SHAPE_AT(epoch_record, late), SHAPE_IS_BOOL},
    {SHAPE_AT(epoch_record, total_energy_j), NUMBER_OR_NULL},
    {SHAPE_AT(epoch_record, total_time_s), NUMBER},
    {SHAPE_AT(epoch_record, afterwards), SHAPE_IS_BOOL, .need = SHAPE_SPARING, .null = SHAPE_AS_MISSING},
    REFERENCE(epoch_record),
    {SHAPE_AT(epoch_record, steps), SHAPE_IS_U32(0, UINT32_MAX), .need = SHAPE_SPARING},
    {SHAPE_AT(epoch_record, startup_energy_j), NUMBER_OR_NULL, SHAPE_IF(epoch_record, startup_told)},
    {SHAPE_AT(epoch_record, startup_time_s), NUMBER_OR_NULL, SHAPE_IF(epoch_record, startup_told)},
};
static const struct shape epoch = {SHAPE_OF(epoch_record, epoch_rows)};

/* ---- the end ---- */

static const struct shape_field ended_rows[] = {
    {SHAPE_AT(ended_record, outcome), SHAPE_IS_WORD(job_outcome_words, TRIAL_OUTCOME_COUNT)},
    {SHAPE_AT(ended_record, stop), SHAPE_IS_WORD(job_stop_words, JOB_STOPS)},
    ATTEMPT(ended_record),
    {SHAPE_AT(ended_record, epochs), EPOCHS(0)},
    {SHAPE_AT(ended_record, metric), NUMBER_OR_NULL},
    {SHAPE_AT(ended_record, energy_j), NUMBER_OR_NULL},
    {SHAPE_AT(ended_record, time_s), NUMBER},
    {SHAPE_AT(ended_record, text), LONG_TEXT},
    REFERENCE(ended_record),
    {SHAPE_AT(ended_record, startup_energy_j), NUMBER_OR_NULL, .need = SHAPE_SPARING},
    {SHAPE_AT(ended_record, startup_time_s), NUMBER_OR_NULL, .need = SHAPE_SPARING},
    {SHAPE_AT(ended_record, nothing_learnt), SHAPE_IS_BOOL, .need = SHAPE_SPARING},
};
static const struct shape ended = {SHAPE_OF(ended_record, ended_rows)};

static const struct shape_field closed_rows[] = {
    ATTEMPT(closed_record),
    {SHAPE_AT(closed_record, energy_j), NUMBER_OR_NULL},
    {SHAPE_AT(closed_record, time_s), NUMBER},
    {SHAPE_AT(closed_record, text), LONG_TEXT},
    REFERENCE(closed_record),
};
static const struct shape closed = {SHAPE_OF(closed_record, closed_rows)};

/* ---- any of them ---- */

static const struct shape *const shapes[RECORD_KINDS] = {
    [RECORD_SET] = &shape_setting, [RECORD_PROPOSED] = &proposed,   [RECORD_ATTEMPT] = &attempt,
    [RECORD_PROFILED] = &profiled, [RECORD_HEARTBEAT] = &heartbeat, [RECORD_EPOCH] = &epoch,
    [RECORD_ENDED] = &ended,       [RECORD_CLOSED] = &closed,       [RECORD_PROFILED_PART] = &profiled_part,
    [RECORD_BROUGHT] = &brought,
};

union any_record {
    struct epoch_record epoch;
    struct ended_record ended;
    struct closed_record closed;
};

json_t *record_write(enum record_kind kind, const void *record)
{
    union any_record known;

    if (kind == RECORD_EPOCH) {
        known.epoch = *(const struct epoch_record *)record;
        known.epoch.reference_per_kwh = record_known(known.epoch.reference_per_kwh);
        known.epoch.startup_energy_j = record_known(known.epoch.startup_energy_j);
        known.epoch.startup_time_s = record_known(known.epoch.startup_time_s);
        record = &known;
    } else if (kind == RECORD_ENDED) {
        known.ended = *(const struct ended_record *)record;
        known.ended.reference_per_kwh = record_known(known.ended.reference_per_kwh);
        known.ended.startup_energy_j = record_known(known.ended.startup_energy_j);
        known.ended.startup_time_s = record_known(known.ended.startup_time_s);
        record = &known;
    } else if (kind == RECORD_CLOSED) {
        known.closed = *(const struct closed_record *)record;
        known.closed.reference_per_kwh = record_known(known.closed.reference_per_kwh);
        record = &known;
    }
    return write_body(shapes[kind], record);
}

static int check_ascending(const struct job_hardware *told, struct fly_error *out_error)
{
    for (size_t i = 1; i < told->limit_count; i++) {
        if (!(told->limits_w[i] > told->limits_w[i - 1]))
            return error_set(out_error, FLY_EDATA,
                             "member 'hardware.limits_w[%zu]': expected ascending numbers above 0", i);
    }
    return 0;
}

int record_read(enum record_kind kind, json_t *body, struct arena *arena, void *out_record,
                struct fly_error *out_error)
{
    int code = read_body(shapes[kind], body, arena, out_record, out_error);
    double *reference;

    if (code < 0)
        return code;
    if (kind == RECORD_PROPOSED)
        return check_ascending(&((struct proposed_record *)out_record)->hardware, out_error);
    if (kind == RECORD_BROUGHT)
        return check_ascending(&((struct brought_record *)out_record)->hardware, out_error);
    if (kind == RECORD_SET) {
        double *bound = &((struct job_setting *)out_record)->objective.max_slowdown;

        *bound = isnan(*bound) ? INFINITY : *bound; /* as a record means it */
    }
    reference = kind == RECORD_EPOCH    ? &((struct epoch_record *)out_record)->reference_per_kwh
                : kind == RECORD_ENDED  ? &((struct ended_record *)out_record)->reference_per_kwh
                : kind == RECORD_CLOSED ? &((struct closed_record *)out_record)->reference_per_kwh
                                        : NULL;
    if (reference != NULL)
        *reference = record_known(*reference);
    return 0;
}

/* ---- reading a log ---- */

enum { PASSED, HEARD };

/* Hands a record over; NULL: only says whether there is somebody to hear it. */
static int hand(const struct log_visitor *to, void *fold, const struct log_event *at, const void *record)
{
#define TO(name) (to->name == NULL ? PASSED : record == NULL ? HEARD : to->name(fold, at, record))
    switch (at->kind) {
    case RECORD_SET:
        return TO(on_set);
    case RECORD_PROPOSED:
        return TO(on_proposed);
    case RECORD_ATTEMPT:
        return TO(on_attempt);
    case RECORD_PROFILED:
        return TO(on_profiled);
    case RECORD_HEARTBEAT:
        return TO(on_heartbeat);
    case RECORD_EPOCH:
        return TO(on_epoch);
    case RECORD_ENDED:
        return TO(on_ended);
    case RECORD_CLOSED:
        return TO(on_closed);
    case RECORD_PROFILED_PART:
        return TO(on_profiled_part);
    case RECORD_BROUGHT:
        return TO(on_brought);
    case RECORD_DEFINED:
        return to->on_defined == NULL ? PASSED : record == NULL ? HEARD : to->on_defined(fold, at);
    case RECORD_KINDS:
        break;
    }
    return PASSED;
#undef TO
}

static int hand_read(const struct log_visitor *to, void *fold, const struct log_event *at)
{
    void *record = malloc(shapes[at->kind]->size);
    struct fly_error why;
    struct arena arena;
    int code;

    if (record == NULL)
        return error_no_memory(at->error);
    arena_init(&arena, RECORD_ARENA_MAX);
    code = record_read(at->kind, at->body, &arena, record, &why);
    code = code == 0 ? hand(to, fold, at, record) : record_refuse(at->event, &why, at->error);
    arena_deinit(&arena);
    free(record);
    return code;
}

int log_tell(const struct log_visitor *to, void *fold, const struct store_event *event, json_t *body,
             struct fly_error *out_error)
{
    struct log_event at = {event, record_kind_parse(event->kind), body, out_error};
    int code = 0;

    if (at.kind == RECORD_KINDS && to->knows_all)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "event %" PRIu64 ": kind '%.60s' is not known here; use a newer version",
                         event->number, event->kind);
    if (hand(to, fold, &at, NULL) == PASSED)
        return 0;
    if (body == NULL)
        code = record_parse(event, &at.body, out_error);
    if (code == 0)
        code = at.kind == RECORD_DEFINED ? to->on_defined(fold, &at) : hand_read(to, fold, &at);
    if (body == NULL)
        json_decref(at.body);
    return code;
}

/* ---- owners ---- */

struct owned {
    const char *owners;
};

static const struct shape_field owned_rows[] = {
    {SHAPE_AT(owned, owners), SHAPE_IS_TEXT(JOB_OWNERS_TEXT_MAX - 1), .need = SHAPE_SPARING,
     .null = SHAPE_AS_MISSING},
};
static const struct shape owned = {SHAPE_OF(owned, owned_rows)};

json_t *record_write_owners(json_t *definition, const char *owners)
{
    const struct owned record = {owners};

    if (definition == NULL || shape_write_member(&owned, "owners", &record, definition, NULL) == 0)
        return definition;
    json_decref(definition);
    return NULL;
}

int record_write_user(json_t *attempt_body, const char *user, struct fly_error *out_error)
{
    const struct attempt_record record = {.user = user};

    return shape_write_member(&attempt, "user", &record, attempt_body, out_error);
}

int record_read_owners(json_t *body, const char **out_owners, struct fly_error *out_error)
{
    struct owned record;
    int code = read_body(&owned, body, NULL, &record, out_error);

    if (code == 0)
        *out_owners = record.owners;
    return code;
}

static const struct shape_field rows[] = {
    {SHAPE_AT_AS("time_us", log_line, event.time_us), SHAPE_IS_TIME},
    {SHAPE_AT_AS("kind", log_line, event.kind), SHAPE_IS_TEXT(STORE_KIND_MAX)},
    {SHAPE_AT_AS("trial", log_line, event.trial), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT_AS("key", log_line, event.key), SHAPE_IS_TEXT(STORE_KEY_MAX)},
    {SHAPE_AT(log_line, body), .kind = SHAPE_JSON_OBJECT},
    {SHAPE_AT_AS("number", log_line, event.number), SHAPE_IS_U64(1, INT64_MAX)},
};
static const struct shape shape_log_line = {SHAPE_OF(log_line, rows)};

int log_line_read(const char *line, size_t length, uint64_t number, struct log_line *out_line,
                  struct fly_error *out_error)
{
    struct shape_fault fault;
    struct log_line read;
    json_t *json;
    int code;

    if (length > LOG_LINE_MAX) /* parsed, a line takes up to eighty times its length */
        return error_set(out_error, FLY_EUSAGE, "is longer than %d bytes", (int)LOG_LINE_MAX);
    code = shape_parse_as(line, length, SHAPE_LENIENT, &json, &fault, out_error);
    if (code == FLY_ENOMEM)
        return code;
    if (code < 0)
        return error_set(out_error, FLY_EUSAGE, "is no JSON object (column %zu: %.120s)", fault.column,
                         fault.expected);
    code = shape_read(&shape_log_line, json, SHAPE_BORROWING, NULL, &read, out_error);
    if (code == 0 && read.event.number != number)
        code = error_set(out_error, FLY_EDATA, "member 'number': expected the next number");
    if (code < 0) {
        json_decref(json);
        return code == FLY_ENOMEM ? code : FLY_EDATA;
    }
    read.json = json;
    *out_line = read;
    return 0;
}

void log_line_deinit(struct log_line *line)
{
    json_decref(line->json);
}
