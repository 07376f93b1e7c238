/* SPDX-License-Identifier: Apache-2.0 */
#include "base/accounts.h"

#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

enum { ENTRY_BYTES = 16384 };

static bool as_number(const char *text, uint32_t *out_number)
{
    uint64_t number;

    if (!number_parse_u64(text, UINT32_MAX - 1, &number))
        return false;
    *out_number = (uint32_t)number;
    return true;
}

bool accounts_user(const char *text, uint32_t *out_uid)
{
    char bytes[ENTRY_BYTES];
    struct passwd user, *found = NULL;

    if (getpwnam_r(text, &user, bytes, sizeof bytes, &found) != 0 || found == NULL)
        return as_number(text, out_uid);
    *out_uid = found->pw_uid;
    return true;
}

bool accounts_group(const char *text, uint32_t *out_gid)
{
    char bytes[ENTRY_BYTES];
    struct group group, *found = NULL;

    if (getgrnam_r(text, &group, bytes, sizeof bytes, &found) != 0 || found == NULL)
        return as_number(text, out_gid);
    *out_gid = found->gr_gid;
    return true;
}

bool accounts_user_name(uint32_t uid, char *out_name, size_t size)
{
    char bytes[ENTRY_BYTES];
    struct passwd user, *found = NULL;

    if (getpwuid_r(uid, &user, bytes, sizeof bytes, &found) != 0 || found == NULL ||
        strlen(found->pw_name) >= size)
        return false;
    snprintf(out_name, size, "%s", found->pw_name);
    return true;
}
