/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process to kill is this program again, in a process group of its own, so that it opens the
 * driver anew and no signal from the terminal reaches it.
 */
#include "cli/machine/selftest_kill.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* The longest wait until the process has set its limits, and until a limit is back. */
static const double set_max_s = 30, back_max_s = 10, poll_s = 0.002;
/* The process restores the limits by itself if nobody kills it. */
#define TIME_FOR_IT "45s"
enum { WORDS_MAX = 20, WORDS_BYTES = 16384, LIST_MAX = 1024, SHARE_MAX = 16, TALK_MAX = 256, PERCENT = 100 };

/* A command line; ends with NULL. */
struct words {
    char *words[WORDS_MAX + 1];
    size_t count, used;
    char text[WORDS_BYTES];
};

/* The limits of a GPU that takes part; all 0 for another device. */
struct limits {
    int64_t before_mw, lowest_mw, highest_mw;
    int64_t set_mw; /* set by the process */
};

struct victim {
    const struct cli_call *call;
    const struct device_list *devices;
    struct selftest_result *results;
    struct stop_signals *stop;
    pid_t pid;
    int talk; /* read end of its stderr */
    struct limits limits[DEVICES_MAX];
};

/* Returns 0 if it is not known. */
static int64_t read_mw(const struct victim *victim, size_t device, enum quantity quantity)
{
    struct device_reading reading;

    device_read(&victim->devices->devices[device], &clock_real, QUANTITY_BIT(quantity), &reading);
    return reading.values[quantity].state == READING_OK ? reading.values[quantity].value : 0;
}

/* Reads the limits of the GPUs that take part. Returns false if one is not known. */
static bool read_limits(struct victim *victim)
{
    for (size_t i = 0; i < victim->devices->count; i++) {
        struct limits *limits = &victim->limits[i];

        if (!victim->results[i].turning.tried)
            continue;
        *limits = (struct limits){.before_mw = read_mw(victim, i, QUANTITY_POWER_LIMIT),
                                  .lowest_mw = read_mw(victim, i, QUANTITY_POWER_LIMIT_MIN),
                                  .highest_mw = read_mw(victim, i, QUANTITY_POWER_LIMIT_MAX)};
        if (limits->before_mw <= 0 || limits->lowest_mw <= 0 || limits->highest_mw <= 0)
            return false;
    }
    return true;
}

/* Returns whether that share of the highest limit is in every GPU's range, and changes every limit. */
static bool try_share(struct victim *victim, int percent)
{
    for (size_t i = 0; i < victim->devices->count; i++) {
        struct limits *limits = &victim->limits[i];

        if (!victim->results[i].turning.tried)
            continue;
        limits->set_mw = llround((double)limits->highest_mw * percent / PERCENT / 1e3) * 1000;
        if (limits->set_mw < limits->lowest_mw || limits->set_mw == limits->before_mw)
            return false;
    }
    return true;
}

/* Returns a share in the middle of what every GPU accepts, in percent; 0: there is none. */
static int find_share(struct victim *victim)
{
    int lowest = 1, middle;

    while (lowest < PERCENT && !try_share(victim, lowest))
        lowest++;
    middle = (lowest + PERCENT) / 2;
    while (middle >= lowest && !try_share(victim, middle))
        middle--;
    return middle >= lowest && middle < PERCENT ? middle : 0;
}

static void add_word(struct words *words, const char *word)
{
    size_t bytes = strlen(word) + 1;

    if (words->count == WORDS_MAX || bytes > sizeof words->text - words->used)
        return;
    memcpy(words->text + words->used, word, bytes);
    words->words[words->count++] = words->text + words->used;
    words->used += bytes;
}

/* Adds "0,2" as --gpus takes it. */
static void add_gpus(const struct victim *victim, struct words *words)
{
    char list[LIST_MAX] = "";
    size_t length = 0;

    for (size_t i = 0; i < victim->devices->count && length < LIST_MAX; i++) {
        if (victim->results[i].turning.tried)
            length += (size_t)snprintf(list + length, LIST_MAX - length, "%s%u", length > 0 ? "," : "",
                                       victim->devices->devices[i].info.index);
    }
    add_word(words, list);
}

/* Adds the options that say where devices are found, as this command got them. */
static void add_options(const struct cli_call *call, struct words *words)
{
    static const struct {
        const char *name, *option;
    } options[] = {{"nvml", "--nvml"}, {"amdsmi", "--amdsmi"}, {"sysfs-root", "--sysfs-root"}};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (cli_source(call, options[i].name) != CLI_OPTION)
            continue;
        add_word(words, options[i].option);
        add_word(words, cli_text(call, options[i].name));
    }
}

/*
 * Starts it with a pipe as its stderr, no other stream, no blocked signal and a group of its own.
 * Returns 0 or an errno.
 */
static int spawn(struct victim *victim, char *const *words)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int talk[2], cause;

    if (pipe2(talk, O_CLOEXEC) < 0)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, talk[1], STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &victim->stop->before);
    cause = posix_spawn(&victim->pid, words[0], &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(talk[1]);
    victim->talk = talk[0];
    if (cause != 0)
        close(talk[0]);
    return cause;
}

static int start(struct victim *victim, int percent)
{
    static const char *const begin[] = {"/proc/self/exe", "power", "set", "--quiet", "--for", TIME_FOR_IT};
    struct words words = {.count = 0};
    char share[SHARE_MAX];

    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
        add_word(&words, begin[i]);
    snprintf(share, sizeof share, "%d%%", percent);
    add_word(&words, share);
    add_word(&words, "-i");
    add_gpus(victim, &words);
    add_options(victim->call, &words);
    return spawn(victim, words.words);
}

__attribute__((format(printf, 2, 3))) static void say_not_killed(const struct victim *victim,
                                                                 const char *format, ...)
{
    char text[sizeof victim->results->turning.not_killed];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < victim->devices->count; i++)
        snprintf(victim->results[i].turning.not_killed, sizeof text, "%s", text);
}

/* Returns whether each limit is at the value that the process sets. */
static bool all_set(const struct victim *victim)
{
    for (size_t i = 0; i < victim->devices->count; i++) {
        if (victim->limits[i].set_mw > 0 &&
            read_mw(victim, i, QUANTITY_POWER_LIMIT) != victim->limits[i].set_mw)
            return false;
    }
    return true;
}

/* Reads the last line that it wrote before it ended. */
static void read_talk(const struct victim *victim, char talk[TALK_MAX])
{
    ssize_t length = read(victim->talk, talk, TALK_MAX - 1);
    char *end;

    talk[length > 0 ? length : 0] = '\0';
    end = strchr(talk, '\n');
    if (end != NULL)
        *end = '\0';
}

static bool wait_until_set(struct victim *victim)
{
    struct mono_time end = mono_after_s(mono_now(), set_max_s), next;
    char talk[TALK_MAX];

    while (!all_set(victim)) {
        if (waitpid(victim->pid, NULL, WNOHANG) == victim->pid) {
            victim->pid = 0;
            read_talk(victim, talk);
            say_not_killed(victim, "the process that was to set it ended: %s", talk);
            return false;
        }
        next = mono_after_s(mono_now(), poll_s);
        if (next.ns >= end.ns || stop_signals_wait(victim->stop, next)) {
            say_not_killed(victim, "the process that was to set it did not within %.0f s", set_max_s);
            return false;
        }
    }
    return true;
}

/* Watches from now on until every limit is back. */
static void watch(struct victim *victim)
{
    struct mono_time start = mono_now(), now = start;
    size_t missing;

    do {
        missing = 0;
        for (size_t i = 0; i < victim->devices->count; i++) {
            struct selftest_turning *turning = &victim->results[i].turning;

            if (victim->limits[i].set_mw == 0 || isfinite(turning->back_s))
                continue;
            if (read_mw(victim, i, QUANTITY_POWER_LIMIT) == victim->limits[i].before_mw)
                turning->back_s = mono_elapsed_s(start, mono_now());
            else
                missing++;
        }
        clock_real.sleep_until(clock_real.state, mono_after_s(now, poll_s));
        now = mono_now();
    } while (missing > 0 && mono_elapsed_s(start, now) < back_max_s);
}

static void kill_and_watch(struct victim *victim)
{
    for (size_t i = 0; i < victim->devices->count; i++) {
        struct selftest_turning *turning = &victim->results[i].turning;

        turning->killed = victim->limits[i].set_mw > 0;
        turning->killed_limit_w = (double)victim->limits[i].set_mw * 1e-3;
        turning->back_s = NAN;
        turning->back_max_s = back_max_s;
    }
    kill(victim->pid, SIGKILL);
    watch(victim);
}

void selftest_kill(const struct cli_call *call, const struct device_list *devices,
                   struct selftest_result *results, struct stop_signals *stop)
{
    static struct victim victim; /* large */
    int percent, cause;

    victim = (struct victim){.call = call, .devices = devices, .results = results, .stop = stop};
    percent = read_limits(&victim) ? find_share(&victim) : 0;
    if (percent == 0) {
        say_not_killed(&victim, "there is no share of the highest limit to set on all GPUs");
        return;
    }
    cause = start(&victim, percent);
    if (cause != 0) {
        say_not_killed(&victim, "no process could be started to set it: %s", strerror(cause));
        return;
    }
    if (wait_until_set(&victim))
        kill_and_watch(&victim);
    if (victim.pid > 0) {
        kill(victim.pid, SIGKILL);
        while (waitpid(victim.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(victim.talk);
}
