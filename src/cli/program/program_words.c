/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program/program_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program/child.h"

char **program_words(const struct cli_call *call, size_t count,
                     const char *(*word)(const struct cli_call *call, size_t index))
{
    char **words = calloc(count + 1, sizeof *words);

    for (size_t i = 0; words != NULL && i < count; i++) {
        const char *of = word(call, i);

        memcpy(&words[i], &of, sizeof of);
    }
    return words;
}

void program_say_not_run(const struct cli_call *call, const char *program, int error, int status)
{
    char text[FLY_ERROR_TEXT_MAX];

    snprintf(text, sizeof text, "'%.200s' cannot be run: %s", program,
             error == ENOENT && strchr(program, '/') == NULL ? "there is no such command" : strerror(error));
    cli_say(call, text);
    cli_exit_with(call, status);
}

int program_replace(const struct cli_call *call, char *const *words)
{
    int status = child_replace(words);

    program_say_not_run(call, words[0], errno, status);
    return 0;
}
