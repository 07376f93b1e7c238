/* SPDX-License-Identifier: Apache-2.0 */
/* Asks what to run: the only thing that a training must wait for, and not for ever. */
#include "train/post/post_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "job/core/definition.h"

enum { ASK_MEMORY_MAX = 1 << 20 };

/* Added to wait_s, so that a log that gives up by itself can say why. */
static const double ask_grace_s = 0.5;

static const char *copy_text(struct post_ask *ask, const char *text)
{
    return arena_strdup(&ask->arena, text != NULL ? text : "");
}

static const void *copy_list(struct post_ask *ask, const void *list, size_t count, size_t size)
{
    void *copy = arena_alloc(&ask->arena, count + 1, size);

    if (copy != NULL && count > 0)
        memcpy(copy, list, count * size);
    return copy;
}

static bool copy_question(struct post_ask *ask, const struct job_question *from)
{
    struct job_question *to = &ask->question;
    const char **const texts[] = {
        &to->job,         &to->request,        &to->run,         &to->submission, &to->hardware.gpu_model,
        &to->origin.user, &to->origin.account, &to->origin.host, &to->origin.gpus};
    bool copied = true;

    *to = *from;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = copy_text(ask, *texts[i]);
        copied &= *texts[i] != NULL;
    }
    to->hardware.limits_w = copy_list(ask, from->hardware.limits_w, from->hardware.limit_count,
                                      sizeof from->hardware.limits_w[0]);
    return copied && to->hardware.limits_w != NULL;
}

static struct post_ask *new_ask(const struct fly_job_definition *definition,
                                const struct job_question *question)
{
    struct post_ask *ask = calloc(1, sizeof *ask);

    if (ask == NULL)
        return NULL;
    arena_init(&ask->arena, ASK_MEMORY_MAX);
    ask->defines = definition != NULL;
    if (ask->defines)
        ask->definition = *definition;
    if ((!ask->defines || definition_keep(&ask->definition, &ask->arena)) && copy_question(ask, question))
        return ask;
    post_free_ask(ask);
    return NULL;
}

/* Nobody waits any longer for the answer, which is still to come. Call it with the lock held. */
static int give_up(struct post *post, struct post_ask *ask)
{
    snprintf(post->text, sizeof post->text,
             "it gave no answer within %g s; 'flyball job list' shows whether it does again", post->wait_s);
    post->late = true;
    ask->given_up = true;
    if (post->ask == ask) {
        post->ask = NULL;
        post_free_ask(ask);
    }
    return FLY_EBUSY;
}

static int wait_for_answer(struct post *post, struct post_ask *ask, struct job_proposal *out_proposal)
{
    struct mono_time until = mono_after_s(mono_now(), post->wait_s + ask_grace_s);
    int code;

    post->ask = ask;
    post_wake(post);
    if (!post->threaded)
        post_log_turn(post);
    while (!ask->done && post_wait(post, until))
        ;
    if (!ask->done)
        return give_up(post, ask);
    code = ask->code;
    if (code == 0)
        *out_proposal = ask->proposal;
    post_free_ask(ask);
    return code;
}

int post_ask(struct post *post, const struct fly_job_definition *definition,
             const struct job_question *question, struct job_proposal *out_proposal)
{
    struct post_ask *ask = new_ask(definition, question);
    int code = FLY_ENOMEM;

    pthread_mutex_lock(&post->group.lock);
    post->round++;
    memset(post->answers, 0, sizeof post->answers);
    if (ask == NULL) {
        snprintf(post->text, sizeof post->text, "there is no memory for the question what to run");
    } else if (!post_begin(post)) {
        post_free_ask(ask);
    } else {
        code = wait_for_answer(post, ask, out_proposal);
    }
    if (code == 0) {
        free(post->run_line);
        post->run_line = NULL;
    }
    pthread_mutex_unlock(&post->group.lock);
    return code;
}
