/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/store_option.h"

/* clang-format off */
static const struct cli_option rows[] = {
    {.name = "store", .type = CLI_TEXT, .placeholder = "ADDRESS", .key = "store", .sensitive = true,
     .help = "Where jobs are kept: a file, postgresql://..., or a service: unix:PATH, http://HOST:PORT or "
             "https://HOST:PORT. If not given, a file of the user's own."}
};
/* clang-format on */
const struct cli_options store_options = CLI_OPTIONS(rows);

int store_option_open(const struct cli_call *call, struct jobs *out_jobs, struct fly_error *out_error)
{
    static const struct job_options to_read = {.existing = true};

    return jobs_open(cli_text(call, "store"), &to_read, out_jobs, out_error);
}

int store_option_open_any(const struct cli_call *call, struct jobs *out_jobs, struct fly_error *out_error)
{
    const char *store = cli_text(call, "store");
    int code = store_option_open(call, out_jobs, out_error);

    if (code != FLY_ENOTFOUND || (store != NULL && store[0] != '\0'))
        return code;
    *out_jobs = (struct jobs){0};
    cli_note(call, "there is no store of your own yet; the first training of a job makes one");
    return 0;
}

int store_option_list(const struct jobs *jobs, struct arena *arena, struct job_list *out_list,
                      struct fly_error *out_error)
{
    if (jobs->backend != NULL)
        return jobs->backend->list(jobs->self, arena, out_list, out_error);
    *out_list = (struct job_list){.count = 0};
    return 0;
}
