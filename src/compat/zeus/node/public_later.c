/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/zeus/node/public_later.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/pool.h"

enum { STACK_BYTES = 256 * 1024 };

struct line {
    struct public_later *later;
    bool has_thread, busy;
    struct public_command *commands; /* a ring, made with the thread */
    size_t first, count;
};

struct public_later {
    struct public_later_options options;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* broadcast on each change that somebody waits for */
    bool closing;
    struct pool pool; /* of the lines' threads */
    struct line lines[LEASE_GPUS_MAX];
};

int public_later_new(const struct public_later_options *options, struct public_later **out_later,
                     struct fly_error *out_error)
{
    struct public_later *later = calloc(1, sizeof *later);

    if (later == NULL)
        return error_no_memory(out_error);
    later->options = *options;
    pthread_mutex_init(&later->lock, NULL);
    pthread_cond_init(&later->changed, NULL);
    *out_later = later;
    return 0;
}

static void *work(void *state)
{
    struct line *line = state;
    struct public_later *later = line->later;
    size_t gpu = (size_t)(line - later->lines);

    pthread_mutex_lock(&later->lock);
    while (!later->closing) {
        struct public_command command;
        struct fly_error error;

        if (line->count == 0) {
            pthread_cond_wait(&later->changed, &later->lock);
            continue;
        }
        command = line->commands[line->first];
        line->first = (line->first + 1) % PUBLIC_LATER_MAX;
        line->count--;
        line->busy = true;
        pthread_mutex_unlock(&later->lock);
        if (later->options.carry_out(later->options.self, &command, &error) < 0)
            later->options.failed(later->options.self, gpu, &error);
        pthread_mutex_lock(&later->lock);
        line->busy = false;
        pthread_cond_broadcast(&later->changed);
    }
    pthread_mutex_unlock(&later->lock);
    return NULL;
}

/* Under the lock. */
static int start(struct public_later *later, struct line *line, struct fly_error *out_error)
{
    int failed;

    if (line->commands == NULL)
        line->commands = calloc(PUBLIC_LATER_MAX, sizeof *line->commands);
    if (line->commands == NULL)
        return error_no_memory(out_error);
    line->later = later;
    failed = pool_add(&later->pool, STACK_BYTES, work, line);
    if (failed != 0)
        return error_set(out_error, FLY_ENOMEM, "cannot start a thread: %s; send block=true",
                         strerror(failed));
    line->has_thread = true;
    return 0;
}

int public_later_put(struct public_later *later, size_t gpu, const struct public_command *command,
                     struct fly_error *out_error)
{
    struct line *line = &later->lines[gpu];
    int code = 0;

    pthread_mutex_lock(&later->lock);
    if (line->count == PUBLIC_LATER_MAX)
        code = error_set(out_error, FLY_EBUSY, "%d commands wait for GPU %zu already; send block=true",
                         PUBLIC_LATER_MAX, gpu);
    else if (!line->has_thread)
        code = start(later, line, out_error);
    if (code == 0) {
        line->commands[(line->first + line->count++) % PUBLIC_LATER_MAX] = *command;
        pthread_cond_broadcast(&later->changed);
    }
    pthread_mutex_unlock(&later->lock);
    return code;
}

void public_later_wait(struct public_later *later, size_t gpu)
{
    const struct line *line = &later->lines[gpu];

    pthread_mutex_lock(&later->lock);
    while (!later->closing && (line->count > 0 || line->busy))
        pthread_cond_wait(&later->changed, &later->lock);
    pthread_mutex_unlock(&later->lock);
}

void public_later_free(struct public_later *later)
{
    if (later == NULL)
        return;
    pthread_mutex_lock(&later->lock);
    later->closing = true;
    pthread_cond_broadcast(&later->changed);
    pthread_mutex_unlock(&later->lock);
    pool_join(&later->pool);
    for (size_t i = 0; i < LEASE_GPUS_MAX; i++)
        free(later->lines[i].commands);
    pthread_cond_destroy(&later->changed);
    pthread_mutex_destroy(&later->lock);
    free(later);
}
