/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_JOB_OWNER_H
#define FLYBALL_JOB_CORE_JOB_OWNER_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

/*
 * Who owns a job that a service keeps. Whoever makes a job owns it; owners and operators change it, and name
 * its owners; all others read it. A job without owners belongs to the operators: so do those that were made
 * before there were owners, and those that were made in the store itself, where the file's permissions rule.
 *
 * An owner is "uid:1000", a user whom the kernel named; "gid:100", those whose primary group it is;
 * "token:NAME", the bearer of that token; or "anonymous", all callers of whom nothing is known. The list on
 * record is one text, with commas.
 */
enum {
    JOB_OWNER_MAX = 72, /* bytes of one, with the final NUL */
    JOB_OWNERS_MAX = 16,
    JOB_OWNERS_TEXT_MAX = JOB_OWNERS_MAX * JOB_OWNER_MAX, /* bytes of a list, with the final NUL */
};
#define JOB_OWNER_ANONYMOUS "anonymous"
#define JOB_OWNERS_NONE "operator" /* set as the list, it leaves the job to the operators */

/*
 * The user of an attempt is recorded in the same form by whoever knows: a service by its peer or token, a
 * training over a store of its own by its uid. Any other text, and one behind this, is only what was said, as
 * by an import.
 */
#define JOB_USER_SAID "said:"
enum { JOB_USER_MAX = 128 + sizeof JOB_USER_SAID /* bytes, with the final NUL */ };

/* Returns `text` with the user of an attempt as it is told: what was only said begins with JOB_USER_SAID. */
const char *job_user_told(const char *user, char text[JOB_USER_MAX]);

/* Who asks, as a service knows it. */
struct job_caller {
    char name[JOB_OWNER_MAX];  /* uid:, token: or anonymous */
    char group[JOB_OWNER_MAX]; /* gid:, or "" */
    bool operates;             /* may change every job */
};

/* Checks a list of 1 to JOB_OWNERS_MAX owners: FLY_EUSAGE names the one that is none, or FLY_ELIMIT. */
int job_owners_check(const char *owners, struct fly_error *out_error);

/* Returns whether the caller is in the list. It may be empty. */
bool job_owners_have(const char *owners, const struct job_caller *caller);

/* Returns whether it is one owner, of any kind but a group: the form in which a service records callers. */
bool job_owner_is_caller(const char *name);

#endif
