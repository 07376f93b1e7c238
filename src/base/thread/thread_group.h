/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_THREAD_GROUP_H
#define FLYBALL_BASE_THREAD_THREAD_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wait.h"

/*
 * Threads that may hang: in a driver, on a disk, in a call to a server. They share an object with its owner,
 * who never waits for them longer than he says. Whoever finishes last, owner or thread, frees the object, so
 * that nothing goes away under a thread that was left behind.
 *
 *     struct meter { struct thread_group group; ... };
 *
 *     thread_group_init(&meter->group, free_meter, meter);
 *     pthread_mutex_lock(&meter->group.lock);
 *     started = thread_group_start(&meter->group, look, meter);
 *     pthread_mutex_unlock(&meter->group.lock);
 *     ...
 *     thread_group_end(&meter->group, 2.0);          false: some still run
 *     thread_group_leave(&meter->group);
 *
 * A thread takes the lock to look at the object, gives it back around each call that can wait, and returns,
 * without the lock, when it sees `closing`. In a forked child there are no threads and the lock may be taken
 * for ever: there thread_group_end and thread_group_leave do nothing, and the copy of the object is not
 * freed.
 */
struct thread_group {
    pthread_mutex_t lock;   /* of the object */
    pthread_cond_t changed; /* broadcast on each change that somebody waits for */
    unsigned running;       /* threads that have not finished */
    bool closing;           /* they are to finish */
    bool left;              /* the owner has gone */
    uint64_t forks;
    void (*free)(void *object);
    void *object;
};

/* `free` is called without the lock, when neither owner nor thread is left. */
void thread_group_init(struct thread_group *group, void (*free)(void *object), void *object);

/*
 * Starts a thread that blocks all signals and runs `run`. Call it with the lock held. False: no memory, or
 * the system allows no more threads.
 */
bool thread_group_start(struct thread_group *group, void (*run)(void *state), void *state);

/* Waits for a change, with the lock held; false if the moment comes first. */
bool thread_group_wait(struct thread_group *group, struct mono_time until);

/* Wakes all that wait. */
void thread_group_wake(struct thread_group *group);

/* Whether this is a forked child's copy. */
bool thread_group_is_copy(const struct thread_group *group);

/* Takes the lock, asks the threads to finish, and waits for them; keeps the lock. Returns whether all have.
 */
bool thread_group_end(struct thread_group *group, double most_s);

/*
 * The owner's last call, with the lock held, which it gives back: threads that still run are left behind, and
 * the last of them frees the object.
 */
void thread_group_leave(struct thread_group *group);

/*
 * Whether threads were left behind and still run. A program with such a thread ends without its exit
 * handlers, which would destroy what the thread works with:
 *
 *     if (left_threads_any()) {
 *         fflush(NULL);
 *         _exit(status);
 *     }
 */
bool left_threads_any(void);

/*
 * A single call that may wait for ever, such as one that opens a file, in a thread of its own.
 *
 *     if (!apart_run(read_it, drop_it, reading, 2.0))
 *         return "the disk does not answer";        `reading` is the thread's now
 *
 * apart_begin starts it; NULL: there is no thread, and `run` was not called. apart_finish waits for it.
 * False: the call had not returned; the thread has `state`, and calls `drop` on it when the call returns
 * after all. apart_run does both, and makes the call itself where no thread can be started. Thread-safe.
 */
struct apart *apart_begin(void (*run)(void *state), void (*drop)(void *state), void *state);
bool apart_finish(struct apart *apart, struct mono_time until);
bool apart_run(void (*run)(void *state), void (*drop)(void *state), void *state, double patience_s);

#endif
