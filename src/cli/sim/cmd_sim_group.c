/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim group`: groups of overlapping submissions through the decision core. */
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file/patient_file.h"
#include "cli/options/small_options.h"
#include "cli/sim/plugin_crash.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "cli/sim/sim_workloads.h"
#include "sim/crew.h"
#include "sim/open/group_rows.h"
#include "sim/open/group_set.h"
#include "sim/try_writer.h"

/*
 * A file that can be read from the start or anywhere, and by several readers at once, even if it
 * is compressed with xz: then its content is first unpacked to a nameless temporary file (in
 * $TMPDIR, or /tmp).
 *
 *     struct unpacked file;
 *
 *     unpacked_open(&file, "groups.csv.xz", out_error);
 *     fopen(file.path, "re") ...
 *     unpacked_close(&file);
 */
struct unpacked {
    char path[64];    /* what to open, if it was unpacked */
    const char *open; /* path, or the caller's own */
    FILE *temporary;  /* owned, or NULL */
};

enum { CHUNK = 1 << 16, PATH_BYTES = 4096 };

static const uint64_t memory_max = 256 << 20;

/* The state of unpacking. */
struct unpacking {
    const char *path;
    FILE *from, *to;
    lzma_stream stream;
    size_t lines; /* unpacked so far */
    uint8_t packed[CHUNK], plain[CHUNK];
};

static FILE *nameless_file(void)
{
    const char *directory = getenv("TMPDIR");
    char path[PATH_BYTES];
    FILE *file;
    int fd;

    if (snprintf(path, sizeof path, "%s/flyball-XXXXXX",
                 directory != NULL && *directory != '\0' ? directory : "/tmp") >= (int)sizeof path)
        return NULL;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return NULL;
    unlink(path);
    file = fdopen(fd, "w+");
    if (file == NULL)
        close(fd);
    return file;
}

static int write_chunk(struct unpacking *unpacking, const uint8_t *bytes, size_t count,
                       struct fly_error *out_error)
{
    for (size_t i = 0; i < count; i++)
        unpacking->lines += bytes[i] == '\n';
    if (fwrite(bytes, 1, count, unpacking->to) == count)
        return 0;
    return error_set(
        out_error, FLY_EWRITE,
        "%s: unpacking to a temporary file failed: %s; free space there or set TMPDIR to another directory",
        unpacking->path, patient_file_cause(errno));
}

static int refuse_stream(const struct unpacking *unpacking, lzma_ret result, struct fly_error *out_error)
{
    if (result == LZMA_MEM_ERROR || result == LZMA_MEMLIMIT_ERROR)
        return error_no_memory(out_error);
    return error_set(out_error, FLY_EDATA, "%s:%zu: %s; copy the file again", unpacking->path,
                     unpacking->lines + 1,
                     result == LZMA_FORMAT_ERROR ? "the file is not compressed by xz"
                     : result == LZMA_BUF_ERROR  ? "the compressed file ends early"
                                                 : "the compressed file is damaged");
}

/* Unpacks everything; the stream must be initialised. */
static int unpack(struct unpacking *unpacking, struct fly_error *out_error)
{
    lzma_ret result = LZMA_OK;
    lzma_action action = LZMA_RUN;

    while (result == LZMA_OK) {
        int code;

        if (unpacking->stream.avail_in == 0 && action == LZMA_RUN) {
            unpacking->stream.next_in = unpacking->packed;
            unpacking->stream.avail_in =
                fread(unpacking->packed, 1, sizeof unpacking->packed, unpacking->from);
            if (ferror(unpacking->from))
                return error_set(out_error, FLY_EREAD, "%s: reading failed: %s", unpacking->path,
                                 patient_file_cause(errno));
            action = feof(unpacking->from) ? LZMA_FINISH : LZMA_RUN;
        }
        unpacking->stream.next_out = unpacking->plain;
        unpacking->stream.avail_out = sizeof unpacking->plain;
        result = lzma_code(&unpacking->stream, action);
        code = write_chunk(unpacking, unpacking->plain, sizeof unpacking->plain - unpacking->stream.avail_out,
                           out_error);
        if (code < 0)
            return code;
    }
    if (result != LZMA_STREAM_END)
        return refuse_stream(unpacking, result, out_error);
    return fflush(unpacking->to) == 0 ? 0 : write_chunk(unpacking, unpacking->plain, 1, out_error);
}

static int unpack_to(struct unpacked *file, const char *path, FILE *from, struct fly_error *out_error)
{
    struct unpacking unpacking = {
        .path = path, .from = from, .to = nameless_file(), .stream = LZMA_STREAM_INIT};
    int code;

    if (unpacking.to == NULL)
        return error_set(
            out_error, FLY_EWRITE,
            "%s: making a temporary file failed: %s; set TMPDIR to a directory that can be written to", path,
            patient_file_cause(errno));
    if (lzma_stream_decoder(&unpacking.stream, memory_max, LZMA_CONCATENATED) != LZMA_OK) {
        fclose(unpacking.to);
        return error_no_memory(out_error);
    }
    code = unpack(&unpacking, out_error);
    lzma_end(&unpacking.stream);
    if (code < 0) {
        fclose(unpacking.to);
        return code;
    }
    file->temporary = unpacking.to;
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", fileno(unpacking.to));
    file->open = file->path;
    return 0;
}

/*
 * Decides by the ending ".xz". FLY_EDATA, with the last line that was read, for a file that ends
 * early or is damaged; FLY_ENOTFOUND, FLY_EREAD, FLY_EWRITE, FLY_ENOMEM.
 */
static int unpacked_open(struct unpacked *file, const char *path, struct fly_error *out_error)
{
    size_t length = strlen(path);
    FILE *from;
    int code;

    *file = (struct unpacked){.open = path};
    if (length < 4 || strcmp(path + length - 3, ".xz") != 0)
        return 0;
    from = patient_file_read(path);
    if (from == NULL)
        return error_set(out_error, errno == ENOENT ? FLY_ENOTFOUND : FLY_EREAD,
                         "%s: opening failed: %s; check the path", path, patient_file_cause(errno));
    code = unpack_to(file, path, from, out_error);
    fclose(from);
    return code;
}

static void unpacked_close(struct unpacked *file)
{
    if (file->temporary != NULL)
        fclose(file->temporary);
    file->temporary = NULL;
}

enum { SEEDS_MAX = 100000, MEMORY_MAX = 256 << 20 };

static const struct cli_option options[] = {
    {.name = "groups",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .key = "sim.groups",
     .help =
         "CSV file of groups, also compressed as .xz: group, start_time, end_time, dataset, runtime_ratio."},
    SIM_OPTIONS_GPU,
    SIM_OPTION_JOBS,
    SIM_OPTIONS_POLICY,
    {.name = "seeds",
     .type = CLI_TEXT,
     .placeholder = "LIST",
     .default_text = "1",
     .key = "sim.group_seeds",
     .help =
         "Seeds, as 1-20. With the generator numpy, if not given, each group's seed is the Adler-32 of its "
         "name."},
    SIM_OPTION_ETA,
    SIM_OPTIONS_SEARCH,
    SIM_OPTION_PROFILE_WINDOW,
    SIM_OPTIONS_RUN,
};

/* The command's data while it runs. */
struct sim_group {
    struct arena arena;
    struct unpacked unpacked;
    struct group_file file;
    struct sim_set workloads;
    size_t *group_workloads;
    struct sim_policies policies;
    struct policy_parameters parameters;
    uint32_t *seeds;
    size_t seed_count;
    struct sim_run run;
};

static bool seeds_from_names(const struct cli_call *call)
{
    return cli_choice(call, "generator") == GENERATOR_NUMPY && !cli_given(call, "seeds");
}

static int read_seeds(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = number_list_option(call, "seeds", 0, SEEDS_MAX, &sim->arena, &sim->seeds, &sim->seed_count,
                                  out_error);

    if (code == 0 && seeds_from_names(call))
        sim->seed_count = 1;
    return code;
}

static int show(const struct sim_group *sim, const struct cli_call *call, const struct group_plan *plan,
                const struct group_result *results, struct fly_error *out_error)
{
    struct table *table = group_rows_of(plan, sim->workloads.count, results);
    int code = cli_emit_table(call, table, out_error);

    table_free(table);
    return code;
}

static int simulate(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct group_plan plan = {
        .file = &sim->file,
        .workloads = sim->workloads.items,
        .group_workloads = sim->group_workloads,
        .policies = sim->policies.items,
        .policy_count = sim->policies.count,
        .seeds = sim->seeds,
        .seed_count = sim->seed_count,
        .seed_from_name = seeds_from_names(call),
        .parameters = sim->parameters,
        .threads = thread_option(call),
        .thread_begun = plugin_crash_thread,
        .tries = cli_set(call, "tries") ? sim_run_sink : NULL,
        .tries_context = &sim->run,
        .progress = sim_run_progress,
        .progress_context = &sim->run,
    };
    struct group_result *results = NULL;
    int code = sim_run_begin(&sim->run, call, try_header_of_groups,
                             (uint64_t)sim->file.count * plan.policy_count * plan.seed_count, out_error);

    if (code < 0)
        return code;
    code = group_campaign_run(&plan, &results, out_error);
    code = sim_run_end(&sim->run, code, out_error);
    if (code == 0)
        code = show(sim, call, &plan, results, out_error);
    free(results);
    return code;
}

static int run_with_traces(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = sim_workloads_open_traces(&sim->workloads, call, out_error);

    if (code < 0)
        return code;
    code = group_set_open(&sim->workloads, &sim->file, &sim->arena, &sim->group_workloads, out_error);
    if (code == 0)
        code = policy_options_open(&sim->policies, &sim->parameters, call, out_error);
    if (code == 0) {
        code = simulate(sim, call, out_error);
        sim_policies_close(&sim->policies);
    }
    sim_set_close(&sim->workloads);
    return code;
}

static int sim_group_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct sim_group sim; /* large; the program runs one command */
    const char *groups = cli_text(call, "groups");
    int code;

    if (groups == NULL)
        return cli_usage(call, out_error, "no groups given; name their file with --groups FILE");
    arena_init(&sim.arena, MEMORY_MAX);
    code = read_seeds(&sim, call, out_error);
    if (code == 0)
        code = unpacked_open(&sim.unpacked, groups, out_error);
    if (code == 0)
        code = group_file_open(&sim.file, sim.unpacked.open, groups, out_error);
    if (code == 0) {
        code = run_with_traces(&sim, call, out_error);
        group_file_close(&sim.file);
    }
    unpacked_close(&sim.unpacked);
    arena_deinit(&sim.arena);
    return code;
}

const struct cli_command cmd_sim_group = {
    .words = "sim group",
    .summary = "replay groups of overlapping submissions",
    .paragraphs = {"Replays groups of overlapping submissions of recurring jobs, all groups in parallel. A "
                   "group is one "
                   "recurring job; while one of its trials runs, further submissions take the best choice "
                   "known so far. A "
                   "trial that does not reach its target is submitted again at its end.",
                   "The file has the columns group, start_time, end_time, dataset and runtime_ratio, the "
                   "rows of a group "
                   "together and by start_time. A dataset names one of the known jobs. Energy and time of a "
                   "submission are "
                   "the trace's times its runtime_ratio; what the policy learns is not scaled.",
                   "Compares the sums over all groups with those of the default. The tries file has the "
                   "columns of flyball sim "
                   "job with group after gpu; recurrence is the submission, and rows stand in the order in "
                   "which trials end."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball sim group --groups groups.csv.xz --traces traces --gpu v100",
                  "replay with the published search"},
                 {"flyball sim make-groups groups.csv --submissions 100000", "make up a file to try"}},
    .outputs = {&group_rows_quantities},
    .run = sim_group_run,
};
