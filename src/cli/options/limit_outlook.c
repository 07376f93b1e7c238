/* SPDX-License-Identifier: Apache-2.0 */
/* Asks locks and permissions, and whether there is a daemon that sets limits; sets nothing. */
#include "cli/options/limit_outlook.h"

#include <unistd.h>

#include "base/error.h"
#include "knob/turnable.h"

/* A user who is not root needs another way. */
static void look_for_way(struct limit_outlook *outlook)
{
    struct site site;
    char text[SITE_TEXT_MAX];

    site_init(NULL, &site);
    outlook->may = site_offers_more(&site) ? MAY_LIKELY : MAY_UNLIKELY;
    if (outlook->may == MAY_LIKELY)
        error_set(&outlook->why_not, FLY_EPERM, "not through the driver, since this is not root, but by %s",
                  site_describe(&site, WAY_DAEMON, text));
    else
        error_set(&outlook->why_not, FLY_EPERM,
                  "NVIDIA's driver lets root alone set limits, and this is not root; run "
                  "'sudo flyball power set'");
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
        look_for_way(out_outlook);
    else
        out_outlook->may = MAY;
}
