/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/power/power_turning.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/options/knob_options.h"
#include "device/device_meanings.h"

/* Keeps the GPUs of the open list. */
static int take(const struct cli_call *call, struct power_gpus *gpus, struct fly_error *out_error)
{
    gpus->count = 0;
    for (size_t i = 0; i < gpus->list.count; i++) {
        if (gpus->list.devices[i].info.kind == DEVICE_GPU)
            gpus->devices[gpus->count++] = &gpus->list.devices[i];
    }
    gpus->options = cli_knob_options(call, "flyball power", gpus->readonly_path);
    if (gpus->count > 0)
        return 0;
    if (gpus->hidden[0] != '\0')
        error_set(out_error, FLY_EUNSUPPORTED, "there is no GPU: %s; name some with -i", gpus->hidden);
    else
        error_set(out_error, FLY_EUNSUPPORTED,
                  "there is no GPU whose power could be limited; 'flyball doctor' says why");
    device_list_close(&gpus->list);
    return FLY_EUNSUPPORTED;
}

int power_gpus_open(const struct cli_call *call, enum gpus_without_choice without, enum leftovers leftovers,
                    struct power_gpus *out_gpus, struct fly_error *out_error)
{
    int result = cli_open_devices_and(call, without, leftovers, &out_gpus->list, out_gpus->hidden, out_error);

    return result < 0 ? result : take(call, out_gpus, out_error);
}

int power_gpus_open_or_facts(const struct cli_call *call, struct power_gpus *out_gpus,
                             struct fly_error *out_error)
{
    int result = cli_open_devices_or_facts(call, &out_gpus->list, out_error);

    out_gpus->hidden[0] = '\0';
    return result < 0 ? result : take(call, out_gpus, out_error);
}

void power_gpus_close(struct power_gpus *gpus)
{
    device_list_close(&gpus->list);
}

static char *join(const struct power_gpus *gpus, const bool *chosen, const char *start, const char *between,
                  char text[POWER_NAMES_MAX])
{
    size_t length = (size_t)snprintf(text, POWER_NAMES_MAX, "%s", start);
    const char *before = "";

    for (size_t i = 0; i < gpus->count && length < POWER_NAMES_MAX; i++) {
        if (chosen != NULL && !chosen[i])
            continue;
        length += (size_t)snprintf(text + length, POWER_NAMES_MAX - length, "%s%u", before,
                                   gpus->devices[i]->info.index);
        before = between;
    }
    return text;
}

char *power_gpus_names(const struct power_gpus *gpus, const bool *chosen, char text[POWER_NAMES_MAX])
{
    return join(gpus, chosen, "GPU ", ", ", text);
}

char *power_gpus_list(const struct power_gpus *gpus, const bool *chosen, char text[POWER_NAMES_MAX])
{
    return join(gpus, chosen, "", ",", text);
}

int power_refused(const struct cli_call *call, int code, const struct fly_error *error)
{
    if (code != FLY_ESTATE)
        return code;
    cli_say(call, error->text);
    cli_exit_with(call, POWER_STATUS_IN_USE);
    return 0;
}

char *power_limit_text(int64_t limit_mw, char text[POWER_LIMIT_TEXT_MAX])
{
    if (limit_mw <= 0)
        snprintf(text, POWER_LIMIT_TEXT_MAX, "an unknown limit");
    else
        snprintf(text, POWER_LIMIT_TEXT_MAX, "%.10g W", (double)limit_mw / 1e3);
    return text;
}

void power_gpus_add_limit(struct table *table, int64_t limit_mw, const char *reason)
{
    if (limit_mw > 0)
        table_add_real(table, (double)limit_mw / 1e3);
    else
        table_add_unavailable(table, "-", reason);
}

const double power_check_s = 0.4;

/* Finds each GPU's limit: a share of its own highest limit, or the watts as given. */
static int find_limits(const struct power_wish *wish, struct power_turning *turning,
                       struct fly_error *out_error)
{
    for (size_t i = 0; i < turning->gpus.count; i++) {
        const struct device *gpu = turning->gpus.devices[i];
        struct device_reading reading;
        const struct reading *highest = &reading.values[QUANTITY_POWER_LIMIT_MAX];

        device_read(gpu, &clock_real, QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX), &reading);
        if (wish->share > 0 && highest->state != READING_OK)
            return error_set(out_error, highest->state == READING_UNSUPPORTED ? FLY_EUNSUPPORTED : FLY_EREAD,
                             "GPU %u: its highest limit is not known: %s; give the limit in watts",
                             gpu->info.index, reading_state_clause(highest->state));
        turning->limits_mw[i] = power_wish_limit_mw(wish, highest->value);
    }
    return 0;
}

/* Writes the command that would set what was refused. */
static void write_remedy(const struct cli_call *call, const struct power_turning *turning,
                         const struct power_request *request, char *text, size_t bytes)
{
    const char *limit = cli_operand(call, 0);
    char list[POWER_NAMES_MAX], profiles[WORKLOAD_TEXT_MAX] = "";

    power_gpus_list(&turning->gpus, NULL, list);
    if (request != NULL && request->workloads != NULL)
        workload_text(request->workloads, profiles);
    if (request == NULL)
        snprintf(text, bytes, "sudo flyball power reset -i %.150s", list);
    else
        snprintf(text, bytes, "sudo flyball power set%s%s%s%.100s%s%s -i %.150s", limit != NULL ? " " : "",
                 limit != NULL ? limit : "", profiles[0] != '\0' ? " --profile " : "", profiles,
                 request->level != KNOB_NO_LEVEL ? " --level " : "",
                 request->level != KNOB_NO_LEVEL ? cli_text(call, "level") : "", list);
}

/* A driver refuses one GPU; the remedy is one command for all of them. */
static int without_permission(const struct cli_call *call, const struct power_turning *turning,
                              const struct power_request *request, struct fly_error *out_error)
{
    char names[POWER_NAMES_MAX], remedy[POWER_NAMES_MAX];
    bool limit = request == NULL || request->limit != NULL;
    const char *what = limit                        ? "power limit"
                       : request->workloads != NULL ? "workload profiles"
                                                    : "performance level";

    power_gpus_names(&turning->gpus, NULL, names);
    write_remedy(call, turning, request, remedy, sizeof remedy);
    return error_set(out_error, FLY_EPERM,
                     "the %s of %.150s %s not set: its driver lets root alone set it; run '%.220s'%s", what,
                     names, limit || request->workloads == NULL ? "is" : "are", remedy,
                     request != NULL ? ", which sets it to stay" : "");
}

/* Sets what was requested, or the defaults. */
static int turn_as(const struct power_request *request, struct power_turning *turning,
                   struct fly_error *out_error)
{
    const struct workload_set *sets[DEVICES_MAX] = {NULL};
    int64_t levels[DEVICES_MAX];

    if (request == NULL)
        return knob_reset(turning->knob, out_error);
    for (size_t i = 0; i < turning->gpus.count; i++) {
        sets[i] = request->workloads;
        levels[i] = request->level;
    }
    return knob_set_several(turning->knob, turning->limits_mw, sets, levels, out_error);
}

static int turn(const struct cli_call *call, const struct power_request *request,
                struct power_turning *turning, struct fly_error *out_error)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < turning->gpus.count; i++)
        result = knob_may_turn(turning->knob, i, out_error);
    if (result < 0)
        return result;
    result = turn_as(request, turning, out_error);
    /* If the site has its own ways, their message is more helpful. */
    return result == FLY_EPERM && geteuid() != 0 && !site_offers_more(knob_site(turning->knob))
               ? without_permission(call, turning, request, out_error)
               : result;
}

/* A driver enforces no profile that conflicts with one of higher priority. */
static void say_unenforced(const struct cli_call *call, const struct power_turning *turning,
                           const struct workload_set *wanted)
{
    for (size_t i = 0; wanted != NULL && i < turning->gpus.count; i++) {
        char text[WORKLOAD_TEXT_MAX];
        struct workload_set idle;
        struct workloads now;

        if (device_read_workloads(turning->gpus.devices[i], &now) != READING_OK)
            continue;
        idle = workload_without(wanted, &now.enforced);
        if (!workload_is_empty(&idle))
            cli_warn(call, "GPU %u: the driver does not enforce %.200s, which conflicts with another profile",
                     turning->gpus.devices[i]->info.index, workload_text(&idle, text));
    }
}

static void say_repairs(const struct cli_call *call, const struct power_turning *turning)
{
    for (size_t i = 0; i < turning->gpus.count; i++) {
        const struct knob_report *report = knob_report(turning->knob, i);

        if (report->repaired[0] != '\0')
            cli_note(call, "GPU %u: %s", turning->gpus.devices[i]->info.index, report->repaired);
    }
}

/* Names the daemon that set the limits, if it was not the driver. */
static void say_ways(const struct cli_call *call, const struct power_turning *turning)
{
    for (size_t i = 0; i < turning->gpus.count; i++) {
        const struct knob_report *report = knob_report(turning->knob, i);
        char way[SITE_TEXT_MAX];

        if (report->state == KNOB_TURNED && report->way != WAY_DRIVER)
            cli_note(call, "GPU %u: set by %s", turning->gpus.devices[i]->info.index,
                     site_describe(knob_site(turning->knob), report->way, way));
    }
}

/* A board may enforce less than what it was asked for. */
static void say_enforced(const struct cli_call *call, const struct power_turning *turning)
{
    for (size_t i = 0; i < turning->gpus.count; i++) {
        const struct device *gpu = turning->gpus.devices[i];
        const struct knob_report *report = knob_report(turning->knob, i);
        char asked[POWER_LIMIT_TEXT_MAX], enforced[POWER_LIMIT_TEXT_MAX];

        if (report->enforced_mw > 0 && report->set_mw > 0 && report->enforced_mw < report->set_mw)
            cli_warn(call, "GPU %u: enforced at %s, below the %s that were asked for; another limiter binds",
                     gpu->info.index, power_limit_text(report->enforced_mw, enforced),
                     power_limit_text(report->set_mw, asked));
    }
}

int power_turning_begin(const struct cli_call *call, const struct power_request *request, bool kept,
                        struct power_turning *out_turning, struct fly_error *out_error)
{
    struct power_gpus *gpus = &out_turning->gpus;
    int result = power_gpus_open(call, GPUS_VISIBLE, LEFTOVERS_REPAIR, gpus, out_error);

    if (result < 0)
        return result;
    if (gpus->hidden[0] != '\0')
        cli_note(call, "%s", gpus->hidden);
    out_turning->knob = NULL;
    gpus->options.kept = kept;
    memset(out_turning->limits_mw, 0, sizeof out_turning->limits_mw);
    if (request != NULL && request->limit != NULL)
        result = find_limits(request->limit, out_turning, out_error);
    if (result == 0)
        result = knob_open(&gpus->options, gpus->devices, gpus->count, &out_turning->knob, out_error);
    if (result == 0) {
        say_repairs(call, out_turning);
        result = turn(call, request, out_turning, out_error);
    }
    if (result < 0) {
        knob_close(out_turning->knob, NULL);
        power_gpus_close(gpus);
    } else {
        say_ways(call, out_turning);
        say_unenforced(call, out_turning, request != NULL ? request->workloads : NULL);
        say_enforced(call, out_turning);
    }
    return result;
}

bool power_turning_check(const struct cli_call *call, struct power_turning *turning)
{
    struct fly_error error;
    bool stands = false;

    if (knob_check(turning->knob, &error) < 0)
        cli_warn(call, "%s", error.text);
    for (size_t i = 0; i < turning->gpus.count; i++)
        stands = stands || knob_report(turning->knob, i)->state == KNOB_TURNED;
    return stands;
}

static void say_foreign(const struct cli_call *call, const struct device *gpu,
                        const struct knob_report *report)
{
    char limit[POWER_LIMIT_TEXT_MAX], profiles[WORKLOAD_TEXT_MAX];

    if (report->workloads_foreign)
        cli_note(call, "GPU %u: workload profiles %s, as another program set them; left so", gpu->info.index,
                 workload_text(&report->workloads_found, profiles));
    else if (report->level_found != KNOB_NO_LEVEL)
        cli_note(call, "GPU %u: performance level %s, as another program set it; left so", gpu->info.index,
                 device_level_word(report->level_found));
    else
        cli_note(call, "GPU %u: %s, as another program set it; left so", gpu->info.index,
                 power_limit_text(report->found_mw, limit));
}

static void say_back(const struct cli_call *call, const struct device *gpu, const struct knob_report *report)
{
    char limit[POWER_LIMIT_TEXT_MAX], profiles[WORKLOAD_TEXT_MAX];

    switch (report->state) {
    case KNOB_UNTURNED:
        if (report->set_mw != 0)
            cli_note(call, "GPU %u: %s again", gpu->info.index, power_limit_text(report->previous_mw, limit));
        if (report->workloads_asked)
            cli_note(call, "GPU %u: workload profiles %s again", gpu->info.index,
                     workload_text(&report->workloads_before, profiles));
        if (report->level != KNOB_NO_LEVEL)
            cli_note(call, "GPU %u: performance level %s again", gpu->info.index,
                     device_level_word(report->level_before));
        break;
    case KNOB_FOREIGN:
        say_foreign(call, gpu, report);
        break;
    case KNOB_OWED:
        cli_warn(call, "%s", report->error.text);
        break;
    case KNOB_STUCK:
        cli_warn(call, "%s; 'flyball power restore -i %u' tries again", report->error.text, gpu->info.index);
        break;
    default:
        break;
    }
}

int power_turning_end(const struct cli_call *call, struct power_turning *turning, struct fly_error *out_error)
{
    static struct knob_report reports[DEVICES_MAX];
    struct power_gpus *gpus = &turning->gpus;
    int result = 0;

    knob_close(turning->knob, reports);
    for (size_t i = 0; i < gpus->count && !gpus->options.kept; i++) {
        say_back(call, gpus->devices[i], &reports[i]);
        if (reports[i].state == KNOB_STUCK && result == 0)
            result = error_set(out_error, FLY_EREAD, "not every limit could be put back; see above");
    }
    power_gpus_close(gpus);
    return result;
}

static const struct meaning columns[] = {
    DEVICE_INDEX("GPU"),
    DEVICE_NAME,
    DEVICE_UUID,
    {"power_limit_before_w", "before (W)", MEANING_REAL, 1, "W", MEANING_GAUGE,
     "Power limit that stood before."},
    {"power_limit_w", "now (W)", MEANING_REAL, 1, "W", MEANING_GAUGE, "Power limit that stands now."},
    {"power_limit_enforced_w", "enforced (W)", MEANING_REAL, 1, "W", MEANING_GAUGE,
     "Power limit that the board enforces now; it may be lower."},
    {"persistence_mode", "persistence", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Whether persistence mode was 'turned on' for the limit to hold, or is 'unchanged'."},
    {"workload_profiles_before", "profiles before", MEANING_LIST, 0, NULL, MEANING_FACT,
     "Workload power profiles that were requested before."},
    {"workload_profiles", "profiles now", MEANING_LIST, 0, NULL, MEANING_FACT,
     "Workload power profiles that are requested now."},
    {"performance_level_before", "level before", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Performance level that stood before, on AMD's GPUs."},
    {"performance_level", "level now", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Performance level that stands now."},
};

const struct quantities power_turning_quantities = {"a GPU", QUANTITIES(columns)};

enum { PROFILE_COLUMNS = 2, LEVEL_COLUMNS = 2 }; /* the last ones */

static bool any_has_workloads(const struct power_turning *turning)
{
    struct workloads workloads;

    for (size_t i = 0; i < turning->gpus.count; i++) {
        if (device_read_workloads(turning->gpus.devices[i], &workloads) == READING_OK)
            return true;
    }
    return false;
}

static void add_workloads(struct table *table, const struct device *gpu, const struct knob_report *report)
{
    char text[WORKLOAD_TEXT_MAX];
    struct workloads now;
    enum reading_state state = device_read_workloads(gpu, &now);

    if (state == READING_OK) {
        table_add_list(table, workload_list(&report->workloads_before, text));
        table_add_list(table, workload_list(&now.requested, text));
    } else {
        table_add_unavailable(table, "-", reading_state_clause(state));
        table_add_unavailable(table, "-", reading_state_clause(state));
    }
}

static bool any_has_level(const struct power_turning *turning)
{
    int64_t level;

    for (size_t i = 0; i < turning->gpus.count; i++) {
        if (device_read_level(turning->gpus.devices[i], &level) == READING_OK)
            return true;
    }
    return false;
}

static void add_level(struct table *table, const struct device *gpu, const struct knob_report *report)
{
    int64_t now;
    enum reading_state state = device_read_level(gpu, &now);

    if (state == READING_OK) {
        table_add_text(table, device_level_word(report->level_before));
        table_add_text(table, device_level_word(now));
    } else {
        table_add_unavailable(table, "-", reading_state_clause(state));
        table_add_unavailable(table, "-", reading_state_clause(state));
    }
}

/* People on machines without levels or profiles need no word about them. */
static size_t columns_shown(const struct cli_call *call, const struct power_turning *turning)
{
    if (cli_format(call) != TABLE_FORMAT_TABLE || any_has_level(turning))
        return power_turning_quantities.count;
    return power_turning_quantities.count - LEVEL_COLUMNS -
           (any_has_workloads(turning) ? 0 : PROFILE_COLUMNS);
}

int power_turning_emit(const struct cli_call *call, const struct power_turning *turning, const char *schema,
                       const char *put_back, struct fly_error *out_error)
{
    size_t shown = columns_shown(call, turning);
    struct table *table = table_new(schema, columns, shown);
    int result;

    table_member(table, "put_back", put_back != NULL ? json_string(put_back) : json_null());
    for (size_t i = 0; i < turning->gpus.count; i++) {
        const struct device_info *info = &turning->gpus.devices[i]->info;
        const struct knob_report *report = knob_report(turning->knob, i);

        table_add_integer(table, info->index);
        table_add_text(table, info->name);
        table_add_text(table, info->uuid);
        power_gpus_add_limit(table, report->previous_mw, "the driver does not say");
        power_gpus_add_limit(table, report->set_mw != 0 ? report->set_mw : report->previous_mw,
                             "the driver does not say what it made of it");
        power_gpus_add_limit(table, report->enforced_mw, "the driver does not say what it enforces");
        table_add_text(table, report->persistence_turned ? "turned on" : "unchanged");
        if (shown >= power_turning_quantities.count - LEVEL_COLUMNS)
            add_workloads(table, turning->gpus.devices[i], report);
        if (shown == power_turning_quantities.count)
            add_level(table, turning->gpus.devices[i], report);
    }
    result = cli_emit_table(call, table, out_error);
    table_free(table);
    fflush(cli_out(call));
    return result;
}
