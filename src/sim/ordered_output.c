/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ordered_output.h"

#include <stdlib.h>

void ordered_output_init(struct ordered_output *output, ordered_sink *sink, void *context)
{
    *output = (struct ordered_output){.sink = sink, .context = context};
    pthread_mutex_init(&output->lock, NULL);
    pthread_cond_init(&output->turned, NULL);
}

void ordered_output_deinit(struct ordered_output *output)
{
    pthread_cond_destroy(&output->turned);
    pthread_mutex_destroy(&output->lock);
}

void ordered_part_begin(struct ordered_part *part, struct ordered_output *output, uint64_t unit)
{
    *part = (struct ordered_part){.output = output, .unit = unit};
    buffer_init(&part->bytes, (size_t)2 * ORDERED_PART_MAX);
}

/* Passes the part's bytes on; the lock is held and it is the part's turn. */
static void pass_on(struct ordered_part *part)
{
    struct ordered_output *output = part->output;

    if (output->code == 0 && part->bytes.error < 0)
        output->code = error_no_memory(&output->error);
    if (output->code == 0 && part->bytes.length > 0)
        output->code = output->sink(output->context, part->bytes.data, part->bytes.length, &output->error);
    buffer_clear(&part->bytes);
}

static void wait_turn(struct ordered_part *part)
{
    while (part->output->turn != part->unit)
        pthread_cond_wait(&part->output->turned, &part->output->lock);
}

void ordered_part_write(struct ordered_part *part, const char *bytes, size_t count)
{
    buffer_append(&part->bytes, bytes, count);
    if (part->bytes.length < ORDERED_PART_MAX && part->bytes.error == 0)
        return;
    pthread_mutex_lock(&part->output->lock);
    wait_turn(part);
    pass_on(part);
    pthread_mutex_unlock(&part->output->lock);
}

/* Leaves the part for later. Returns whether there was room. The lock is held. */
static bool park(struct ordered_part *part)
{
    struct ordered_output *output = part->output;
    struct ordered_part **at = &output->parked;
    size_t size = sizeof *part + part->bytes.length;
    struct ordered_part *parked;

    if (size > ORDERED_PARKED_MAX - output->parked_bytes)
        return false;
    parked = malloc(sizeof *parked);
    if (parked == NULL)
        return false;
    while (*at != NULL && (*at)->unit < part->unit)
        at = &(*at)->next;
    *parked = *part;
    parked->next = *at;
    *at = parked;
    output->parked_bytes += size;
    return true;
}

/* Passes on the parked parts whose turn has come. The lock is held. */
static void pass_on_parked(struct ordered_output *output)
{
    while (output->parked != NULL && output->parked->unit == output->turn) {
        struct ordered_part *part = output->parked;

        output->parked = part->next;
        output->parked_bytes -= sizeof *part + part->bytes.length;
        pass_on(part);
        buffer_deinit(&part->bytes);
        free(part);
        output->turn++;
    }
}

void ordered_part_end(struct ordered_part *part)
{
    struct ordered_output *output = part->output;
    bool parked;

    pthread_mutex_lock(&output->lock);
    parked = output->turn != part->unit && park(part);
    if (!parked) {
        wait_turn(part);
        pass_on(part);
        output->turn++;
        pass_on_parked(output);
        pthread_cond_broadcast(&output->turned);
    }
    pthread_mutex_unlock(&output->lock);
    if (!parked)
        buffer_deinit(&part->bytes);
}

bool ordered_output_failed(struct ordered_output *output)
{
    bool failed;

    pthread_mutex_lock(&output->lock);
    failed = output->code < 0;
    pthread_mutex_unlock(&output->lock);
    return failed;
}
