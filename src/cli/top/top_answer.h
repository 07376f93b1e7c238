/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_TOP_TOP_ANSWER_H
#define FLYBALL_CLI_TOP_TOP_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/arena.h"

/*
 * What flyballd says of its GPUs and of who uses them: the answers to GET /v1/gpus and GET /v1/usage as
 * structs. Members that a newer daemon adds are ignored. Numbers that are not known are NAN, texts NULL.
 *
 *     arena_init(&arena, TOP_ANSWER_BYTES);
 *     code = top_ask("/run/flyballd/flyballd.sock", &arena, &answer, out_error);
 *     ...
 *     arena_deinit(&arena);
 */
enum { TOP_ANSWER_BYTES = 64 << 20, TOP_ROWS_MAX = 1 << 16, TOP_GPUS_MAX = 128 };

struct top_gpu {
    uint64_t index;
    const char *uuid, *name;
    double power_w, power_limit_w, temperature_c, utilization_percent;
};

/* Texts of a row, in the order of their columns. */
#define TOP_TEXT_MAP(X)           \
    X(USER, user)                 \
    X(COMMAND, command)           \
    X(TRAINING_JOB, training_job) \
    X(SLURM_JOB, slurm_job)       \
    X(SLURM_STEP, slurm_step)     \
    X(NAMESPACE, pod_namespace)   \
    X(POD, pod)                   \
    X(POD_UID, pod_uid)           \
    X(CONTAINER, container)       \
    X(CONTAINER_ID, container_id) \
    X(RUNTIME, runtime)           \
    X(CGROUP, cgroup)
#define TOP_TEXT_ENUM(name, member) TOP_TEXT_##name,
enum top_text { TOP_TEXT_MAP(TOP_TEXT_ENUM) TOP_TEXTS };
#undef TOP_TEXT_ENUM

enum top_kind { TOP_PROCESS, TOP_IDLE, TOP_SHARED, TOP_UNOBSERVED, TOP_KINDS };

struct top_usage {
    enum top_kind kind;
    uint64_t gpu;
    const char *uuid;
    double pid, uid, started_unix_ms, ended_unix_ms; /* whole numbers; NAN: unknown, or none */
    const char *texts[TOP_TEXTS];
    double energy_j, half_width_j, time_s, power_w, memory_bytes;
};

struct top_answer {
    size_t gpu_count;
    struct top_gpu *gpus;
    size_t row_count;
    struct top_usage *rows; /* all in the arena */
};

/* Reads the two answers. FLY_EREAD for an answer of another form, with what was wrong; FLY_ENOMEM. */
int top_answer_read(const char *gpus, size_t gpus_length, const char *usage, size_t usage_length,
                    struct arena *arena, struct top_answer *out_answer, struct fly_error *out_error);

/*
 * Asks the daemon at that address. Errors name it and the next step: FLY_ENOTFOUND if no daemon
 * listens, FLY_EPERM if it does not let this user read, FLY_EUNSUPPORTED if it does not attribute.
 */
int top_ask(const char *daemon, struct arena *arena, struct top_answer *out_answer,
            struct fly_error *out_error);

#endif
