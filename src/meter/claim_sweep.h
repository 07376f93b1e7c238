/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_CLAIM_SWEEP_H
#define FLYBALL_METER_CLAIM_SWEEP_H

#include <sys/types.h>

/*
 * Removes the claim files that nobody holds: those of runs that were killed. It locks a file
 * before it removes it, as the file's own run would. A process that takes a claim checks that its
 * file still exists (claim.c). The sweep leaves alone: files of `job`, whose other ranks may be
 * about to take theirs; files that were empty for less than ten seconds, which somebody may have
 * just made; and everything that is not a claim of this user. It looks at 512 files at most.
 * Nothing here fails. Thread-safe.
 */
void claim_sweep(const char *directory, const char *job, uid_t uid);

#endif
