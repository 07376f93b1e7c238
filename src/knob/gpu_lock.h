/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_GPU_LOCK_H
#define FLYBALL_KNOB_GPU_LOCK_H

#include <stdbool.h>
#include <sys/stat.h>

#include <flyball/error.h>

/*
 * One lock for each GPU, by its UUID: its holder may turn the GPU's knobs.
 *
 *     int lock;
 *
 *     if (gpu_lock_take(directory, uuid, "flyball power", &lock, out_error) < 0)
 *         ... measure only ...
 *     gpu_lock_release(lock);
 *
 * flock(2) on "UUID.lock", which the kernel lets go of however its holder ends. The
 * file stays, so that there is ever only one of that name, and says who holds it. Any
 * user may hold it, which keeps others from turning and nobody from measuring.
 * Duplicates of the descriptor hold it too: the guard has one, so that nobody turns
 * before it has put back. A forked child's copies are closed (see fork_close.h).
 * Thread-safe.
 */

/*
 * FLY_ESTATE with the holder's name and pid when it is held, FLY_EPERM, FLY_EWRITE. Where the
 * holder has died and its guard is at work, waits for that, two seconds at most.
 */
int gpu_lock_take(const char *directory, const char *uuid, const char *program, int *out_lock,
                  struct fly_error *out_error);

/*
 * Takes it although a process of another user's holds it: the file gets a successor, whose lock
 * this is, and what that process holds is no lock any more (gpu_lock_stands). For root alone,
 * one at a time. `held` is the file that was found held. FLY_ESTATE where another program of root's was
 * faster.
 */
int gpu_lock_replace(const char *directory, const char *uuid, const char *program, const struct stat *held,
                     int *out_lock, struct fly_error *out_error);

/* Whether what is held is still the lock of that GPU: its file has no successor. */
bool gpu_lock_stands(const char *directory, const char *uuid, int lock);

/*
 * Who holds it: 1 with its holder's name, "'flyball power', process 4711", or 0 when nobody
 * does. To find out it is taken for a moment, shared, which gpu_lock_take waits out. FLY_EPERM,
 * FLY_EREAD.
 */
enum { GPU_LOCK_HOLDER_MAX = 96 };
int gpu_lock_holder(const char *directory, const char *uuid, char out_holder[GPU_LOCK_HOLDER_MAX],
                    struct fly_error *out_error);

/* Closes it; -1 is no lock. */
void gpu_lock_release(int lock);

#endif
