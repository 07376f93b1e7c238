/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/process_claims.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/user_directory.h"

enum { HOST_MAX = 256 };

/* When this process first claimed devices; with its pid it names a job that has no name. */
static double first_unix_s;
static pthread_once_t first = PTHREAD_ONCE_INIT;

static void note_first(void)
{
    first_unix_s = (double)clock_real.date(clock_real.state).ns * 1e-9;
}

void process_identity(struct identity *out_identity)
{
    char host[HOST_MAX] = "";

    gethostname(host, sizeof host - 1);
    identity_find((const char *const *)environ, host, out_identity);
}

void process_claims_take(const struct device_list *list, struct identity *out_identity,
                         struct claims *out_claims)
{
    struct claim_options options = {.identity = out_identity,
                                    .inherited = getenv(CLAIM_VARIABLE),
                                    .runtime_directory = getenv("XDG_RUNTIME_DIR"),
                                    .fallback = "/tmp",
                                    .uid = geteuid(),
                                    .pid = getpid()};
    char host[HOST_MAX] = "", last[CLAIM_PATH_MAX / 2], below[HOST_MAX + 8];

    gethostname(host, sizeof host - 1);
    pthread_once(&first, note_first);
    options.start_unix_s = first_unix_s;
    process_identity(out_identity);
    snprintf(below, sizeof below, "claims-%s", host);
    if (strchr(host, '/') == NULL &&
        user_directory_find(USER_STATE, below, "claims", last, sizeof last, NULL) == 0)
        options.last = last;
    claims_take(&options, list, out_claims);
}
