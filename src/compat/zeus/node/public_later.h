/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COMPAT_ZEUS_NODE_PUBLIC_LATER_H
#define FLYBALL_COMPAT_ZEUS_NODE_PUBLIC_LATER_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "node/lease/leases.h"

/*
 * Commands that are carried out after their client got its answer: for each GPU one line, in the order in
 * which they came, and one thread from its first command on. So a GPU whose driver hangs keeps no other
 * waiting. Thread-safe but for opening and closing.
 */
struct public_later;

/* A change of one GPU. */
struct public_command {
    struct lease_request request;
    quantity_set dropped;
};

struct public_later_options {
    int (*carry_out)(void *self, const struct public_command *command, struct fly_error *out_error);
    void (*failed)(void *self, size_t gpu, const struct fly_error *error); /* a queued command */
    void *self;
};

enum { PUBLIC_LATER_MAX = 64 /* commands that wait, of each GPU */ };

int public_later_new(const struct public_later_options *options, struct public_later **out_later,
                     struct fly_error *out_error);

/* Drops what waits, and waits for what is being carried out. Accepts NULL. */
void public_later_free(struct public_later *later);

/* Queues a command for a GPU. FLY_EBUSY: too many wait; FLY_ENOMEM. */
int public_later_put(struct public_later *later, size_t gpu, const struct public_command *command,
                     struct fly_error *out_error);

/* Waits until all that was queued for the GPU has been carried out. */
void public_later_wait(struct public_later *later, size_t gpu);

#endif
