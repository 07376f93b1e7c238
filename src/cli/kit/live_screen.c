/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals come through a descriptor, so that the terminal is restored on the ordinary way out and no handler
 * has to do it.
 */
#include "cli/kit/live_screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <term.h>
#include <unistd.h>

#include "base/error.h"
#include "base/wait.h"

/*
 * Not in the screen's file, because term.h defines macros for words such as `lines`. newterm
 * could answer this too, but it keeps memory that it allocates before it knows the answer.
 */

/* Returns whether the terminal type in the variable TERM is known, so that the program can draw on it. */
static bool terminal_is_known(int fd)
{
    int error;

    if (setupterm(NULL, fd, &error) == ERR)
        return false;
    del_curterm(cur_term);
    return true;
}

enum { CELL_BYTES = 256 };

struct screen {
    const struct live_view *view;
    bool color;
    int signals; /* a descriptor for signals that end the screen or resize it */
};

enum answer { ANSWER_NONE, ANSWER_READ, ANSWER_END };

static void draw(const struct screen *screen)
{
    erase();
    screen->view->draw(screen->view->data, screen->color);
    refresh();
}

/* Takes the signals that have come. */
static enum answer take_signals(const struct screen *screen)
{
    struct signalfd_siginfo info;
    struct winsize size;

    while (read(screen->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGWINCH)
            return ANSWER_END;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
            resizeterm(size.ws_row, size.ws_col);
        draw(screen);
    }
    return ANSWER_NONE;
}

static enum answer take_keys(const struct screen *screen)
{
    const struct live_view *view = screen->view;
    enum answer answer = ANSWER_NONE;
    int key;

    while ((key = getch()) != ERR) {
        if (key == 'q' || key == 'Q')
            return ANSWER_END;
        if (view->take_key != NULL && view->take_key(view->data, key))
            answer = ANSWER_READ;
    }
    draw(screen);
    return answer;
}

/* Waits for the moment, a key or a signal. */
static enum answer wait_until(const struct screen *screen, struct mono_time when)
{
    struct pollfd sources[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = screen->signals, .events = POLLIN}};

    for (;;) {
        enum answer answer = ANSWER_NONE;
        int ready;

        if (mono_now().ns >= when.ns)
            return ANSWER_READ;
        ready = mono_poll(sources, sizeof sources / sizeof sources[0], when);
        if (ready < 0 && errno != EINTR)
            return ANSWER_END;
        if (ready > 0 && (sources[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
            return ANSWER_END;
        if (ready > 0 && sources[1].revents != 0)
            answer = take_signals(screen);
        if (answer == ANSWER_NONE && ready > 0 && sources[0].revents != 0)
            answer = take_keys(screen);
        if (answer != ANSWER_NONE)
            return answer;
    }
}

static void prepare_terminal(struct screen *screen)
{
    cbreak();
    noecho();
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    curs_set(0);
    screen->color = screen->view->color && has_colors();
    if (!screen->color)
        return;
    start_color();
    use_default_colors();
    init_pair(LIVE_LOW, COLOR_GREEN, -1);
    init_pair(LIVE_MIDDLE, COLOR_YELLOW, -1);
    init_pair(LIVE_HIGH, COLOR_RED, -1);
}

static int hold_signals(sigset_t *before)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t held;

    sigemptyset(&held);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&held, numbers[i]);
    sigprocmask(SIG_BLOCK, &held, before);
    return signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
}

int live_screen_show(const struct live_view *view, struct fly_error *out_error)
{
    struct screen screen = {.view = view};
    enum answer answer;
    sigset_t before;
    SCREEN *terminal;

    setlocale(LC_CTYPE, "");
    screen.signals = hold_signals(&before);
    terminal = screen.signals >= 0 && terminal_is_known(STDOUT_FILENO) ? newterm(NULL, stdout, stdin) : NULL;
    if (terminal == NULL) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (screen.signals >= 0)
            close(screen.signals);
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "this terminal cannot be drawn on; set TERM to its kind, or use --once or --format csv");
    }
    prepare_terminal(&screen);
    do {
        struct mono_time next = view->read(view->data);

        draw(&screen);
        answer = wait_until(&screen, next);
    } while (answer != ANSWER_END);
    endwin();
    delscreen(terminal);
    close(screen.signals);
    /* The pending signals were handled, so they are not delivered again. */
    sigprocmask(SIG_SETMASK, &before, NULL);
    return 0;
}

static const struct live_column *column_at(const struct live_column *first, size_t stride, size_t index)
{
    return (const struct live_column *)(const void *)((const char *)first + index * stride);
}

int live_columns_rank(const struct live_column *first, size_t count, size_t stride)
{
    int highest = 1;

    for (size_t i = 0; i < count; i++)
        if (column_at(first, stride, i)->rank > highest)
            highest = column_at(first, stride, i)->rank;
    for (; highest > 1; highest--) {
        int width = 0;

        for (size_t i = 0; i < count; i++) {
            const struct live_column *column = column_at(first, stride, i);

            width += column->rank <= highest ? abs(column->width) + 1 : 0;
        }
        if (width <= COLS)
            break;
    }
    return highest;
}

void live_column_put(const struct live_column *column, const char *text)
{
    char cell[CELL_BYTES];

    snprintf(cell, sizeof cell, "%*.*s ", column->width, abs(column->width),
             text != NULL ? text : column->title);
    addnstr(cell, COLS - getcurx(stdscr));
}

void live_heading_put(const char *text, const char *keys)
{
    int width = (int)strlen(keys) + 1;

    attrset(A_BOLD);
    mvaddnstr(0, 0, text, COLS);
    if ((int)strlen(text) + width < COLS)
        mvaddstr(0, COLS - width, keys);
    attrset(A_NORMAL);
}

void live_more_put(size_t hidden, const char *remedy)
{
    char text[CELL_BYTES];

    snprintf(text, sizeof text, "%zu more; %s", hidden, remedy);
    mvaddnstr(LINES - 1, 0, text, COLS);
}
