/* SPDX-License-Identifier: Apache-2.0 */
#include "device/nvidia/nvml_apart.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread/left_threads.h"
#include "base/thread/mono_wait.h"
#include "base/thread/quiet_thread.h"

/* A GPU while a thread opens it. */
struct opening {
    struct nvml_library *library;
    unsigned index;
    struct nvml_state *state;
    struct device_info info;
    bool done, left; /* left: nobody waits for it any more, and it frees itself */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static bool is_hung[DEVICES_MAX]; /* by the driver's number: a thread that was left is still at it */

static void prepare(void)
{
    mono_cond_init(&changed);
}

static void *run(void *of)
{
    struct opening *opening = of;
    bool left;

    opening->state = nvml_gpu_open(opening->library, opening->index, &opening->info);
    pthread_mutex_lock(&lock);
    opening->done = true;
    left = opening->left;
    if (left)
        is_hung[opening->index] = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (left) {
        nvml_library_release(opening->library);
        free(opening->state);
        free(opening);
        left_threads_remove();
    }
    return NULL;
}

/* Begins to open a GPU; NULL: it hangs already, or there is no thread for it. */
static struct opening *begin(struct nvml_library *library, unsigned index)
{
    struct opening *opening = calloc(1, sizeof *opening);
    pthread_t thread;
    bool hangs;

    pthread_mutex_lock(&lock);
    hangs = is_hung[index];
    pthread_mutex_unlock(&lock);
    if (opening == NULL || hangs) {
        free(opening);
        return NULL;
    }
    opening->library = library;
    opening->index = index;
    library->users++;
    if (!quiet_thread_start(&thread, run, opening)) {
        library->users--;
        free(opening);
        return NULL;
    }
    pthread_detach(thread);
    return opening;
}

/* Takes what the thread has made, or leaves it behind; returns the state, or NULL. */
static struct nvml_state *finish(struct opening *opening, struct mono_time until,
                                 struct device_info *out_info)
{
    struct nvml_state *state = NULL;
    bool done;

    pthread_mutex_lock(&lock);
    while (!opening->done && mono_wait(&changed, &lock, until))
        ;
    done = opening->done;
    if (!done) {
        opening->left = is_hung[opening->index] = true;
        left_threads_add();
    }
    pthread_mutex_unlock(&lock);
    if (!done)
        return NULL;
    state = opening->state;
    *out_info = opening->info;
    nvml_library_release(opening->library); /* the caller has it open, too */
    free(opening);
    return state;
}

int nvml_apart_open(struct nvml_library *library, unsigned count, double patience_s,
                    struct nvml_apart *out_apart, struct fly_error *out_error)
{
    struct mono_time until = mono_after_s(mono_now(), patience_s);
    struct opening *openings[DEVICES_MAX];
    bool whole = true;

    pthread_once(&prepared, prepare);
    count = count < DEVICES_MAX ? count : DEVICES_MAX;
    out_apart->count = count;
    for (unsigned i = 0; i < count; i++)
        openings[i] = begin(library, i);
    for (unsigned i = 0; i < count; i++) {
        struct device_info *info = &out_apart->infos[i];
        struct nvml_state *state = openings[i] != NULL ? finish(openings[i], until, info) : NULL;

        if (state == NULL)
            state = nvml_gpu_silent(library, i, info);
        out_apart->states[i] = state;
        if (state == NULL)
            whole = false;
    }
    if (whole)
        return 0;
    nvml_apart_deinit(out_apart);
    return error_no_memory(out_error);
}

void nvml_apart_deinit(struct nvml_apart *apart)
{
    for (unsigned i = 0; i < apart->count; i++) {
        free(apart->states[i]);
        apart->states[i] = NULL;
    }
    apart->count = 0;
}
