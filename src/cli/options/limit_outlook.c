/* SPDX-License-Identifier: Apache-2.0 */
/* Asks locks, permissions and the site's ways of setting limits; sets nothing. */
#include "cli/options/limit_outlook.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "knob/turnable.h"

/* A user who is not root needs another way. */
static void look_for_way(const struct device *gpu, struct limit_outlook *outlook)
{
    struct site site;
    char ways[WAY_COUNT * SITE_TEXT_MAX] = "", text[SITE_TEXT_MAX];
    size_t length = 0;

    site_init(&(struct site_options){.commands = NULL}, &site);
    for (int way = WAY_DRIVER + 1; way < WAY_COUNT; way++) {
        if (site_offers(&site, (enum way)way, gpu))
            length +=
                (size_t)snprintf(ways + length, sizeof ways - length, "%s%s", length > 0 ? ", then by " : "",
                                 site_describe(&site, (enum way)way, text));
    }
    outlook->may = length > 0 ? MAY_LIKELY : MAY_UNLIKELY;
    if (length > 0)
        error_set(&outlook->why_not, FLY_EPERM, "not through the driver, since this is not root, but by %s",
                  ways);
    else
        error_set(&outlook->why_not, FLY_EPERM,
                  "NVIDIA's driver lets root alone set limits, and this is not root; run "
                  "'sudo flyball power set'");
    site_deinit(&site);
}

void limit_outlook_find(const struct knob_options *options, const char *directory,
                        const struct fly_error *missing, const struct device *gpu,
                        struct limit_outlook *out_outlook)
{
    const struct turnable_options turnable = {
        .readonly_path = options->readonly_path != NULL ? options->readonly_path : KNOB_READONLY_PATH,
        .proc_root = "/proc",
        .mps_pipe_directory =
            options->mps_pipe_directory != NULL ? options->mps_pipe_directory : KNOB_MPS_DIRECTORY,
        .begins = true,
    };

    *out_outlook = (struct limit_outlook){.may = MAY_NOT, .held = missing->code, .lock = *missing};
    if (missing->code == 0)
        out_outlook->held =
            gpu_lock_holder(directory, gpu->info.uuid, out_outlook->holder, &out_outlook->lock);
    if (turnable_check(&turnable, gpu, &out_outlook->why_not) < 0)
        return;
    if (out_outlook->held == 1)
        error_set(&out_outlook->why_not, FLY_ESTATE, "its knobs are held by %s", out_outlook->holder);
    else if (out_outlook->held < 0)
        out_outlook->why_not = out_outlook->lock;
    else if (geteuid() != 0)
        look_for_way(gpu, out_outlook);
    else
        out_outlook->may = MAY;
}
