/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_FORK_GUARD_H
#define FLYBALL_BASE_THREAD_FORK_GUARD_H

#include <stdint.h>

/*
 * How many forks lie between this process and the one that first asked. A handle
 * keeps the number it was made under; where it differs, the process is a child
 * whose copy of threads and locks is no longer alive. Cheaper than getpid, and
 * right for process ids that come round again. Thread-safe.
 */
uint64_t fork_generation(void);

#endif
