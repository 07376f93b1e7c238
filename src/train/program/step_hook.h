/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_HOOK_H
#define FLYBALL_TRAIN_PROGRAM_STEP_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the start-up hook in the program's Pythons says, for the report. python/hook/ is that hook; its lines
 * have the word `hook` behind their sender. A line that says nothing else is a step.
 *
 *     saw torch                         a module was imported; `saw python`: a Python started with the hook
 *     counts SGD                        from here on, the steps are those of this optimizer; before the first
 *                                       step it is one that was seen, and waits for other optimizers
 *     failed TypeError: ... at line 7 of optimizers.py
 *
 * Pure functions. Start with all zeros.
 */
enum { STEP_HOOK_TEXT_MAX = 256, STEP_HOOK_NAME_MAX = 64, STEP_HOOK_SENTENCE_MAX = 768 };

/* From the least to the most that can be said of it. */
enum step_hook_saw {
    STEP_HOOK_SAW_NOTHING,
    STEP_HOOK_SAW_PYTHON,
    STEP_HOOK_SAW_RAY,
    STEP_HOOK_SAW_TENSORFLOW,
    STEP_HOOK_SAW_JAX,
    STEP_HOOK_SAW_TORCH,
    STEP_HOOK_SAW_COUNT
};

struct step_hook {
    bool wanted;                          /* it was offered to the program */
    enum step_hook_saw saw;               /* the most telling module that a Python imported */
    char counts[STEP_HOOK_NAME_MAX];      /* the optimizer's class; "": none yet */
    char failure[STEP_HOOK_TEXT_MAX];     /* the first one; "" */
    char not_offered[STEP_HOOK_TEXT_MAX]; /* why it was not offered, though it should have been; "" */
    uint64_t steps;                       /* of those that count, how many it told */
};

/* Takes a line's words; `counted`: they come from the process whose steps count, or none counts yet. */
void step_hook_take(struct step_hook *hook, const char *said, bool counted);

/*
 * Writes a sentence about the steps: whose they are, or why there are none and which two lines tell them.
 * "" where the hook has no part in it: it was not wanted, or the program tells its steps. `steps` is how many
 * the program made in all. Returns `text`.
 */
const char *step_hook_sentence(const struct step_hook *hook, uint64_t steps,
                               char text[STEP_HOOK_SENTENCE_MAX]);

#endif
