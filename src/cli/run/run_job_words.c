/* SPDX-License-Identifier: Apache-2.0 */
/* How the program learns of its try: by its words, and by variables. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "cli/run/run_job.h"
#include "train/program/run_variables.h"

enum { VALUE_MAX = 64, WORDS_BYTES_MAX = 1 << 22, TRIES_WITH_DIRECTORY = 3 };

static const struct {
    const char *mark; /* in the program's words */
    enum run_variable variable;
} marks[] = {
    {"{batch_size}", RUN_VARIABLE_BATCH_SIZE},       {"{local_batch_size}", RUN_VARIABLE_LOCAL_BATCH_SIZE},
    {"{learning_rate}", RUN_VARIABLE_LEARNING_RATE}, {"{seed}", RUN_VARIABLE_SEED},
    {"{max_epochs}", RUN_VARIABLE_MAX_EPOCHS},       {"{try_directory}", RUN_VARIABLE_TRY_DIRECTORY},
};

/* Returns "" if there is none. */
static const char *value_of(const struct run_job *job, enum run_variable variable, char text[VALUE_MAX])
{
    const struct fly_session *session = job->session;
    const struct job_proposal *proposal = &session->proposal;

    text[0] = '\0';
    switch (variable) {
    case RUN_VARIABLE_JOB:
        return session->options.job_name;
    case RUN_VARIABLE_STORE:
        return session->options.store != NULL ? session->options.store : "";
    case RUN_VARIABLE_REQUEST:
        return session->known ? session->request : "";
    case RUN_VARIABLE_RUN:
        return session->run;
    case RUN_VARIABLE_TRIAL:
        snprintf(text, VALUE_MAX, "%" PRIu64, proposal->trial);
        return session->known ? text : "";
    case RUN_VARIABLE_ATTEMPT:
        snprintf(text, VALUE_MAX, "%" PRIu32, proposal->attempt);
        return session->known ? text : "";
    case RUN_VARIABLE_TRY:
        snprintf(text, VALUE_MAX, "%" PRIu32, proposal->try_number);
        return text;
    case RUN_VARIABLE_BATCH_SIZE:
        snprintf(text, VALUE_MAX, "%" PRIu32, proposal->batch_size);
        return text;
    case RUN_VARIABLE_LOCAL_BATCH_SIZE:
        snprintf(text, VALUE_MAX, "%" PRIu32, proposal->local_batch_size);
        return text;
    case RUN_VARIABLE_LEARNING_RATE:
        return isnan(job->learning_rate)
                   ? ""
                   : number_format(fly_session_learning_rate(session, job->learning_rate, job->scaling),
                                   text);
    case RUN_VARIABLE_SEED:
        snprintf(text, VALUE_MAX, "%" PRIu32, (uint32_t)(job->seed + proposal->trial));
        return text;
    case RUN_VARIABLE_MAX_EPOCHS:
        snprintf(text, VALUE_MAX, "%" PRIu32, session->options.job.max_epochs);
        return text;
    case RUN_VARIABLE_METRIC_NAME:
        return job->metric_name != NULL ? job->metric_name : "";
    case RUN_VARIABLE_TRY_DIRECTORY:
        return session->directory;
    case RUN_VARIABLE_COUNT:
        break;
    }
    return text;
}

void run_job_set_variables(const struct run_job *job)
{
    for (int i = 0; i < RUN_VARIABLE_COUNT; i++) {
        char text[VALUE_MAX];
        const char *value = value_of(job, (enum run_variable)i, text);

        if (value[0] != '\0')
            setenv(run_variables[i].name, value, 1);
        else
            unsetenv(run_variables[i].name);
    }
}

/* A try with a directory of its own for what it saves may be made again. */
static bool uses_directory(char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strstr(words[i], "{try_directory}") != NULL)
            return true;
    }
    return false;
}

void run_job_make_directory(const struct run_job *job, char *const *words)
{
    char path[SESSION_PATH_MAX];
    struct fly_error error;

    if (uses_directory(words) && fly_session_directory(job->session, path, sizeof path, &error) < 0)
        fprintf(stderr, "flyball: %s\n", error.text);
}

bool run_job_has_marks(char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        for (size_t m = 0; m < sizeof marks / sizeof marks[0]; m++) {
            if (strstr(words[i], marks[m].mark) != NULL)
                return true;
        }
    }
    return false;
}

int run_job_take_words(struct run_job *job, char *const *words, struct fly_error *out_error)
{
    if (!cli_set(job->call, "tries"))
        job->options.tries = uses_directory(words) ? TRIES_WITH_DIRECTORY : 1;
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strstr(words[i], "{learning_rate}") != NULL && isnan(job->learning_rate))
            return error_set(
                out_error, FLY_EUSAGE,
                "'%.100s': {learning_rate} follows from the rate that suits the default batch size; "
                "give it with --learning-rate",
                words[i]);
    }
    return 0;
}

static void fill(const struct run_job *job, const char *word, struct buffer *out)
{
    while (*word != '\0') {
        size_t at = 0, count = sizeof marks / sizeof marks[0];

        while (at < count && strncmp(word, marks[at].mark, strlen(marks[at].mark)) != 0)
            at++;
        if (at < count) {
            char text[VALUE_MAX];

            buffer_puts(out, value_of(job, marks[at].variable, text));
            word += strlen(marks[at].mark);
        } else {
            buffer_append(out, word++, 1);
        }
    }
    buffer_append(out, "", 1);
}

char **run_job_words(const struct run_job *job, char *const *words)
{
    struct buffer texts;
    size_t count = 0;
    char **filled;
    char *at;

    buffer_init(&texts, WORDS_BYTES_MAX);
    for (; words[count] != NULL; count++)
        fill(job, words[count], &texts);
    filled = texts.error == 0 ? malloc((count + 1) * sizeof *filled + texts.length) : NULL;
    if (filled != NULL) {
        at = memcpy(filled + count + 1, texts.data, texts.length);
        for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
            filled[i] = at;
        filled[count] = NULL;
    }
    buffer_deinit(&texts);
    return filled;
}
