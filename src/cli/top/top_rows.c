/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses which GPU, as rows for programs and for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/kit/amount.h"
#include "cli/kit/table_print.h"
#include "cli/top/top.h"
#include "shapes/shape_rows.h"

int top_read(struct top *top, struct fly_error *out_error)
{
    struct top_answer answer;
    struct top_groups groups;
    struct arena arena;
    int code;

    arena_init(&arena, TOP_ANSWER_BYTES);
    code = top_ask(top->daemon, &arena, &answer, out_error);
    if (code == 0)
        code = top_group_make(&answer, &top->wish, &arena, &groups, out_error);
    if (code < 0) {
        arena_deinit(&arena);
        return code;
    }
    top_end(top);
    top->arena = arena;
    top->answer = answer;
    top->groups = groups;
    top->read_unix_s = (double)clock_real.date(clock_real.state).ns * 1e-9;
    return 0;
}

void top_end(struct top *top)
{
    arena_deinit(&top->arena);
}

static const double bytes_per_mib = 1 << 20;

static const char no_process[] = "the row is of no process", differ[] = "its processes differ in it",
                  untold[] = "it has none, or flyballd does not know it", ended[] = "all of it has ended",
                  several[] = "the row is of several processes", apart[] = "not known apart from others'";

const char *top_text_reason(const struct top_group *group, enum top_text text)
{
    if (group->kind != TOP_PROCESS)
        return no_process;
    return group->differs[text] ? differ : untold;
}

/* What a row is of by each key: its text, and how it is written. */
static const struct who {
    enum top_text text;
    const char *format;
} whos[TOP_BYS] = {
    [TOP_BY_PROCESS] = {TOP_TEXT_COMMAND, "%s"},
    [TOP_BY_JOB] = {TOP_TEXT_TRAINING_JOB, "%s"},
    [TOP_BY_POD] = {TOP_TEXT_POD, "%s"},
    [TOP_BY_USER] = {TOP_TEXT_USER, "%s"},
    [TOP_BY_SLURM] = {TOP_TEXT_SLURM_JOB, "job %s"},
};

static const char *const kinds[TOP_KINDS] = {"process", "idle", "shared", "unobserved"};

const char *top_who(const struct top_group *group, enum top_by by, char text[TOP_WHO_MAX],
                    const char **out_reason)
{
    const char *name = group->texts[whos[by].text];
    const char *uid = group->texts[TOP_TEXT_POD_UID], *space = group->texts[TOP_TEXT_NAMESPACE];

    if (group->kind != TOP_PROCESS)
        snprintf(text, TOP_WHO_MAX, "(%s)", kinds[group->kind]);
    else if (by == TOP_BY_USER && name == NULL && !isnan(group->uid))
        snprintf(text, TOP_WHO_MAX, "%.0f", group->uid);
    else if (by == TOP_BY_POD && name == NULL && uid != NULL)
        snprintf(text, TOP_WHO_MAX, "pod %s", uid);
    else if (by == TOP_BY_POD && name != NULL && space != NULL)
        snprintf(text, TOP_WHO_MAX, "%.63s/%.90s", space, name);
    else if (name != NULL)
        snprintf(text, TOP_WHO_MAX, whos[by].format, name);
    else {
        *out_reason = top_text_reason(group, whos[by].text);
        return NULL;
    }
    return text;
}

/* ---- cells ---- */

static void put_time(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)group;
    table_add_real(table, top->read_unix_s);
}

static void put_who(struct table *table, const struct top *top, const struct top_group *group)
{
    char text[TOP_WHO_MAX];
    const char *reason = NULL, *who = top_who(group, top->wish.by, text, &reason);

    if (who != NULL)
        table_add_text(table, who);
    else
        table_add_unavailable(table, "-", reason);
}

static void put_kind(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    table_add_text(table, kinds[group->kind]);
}

static void put_gpus(struct table *table, const struct top *top, const struct top_group *group)
{
    char text[TOP_GPUS_TEXT_MAX];

    (void)top;
    table_add_text(table, top_gpus_text(group, text));
}

static void put_uuid(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    if (group->uuid != NULL)
        table_add_text(table, group->uuid);
    else
        table_add_unavailable(table, "-", "the row is of several GPUs");
}

static void put_whole(struct table *table, double value, const struct top_group *group)
{
    if (!isnan(value))
        table_add_integer(table, (int64_t)value);
    else
        table_add_unavailable(table, "-",
                              group->kind != TOP_PROCESS ? no_process
                              : group->processes > 1     ? several
                                                         : untold);
}

static void put_pid(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    put_whole(table, group->pid, group);
}

static void put_uid(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    put_whole(table, group->uid, group);
}

static void put_started(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    put_whole(table, group->started_unix_ms, group);
}

static void put_processes(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    if (group->kind == TOP_PROCESS)
        table_add_integer(table, (int64_t)group->processes);
    else
        table_add_unavailable(table, "-", no_process);
}

static void put_power(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    table_add_known(table, group->power_w,
                    group->living == 0  ? ended
                    : group->living > 1 ? "the power of some of it is not known"
                                        : apart);
}

static void put_energy(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    table_add_known(table, group->energy_j, apart);
}

static void put_half_width(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    table_add_known(table, group->half_width_j, apart);
}

static void put_duration(struct table *table, const struct top *top, const struct top_group *group)
{
    (void)top;
    table_add_known(table, group->time_s, untold);
}

static void put_memory(struct table *table, const struct top *top, const struct top_group *group)
{
    const char *reason = group->kind != TOP_PROCESS ? no_process
                         : group->living == 0       ? ended
                                                    : "the driver does not say it";

    (void)top;
    table_add_known(table, group->memory_bytes, reason);
}

static void put_memory_mib(struct table *table, const struct top *top, const struct top_group *group)
{
    struct top_group scaled = *group;

    scaled.memory_bytes /= bytes_per_mib;
    put_memory(table, top, &scaled);
}

/* ---- columns ---- */

enum audience { EVERYBODY, PROGRAMS, PEOPLE };

/* Columns of texts are put from `text`; where there is none, it is TOP_TEXTS, by `put`. */
static const struct column {
    struct meaning meaning;
    enum audience audience;
    bool by_process; /* people see it only by process */
    bool sparing;    /* people see it only where some row has it */
    enum top_text text;
    void (*put)(struct table *table, const struct top *top, const struct top_group *group);
} columns[] = {
    {{"time_unix_s", "time", MEANING_REAL, 0, "s", MEANING_GAUGE,
      "When the daemon was asked, in seconds since 1970."},
     PROGRAMS,
     false,
     false,
     TOP_TEXTS,
     put_time},
    {TABLE_SHOWN("who", MEANING_TEXT, 0), PEOPLE, false, false, TOP_TEXTS, put_who},
    {{"kind", "kind", MEANING_TEXT, 0, NULL, MEANING_FACT,
      "What the row is of: process, idle (nobody was there), shared (by processes that cannot be told "
      "apart), unobserved (the daemon did not see who)."},
     PROGRAMS,
     false,
     false,
     TOP_TEXTS,
     put_kind},
    {{"gpus", "GPU", MEANING_TEXT, 0, NULL, MEANING_FACT, "Indices of the row's GPUs, as in 0-3,6."},
     EVERYBODY,
     false,
     false,
     TOP_TEXTS,
     put_gpus},
    {{"uuid", "UUID", MEANING_TEXT, 0, NULL, MEANING_FACT, "UUID of the row's only GPU."},
     PROGRAMS,
     false,
     false,
     TOP_TEXTS,
     put_uuid},
    {{"pid", "PID", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Number of the process, as the machine sees it."},
     EVERYBODY,
     true,
     false,
     TOP_TEXTS,
     put_pid},
    {{"uid", "UID", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Number of its user, as the machine sees it."},
     PROGRAMS,
     false,
     false,
     TOP_TEXTS,
     put_uid},
    {{"user", "user", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of its user."},
     EVERYBODY,
     true,
     false,
     TOP_TEXT_USER,
     NULL},
    {{"command", "command", MEANING_TEXT, 0, NULL, MEANING_FACT,
      "Name of its program, cut to 15 letters by the kernel."},
     PROGRAMS,
     false,
     false,
     TOP_TEXT_COMMAND,
     NULL},
    {{"training_job", "job", MEANING_TEXT, 0, NULL, MEANING_FACT,
      "Recurring job that the process says it trains, in FLYBALL_JOB_NAME."},
     EVERYBODY,
     true,
     true,
     TOP_TEXT_TRAINING_JOB,
     NULL},
    {{"slurm_job", "Slurm job", MEANING_TEXT, 0, NULL, MEANING_FACT, "Number of its Slurm job."},
     EVERYBODY,
     true,
     true,
     TOP_TEXT_SLURM_JOB,
     NULL},
    {{"slurm_step", "step", MEANING_TEXT, 0, NULL, MEANING_FACT, "Step of that job."},
     PROGRAMS,
     false,
     false,
     TOP_TEXT_SLURM_STEP,
     NULL},
    {{"pod_namespace", "namespace", MEANING_TEXT, 0, NULL, MEANING_FACT, "Namespace of its pod."},
     EVERYBODY,
     true,
     true,
     TOP_TEXT_NAMESPACE,
     NULL},
    {{"pod", "pod", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of its Kubernetes pod."},
     EVERYBODY,
     true,
     true,
     TOP_TEXT_POD,
     NULL},
    {{"pod_uid", "pod UID", MEANING_TEXT, 0, NULL, MEANING_FACT, "UID of that pod."},
     PROGRAMS,
     false,
     false,
     TOP_TEXT_POD_UID,
     NULL},
    {{"container", "container", MEANING_TEXT, 0, NULL, MEANING_FACT, "The pod's name for its container."},
     PROGRAMS,
     false,
     false,
     TOP_TEXT_CONTAINER,
     NULL},
    {{"container_id", "container id", MEANING_TEXT, 0, NULL, MEANING_FACT, "Id of its innermost container."},
     PROGRAMS,
     false,
     false,
     TOP_TEXT_CONTAINER_ID,
     NULL},
    {{"runtime", "runtime", MEANING_TEXT, 0, NULL, MEANING_FACT,
      "What runs it: docker, containerd, crio, podman, container, kubernetes, slurm, systemd, none."},
     PROGRAMS,
     false,
     false,
     TOP_TEXT_RUNTIME,
     NULL},
    {{"cgroup", "cgroup", MEANING_TEXT, 0, NULL, MEANING_FACT, "Path of its control group."},
     PROGRAMS,
     false,
     false,
     TOP_TEXT_CGROUP,
     NULL},
    {{"started_unix_ms", "started", MEANING_WHOLE, 0, "ms", MEANING_FACT,
      "When it was first seen on the GPU, in milliseconds since 1970."},
     PROGRAMS,
     false,
     false,
     TOP_TEXTS,
     put_started},
    {{"processes", "processes", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Rows of processes that are together in this one; a process on two GPUs has two."},
     PROGRAMS,
     false,
     false,
     TOP_TEXTS,
     put_processes},
    {{"power_w", "power (W)", MEANING_REAL, 1, "W", MEANING_GAUGE,
      "Power attributed to it in the last interval."},
     EVERYBODY,
     false,
     false,
     TOP_TEXTS,
     put_power},
    {{"energy_j", "energy (J)", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Energy attributed to it, of all that is on record; without what is not known apart from others'."},
     EVERYBODY,
     false,
     false,
     TOP_TEXTS,
     put_energy},
    {{"half_width_j", "+/- (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "Bound of that energy's error."},
     EVERYBODY,
     false,
     false,
     TOP_TEXTS,
     put_half_width},
    {{"time_s", "GPU time (s)", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time for which it was on its GPUs, added up over them."},
     EVERYBODY,
     false,
     false,
     TOP_TEXTS,
     put_duration},
    {TABLE_SHOWN("memory (MiB)", MEANING_REAL, 0), PEOPLE, true, false, TOP_TEXTS, put_memory_mib},
    {{"memory_bytes", "memory (B)", MEANING_REAL, 0, "B", MEANING_GAUGE,
      "Memory of the GPUs that it has now."},
     PROGRAMS,
     false,
     false,
     TOP_TEXTS,
     put_memory},
};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

const struct quantities top_quantities = {"a process, or others, on the GPUs of a machine",
                                          QUANTITIES_IN(columns, meaning)};

static bool some_has(const struct top *top, enum top_text text)
{
    for (size_t i = 0; i < top->groups.count; i++)
        if (top->groups.groups[i].texts[text] != NULL)
            return true;
    return false;
}

static bool is_shown(const struct top *top, const struct column *column, bool people)
{
    if (!people)
        return column->audience != PEOPLE;
    if (column->audience == PROGRAMS || (column->by_process && top->wish.by != TOP_BY_PROCESS))
        return false;
    return !column->sparing || some_has(top, column->text);
}

static void put_cell(struct table *table, const struct top *top, const struct column *column,
                     const struct top_group *group)
{
    if (column->put != NULL)
        column->put(table, top, group);
    else if (group->texts[column->text] != NULL)
        table_add_text(table, group->texts[column->text]);
    else
        table_add_unavailable(table, "-", top_text_reason(group, column->text));
}

/* `out_meanings` must live as long as the table. */
static struct table *make_table(const struct top *top, bool people, struct meaning out_meanings[COLUMNS])
{
    const struct column *shown[COLUMNS];
    size_t count = 0;
    struct table *table;

    for (size_t i = 0; i < COLUMNS; i++)
        if (is_shown(top, &columns[i], people)) {
            shown[count] = &columns[i];
            out_meanings[count++] = columns[i].meaning;
        }
    table = table_new("flyball.top/1", out_meanings, count);
    for (size_t i = 0; i < top->groups.count; i++)
        for (size_t c = 0; c < count; c++)
            put_cell(table, top, shown[c], &top->groups.groups[i]);
    return table;
}

/* ---- output ---- */

#define KNOWN(member)                                                                                    \
    {                                                                                                    \
        SHAPE_AT_AS(#member, top_gpu, figures.member), SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_UNKNOWN \
    }
#define TEXT(member)                                                                                   \
    {                                                                                                  \
        SHAPE_AT(top_gpu, member), SHAPE_IS_TEXT(UINT32_MAX), .null = SHAPE_OR_NULL, .any_bytes = true \
    }

static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(top_gpu, index), SHAPE_IS_U64(0, UINT32_MAX)},
    TEXT(uuid),
    TEXT(name),
    KNOWN(power_w),
    KNOWN(power_limit_w),
    KNOWN(temperature_c),
    KNOWN(utilization_percent),
};

static const struct shape shape_gpu = {SHAPE_OF(top_gpu, gpu_rows)};

const char *top_sentence(const struct top *top, char text[TOP_SENTENCE_MAX])
{
    const struct top_answer *answer = &top->answer;
    char power[AMOUNT_MAX];
    double power_w = 0;
    size_t held = 0, silent = 0, unsaid = 0;
    int length;

    for (size_t i = 0; i < answer->gpu_count; i++) {
        silent += isnan(answer->gpus[i].figures.power_w);
        power_w += isnan(answer->gpus[i].figures.power_w) ? 0 : answer->gpus[i].figures.power_w;
        unsaid += isnan(answer->gpus[i].leases);
        held += answer->gpus[i].leases > 0;
    }
    length =
        snprintf(text, TOP_SENTENCE_MAX, "%zu GPU%s", answer->gpu_count, answer->gpu_count == 1 ? "" : "s");
    if (answer->gpu_count == 0)
        return text;
    if (silent < answer->gpu_count)
        length += snprintf(text + length, TOP_SENTENCE_MAX - (size_t)length, ", %s now",
                           amount_power(power_w, power));
    if (silent > 0)
        length += snprintf(text + length, TOP_SENTENCE_MAX - (size_t)length, ", the power of %zu not known",
                           silent);
    if (unsaid > 0)
        snprintf(text + length, TOP_SENTENCE_MAX - (size_t)length, ", whether limits are held not known");
    else
        snprintf(text + length, TOP_SENTENCE_MAX - (size_t)length, ", limits or clocks of %zu held by leases",
                 held);
    return text;
}

static int put_hidden(const struct top *top, struct fly_error *out_error)
{
    char text[TOP_SENTENCE_MAX];

    if (top->groups.hidden == 0)
        return 0;
    snprintf(text, sizeof text, "\n%zu that ended left out, --all shows them\n", top->groups.hidden);
    return cli_emit_text(top->call, text, out_error);
}

int top_put_table(const struct top *top, struct fly_error *out_error)
{
    struct meaning meanings[COLUMNS];
    bool people = cli_format(top->call) == TABLE_FORMAT_TABLE;
    struct table *table = make_table(top, people, meanings);
    char sentence[TOP_SENTENCE_MAX], text[TOP_SENTENCE_MAX + 2];
    int code;

    table_member(table, "by", json_string(top_bys[top->wish.by]));
    table_member(table, "ended_left_out", json_integer((json_int_t)top->groups.hidden));
    table_member(table, "gpus", shape_tell_list(&shape_gpu, top->answer.gpus, top->answer.gpu_count));
    snprintf(text, sizeof text, "%s\n\n", top_sentence(top, sentence));
    code = people ? cli_emit_text(top->call, text, out_error) : 0;
    if (code == 0)
        code = cli_emit_table(top->call, table, out_error);
    table_free(table);
    return code == 0 && people ? put_hidden(top, out_error) : code;
}

int top_put_lines(const struct top *top, bool heading, struct fly_error *out_error)
{
    struct meaning meanings[COLUMNS];
    struct table *table = make_table(top, false, meanings);
    bool json = cli_format(top->call) == TABLE_FORMAT_JSON;
    struct buffer bytes;
    int code;

    buffer_init(&bytes, TABLE_OUTPUT_MAX);
    code = table_print_lines(table, json ? TABLE_FORMAT_JSON : TABLE_FORMAT_CSV, heading, &bytes, out_error);
    if (code == 0)
        code = table_put(bytes.data, bytes.length, cli_out(top->call), "standard output", out_error);
    buffer_deinit(&bytes);
    table_free(table);
    return code;
}
