/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "http/server_private.h"

/*
 * TLS 1.2 and 1.3, without key exchanges that lack forward secrecy: with those, somebody who gets
 * the certificate's key later can read traffic recorded today. Not const, since libmicrohttpd
 * takes a char *.
 */
static char priorities[] =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:+DHE-RSA";

/* MHD_OPTION_CLIENT_DISCIPLINE_LVL, which headers before 1.0 lack. 1 is exactly what RFC 9112 demands. */
enum { OPTION_DISCIPLINE = 38, DISCIPLINE = 1 };

/*
 * A connection's memory holds its request's head, with room to refuse a somewhat longer one with
 * an answer.
 */
enum { CONNECTION_BYTES = 65536 };

/*
 * Connections that the library still counts when their fronts have ended them, with this server's own, and
 * such as were just shut down.
 */
enum { COUNTS_LATE = 64, SHUT_AT_ONCE = 64 };

/*
 * For how long a server that was quiesced waits for the rest of a body. A client that stops within one,
 * or whose forked child keeps the connection, must not delay the end; nothing was acknowledged to it.
 */
static const double body_patience_s = 1;

static void ignore_line(void *data, const char *format, va_list arguments)
{
    (void)data;
    (void)format;
    (void)arguments;
}

/* Keeps paths and parameters encoded; their readers decode them. */
static size_t leave_escaped(void *data, struct MHD_Connection *connection, char *text)
{
    (void)data;
    (void)connection;
    return strlen(text);
}

/*
 * Called in each handshake. The library stores the connection with the session, and our row with
 * the connection.
 */
static int show_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *asked,
                            gnutls_pcert_st **chain, unsigned *count, gnutls_ocsp_data_st **ocsp,
                            unsigned *ocsp_count, gnutls_privkey_t *key, unsigned *flags)
{
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    const union MHD_ConnectionInfo *info =
        connection != NULL ? MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT) : NULL;
    const struct connection *row = info != NULL ? info->socket_context : NULL;

    (void)asked;
    if (row == NULL ||
        !certificate_shelf_take(&((struct server *)row->owner)->certificate, chain, count, key))
        return -1;
    *ocsp = NULL;
    *ocsp_count = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return 0;
}

/* Gets a connection that the server has accepted itself; the library owns it, also if it refuses. */
static bool take_connection(void *owner, int fd)
{
    static const struct sockaddr_un nameless = {.sun_family = AF_UNIX};
    struct door *door = owner;

    return MHD_add_connection(door->daemon, fd, (const struct sockaddr *)&nameless,
                              sizeof nameless.sun_family) == MHD_YES;
}

static bool accepts_itself(const struct door *door)
{
    return door->server->peers != NULL && door->listener.bound.at.ss_family == AF_UNIX;
}

static int start_daemon(struct door *door, struct fly_error *out_error)
{
    const struct server_options *options = &door->server->options;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem strict[] = {{(enum MHD_OPTION)OPTION_DISCIPLINE, DISCIPLINE, NULL},
                                            {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem socket[] = {{MHD_OPTION_LISTEN_SOCKET, door->listener.fd, NULL},
                                            {MHD_OPTION_END, 0, NULL}};
    bool own = accepts_itself(door);
    unsigned flags =
        MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    if (door->tls)
        flags |= MHD_USE_TLS;
    if (own)
        flags |= MHD_USE_NO_LISTEN_SOCKET;
    door->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, server_on_request, door, MHD_OPTION_EXTERNAL_LOGGER, ignore_line, NULL,
        MHD_OPTION_ARRAY, own ? none : socket, MHD_OPTION_URI_LOG_CALLBACK, server_on_target, door,
        MHD_OPTION_NOTIFY_COMPLETED, server_on_completed, door, MHD_OPTION_NOTIFY_CONNECTION,
        server_on_connection, door, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        options->connections + (own            ? options->root_connections + COUNTS_LATE
                                : door->shared ? SHUT_AT_ONCE
                                               : 0),
        MHD_OPTION_ARRAY, door->tls ? tls : none, MHD_OPTION_HTTPS_CERT_CALLBACK2,
        door->tls ? show_certificate : NULL, MHD_OPTION_ARRAY, gate_sees_heads() ? none : strict,
        MHD_OPTION_END);
    if (door->daemon == NULL)
        return error_set(out_error, FLY_EUNSUPPORTED, "cannot serve at '%s': %s", door->url, strerror(errno));
    if (own)
        return peers_add(door->server->peers, &door->listener.fd, door->listener.inherited, door, out_error);
    door->listener.fd = -1; /* the daemon owns it now */
    return 0;
}

static int refuse_without_tokens(const struct server_options *options, const char *text,
                                 struct fly_error *out_error)
{
    const struct server_token_words *words = &options->back->tokens;
    char path_way[FLY_ERROR_TEXT_MAX] = "";

    if (options->tokens_in_path)
        snprintf(path_way, sizeof path_way,
                 " and TLS; %s then get https://HOST:PORT" SERVE_TOKEN_PATH "TOKEN as their %s",
                 words->path_clients, words->path_setting);
    return error_set(
        out_error, FLY_EUSAGE,
        "'%.100s' can be reached from other machines, so that it takes tokens: make one with "
        "'%s NAME --tokens FILE' and start with --tokens FILE%s, or listen on 127.0.0.1, [::1] or unix:PATH",
        text, words->command, path_way);
}

/* Refuses an address at which the options would let strangers in, or send tokens in the clear. */
static int check_address(const struct server_options *options, const struct listen_address *address,
                         const char *text, struct fly_error *out_error)
{
    if (address->here)
        return 0;
    if (options->tokens == NULL && options->back->admit == NULL)
        return refuse_without_tokens(options, text, out_error);
    if (options->certificate == NULL && !options->insecure_plain_http)
        return error_set(
            out_error, FLY_EUSAGE,
            "at '%.100s' tokens would cross the network in the clear: give --tls-certificate and "
            "--tls-key, or --insecure-plain-http where something in front of it does TLS",
            text);
    return 0;
}

static int open_door(struct server *server, const char *text, struct fly_error *out_error)
{
    struct door *door = &server->doors[server->door_count];
    const struct listener_access access = {server->options.socket_owner, server->options.socket_group,
                                           server->options.socket_mode,
                                           server->options.porter != NULL && !server->options.proofs};
    struct listen_address address;
    char shown[LISTEN_TEXT_MAX];
    bool local;
    int code = listen_address_parse(text, &address, out_error);

    if (code == 0)
        code = listener_look(&address, out_error);
    if (code == 0)
        code = check_address(&server->options, &address, text, out_error);
    if (code == 0 && address.tls != NULL &&
        strcmp(address.tls, server->options.certificate != NULL ? "https://" : "http://") != 0)
        code = error_set(out_error, FLY_EUSAGE,
                         "cannot listen at '%.100s': with --tls-certificate all such addresses are https://, "
                         "without it http://",
                         text);
    if (code == 0)
        code = listener_open(&address, &access, &door->listener, out_error);
    if (code < 0)
        return code;
    door->server = server;
    server->door_count++;
    local = address.at.ss_family == AF_UNIX;
    door->tls = !local && server->options.certificate != NULL;
    door->shared = !local;
    door_shares_init(&door->shares, server->options.connections, server->options.connections_per_ip);
    snprintf(door->url, sizeof door->url, "%s%s",
             local       ? ""
             : door->tls ? "https://"
                         : "http://",
             listen_address_show(&door->listener.bound, shown));
    return 0;
}

static int open_doors(struct server *server, struct fly_error *out_error)
{
    const struct server_options *options = &server->options;
    int code = 0;

    if (options->listen_count == 0 || options->listen_count > SERVER_ADDRESSES_MAX)
        return error_set(out_error, FLY_EUSAGE, "give 1 to %d addresses to listen at, not %zu",
                         SERVER_ADDRESSES_MAX, options->listen_count);
    for (size_t i = 0; i < options->listen_count && code == 0; i++)
        code = open_door(server, options->listen[i], out_error);
    return code;
}

static int open_peers(struct server *server, struct fly_error *out_error)
{
    const struct server_options *options = &server->options;
    const struct peers_options wanted = {
        .porter = options->porter,
        .rules = {options->device_major != 0 ? options->device_major : SERVER_DEVICE_MAJOR,
                  options->device_directory != NULL ? options->device_directory : "/dev"},
        .connections = options->connections,
        .connections_per_user = options->connections_per_user,
        .root_connections = options->root_connections,
        .first_byte_s = options->request_timeout_s,
        .take = take_connection,
        .tell = options->tell,
        .tell_state = options->tell_state};

    if (options->porter == NULL || options->porter->pid == 0)
        return 0;
    return peers_open(&wanted, &server->peers, out_error);
}

static void close_doors(struct server *server)
{
    for (size_t i = 0; i < server->door_count; i++) {
        if (server->doors[i].daemon != NULL)
            MHD_stop_daemon(server->doors[i].daemon);
        server->doors[i].daemon = NULL;
        door_shares_deinit(&server->doors[i].shares);
        listener_close(&server->doors[i].listener);
    }
}

static void server_free(struct server *server)
{
    close_doors(server);
    peers_close(server->peers);
    streams_deinit(&server->streams);
    connections_deinit(&server->connections);
    if (server->with_certificate)
        certificate_shelf_close(&server->certificate);
    server->options.back->end(server->options.back_self);
    traffic_deinit(&server->traffic);
    troubles_deinit(&server->troubles);
    if (server->with_tokens)
        token_file_close(&server->tokens);
    if (server->with_signing_key)
        signing_key_close(&server->signing_key);
    free(server);
}

static int open_gate(struct server *server, struct fly_error *out_error)
{
    const struct server_options *options = &server->options;
    int code = 0;

    if ((options->certificate != NULL) != (options->key != NULL))
        return error_set(out_error, FLY_EUSAGE, "TLS takes both --tls-certificate and --tls-key");
    if (options->tokens != NULL) {
        code = token_file_open(&server->tokens, options->tokens, out_error);
        server->with_tokens = code == 0;
    }
    if (code == 0 && options->signing_key != NULL) {
        code = signing_key_open(&server->signing_key, options->signing_key, out_error);
        server->with_signing_key = code == 0;
    }
    if (code == 0 && options->certificate != NULL) {
        code = certificate_shelf_open(&server->certificate, options->certificate, options->key, out_error);
        server->with_certificate = code == 0;
    }
    if (code == 0)
        code = open_doors(server, out_error);
    return code == 0 ? open_peers(server, out_error) : code;
}

static int look_at_tokens(void *self, struct fly_error *out_error)
{
    struct server *server = self;

    return server->with_tokens ? token_file_check(&server->tokens, false, out_error) : READINESS_ABSENT;
}

static void add_tokens(struct server *server)
{
    static const struct readiness_reason reasons[] = {
        {FLY_ENOTFOUND, "the file of tokens is not there"},
        {FLY_EPERM, "the file of tokens may not be read, or others may write it"},
        {0, "the file of tokens cannot be read, or a line of it is no token"},
    };
    const struct readiness_part part = {.name = "tokens",
                                        .reasons = reasons,
                                        .trouble = &server->token_trouble,
                                        .look = look_at_tokens,
                                        .self = server};

    readiness_add(&server->readiness, &part);
}

/* Work that may block runs in threads of its own. */
static int start_threads(struct server *server, struct fly_error *out_error)
{
    const struct server_back *back = server->options.back;
    int code;

    readiness_init(&server->readiness, &server->troubles);
    add_tokens(server);
    code = back->start(server->options.back_self, &server->readiness, &server->troubles, out_error);
    if (code == 0) {
        code = readiness_start(&server->readiness, out_error);
        if (code < 0)
            back->stop(server->options.back_self);
    }
    if (code < 0)
        readiness_deinit(&server->readiness);
    return code;
}

static void server_init(struct server *server, const struct server_options *options)
{
    server->options = *options;
    server->token_trouble = (struct trouble){.name = "tokens",
                                             .meaning = "nobody gets in until that is mended",
                                             .over = "their file can be read again"};
    server->certificate_trouble =
        (struct trouble){.name = "certificate",
                         .meaning = "clients refuse it; put another in its place, and send SIGHUP",
                         .over = "one that holds is in use"};
    connections_init(&server->connections);
    streams_init(&server->streams, &server->connections, options->request_timeout_s);
    traffic_init(&server->traffic);
    troubles_init(&server->troubles, options->tell, options->tell_state);
}

int server_open(const struct server_options *options, struct server **out_server, struct fly_error *out_error)
{
    struct server *server = calloc(1, sizeof *server);
    int code;

    if (server == NULL) {
        options->back->end(options->back_self);
        return error_no_memory(out_error);
    }
    server_init(server, options);
    code = open_gate(server, out_error);
    if (code == 0)
        code = start_threads(server, out_error);
    if (code < 0) {
        server_free(server);
        return code;
    }
    for (size_t i = 0; i < server->door_count && code == 0; i++)
        code = start_daemon(&server->doors[i], out_error);
    if (code == 0 && server->peers != NULL)
        code = peers_start(server->peers, out_error);
    if (code < 0) {
        server_quiesce(server);
        server_close(server);
        return code;
    }
    *out_server = server;
    return 0;
}

size_t server_address_count(const struct server *server)
{
    return server->door_count;
}

const char *server_address(const struct server *server, size_t index)
{
    return server->doors[index].url;
}

static void check_certificate(struct server *server)
{
    struct fly_error why = {.code = 0};

    if (!server->with_certificate)
        return;
    why.code = certificate_shelf_check(&server->certificate, time(NULL), &why);
    troubles_set(&server->troubles, &server->certificate_trouble, &why);
}

int server_probe(struct server *server)
{
    return server->peers != NULL ? peers_probe(server->peers) : -1;
}

bool server_is_reached(struct server *server)
{
    return server->peers == NULL || peers_come(server->peers);
}

void server_tick(struct server *server)
{
    struct mono_time now = mono_now();

    check_certificate(server);
    server->options.back->tick(server->options.back_self, now);
    readiness_tick(&server->readiness, now);
    streams_tick(&server->streams, now);
    connections_reap(&server->connections, now);
}

static void renew_signing_key(struct server *server)
{
    char line[FLY_ERROR_TEXT_MAX + 64];
    struct fly_error why = {.code = 0};

    if (signing_key_renew(&server->signing_key, &why) < 0)
        snprintf(line, sizeof line, "reload: %s; the old key stays", why.text);
    else
        snprintf(line, sizeof line, "reload: tokens are held against the signing key as it is now");
    troubles_tell(&server->troubles, line);
}

/* Reads all, even if one of them fails. */
void server_reload(struct server *server)
{
    char line[FLY_ERROR_TEXT_MAX + 64];
    struct fly_error why = {.code = 0};

    if (server->with_certificate) {
        if (certificate_shelf_renew(&server->certificate, &why) < 0)
            snprintf(line, sizeof line, "reload: %s; the old certificate stays", why.text);
        else
            snprintf(line, sizeof line, "reload: new connections get the certificate as it is now");
        troubles_tell(&server->troubles, line);
    }
    if (server->with_tokens) {
        if (token_file_check(&server->tokens, true, NULL) == 0)
            troubles_tell(&server->troubles, "reload: the file of tokens was read");
        /*
         * Only the check reports what is wrong with the file: of two threads with different results, the
         * later one is right.
         */
        readiness_doubt(&server->readiness);
    }
    if (server->with_signing_key)
        renew_signing_key(server);
    if (!server->with_certificate && !server->with_tokens && !server->with_signing_key)
        troubles_tell(&server->troubles,
                      "reload: there is neither a certificate nor a file of tokens to read");
}

void server_quiesce(struct server *server)
{
    atomic_store(&server->stopping, true);
    server->patient_until = mono_after_s(mono_now(), body_patience_s);
    if (server->peers != NULL)
        peers_stop(server->peers);
    for (size_t i = 0; i < server->door_count; i++) {
        struct door *door = &server->doors[i];

        /*
         * The daemon's thread polls the socket until it ends. If the socket cannot be taken back, closing
         * the daemon closes it.
         */
        if (door->daemon != NULL && door->listener.fd < 0 && !accepts_itself(door))
            door->listener.fd = MHD_quiesce_daemon(door->daemon);
        listener_refuse(&door->listener);
    }
    streams_stop(&server->streams);
}

bool server_is_idle(struct server *server)
{
    unsigned under_way = atomic_load(&server->under_way);

    return under_way == 0 ||
           (under_way == atomic_load(&server->reading) && mono_now().ns >= server->patient_until.ns);
}

void server_close(struct server *server)
{
    server->options.back->stop(server->options.back_self);
    readiness_stop(&server->readiness);
    /* Nobody submits requests from here on. */
    close_doors(server);
    readiness_deinit(&server->readiness);
    server_free(server);
}
