/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COMPAT_ZEUS_NODE_PUBLIC_PRIVATE_H
#define FLYBALL_COMPAT_ZEUS_NODE_PUBLIC_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "compat/zeus/node/node_public.h"
#include "compat/zeus/node/public_later.h"
#include "compat/zeus/node/public_query.h"

/* The inside of the public daemon's routes, for the files of this room. */

enum {
    PUBLIC_OK = 200,
    PUBLIC_BAD = 400,
    PUBLIC_STRANGER = 401,
    PUBLIC_FORBIDDEN = 403,
    PUBLIC_NOT_FOUND = 404,
    PUBLIC_NOT_ALLOWED = 405,
    PUBLIC_FAILED = 500
};

struct node_public {
    struct node_public_options options;
    struct public_later *later;                     /* owned */
    atomic_int_least64_t turned_ns[LEASE_GPUS_MAX]; /* when a client last turned the GPU; 0: never */
};

/* What went wrong with a device, by its number in the routes. */
struct public_failure {
    char id[12];
    char text[FLY_ERROR_TEXT_MAX];
};

struct public_failures {
    struct public_failure *rows; /* room for all devices of the request */
    size_t count;
    int status; /* the highest of all */
};

/* One request between finding its route and writing its answer. */
struct public_exchange {
    struct node_public *public;
    const struct serve_request *request;
    struct serve_answer *answer;
    const struct public_route *route;
    struct public_query query;
    struct public_failures failures;
};

struct public_route {
    const char *method, *path;
    unsigned needed, optional; /* parameters, PUBLIC_BIT of each */
    void (*answer)(struct public_exchange *exchange);
    int what; /* of a route that turns, enum operation; of one that reads, enum public_reading */
};

/* What the routes of a GPU's figures read. */
enum public_reading {
    PUBLIC_READ_ENERGY,
    PUBLIC_READ_POWER,
    PUBLIC_READ_LIMIT,
    PUBLIC_READ_CONSTRAINTS,
    PUBLIC_READ_PERSISTENCE,
    PUBLIC_READING_COUNT
};

typedef void public_answer_fn(struct public_exchange *exchange);
public_answer_fn public_discover, public_time, public_whoami, public_turn, public_read_gpus;
public_answer_fn public_cpu_energy, public_cpu_power, public_stream_gpus, public_stream_cpus;

/* Answers with {"error": "..."}. */
void public_refuse(struct serve_answer *answer, int status, const char *text);

/* Notes a device's failure, with the status of the code; and answers with all that were noted, if any. */
void public_fail(struct public_failures *failures, uint32_t id, int status, const char *text);
bool public_answer_failures(struct public_exchange *exchange);

/* Carries out the change of one GPU, waiting for its driver; self is the struct node_public. */
int public_carry_out(void *self, const struct public_command *command, struct fly_error *out_error);

/* Returns the status for an error of leases, knobs and readings. */
int public_status(int code);

/* Tells the log of a command that failed when nobody waited for it; self is the struct node_public. */
void public_tell_failed(void *self, size_t gpu, const struct fly_error *error);

/* Returns the scopes, bits of enum signed_scope, of the caller's token: it was signed, or is one of the file.
 */
unsigned public_scopes(const struct serve_request *request);

/* Returns the watch's place of the GPU with that number, or -1. */
int public_find_gpu(struct watch *watch, uint32_t id);

/* Without a list of numbers in the request, puts those of all GPUs there that may be read. */
void public_all_gpus(const struct public_exchange *exchange, struct public_query *query);

/* Gives a GPU's power: the instant one, or the average where there is none. */
int public_power_mw(const struct watch_sample *sample, uint64_t *out_power_mw, struct fly_error *out_error);

/* A CPU package: its number in the routes, its place in the watch, and that of its memory, -1 without. */
struct public_cpu {
    uint32_t id;
    size_t cpu;
    int dram;
};
size_t public_find_cpus(struct watch *watch, struct public_cpu cpus[WATCH_CPUS_MAX]);

/*
 * Gives the CPUs that a request names, all without a list. False if the answer is made: the caller may not
 * read them, or named one that is not there.
 */
bool public_take_cpus(struct public_exchange *exchange, struct public_cpu cpus[WATCH_CPUS_MAX],
                      size_t *out_count);

/* Returns a device's mean power since its sample before, in mW; -1 if there was none. */
int64_t public_mean_mw(const struct watch_sample *sample);

#endif
