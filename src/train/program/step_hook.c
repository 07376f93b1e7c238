/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/step_hook.h"

#include <stdio.h>
#include <string.h>

static const char *const modules[] = {
    [STEP_HOOK_SAW_NOTHING] = "", [STEP_HOOK_SAW_PYTHON] = "python",
    [STEP_HOOK_SAW_RAY] = "ray",  [STEP_HOOK_SAW_TENSORFLOW] = "tensorflow",
    [STEP_HOOK_SAW_JAX] = "jax",  [STEP_HOOK_SAW_TORCH] = "torch",
};

/* Why there are no steps. */
static const char nothing[] =
    "no Python started with the hook: the program is not one in Python, or runs Python with -I, -E or -S, "
    "with another PYTHONPATH, in a container or on another node";
static const char python[] =
    "the program's Python imported neither PyTorch nor another framework that the hook knows, or did so in a "
    "container or on another node";
static const char ray[] =
    "the program uses Ray, whose workers have the hook only where this program starts them on this machine";
static const char tensorflow[] =
    "the program uses TensorFlow, which has no optimizer step that the hook could see";
static const char jax[] = "the program uses JAX, which has no optimizer step that the hook could see";
static const char torch[] =
    "the program imported PyTorch, and no optimizer of torch.optim made a step that the hook could see";
static const char held[] =
    "which wait until every optimizer of the program has stepped, over 256 steps of the others or a minute, "
    "and the program ended before that and without Python's exit handlers, or goes on";
static const char *const reasons[] = {
    [STEP_HOOK_SAW_NOTHING] = nothing,       [STEP_HOOK_SAW_PYTHON] = python, [STEP_HOOK_SAW_RAY] = ray,
    [STEP_HOOK_SAW_TENSORFLOW] = tensorflow, [STEP_HOOK_SAW_JAX] = jax,       [STEP_HOOK_SAW_TORCH] = torch,
};
_Static_assert(sizeof modules / sizeof modules[0] == STEP_HOOK_SAW_COUNT, "a module for each");
_Static_assert(sizeof reasons / sizeof reasons[0] == STEP_HOOK_SAW_COUNT, "a reason for each");

static const char two_lines[] = "two lines in the program tell its steps: 'tuner = flyball.Tuner()' and 'for "
                                "batch in tuner.steps(loader):'";

/* What follows the word, or NULL where the line says another. */
static const char *after(const char *said, const char *word)
{
    size_t length = strlen(word);

    return strncmp(said, word, length) == 0 ? said + length : NULL;
}

static void take_module(struct step_hook *hook, const char *name)
{
    for (int i = STEP_HOOK_SAW_PYTHON; i < STEP_HOOK_SAW_COUNT; i++) {
        if (strcmp(name, modules[i]) == 0 && i > (int)hook->saw)
            hook->saw = (enum step_hook_saw)i;
    }
}

void step_hook_take(struct step_hook *hook, const char *said, bool counted)
{
    const char *module = after(said, "saw "), *name = after(said, "counts "),
               *failure = after(said, "failed ");

    if (module != NULL)
        take_module(hook, module);
    if (name != NULL && counted)
        snprintf(hook->counts, sizeof hook->counts, "%s", name);
    if (failure != NULL && hook->failure[0] == '\0')
        snprintf(hook->failure, sizeof hook->failure, "%s", failure);
}

const char *step_hook_sentence(const struct step_hook *hook, uint64_t steps,
                               char text[STEP_HOOK_SENTENCE_MAX])
{
    text[0] = '\0';
    if (!hook->wanted || (steps > 0 && hook->steps == 0 && hook->failure[0] == '\0'))
        return text;
    if (hook->not_offered[0] != '\0')
        snprintf(text, STEP_HOOK_SENTENCE_MAX, "the hook for Python is not used: %s", hook->not_offered);
    else if (hook->failure[0] != '\0')
        snprintf(text, STEP_HOOK_SENTENCE_MAX, "the hook in the program's Python failed: %s%s%s",
                 hook->failure, steps == 0 ? "; " : "", steps == 0 ? two_lines : "");
    else if (steps == 0 && hook->counts[0] != '\0')
        snprintf(text, STEP_HOOK_SENTENCE_MAX, "the hook in the program's Python saw steps of %s, %s; %s",
                 hook->counts, held, two_lines);
    else if (steps == 0)
        snprintf(text, STEP_HOOK_SENTENCE_MAX, "%s; %s", reasons[hook->saw], two_lines);
    else
        snprintf(text, STEP_HOOK_SENTENCE_MAX, "the hook in the program's Python saw the steps of %s",
                 hook->counts);
    return text;
}
