/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_FORK_GUARD_H
#define FLYBALL_BASE_THREAD_FORK_GUARD_H

#include <stdint.h>

/*
 * Returns how many forks lie between this process and the one that first asked. A handle stores
 * the number under which it was made. If the number differs later, the process is a child in
 * which copied threads and locks no longer work. Cheaper than getpid, and correct even if process
 * ids are reused. Thread-safe.
 */
uint64_t fork_generation(void);

#endif
