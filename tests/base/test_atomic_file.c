/* SPDX-License-Identifier: Apache-2.0 */
/* A file appears whole or not at all: whatever fails, the old content stays and nothing else is left. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/atomic_file.h"
#include "test.h"

static char directory[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/flyball-atomic-XXXXXX");
    return mkdtemp(directory) == NULL || chdir(directory) < 0 ? -1 : 0;
}

static size_t entry_count(void)
{
    DIR *entries = opendir(".");
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(entries)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(entries);
    return count;
}

static int tear_down(void **state)
{
    DIR *entries = opendir(".");
    struct dirent *entry;

    (void)state;
    while ((entry = readdir(entries)) != NULL) {
        if (unlink(entry->d_name) < 0)
            (void)!rmdir(entry->d_name);
    }
    closedir(entries);
    return chdir("/") < 0 || rmdir(directory) < 0 ? -1 : 0;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *expected)
{
    char text[256] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

static mode_t mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 0777;
}

static void write_whole(const char *path, const char *text)
{
    struct atomic_file file;
    struct fly_error error = {.text = ""};

    if (atomic_file_open(path, &file, &error) < 0)
        fail_msg("%s", error.text);
    fputs(text, file.stream);
    if (atomic_file_commit(&file, &error) < 0)
        fail_msg("%s", error.text);
    atomic_file_discard(&file); /* harmless */
}

static void test_new_file(void **state)
{
    mode_t mask = umask(027);

    (void)state;
    write_whole("new", "content\n");
    umask(mask);
    assert_content("new", "content\n");
    assert_int_equal(mode_of("new"), 0640);
    assert_int_equal(entry_count(), 1);
}

static void test_replaces_and_keeps_permissions(void **state)
{
    (void)state;
    put("old", "before");
    chmod("old", 0604);
    write_whole("old", "after");
    assert_content("old", "after");
    assert_int_equal(mode_of("old"), 0604);
    write_whole("./old", "");
    assert_content("old", "");
    assert_int_equal(entry_count(), 1);
}

static void test_invisible_until_commit(void **state)
{
    struct atomic_file file;

    (void)state;
    put("old", "before");
    assert_int_equal(atomic_file_open("old", &file, NULL), 0);
    fputs("after", file.stream);
    fflush(file.stream);
    assert_content("old", "before");
    atomic_file_discard(&file);
    assert_content("old", "before");
    assert_int_equal(entry_count(), 1);
    assert_int_equal(atomic_file_open("new", &file, NULL), 0);
    fputs("after", file.stream);
    atomic_file_discard(&file);
    assert_int_equal(entry_count(), 1);
}

static void test_follows_links(void **state)
{
    struct stat status;

    (void)state;
    put("target", "before");
    assert_int_equal(symlink("target", "link"), 0);
    write_whole("link", "after");
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_content("target", "after");
}

/* With a file size limit every write beyond it fails, as on a full disk. */
static void check_limited(const char *path, size_t bytes)
{
    struct rlimit old;
    struct rlimit limit;
    struct atomic_file file;
    struct fly_error error;
    int result;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 4096;
    assert_int_equal(atomic_file_open(path, &file, NULL), 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (size_t i = 0; i < bytes; i++)
        fputc('x', file.stream);
    result = atomic_file_commit(&file, &error);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(result, FLY_EWRITE);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "File too large; raise the limit of file sizes"));
}

static void test_size_limit(void **state)
{
    (void)state;
    put("old", "before");
    check_limited("old", 5000);    /* fails at commit */
    check_limited("old", 1 << 20); /* fails long before, and commit still knows why */
    check_limited("new", 1 << 20);
    assert_content("old", "before");
    assert_int_equal(entry_count(), 1);
}

static void test_full_device(void **state)
{
    struct atomic_file file;
    struct fly_error error;

    (void)state;
    if (access("/dev/full", W_OK) < 0)
        skip();
    assert_int_equal(atomic_file_open("/dev/full", &file, &error), 0);
    fputs("x", file.stream);
    assert_int_equal(atomic_file_commit(&file, &error), FLY_EWRITE);
    assert_string_equal(error.text,
                        "writing '/dev/full' failed: No space left on device; free space there, or "
                        "choose another place");
    write_whole("/dev/null", "gone");
}

static void test_refusals(void **state)
{
    static const struct {
        const char *path;
        int code;
        const char *piece;
    } cases[] = {
        {"missing/file", FLY_ENOTFOUND,
         "writing 'missing/file' failed: No such file or directory; make its directory"},
        {"plain/file", FLY_ENOTFOUND, "Not a directory"},
        {".", FLY_EWRITE, "Is a directory; name a file"},
        {"", FLY_ENOTFOUND, "No such file"},
        {"dangling", FLY_ENOTFOUND, "No such file"},
    };

    (void)state;
    put("plain", "");
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct atomic_file file;
        struct fly_error error = {.text = ""};

        assert_int_equal(atomic_file_open(cases[i].path, &file, &error), cases[i].code);
        if (strstr(error.text, cases[i].piece) == NULL)
            fail_msg("'%s': expected '%s', got '%s'", cases[i].path, cases[i].piece, error.text);
    }
    assert_int_equal(entry_count(), 2);
}

/* Someone else's directory; root may write everywhere, so there is nothing to see then. */
static void test_permission(void **state)
{
    struct atomic_file file;

    (void)state;
    if (geteuid() == 0)
        skip();
    put("closed", "before");
    chmod("closed", 0400);
    assert_int_equal(atomic_file_open("closed", &file, NULL), FLY_EPERM);
    chmod(".", 0500);
    assert_int_equal(atomic_file_open("new", &file, NULL), FLY_EPERM);
    chmod(".", 0700);
}

/* What stdout goes to is appended to, not replaced under its feet. */
static void test_stdout_is_not_replaced(void **state)
{
    int saved = dup(STDOUT_FILENO);
    struct atomic_file file;

    (void)state;
    fflush(stdout);
    assert_non_null(freopen("captured", "w", stdout));
    assert_int_equal(atomic_file_open("/dev/stdout", &file, NULL), 0);
    fputs("one\n", file.stream);
    assert_int_equal(atomic_file_commit(&file, NULL), 0);
    puts("two");
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    assert_content("captured", "one\ntwo\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_new_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_replaces_and_keeps_permissions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_invisible_until_commit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_follows_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_size_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_permission, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stdout_is_not_replaced, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("atomic file", tests, NULL, NULL);
}
