/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ASK_RULE_H
#define FLYBALL_GRID_ASK_RULE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Decides whether a server may be asked now: two records, which all processes of a machine share
 * in files (grid_cache.h), and the rules over them. Uses no clock, no file and no random source
 * of its own.
 *
 * The record of a query, one kind of question about one place, says what was asked for and when.
 * A new request is made if a period has begun since the last one, or for times that were not
 * asked for. What ended more than ASK_REVISED_S before it was asked for is not asked for again. A
 * refusal (no such zone, no right to it) holds for ASK_REFUSED_S.
 *
 * The record of a service says how often it failed in a row, and until when to leave it alone:
 *
 *     failures         wait
 *     1, 2, 3, 4       30 s, 60 s, 120 s, 240 s, of which luck takes up to a half
 *     5 and more       the circuit is open: 15 min, 30 min, 1 h, likewise
 *     Retry-After      as long as it says, at most a day, and never shorter than above
 *
 * After a failure, one process at a time tries whether the service works again: it claims the try
 * for ASK_TRY_S before it asks. Times are seconds since 1970. A wait longer than any that these
 * rules set comes from a clock that was turned back, and is ignored.
 */
enum {
    ASK_REVISED_S = 7 * 86400,
    ASK_REFUSED_S = 600,
    ASK_TRY_S = 60,
    ASK_BREAK_AT = 5,
    ASK_RETRY_AFTER_MOST_S = 86400,
};

struct ask_query {
    int64_t from_s, to_s;    /* what was asked for and answered; from_s == to_s: nothing yet */
    int64_t asked_s;         /* when the newest of it was asked for */
    int64_t refused_until_s; /* 0: not refused */
};

/* Returns whether [from_s, to_s) has to be asked for; a period takes `step_s` > 0. */
bool ask_is_due(const struct ask_query *query, int64_t from_s, int64_t to_s, int64_t step_s, int64_t now_s);

/* Records an answer; a span that touches the recorded one is joined to it, any other replaces it. */
void ask_note_answer(struct ask_query *query, int64_t from_s, int64_t to_s, int64_t now_s);
void ask_note_refusal(struct ask_query *query, int64_t now_s);
bool ask_is_refused(const struct ask_query *query, int64_t now_s);

struct ask_service {
    uint32_t failures;       /* in a row */
    int64_t blocked_until_s; /* 0: not blocked */
};

/* Returns the seconds to wait before the service may be asked; 0: ask now. */
int64_t ask_wait_s(const struct ask_service *service, int64_t now_s);

/* Records that a process is about to ask. */
void ask_set_out(struct ask_service *service, int64_t now_s);

/* Records that the service answered, even if with a refusal. */
void ask_went_well(struct ask_service *service);

/*
 * Records a failure; `retry_after_s` is the wait that the service asks for, or 0; `luck` is a
 * random number.
 */
void ask_failed(struct ask_service *service, double retry_after_s, uint64_t luck, int64_t now_s);

#endif
