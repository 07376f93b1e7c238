/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_GPU_LOCK_H
#define FLYBALL_KNOB_GPU_LOCK_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

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
 * It is flock(2) on "UUID.lock", which the kernel releases however its holder ends. The file
 * stays, so that there is only ever one of that name, and says who holds the lock. Any user may
 * hold it; that keeps others from turning, and nobody from measuring. Duplicates of the
 * descriptor hold it too: the guard has one, so that nobody turns before it has put back. A
 * forked child's copies are closed (see fork_close.h). Thread-safe.
 */

/*
 * Takes the lock. FLY_ESTATE with the holder's name and pid if it is held, FLY_EPERM, FLY_EWRITE.
 * If the holder has died and its guard is at work, or the holder only puts back what others left, waits for
 * it, two seconds at most; the name of such a holder's program ends with GPU_LOCK_BRIEFLY.
 */
#define GPU_LOCK_BRIEFLY ", putting back"
int gpu_lock_take(const char *directory, const char *uuid, const char *program, int *out_lock,
                  struct fly_error *out_error);

/*
 * Takes the lock although a process of another user holds it: it replaces the file, and locks the
 * new one. What that process holds is then no lock any more (gpu_lock_stands). Only for root, one
 * at a time. `held` is the file that was found held. FLY_ESTATE if another program of root was
 * faster.
 */
int gpu_lock_replace(const char *directory, const char *uuid, const char *program, const struct stat *held,
                     int *out_lock, struct fly_error *out_error);

/* Returns whether what is held is still the lock of that GPU, that is, whether its file was not replaced. */
bool gpu_lock_stands(const char *directory, const char *uuid, int lock);

/*
 * Finds who holds the lock: returns 1 with the holder's name, "'flyball power', process 4711", or 0 if
 * nobody does. After the end of that process it is the guard that is named, or whoever else has the lock. It
 * takes the lock for a moment, shared, to find out; gpu_lock_take waits that long. FLY_EPERM, FLY_EREAD.
 */
enum { GPU_LOCK_HOLDER_MAX = 200 };
int gpu_lock_holder(const char *directory, const char *uuid, char out_holder[GPU_LOCK_HOLDER_MAX],
                    struct fly_error *out_error);

/* Returns whether that process holds the lock, as far as root can see. */
bool gpu_lock_is_held_by(const char *directory, const char *uuid, pid_t pid);

/* Releases the lock; -1 is none. */
void gpu_lock_release(int lock);

#endif
