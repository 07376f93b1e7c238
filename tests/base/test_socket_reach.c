/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens at a Unix socket, and what he is given before anything is said. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/http_client.h"
#include "base/socket_reach.h"

static char directory[] = "/tmp/flyball-test-reach-XXXXXX", path[64];
static int listener;

static int listen_here(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)state;
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/socket", directory);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    return listen(listener, 0);
}

static int clear(void **state)
{
    (void)state;
    close(listener);
    unlink(path);
    return rmdir(directory);
}

/* Takes the connection and what came with its first bytes; returns its end of the connection. */
static int take(char text[64], int *out_file)
{
    union {
        char bytes[CMSG_SPACE(4 * sizeof(int))];
        struct cmsghdr aligned;
    } control;
    struct iovec piece = {.iov_base = text, .iov_len = 63};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const struct cmsghdr *part = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;

    text[got > 0 ? got : 0] = '\0';
    *out_file = -1;
    if (part != NULL)
        memcpy(out_file, CMSG_DATA(part), sizeof *out_file);
    return fd;
}

static void test_trust(void **state)
{
    const uid_t own[] = {0, getuid()}, other[] = {getuid() + 1};
    const int files[] = {open("/dev/zero", O_RDWR | O_CLOEXEC)};
    const struct {
        struct socket_trust trust;
        int code;
        const char *sent;
        bool passed;
    } cases[] = {
        {{.users = own, .user_count = 2, .required = true}, 0, "", false},
        {{.users = other, .user_count = 1}, 0, "", false},
        {{.users = other, .user_count = 1, .required = true}, FLY_EPERM, "", false},
        {{.required = true}, FLY_EPERM, "", false},
        {{.users = own, .user_count = 2, .files = files, .file_count = 1}, 0, "\r\n", true},
        {{.users = other, .user_count = 1, .files = files, .file_count = 1}, 0, "", false},
        {{.users = own, .user_count = 2, .files = files, .file_count = SOCKET_FILES_MAX + 1},
         FLY_ELIMIT,
         "",
         false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd = -1, accepted, file;
        struct fly_error error = {.text = ""};
        struct stat sent, known;
        char text[64];

        if (socket_reach(path, 10, &cases[i].trust, "\r\n", &fd, &error) != cases[i].code)
            fail_msg("case %zu: %s", i, error.text);
        if (cases[i].code == FLY_EPERM)
            check_contains(error.text, "who is not trusted");
        accepted = take(text, &file);
        assert_string_equal(text, cases[i].sent);
        assert_int_equal(file >= 0, cases[i].passed);
        if (file >= 0) {
            assert_int_equal(fstat(file, &sent) | fstat(files[0], &known), 0);
            assert_true(sent.st_rdev == known.st_rdev);
            close(file);
        }
        close(accepted);
        if (fd >= 0)
            close(fd);
    }
    close(files[0]);
}

static void test_unreachable(void **state)
{
    const struct socket_trust trust = {.required = false};
    char longer[200], file[80];
    const struct {
        const char *path;
        int code;
        const char *text;
    } cases[] = {
        {"/nowhere/socket", FLY_ENOTFOUND, "nobody answers at '/nowhere/socket'"},
        {file, FLY_ENOTFOUND, "nobody answers"},
        {longer, FLY_EUSAGE, "longer than a socket's path"},
    };
    struct fly_error error;
    int fd;

    (void)state;
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    snprintf(file, sizeof file, "%s/file", directory);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(socket_reach(cases[i].path, 10, &trust, "\r\n", &fd, &error), cases[i].code);
        check_contains(error.text, cases[i].text);
    }
    unlink(file);
}

/* A listener that takes no more connections is waited for only as long as is said. */
static void test_full(void **state)
{
    const struct socket_trust trust = {.required = false};
    struct fly_error error;
    int fds[16], count = 0, code = 0;

    (void)state;
    while (code == 0 && count < (int)COUNT(fds)) {
        code = socket_reach(path, 0.05, &trust, "\r\n", &fds[count], &error);
        count += code == 0;
    }
    assert_int_equal(code, FLY_ENOTFOUND);
    check_contains(error.text, "takes no connection in time");
    while (count-- > 0)
        close(fds[count]);
}

/* A request says nothing to whom it does not trust. */
static void test_request(void **state)
{
    const uid_t other[] = {getuid() + 1};
    const struct socket_trust trust = {.users = other, .user_count = 1, .required = true};
    static const char *const headers[] = {"Authorization: Bearer a-secret", NULL};
    const struct http_request request = {.url = "http://localhost/",
                                         .unix_socket = path,
                                         .trust = &trust,
                                         .headers = headers,
                                         .answer_maximum = 100,
                                         .connect_timeout_s = 60,
                                         .total_timeout_s = 120,
                                         .past_proxies = true};
    struct http_answer answer;
    struct fly_error error;
    char text[64];
    int code = http_ask(&request, &answer, &error), file, fd;

    (void)state;
    if (code == FLY_EUNSUPPORTED && strstr(error.text, "install libcurl") != NULL)
        skip();
    assert_int_equal(code, FLY_EPERM);
    check_contains(error.text, "who is not trusted, so nothing was sent");
    fd = take(text, &file);
    assert_string_equal(text, "");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trust),
        cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, listen_here, clear);
}
