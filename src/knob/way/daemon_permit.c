/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/way/daemon_permit.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/harmless.h"
#include "knob/way/daemon_call.h"
#include "shapes/shape_rows.h"

enum { HTTP_OK = 200, ARENA_MAX = 1 << 22 };

struct answer {
    bool may_control;
    const char *may_not;
};
static const struct shape_field answer_rows[] = {
    {SHAPE_AT(answer, may_control), SHAPE_IS_BOOL},
    {SHAPE_AT(answer, may_not), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .null = SHAPE_OR_NULL,
     .loose = true},
};
static const struct shape answer_shape = {SHAPE_OF(answer, answer_rows)};

int daemon_permit_read(const char *text, size_t length, struct daemon_permit *out_permit,
                       struct fly_error *out_error)
{
    struct answer answer = {.may_not = NULL};
    struct arena arena;
    int code;

    arena_init(&arena, ARENA_MAX);
    code = shape_read_text(&answer_shape, text, length, SHAPE_FOREIGN, &arena, &answer, NULL, NULL);
    if (code == 0) {
        out_permit->word = answer.may_control ? DAEMON_LETS : DAEMON_REFUSES;
        snprintf(out_permit->why, sizeof out_permit->why, "%.*s", FLY_ERROR_TEXT_MAX - 1,
                 answer.may_not != NULL && !answer.may_control ? answer.may_not : "");
        harmless_make_ascii(out_permit->why);
    }
    arena_deinit(&arena);
    return code < 0 ? error_set(out_error, FLY_EDATA,
                                "flyballd does not say who may control the GPU; is it of "
                                "another version?")
                    : 0;
}

static int ask_flyballd(struct daemon_call *call, unsigned id, struct daemon_permit *out_permit,
                        struct fly_error *out_error)
{
    struct http_answer answer;
    char path[64];
    int code;

    snprintf(path, sizeof path, "/v1/gpus/%u", id);
    code = daemon_call_ask(call, "GET", path, &answer, out_error);
    if (code < 0)
        return code;
    code = answer.status == HTTP_OK
               ? daemon_permit_read(answer.body.data, answer.body.length, out_permit, out_error)
               : daemon_call_refused(call, &answer, out_error);
    http_answer_deinit(&answer);
    return code;
}

static int ask(struct daemon_call *call, struct daemon_permit *out_permit, struct fly_error *out_error)
{
    unsigned id;
    int code = daemon_call_discover(call, &id, out_error);

    if (code < 0)
        return code;
    out_permit->word = DAEMON_OTHER;
    return call->is_flyballd ? ask_flyballd(call, id, out_permit, out_error) : 0;
}

void daemon_permit_ask(const struct site *site, const struct device *device, struct daemon_permit *out_permit)
{
    struct daemon_call call;
    struct fly_error error;
    int code;

    *out_permit = (struct daemon_permit){.word = DAEMON_ABSENT};
    if (site->daemon[0] == '\0')
        return;
    code = daemon_call_open(site, device, &call, &error);
    if (code == 0)
        code = ask(&call, out_permit, &error);
    if (code < 0) {
        out_permit->word = code == FLY_ENOTFOUND                   ? DAEMON_ABSENT
                           : code == FLY_EPERM && call.is_flyballd ? DAEMON_REFUSES
                                                                   : DAEMON_UNWELL;
        snprintf(out_permit->why, sizeof out_permit->why, "%s", error.text);
    }
    daemon_call_close(&call);
}
