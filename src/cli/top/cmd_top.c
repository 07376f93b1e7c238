/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/clock.h"
#include "cli/program/child.h"
#include "cli/top/top.h"
#include "cli/top/top_commands.h"

static const struct cli_option options[] = {
    {.name = "by",
     .type = CLI_CHOICE,
     .placeholder = "KEY",
     .choices = top_bys,
     .default_text = "process",
     .help =
         "What a row stands for: a process, or all that are of one recurring job, pod, user or Slurm job."},
    {.name = "sort",
     .type = CLI_CHOICE,
     .placeholder = "KEY",
     .choices = top_sorts,
     .default_text = "power",
     .help = "By what rows are sorted, the most first."},
    {.name = "all",
     .type = CLI_FLAG,
     .help = "Show also what has ended and is still on the daemon's record."},
    {.name = "interval",
     .type = CLI_REAL,
     .placeholder = "SECONDS",
     .minimum = 0.1,
     .maximum = 86400,
     .default_text = "2",
     .key = "top.interval_s",
     .help = "Time from one question to the next."},
    {.name = "once", .type = CLI_FLAG, .help = "Print what the daemon says now, and end."},
    {.name = "count",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1e15,
     .help = "Off a terminal, end after so many answers; if not given, go on."},
    {.name = "daemon",
     .type = CLI_TEXT,
     .placeholder = "ADDRESS",
     .default_text = "unix:/run/flyballd/flyballd.sock",
     .key = "top.daemon",
     .sensitive = true,
     .help = "Address of flyballd: unix:PATH, http://HOST:PORT or https://HOST:PORT."},
};

static int print_once(struct top *top, struct fly_error *out_error)
{
    int code = top_read(top, out_error);

    return code == 0 ? top_put_table(top, out_error) : code;
}

static int print_lines(struct top *top, struct fly_error *out_error)
{
    bool endless = !cli_set(top->call, "count");
    int64_t count = endless ? 0 : cli_integer(top->call, "count");
    struct mono_time due = mono_now();
    struct stop_signals stop;
    int code = 0;

    stop_signals_hold(&stop);
    for (int64_t i = 0; code == 0 && (endless || i < count); i++) {
        if (i > 0 && stop_signals_wait(&stop, due))
            break;
        due = mono_after_s(mono_now(), top->interval_s);
        code = top_read(top, out_error);
        if (code == 0)
            code = top_put_lines(top, i == 0, out_error);
    }
    stop_signals_release(&stop);
    return code;
}

/* The first question is asked before the screen, so that a daemon that is not there is an ordinary error. */
static int show(struct top *top, struct fly_error *out_error)
{
    int code = top_read(top, out_error);

    return code == 0 ? top_screen(top, out_error) : code;
}

static int top_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct top top = {.call = call,
                      .daemon = cli_text(call, "daemon"),
                      .interval_s = cli_real(call, "interval"),
                      .wish = {.by = (enum top_by)cli_choice(call, "by"),
                               .sort = (enum top_sort)cli_choice(call, "sort"),
                               .ended = cli_flag(call, "all")}};
    bool screen =
        cli_out_is_terminal(call) && isatty(STDIN_FILENO) == 1 && cli_format(call) == TABLE_FORMAT_TABLE;
    int code;

    arena_init(&top.arena, TOP_ANSWER_BYTES);
    if (cli_flag(call, "once"))
        code = print_once(&top, out_error);
    else
        code = screen ? show(&top, out_error) : print_lines(&top, out_error);
    top_end(&top);
    return code;
}

const struct cli_command cmd_top = {
    .words = "top",
    .summary = "watch who uses which GPU, and how much of its energy",
    .paragraphs =
        {"Asks the daemon of this machine, flyballd, which processes are on which GPU and what each has of "
         "its power and energy. On a terminal, a screen: b goes on to the next of process, job, pod, user "
         "and "
         "slurm, s sorts by power or energy, a shows what has ended too, q quits.",
         "Elsewhere, or with --format csv or json, a line for every row at every interval; JSON is one "
         "object "
         "a line, with null and a reason for what is not known. --once prints one table or document.",
         "Rows besides processes: idle is what a GPU drew while nobody was there, shared what processes drew "
         "that cannot be told apart, as over MPS, and unobserved what was drawn while the daemon did not see "
         "who "
         "was there. With --all, the energies of all rows together are what the meters counted."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball top", "watch the processes on all GPUs"},
                 {"flyball top --once --by user --sort energy", "print who has used most"},
                 {"flyball top --once --all --format json", "print all rows on record for a program"}},
    .outputs = {&top_quantities},
    .run = top_run,
};
