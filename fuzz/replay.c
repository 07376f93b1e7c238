/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces libFuzzer in ordinary builds: runs the fuzz target that it is linked with over every file of the
 * given directories, and prints TAP, a line per directory. An empty directory fails, since it would test
 * nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fuzz.h"

enum { INPUT_MAX = 1 << 20, PATH_MAX_BYTES = 4096 };

/* Returns whether the file could be read; the input is in a block of its exact size. */
static int replay_file(const char *path)
{
    static uint8_t bytes[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    size_t size;
    uint8_t *input;

    if (file == NULL)
        return 0;
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    input = malloc(size > 0 ? size : 1);
    if (input == NULL)
        return 0;
    memcpy(input, bytes, size);
    LLVMFuzzerTestOneInput(input, size);
    free(input);
    return 1;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_directory(const char *directory)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_input, alphasort);
    int replayed = 0;

    if (count < 0) {
        printf("# %s: %s\n", directory, strerror(errno));
        return 0;
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX_BYTES];

        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        /* Printed before, so that a crash names its input. */
        printf("# %s\n", entries[i]->d_name);
        fflush(stdout);
        replayed += replay_file(path);
        free(entries[i]);
    }
    free(entries);
    return count > 0 && replayed == count;
}

int main(int argc, char **argv)
{
    int failed = 0;

    printf("1..%d\n", argc - 1);
    for (int i = 1; i < argc; i++) {
        int passed = replay_directory(argv[i]);

        printf("%s %d - corpus %s\n", passed ? "ok" : "not ok", i, argv[i]);
        failed |= !passed;
    }
    return failed;
}
