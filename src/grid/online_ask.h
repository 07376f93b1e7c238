/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_ASK_H
#define FLYBALL_GRID_ONLINE_ASK_H

#include "grid/online_account.h"

/*
 * Asks a service one question, after a login if it needs one. If the login is no longer valid
 * (401), it logs in and asks once more.
 */
enum ask_outcome {
    ASK_ANSWERED, /* returns 0; the series may be empty */
    ASK_REFUSED,  /* the service works but does not give this: FLY_EPERM, FLY_ENOTFOUND, FLY_EUNSUPPORTED,
                   * FLY_EDATA */
    ASK_FAILED,   /* FLY_EUNREACHABLE, or FLY_EDATA for what is not JSON */
    ASK_UNABLE,   /* it was not asked: FLY_EUNSUPPORTED without libcurl, FLY_EUSAGE, FLY_ENOMEM; or the
                   * answer was not waited for: FLY_EUNREACHABLE */
};

/*
 * `out_answer` is set only after ASK_ANSWERED, `out_error` after all others; `out_retry_after_s`
 * always, 0 if the service stated none.
 */
enum ask_outcome online_ask(const struct online_provider *provider, struct online_account *account,
                            const struct online_question *question, const struct grid_kind *kind,
                            struct grid_answer *out_answer, double *out_retry_after_s,
                            struct fly_error *out_error);

/*
 * Finds the reason in a body that is not an answer: the text of "error", "message", "detail" or
 * "title", or of "message" in "error". Only printable characters; "" if there is none. Pure.
 */
enum { ONLINE_REASON_MAX = 128 };
void online_reason(const char *text, size_t length, char out_reason[ONLINE_REASON_MAX]);

#endif
