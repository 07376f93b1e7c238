/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_FAULTY_VFS_H
#define FLYBALL_TESTS_LIB_FAULTY_VFS_H

#include <stdbool.h>

/*
 * A disk that fails on request, below every SQLite database opened after faulty_vfs_install: SQLite's own
 * file layer, with faults and counters in front.
 *
 *     faulty_vfs_install();
 *     faulty_vfs_fail(FAULTY_WRITE, 3, SQLITE_FULL);     the third write from now, and all after it
 *     ...
 *     faulty_vfs_heal();
 */
enum faulty_operation { FAULTY_READ, FAULTY_WRITE, FAULTY_SYNC, FAULTY_MAP, FAULTY_LOCK, FAULTY_OPERATIONS };

void faulty_vfs_install(void);
void faulty_vfs_remove(void);

void faulty_vfs_fail(enum faulty_operation operation, unsigned long when, int code);
void faulty_vfs_heal(void);

/* Whether the fault has occurred since it was set. */
bool faulty_vfs_struck(void);

/* How often an operation was called, and how many bytes were read or written, since the program's start. */
unsigned long faulty_vfs_count(enum faulty_operation operation);
unsigned long faulty_vfs_bytes(enum faulty_operation operation);

#endif
