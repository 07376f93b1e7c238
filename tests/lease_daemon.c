/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_daemon SOCKET LOCKS NVML GUARD AUDIT: as little of a daemon as leases need, for tests of what they
 * do for users to whom the driver lets nothing be set. It answers GET /discover and POST
 * /gpu/set_power_limit, one client at a time, and knows who asks from the kernel.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "device/backend.h"
#include "node/lease/leases.h"

enum { TICK_MS = 20, REQUEST_MAX = 8192, ANSWER_MAX = 4096 };

static struct device_list list;
static struct leases *leases;

static int borrow(void *devices, size_t gpu, const struct device **out_device, struct fly_error *out_error)
{
    (void)devices;
    (void)out_error;
    *out_device = &list.devices[gpu];
    return 0;
}

static void give_back(void *devices, size_t gpu)
{
    (void)devices;
    (void)gpu;
}

static void tell(void *state, const char *line)
{
    (void)state;
    fprintf(stderr, "%s\n", line);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 16) < 0 ||
        chmod(path, 0666) < 0)
        return -1;
    return fd;
}

static void answer(int client, int status, const char *body)
{
    char text[ANSWER_MAX + 256];
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                          "Connection: close\r\n\r\n%s",
                          status, strlen(body), body);

    (void)!send(client, text, (size_t)length, MSG_NOSIGNAL);
}

static void discover(int client)
{
    char body[ANSWER_MAX];
    int length = snprintf(body, sizeof body, "{\"gpus\":[");

    for (size_t i = 0; i < list.count; i++)
        length += snprintf(body + length, sizeof body - (size_t)length,
                           "%s{\"id\":%zu,\"name\":\"%s\",\"pci_address\":\"%s\"}", i > 0 ? "," : "", i,
                           list.devices[i].info.name, list.devices[i].info.pci);
    snprintf(body + length, sizeof body - (size_t)length,
             "],\"cpus\":[],\"enabled_api_groups\":[\"gpu-control\"],\"auth_required\":false}");
    answer(client, 200, body);
}

static void set_limit(int client, const char *query)
{
    const char *gpu = strstr(query, "gpu_ids="), *limit = strstr(query, "power_limit_mw=");
    struct lease_request request = {.wish = {.asked = QUANTITY_BIT(QUANTITY_POWER_LIMIT)}};
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t length = sizeof peer;
    struct fly_error error;
    char body[FLY_ERROR_TEXT_MAX + 64];
    int code;

    if (gpu == NULL || limit == NULL || getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
        answer(client, 400, "{\"error\":\"malformed\"}");
        return;
    }
    request.holder.pid = peer.pid;
    request.holder.uid = peer.uid;
    request.gpus = (uint64_t)1 << strtoul(gpu + strlen("gpu_ids="), NULL, 10);
    request.wish.limit_mw = strtoll(limit + strlen("power_limit_mw="), NULL, 10);
    code = leases_turn(leases, &request, 0, &error);
    snprintf(body, sizeof body, "{\"error\":\"%.400s\"}", code < 0 ? error.text : "");
    fprintf(stderr, "process %d of user %d asks for %lld mW: %s\n", (int)peer.pid, (int)peer.uid,
            (long long)request.wish.limit_mw, code < 0 ? error.text : "done");
    answer(client, code < 0 ? fly_error_http_status(code) : 200, code < 0 ? body : "");
}

static void serve(int client)
{
    char text[REQUEST_MAX] = "";
    size_t length = 0;

    while (length < sizeof text - 1 && strstr(text, "\r\n\r\n") == NULL) {
        ssize_t part = recv(client, text + length, sizeof text - 1 - length, 0);

        if (part <= 0)
            return;
        length += (size_t)part;
        text[length] = '\0';
    }
    if (strncmp(text, "GET /discover ", strlen("GET /discover ")) == 0)
        discover(client);
    else if (strncmp(text, "POST /gpu/set_power_limit?", strlen("POST /gpu/set_power_limit?")) == 0)
        set_limit(client, text);
    else
        answer(client, 404, "{\"error\":\"no such route\"}");
}

static volatile sig_atomic_t stopping;

static void stop(int number)
{
    (void)number;
    stopping = 1;
}

static int open_leases(char **argv, struct audit *audit)
{
    const struct device_options devices = {.nvml_path = argv[3]};
    const struct knob_options knob = {
        .runtime_directory = argv[2], .nvml_path = argv[3], .guard_path = argv[4]};
    struct leases_options options = {
        .borrow = borrow, .give_back = give_back, .knob = &knob, .audit = audit, .listener = {.tell = tell}};
    struct fly_error error;
    int code = device_backend_nvml.open(&devices, &list, &error);

    options.gpu_count = list.count;
    if (code == 0)
        code = leases_open(&options, &leases, &error);
    if (code < 0)
        fprintf(stderr, "%s\n", error.text);
    return code;
}

int main(int argc, char **argv)
{
    struct audit *audit = NULL;
    struct pollfd wanted = {.events = POLLIN};

    if (argc != 6 || audit_open(argv[5], &audit, NULL) < 0)
        return 64;
    signal(SIGTERM, stop);
    if (open_leases(argv, audit) < 0)
        return 70;
    wanted.fd = listen_at(argv[1]);
    if (wanted.fd < 0)
        return 74;
    while (!stopping) {
        if (poll(&wanted, 1, TICK_MS) > 0) {
            int client = accept4(wanted.fd, NULL, NULL, SOCK_CLOEXEC);

            serve(client);
            close(client);
        }
        leases_tick(leases);
    }
    leases_close(leases, 10);
    device_list_close(&list);
    audit_close(audit);
    return 0;
}
