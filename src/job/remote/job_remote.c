/* SPDX-License-Identifier: Apache-2.0 */
/* The back end over a service. */
#include "job/remote/job_remote.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/thread/fork_guard.h"
#include "job/core/call_check.h"
#include "job/core/definition.h"
#include "job/remote/remote_ask.h"
#include "job/remote/remote_credentials.h"

enum { SCRATCH_MAX = 1 << 20 };

static void remote_close(void *self)
{
    struct job_remote *remote = self;

    http_line_free(remote->line);
    free(remote->authority_file);
    free(remote->token_file);
    free(remote->authorization);
    free(remote);
}

static int remote_open(const char *address, const struct job_options *options, void **out_self,
                       struct fly_error *out_error)
{
    struct job_remote *remote = calloc(1, sizeof *remote);
    int code;

    if (remote == NULL)
        return error_no_memory(out_error);
    remote->generation = fork_generation();
    remote->wait_s = options->wait_s > 0.0 ? options->wait_s : STORE_WAIT_DEFAULT_S;
    code = service_address_parse(address, &remote->address, out_error);
    if (code == 0) {
        snprintf(remote->shown, sizeof remote->shown, "%s", address);
        code = remote_credentials(remote, options, out_error);
    }
    if (code < 0) {
        remote_close(remote);
        return code;
    }
    *out_self = remote;
    return 0;
}

/* ---- calls in general ---- */

/* The place of a call; FLY_ENOTFOUND for an impossible job. */
static int place(enum api_operation operation, const char *job, uint64_t trial, struct api_place *out_place,
                 struct fly_error *out_error)
{
    *out_place = (struct api_place){.operation = operation, .trial = trial};
    if (job == NULL || !job_name_fits(job))
        return error_set(out_error, FLY_ENOTFOUND, "no job '%.100s'; register it first",
                         job != NULL ? job : "");
    if (trial > INT64_MAX)
        return error_set(out_error, FLY_ENOTFOUND, "job '%s' has no trial %" PRIu64, job, trial);
    snprintf(out_place->job, sizeof out_place->job, "%s", job);
    return 0;
}

/* Makes a call whose answer has no texts of its own. */
static int ask(void *self, enum api_operation operation, const char *job, uint64_t trial, const void *asks,
               void *out_struct, struct fly_error *out_error)
{
    struct remote_call call = {.asks = asks, .out_struct = out_struct};
    struct arena scratch;
    int code = place(operation, job, trial, &call.place, out_error);

    if (code < 0)
        return code;
    arena_init(&scratch, SCRATCH_MAX);
    call.arena = &scratch;
    code = remote_ask(self, &call, NULL, out_error);
    arena_deinit(&scratch);
    return code;
}

/* ---- changes ---- */

static int remote_define(void *self, const struct job_definition *definition,
                         struct job_registered *out_registered, struct fly_error *out_error)
{
    int code = job_definition_check(definition, out_error);

    return code < 0 ? code
                    : ask(self, API_DEFINE, definition->name, 0, definition, out_registered, out_error);
}

static int remote_set(void *self, const struct job_setting *setting, struct fly_error *out_error)
{
    return ask(self, API_SET, setting->job, 0, setting, NULL, out_error);
}

static int make_request(char text[REMOTE_REQUEST_TEXT], struct fly_error *out_error)
{
    unsigned char bytes[(REMOTE_REQUEST_TEXT - 1) / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(out_error, FLY_EREAD, "the system has no random numbers for a request");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int remote_propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                          struct fly_error *out_error)
{
    struct job_question asked = *question;
    char request[REMOTE_REQUEST_TEXT];
    int code = call_check_question(question, out_error);

    if (code == 0 && (asked.request == NULL || asked.request[0] == '\0')) {
        code = make_request(request, out_error);
        asked.request = request;
    }
    return code < 0 ? code : ask(self, API_PROPOSE, question->job, 0, &asked, out_proposal, out_error);
}

static int remote_profile(void *self, const struct job_profile *profile, struct job_choice *out_choice,
                          struct fly_error *out_error)
{
    int code = call_check_profile(profile, out_error);

    return code < 0 ? code
                    : ask(self, API_PROFILE, profile->job, profile->trial, profile, out_choice, out_error);
}

static int remote_heartbeat(void *self, const struct job_beat *beat, struct fly_error *out_error)
{
    int code = call_check_beat(beat, out_error);

    return code < 0 ? code : ask(self, API_HEARTBEAT, beat->job, beat->trial, beat, NULL, out_error);
}

static int remote_report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                         struct fly_error *out_error)
{
    struct job_epoch plain = *epoch;
    int code = call_check_epoch(epoch, out_error);

    if (code < 0)
        return code;
    code = ask(self, API_REPORT, epoch->job, epoch->trial, epoch, out_answered, out_error);
    /* An older service refuses these members; send the report without them. */
    if (code != FLY_EDATA || (!epoch->afterwards && !(epoch->startup_time_s > 0.0)))
        return code;
    plain.afterwards = false;
    plain.startup_energy_j = plain.startup_time_s = NAN;
    return ask(self, API_REPORT, epoch->job, epoch->trial, &plain, out_answered, out_error);
}

static int remote_end(void *self, const struct job_end *end, struct job_ended *out_ended,
                      struct fly_error *out_error)
{
    struct job_end plain = *end;
    int code = call_check_end(end, out_error);

    if (code == 0)
        code = ask(self, API_END, end->job, end->trial, end, out_ended, out_error);
    if (code != FLY_EDATA || (!end->nothing_learnt && !(end->startup_time_s > 0.0)))
        return code;
    plain.nothing_learnt = false;
    plain.startup_energy_j = plain.startup_time_s = NAN;
    return ask(self, API_END, end->job, end->trial, &plain, out_ended, out_error);
}

static int remote_expire(void *self, const char *job, uint64_t *out_expired, struct fly_error *out_error)
{
    struct job_expired expired;
    int code = ask(self, API_EXPIRE, job, 0, NULL, &expired, out_error);

    if (code == 0)
        *out_expired = expired.expired;
    return code;
}

/* ---- what can be done once ---- */

static int remote_remove(void *self, const char *job, struct fly_error *out_error)
{
    struct remote_call call = {.once = true};
    bool repeated = false;
    int code = place(API_REMOVE, job, 0, &call.place, out_error);

    if (code < 0)
        return code;
    code = remote_ask(self, &call, &repeated, out_error);
    return repeated && code == FLY_ENOTFOUND ? 0 : code;
}

static int remote_import(void *self, const char *job, const char *text, size_t length,
                         struct fly_error *out_error)
{
    struct remote_call call = {.once = true};
    bool repeated = false;
    char *lines;
    int code = place(API_IMPORT, job, 0, &call.place, out_error);

    if (code < 0)
        return code;
    if (length > 0 && memchr(text, '\0', length) != NULL)
        return error_set(out_error, FLY_EDATA, "import of job '%s': the lines have a 0 byte", job);
    lines = malloc(length + 1);
    if (lines == NULL)
        return error_no_memory(out_error);
    if (length > 0)
        memcpy(lines, text, length);
    lines[length] = '\0';
    call.lines = lines;
    code = remote_ask(self, &call, &repeated, out_error);
    free(lines);
    return repeated && code == FLY_ECONFLICT
               ? error_set(out_error, FLY_EUNSURE,
                           "job '%s' is there, and maybe by this import, whose answer was lost; look at it",
                           job)
               : code;
}

/* ---- looking ---- */

static int remote_list(void *self, struct arena *arena, struct job_list *out_list,
                       struct fly_error *out_error)
{
    const struct remote_call call = {
        .place = {.operation = API_LIST}, .arena = arena, .out_struct = out_list};

    return remote_ask(self, &call, NULL, out_error);
}

static int remote_show(void *self, const char *job, struct arena *arena, struct job_shown *out_shown,
                       struct fly_error *out_error)
{
    struct remote_call call = {.arena = arena, .out_struct = out_shown};
    int code = place(API_SHOW, job, 0, &call.place, out_error);

    return code < 0 ? code : remote_ask(self, &call, NULL, out_error);
}

/* Reads one page; `out_count`: how many of its events were visited. */
static int read_page(struct job_remote *remote, const struct api_place *place, struct store_query *query,
                     store_visit *visit, void *state, uint64_t *out_count, struct fly_error *out_error)
{
    struct remote_reply reply = {.from = remote->shown};
    struct buffer lines;
    const struct remote_call call = {.place = *place, .query = query, .out_lines = &lines};
    int code;

    buffer_init(&lines, API_ANSWER_MAX);
    code = remote_ask(remote, &call, NULL, out_error);
    reply.body = lines.data;
    reply.length = lines.length;
    if (code == 0)
        code = remote_page_read(&reply, &query->after, out_count, visit, state, out_error);
    buffer_deinit(&lines);
    return code;
}

static int remote_read(void *self, const char *job, const struct store_query *query, store_visit *visit,
                       void *state, struct fly_error *out_error)
{
    struct store_query page = *query;
    struct api_place where;
    uint64_t count = 0;
    int code = place(API_READ, job, 0, &where, out_error);

    do {
        if (code == 0)
            code = read_page(self, &where, &page, visit, state, &count, out_error);
        if (code != 0 || (query->limit > 0 && count >= page.limit))
            break;
        if (query->limit > 0)
            page.limit -= count;
    } while (count > 0 && query->key == NULL);
    return code < 0 ? code : 0;
}

static int remote_digest(void *self, const char *job, uint64_t trials, struct buffer *out_bytes,
                         struct fly_error *out_error)
{
    const struct store_query query = {.limit = trials};
    struct remote_call call = {.query = &query, .out_lines = out_bytes};
    int code = place(API_DIGEST, job, 0, &call.place, out_error);

    return code < 0 ? code : remote_ask(self, &call, NULL, out_error);
}

/* The service counts them itself. */
static void remote_take_expired(void *self, struct job_expiries *out_expiries)
{
    (void)self;
    out_expiries->count = 0;
}

static bool remote_takes(const char *address)
{
    const char *rest;

    return address_split(address, &rest) != ADDRESS_PATH;
}

const struct job_backend job_backend_remote = {
    .name = "remote",
    .takes = remote_takes,
    .open = remote_open,
    .close = remote_close,
    .define = remote_define,
    .set = remote_set,
    .propose = remote_propose,
    .profile = remote_profile,
    .heartbeat = remote_heartbeat,
    .report = remote_report,
    .end = remote_end,
    .expire = remote_expire,
    .list = remote_list,
    .show = remote_show,
    .read = remote_read,
    .digest = remote_digest,
    .import = remote_import,
    .remove = remote_remove,
    .take_expired = remote_take_expired,
};
