/* SPDX-License-Identifier: Apache-2.0 */
/* flyballd: reads its command line and its configuration, and runs until a signal ends it. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <flyball/version.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/thread/thread_group.h"
#include "cli/program/child.h"
#include "http/announce.h"
#include "http/listener.h"
#include "node/node_arguments.h"
#include "node/node_back.h"
#include "node/node_client.h"
#include "node/node_log.h"
#include "node/node_reference.h"
#include "node/node_restore.h"

static const double tick_s = 0.1, probe_wait_s = 2;
/* A front has both ends of a connection. */
enum { STATE_BYTES = 64, OTHER_DESCRIPTORS = 512, ENDS_OF_A_CONNECTION = 2 };

struct running {
    const struct node_arguments *arguments;
    const struct config *first; /* whose texts all parts borrow */
    struct config *latest;      /* read at SIGHUP; owned; NULL: none */
    struct daemon daemon;
    struct server *server;
    struct node_listen listen;
    struct stop_signals stop;
    struct porter porter;
    struct mono_time next_sign;   /* of life, to systemd's watchdog */
    double sign_every_s;          /* 0: nobody waits for it */
    int probe;                    /* a connection of this daemon to itself; -1: none */
    struct mono_time probe_until; /* then it is given up */
};

static double grace_s(const struct running *running)
{
    return config_real(running->latest != NULL ? running->latest : running->first, KEY_GRACE);
}

static void apply_log(const struct config *config)
{
    log_as_json(config_choice(config, KEY_LOG_FORMAT) == 1);
    log_with_requests(config_flag(config, KEY_LOG_REQUESTS));
}

/* systemd says how often it wants a sign of life; half of that is on the safe side. */
static double watchdog_s(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t usec = 0, own = 0;

    if (text == NULL || !number_parse_u64(text, INT64_MAX, &usec) || usec == 0)
        return 0;
    if (pid != NULL && (!number_parse_u64(pid, INT32_MAX, &own) || own != (uint64_t)getpid()))
        return 0;
    return (double)usec * 0.5e-6;
}

static void end_probe(struct running *running)
{
    if (running->probe >= 0)
        close(running->probe);
    running->probe = -1;
}

static void show_life(struct running *running, struct mono_time now)
{
    end_probe(running);
    announce("WATCHDOG=1");
    running->next_sign = mono_after_s(now, running->sign_every_s);
}

/*
 * Life is shown when the daemon has answered itself, on the way that all clients take. No driver is on
 * that way, so a GPU that hangs does not keep it from showing that it lives.
 */
static void watch_life(struct running *running)
{
    static const char good[] = "HTTP/1.1 200";
    struct mono_time now = mono_now();
    char said[sizeof good - 1];

    if (running->sign_every_s <= 0 || now.ns < running->next_sign.ns)
        return;
    if (running->probe >= 0 &&
        recv(running->probe, said, sizeof said, MSG_PEEK | MSG_DONTWAIT) == sizeof said &&
        memcmp(said, good, sizeof said) == 0) {
        show_life(running, now);
        return;
    }
    if (running->probe >= 0 && now.ns < running->probe_until.ns)
        return;
    if (running->probe >= 0)
        log_say(SAY_WARNING, "the daemon does not answer itself over its own socket");
    end_probe(running);
    running->probe = server_probe(running->server);
    running->probe_until = mono_after_s(now, fmax(running->sign_every_s / 4, probe_wait_s));
    if (running->probe < 0)
        show_life(running, now);
}

static void say_restart(void *state, const char *key)
{
    (void)state;
    log_say(SAY_WARNING, "'%s' has changed; that takes a restart", key);
}

static void read_again(struct running *running)
{
    const struct config_source source = node_arguments_source(running->arguments);
    struct fly_error error;
    struct config *config;
    int code = config_load(&source, &config, &error);

    if (code == 0) {
        code = daemon_reload(&running->daemon, config, &error);
        if (code < 0)
            config_free(config);
    }
    if (code < 0) {
        log_say(SAY_ERROR, "the configuration stays as it was: %s", error.text);
        return;
    }
    config_compare(running->first, config, say_restart, NULL);
    apply_log(config);
    config_free(running->latest);
    running->latest = config;
    log_say(SAY_INFO, "the configuration was read again");
}

/* systemd wants to know when a reload begins, and waits for its end. */
static void reload(struct running *running)
{
    char state[STATE_BYTES];

    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, mono_now().ns / 1000);
    announce(state);
    read_again(running);
    server_reload(running->server);
    announce("READY=1");
}

static void say_ready(const struct running *running)
{
    for (size_t i = 0; i < server_address_count(running->server); i++)
        log_say(SAY_INFO, "listening on %s", server_address(running->server, i));
    announce("READY=1");
}

/* Returns false if no client can reach the daemon any more. */
static bool serve(struct running *running)
{
    while (!stop_signals_wait(&running->stop, mono_after_s(mono_now(), tick_s))) {
        if (stop_signals_take_reload(&running->stop))
            reload(running);
        server_tick(running->server);
        watch_life(running);
        if (!server_is_reached(running->server))
            return false;
    }
    return true;
}

/* First everything is put back, then answers under way are finished. Returns the exit status. */
static int finish(struct running *running)
{
    struct mono_time until = mono_after_s(mono_now(), grace_s(running));
    struct fly_error error;
    int status = 0;

    /* From here on a second signal ends the process as usual; then the guards put back. */
    stop_signals_release(&running->stop);
    announce("STOPPING=1");
    server_quiesce(running->server);
    if (daemon_end_leases(&running->daemon, grace_s(running), &error) < 0) {
        log_say(SAY_ERROR, "%s", error.text);
        status = fly_error_exit_status(FLY_EBUSY);
    }
    while (!server_is_idle(running->server) && mono_now().ns < until.ns) {
        clock_real.sleep_until(clock_real.state, mono_after_s(mono_now(), tick_s / 10));
        server_tick(running->server);
    }
    if (!server_is_idle(running->server) || status != 0) {
        log_say(SAY_WARNING, "the daemon ends with work under way; its guards put back what is left");
        _exit(fly_error_exit_status(FLY_EBUSY));
    }
    server_close(running->server);
    daemon_close(&running->daemon, grace_s(running));
    log_say(SAY_INFO, "everything is put back");
    return status;
}

/* Connections must not take the descriptors that the driver and the journal need. */
static void allow_descriptors(const struct config *config)
{
    rlim_t wanted = (rlim_t)config_integer(config, KEY_CONNECTIONS) *
                        (config_list(config, KEY_LISTEN)->count * ENDS_OF_A_CONNECTION) +
                    OTHER_DESCRIPTORS;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
        log_say(SAY_WARNING,
                "the daemon may open fewer descriptors than 'server.connections' could take; raise "
                "LimitNOFILE=, or set fewer connections");
}

static int run(const struct node_arguments *arguments, const struct config *config,
               struct fly_error *out_error)
{
    static struct running running;
    bool reached;
    int code;

    running = (struct running){.arguments = arguments,
                               .first = config,
                               .porter = PORTER_NONE,
                               .sign_every_s = watchdog_s(),
                               .probe = -1};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    allow_descriptors(config);
    code =
        node_listen_choose(config_list(config, KEY_LISTEN), listener_inherited(), &running.listen, out_error);
    if (code == 0)
        code = porter_start(running.listen.words, running.listen.count, &running.porter, out_error);
    stop_signals_hold_for_service(&running.stop);
    if (code == 0)
        code = daemon_open(config, &running.daemon, out_error);
    if (code < 0)
        return code;
    code = node_back_open(&running.daemon, &running.listen, &running.porter, &running.server, out_error);
    if (code < 0) {
        daemon_close(&running.daemon, grace_s(&running));
        return code;
    }
    say_ready(&running);
    reached = serve(&running);
    if (!reached)
        log_say(SAY_ERROR,
                "the process that accepts connections has died; the daemon ends, to be started again");
    code = finish(&running);
    if (code == 0 && !reached)
        code = fly_error_exit_status(FLY_EBUSY);
    config_free(running.latest);
    return code;
}

static int print(void (*write_text)(struct buffer *out))
{
    struct buffer text;
    int status = 0;

    buffer_init(&text, NODE_REFERENCE_MAX);
    write_text(&text);
    if (fputs(text.data, stdout) < 0 || fflush(stdout) != 0)
        status = fly_error_exit_status(FLY_EWRITE);
    buffer_deinit(&text);
    return status;
}

static void put_version(struct buffer *out)
{
    buffer_printf(out, "flyballd %s\n", fly_version());
}

static int run_with_config(const struct node_arguments *arguments, struct fly_error *out_error)
{
    const struct config_source source = node_arguments_source(arguments);
    struct config *config;
    int code = config_load(&source, &config, out_error);

    if (code < 0)
        return code;
    apply_log(config);
    if (arguments->mode == MODE_CHECK)
        log_say(SAY_INFO, "the configuration '%s' is good", source.path);
    else if (arguments->mode == MODE_RESTORE)
        code = node_restore(config, out_error);
    else if (arguments->mode == MODE_RELEASE)
        code = node_client_ask(config, "/v1/release", out_error);
    else if (arguments->mode == MODE_RESUME)
        code = node_client_ask(config, "/v1/resume", out_error);
    else
        code = run(arguments, config, out_error);
    /* A thread that hangs in a driver may still read it. */
    if (!left_threads_any())
        config_free(config);
    return code;
}

int main(int argc, char **argv)
{
    static void (*const texts[MODE_COUNT])(struct buffer * out) = {
        [MODE_VERSION] = put_version,
        [MODE_HELP] = node_reference_help,
        [MODE_MANUAL] = node_reference_manual,
        [MODE_QUANTITIES] = node_reference_quantities,
    };
    struct node_arguments arguments;
    struct fly_error error = {.text = ""};
    int code = node_arguments_read((const char *const *)argv + (argc > 0), argc > 0 ? (size_t)argc - 1 : 0,
                                   &arguments, &error);

    if (code == 0 && texts[arguments.mode] != NULL)
        return print(texts[arguments.mode]);
    if (code == 0)
        code = run_with_config(&arguments, &error);
    if (code < 0) {
        log_say(SAY_ERROR, "%s", error.text);
        code = fly_error_exit_status(code);
    }
    if (left_threads_any())
        _exit(code);
    return code;
}
