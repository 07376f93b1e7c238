/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets a session's power limit, checks whether it stands, and lets go of it when another program has set one.
 */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "train/session/session_private.h"

void session_limit_explain(struct session_limit *limit, const char *text)
{
    if (limit->text[0] == '\0')
        snprintf(limit->text, sizeof limit->text, "%s", text);
}

/* Sets a limit. The limit that the GPUs report afterwards is the one that must stand from now on. */
static void hold(struct fly_session *session, double limit_w)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error = {.text = ""};
    int result = limit->turner->set(limit->data, limit_w, &error);

    if (result == 0)
        result = limit->turner->standing(limit->data, &limit->held_w, &error);
    if (result == 0)
        return;
    session_limit_explain(limit, error.text);
    limit->held_w = NAN;
}

/* Lets go of the limit without putting anything back, as another program has set one. */
static void let_go(struct session_limit *limit, const char *text)
{
    session_limit_explain(limit, text);
    limit->held_w = NAN;
}

/* The session's own knob, which a thread may give back. */
static int check_knob(struct session_limit *limit, struct fly_error *out_error)
{
    int code = 0;

    idle_turner_hold(&limit->idle);
    if (limit->knob != NULL)
        code = knob_check(limit->knob, out_error);
    idle_turner_let_go(&limit->idle);
    return code;
}

void session_limit_check(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error = {.text = ""};
    double standing_w;

    if (isnan(limit->held_w))
        return;
    if (check_knob(limit, &error) < 0) {
        let_go(limit, error.text);
        return;
    }
    if (limit->turner->standing(limit->data, &standing_w, &error) < 0) {
        let_go(limit, error.text);
    } else if (standing_w != limit->held_w) {
        error_set(&error, FLY_ESTATE, "another program changed the limit to %g W; it stays", standing_w);
        let_go(limit, error.text);
    }
}

void session_limit_change(struct fly_session *session, double limit_w)
{
    session_limit_check(session);
    if (!isnan(session->limit.held_w))
        hold(session, limit_w);
}

/* Sets the limit that the log chose, or the tuner when the log could not be asked. */
void session_limit_hold_choice(struct fly_session *session, double limit_w)
{
    session->limit.choice_w = limit_w;
    hold(session, limit_w);
}
