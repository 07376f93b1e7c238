/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/words.h"
#include "cli/frame/call.h"
#include "cli/kit/text_layout.h"
#include "cli/machine/doctor.h"
#include "cli/machine/machine_commands.h"
#include "cli/machine/machine_look.h"
#include "cli/options/open_devices.h"
#include "cli/views/reading_view.h"

enum { FINDING_MAX = 4096, TOPIC_WIDTH = 8, STATE_WIDTH = 10, LINE_WIDTH = 100 };

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, all of this machine."),
};

static const struct meaning columns[] = {
    {"topic", "topic", MEANING_TEXT, 0, NULL, MEANING_FACT, "What was looked at."},
    {"state", "state", MEANING_TEXT, 0, NULL, MEANING_FACT, "How it stands there."},
    {"subject", "subject", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "The driver, device or file that it is about."},
    {"finding", "finding", MEANING_TEXT, 0, NULL, MEANING_FACT, "What was found."},
    {"remedy", "remedy", MEANING_TEXT, 0, NULL, MEANING_FACT, "The command or setting that changes it."},
};
static const struct quantities quantities = {"a finding", QUANTITIES(columns)};

/* Receives findings: as rows for programs, or as text for people. */
struct record {
    const struct cli_call *call;
    const char *wanted; /* the topic */
    struct table *table;
    struct buffer text; /* for people */
    bool all;           /* also of what works, for people */
    bool left_out;      /* something of that was found */
};

/* Whether a finding needs nobody's attention. */
static bool is_fine(const char *state)
{
    static const char *const fine[] = {"readable", "works", "absent", "settable"};

    return word_index(state, fine, sizeof fine / sizeof fine[0]) >= 0;
}

static void add(struct record *record, const char *topic, const char *state, const char *subject,
                const char *finding, const char *remedy)
{
    size_t indent = TOPIC_WIDTH + STATE_WIDTH;
    char whole[2 * FINDING_MAX];

    if (strcmp(record->wanted, topic) != 0)
        return;
    table_add_text(record->table, topic);
    table_add_text(record->table, state);
    table_add_text(record->table, subject);
    table_add_text(record->table, finding);
    if (remedy != NULL)
        table_add_text(record->table, remedy);
    else
        table_add_unavailable(record->table, "-", "there is nothing to mend");
    if (!record->all && remedy == NULL && is_fine(state)) {
        record->left_out = true;
        return;
    }
    buffer_printf(&record->text, "%-*s%-*s", TOPIC_WIDTH, topic, STATE_WIDTH, state);
    snprintf(whole, sizeof whole, "%s%s%s", subject, subject[0] != '\0' ? ": " : "", finding);
    text_wrap(&record->text, whole, indent, indent, LINE_WIDTH);
    /* Not wrapped, so that the user can copy it. */
    if (remedy != NULL)
        buffer_printf(&record->text, "%*s$ %s\n", (int)indent, "", remedy);
}

/* Returns whether the state belongs to quantities that are listed together. */
static bool is_denied(enum reading_state state)
{
    return state != READING_OK && state != READING_UNSUPPORTED && state != READING_NOT_READ;
}

/* Appends the titles of the quantities with a state. */
static void put_titles(const struct device_reading *reading, const char *heading, enum reading_state state,
                       struct buffer *out)
{
    const char *separator = heading;

    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if (reading->values[i].state != state)
            continue;
        buffer_printf(out, "%s%s", separator, quantity_facts[i].title);
        separator = "; ";
    }
}

/*
 * Describes what a device answers, what it does not have, and what it refuses, with the reason.
 * Returns whether there is anything to say.
 */
static bool describe_reading(const struct device_reading *reading, enum device_kind kind, struct buffer *out)
{
    char reason[READING_REASON_MAX];
    bool denied = false;

    put_titles(reading, "readable: ", READING_OK, out);
    if (out->length == 0)
        buffer_puts(out, "nothing is readable");
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if (!is_denied(reading->values[i].state))
            continue;
        denied = true;
        buffer_printf(out, ". Not %s: %s", quantity_facts[i].title,
                      reading_reason(&reading->values[i], reason));
    }
    /* Most of the list applies only to GPUs. */
    if (kind == DEVICE_GPU)
        put_titles(reading, ". Not offered: ", READING_UNSUPPORTED, out);
    return denied;
}

static void add_device(struct record *record, const struct device *device)
{
    struct device_reading reading;
    struct buffer finding;
    char subject[DEVICE_TEXT_MAX + DEVICE_LABEL_MAX + 32];
    char label[DEVICE_LABEL_MAX];
    bool denied;

    device_read(device, &clock_real, QUANTITY_ALL, &reading);
    buffer_init(&finding, FINDING_MAX);
    denied = describe_reading(&reading, device->info.kind, &finding);
    device_label(&device->info, label);
    snprintf(subject, sizeof subject, "%s %u (%s%s%s)", device_kind_name(device->info.kind),
             device->info.index, device->info.name[0] != '\0' ? device->info.name : "of unknown model",
             label[0] != '\0' ? ", " : "", label);
    add(record, doctor_topic_of(device), denied ? "partly" : "readable", subject, finding.data, NULL);
    buffer_deinit(&finding);
}

static void add_ailments(struct record *record, const struct doctor_facts *facts)
{
    for (const struct ailment *ailment = doctor_ailments; ailment->topic != NULL; ailment++) {
        if (ailment->holds(facts))
            add(record, ailment->topic, ailment->severity == SEVERITY_PROBLEM ? "problem" : "note", "",
                ailment->finding, ailment->remedy);
    }
}

/* Returns "absent" for what is not there, "denied" or "broken". */
static const char *state_of_failure(int code)
{
    return code == FLY_EUNSUPPORTED ? "absent" : code == FLY_EPERM ? "denied" : "broken";
}

/* Adds each back end's own reason why it offers nothing. */
static void add_backends(struct record *record, const struct device_list *list)
{
    for (size_t i = 0; i < list->report_count; i++) {
        const struct backend_report *report = &list->reports[i];
        struct device of = {.backend = report->backend, .info.kind = report->backend->kind};

        if (report->error.code < 0)
            add(record, doctor_topic_of(&of), state_of_failure(report->error.code), report->backend->title,
                report->error.text, NULL);
        else
            add(record, doctor_topic_of(&of), "works", report->backend->title,
                report->found > 0 ? "it has devices here" : "it has no device here", NULL);
    }
}

/* Adds everything about the topic that is wanted. */
static void add_topic(struct record *record, const struct device_list *list, const struct doctor_facts *facts)
{
    char settable[DOCTOR_SETTABLE_MAX];
    const char *remedy;

    for (size_t i = 0; i < list->count; i++)
        add_device(record, &list->devices[i]);
    remedy = doctor_settable(facts, settable);
    add(record, "nvidia", "settable", "", settable, remedy);
    add_backends(record, list);
    add_ailments(record, facts);
}

/* For people without a GPU here: writes what works anyway. */
static void put_what_next(struct buffer *out)
{
    static const char *const rows[][2] = {
        {"trainings on an emulated GPU, and what is saved", "flyball demo"},
        {"your own program on emulated GPUs, to try every command",
         "flyball-emulator run -- flyball run -- python train.py"},
        {"recurring jobs, simulated", "flyball sim make-trace trace && flyball sim job --traces trace --jobs "
                                      "trace/jobs.ini --gpu made-up"},
    };

    buffer_puts(out, "\nThere is no GPU here. What you can do without one:\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        buffer_printf(out, "  %s\n  $ %s\n", rows[i][0], rows[i][1]);
}

static int examine(struct record *record, const struct device_list *list, struct fly_error *out_error)
{
    const char *wanted = cli_operand(record->call, 0);
    const struct facts *played = facts_played(list);
    struct machine_texts texts;
    struct facts_machine machine;
    struct site site;
    struct doctor_facts facts;
    char first[DOCTOR_SETTABLE_MAX];
    int result;

    if (played == NULL)
        machine_look(cli_text(record->call, "sysfs-root"), &texts, &machine);
    doctor_look(list, played != NULL ? &played->machine : &machine, &facts);
    if (played == NULL) {
        doctor_look_outside(list, &facts);
        site_init(NULL, &site);
        doctor_ask_daemon(list, &site, &facts);
    }
    record->all = wanted != NULL || cli_flag(record->call, "verbose");
    if (wanted == NULL) {
        doctor_first(&facts, first);
        buffer_printf(&record->text, "%s\n\n", first);
    }
    for (size_t i = 0; doctor_topics[i] != NULL; i++) {
        record->wanted = doctor_topics[i];
        if (wanted == NULL || strcmp(wanted, doctor_topics[i]) == 0)
            add_topic(record, list, &facts);
    }
    if (record->left_out)
        buffer_printf(&record->text, "Nothing else needs mending. More: flyball doctor -v\n");
    if (facts.gpus == 0)
        put_what_next(&record->text);
    if (cli_format(record->call) == TABLE_FORMAT_TABLE)
        result = cli_emit_text(record->call, record->text.data, out_error);
    else
        result = cli_emit_table(record->call, record->table, out_error);
    if (result < 0 || facts.anything)
        return result;
    return error_set(
        out_error, FLY_EUNSUPPORTED,
        "no energy and no power can be read on this machine; what would change it, and what works "
        "without, stands above");
}

static int check_topic(const struct cli_call *call, struct fly_error *out_error)
{
    size_t count = 0;

    while (doctor_topics[count] != NULL)
        count++;
    if (cli_operand_count(call) == 0 || word_index(cli_operand(call, 0), doctor_topics, count) >= 0)
        return 0;
    return cli_usage(call, out_error, "unknown topic '%.40s'; there are nvidia, amd, rapl and system",
                     cli_operand(call, 0));
}

static int doctor_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct device_list list; /* large */
    struct record record = {.call = call};
    int result = check_topic(call, out_error);

    if (result == 0)
        result = cli_open_devices_or_facts(call, &list, out_error);
    if (result < 0)
        return result;
    buffer_init(&record.text, 1 << 20);
    record.table = table_new("flyball.doctor/1", columns, quantities.count);
    result = examine(&record, &list, out_error);
    table_free(record.table);
    buffer_deinit(&record.text);
    device_list_close(&list);
    return result;
}

const struct cli_command cmd_doctor = {
    .words = "doctor",
    .summary = "say what can be read here, and what mends the rest",
    .paragraphs =
        {"Says whether this machine can be measured, whether power limits could be set, and what to do. Then "
         "it "
         "lists what needs attention; with -v, or with a topic, it says of every device what can be read, "
         "which drivers are missing or broken and why, and under each problem, behind a '$', the exact "
         "command "
         "that would change it. Nothing is set or tried out but that, as by any command, what a "
         "killed program left is put back; what needs privileges is told from permissions.",
         "The topic nvidia, amd, rapl (CPUs and memory) or system narrows the answer.",
         "Commands that open counters to every user let them observe what others compute (CVE-2020-8694); "
         "the "
         "finding says so."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options_or_facts},
    .operands = "[TOPIC]",
    .operand_maximum = 1,
    .exit_status =
        "0 when some energy or power can be read, whatever else was found; 69 when none can; else as in "
        "flyball(1).",
    .examples = {{"flyball doctor", "look at everything"},
                 {"flyball doctor rapl", "find out why CPUs and memory are not measured"}},
    .outputs = {&quantities},
    .run = doctor_run,
};
