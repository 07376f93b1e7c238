/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_CLAIM_SWEEP_H
#define FLYBALL_METER_CLAIM_SWEEP_H

#include <sys/types.h>

/*
 * Removes the files of claims that nobody holds: those of runs that were killed. A file is
 * locked before it is removed, as its own run would, and who takes a claim looks whether his file is
 * still there (claim.c). Left are those of `job`, whose other ranks may be about to take theirs,
 * files without a word in them for ten seconds, which somebody may have made this moment, and what is
 * no claim of the user's. Looks at 512 files at most. Nothing here fails. Thread-safe.
 */
void claim_sweep(const char *directory, const char *job, uid_t uid);

#endif
