/* SPDX-License-Identifier: Apache-2.0 */
/*
 * knob_watcher STATE: samples the knobs of emulated GPUs a thousand times a second, and turns them as another
 * program does, in one order of events.
 *
 *     at 12.345678 gpu 0 limit 300.000 clocks 0-1200 memory 0-0     each time that a knob stands elsewhere
 *     gap 12.500000 0.031                                           it did not look for so many seconds
 *     set 12.400000 gpu 0                                           it has carried out a command
 *
 * Commands on standard input: "limit GPU W", "clocks GPU MHZ", "memory GPU FLOOR CEILING" (0: free), "faults
 * FILE" ("none": no faults), and "mark TEXT", which is said again. Ends with its input.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "emulator/control.h"
#include "emulator/fault.h"

enum { LOOK_MS = 1, LINE_BYTES = 4200, WORDS_MAX = 5, MHZ_MAX = 100000 };
static const double gap_s = 0.02;

struct knobs {
    double limit_w;
    struct emulator_locks locks;
};

static struct emulator *emulator;
static struct knobs seen[EMULATOR_GPUS_MAX];
static double looked_s;

static double now_s(void)
{
    return (double)mono_now().ns * 1e-9;
}

static bool same(const struct knobs *one, const struct knobs *other)
{
    return one->limit_w == other->limit_w && memcmp(&one->locks, &other->locks, sizeof one->locks) == 0;
}

static void look(bool all)
{
    double at_s = now_s();

    if (looked_s > 0 && at_s - looked_s > gap_s)
        printf("gap %.6f %.3f\n", at_s, at_s - looked_s);
    looked_s = at_s;
    for (unsigned gpu = 0; gpu < emulator_gpu_count(emulator); gpu++) {
        struct knobs now = {.limit_w = emulator_limit_w(emulator, gpu),
                            .locks = emulator_locks(emulator, gpu)};

        if (!all && same(&now, &seen[gpu]))
            continue;
        seen[gpu] = now;
        printf("at %.6f gpu %u limit %.3f clocks %u-%u memory %u-%u\n", at_s, gpu, now.limit_w,
               now.locks.floor_mhz, now.locks.ceiling_mhz, now.locks.memory_floor_mhz,
               now.locks.memory_ceiling_mhz);
    }
    fflush(stdout);
}

static bool set_limit(char *const *words, uint64_t gpu)
{
    double limit_w;

    return number_parse_double(words[2], &limit_w) &&
           emulator_set_limit_w(emulator, (unsigned)gpu, limit_w, NULL) == 0;
}

static bool lock_clocks(char *const *words, uint64_t gpu)
{
    uint64_t mhz;

    return number_parse_u64(words[2], MHZ_MAX, &mhz) &&
           emulator_set_ceiling_mhz(emulator, (unsigned)gpu, (unsigned)mhz, NULL) == 0;
}

static bool lock_memory(char *const *words, uint64_t gpu)
{
    uint64_t floor_mhz, ceiling_mhz;

    if (!number_parse_u64(words[2], MHZ_MAX, &floor_mhz) ||
        !number_parse_u64(words[3], MHZ_MAX, &ceiling_mhz))
        return false;
    emulator_lock_memory(emulator, (unsigned)gpu, (unsigned)floor_mhz, (unsigned)ceiling_mhz);
    return true;
}

static bool set_faults(const char *path)
{
    struct fault_list faults = {.count = 0};

    if (strcmp(path, "none") != 0 && faults_read(path, &faults, NULL) < 0)
        return false;
    emulator_set_faults(emulator, &faults);
    return true;
}

/* Carries out a command; returns false if it is none. Cuts the line in place. */
static bool obey(char *line)
{
    static const struct {
        const char *word;
        size_t words;
        bool (*turn)(char *const *words, uint64_t gpu);
    } turns[] = {{"limit", 3, set_limit}, {"clocks", 3, lock_clocks}, {"memory", 4, lock_memory}};
    char *words[WORDS_MAX] = {NULL}, *saved = NULL;
    uint64_t gpu;
    size_t count = 0;

    for (char *word = strtok_r(line, " ", &saved); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &saved))
        words[count++] = word;
    if (count == 2 && strcmp(words[0], "faults") == 0)
        return set_faults(words[1]);
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
        if (count == turns[i].words && strcmp(words[0], turns[i].word) == 0)
            return number_parse_u64(words[1], emulator_gpu_count(emulator) - 1, &gpu) &&
                   turns[i].turn(words, gpu);
    return count > 0 && strcmp(words[0], "mark") == 0;
}

int main(int argc, char **argv)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[LINE_BYTES], said[LINE_BYTES];
    struct fly_error error;

    if (argc != 2 || emulator_open(argv[1], &emulator, &error) < 0)
        return 1;
    setvbuf(stdin, NULL, _IONBF, 0);
    look(true);
    for (;;) {
        if (poll(&input, 1, LOOK_MS) > 0) {
            if (fgets(line, sizeof line, stdin) == NULL)
                break;
            line[strcspn(line, "\n")] = '\0';
            look(false);
            snprintf(said, sizeof said, "%s", line);
            printf("%s %.6f %s\n", obey(line) ? "set" : "refused", now_s(), said);
        }
        look(false);
    }
    emulator_close(emulator);
    return 0;
}
