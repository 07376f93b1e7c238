/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tcp_user.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"

enum { ANSWER_BYTES = 4096, LINE_BYTES = 512, ENDPOINT_TEXT = 48 };

/* What is said about a socket. */
struct found {
    uid_t uid;
    uint64_t inode; /* 0: no process has it any more, and the user is not known */
};

/* The bytes of an address, and how many there are. */
static const void *bytes_of(const struct sockaddr_storage *address, size_t *out_length)
{
    if (address->ss_family == AF_INET) {
        *out_length = sizeof(struct in_addr);
        return &((const struct sockaddr_in *)address)->sin_addr;
    }
    *out_length = sizeof(struct in6_addr);
    return &((const struct sockaddr_in6 *)address)->sin6_addr;
}

static in_port_t port_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_port
                                         : ((const struct sockaddr_in6 *)address)->sin6_port;
}

void tcp_user_unmap(struct sockaddr_storage *address)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four = {.sin_family = AF_INET};

    memcpy(&six, address, sizeof six);
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
        return;
    four.sin_port = six.sin6_port;
    memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
    memcpy(address, &four, sizeof four);
}

/* ---- netlink ---- */

struct question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 asked;
};

static struct question question_about(const struct sockaddr_storage *peer, const struct sockaddr_storage *own)
{
    struct question question = {.header = {.nlmsg_len = sizeof question,
                                           .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                           .nlmsg_flags = NLM_F_REQUEST},
                                .asked = {.sdiag_family = (uint8_t)peer->ss_family,
                                          .sdiag_protocol = IPPROTO_TCP,
                                          .idiag_states = UINT32_MAX,
                                          .id = {.idiag_sport = port_of(peer),
                                                 .idiag_dport = port_of(own),
                                                 .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    size_t length;
    const void *bytes = bytes_of(peer, &length);

    memcpy(question.asked.id.idiag_src, bytes, length);
    bytes = bytes_of(own, &length);
    memcpy(question.asked.id.idiag_dst, bytes, length);
    if (peer->ss_family == AF_INET6)
        question.asked.id.idiag_if = ((const struct sockaddr_in6 *)peer)->sin6_scope_id;
    return question;
}

/* Where no connection is found, the kernel tells of a socket that listens at the peer's port: that is none.
 */
static bool is_about(const struct inet_diag_msg *told, const struct question *question)
{
    return told->idiag_state != TCP_LISTEN && told->id.idiag_sport == question->asked.id.idiag_sport &&
           told->id.idiag_dport == question->asked.id.idiag_dport;
}

/* Returns whether the kernel answered; `out_found` has an inode of 0 if there is no such socket. */
static bool ask_kernel(const struct sockaddr_storage *peer, const struct sockaddr_storage *own,
                       struct found *out_found)
{
    struct question question = question_about(peer, own);
    _Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
    const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    ssize_t length = -1;

    if (netlink >= 0 && send(netlink, &question, sizeof question, 0) == (ssize_t)sizeof question)
        length = recv(netlink, answer, sizeof answer, 0); /* it is there as soon as it was asked for */
    if (netlink >= 0)
        close(netlink);
    if (length < (ssize_t)NLMSG_HDRLEN || !NLMSG_OK(header, (size_t)length))
        return false;
    *out_found = (struct found){.uid = (uid_t)-1};
    if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
        header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg))) {
        const struct inet_diag_msg *told = (const struct inet_diag_msg *)(answer + NLMSG_HDRLEN);

        if (is_about(told, &question))
            *out_found = (struct found){.uid = told->idiag_uid, .inode = told->idiag_inode};
        return true;
    }
    return header->nlmsg_type == NLMSG_ERROR && header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
           ((const struct nlmsgerr *)(answer + NLMSG_HDRLEN))->error == -ENOENT;
}

/* ---- /proc ---- */

/* Writes an address as the kernel's lists do: words of the machine's byte order, then the port. */
static void write_endpoint(const struct sockaddr_storage *address, char text[ENDPOINT_TEXT])
{
    size_t length, at = 0;
    const char *bytes = bytes_of(address, &length);

    for (size_t i = 0; i < length; i += sizeof(uint32_t)) {
        uint32_t word;

        memcpy(&word, bytes + i, sizeof word);
        at += (size_t)snprintf(text + at, ENDPOINT_TEXT - at, "%08X", word);
    }
    snprintf(text + at, ENDPOINT_TEXT - at, ":%04X", ntohs(port_of(address)));
}

/* An IPv4 connection of an IPv6 socket stands in the other list, with addresses that are mapped. */
static void map(struct sockaddr_storage *address)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};

    memcpy(&four, address, sizeof four);
    six.sin6_port = four.sin_port;
    six.sin6_addr.s6_addr[10] = six.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&six.sin6_addr.s6_addr[12], &four.sin_addr, sizeof four.sin_addr);
    memcpy(address, &six, sizeof six);
}

/* Reads a line of the lists, which it cuts; false for the line of titles, and for other connections. */
static bool read_line(char *line, const char *from, const char *to, struct found *out_found)
{
    enum { FROM = 1, TO = 2, UID = 7, INODE = 9, FIELDS };
    const char *fields[FIELDS];
    char *rest = line;
    uint64_t uid, inode;

    for (int i = 0; i < FIELDS; i++) {
        fields[i] = strtok_r(rest, " \n", &rest);
        if (fields[i] == NULL)
            return false;
    }
    if (strcmp(fields[FROM], from) != 0 || strcmp(fields[TO], to) != 0 ||
        !number_parse_u64(fields[UID], UINT32_MAX, &uid) ||
        !number_parse_u64(fields[INODE], INT64_MAX, &inode))
        return false;
    *out_found = (struct found){.uid = (uid_t)uid, .inode = inode};
    return true;
}

static bool search(const struct sockaddr_storage *peer, const struct sockaddr_storage *own,
                   struct found *out_found)
{
    FILE *list = fopen(peer->ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
    char from[ENDPOINT_TEXT], to[ENDPOINT_TEXT], line[LINE_BYTES];
    bool found = false;

    write_endpoint(peer, from);
    write_endpoint(own, to);
    while (list != NULL && !found && fgets(line, sizeof line, list) != NULL)
        found = read_line(line, from, to, out_found);
    if (list != NULL)
        fclose(list);
    return found;
}

static bool search_lists(const struct sockaddr_storage *peer, const struct sockaddr_storage *own,
                         struct found *out_found)
{
    struct sockaddr_storage mapped = *peer, own_mapped = *own;

    if (search(peer, own, out_found))
        return true;
    if (peer->ss_family != AF_INET)
        return false;
    map(&mapped);
    map(&own_mapped);
    return search(&mapped, &own_mapped, out_found);
}

bool tcp_user_find(const struct sockaddr_storage *peer, const struct sockaddr_storage *own, uid_t *out_uid)
{
    struct sockaddr_storage theirs = *peer, ours = *own;
    struct found found = {.uid = (uid_t)-1};

    tcp_user_unmap(&theirs);
    tcp_user_unmap(&ours);
    if ((theirs.ss_family != AF_INET && theirs.ss_family != AF_INET6) || ours.ss_family != theirs.ss_family)
        return false;
    if ((!ask_kernel(&theirs, &ours, &found) && !search_lists(&theirs, &ours, &found)) || found.inode == 0)
        return false;
    *out_uid = found.uid;
    return true;
}

uid_t tcp_user_of(int socket)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC}, own = {.ss_family = AF_UNSPEC};
    socklen_t peer_length = sizeof peer, own_length = sizeof own;
    uid_t uid;

    if (getpeername(socket, (struct sockaddr *)&peer, &peer_length) != 0 ||
        getsockname(socket, (struct sockaddr *)&own, &own_length) != 0 || !tcp_user_find(&peer, &own, &uid))
        return (uid_t)-1;
    peer_length = sizeof peer;
    return getpeername(socket, (struct sockaddr *)&peer, &peer_length) == 0 ? uid : (uid_t)-1;
}
