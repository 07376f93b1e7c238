/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the service over a store until a signal ends it. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/options/store_option.h"
#include "cli/program/child.h"
#include "cli/serve/serve_commands.h"
#include "compat/zeus/serve/serve_zeus.h"
#include "http/announce.h"
#include "http/process_metrics.h"
#include "http/server.h"
#include "http/traffic.h"
#include "serve/metrics.h"
#include "serve/service.h"

static const double tick_s = 0.1;
static const struct serve_routes *const own[] = {&serve_v1, NULL};
static const struct serve_routes *const with_zeus[] = {&serve_v1, &serve_zeus, NULL};
/* A front (http/front.h) has both ends of a connection. */
enum { LINES_MAX = 16384, DESCRIPTORS_OF_A_WORKER = 16, OTHER_DESCRIPTORS = 512, ENDS_OF_A_CONNECTION = 2 };

/* clang-format off */
static const struct cli_option options[] = {
    {.name = "listen", .type = CLI_LIST, .placeholder = "ADDRESS", .default_text = "127.0.0.1:7470",
     .key = "serve.listen", .sensitive = true,
     .help = "Addresses to listen at: 127.0.0.1:PORT, [::1]:PORT, unix:PATH; with http:// or https:// in front they mean "
             "the same; port 0 is one that is free."},
    {.name = "compat-zeus", .type = CLI_FLAG, .key = "serve.compat_zeus", .sensitive = true,
     .help = "Answer as the public batch-size server too, at the root, so that its clients work unchanged; with "
             "--tokens their server_url ends with /token/TOKEN."},
    {.name = "socket-group", .type = CLI_TEXT, .placeholder = "GROUP", .key = "serve.socket_group", .sensitive = true,
     .help = "Group whose members may connect to Unix sockets; if not given, the user alone."},
    {.name = "tokens", .type = CLI_TEXT, .placeholder = "FILE", .key = "serve.tokens", .sensitive = true,
     .help = "File of the tokens that callers need, made with 'flyball token'; without it the service listens "
             "on this machine only, and anybody on it may ask."},
    {.name = "operators", .type = CLI_TEXT, .placeholder = "LIST", .key = "serve.operators", .sensitive = true,
     .help = "Who may change and delete everybody's jobs, besides root and the user that runs the service: "
             "uid:NUMBER, gid:NUMBER or token:NAME, with commas."},
    {.name = "tls-certificate", .type = CLI_TEXT, .placeholder = "FILE", .key = "serve.tls_certificate", .sensitive = true,
     .help = "Certificate of the service, with those between it and its authority, in PEM; TLS on TCP then."},
    {.name = "tls-key", .type = CLI_TEXT, .placeholder = "FILE", .key = "serve.tls_key", .sensitive = true,
     .help = "Key of that certificate, in PEM."},
    {.name = "insecure-plain-http", .type = CLI_FLAG, .key = "serve.insecure_plain_http", .sensitive = true,
     .help = "Take tokens from other machines without TLS, because something in front of the service does it."},
    {.name = "body-max", .type = CLI_INTEGER, .placeholder = "BYTES", .minimum = 1024, .maximum = 1 << 30,
     .default_text = "8388608", .key = "serve.body_max", .help = "Longest body of a request."},
    {.name = "connections", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 100000,
     .default_text = "1024", .key = "serve.connections", .help = "Most connections at once, of each address."},
    {.name = "connections-per-host", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 100000,
     .default_text = "256", .key = "serve.connections_per_host",
     .help = "Most connections at once of one user of this machine, or from another machine (of IPv6: from a network "
             "of 64 bits), of each TCP address; never more than three quarters of --connections."},
    {.name = "workers", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = WORKERS_MAX,
     .default_text = "8", .key = "serve.workers",
     .help = "Requests that are worked on at once, each with a connection to the store of its own."},
    {.name = "request-timeout", .type = CLI_REAL, .placeholder = "SECONDS", .minimum = 0.1, .maximum = 3600,
     .default_text = "30", .key = "serve.request_timeout",
     .help = "Seconds in which a client has to send its request, in which a worker has to take it up, and in "
             "which the client has to take the answer."},
    {.name = "grace", .type = CLI_REAL, .placeholder = "SECONDS", .minimum = 0, .maximum = 3600,
     .default_text = "10", .key = "serve.grace",
     .help = "Seconds for what is under way when the service is told to stop."},
    {.name = "ready-file", .type = CLI_TEXT, .placeholder = "FILE",
     .help = "File that gets the lines that say where the service listens, once it answers."},
    {.name = "verbose", .letter = 'v', .type = CLI_FLAG, .key = "serve.verbose",
     .help = "Say a line about each request on standard error."},
};
/* clang-format on */

struct logger {
    const struct cli_call *call;
};

static void log_line(void *state, const char *line)
{
    const struct logger *logger = state;

    cli_note(logger->call, "%s", line);
}

static void warn_line(void *state, const char *line)
{
    const struct logger *logger = state;

    cli_warn(logger->call, "%s", line);
}

/* Announces the addresses on standard output, in a file, and to systemd. */
static int say_addresses(const struct cli_call *call, const struct server *server,
                         struct fly_error *out_error)
{
    const char *path = cli_text(call, "ready-file");
    struct buffer lines;
    int code;

    buffer_init(&lines, LINES_MAX);
    for (size_t i = 0; i < server_address_count(server); i++)
        buffer_printf(&lines, "listening on %s\n", server_address(server, i));
    code = lines.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, lines.data, out_error);
    if (code == 0 && path != NULL)
        code = announce_in_file(path, lines.data, out_error);
    buffer_deinit(&lines);
    if (code == 0)
        announce("READY=1");
    return code;
}

/* systemd wants to know when a reload begins, and waits for its end. */
static void reload(struct server *server)
{
    char state[64];

    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, mono_now().ns / 1000);
    announce(state);
    server_reload(server);
    announce("READY=1");
}

/* Serves until a signal comes, or until no client can reach the service any more (`reached`), then finishes
 * what is under way. Returns whether that was done in time. */
static bool serve_until_stopped(struct server *server, struct stop_signals *stop, double grace_s,
                                bool *reached)
{
    struct mono_time until;

    while (*reached && !stop_signals_wait(stop, mono_after_s(mono_now(), tick_s))) {
        if (stop_signals_take_reload(stop))
            reload(server);
        server_tick(server);
        *reached = server_is_reached(server);
    }
    /* From here on a second signal ends the process as usual. */
    stop_signals_release(stop);
    announce("STOPPING=1");
    server_quiesce(server);
    until = mono_after_s(mono_now(), grace_s);
    while (!server_is_idle(server) && mono_now().ns < until.ns) {
        clock_real.sleep_until(clock_real.state, mono_after_s(mono_now(), tick_s / 10.0));
        server_tick(server);
    }
    return server_is_idle(server);
}

/*
 * Threads that wait for the store end only with the process and may run to its very end, so
 * nothing is freed.
 */
_Noreturn static void leave_it(const struct cli_call *call)
{
    cli_warn(call,
             "requests were still under way %g s after the service was told to stop; nothing that was "
             "acknowledged is lost; --grace gives more time",
             cli_real(call, "grace"));
    fflush(NULL);
    _exit(fly_error_exit_status(FLY_EBUSY));
}

static struct service_options read_options(const struct cli_call *call, struct logger *logger,
                                           struct porter *porter)
{
    const struct cli_list *listen = cli_list(call, "listen");
    struct service_options made = {
        .server =
            {
                .listen = listen->words,
                .listen_count = listen->count,
                .tokens = cli_text(call, "tokens"),
                .certificate = cli_text(call, "tls-certificate"),
                .key = cli_text(call, "tls-key"),
                .insecure_plain_http = cli_flag(call, "insecure-plain-http"),
                .tokens_in_path = cli_flag(call, "compat-zeus"),
                .socket_group = cli_text(call, "socket-group"),
                .porter = porter,
                .connections = (unsigned)cli_integer(call, "connections"),
                .connections_per_ip = (unsigned)cli_integer(call, "connections-per-host"),
                .body_max = (size_t)cli_integer(call, "body-max"),
                .request_timeout_s = cli_real(call, "request-timeout"),
                .tell = warn_line,
                .tell_state = logger,
            },
        .store = cli_text(call, "store"),
        .families = cli_flag(call, "compat-zeus") ? with_zeus : own,
        .workers = (unsigned)cli_integer(call, "workers"),
        .operators = cli_text(call, "operators"),
    };

    if (cli_flag(call, "verbose")) {
        made.server.log = log_line;
        made.server.log_state = logger;
    }
    return made;
}

/*
 * Raises the limit to descriptors for all connections that may be open. Otherwise connections
 * could take the last ones; then the store and the file of tokens could not be opened, and nobody
 * would get an answer.
 */
static void allow_descriptors(const struct cli_call *call, const struct service_options *made)
{
    rlim_t wanted = (rlim_t)made->server.listen_count * made->server.connections * ENDS_OF_A_CONNECTION +
                    (rlim_t)(made->workers + 1) * DESCRIPTORS_OF_A_WORKER + OTHER_DESCRIPTORS;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
        cli_warn(
            call,
            "this process may open fewer descriptors than the %" PRIu64
            " that all connections and workers could take; raise that limit (ulimit -n, LimitNOFILE=), or "
            "give fewer --connections",
            (uint64_t)wanted);
}

static int serve_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct logger logger = {call};
    struct porter porter = PORTER_NONE;
    const struct service_options made = read_options(call, &logger, &porter);
    struct stop_signals stop;
    struct server *server;
    bool reached = true;
    int code;

    if (cli_flag(call, "compat-zeus") && !serve_zeus_is_built)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "this build has no routes of the public server; build with -Dzeus=true");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow becomes an error of the store */
    allow_descriptors(call, &made);
    code = porter_start(made.server.listen, made.server.listen_count, &porter, out_error);
    if (code < 0)
        return code;
    stop_signals_hold_for_service(&stop);
    code = service_open(&made, &server, out_error);
    if (code < 0) {
        stop_signals_release(&stop);
        porter_end(&porter);
        return code;
    }
    code = say_addresses(call, server, out_error);
    if (code < 0) {
        stop_signals_release(&stop);
        server_quiesce(server);
        server_close(server);
        return code;
    }
    if (!serve_until_stopped(server, &stop, cli_real(call, "grace"), &reached))
        leave_it(call);
    server_close(server);
    return reached ? 0
                   : error_set(out_error, FLY_EBUSY,
                               "the process that accepts connections has died; start the service again");
}

const struct cli_command cmd_serve = {
    .words = "serve",
    .summary = "serve a store of recurring jobs to trainings on other machines",
    .paragraphs =
        {"Listens and answers over HTTP until SIGTERM or Ctrl-C, then finishes what is under way. SIGHUP "
         "has it read its certificate and its file of tokens anew. It says where it listens, a line for each "
         "address, on standard output. Everything it knows "
         "is in the store: it can be killed and started at any time, and several may serve one "
         "PostgreSQL database."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&store_options},
    .exit_status =
        "69 when the address is taken, or when something was still under way at the end of --grace.",
    .examples =
        {{"flyball serve --listen 127.0.0.1:7470", "serve the user's own store to this machine"},
         {"flyball serve --listen unix:/run/flyball-serve/serve.sock --store /var/lib/flyball/store.sqlite",
          "serve a file to those who may open the socket"}},
    .outputs = {&metrics_quantities, &traffic_quantities, &process_quantities},
    .run = serve_run,
};
