/* SPDX-License-Identifier: Apache-2.0 */
/* The edge of the program: passes the outside world to cli_main. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread/thread_group.h"
#include "cli/commands.h"
#include "cli/frame/cli.h"
#include "cli/program/child.h"
#include "cli/sim/plugin_crash.h"
#include "policy/plugin.h"

#ifndef FLYBALL_SYSCONFDIR
#define FLYBALL_SYSCONFDIR "/etc/flyball"
#endif

/* Returns the path of the user's configuration file, owned; NULL without a home. */
static char *user_file(void)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;

    /* The XDG specification says to ignore relative paths. */
    if (base != NULL && base[0] == '/')
        return asprintf(&path, "%s/flyball/flyball.ini", base) < 0 ? NULL : path;
    if (home != NULL && home[0] == '/')
        return asprintf(&path, "%s/.config/flyball/flyball.ini", home) < 0 ? NULL : path;
    return NULL;
}

int main(int argc, char **argv)
{
    char *user = user_file();
    const char *no_color = getenv("NO_COLOR");
    int status;

    inherited_take();
    plugin_before_open = plugin_crash_watch;
    status = cli_main(&(struct cli_world){
        .program = &flyball_program,
        .arguments = (const char *const *)argv + (argc > 0),
        .argument_count = argc > 0 ? (size_t)argc - 1 : 0,
        .environment = (const char *const *)environ,
        .paths = {.system = FLYBALL_SYSCONFDIR "/flyball.ini", .user = user, .local = "./flyball.ini"},
        .console = {.out = stdout,
                    .err = stderr,
                    .out_terminal = isatty(STDOUT_FILENO) == 1,
                    .err_terminal = isatty(STDERR_FILENO) == 1,
                    .no_color = no_color != NULL && no_color[0] != '\0'},
    });
    free(user);
    if (left_threads_any()) {
        fflush(NULL);
        _exit(status);
    }
    return status;
}
