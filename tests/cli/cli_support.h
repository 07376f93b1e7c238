/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_CLI_CLI_SUPPORT_H
#define FLYBALL_TESTS_CLI_CLI_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/frame/cli.h"
#include "test.h"

/* For tests that run the program in memory: its input and its output. */
struct cli_run {
    int status;
    char *out; /* owned */
    char *err; /* owned */
};

/* A case: a command line, split at blanks, and what is expected. */
static inline struct cli_run cli_run_line(const struct cli_world *base, const char *line)
{
    struct cli_run run = {.status = -1};
    struct cli_world world = *base;
    const char *arguments[32];
    size_t out_size, err_size;
    char *copy = strdup(line);
    char *rest = copy;
    char *word;

    world.arguments = arguments;
    world.argument_count = 0;
    while ((word = strsep(&rest, " ")) != NULL && world.argument_count < 32) {
        if (word[0] != '\0')
            arguments[world.argument_count++] = word;
    }
    world.console.out = open_memstream(&run.out, &out_size);
    world.console.err = open_memstream(&run.err, &err_size);
    run.status = cli_main(&world);
    fclose(world.console.out);
    fclose(world.console.err);
    free(copy);
    return run;
}

static inline void cli_run_free(struct cli_run *run)
{
    free(run->out);
    free(run->err);
}

/* Fails, and prints the whole text, unless it contains the piece. */
static inline void assert_contains(const char *context, const char *text, const char *piece)
{
    if (strstr(text, piece) == NULL)
        fail_msg("%s: expected a text with:\n  %s\ngot:\n  %s", context, piece, text);
}

static inline void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#endif
