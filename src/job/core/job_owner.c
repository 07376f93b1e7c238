/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/job_owner.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
static const char kinds[][sizeof "token:"] = {"uid:", "gid:", "token:"};
enum { UID, GID, TOKEN, KINDS };

/* The kind of an owner of that length; KINDS: it is none. */
static size_t kind_of(const char *text, size_t length)
{
    char owner[JOB_OWNER_MAX];
    uint64_t number;
    size_t kind = 0;

    if (length >= sizeof owner)
        return KINDS;
    memcpy(owner, text, length);
    owner[length] = '\0';
    while (kind < KINDS && strncmp(owner, kinds[kind], strlen(kinds[kind])) != 0)
        kind++;
    if (kind == KINDS)
        return KINDS;
    text = owner + strlen(kinds[kind]);
    if (kind == TOKEN)
        return text[0] != '\0' && text[strspn(text, name_letters)] == '\0' ? TOKEN : KINDS;
    return number_parse_u64(text, UINT32_MAX - 1, &number) && (text[0] != '0' || text[1] == '\0') ? kind
                                                                                                  : KINDS;
}

static bool is_anonymous(const char *text, size_t length)
{
    return length == strlen(JOB_OWNER_ANONYMOUS) && memcmp(text, JOB_OWNER_ANONYMOUS, length) == 0;
}

int job_owners_check(const char *owners, struct fly_error *out_error)
{
    size_t count = 0;

    for (const char *at = owners;; at++) {
        size_t length = strcspn(at, ",");

        if (kind_of(at, length) == KINDS && !is_anonymous(at, length))
            return error_set(
                out_error, FLY_EUSAGE,
                "'%.*s' is no owner: expected uid:NUMBER, gid:NUMBER, token:NAME or anonymous, in a "
                "list with commas, or " JOB_OWNERS_NONE " alone",
                length < JOB_OWNER_MAX ? (int)length : JOB_OWNER_MAX, at);
        if (++count > JOB_OWNERS_MAX)
            return error_set(out_error, FLY_ELIMIT, "a job has at most %d owners; name a group as gid:NUMBER",
                             JOB_OWNERS_MAX);
        at += length;
        if (*at == '\0')
            return 0;
    }
}

bool job_owners_have(const char *owners, const struct job_caller *caller)
{
    for (const char *at = owners; *at != '\0';) {
        size_t length = strcspn(at, ",");

        if ((strlen(caller->name) == length && memcmp(at, caller->name, length) == 0) ||
            (length > 0 && strlen(caller->group) == length && memcmp(at, caller->group, length) == 0))
            return true;
        at += length;
        at += *at == ',';
    }
    return false;
}

bool job_owner_is_caller(const char *name)
{
    size_t length = strlen(name), kind = kind_of(name, length);

    return kind == UID || kind == TOKEN || is_anonymous(name, length);
}

const char *job_user_told(const char *user, char text[JOB_USER_MAX])
{
    bool told = user[0] == '\0' || job_owner_is_caller(user) ||
                strncmp(user, JOB_USER_SAID, strlen(JOB_USER_SAID)) == 0;

    snprintf(text, JOB_USER_MAX, "%s%s", told ? "" : JOB_USER_SAID, user);
    return text;
}
