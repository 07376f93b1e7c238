/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's output gives the same result in two pieces as in one, whatever it contains. The same bytes, as
 * a list of cgroups and one of mounts, name a file below a mount, or none.
 */
#include <string.h>

#include "fuzz.h"
#include "train/program/host_memory.h"
#include "train/program/memory_words.h"

enum { TEXT_MAX = 1 << 14 };

static struct memory_seen read_in(const char *text, size_t size, size_t piece)
{
    static struct memory_words words;
    struct memory_seen seen = {.count = {0}};

    words = (struct memory_words){.told = NULL};
    for (size_t at = 0; at < size; at += piece)
        memory_words_take(&words, text + at, size - at < piece ? size - at : piece, &seen);
    memory_words_end(&words, &seen);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX];
    char file[HOST_MEMORY_PATH_MAX] = "";
    const char *mounts;
    struct memory_seen one, other;

    if (size >= TEXT_MAX)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    one = read_in(text, size, TEXT_MAX);
    other = read_in(text, size, 7);
    FUZZ_CHECK(memcmp(one.count, other.count, sizeof one.count) == 0);
    mounts = strstr(text, "\n\n");
    if (host_memory_find(text, mounts != NULL ? mounts + 2 : "", file))
        FUZZ_CHECK(memchr(file, '\0', sizeof file) != NULL && strstr(file, "/memory.") != NULL);
    return 0;
}
