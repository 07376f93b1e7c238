/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_ASK_H
#define FLYBALL_GRID_ONLINE_ASK_H

#include "grid/online_account.h"

/*
 * One question put to a service, after a login where it needs one, and once more after
 * another where the first is no longer good (401).
 */
enum ask_outcome {
    ASK_ANSWERED, /* 0; the series may be empty */
    ASK_REFUSED,  /* it is well, but does not give this: FLY_EPERM, FLY_ENOTFOUND, FLY_EUNSUPPORTED, FLY_EDATA
                   */
    ASK_FAILED,   /* FLY_EUNREACHABLE, FLY_EDATA for what is no JSON */
    ASK_UNABLE,   /* it was not asked: FLY_EUNSUPPORTED without libcurl, FLY_EUSAGE, FLY_ENOMEM; or not waited
                     for:   FLY_EUNREACHABLE */
};

/*
 * `out_answer` is set after ASK_ANSWERED alone, `out_error` after all others; `out_retry_after_s`
 * always, 0 where it was not said.
 */
enum ask_outcome online_ask(const struct online_provider *provider, struct online_account *account,
                            const struct online_question *question, const struct grid_kind *kind,
                            struct grid_answer *out_answer, double *out_retry_after_s,
                            struct fly_error *out_error);

/*
 * What a body that is no answer says of the reason: the text of "error", "message", "detail" or "title",
 * or of "message" in "error". Printable characters alone, "" where there is nothing. Pure.
 */
enum { ONLINE_REASON_MAX = 128 };
void online_reason(const char *text, size_t length, char out_reason[ONLINE_REASON_MAX]);

#endif
