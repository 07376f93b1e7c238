/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/way/daemon_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/accounts.h"
#include "base/error.h"
#include "base/thread/thread_group.h"
#include "knob/way/daemon_answer.h"

enum { ANSWER_MAX = 1 << 18, DEVICE_PATH_MAX = 512, AGENT_MAX = 80 };
enum {
    HTTP_OK = 200,
    HTTP_UNAUTHORIZED = 401,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_CONFLICT = 409
};

static const double connect_timeout_s = 1, total_timeout_s = 2, token_most_s = 2;

/* ---- what this user shows ---- */

static int bad_token(const char *subject, const char *cause, struct fly_error *out_error)
{
    return error_set(out_error, FLY_ECONFIG, "the daemon's token in '%.200s' cannot be used: %s; correct it",
                     subject, cause);
}

/* What a thread of its own reads, since a disk may not answer. */
struct token_file {
    char path[DEVICE_PATH_MAX], token[DAEMON_TOKEN_MAX];
    int cause; /* errno; 0: it was read */
};

static void read_now(void *of)
{
    struct token_file *file = of;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length;

    file->cause = fd < 0 ? errno : 0;
    if (fd < 0)
        return;
    length = read(fd, file->token, DAEMON_TOKEN_MAX - 1);
    if (length < 0)
        file->cause = errno;
    close(fd);
}

/* Reads the token with the blanks around it. */
static int read_token_file(const char *path, char token[DAEMON_TOKEN_MAX], struct fly_error *out_error)
{
    struct token_file *file = calloc(1, sizeof *file);
    int code = 0;

    if (file == NULL)
        return error_no_memory(out_error);
    if (snprintf(file->path, sizeof file->path, "%s", path) >= DEVICE_PATH_MAX) {
        free(file);
        return bad_token(path, strerror(ENAMETOOLONG), out_error);
    }
    if (!apart_run(read_now, free, file, token_most_s))
        return error_set(out_error, FLY_EBUSY,
                         "the disk with the daemon's token in '%.200s' does not answer; see the kernel's log",
                         path);
    if (file->cause != 0)
        code = bad_token(path, strerror(file->cause), out_error);
    memcpy(token, file->token, DAEMON_TOKEN_MAX);
    free(file);
    return code;
}

static int read_token(char token[DAEMON_TOKEN_MAX], struct fly_error *out_error)
{
    const char *path = getenv(SITE_TOKEN_FILE_VARIABLE), *value = getenv("ZEUSD_TOKEN");
    const char *subject = "ZEUSD_TOKEN";
    size_t begin, length;
    int code = 0;

    token[0] = '\0';
    if (path != NULL && path[0] != '\0') {
        subject = path;
        code = read_token_file(path, token, out_error);
    } else if (value != NULL) {
        if (strlen(value) >= DAEMON_TOKEN_MAX)
            return bad_token(subject, "it is too long", out_error);
        memcpy(token, value, strlen(value) + 1);
    }
    if (code < 0)
        return code;
    begin = strspn(token, " \t\r\n");
    length = strcspn(token + begin, " \t\r\n");
    memmove(token, token + begin, strlen(token + begin) + 1);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)token[i] <= ' ' || (unsigned char)token[i] >= 0x7F)
            return bad_token(subject, "it holds what no token does", out_error);
    }
    if (token[length + strspn(token + length, " \t\r\n")] != '\0')
        return bad_token(subject, "it holds more than one word", out_error);
    token[length] = '\0';
    return 0;
}

/* Root is always trusted: it can read the token, and open the device, anyway. */
static int find_users(struct daemon_call *call, struct fly_error *out_error)
{
    const char *named = getenv(SITE_DAEMON_USER_VARIABLE);
    uint32_t user;

    call->users[call->user_count++] = 0;
    if (named == NULL || named[0] == '\0')
        return 0;
    if (!accounts_user(named, &user))
        return error_set(
            out_error, FLY_ECONFIG,
            SITE_DAEMON_USER_VARIABLE " is '%.100s', which names no user; give a name or a number", named);
    call->users[call->user_count++] = user;
    return 0;
}

int daemon_call_open(const struct site *site, const struct device *device, struct daemon_call *out_call,
                     struct fly_error *out_error)
{
    int code;

    *out_call = (struct daemon_call){.site = site, .device = device, .proof = -1};
    out_call->is_flyballd = strcmp(site->daemon, SITE_FLYBALLD_SOCKET) == 0;
    code = read_token(out_call->token, out_error);
    if (code == 0 && out_call->token[0] != '\0')
        snprintf(out_call->header, sizeof out_call->header, "Authorization: Bearer %s", out_call->token);
    return code == 0 ? find_users(out_call, out_error) : code;
}

void daemon_call_close(struct daemon_call *call)
{
    if (call->proof >= 0)
        close(call->proof);
    call->proof = -1;
    explicit_bzero(call->token, sizeof call->token);
    explicit_bzero(call->header, sizeof call->header);
}

/* ---- the proof ---- */

/* Opens the device's file, unless something else has its name. */
static int open_device(const struct device_info *gpu)
{
    const char *directory = getenv(SITE_DEVICES_VARIABLE);
    bool named = directory != NULL && directory[0] != '\0';
    char path[DEVICE_PATH_MAX];
    struct stat found;
    int fd;

    if (gpu->minor < 0 || (gpu->emulated && !named))
        return -1;
    snprintf(path, sizeof path, "%.400s/nvidia%d", named ? directory : "/dev", gpu->minor);
    if (stat(path, &found) != 0 || !S_ISCHR(found.st_mode) || minor(found.st_rdev) != (unsigned)gpu->minor)
        return -1;
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd;
}

static bool is_socket(const struct site *site)
{
    return site->daemon[0] == '/';
}

static void take_proof(struct daemon_call *call)
{
    if (call->proof < 0 && call->is_flyballd && is_socket(call->site))
        call->proof = open_device(&call->device->info);
}

/* ---- asking ---- */

/* "User-Agent: flyball (python3)", for the daemon's audit log; a name that is no plain word is left out. */
static const char *name_agent(char agent[AGENT_MAX])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    const char *name = program_invocation_short_name;
    bool named = name[0] != '\0' && name[strspn(name, plain)] == '\0' && strcmp(name, "flyball") != 0;

    snprintf(agent, AGENT_MAX, "User-Agent: flyball%s%.32s%s", named ? " (" : "", named ? name : "",
             named ? ")" : "");
    return agent;
}

int daemon_call_ask(struct daemon_call *call, const char *method, const char *path,
                    struct http_answer *out_answer, struct fly_error *out_error)
{
    const char *place = call->site->daemon, *authority = getenv(SITE_AUTHORITY_VARIABLE);
    bool local = is_socket(call->site);
    char agent[AGENT_MAX];
    const char *const headers[] = {name_agent(agent), call->header[0] != '\0' ? call->header : NULL, NULL};
    char url[DAEMON_URL_MAX];
    struct socket_trust trust = {.users = call->users,
                                 .user_count = call->user_count,
                                 .required = call->header[0] != '\0',
                                 .remedy = "set " SITE_DAEMON_USER_VARIABLE " if he may have the token",
                                 .files = &call->proof};
    const struct http_request request = {
        .method = method,
        .url = url,
        .unix_socket = local ? place : NULL,
        .trust = &trust,
        .headers = headers,
        .answer_maximum = ANSWER_MAX,
        .connect_timeout_s = connect_timeout_s,
        .total_timeout_s = total_timeout_s,
        .past_proxies = true,
        .authority_file = authority != NULL && authority[0] != '\0' ? authority : NULL,
    };
    size_t length = strlen(place);
    struct fly_error why;
    int code;

    take_proof(call);
    trust.file_count = call->proof >= 0;
    while (!local && length > 0 && place[length - 1] == '/')
        length--;
    snprintf(url, sizeof url, "%.*s%s", local ? 16 : (int)length, local ? "http://localhost" : place, path);
    code = http_ask(&request, out_answer, &why);
    if (code == 0)
        return 0;
    /* A bad address is an error of the configuration, not of the command line. */
    code = code == FLY_EUSAGE ? FLY_ECONFIG : code == FLY_ELIMIT ? FLY_EREAD : code;
    return error_set(out_error, code, "the daemon: %.480s", why.text);
}

static int not_for_this_user(const struct daemon_call *call, int status, const char *reason,
                             struct fly_error *out_error)
{
    const char *place = call->site->daemon;

    if (call->is_flyballd)
        return error_set(out_error, FLY_EPERM,
                         "flyballd at '%.150s' does not let this user (HTTP %d): %.200s", place, status,
                         reason);
    return error_set(
        out_error, FLY_EPERM,
        "the daemon at '%.150s' does not let this user (HTTP %d): %.150s; put the path of a file "
        "with a token for 'gpu-control' into " SITE_TOKEN_FILE_VARIABLE,
        place, status, reason);
}

int daemon_call_refused(const struct daemon_call *call, const struct http_answer *answer,
                        struct fly_error *out_error)
{
    char reason[DAEMON_REASON_MAX];
    const char *place = call->site->daemon;

    daemon_reason(answer->body.data, answer->body.length, reason);
    if (call->token[0] != '\0' && strstr(reason, call->token) != NULL)
        reason[0] = '\0'; /* keeps the token out of logs */
    if (reason[0] == '\0')
        snprintf(reason, sizeof reason, "it does not say why");
    switch (answer->status) {
    case HTTP_UNAUTHORIZED:
    case HTTP_FORBIDDEN:
        return not_for_this_user(call, answer->status, reason, out_error);
    case HTTP_NOT_FOUND:
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "the daemon at '%.150s' does not offer it (HTTP 404): %.150s; start it with 'gpu-control'", place,
            reason);
    case HTTP_CONFLICT:
        return error_set(out_error, FLY_ESTATE,
                         "the daemon at '%.150s' does not do it now (HTTP 409): %.200s", place, reason);
    default:
        return error_set(out_error, FLY_EREAD, "the daemon at '%.150s' failed (HTTP %d): %.150s; see its log",
                         place, answer->status, reason);
    }
}

int daemon_call_discover(struct daemon_call *call, unsigned *out_id, struct fly_error *out_error)
{
    struct http_answer answer;
    struct fly_error why;
    int code = daemon_call_ask(call, "GET", "/discover", &answer, out_error);

    if (code < 0)
        return code;
    if (answer.status != HTTP_OK)
        code = daemon_call_refused(call, &answer, out_error);
    else if (daemon_find_gpu(answer.body.data, answer.body.length, &call->device->info,
                             call->token[0] != '\0', out_id, &call->is_flyballd, &why) < 0)
        code = error_set(out_error, why.code == FLY_EDATA ? FLY_EREAD : why.code,
                         "the daemon at '%.150s' does not turn GPU %u: %.250s", call->site->daemon,
                         call->device->info.index, why.text);
    http_answer_deinit(&answer);
    return code;
}
