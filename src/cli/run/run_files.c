/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <flyball/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/append_file.h"
#include "base/file/atomic_file.h"
#include "cli/kit/table_print.h"
#include "cli/run/run_report.h"

enum { LINE_MAX_BYTES = 1 << 14 };

int run_output_check(const char *path, struct fly_error *out_error)
{
    struct atomic_file file;
    struct stat status;
    int result;

    /*
     * To open a pipe and close it again would end its reader, and to wait for the reader would hold
     * up the program.
     */
    if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        return 0;
    result = atomic_file_open(path, &file, out_error);
    if (result == 0)
        atomic_file_discard(&file);
    return result;
}

int run_paths_name(const struct cli_call *call, struct run_paths *out_paths, struct run_result *result,
                   struct fly_error *out_error)
{
    const char *output = cli_text(call, "output"), *csv = cli_text(call, "csv");
    int code = output != NULL ? output_path_expand(output, out_paths->output.path, out_error) : 0;

    out_paths->output.lock = -1;
    if (code == 0 && csv != NULL)
        code = output_path_expand(csv, out_paths->csv, out_error);
    result->output = output != NULL ? out_paths->output.path : NULL;
    result->csv = csv != NULL ? out_paths->csv : NULL;
    return code;
}

void run_output_hold(const struct cli_call *call, struct run_paths *paths, const struct run_result *result)
{
    struct fly_error error;

    if (result->output == NULL)
        return;
    output_path_hold(call, &paths->output);
    if (run_output_check(paths->output.path, &error) < 0)
        cli_warn(call, "there will be no report, and the program runs without: %s", error.text);
}

int run_output_write(const struct run_result *result, const char *path, struct fly_error *out_error)
{
    return table_save_json(run_report_json(result), path, out_error);
}

static int failed(const char *path, struct fly_error *out_error)
{
    return error_set(out_error, errno == EACCES || errno == EPERM ? FLY_EPERM : FLY_EWRITE,
                     "'%s': cannot add a line: %s; name another file with --csv", path, strerror(errno));
}

/* Compares the file's first line with the heading; an empty file has none yet. */
static int check_heading(int fd, const char *path, const char *heading, bool *out_empty,
                         struct fly_error *out_error)
{
    static char found[LINE_MAX_BYTES];
    size_t length = strlen(heading);
    ssize_t count = pread(fd, found, length, 0);

    if (count < 0)
        return failed(path, out_error);
    *out_empty = count == 0;
    if (count == 0)
        return 0;
    if ((size_t)count == length && memcmp(found, heading, length) == 0)
        return 0;
    return error_set(out_error, FLY_EDATA,
                     "'%s': its heading is not '%.*s', as lines of these GPUs need; name another file with "
                     "--csv",
                     path, (int)(length - 1), heading);
}

/* Checks whether a file could be made in the path's directory. */
static int check_place(const char *path, struct fly_error *out_error)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int code;

    if (directory == NULL)
        return error_no_memory(out_error);
    code = faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : failed(path, out_error);
    free(directory);
    return code;
}

int run_csv_check(const struct fly_meter *meter, const char *path, struct fly_error *out_error)
{
    static char heading[LINE_MAX_BYTES];
    /* Without O_NONBLOCK, a FIFO would wait for its reader. */
    int fd = open(path, O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool empty;
    int code = 0;

    if (fd < 0)
        return errno == ENOENT ? check_place(path, out_error) : failed(path, out_error);
    if (lseek(fd, 0, SEEK_CUR) < 0)
        code = failed(path, out_error);
    else if (meter != NULL && fly_record_header(meter, FLY_RECORD_CSV_GPUS, heading, sizeof heading) < 0)
        code = error_no_memory(out_error);
    else if (meter != NULL)
        code = check_heading(fd, path, heading, &empty, out_error);
    close(fd);
    return code;
}

int run_csv_append(const struct fly_meter *meter, const struct fly_measurement *measured, const char *path,
                   struct fly_error *out_error)
{
    static char heading[LINE_MAX_BYTES];
    static char line[LINE_MAX_BYTES], lines[2 * LINE_MAX_BYTES];
    int length = fly_record_window(meter, measured, FLY_RECORD_CSV_GPUS, line, sizeof line);
    int result = fly_record_header(meter, FLY_RECORD_CSV_GPUS, heading, sizeof heading);
    bool empty = false;
    int fd;

    if (length < 0 || result < 0)
        return error_no_memory(out_error);
    fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(path, out_error);
    /*
     * If the lock fails, as on some file systems, runs that end at the same moment may both write a
     * heading.
     */
    flock(fd, LOCK_EX);
    result = check_heading(fd, path, heading, &empty, out_error);
    if (result == 0) {
        snprintf(lines, sizeof lines, "%s%s", empty ? heading : "", line);
        errno = append_file_lines(fd, lines, strlen(lines));
        result = errno != 0 ? failed(path, out_error) : 0;
    }
    if (close(fd) < 0 && result == 0)
        result = failed(path, out_error);
    return result;
}
