/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flyball-demo: trains a real small network again and again on an emulated GPU. `flyball demo` runs it, and
 * checks its options (src/cli/run/cmd_demo.c).
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo/report.h"

enum { PATH_BYTES = 4096 };

/* What was asked for. */
struct wish {
    struct demo_plan plan;
    const char *directory, *format, *command;
    bool verbose;
};

static const char usage[] =
    "usage: flyball-demo [--directory DIR] [--policy NAME] [--recurrences N] [--seed N] [--store ADDRESS]\n"
    "                    [--threads N] [--format table|json|csv] [--verbose] [--quiet] [--command NAME]\n";

static int read_number(const char *text, unsigned long least, unsigned long most, unsigned long *out,
                       struct fly_error *out_error)
{
    char *end;

    errno = 0;
    *out = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || *out < least || *out > most)
        return demo_fail(out_error, FLY_EUSAGE, "'%s': expected a whole number from %lu to %lu", text, least,
                         most);
    return 0;
}

static int read_options(int argc, char **argv, struct wish *wish, struct fly_error *out_error)
{
    static const struct option options[] = {{"directory", required_argument, NULL, 'd'},
                                            {"policy", required_argument, NULL, 'p'},
                                            {"recurrences", required_argument, NULL, 'r'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"store", required_argument, NULL, 'S'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"command", required_argument, NULL, 'c'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {NULL, 0, NULL, 0}};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned long number = 0;
    int code = 0, letter;

    *wish =
        (struct wish){.plan = {.policy = "bayes", .recurrences = 40, .seed = 1, .progress = isatty(2) == 1},
                      .directory = "flyball-demo",
                      .format = "table",
                      .command = "flyball"};
    wish->plan.threads = processors < 1                  ? 1
                         : processors > DEMO_THREADS_MAX ? DEMO_THREADS_MAX
                                                         : (unsigned)processors;
    opterr = 0;
    while (code == 0 && (letter = getopt_long(argc, argv, "v", options, NULL)) != -1) {
        switch (letter) {
        case 'd':
            wish->directory = optarg;
            break;
        case 'p':
            wish->plan.policy = optarg;
            break;
        case 'r':
            code = read_number(optarg, 1, DEMO_RECURRENCES_MAX, &number, out_error);
            wish->plan.recurrences = number;
            break;
        case 's':
            code = read_number(optarg, 0, UINT32_MAX, &number, out_error);
            wish->plan.seed = (uint32_t)number;
            break;
        case 'S':
            wish->plan.store = optarg;
            break;
        case 't':
            code = read_number(optarg, 1, DEMO_THREADS_MAX, &number, out_error);
            wish->plan.threads = (unsigned)number;
            break;
        case 'f':
            wish->format = optarg;
            break;
        case 'c':
            wish->command = optarg;
            break;
        case 'v':
            wish->verbose = true;
            break;
        case 'q':
            wish->plan.progress = false;
            break;
        default:
            return demo_fail(out_error, FLY_EUSAGE, "%s", usage);
        }
    }
    return code == 0 && optind < argc ? demo_fail(out_error, FLY_EUSAGE, "%s", usage) : code;
}

static int name_path(char path[PATH_BYTES], const char *directory, const char *name,
                     struct fly_error *out_error)
{
    if (snprintf(path, PATH_BYTES, "%s/%s", directory, name) >= PATH_BYTES)
        return demo_fail(out_error, FLY_ELIMIT, "%.400s: the path is too long; choose a shorter one",
                         directory);
    return 0;
}

static int make_directory(const char *directory, struct fly_error *out_error)
{
    char whole[PATH_MAX], spool[PATH_BYTES];

    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        return demo_fail(out_error, FLY_EWRITE, "%.400s: making the directory failed: %s; choose another",
                         directory, strerror(errno));
    /* Reports that the store does not take wait here, and in no other demo's way. */
    if (realpath(directory, whole) == NULL)
        return demo_fail(out_error, FLY_EREAD, "%.400s: %s", directory, strerror(errno));
    if (name_path(spool, whole, "spool", out_error) < 0)
        return out_error->code;
    setenv("FLYBALL_SPOOL", spool, 1);
    return 0;
}

/* Removes the log of an earlier demo, with the files that SQLite keeps beside it. */
static int make_anew(const char *store, struct fly_error *out_error)
{
    static const char *const suffixes[] = {"-wal", "-shm", ""};

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[PATH_BYTES + 8];

        snprintf(path, sizeof path, "%s%s", store, suffixes[i]);
        if (unlink(path) < 0 && errno != ENOENT)
            return demo_fail(out_error, FLY_EWRITE, "removing the earlier log '%.400s' failed: %s", path,
                             strerror(errno));
    }
    return 0;
}

/* Writes all of a file, under another name first. */
static int write_file(const char *path, void (*write)(FILE *, const struct demo_report *),
                      const struct demo_report *report, struct fly_error *out_error)
{
    char partial[PATH_BYTES + 8];
    FILE *file;
    bool good;

    snprintf(partial, sizeof partial, "%s.new", path);
    file = fopen(partial, "w");
    if (file != NULL)
        write(file, report);
    good = file != NULL && ferror(file) == 0;
    good = file != NULL && fclose(file) == 0 && good;
    if (good && rename(partial, path) == 0)
        return 0;
    demo_fail(out_error, FLY_EWRITE, "writing '%.400s' failed: %s", path, strerror(errno));
    (void)unlink(partial);
    return FLY_EWRITE;
}

static void print(const struct wish *wish, const struct demo_report *report)
{
    if (strcmp(wish->format, "json") == 0)
        report_json(stdout, report);
    else if (strcmp(wish->format, "csv") == 0)
        report_csv(stdout, report);
    else
        report_text(stdout, report, wish->verbose);
}

/* Trains, writes the files, and only then reports. */
static int demonstrate(struct wish *wish, struct fly_error *out_error)
{
    static struct demo demo; /* large */
    static struct demo_report report;
    char tries[PATH_BYTES], picture[PATH_BYTES], store[PATH_BYTES];
    int code = 0;

    report = (struct demo_report){
        .demo = &demo, .command = wish->command, .tries_path = tries, .picture_path = picture};
    if (name_path(tries, wish->directory, "tries.csv", out_error) < 0 ||
        name_path(picture, wish->directory, "pareto.svg", out_error) < 0 ||
        name_path(store, wish->directory, "store.sqlite", out_error) < 0 ||
        make_directory(wish->directory, out_error) < 0)
        return out_error->code;
    if (wish->plan.store == NULL) {
        wish->plan.store = store;
        code = make_anew(store, out_error);
    }
    if (code == 0)
        code = demo_run(&wish->plan, &demo, out_error);
    for (size_t i = 0; i < DEMO_JOBS && code == 0; i++)
        findings_of(&demo.jobs[i], &report.findings[i]);
    if (code == 0)
        code = write_file(tries, report_tries, &report, out_error);
    if (code == 0)
        code = write_file(picture, picture_draw, &report, out_error);
    if (code == 0) {
        print(wish, &report);
        if (ferror(stdout) != 0 || fflush(stdout) != 0)
            code = demo_fail(out_error, FLY_EWRITE, "writing to standard output failed: %s", strerror(errno));
    }
    demo_free(&demo);
    return code;
}

int main(int argc, char **argv)
{
    struct fly_error error = {.text = ""};
    struct wish wish;
    int code = read_options(argc, argv, &wish, &error);

    if (code == 0)
        code = demonstrate(&wish, &error);
    if (code == 0)
        return 0;
    fprintf(stderr, "flyball: %s\n", error.text[0] != '\0' ? error.text : fly_error_sentence(code));
    return fly_error_exit_status(code);
}
