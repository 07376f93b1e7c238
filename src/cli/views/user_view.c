/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/views/user_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/accounts.h"

static const char *show_uid(const char *number, char text[USER_VIEW_MAX])
{
    char name[JOB_USER_MAX];

    if (accounts_user_name((uint32_t)strtoul(number, NULL, 10), name, sizeof name))
        snprintf(text, USER_VIEW_MAX, "%.12s (%s)", number, name);
    else
        snprintf(text, USER_VIEW_MAX, "%.12s", number);
    return text;
}

const char *user_view(const char *user, bool for_people, char text[USER_VIEW_MAX])
{
    char told[JOB_USER_MAX];

    job_user_told(user, told);
    if (for_people && strncmp(told, JOB_USER_SAID, strlen(JOB_USER_SAID)) == 0)
        snprintf(text, USER_VIEW_MAX, "%s (said)", told + strlen(JOB_USER_SAID));
    else if (for_people && strncmp(told, "uid:", strlen("uid:")) == 0)
        return show_uid(told + strlen("uid:"), text);
    else
        snprintf(text, USER_VIEW_MAX, "%s", told);
    return text;
}
