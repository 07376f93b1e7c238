/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_GPU_USAGE_H
#define FLYBALL_METER_GPU_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shapes/shape.h"

/*
 * Who used which GPU, and how much of its energy, as flyballd tells it: the answer of GET /v1/usage and the
 * lines of its record on disk. docs/explanation/attribution.md says what the rows mean;
 * docs/reference/formats.md has the files.
 *
 *     code = shape_read(&shape_usage, json, SHAPE_LENIENT, &arena, &usage, out_error);
 *     for (size_t i = 0; i < usage.row_count; i++)
 *         ... usage.rows[i] ...
 *
 * Unknown texts are NULL and unknown numbers NAN, 0 or below 0 as said; all are null in JSON.
 */
enum usage_kind { USAGE_PROCESS, USAGE_IDLE, USAGE_SHARED, USAGE_UNOBSERVED, USAGE_KIND_COUNT };

/* Returns "process", "idle", "shared" or "unobserved". */
const char *usage_kind_word(enum usage_kind kind);

/* Returns "emulated", "estimated" or "measured": what a GPU's figures are. */
const char *usage_source_word(bool emulated, bool estimated);

enum { USAGE_SHARERS_MAX = 64, USAGE_TEXT_MAX = 4096 };

/* A process on one GPU, or another part of what that GPU drew. */
struct usage_row {
    enum usage_kind kind;
    uint64_t gpu;     /* its index */
    const char *uuid; /* of the GPU */
    uint64_t pid;     /* 0: not one process's: of kind process, those without a row of their own, together */
    int64_t started_unix_ms; /* when the process was started; 0: unknown. With pid, what it is known by */
    int64_t ended_unix_ms;   /* when it was seen on the GPU no more; 0: it is there */
    int64_t uid;             /* below 0: unknown, here and in memory_bytes */
    const char *user, *command, *cgroup, *runtime, *container_id, *slurm_job, *slurm_step, *pod_uid, *pod,
        *pod_namespace, *container, *training_job;
    double energy_j;      /* NAN: not known apart from others'; then it is in a row of kind shared */
    int64_t energy_uj;    /* the same, in whole microjoules, so that sums are exact; 0 where it is unknown */
    double half_width_j;  /* bound of the error of energy_j */
    double time_s;        /* for which it was there */
    double shared_s;      /* part of it whose energy is in a row of kind shared */
    double power_w;       /* now; NAN: it is not there, or not known apart from others' */
    int64_t memory_bytes; /* of the GPU, now */
    size_t sharer_count;
    const uint32_t *sharers; /* of kind shared: pids; none: what has no set of its own */
};

struct usage_gpu {
    uint64_t gpu;
    const char *uuid, *name;
    const char *source; /* "measured", "emulated", "estimated" */
    double energy_j;    /* what its meter counted: the sum of its rows */
    int64_t energy_uj;
    double idle_w;   /* power without any process, as it was seen; NAN: never */
    int64_t unix_ms; /* up to when it was counted; 0: not yet */
};

struct usage {
    const char *schema; /* USAGE_SCHEMA */
    size_t gpu_count;
    const struct usage_gpu *gpus;
    size_t row_count;
    const struct usage_row *rows;
};
#define USAGE_SCHEMA "flyball.usage/1"

/* A line of the record: a row, or a GPU, as it was at that time. */
struct usage_line {
    const char *schema; /* USAGE_LINE_SCHEMA */
    const char *what;   /* "row": the row so far; "end": the row at its end; "gpu": the whole GPU, also in
                         * USAGE_ENDED_FILE from time to time; "series": what an owner's series of
                         * Prometheus has */
    int64_t unix_ms;
    const char *boot;     /* the machine's boot id */
    uint64_t start_ticks; /* of the process, since the boot; 0: unknown */
    uint64_t serial;      /* rises from one end to the next; of a GPU: the last end that ended_uj has */
    const char *source;   /* of a GPU, as in usage_gpu; NULL: of a line before there was one */
    double idle_w;        /* of a GPU; as in usage_gpu */
    int64_t ended_uj;     /* of a GPU: sum of the rows that ended and are in this file no more */
    int64_t left_out_uj;  /* of a GPU: energy of owners without a series */
    struct usage_row row; /* of a GPU: gpu, uuid, and the sum of all its rows */
};
#define USAGE_LINE_SCHEMA "flyball.usage.line/1"

/* The files of the record, in flyballd's directory of state. */
#define USAGE_ENDED_FILE "usage.jsonl"   /* ends, oldest first; USAGE_ENDED_FILE.1 and so on are older */
#define USAGE_NOW_FILE "usage.now.jsonl" /* GPUs, and rows that have not ended */

extern const struct shape shape_usage_row, shape_usage_gpu, shape_usage, shape_usage_line;

#endif
