/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_LIMIT_OUTLOOK_H
#define FLYBALL_CLI_OPTIONS_LIMIT_OUTLOOK_H

#include "device/recording/facts.h"
#include "knob/gpu_lock.h"
#include "knob/knob.h"

/*
 * Whether this user may set a GPU's power limit here, as far as that can be known without setting
 * it:
 *
 *     struct limit_outlook outlook;
 *
 *     limit_outlook_find(&options, directory, &missing, gpu, &outlook);
 *     ... facts_may_words[outlook.may], outlook.why_not.text ...
 */
struct limit_outlook {
    enum facts_may may;
    struct fly_error why_not; /* code 0: no reason is known */
    int held;                 /* whether somebody holds its knobs: 1, 0, or the code of `lock` */
    char holder[GPU_LOCK_HOLDER_MAX];
    struct fly_error lock;
};

/* Finds it. `directory` has the locks; `missing` says why there is none, with code 0 if there is one. */
void limit_outlook_find(const struct knob_options *options, const char *directory,
                        const struct fly_error *missing, const struct device *gpu,
                        struct limit_outlook *out_outlook);

#endif
