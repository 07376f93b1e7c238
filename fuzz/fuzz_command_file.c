/* SPDX-License-Identifier: Apache-2.0 */
/* A site's file of commands: a command that is read has words, and its placeholders can be filled in. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "knob/way/command_file.h"
#include "knob/way/command_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct device_info gpu = {.index = 3, .uuid = "GPU-1", .pci = "00000000:07:00.0"};
    struct command_file *file = NULL;
    struct fly_error error;

    if (command_file_parse("corpus", (const char *)data, size, &file, &error) < 0) {
        FUZZ_CHECK(error.code == FLY_ECONFIG && strchr(error.text, '\n') == NULL);
        return 0;
    }
    for (int operation = 0; operation < OPERATION_COUNT; operation++) {
        const struct operation_commands *offer = &file->operations[operation];
        const struct operation_call call = {.operation = (enum operation)operation, .gpu = &gpu};

        FUZZ_CHECK(offer->count <= COMMAND_COUNT_MAX && (offer->count == 0 || offer->timeout_s > 0));
        for (size_t i = 0; i < offer->count; i++) {
            FUZZ_CHECK(offer->commands[i].count > 0 && offer->commands[i].count <= COMMAND_WORDS_MAX);
            for (size_t k = 0; k < offer->commands[i].count; k++)
                free(command_word_fill(file->words[offer->commands[i].first + k], &call));
        }
    }
    command_file_free(file);
    return 0;
}
