/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/caller.h"

#include <stdio.h>
#include <unistd.h>

void caller_find(const struct serve_request *request, const char *operators, struct job_caller *out_caller)
{
    const struct serve_peer *peer = &request->peer;
    struct job_caller caller = {.name = JOB_OWNER_ANONYMOUS};

    if (request->caller_name[0] != '\0') {
        snprintf(caller.name, sizeof caller.name, "token:%.64s", request->caller_name);
    } else if (peer->uid != (uid_t)-1) {
        snprintf(caller.name, sizeof caller.name, "uid:%lu", (unsigned long)peer->uid);
        if (peer->gid != (gid_t)-1)
            snprintf(caller.group, sizeof caller.group, "gid:%lu", (unsigned long)peer->gid);
        caller.operates = peer->uid == 0 || peer->uid == geteuid();
    }
    if (operators != NULL && job_owners_have(operators, &caller))
        caller.operates = true;
    *out_caller = caller;
}
