/* SPDX-License-Identifier: Apache-2.0 */
#include "node/watch/watch_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file/atomic_file.h"
#include "base/number.h"

static const char head[] = "flyball.watch.totals/2 boot ", head_1[] = "flyball.watch.totals/1 boot ";

/* The shares that are kept, in the order of a line. */
static const size_t kept[] = {
    offsetof(struct shares, idle_s),           offsetof(struct shares, idle_known_s),
    offsetof(struct shares, idle_j),           offsetof(struct shares, idle_known_j),
    offsetof(struct shares, capped_s),         offsetof(struct shares, heat_s),
    offsetof(struct shares, brake_s),          offsetof(struct shares, held_s),
    offsetof(struct shares, throttle_known_s),
};

enum {
    LINE_BYTES_MAX = 1024,
    FILE_BYTES_MAX = 1024 * 1024,
    KEPT = sizeof kept / sizeof kept[0],
    WORDS_1 = 6,
    WORDS = WORDS_1 + KEPT
};
/* Energies go on from what is read: 1.28 GWh, to which a device adds for longer than it lives. */
static const uint64_t energy_most_uj = INT64_MAX / 2;
_Static_assert(sizeof head == sizeof head_1, "the heads of both versions are as long");

static double *kept_at(struct shares *shares, size_t i)
{
    return (double *)(void *)((char *)shares + kept[i]);
}

char *watch_boot_id(char boot[WATCH_BOOT_MAX])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    boot[0] = '\0';
    if (file == NULL)
        return boot;
    if (fgets(boot, WATCH_BOOT_MAX, file) == NULL)
        boot[0] = '\0';
    boot[strcspn(boot, "\n ")] = '\0';
    fclose(file);
    return boot;
}

static int bad_line(const char *name, size_t number, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA,
                     "%.300s:%zu: no line of totals ('UUID ENERGY UNOBSERVED UNKNOWN RESETS COUNTER', and "
                     "shares); the file is damaged: move it away, and totals begin at 0",
                     name, number);
}

/* Reads one of a line's numbers, which are never negative. */
static bool read_whole(const char *word, int64_t *out_value)
{
    uint64_t value;

    if (!number_parse_u64(word, energy_most_uj, &value))
        return false;
    *out_value = (int64_t)value;
    return true;
}

static bool read_shares(char **words, struct shares *out_shares)
{
    struct shares shares = {.idle_s = 0.0};

    for (size_t i = 0; i < KEPT; i++) {
        if (!number_parse_double(words[i], kept_at(&shares, i)) || *kept_at(&shares, i) < 0.0)
            return false;
    }
    *out_shares = shares;
    return true;
}

/* Reads a line of so many words. */
static bool read_line(char *line, size_t wanted, struct watch_saved *out_saved)
{
    struct watch_saved saved = {.total = {.energy_uj = 0}};
    struct watch_total *total = &saved.total;
    char *words[WORDS + 1] = {NULL}, *rest = NULL;
    size_t count = 0;

    for (char *word = strtok_r(line, " ", &rest); word != NULL && count <= WORDS;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    if (count != wanted || strlen(words[0]) >= sizeof saved.uuid)
        return false;
    memcpy(saved.uuid, words[0], strlen(words[0]) + 1);
    if (!read_whole(words[1], &total->energy_uj) || !read_whole(words[2], &total->unobserved_uj) ||
        !number_parse_double(words[3], &total->unknown_s) ||
        !number_parse_u64(words[4], UINT64_MAX, &total->resets))
        return false;
    total->counts = strcmp(words[5], "-") != 0;
    if (total->counts && !number_parse_u64(words[5], UINT64_MAX, &total->counter_uj))
        return false;
    if (wanted == WORDS && !read_shares(words + WORDS_1, &saved.shares))
        return false;
    *out_saved = saved;
    return total->unknown_s >= 0.0 && total->energy_uj >= total->unobserved_uj;
}

int watch_state_parse(const char *text, const char *name, struct watch_saved *out_saved, size_t maximum,
                      size_t *out_count, char out_boot[WATCH_BOOT_MAX], struct fly_error *out_error)
{
    bool first_version = strncmp(text, head_1, sizeof head_1 - 1) == 0;
    size_t count = 0, number = 1, words = first_version ? WORDS_1 : WORDS;

    if (!first_version && strncmp(text, head, sizeof head - 1) != 0)
        return bad_line(name, number, out_error);
    text += sizeof head - 1;
    snprintf(out_boot, WATCH_BOOT_MAX, "%.*s", (int)strcspn(text, "\n"), text);
    text += strcspn(text, "\n");
    while (*text == '\n' && text[1] != '\0') {
        size_t length = strcspn(++text, "\n");
        char line[LINE_BYTES_MAX];

        number++;
        if (length >= sizeof line || count == maximum)
            return bad_line(name, number, out_error);
        memcpy(line, text, length);
        line[length] = '\0';
        if (!read_line(line, words, &out_saved[count++]))
            return bad_line(name, number, out_error);
        text += length;
    }
    *out_count = count;
    return 0;
}

int watch_state_read(const char *path, struct watch_saved *out_saved, size_t maximum, size_t *out_count,
                     char out_boot[WATCH_BOOT_MAX], struct fly_error *out_error)
{
    FILE *file = fopen(path, "re");
    char *text;
    size_t length;
    int code;

    *out_count = 0;
    out_boot[0] = '\0';
    if (file == NULL && errno == ENOENT)
        return 0;
    if (file == NULL)
        return error_set(out_error, errno == EACCES ? FLY_EPERM : FLY_EREAD, "'%.300s' cannot be read: %s",
                         path, strerror(errno));
    text = malloc(FILE_BYTES_MAX);
    if (text == NULL) {
        fclose(file);
        return error_no_memory(out_error);
    }
    length = fread(text, 1, FILE_BYTES_MAX - 1, file);
    text[length] = '\0';
    code = ferror(file) != 0 || strlen(text) != length
               ? bad_line(path, 1, out_error)
               : watch_state_parse(text, path, out_saved, maximum, out_count, out_boot, out_error);
    free(text);
    fclose(file);
    return code;
}

static void write_line(FILE *stream, const struct watch_saved *saved)
{
    const struct watch_total *total = &saved->total;
    struct shares shares = saved->shares;

    fprintf(stream, "%s %" PRId64 " %" PRId64 " %.3f %" PRIu64 " ", saved->uuid, total->energy_uj,
            total->unobserved_uj, total->unknown_s, total->resets);
    if (total->counts)
        fprintf(stream, "%" PRIu64, total->counter_uj);
    else
        fputs("-", stream);
    for (size_t i = 0; i < KEPT; i++)
        fprintf(stream, " %.3f", *kept_at(&shares, i));
    fputs("\n", stream);
}

int watch_state_write(const char *path, const struct watch_saved *saved, size_t count, const char *boot,
                      struct fly_error *out_error)
{
    struct atomic_file file;
    int code = atomic_file_open(path, &file, out_error);

    if (code < 0)
        return code;
    fprintf(file.stream, "%s%s\n", head, boot);
    for (size_t i = 0; i < count; i++)
        write_line(file.stream, &saved[i]);
    return atomic_file_commit(&file, out_error);
}
