/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_LEASE_AUDIT_H
#define FLYBALL_NODE_LEASE_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "node/lease/lease_table.h"

/*
 * The log of who turned what: one JSON object a line.
 *
 *     {"schema":"flyball-audit/1","date":"2026-11-23T19:37:36Z","what":"turn","outcome":"done","why":"",
 *      "uid":1000,"pid":4711,"program":"flyball run","token":"","lease":"5f0c...","gpu":"GPU-8f3a...",
 *      "quantity":"power_limit_mw","from":400000,"to":250000}
 *
 * Members that are not known are left out. Text of clients is escaped, so that a line stays a line and
 * no terminal takes it for a command. Each line is one write to a file opened with O_APPEND, so lines of
 * several processes do not mix, and a program that moves the file away loses none: tell it by
 * audit_reopen. A file that was removed is made again.
 *
 * A line is written whole or not at all. One that cannot be written is lost and counted; as soon as there is
 * room again a line says how many are missing (`what` is "missing", with `count`, and why).
 *
 * Where an audit is required, nothing may be leased that it does not have: leases.h then writes what is asked
 * for beforehand, with the outcome "asked", and refuses the lease if that fails; and each line is brought to
 * the disk. Thread-safe.
 */
struct audit;

/* What happened. */
#define AUDIT_MAP(X)                                                         \
    X(GRANT, "grant")     /* a lease was asked for */                        \
    X(CHANGE, "change")   /* another wish was asked for */                   \
    X(RENEW, "renew")     /* more time was asked for */                      \
    X(END, "end")         /* a lease ended; `why` says by what */            \
    X(TURN, "turn")       /* a knob of a GPU was turned for a lease */       \
    X(BACK, "back")       /* a GPU was put back when its last lease ended */ \
    X(REPAIR, "repair")   /* what an earlier daemon or session left */       \
    X(FOREIGN, "foreign") /* another program turned a leased knob */         \
    X(MISSING, "missing") /* lines could not be written */

#define AUDIT_ENUM(name, word) AUDIT_##name,
enum audit_what { AUDIT_MAP(AUDIT_ENUM) AUDIT_COUNT };
#undef AUDIT_ENUM

enum { AUDIT_VALUE_MAX = 96, AUDIT_WHY_MAX = 400 };

/* Texts are borrowed for the call; NULL or "": unknown. */
struct audit_event {
    enum audit_what what;
    bool asked;                        /* it is only asked for yet */
    int code;                          /* 0: done; FLY_EUNSURE: perhaps; else it was refused or failed */
    const char *why;                   /* of a failure or an end */
    const struct lease_holder *holder; /* who; NULL: the daemon itself */
    const char *lease;                 /* its id */
    const char *gpu;                   /* its UUID */
    const char *quantity;              /* a key of quantity.h: "power_limit_mw" */
    const char *from, *to;             /* values: numbers are written as such; "": unknown */
    uint64_t count;                    /* of lines that are missing */
};

/*
 * Opens the file, which is made with mode 0640 if it is not there; NULL: nothing is written. FLY_EWRITE,
 * FLY_EPERM, FLY_ENOMEM.
 */
int audit_open(const char *path, bool required, struct audit **out_audit, struct fly_error *out_error);
void audit_close(struct audit *audit);

/* Opens the file anew, at SIGHUP. If that fails, the old one stays. */
int audit_reopen(struct audit *audit, struct fly_error *out_error);

/* Writes a line; accepts NULL for no log. FLY_EWRITE if it is lost. */
int audit_write(struct audit *audit, const struct audit_event *event, struct fly_error *out_error);

/* Returns whether nothing may be done that is not on record; false for NULL. */
bool audit_is_required(const struct audit *audit);

/*
 * Writes what is missing, if that is possible by now. FLY_EWRITE if lines are missing, or were lost since the
 * last look.
 */
int audit_look(struct audit *audit, struct fly_error *out_error);

/* Returns how many lines could not be written. */
uint64_t audit_lost(struct audit *audit);

#endif
