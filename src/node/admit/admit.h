/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_ADMIT_ADMIT_H
#define FLYBALL_NODE_ADMIT_ADMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "http/exchange.h"
#include "http/tokens.h"
#include "node/lease/leases.h"
#include "node/lease/rights.h"
#include "node/watch/watch.h"

/*
 * Who asks, and what he may: brings together the peer and the token of a request (http/exchange.h),
 * the operator's rules (node/lease/rights.h) and the GPUs (node/watch/watch.h), for all families of
 * routes.
 *
 *     struct rights_decision decision;
 *
 *     admit_decide(admit, &request, gpu, &decision);
 *     if (!decision.may_control)
 *         ... decision.why ...
 *
 * A token of the file of tokens gives its scope: `read` lets read, `train` and `manage` let control.
 *
 * Thread-safe but for opening and closing. A decision about a local user looks his groups up, if
 * there are rules for groups.
 */
struct admit;

/* The operator's rules. Texts and rows are copied. */
struct admit_rules {
    const struct rights_rule *rules;
    size_t rule_count;
    bool proof, closed, open; /* as in struct node_rights */
    bool contained;           /* the operator allows turning also where processes are not visible */
    bool here;                /* only this machine can connect */
    const char *readonly_path;
};

/* `watch` is borrowed. FLY_ENOMEM, FLY_ELIMIT. */
int admit_open(struct watch *watch, const struct admit_rules *rules, struct admit **out_admit,
               struct fly_error *out_error);
void admit_close(struct admit *admit);

/* Puts other rules in force for all later decisions. FLY_ENOMEM, FLY_ELIMIT; then the earlier ones stay. */
int admit_renew(struct admit *admit, const struct admit_rules *rules, struct fly_error *out_error);

/*
 * All of a caller that decisions about GPUs depend on: those of the same class get the same decisions, as
 * long as the stamp and the GPUs stay the same.
 */
struct admit_class {
    bool local, same_namespaces, has_token;
    uid_t uid;
    gid_t gid;
    enum serve_scope token_scope;
    size_t minor_count;
    int minors[SERVE_MINORS_MAX];
    char token[TOKEN_NAME_MAX];
};
void admit_class_of(const struct serve_request *request, struct admit_class *out_class);
bool admit_class_is(const struct admit_class *one, const struct admit_class *other);

/* Returns a number that is another one once other rules are in force, or the operator's file comes or goes.
 */
uint64_t admit_stamp(struct admit *admit);

/* Decides for a GPU of the watch. */
void admit_decide(struct admit *admit, const struct serve_request *request, size_t gpu,
                  struct rights_decision *out_decision);

/*
 * Decides whether the caller may read CPUs: whom the rules let read something that is no GPU, or who shows a
 * signed token of scope cpu-read.
 */
bool admit_reads_cpus(struct admit *admit, const struct serve_request *request);

/*
 * Returns whether a list of all devices shows the caller this one, or a CPU for ADMIT_CPUS. Where reading is
 * not closed, everybody may know what there is.
 */
enum { ADMIT_CPUS = -1 };
bool admit_shows(struct admit *admit, const struct serve_request *request, int gpu);

/*
 * Returns whether the caller gets figures of all devices at once: where reading is closed, who may read each.
 */
bool admit_shows_figures(struct admit *admit, const struct serve_request *request);

/*
 * Returns a number that is another one once other rules are in force. Streams that were opened before end
 * then, so that each client is decided about again. The second is for them: `self` is the admit.
 */
uint64_t admit_renewals(struct admit *admit);
bool admit_is_renewed(void *self, uint64_t since);

/* Gives the bounds that hold for everybody on a GPU. */
void admit_bounds(struct admit *admit, size_t gpu, struct lease_bounds *out_bounds);

/*
 * Returns what the server lets a caller do before any route decides (server_back.h): send a body, and read
 * /metrics, for which no GPU is asked. Over TCP that takes a token, unless the rules are open, or only this
 * machine can connect and reading is not closed.
 */
enum serve_scope admit_scope(struct admit *admit, const struct serve_request *request);

/* Returns whether the peer is the machine's root: not that of a container. */
bool admit_is_root(const struct serve_request *request);

/*
 * Describes who asks, as a lease's holder without its end: `pid` and `connection` are 0. The uid is
 * LEASE_NOBODY over TCP.
 */
void admit_holder(const struct serve_request *request, struct lease_holder *out_holder);

/*
 * Returns the GPU that a text names (rights_gpu_is): an index, a UUID or a PCI address; -1 for
 * none.
 */
int admit_find_gpu(struct admit *admit, const char *text);

#endif
