/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_LEASE_RIGHTS_H
#define FLYBALL_NODE_LEASE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "node/lease/lease_table.h"

/*
 * Who may read and who may control which GPU, and between which limits.
 *
 *     struct rights_decision decision;
 *
 *     rights_decide(&rights, &peer, &gpu, &decision);
 *     if (!decision.may_control)
 *         ... decision.why says why not ...
 *
 * Nobody may control but
 *
 *     root                     uid 0 over the Unix socket, from the daemon's own pid and user
 *                              namespace; uid 0 of a container is nobody
 *     who has the GPU          a client over the Unix socket that passed an open /dev/nvidiaN of it
 *                              (struct node_rights.proof; the server checked its device number)
 *     whom the operator names  a rule for the user, or for one of the user's groups, from the daemon's
 *                              own namespaces: root of a container can become any user there
 *     who shows a token        of scope RIGHTS_CONTROL, over any transport; over TCP only that
 *
 * and nobody at all, root included, while the operator's file (knob/knob.h, KNOB_READONLY_PATH) is
 * there, or while the daemon is where it cannot see who computes. A client's environment, and
 * what it says of itself, prove nothing.
 *
 * Everybody on the machine may read, unless `closed`; from other machines a token of scope RIGHTS_READ or
 * RIGHTS_CONTROL is needed, unless `open`.
 *
 * Bounds come from all rules that match the GPU and the peer, root included: of several floors the
 * highest holds, of several ceilings the lowest. Pure; thread-safe.
 */
enum { RIGHTS_READ = 1, RIGHTS_CONTROL = 2, RIGHTS_OVERRULE = 4 };

/* For whom a rule is. */
enum rights_who {
    RIGHTS_ANYONE, /* every peer, also by token: for bounds of all; grants nothing but RIGHTS_READ */
    RIGHTS_USER,   /* of that id, over the Unix socket */
    RIGHTS_GROUP,  /* with that id among its groups, over the Unix socket */
    RIGHTS_TOKEN,  /* who shows the token of that name; grants nothing but what the token has, and
                    * RIGHTS_OVERRULE */
    RIGHTS_WHO_COUNT
};

/* A limit in W, or as a share of the GPU's maximum; both 0: none. If both are given, the tighter holds. */
struct rights_limit {
    double power_w;
    double share; /* 0 to 1 */
};

struct rights_rule {
    enum rights_who who;
    uint64_t id;                /* of the user or the group */
    char token[LEASE_NAME_MAX]; /* RIGHTS_TOKEN; "*": of every name */
    char gpu[DEVICE_TEXT_MAX];  /* a UUID, a PCI address, an index, or "*": all */
    unsigned scopes; /* of RIGHTS_READ, RIGHTS_CONTROL and RIGHTS_OVERRULE; CONTROL includes READ */
    struct rights_limit floor, ceiling;
};

enum { RIGHTS_RULES_MAX = 256, RIGHTS_WHY_MAX = 240 };

struct node_rights {
    const struct rights_rule *rules; /* borrowed */
    size_t rule_count;
    bool proof;     /* an open device file gives control of its GPU */
    bool closed;    /* local peers need a rule, a proof or a token to read */
    bool open;      /* remote peers may read without a token */
    bool readonly;  /* the operator's file is there: see rights_is_readonly */
    bool contained; /* the daemon does not see the machine's processes, and the operator has not allowed
                     * that */
    const char *readonly_path; /* for the text; NULL: KNOB_READONLY_PATH */
};

/* What the server knows of a peer, from the kernel and from a token that it has checked. */
struct rights_peer {
    bool local;           /* over the Unix socket: uid and gids count */
    bool same_namespaces; /* as the daemon: pid and user namespace */
    uid_t uid;
    const gid_t *gids; /* borrowed */
    size_t gid_count;
    const int *minors; /* of device files passed open, "/dev/nvidiaN"; borrowed */
    size_t minor_count;
    bool has_token;        /* it showed one that holds */
    const char *token;     /* its name; NULL without */
    unsigned token_scopes; /* RIGHTS_READ, RIGHTS_CONTROL */
};

/* Of the GPU that is asked for. */
struct rights_gpu {
    const char *uuid, *pci; /* borrowed */
    size_t index;
    int minor;                     /* -1: unknown, so nothing proves access to it */
    int64_t lowest_mw, highest_mw; /* what the driver takes; 0: unknown */
};

struct rights_decision {
    bool may_read, may_control;
    bool may_overrule; /* may turn although others compute on the GPU */
    struct lease_bounds bounds;
    int code;                 /* 0 if it may control, else FLY_EPERM */
    char why[RIGHTS_WHY_MAX]; /* why it may not control, or not even read, and what to do; "" if it may */
};

void rights_decide(const struct node_rights *rights, const struct rights_peer *peer,
                   const struct rights_gpu *gpu, struct rights_decision *out_decision);

/* Gives the bounds that hold for everybody on a GPU: those of rules for RIGHTS_ANYONE. */
void rights_bounds(const struct node_rights *rights, const struct rights_gpu *gpu,
                   struct lease_bounds *out_bounds);

/* Returns whether the text names this GPU: "*", its index, its UUID in any case, or its PCI address. */
bool rights_gpu_is(const char *text, const struct rights_gpu *gpu);

/* Returns whether the operator's file is there; if that cannot be found out, it is. NULL: KNOB_READONLY_PATH.
 */
bool rights_is_readonly(const char *path);

#endif
