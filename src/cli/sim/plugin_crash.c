/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers run in the thread that crashed, which may hold any lock: they use only
 * async-signal-safe functions, and end the process at once. What the atomic file has written by
 * then has no name and disappears with the process.
 */
#include "cli/sim/plugin_crash.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <flyball/error.h>

#include "policy/plugin.h"

enum { STACK_SIZE = 1 << 16, TEXT_MAX = PATH_MAX + 512, STACK_WORDS = 256, STACK_PIECES = 64 };

static const struct {
    int number;
    const char *name;
} crashes[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"},
};
enum { CRASH_COUNT = sizeof crashes / sizeof crashes[0] };

static atomic_bool watching;
static pid_t watched;           /* this process only: children of a plug-in may end as they like */
static _Thread_local bool ours; /* this thread calls plug-ins; it was not started by one */
static char leftover[PATH_MAX]; /* to be removed; "" for nothing */

/* A line composed without the C library's streams. */
struct line {
    size_t length;
    char text[TEXT_MAX];
};

static void line_add(struct line *line, const char *text)
{
    for (; *text != '\0' && line->length < sizeof line->text - 1; text++) {
        bool control = (unsigned char)*text < ' ' || *text == 0x7F;
        char shown = *text;

        if (control)
            shown = '?';
        line->text[line->length++] = shown;
    }
}

/* Bypasses our own _exit below. */
_Noreturn static void leave(int status)
{
    for (;;)
        syscall(SYS_exit_group, status);
}

/*
 * Prints what happened and ends the process: "crashed", and the signal's name or NULL. Of several
 * threads only the first prints.
 */
_Noreturn static void end(const struct plugin_call *call, const char *what, const char *signal_name)
{
    static atomic_flag ended = ATOMIC_FLAG_INIT;
    struct line line = {.length = 0};

    while (atomic_flag_test_and_set(&ended))
        pause();
    line_add(&line, "flyball: plug-in '");
    line_add(&line, call->path);
    line_add(&line, "' ");
    line_add(&line, what);
    line_add(&line, call->function != NULL ? " in '"
                    : ours                 ? " outside of its calls"
                                           : " in a thread of its own");
    line_add(&line, call->function != NULL ? call->function : "");
    line_add(&line, call->function != NULL ? "'" : "");
    if (signal_name != NULL) {
        line_add(&line, " (");
        line_add(&line, signal_name);
        line_add(&line, ")");
    }
    line_add(&line,
             "; no file was written; mend the plug-in (a debugger shows where it happened) or leave it out");
    line.text[line.length++] = '\n';
    (void)!write(STDERR_FILENO, line.text, line.length);
    if (leftover[0] != '\0')
        unlink(leftover);
    leave(fly_error_exit_status(FLY_EINTERNAL));
}

static const char *crash_name(int number)
{
    for (int i = 0; i < CRASH_COUNT; i++) {
        if (crashes[i].number == number)
            return crashes[i].name;
    }
    return "a signal";
}

/*
 * Returns the plug-in that a thread's stack leads to, from `frame` on; NULL for none. Reads the
 * stack through the kernel, which knows where it ends.
 */
static const char *plugin_on_stack(void *frame)
{
    uintptr_t words[STACK_WORDS] = {0};
    const char *path = NULL;

    for (int piece = 0; piece < STACK_PIECES && path == NULL; piece++) {
        const struct iovec to = {words, sizeof words};
        const struct iovec from = {(char *)frame + (size_t)piece * sizeof words, sizeof words};
        ssize_t count = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

        for (ssize_t i = 0; i < count / (ssize_t)sizeof words[0] && path == NULL; i++)
            path = plugin_at(words[i]);
        if (count < (ssize_t)sizeof words)
            break;
    }
    return path;
}

/*
 * Finds who is responsible: the call that this thread is in; else the code at `address`; else, in
 * a thread that is not ours, the code that led here. `path` is NULL if no plug-in is.
 */
static struct plugin_call blame(uintptr_t address, void *frame)
{
    struct plugin_call call = plugin_current();

    if (call.function != NULL)
        return call;
    call.path = plugin_at(address);
    if (call.path == NULL && !ours)
        call.path = plugin_on_stack(frame);
    return call;
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    const struct plugin_call call = blame(0, __builtin_frame_address(0));
    /* Sent by the kernel, or by the process itself as abort does. */
    bool own_doing = info->si_code > 0 || info->si_pid == getpid();

    (void)context;
    if (call.path != NULL && own_doing)
        end(&call, "crashed", crash_name(number));
    signal(number, SIG_DFL);
    raise(number); /* takes effect when this handler returns */
}

static void on_exit_call(void)
{
    const struct plugin_call call = blame(0, __builtin_frame_address(0));

    if (call.path != NULL && getpid() == watched)
        end(&call, "called exit", NULL);
}

/* No handler would otherwise run for these. */
_Noreturn static void leave_from(const void *address, void *frame, const char *what, int status)
{
    struct plugin_call call = {NULL, NULL};

    if (watching && getpid() == watched)
        call = blame((uintptr_t)address, frame);
    if (call.path != NULL)
        end(&call, what, NULL);
    leave(status);
}

/* Replaces the C library's function, for plug-ins too: a program's own symbols come first. */
__attribute__((visibility("default"), noreturn)) void _exit(int status)
{
    leave_from(__builtin_return_address(0), __builtin_frame_address(0), "called _exit", status);
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status)
{
    leave_from(__builtin_return_address(0), __builtin_frame_address(0), "called _Exit", status);
}

void plugin_crash_watch(void)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (atomic_exchange(&watching, true))
        return;
    watched = getpid();
    plugin_crash_thread();
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CRASH_COUNT; i++)
        sigaddset(&action.sa_mask, crashes[i].number);
    for (int i = 0; i < CRASH_COUNT; i++)
        sigaction(crashes[i].number, &action, NULL);
}

void plugin_crash_thread(void)
{
    static _Thread_local char stack[STACK_SIZE];
    stack_t known;

    if (!watching)
        return;
    ours = true;
    /* Each call of exit uses up one handler, and several threads may call it at the same time. */
    atexit(on_exit_call);
    (void)at_quick_exit(on_exit_call);
    /* Sanitizers set up their own. */
    if (sigaltstack(NULL, &known) == 0 && (known.ss_flags & SS_DISABLE) != 0)
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
}

void plugin_crash_remove(const char *path)
{
    leftover[0] = '\0';
    if (path != NULL && strlen(path) < sizeof leftover)
        memcpy(leftover, path, strlen(path) + 1);
}
