/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_SERVE_V1_CLIENT_H
#define FLYBALL_TESTS_SERVE_V1_CLIENT_H

/* Requests to the service's own interface without a socket. */
#include "test.h"

#include <jansson.h>

#include "serve/route_family.h"

/* Bodies. */
#define DEFINITION                                                                                     \
    "{\"batch_sizes\": [8, 16, 32], \"default_batch_size\": 32, \"objective\": {\"kind\": \"cost\"}, " \
    "\"target\": \"at_least\", \"target_metric\": 0.9, \"max_epochs\": 20}"
#define HARDWARE                                                                                        \
    "\"hardware\": {\"gpu_model\": \"Test GPU\", \"gpu_count\": 1, \"gpu_memory_bytes\": 17179869184, " \
    "\"world_size\": 1, \"limits_w\": [100, 150, 200]}"
#define QUESTION "{" HARDWARE "}"
#define PROFILE                                                                                           \
    "{\"points\": [{\"limit_w\": 100, \"power_w\": 90, \"time_s\": 20}, {\"limit_w\": 150, \"power_w\": " \
    "110, "                                                                                               \
    "\"time_s\": 11}, {\"limit_w\": 200, \"power_w\": 190, \"time_s\": 10}], \"units_per_epoch\": 1}"
#define EPOCH(number, metric, energy)                                                       \
    "{\"attempt\": 1, \"epoch\": " number ", \"metric\": " metric ", \"energy_j\": " energy \
    ", \"time_s\": 10}"

struct v1_answer {
    struct serve_answer answer;
    struct serve_note note;
    json_t *json; /* the parsed body, or NULL */
};

/* Makes a request with the scope to manage; `target` may have a query, not encoded. Needs v1_answer_free. */
struct v1_answer v1_ask(const struct jobs *jobs, const char *method, const char *target, const char *body);
struct v1_answer v1_ask_as(const struct jobs *jobs, enum serve_scope scope, const char *method,
                           const char *target, const char *body);

/* Makes a request that must succeed with that status; and one whose answer is not needed. */
struct v1_answer v1_well(const struct jobs *jobs, int status, const char *method, const char *target,
                         const char *body);
void v1_do(const struct jobs *jobs, int status, const char *method, const char *target, const char *body);

void v1_answer_free(struct v1_answer *answer);

/* The message of an error's answer. */
const char *v1_message(const struct v1_answer *answer);

/* The members of an answer. */
double v1_number(const struct v1_answer *answer, const char *name);
const char *v1_text(const struct v1_answer *answer, const char *name);

#endif
