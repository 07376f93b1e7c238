/* SPDX-License-Identifier: Apache-2.0 */
#include "standin_gb.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/text/iso_time.h"

enum { HALF_HOUR_S = 1800, REQUEST_MAX = 4096, LONGEST_S = 14 * 86400, AHEAD_S = 2 * 86400 };

static void put_row(const struct gb_words *words, int64_t start_s, struct buffer *out)
{
    char from[ISO_TIME_TEXT_MAX], to[ISO_TIME_TEXT_MAX], actual[24] = "null";
    int value = atomic_load(&words->value);

    if (start_s + HALF_HOUR_S <= atomic_load(&words->now_s))
        snprintf(actual, sizeof actual, "%d", value);
    buffer_printf(out,
                  "%s{\"from\":\"%.16sZ\",\"to\":\"%.16sZ\",\"intensity\":{\"forecast\":%d,\"actual\":%s}}",
                  out->length > 9 ? "," : "", iso_time_format(start_s, from),
                  iso_time_format(start_s + HALF_HOUR_S, to), value + 3, actual);
}

static void answer(const struct gb_words *words, int client, const char *request)
{
    const char *path = strstr(request, "/intensity/");
    char from[24], to[24], head[128];
    int64_t from_s = 0, to_s;
    struct buffer body;

    if (path == NULL || sscanf(path, "/intensity/%17[^/ ]/%17[^/ ]", from, to) != 2 ||
        !iso_time_parse_utc(from, true, &from_s))
        return;
    if (!iso_time_parse_utc(to, true, &to_s))
        to_s = from_s + AHEAD_S;
    buffer_init(&body, 1 << 20);
    buffer_puts(&body, "{\"data\":[");
    for (int64_t at = from_s / HALF_HOUR_S * HALF_HOUR_S - 2 * HALF_HOUR_S;
         at < to_s && at < from_s + LONGEST_S; at += HALF_HOUR_S)
        put_row(words, at, &body);
    buffer_puts(&body, "]}");
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
             body.length);
    if (write(client, head, strlen(head)) > 0)
        (void)!write(client, body.data, body.length);
    buffer_deinit(&body);
}

static void serve(struct gb_words *words, int listener)
{
    static const char sick[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(120);
    for (;;) {
        int client = accept(listener, NULL, NULL);

        if (client >= 0 && fork() == 0) {
            char request[REQUEST_MAX] = "";
            size_t length = 0;
            ssize_t more = 1;

            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(120);
            while (more > 0 && strstr(request, "\r\n\r\n") == NULL && length + 1 < sizeof request) {
                more = read(client, request + length, sizeof request - 1 - length);
                length += more > 0 ? (size_t)more : 0;
                request[length] = '\0';
            }
            atomic_fetch_add(&words->requests, 1);
            if (atomic_load(&words->mood) == GB_HANGS)
                pause();
            if (atomic_load(&words->mood) == GB_SICK)
                (void)!write(client, sick, sizeof sick - 1);
            else
                answer(words, client, request);
            _exit(0);
        }
        if (client >= 0)
            close(client);
    }
}

bool standin_gb_start(struct standin_gb *gb, const char *cache)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof address;
    char url[64];

    /* cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping takes */
    gb->words = mmap(NULL, sizeof *gb->words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (gb->words == MAP_FAILED || listener < 0 ||
        bind(listener, (const struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 16) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        return false;
    gb->port = ntohs(address.sin_port);
    atomic_store(&gb->words->value, 200);
    gb->process = fork();
    if (gb->process == 0) {
        setsid();
        serve(gb->words, listener);
        _exit(0);
    }
    setpgid(gb->process, gb->process); /* whoever comes first */
    close(listener);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", gb->port);
    setenv("FLYBALL_GB_URL", url, 1);
    setenv("FLYBALL_CARBON_CACHE", cache, 1);
    return gb->process > 0;
}

void standin_gb_stop(struct standin_gb *gb)
{
    kill(-gb->process, SIGKILL);
    waitpid(gb->process, NULL, 0);
    munmap(gb->words, sizeof *gb->words);
}
