/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_LEASE_HOLDER_H
#define FLYBALL_NODE_LEASE_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "node/lease/lease_table.h"

/*
 * A process that holds a lease, so that the lease ends with it and with nothing else.
 *
 *     struct holder holder;
 *
 *     holder_open(pid, uid, born_before_ticks, &holder, out_error);
 *     ... poll holder.fd, if it is not -1, or ask holder_lives now and then ...
 *     holder_close(&holder);
 *
 * The process is known by its number and its start time, and by a pidfd where the kernel has one
 * (5.3). So a later process of the same number does not take its place, and workers that it forked
 * and that still have its connection do not keep its lease. A process that has ended counts as
 * ended although its parent has not waited for it. For one thread at a time.
 */
struct holder {
    pid_t pid;
    uint64_t start_ticks; /* since the boot */
    int fd;               /* readable when the process has ended; -1: the kernel has none; owned */
};

/*
 * Opens the process of that number, which must belong to `uid` and must have started by `born_before_ticks`
 * (0: at any time): the moment at which its connection was accepted. FLY_ENOTFOUND if it has ended or
 * is another one by now, FLY_ELIMIT without a free descriptor.
 */
int holder_open(pid_t pid, uid_t uid, uint64_t born_before_ticks, struct holder *out_holder,
                struct fly_error *out_error);

/* Returns whether the process lives. */
bool holder_lives(const struct holder *holder);

void holder_close(struct holder *holder);

/* Returns now by the boot-time clock. */
struct boot_time boot_now(void);
struct boot_time boot_after_s(struct boot_time start, double duration_s);

#endif
