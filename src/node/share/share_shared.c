/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of a share do alike: tell, and let go. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/share/share_private.h"

void share_say(const struct share *share, bool trouble, const char *format, ...)
{
    char line[SHARE_MESSAGE_MAX];
    va_list arguments;

    if (share->options.tell == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    share->options.tell(share->options.tell_state, trouble, line);
}

static void free_all(struct share *share)
{
    for (size_t i = 0; i < share->gpu_count; i++) {
        free(share->gpus[i]->rows);
        free(share->gpus[i]);
    }
    arena_deinit(&share->arena);
    free(share->saved);
    share_record_close(share->record);
    owners_free(share->look);
    owners_free(share->names);
    free(share->processes);
    free(share->series);
    free(share->state);
    free(share->root);
    pthread_cond_destroy(&share->changed);
    pthread_mutex_destroy(&share->lock);
    pthread_mutex_destroy(&share->look_lock);
    free(share);
}

void share_let_go(struct share *share)
{
    bool last = --share->holders == 0;

    pthread_cond_broadcast(&share->changed);
    pthread_mutex_unlock(&share->lock);
    if (last)
        free_all(share);
}
