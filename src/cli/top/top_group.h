/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_TOP_TOP_GROUP_H
#define FLYBALL_CLI_TOP_TOP_GROUP_H

#include <stdbool.h>
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

/* The figures of a GPU that does not answer are all unknown. */
struct top_figures {
    double power_w, power_limit_w, power_limit_enforced_w, temperature_c, utilization_percent;
};

struct top_gpu {
    uint64_t index;
    const char *uuid, *name;
    double leases;              /* that hold knobs of it; NAN: an older daemon, which does not say */
    struct top_figures figures; /* power_limit_w is what is enforced, where that is known */
    bool has_figures;
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

/*
 * Puts the daemon's rows together by what they have in common, and in order.
 *
 *     code = top_group_make(&answer, &wish, &arena, &groups, out_error);
 *
 * By process, each row is one; the other kinds (idle, shared, unobserved) have one for each GPU. By anything
 * else, all processes that agree in it are one, whatever their GPUs, and the other kinds have one each. A
 * process of which the key is not known is in a group of its own key "". So all groups of all rows together
 * are what the meters counted.
 *
 * Energies, half widths and times are added up; power and memory only over processes that have not ended. A
 * sum of powers is NAN where a part of it is not known. An energy that is not known apart from others' is in
 * a row of kind shared, and adds nothing; where none is known, the sum is NAN. Pure but for the arena.
 */
enum top_by { TOP_BY_PROCESS, TOP_BY_JOB, TOP_BY_POD, TOP_BY_USER, TOP_BY_SLURM, TOP_BYS };

extern const char *const top_bys[]; /* ends with NULL */

enum top_sort { TOP_SORT_POWER, TOP_SORT_ENERGY, TOP_SORTS };

extern const char *const top_sorts[];

struct top_wish {
    enum top_by by;
    enum top_sort sort;
    bool ended; /* also what has ended */
};

enum { TOP_GPU_WORDS = TOP_GPUS_MAX / 64 };

struct top_group {
    enum top_kind kind;
    const char *texts[TOP_TEXTS]; /* those in which all agree; NULL: unknown, or they differ */
    bool differs[TOP_TEXTS];
    const char *uuid;                 /* of the only GPU; NULL: several */
    uint64_t gpus[TOP_GPU_WORDS];     /* a bit for each index */
    size_t processes, living;         /* that have not ended */
    double pid, uid, started_unix_ms; /* of the only process; NAN */
    double power_w, energy_j, half_width_j, time_s, memory_bytes;
    size_t missing_power;  /* living processes whose power is not known */
    size_t missing_energy; /* processes whose energy is not known apart from others' */
};

struct top_groups {
    size_t count, hidden; /* left out since all of it has ended */
    struct top_group *groups;
};

/* Groups and sorts; texts are borrowed from the answer. FLY_ENOMEM. */
int top_group_make(const struct top_answer *answer, const struct top_wish *wish, struct arena *arena,
                   struct top_groups *out_groups, struct fly_error *out_error);

/* Writes indices as "0-3,6"; "" for none. */
enum { TOP_GPUS_TEXT_MAX = 512 };

const char *top_gpus_text(const struct top_group *group, char text[TOP_GPUS_TEXT_MAX]);

#endif
