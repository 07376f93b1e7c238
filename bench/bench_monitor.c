/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `flyball monitor` uses itself, on a terminal with eight emulated GPUs: its peak resident memory and
 * its processor time. Nothing here passes or fails.
 *
 *     bench_monitor FLYBALL LIBRARY [SECONDS]
 *
 * LIBRARY is the emulator's libnvidia-ml.so.1; the monitor is watched for SECONDS (5 unless given), at ten
 * readings a second.
 */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { PATH_BYTES = 64, LINE_BYTES = 512, READ_BYTES = 1 << 16, POLL_MS = 50, USER_TIME_FIELD = 14 };

static void die(const char *text)
{
    fprintf(stderr, "bench_monitor: %s\n", text);
    exit(1);
}

/* The number after a name in /proc/PID/status. */
static long status_of(pid_t pid, const char *name)
{
    char path[PATH_BYTES];
    char line[LINE_BYTES];
    long value = -1;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    while (file != NULL && value < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    }
    if (file != NULL)
        fclose(file);
    return value;
}

/* Processor time of the process, in seconds: the fields utime and stime. */
static double cpu_s(pid_t pid)
{
    char path[PATH_BYTES];
    char line[LINE_BYTES] = "";
    unsigned long ticks = 0;
    char *at;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    at = strrchr(line, ')');
    for (int field = 2; at != NULL && field < USER_TIME_FIELD; field++)
        at = strchr(at + 1, ' ');
    for (int i = 0; at != NULL && i < 2; i++)
        ticks += strtoul(at, &at, 10);
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Reads what the terminal shows until a moment. */
static void drain(int terminal, struct mono_time until)
{
    static char bytes[READ_BYTES];
    struct pollfd source = {.fd = terminal, .events = POLLIN};

    while (mono_elapsed_s(mono_now(), until) > 0) {
        if (poll(&source, 1, POLL_MS) > 0 && read(terminal, bytes, sizeof bytes) <= 0)
            return;
    }
}

int main(int argc, char **argv)
{
    struct winsize size = {.ws_row = 40, .ws_col = 120};
    double duration_s = argc > 3 ? strtod(argv[3], NULL) : 5;
    double begin_s;
    char state[PATH_BYTES];
    int terminal;
    pid_t pid;

    if (argc < 3)
        die("usage: bench_monitor FLYBALL LIBRARY [SECONDS]");
    snprintf(state, sizeof state, "/tmp/flyball-bench-monitor-%d", (int)getpid());
    setenv("FLYBALL_EMULATOR_STATE", state, 1);
    setenv("FLYBALL_EMULATOR", "gpus=8", 1);
    setenv("TERM", "xterm", 1);
    pid = forkpty(&terminal, NULL, NULL, &size);
    if (pid == 0) {
        execl(argv[1], argv[1], "monitor", "--nvml", argv[2], "--interval", "0.1", (char *)NULL);
        _exit(127);
    }
    if (pid < 0)
        die("no terminal");
    drain(terminal, mono_after_s(mono_now(), 1));
    begin_s = cpu_s(pid);
    drain(terminal, mono_after_s(mono_now(), duration_s));
    printf("monitor, 8 GPUs, 10 Hz: %.1f MiB resident at most (target < 10), %.2f %% of a core\n",
           (double)status_of(pid, "VmHWM:") / 1024, 100 * (cpu_s(pid) - begin_s) / duration_s);
    if (write(terminal, "q", 1) != 1)
        kill(pid, SIGKILL);
    drain(terminal, mono_after_s(mono_now(), 1));
    waitpid(pid, NULL, 0);
    unlink(state);
    return 0;
}
