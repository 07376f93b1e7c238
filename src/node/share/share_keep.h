/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_SHARE_SHARE_KEEP_H
#define FLYBALL_NODE_SHARE_SHARE_KEEP_H

#include "node/share/share_private.h"

/* What is on record, and its threads. All with the lock, which writing releases meanwhile. */

/* ---- share_resume.c ---- */

/* Reads the record, for GPUs that are met later. What cannot be read is told. */
void resume_read(struct share *share);
void resume_gpu(struct share_gpu *gpu); /* gives a new account what is on record of that GPU */

/* ---- share_clerk.c ---- */
bool clerk_meet_gpus(struct share *share);
void clerk_write_ends(struct share *share);
void clerk_save(struct share *share);
void clerk_mark(struct share *share, bool last); /* every ten minutes, at first, and with `last` */
void share_clerk(void *state);                   /* a thread of the share; without the lock */

#endif
