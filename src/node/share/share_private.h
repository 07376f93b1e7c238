/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_SHARE_SHARE_PRIVATE_H
#define FLYBALL_NODE_SHARE_SHARE_PRIVATE_H

#include "base/arena.h"
#include "base/thread/thread_group.h"
#include "device/device_processes.h"
#include "node/owner/owner.h"
#include "node/share/share.h"
#include "node/share/share_ledger.h"
#include "node/share/share_record.h"
#include "node/share/share_rows.h"
#include "node/watch/watch_state.h"

/* The inside of a share, for the files of this room. */

enum {
    SHARE_PROCESSES_MAX = 4096, /* with rows, of all GPUs */
    SHARE_SAMPLES_MAX = 1024,
    SHARE_MESSAGE_MAX = 400,
    SHARE_PATH_MAX = 512,
    SHARE_NO_GROUP = UINT32_MAX,
};

/* A process that has, or had, rows. */
struct share_process {
    uint64_t number; /* in ledgers; never given twice; its rest by SHARE_PROCESSES_MAX is its place; 0: the
                      * place is free */
    struct owner owner;
    int64_t started_unix_ms; /* 0: unknown */
    int64_t ended_unix_ms;   /* seen on no GPU any more; 0: it is there */
    bool named;              /* owners_name has been asked */
    bool over;               /* it has ended for sure, as before the machine's last start */
    bool passive;            /* the server of MPS */
    struct {                 /* what people_tidy finds of all its rows: */
        bool any, there;     /* there are some; one of them has not ended */
        bool logged;         /* all that ended are on record */
        int64_t ended_unix_ms;
    } rows;
};

/* A series of Prometheus: energy of all rows of one owner on one GPU. */
struct share_series {
    unsigned rows; /* that count there; 0: the place is free */
    size_t gpu;
    enum usage_kind kind;
    int64_t energy_uj;
    double power_w; /* computed when it is written; NAN: nobody is there now */
    char user[OWNER_USER_MAX];
    char training_job[OWNER_JOB_MAX];
    char slurm_job[OWNER_SLURM_MAX];
    char pod[OWNER_POD_MAX];
    char pod_namespace[OWNER_LABEL_MAX];
    char container[OWNER_LABEL_MAX];
};

/* How busy processes kept a GPU, as the driver sampled it last. */
struct share_uses {
    int64_t newest_us;
    struct mono_time taken; /* when new samples came */
    size_t count;
    struct {
        pid_t pid;
        double percent;
    } of[DEVICE_PROCESSES_AT_ONCE];
};

/* A GPU, and the thread that looks at it. */
struct share_gpu {
    struct share *share;
    size_t gpu; /* its place in the watch */
    struct device_info info;
    struct ledger ledger;
    struct ledger_row *rows;  /* owned */
    int64_t counted_unix_ms;  /* of the last look; 0: there was none */
    int64_t marked_unix_ms;   /* of the total that was last written beside the ends; 0: none was */
    struct mono_time failing; /* since when the driver has not said who is there; 0: it has */
    int64_t left_out_uj;      /* of owners without a series, since the record began */
    int64_t ended_uj;         /* of series that ended */
    struct device_process listed[DEVICE_PROCESSES_AT_ONCE]; /* the thread's own from here on */
    struct ledger_seen seen[DEVICE_PROCESSES_AT_ONCE];
    unsigned long long starts[DEVICE_PROCESSES_AT_ONCE];
    size_t listed_count;
    struct device_use_sample samples[SHARE_SAMPLES_MAX];
    struct share_uses uses;
};

/* A line of the record, for a GPU that has not been met yet. */
struct saved_line {
    struct usage_line line; /* of the arena */
    const char *text;
    size_t length;
    bool taken; /* its GPU has been met */
    bool is_end;
};

struct share {
    struct share_options options;
    char *state, *root;        /* owned */
    struct thread_group group; /* of the clerk, the namer, and an eye for each GPU */
    bool clerk_ended;
    struct share_gpu *gpus[WATCH_GPUS_MAX];
    size_t gpu_count;
    uint64_t numbers;     /* how many were given */
    size_t process_count; /* places in use, at most; the rest was never used */
    struct share_process *processes;
    size_t series_count; /* likewise */
    struct share_series *series;
    char boot[WATCH_BOOT_MAX];
    struct share_record *record; /* NULL: none */
    uint64_t serial;             /* of the last end on record */
    bool unwritten;              /* the last time, the record could not be written */
    struct arena arena;          /* of: */
    struct saved_line *saved;    /* owned */
    size_t saved_count, saved_room;
    pthread_mutex_t look_lock; /* of: */
    struct owners *look;
    struct owners *names; /* the namer's own */
};

/* All of these are called with the lock, unless said otherwise. */

/* ---- share_people.c ---- */

/* Returns the process of that pid, or NULL; `start` of process_stat, 0: unknown. */
struct share_process *people_find(struct share *share, pid_t pid, unsigned long long start);
struct share_process *people_of(struct share *share, uint64_t number); /* or NULL */

/* Gives who all sharers of a set have in common, "" where they differ. Returns whether all have their names.
 */
bool people_common(struct share *share, const struct ledger_set *set, struct owner *out_owner);

/* ---- share_tidy.c ---- */

/* Makes one, in place of the one that ended longest ago if need be; NULL if there is no more room. */
struct share_process *people_add(struct share *share, const struct owner *owner);

/* Finds out who is on no GPU any more, and folds rows that need not be kept. */
void people_tidy(struct share *share);

/* Makes room in a ledger, if it is full, for a process that comes. */
void people_make_room(struct share_gpu *gpu);

/* ---- share_series.c ---- */

/* Counts in series what the rows of a GPU got; `also` those of processes that have no names yet. */
void series_settle(struct share_gpu *gpu, bool also);

/* Counts what a row got in its series, before it is folded; then series_sweep. */
void series_leave(struct share_gpu *gpu, struct ledger_row *row);

/* Makes a series as it is on record. */
void series_resume(struct share_gpu *gpu, const struct usage_row *row);

/* Ends series that no row has any more. */
void series_sweep(struct share *share);

/* Counts owners that have no series. */
size_t series_left_out(const struct share *share);

/* ---- threads; without the lock ---- */
void share_eye(void *state);   /* a struct share_gpu */
void share_namer(void *state); /* the share */

/* Says a line to the log; without the lock. */
void share_say(const struct share *share, bool trouble, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- share_tell.c ---- */

/* Describes a row; texts are borrowed. `arena` gets the sharers of a set. */
void tell_process(struct share_gpu *gpu, const struct ledger_row *row, struct usage_row *out_row);
int tell_set(struct share_gpu *gpu, const struct ledger_set *set, struct arena *arena,
             struct usage_row *out_row);
void tell_rest(struct share_gpu *gpu, enum usage_kind kind, const struct ledger_row *row,
               struct usage_row *out_row);

#endif
