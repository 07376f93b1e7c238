/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number of a process says nothing by itself, since it is used again. The start time is read before
 * and after the pidfd is opened: if both are the same, the pidfd is that process's.
 */
#include "node/lease/holder.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process_stat.h"
#include "knob/lock_holder.h"

enum { NS_PER_S = 1000000000 };

static int is_gone(pid_t pid, struct fly_error *out_error)
{
    return error_set(
        out_error, FLY_ENOTFOUND,
        "the process %lld, to which the lease would be bound, has ended; ask again from one that "
        "lives",
        (long long)pid);
}

/* Returns whether the process lives, with its start time. */
static bool look(pid_t pid, uint64_t *out_start_ticks)
{
    struct process_stat stat;

    if (!process_stat_read(pid, &stat) || process_stat_is_over(&stat))
        return false;
    *out_start_ticks = stat.start;
    return true;
}

int holder_open(pid_t pid, uid_t uid, uint64_t born_before_ticks, struct holder *out_holder,
                struct fly_error *out_error)
{
    struct holder holder = {.pid = pid};
    uint64_t again = 0;
    uid_t owner;

    if (pid <= 0 || !look(pid, &holder.start_ticks))
        return is_gone(pid, out_error);
    holder.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (holder.fd < 0 && (errno == EMFILE || errno == ENFILE))
        return error_set(out_error, FLY_ELIMIT, "there is no descriptor left to watch the process %lld: %s",
                         (long long)pid, strerror(errno));
    if (!look(pid, &again) || again != holder.start_ticks || !lock_holder_uid(pid, &owner) || owner != uid ||
        (born_before_ticks != 0 && holder.start_ticks > born_before_ticks) || !holder_lives(&holder)) {
        holder_close(&holder);
        return is_gone(pid, out_error);
    }
    *out_holder = holder;
    return 0;
}

bool holder_lives(const struct holder *holder)
{
    struct pollfd wanted = {.fd = holder->fd, .events = POLLIN};
    uint64_t start_ticks;

    if (holder->fd >= 0)
        return poll(&wanted, 1, 0) == 0;
    return look(holder->pid, &start_ticks) && start_ticks == holder->start_ticks;
}

void holder_close(struct holder *holder)
{
    if (holder->fd >= 0)
        close(holder->fd);
    holder->fd = -1;
}

struct boot_time boot_now(void)
{
    struct timespec now = {.tv_sec = 0};

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (struct boot_time){(int64_t)now.tv_sec * NS_PER_S + now.tv_nsec};
}

struct boot_time boot_after_s(struct boot_time start, double duration_s)
{
    return (struct boot_time){start.ns + (int64_t)(duration_s * 1e9)};
}
