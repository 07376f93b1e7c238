/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for nvidia-smi: its command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "emulator/smi/smi.h"

enum action {
    SUMMARY,
    LIST,
    REPORT,
    QUERY_GPU,
    QUERY_CLOCKS,
    QUERY_PROCESSES,
    MONITOR,
    SETTING,
    HELP,
    FIELDS
};

/* What the command line says. */
struct request {
    enum action action;
    const char *fields, *format, *ids, *sections, *file, *loop, *loop_ms, *count;
    const struct smi_setting *setting;
    const char *value; /* of the setting */
};

/* An option other than a setting: where its value goes, or the action that it alone stands for. */
struct option {
    const char *name, *long_name, *placeholder;
    size_t value; /* offset of a text in struct request */
    enum action action;
    const char *help;
};

#define AT(member) offsetof(struct request, member)

static const struct option options[] = {
    {"-h", "--help", NULL, 0, HELP, "Print this."},
    {"-L", "--list-gpus", NULL, 0, LIST, "List the GPUs with their UUIDs."},
    {"-i", "--id", "LIST", AT(ids), SUMMARY, "Which GPUs: indices, UUIDs or bus ids, separated by commas."},
    {"-f", "--filename", "FILE", AT(file), SUMMARY, "Write there."},
    {"-l", "--loop", "S", AT(loop), SUMMARY, "Answer again every so many seconds; 5 without a number."},
    {"-lms", "--loop-ms", "MS", AT(loop_ms), SUMMARY, "The same in milliseconds."},
    {"-q", "--query", NULL, 0, REPORT, "Print all that is known."},
    {"-d", "--display", "LIST", AT(sections), SUMMARY,
     "With -q only MEMORY, UTILIZATION, ECC, TEMPERATURE, POWER, CLOCK, COMPUTE, PIDS, PERFORMANCE or "
     "SUPPORTED_CLOCKS."},
    {"", "--query-gpu", "LIST", AT(fields), QUERY_GPU, "Print these fields of each GPU."},
    {"", "--query-supported-clocks", "LIST", AT(fields), QUERY_CLOCKS, "Print memory and graphics clocks."},
    {"", "--query-compute-apps", "LIST", AT(fields), QUERY_PROCESSES, "Print the processes at work."},
    {"", "--help-query-gpu", NULL, 0, FIELDS, "Print the fields that --query-gpu knows."},
    {"", "--format", "LIST", AT(format), SUMMARY, "Of these: csv, noheader, nounits; csv must be given."},
};

/* Options of `nvidia-smi pmon`. */
static const struct option monitor_options[] = {
    {"-c", "--count", "N", AT(count), MONITOR, "Answer so often."},
    {"-d", "--delay", "S", AT(loop), MONITOR, "Seconds between answers; 1 without this option."},
    {"-i", "--id", "LIST", AT(ids), MONITOR, "Which GPUs."},
};

static int invalid(const char *argument)
{
    printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n");
    fprintf(stderr, "nvidia-smi (Flyball's emulator): '%s' is not emulated; 'nvidia-smi -h' lists what is\n",
            argument);
    return SMI_INVALID;
}

/* The text of an option's value within the request. */
static const char **place(struct request *request, const struct option *option)
{
    return (const char **)(void *)((char *)request + option->value);
}

static bool is_called(const char *argument, size_t length, const char *name, const char *long_name)
{
    return (strlen(name) == length && strncmp(argument, name, length) == 0) ||
           (strlen(long_name) == length && strncmp(argument, long_name, length) == 0);
}

/*
 * The value of an option: behind its '=', or the next argument. Only the seconds of -l may be left out.
 * Returns NULL when there is none.
 */
static const char *take_value(const char *equals, char ***arguments, bool may_lack)
{
    double number;

    if (equals != NULL)
        return equals + 1;
    if (may_lack && (**arguments == NULL || !number_parse_double(**arguments, &number)))
        return "5";
    return **arguments != NULL ? *(*arguments)++ : NULL;
}

static const struct smi_setting *find_setting(const char *argument, size_t length)
{
    for (const struct smi_setting *setting = smi_settings; setting->option != NULL; setting++) {
        if (is_called(argument, length, setting->option, setting->long_option))
            return setting;
    }
    return NULL;
}

static const struct option *find_option(const struct option *list, size_t count, const char *argument,
                                        size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (is_called(argument, length, list[i].name, list[i].long_name))
            return &list[i];
    }
    return NULL;
}

static int take_setting(struct request *request, const struct smi_setting *setting, const char *argument,
                        const char *equals, char ***arguments)
{
    request->setting = setting;
    request->action = SETTING;
    if (setting->placeholder != NULL)
        request->value = take_value(equals, arguments, false);
    return setting->placeholder != NULL && request->value == NULL ? invalid(argument) : SMI_DONE;
}

static int take_option(struct request *request, const struct option *option, const char *argument,
                       const char *equals, char ***arguments)
{
    const char *value;

    if (option->action != SUMMARY)
        request->action = option->action;
    if (option->placeholder == NULL)
        return SMI_DONE;
    value = take_value(equals, arguments, strcmp(option->name, "-l") == 0);
    if (value == NULL)
        return invalid(argument);
    *place(request, option) = value;
    return SMI_DONE;
}

static int parse(struct request *request, char **arguments)
{
    bool monitor = *arguments != NULL && strcmp(*arguments, "pmon") == 0;
    const struct option *list = monitor ? monitor_options : options;
    size_t count =
        monitor ? sizeof monitor_options / sizeof monitor_options[0] : sizeof options / sizeof options[0];
    int code = SMI_DONE;

    if (monitor) {
        request->action = MONITOR;
        request->loop = "1";
        arguments++;
    }
    while (code == SMI_DONE && *arguments != NULL) {
        const char *argument = *arguments++;
        const char *equals = strchr(argument, '=');
        size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
        const struct smi_setting *setting = monitor ? NULL : find_setting(argument, length);
        const struct option *option = find_option(list, count, argument, length);

        if (setting != NULL)
            code = take_setting(request, setting, argument, equals, &arguments);
        else if (option != NULL)
            code = take_option(request, option, argument, equals, &arguments);
        else
            code = invalid(argument);
    }
    return code;
}

static int parse_format(const char *format, struct smi_call *call)
{
    bool is_csv = false;

    while (format != NULL) {
        size_t length = strcspn(format, ",");

        if (is_called(format, length, "csv", "csv"))
            is_csv = true;
        else if (is_called(format, length, "noheader", "noheader"))
            call->header = false;
        else if (is_called(format, length, "nounits", "nounits"))
            call->units = false;
        else
            return invalid(format);
        format = format[length] == ',' ? format + length + 1 : NULL;
    }
    return is_csv ? SMI_DONE : invalid("a query without --format=csv");
}

static void print_options(const struct option *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("    %-4s %-34s %-7s %s\n", list[i].name, list[i].long_name,
               list[i].placeholder != NULL ? list[i].placeholder : "", list[i].help);
}

static int print_help(void)
{
    printf("NVIDIA System Management Interface -- a stand-in over emulated GPUs (Flyball), no hardware "
           "answers\n\nnvidia-smi [OPTION [VALUE]]...\n\n");
    print_options(options, sizeof options / sizeof options[0]);
    printf("\nSettings; only root may make most of them.\n\n");
    for (const struct smi_setting *setting = smi_settings; setting->option != NULL; setting++)
        printf("    %-4s %-34s %-7s %s\n", setting->option, setting->long_option,
               setting->placeholder != NULL ? setting->placeholder : "", setting->help);
    printf("\nnvidia-smi pmon: the processes at work.\n\n");
    print_options(monitor_options, sizeof monitor_options / sizeof monitor_options[0]);
    return SMI_DONE;
}

static int print_fields(void)
{
    for (const struct smi_field *field = smi_fields; field->name != NULL; field++)
        printf("\"%s\"%s%s%s\n", field->name, field->other != NULL ? " or \"" : "",
               field->other != NULL ? field->other : "", field->other != NULL ? "\"" : "");
    return SMI_DONE;
}

static int answer(const struct smi_call *call, const struct request *request)
{
    switch (request->action) {
    case LIST:
        return smi_list(call);
    case REPORT:
        return smi_report(call, request->sections);
    case QUERY_GPU:
        return smi_query_gpu(call, request->fields);
    case QUERY_CLOCKS:
        return smi_query_clocks(call, request->fields);
    case QUERY_PROCESSES:
        return smi_query_processes(call, request->fields);
    case MONITOR:
        return smi_monitor_processes(call);
    case SETTING:
        return smi_set(call, request->setting, request->value);
    default:
        return smi_summary(call);
    }
}

/* Seconds between answers; 0: answers once. */
static bool read_pause(const struct request *request, double *out_pause_s)
{
    const char *text = request->loop_ms != NULL ? request->loop_ms : request->loop;

    *out_pause_s = 0.0;
    if (text != NULL && (!number_parse_double(text, out_pause_s) || !(*out_pause_s > 0.0)))
        return false;
    if (request->loop_ms != NULL)
        *out_pause_s /= 1e3;
    return true;
}

/* A header is printed once, however many answers follow. */
static int answer_again(struct smi_call *call, const struct request *request)
{
    double pause_s;
    uint64_t left = UINT64_MAX;
    int code;

    if (!read_pause(request, &pause_s))
        return invalid("a loop");
    if (request->count != NULL && !number_parse_u64(request->count, UINT32_MAX, &left))
        return invalid(request->count);
    do {
        struct timespec pause = {.tv_sec = (time_t)pause_s,
                                 .tv_nsec = (long)((pause_s - (double)(time_t)pause_s) * 1e9)};

        code = answer(call, request);
        if (fflush(call->out) != 0)
            return SMI_OTHER;
        call->header = false;
        if (code != SMI_DONE || pause_s <= 0.0 || --left == 0)
            break;
        nanosleep(&pause, NULL);
    } while (true);
    return code;
}

static int open_output(const struct request *request, struct smi_call *call)
{
    call->out = request->file != NULL ? fopen(request->file, "w") : stdout;
    if (call->out != NULL)
        return SMI_DONE;
    printf("Failed to open file '%s': %s\n", request->file, strerror(errno));
    return SMI_OTHER;
}

static int run(const struct request *request)
{
    struct smi_call call = {.header = true, .units = true};
    bool is_query =
        request->action == QUERY_GPU || request->action == QUERY_CLOCKS || request->action == QUERY_PROCESSES;
    int code = is_query ? parse_format(request->format, &call) : SMI_DONE;

    if (code == SMI_DONE)
        code = open_output(request, &call);
    if (code == SMI_DONE)
        code = smi_library_open(&call);
    if (code == SMI_DONE && request->ids != NULL)
        code = smi_select(&call, request->ids);
    if (code == SMI_DONE)
        code = answer_again(&call, request);
    if (call.library != NULL && call.library->nvmlShutdown != NULL)
        call.library->nvmlShutdown();
    if (call.out != NULL && fclose(call.out) != 0 && code == SMI_DONE)
        code = SMI_OTHER;
    return code;
}

int main(int argc, char **argv)
{
    struct request request = {.action = SUMMARY};
    int code = parse(&request, argv + (argc > 0));

    if (code != SMI_DONE)
        return code;
    if (request.action == HELP)
        return print_help();
    return request.action == FIELDS ? print_fields() : run(&request);
}
