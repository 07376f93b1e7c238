/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_LEASE_AUDIT_PAST_H
#define FLYBALL_NODE_LEASE_AUDIT_PAST_H

#include <stddef.h>

#include "node/lease/lease_table.h"

/*
 * What the audit log (audit.h) says of the time before this daemon: the leases that had not ended when it was
 * written last. Whoever lent them died, or the machine did, and nobody else tells what became of them.
 */
enum { AUDIT_PAST_MAX = 4096, AUDIT_PAST_BYTES = 4 << 20 };

/* A lease whose grant is in the log, and its end is not. */
struct audit_lost {
    char lease[LEASE_ID_MAX];
    struct lease_holder holder; /* who, as far as the log tells: uid, pid, token and program */
};

/*
 * Finds them in the last AUDIT_PAST_BYTES of a log, in the order of their grants, at most `maximum`;
 * returns how many there are. Lines that are torn or no JSON are left out. A log that is not there, or cannot
 * be read, has none.
 */
size_t audit_past_lost(const char *path, struct audit_lost *out_lost, size_t maximum);

/* Does the same with text. Pure. */
size_t audit_past_parse(const char *text, size_t length, struct audit_lost *out_lost, size_t maximum);

#endif
