/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_listen.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "http/listener.h"

enum { FIRST_INHERITED = 3 };

static int add(struct node_listen *listen, const char *word, struct fly_error *out_error)
{
    if (listen->count == SERVER_ADDRESSES_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "more than %d addresses to listen at; set fewer in 'server.listen'",
                         SERVER_ADDRESSES_MAX);
    listen->words[listen->count++] = word;
    return 0;
}

/* Whether a socket that listens at `there` is the one for a configured address. */
static bool is_at(const struct listen_address *wanted, const struct listen_address *there)
{
    if (wanted->fd >= 0)
        return wanted->fd == there->fd;
    if (wanted->at.ss_family != there->at.ss_family)
        return false;
    if (wanted->at.ss_family == AF_UNIX)
        return strcmp(((const struct sockaddr_un *)&wanted->at)->sun_path,
                      ((const struct sockaddr_un *)&there->at)->sun_path) == 0;
    return wanted->length == there->length && memcmp(&wanted->at, &there->at, wanted->length) == 0;
}

/* Puts a socket in the place of the address that it serves, or behind all. */
static int place(struct node_listen *listen, const char *word, struct fly_error *out_error)
{
    struct listen_address there, wanted;
    int code = listen_address_parse(word, &there, out_error);

    if (code == 0)
        code = listener_look(&there, out_error);
    for (size_t i = 0; i < listen->count && code == 0; i++) {
        code = listen_address_parse(listen->words[i], &wanted, out_error);
        if (code == 0 && is_at(&wanted, &there)) {
            listen->words[i] = word;
            return 0;
        }
    }
    return code < 0 ? code : add(listen, word, out_error);
}

int node_listen_choose(const struct cli_list *configured, size_t inherited, struct node_listen *out_listen,
                       struct fly_error *out_error)
{
    int code = 0;

    out_listen->count = 0;
    for (size_t i = 0; i < configured->count && code == 0; i++)
        code = add(out_listen, configured->words[i], out_error);
    if (inherited > SERVER_ADDRESSES_MAX)
        return error_set(out_error, FLY_ELIMIT, "the daemon was started with %zu sockets; %d are the most",
                         inherited, SERVER_ADDRESSES_MAX);
    for (size_t i = 0; i < inherited && code == 0; i++) {
        snprintf(out_listen->inherited[i], LISTEN_WORD_MAX, "fd:%d", FIRST_INHERITED + (int)i);
        code = place(out_listen, out_listen->inherited[i], out_error);
    }
    return code;
}
