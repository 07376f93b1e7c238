/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_RUN_VARIABLES_H
#define FLYBALL_TRAIN_PROGRAM_RUN_VARIABLES_H

#include <stdbool.h>

/*
 * What `flyball run --job` tells the program that it starts as a try of a recurring job. A program that does
 * not use the library reads what it needs. A session of the same job asks the log again under the same
 * request, and so gets the same trial.
 *
 *     X(name, variable, what it holds)
 */
#define RUN_VARIABLE_MAP(X)                                                                              \
    X(JOB, "FLYBALL_JOB_NAME", "the job's name")                                                         \
    X(STORE, "FLYBALL_STORE", "the address of the job's log")                                            \
    X(REQUEST, "FLYBALL_JOB_REQUEST", "the request under which the try was proposed")                    \
    X(RUN, "FLYBALL_RUN_ID", "a name of the run that stays when it is requeued")                         \
    X(TRIAL, "FLYBALL_TRIAL", "number of the trial in the job's log, from 1")                            \
    X(ATTEMPT, "FLYBALL_ATTEMPT", "number of the attempt at this trial, from 1; more after a requeue")   \
    X(TRY, "FLYBALL_TRY", "number of the try within this submission, from 0")                            \
    X(BATCH_SIZE, "FLYBALL_BATCH_SIZE", "batch size of all ranks together")                              \
    X(LOCAL_BATCH_SIZE, "FLYBALL_LOCAL_BATCH_SIZE", "batch size of one rank")                            \
    X(LEARNING_RATE, "FLYBALL_LEARNING_RATE", "learning rate for this batch size; with --learning-rate") \
    X(SEED, "FLYBALL_SEED", "a number for the program's own luck: another for each trial")               \
    X(TRY_DIRECTORY, "FLYBALL_TRY_DIRECTORY",                                                            \
      "path of a directory of this try's own, for checkpoints; make it before you use it")               \
    X(MAX_EPOCHS, "FLYBALL_MAX_EPOCHS", "epochs that the program may train at most")                     \
    X(METRIC_NAME, "FLYBALL_METRIC_NAME", "name of the metric that is reported; with --metric-name")

#define RUN_VARIABLE_ENUM(name, variable, holds) RUN_VARIABLE_##name,
enum run_variable { RUN_VARIABLE_MAP(RUN_VARIABLE_ENUM) RUN_VARIABLE_COUNT };
#undef RUN_VARIABLE_ENUM

struct run_variable_facts {
    const char *name;  /* "FLYBALL_BATCH_SIZE" */
    const char *holds; /* for people */
};

extern const struct run_variable_facts run_variables[RUN_VARIABLE_COUNT];

/* The variable's value in this process's environment; NULL when it is not set or empty. */
const char *run_variable(enum run_variable variable);

/* The value as a whole number from 1 to UINT32_MAX; 0 when it is none. */
unsigned run_variable_number(enum run_variable variable);

/* Whether this process runs within a try of that job. */
bool run_variables_of(const char *job);

#endif
