/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is meant for other people, so its user sees it first: everything in it is shown, and
 * it is written only after a yes.
 */
#include "cli/machine/record_facts.h"

#include <dirent.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <flyball/version.h>

#include "base/error.h"
#include "base/file/atomic_file.h"
#include "base/harmless.h"
#include "cli/frame/call.h"
#include "cli/machine/machine_look.h"
#include "cli/options/knob_options.h"
#include "cli/options/open_devices.h"
#include "device/recording/facts.h"
#include "device/recording/pseudonyms.h"
#include "device/sysfs.h"
#include "meter/selftest/selftest.h"
#include "shapes/json_layout.h"

/* Every text goes through facts_keep, which removes what names a person or a machine. */
enum { FACTS_NAME_MAX = 256, FACTS_SECRETS_MAX = 2 * DEVICES_MAX + 8 };

/* Texts that the list of secrets borrows. */
struct facts_names {
    char host[FACTS_NAME_MAX], label[FACTS_NAME_MAX], user[FACTS_NAME_MAX], account[FACTS_NAME_MAX];
    char home[FACTS_NAME_MAX];
    char gpus[DEVICES_MAX][16], buses[DEVICES_MAX][16];
};

struct facts_maker {
    const struct cli_call *call;
    const struct device_list *list;
    const char *root; /* where sys, proc and dev are */
    struct facts *facts;
    struct pseudonym secrets[FACTS_SECRETS_MAX];
    size_t secret_count;
    struct facts_names names;
    bool exhausted; /* out of memory: then it does not matter what else is missing */
};

static const char *facts_keep(struct facts_maker *maker, const char *text);
static void *facts_room(struct facts_maker *maker, size_t count, size_t size);
static void facts_find_secrets(struct facts_maker *maker);
static void facts_ask_devices(struct facts_maker *maker);
static void facts_find_domains(struct facts_maker *maker);
static void facts_find_knobs(struct facts_maker *maker);
static void facts_watch(struct facts_maker *maker);

/* Assembles facts from their parts. */

enum { DATE_MAX = sizeof "2026-11-22" };

static enum facts_state state_of(int code)
{
    return code == 0                  ? FACTS_WORKS
           : code == FLY_EUNSUPPORTED ? FACTS_ABSENT
           : code == FLY_EPERM        ? FACTS_DENIED
                                      : FACTS_BROKEN;
}

static void take_reports(struct facts_maker *maker)
{
    struct facts *facts = maker->facts;

    facts->backends = facts_room(maker, maker->list->report_count, sizeof *facts->backends);
    for (size_t i = 0; facts->backends != NULL && i < maker->list->report_count; i++) {
        const struct backend_report *report = &maker->list->reports[i];

        facts->backends[facts->backend_count++] = (struct facts_backend){
            .name = report->backend->name,
            .title = report->backend->title,
            .kind = report->backend->kind,
            .state = state_of(report->error.code),
            .error = report->error.code < 0 ? facts_keep(maker, report->error.text) : NULL,
        };
    }
}

static void look_at_machine(struct facts_maker *maker)
{
    struct facts_machine *machine = &maker->facts->machine;
    struct machine_texts texts;

    machine_look(maker->root, &texts, machine);
    machine->kernel = facts_keep(maker, machine->kernel);
    machine->architecture = facts_keep(maker, machine->architecture);
    machine->nvidia_kernel_driver = facts_keep(maker, machine->nvidia_kernel_driver);
}

static void put_heading(struct facts_maker *maker)
{
    struct timespec now;
    struct tm utc;
    char date[DATE_MAX] = "";

    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d", &utc);
    maker->facts->flyball = fly_version();
    maker->facts->date = facts_keep(maker, date);
}

/*
 * Collects facts of this machine. Sets nothing, and watches the devices for about a second.
 *
 *     code = facts_make(call, &list, &facts, out_error);
 *     ...
 *     facts_free(facts);
 */
static int facts_make(const struct cli_call *call, const struct device_list *list, struct facts **out_facts,
                      struct fly_error *out_error)
{
    static struct facts_maker large;
    struct facts_maker *maker = &large;

    large = (struct facts_maker){.call = call, .list = list, .root = cli_text(call, "sysfs-root")};
    maker->facts = facts_new();
    if (maker->facts == NULL)
        return error_no_memory(out_error);
    facts_find_secrets(maker);
    put_heading(maker);
    look_at_machine(maker);
    take_reports(maker);
    facts_ask_devices(maker);
    facts_find_domains(maker);
    facts_find_knobs(maker);
    facts_watch(maker);
    if (maker->exhausted) {
        facts_free(maker->facts);
        return error_no_memory(out_error);
    }
    *out_facts = maker->facts;
    return 0;
}

/* Finds what names this machine, its user and its GPUs, and removes it from texts. */

enum { TEXT_MAX = 2 * FLY_ERROR_TEXT_MAX, ACCOUNT_TEXTS_MAX = 4096 };

/*
 * Makes the text no longer than it was, so that it still fits, and removes characters that a file
 * of facts may not hold.
 */
static void make_fit(struct buffer *kept, size_t maximum)
{
    kept->length = kept->length < maximum ? kept->length : maximum;
    kept->data[kept->length] = '\0';
    kept->length = harmless_make(kept->data, kept->length, false);
}

/* Returns the text without identifying parts, in the facts' memory; NULL for NULL, and without memory. */
static const char *facts_keep(struct facts_maker *maker, const char *text)
{
    struct buffer kept;
    const char *copy;

    if (text == NULL || text[0] == '\0')
        return NULL;
    buffer_init(&kept, TEXT_MAX);
    pseudonyms_put(maker->secrets, maker->secret_count, text, &kept);
    if (kept.error == 0 && kept.length > 0)
        make_fit(&kept, strlen(text));
    copy = kept.error == 0 ? arena_strdup(&maker->facts->arena, kept.data) : NULL;
    maker->exhausted = maker->exhausted || copy == NULL;
    buffer_deinit(&kept);
    return copy;
}

/* Returns zeroed entries in the facts' memory; never NULL for a count of 0. */
static void *facts_room(struct facts_maker *maker, size_t count, size_t size)
{
    void *room = arena_alloc(&maker->facts->arena, count > 0 ? count : 1, size);

    maker->exhausted = maker->exhausted || room == NULL;
    return room;
}

/* ---- what names somebody ---- */

static void add_secret(struct facts_maker *maker, const char *secret, const char *instead)
{
    maker->secrets[maker->secret_count++] = (struct pseudonym){secret, instead};
}

/* Skips the user root, who is on every machine, and a home directory "/". */
static void find_people(struct facts_names *names)
{
    const char *user = getenv("USER"), *home = getenv("HOME");
    char texts[ACCOUNT_TEXTS_MAX];
    struct passwd entry, *account = NULL;

    if (gethostname(names->host, sizeof names->host - 1) == 0)
        snprintf(names->label, sizeof names->label, "%.*s", (int)strcspn(names->host, "."), names->host);
    if (user != NULL && strcmp(user, "root") != 0)
        snprintf(names->user, sizeof names->user, "%s", user);
    if (getpwuid_r(getuid(), &entry, texts, sizeof texts, &account) == 0 && account != NULL &&
        strcmp(account->pw_name, "root") != 0)
        snprintf(names->account, sizeof names->account, "%s", account->pw_name);
    if (home != NULL && strlen(home) > 1)
        snprintf(names->home, sizeof names->home, "%s", home);
}

/* Returns how many GPUs come before it on the bus. */
static size_t bus_order(const struct device_list *list, const struct device_info *info)
{
    size_t order = 0;

    for (size_t i = 0; i < list->count; i++)
        order += list->devices[i].info.pci[0] != '\0' && strcmp(list->devices[i].info.pci, info->pci) < 0;
    return order;
}

/* Finds what names this machine, its user and its GPUs. Call it before any text is kept. */
static void facts_find_secrets(struct facts_maker *maker)
{
    struct facts_names *names = &maker->names;

    find_people(names);
    if (strcmp(maker->root, "/") != 0)
        add_secret(maker, maker->root, "");
    add_secret(maker, names->host, "HOST");
    add_secret(maker, names->label, "HOST");
    add_secret(maker, names->user, "USER");
    add_secret(maker, names->account, "USER");
    add_secret(maker, names->home, "PATH");
    for (size_t i = 0; i < maker->list->count; i++) {
        const struct device_info *info = &maker->list->devices[i].info;

        if (info->kind != DEVICE_GPU)
            continue;
        snprintf(names->gpus[i], sizeof names->gpus[i], "GPU-%u", info->index);
        snprintf(names->buses[i], sizeof names->buses[i], "bus-%zu", bus_order(maker->list, info));
        add_secret(maker, info->uuid, names->gpus[i]);
        add_secret(maker, info->pci, names->buses[i]);
    }
}

/* What devices say about themselves. */

enum { PROCESSES_MAX = 64 };

static double known(double value)
{
    return value > 0.0 ? value : NAN;
}

static struct facts_sensor sensor_of(struct facts_maker *maker, const struct sensor_facts *sensor)
{
    return (struct facts_sensor){.counter_period_s = known(sensor->counter_period_s),
                                 .power_period_s = known(sensor->power_period_s),
                                 .power_window_s = known(sensor->power_window_s),
                                 .gain_error = known(sensor->gain_error),
                                 .counter_from_power = sensor->counter_from_power,
                                 .source = facts_keep(maker, sensor->source)};
}

static void ask_quantities(struct facts_maker *maker, const struct device *device, struct facts_device *out)
{
    struct device_reading reading;
    struct facts_answer *answers = facts_room(maker, QUANTITY_COUNT, sizeof *answers);

    device_read(device, &clock_real, QUANTITY_ALL, &reading);
    for (size_t i = 0; answers != NULL && i < QUANTITY_COUNT; i++) {
        const struct reading *value = &reading.values[i];

        answers[i] = (struct facts_answer){.quantity = (enum quantity)i,
                                           .state = value->state,
                                           .value = value->state == READING_OK ? (double)value->value : NAN,
                                           .code = value->code > 0 ? (uint32_t)value->code : 0};
    }
    out->answers = answers;
    out->answer_count = answers != NULL ? QUANTITY_COUNT : 0;
}

static void ask_clocks(struct facts_maker *maker, const struct device *device, struct facts_device *out)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;

    if (device_clocks(device, clocks_mhz, DEVICE_CLOCKS_MAX, &count, NULL) < 0)
        count = 0;
    out->clocks_mhz = facts_room(maker, count, sizeof *out->clocks_mhz);
    for (size_t i = 0; out->clocks_mhz != NULL && i < count; i++)
        out->clocks_mhz[out->clock_count++] = (uint32_t)clocks_mhz[i];
}

/* Returns whether processes can be seen; does not keep which ones. */
static enum facts_processes ask_processes(const struct device *device)
{
    struct device_process processes[PROCESSES_MAX];
    size_t count = 0;
    int code = device_processes(device, DEVICE_PROCESSES_COMPUTING, processes, PROCESSES_MAX, &count);

    return code == 0                  ? PROCESSES_SEEN
           : code == FLY_EUNSUPPORTED ? PROCESSES_NOT_OFFERED
           : code == FLY_EPERM        ? PROCESSES_DENIED
                                      : PROCESSES_FAILED;
}

static struct facts_device device_of(struct facts_maker *maker, const struct device *device)
{
    const struct device_info *info = &device->info;
    struct facts_device out = {
        .kind = info->kind,
        .backend = device->backend->name,
        .pseudonym = facts_keep(maker, info->uuid),
        .bus = facts_keep(maker, info->pci),
        .name = facts_keep(maker, info->name),
        .driver = facts_keep(maker, info->driver),
        .note = facts_keep(maker, info->note),
        .has_minor = info->minor >= 0,
        .minor = info->minor >= 0 ? (uint32_t)info->minor : 0,
        .emulated = info->emulated,
        .estimated = info->estimated,
        .module_power = info->module_power,
        .mig = info->mig,
        .denied = info->denied,
        .memory_bytes = info->memory_bytes,
        .energy_modulus_uj = info->energy_modulus_uj <= INT64_MAX ? info->energy_modulus_uj : 0,
        .sensor = sensor_of(maker, &info->sensor),
        .processes = ask_processes(device),
    };

    ask_quantities(maker, device, &out);
    ask_clocks(maker, device, &out);
    return out;
}

/* Collects what each device is and answers. */
static void facts_ask_devices(struct facts_maker *maker)
{
    struct facts *facts = maker->facts;

    facts->devices = facts_room(maker, maker->list->count, sizeof *facts->devices);
    for (size_t i = 0; facts->devices != NULL && i < maker->list->count; i++)
        facts->devices[facts->device_count++] = device_of(maker, &maker->list->devices[i]);
}

/*
 * All energy counters that the kernel shows, including those that Flyball does not use (psys,
 * core, uncore).
 */

static void add_domain(struct facts_maker *maker, enum facts_through through, const char *name,
                       uint64_t range_uj, bool readable)
{
    struct facts *facts = maker->facts;

    if (facts->domain_count == FACTS_DOMAINS_MAX || facts->domains == NULL)
        return;
    facts->domains[facts->domain_count] = (struct facts_domain){
        .through = through, .name = facts_keep(maker, name), .range_uj = range_uj, .readable = readable};
    if (facts->domains[facts->domain_count].name != NULL)
        facts->domain_count++;
}

static void take_zone(struct facts_maker *maker, const char *directory, const char *entry)
{
    char path[SYSFS_PATH_MAX], name[SYSFS_TEXT_MAX], full[2 * SYSFS_TEXT_MAX];
    uint64_t range_uj = 0;

    if (!sysfs_path(path, "%s/%s/name", directory, entry) || sysfs_read_text(path, name, sizeof name) <= 0)
        return;
    snprintf(full, sizeof full, "%.63s %s", entry, name);
    if (!sysfs_path(path, "%s/%s/max_energy_range_uj", directory, entry) ||
        sysfs_read_u64(path, INT64_MAX, &range_uj) < 0)
        range_uj = 0;
    if (sysfs_path(path, "%s/%s/energy_uj", directory, entry) && access(path, F_OK) == 0)
        add_domain(maker, THROUGH_POWERCAP, full, range_uj, access(path, R_OK) == 0);
}

/* Everybody may read the event's file; perf_event_paranoid says who may open the event. */
static void take_event(struct facts_maker *maker, const char *directory, const char *entry)
{
    const struct facts_machine *machine = &maker->facts->machine;

    (void)directory;
    if (strncmp(entry, "energy-", strlen("energy-")) == 0 && strchr(entry, '.') == NULL)
        add_domain(maker, THROUGH_PERF, entry, 0, machine->reads_perf || machine->perf_paranoid < 1);
}

static void each_entry(struct facts_maker *maker, const char *place,
                       void (*take)(struct facts_maker *maker, const char *directory, const char *entry))
{
    struct device_options options = {.sysfs_root = maker->root};
    char root[SYSFS_PATH_MAX], directory[SYSFS_PATH_MAX];
    struct dirent **entries = NULL;
    int count;

    sysfs_root(&options, root);
    if (!sysfs_path(directory, "%s%s", root, place))
        return;
    count = scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.')
            take(maker, directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

/* Finds the CPU's energy counters that the kernel shows. */
static void facts_find_domains(struct facts_maker *maker)
{
    maker->facts->domains = facts_room(maker, FACTS_DOMAINS_MAX, sizeof *maker->facts->domains);
    each_entry(maker, "/sys/class/powercap", take_zone);
    each_entry(maker, "/sys/bus/event_source/devices/power/events", take_event);
}

/* Finds what prevents setting knobs here. Says only that somebody holds or uses a GPU, not who. */

static bool any_offers(const struct facts_maker *maker, const struct site *site, enum way way)
{
    bool offers = false;

    for (size_t i = 0; i < maker->list->count; i++)
        offers = offers || (maker->list->devices[i].info.kind == DEVICE_GPU &&
                            site_offers(site, way, &maker->list->devices[i]));
    return offers;
}

static const char *trouble_of(const struct facts_maker *maker, const struct site *site, enum way way)
{
    const char *place = site->daemon;

    if (way == WAY_DRIVER)
        return maker->facts->machine.root ? NULL : "this is not root";
    if (place[0] == '\0')
        return "there is none";
    if (place[0] != '/')
        return NULL;
    if (access(place, F_OK) < 0)
        return "there is no socket";
    return access(place, R_OK | W_OK) < 0 ? fly_error_sentence(FLY_EPERM) : NULL;
}

static void find_ways(struct facts_maker *maker)
{
    struct facts *facts = maker->facts;
    struct site site;

    site_init(NULL, &site);
    facts->ways = facts_room(maker, WAY_COUNT, sizeof *facts->ways);
    for (int way = 0; facts->ways != NULL && way < WAY_COUNT; way++)
        facts->ways[facts->way_count++] =
            (struct facts_way){.name = way_name((enum way)way),
                               .found = any_offers(maker, &site, (enum way)way),
                               .named = way == WAY_DAEMON && site.named,
                               .why_not = facts_keep(maker, trouble_of(maker, &site, (enum way)way))};
}

static enum facts_directory directory_word(const char *path)
{
    const char *named = getenv(KNOB_RUNTIME_VARIABLE);

    if (named != NULL && named[0] != '\0')
        return DIRECTORY_NAMED;
    return strncmp(path, "/run/", strlen("/run/")) == 0 ? DIRECTORY_RUN : DIRECTORY_TMP;
}

/* Returns a sentence of its own where the usual one would name others. */
static const char *why_not(struct facts_maker *maker, const struct limit_outlook *outlook)
{
    if (outlook->may == MAY_LIKELY)
        return "not through the driver, since this is not root, but in another way";
    if (outlook->why_not.code == FLY_ESTATE)
        return "somebody uses it or holds its knobs, or MIG or MPS shares it";
    return outlook->why_not.code < 0 ? facts_keep(maker, outlook->why_not.text) : NULL;
}

static void find_outlooks(struct facts_maker *maker, const struct knob_options *options,
                          const char *directory, const struct fly_error *missing)
{
    for (size_t i = 0; i < maker->facts->device_count; i++) {
        struct facts_device *device = &maker->facts->devices[i];
        struct limit_outlook outlook;

        if (device->kind != DEVICE_GPU)
            continue;
        limit_outlook_find(options, directory, missing, &maker->list->devices[i], &outlook);
        device->may_be_set = outlook.may;
        device->why_not = why_not(maker, &outlook);
    }
}

/* Finds the ways to set limits, where locks lie, and whether each device's limit may be set. */
static void facts_find_knobs(struct facts_maker *maker)
{
    struct facts_machine *machine = &maker->facts->machine;
    char readonly_path[CLI_READONLY_MAX], directory[RUNTIME_PATH_MAX] = "";
    struct knob_options options = cli_knob_options(maker->call, "flyball record", readonly_path);
    struct fly_error missing = {.code = 0};
    bool there = runtime_directory_look(NULL, directory);

    machine->operators_lock = access(options.readonly_path, F_OK) == 0;
    machine->knob_files = there ? directory_word(directory) : DIRECTORY_NONE;
    machine->knob_files_writable = there && access(directory, W_OK) == 0;
    if (!there)
        error_set(&missing, FLY_ENOTFOUND, "there is no directory for locks yet");
    find_ways(maker);
    find_outlooks(maker, &options, directory, &missing);
}

/* How counters and power sensors change, as far as a short watch shows. */

enum { PERIODS_MAX = 1024 };

static const double watched_s = 1.0, poll_s = 0.002;

_Static_assert((int)SELFTEST_WATCHED <= (int)FACTS_LOOKS_MAX, "a file of facts takes as many looks");

/* One figure of one device. */
struct monitored {
    bool wanted;
    struct updates updates;
    double periods_s[PERIODS_MAX];
    int64_t last;
    uint64_t least_step, divisor; /* 0: no change was seen */
};

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* A counter that wrapped or was reset does not show the size of its steps. */
static void note_step(struct monitored *watch, bool counts, int64_t value)
{
    int64_t change = value - watch->last;
    uint64_t step = (uint64_t)(change < 0 ? -change : change);

    if (watch->updates.polls > 0 && change != 0 && !(counts && change < 0)) {
        watch->least_step = watch->least_step == 0 || step < watch->least_step ? step : watch->least_step;
        watch->divisor = greatest_common_divisor(step, watch->divisor);
    }
    watch->last = value;
}

static void poll_device(const struct device *device, struct monitored watches[SELFTEST_WATCHED])
{
    for (size_t i = 0; i < SELFTEST_WATCHED; i++) {
        enum quantity quantity = selftest_watched[i];
        struct device_reading reading;

        if (!watches[i].wanted)
            continue;
        device_read(device, &clock_real, QUANTITY_BIT(quantity), &reading);
        if (reading.values[quantity].state != READING_OK)
            continue;
        note_step(&watches[i], quantity == QUANTITY_ENERGY, reading.values[quantity].value);
        updates_add(&watches[i].updates, reading.after, reading.values[quantity].value);
    }
}

static void poll_all(const struct device_list *list, struct monitored (*watches)[SELFTEST_WATCHED])
{
    struct mono_time now = clock_real.now(clock_real.state), end = mono_after_s(now, watched_s);

    while (now.ns < end.ns) {
        struct mono_time next = mono_after_s(now, poll_s);

        for (size_t i = 0; i < list->count; i++)
            poll_device(&list->devices[i], watches[i]);
        clock_real.sleep_until(clock_real.state, next);
        now = clock_real.now(clock_real.state);
    }
}

static struct facts_look look_of(enum quantity quantity, struct monitored *watch)
{
    struct update_finding finding = updates_find(&watch->updates);

    return (struct facts_look){
        .quantity = quantity,
        .polls = (uint32_t)finding.polls,
        .changes = (uint32_t)finding.changes,
        .watched_s = finding.polls > 1 ? mono_elapsed_s(watch->updates.first, watch->updates.last) : NAN,
        .period_s = finding.period_s.median,
        .least_period_s = finding.period_s.lowest,
        .at_most = finding.at_most,
        .least_step = watch->least_step > 0 ? (double)watch->least_step : NAN,
        .common_divisor = watch->divisor > 0 ? (double)watch->divisor : NAN,
    };
}

static void keep_looks(struct facts_maker *maker, struct facts_device *device,
                       struct monitored watches[SELFTEST_WATCHED])
{
    device->looks = facts_room(maker, SELFTEST_WATCHED, sizeof *device->looks);
    for (size_t i = 0; device->looks != NULL && i < SELFTEST_WATCHED; i++) {
        if (watches[i].wanted)
            device->looks[device->look_count++] = look_of(selftest_watched[i], &watches[i]);
    }
}

/* A figure that is not answered is not watched, and so does not count as a look. */
static void choose(const struct facts_device *device, struct monitored watches[SELFTEST_WATCHED])
{
    for (size_t i = 0; i < SELFTEST_WATCHED; i++) {
        updates_init(&watches[i].updates, watches[i].periods_s, PERIODS_MAX);
        for (size_t j = 0; j < device->answer_count; j++)
            watches[i].wanted |=
                device->answers[j].quantity == selftest_watched[i] && device->answers[j].state == READING_OK;
    }
}

/* Watches how the figures of all devices change. */
static void facts_watch(struct facts_maker *maker)
{
    struct facts *facts = maker->facts;
    struct monitored(*watches)[SELFTEST_WATCHED] = calloc(facts->device_count + 1, sizeof *watches);

    if (watches == NULL) {
        maker->exhausted = true;
        return;
    }
    for (size_t i = 0; i < facts->device_count; i++)
        choose(&facts->devices[i], watches[i]);
    if (facts->device_count == maker->list->count && facts->device_count > 0)
        poll_all(maker->list, watches);
    for (size_t i = 0; i < facts->device_count; i++)
        keep_looks(maker, &facts->devices[i], watches[i]);
    free(watches);
}

enum { ANSWER_MAX = 64, NOT_WRITTEN = 1 };

/*
 * Checks that the file does not exist yet, since an existing file is kept; a pipe or a device may
 * be written to.
 */
static int check_path(const char *path, struct fly_error *out_error)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
        return error_set(out_error, FLY_EUSAGE, "'%s' exists; name another file, or remove it", path);
    return 0;
}

static int show(const struct cli_call *call, json_t *document, struct fly_error *out_error)
{
    struct buffer text;
    int code;

    if (cli_format(call) == TABLE_FORMAT_JSON)
        return cli_emit_json(call, json_incref(document), out_error);
    buffer_init(&text, FACTS_BYTES_MAX);
    json_layout_text(document, &text);
    code = text.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

static bool says_yes(const char *path)
{
    char answer[ANSWER_MAX];

    fflush(stdout);
    fprintf(stderr, "Write this to '%s', to be given to others? [y/N] ", path);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    answer[strcspn(answer, "\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

/* Asks whether to write it: 1, 0, or an error if nobody can be asked. */
static int ask(const struct cli_call *call, const char *path, struct fly_error *out_error)
{
    if (cli_flag(call, "yes"))
        return 1;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return error_set(out_error, FLY_EUSAGE,
                         "'%s' was not written: there is no terminal to ask on; look at what is shown, then "
                         "add --yes",
                         path);
    return says_yes(path);
}

static int write_document(const char *path, json_t *document, struct fly_error *out_error)
{
    struct atomic_file file;
    struct buffer text;
    int code = check_path(path, out_error);

    if (code < 0)
        return code;
    buffer_init(&text, FACTS_BYTES_MAX);
    json_layout_file(document, &text);
    code = text.error < 0 ? error_no_memory(out_error) : atomic_file_open(path, &file, out_error);
    if (code == 0) {
        fwrite(text.data, 1, text.length, file.stream);
        code = atomic_file_commit(&file, out_error);
    }
    buffer_deinit(&text);
    return code;
}

static int offer(const struct cli_call *call, const char *path, json_t *document, struct fly_error *out_error)
{
    int code = show(call, document, out_error);

    if (code == 0)
        code = ask(call, path, out_error);
    if (code == 0) {
        cli_note(call, "'%s' was not written", path);
        cli_exit_with(call, NOT_WRITTEN);
    }
    if (code <= 0)
        return code;
    code = write_document(path, document, out_error);
    if (code == 0)
        cli_note(call,
                 "'%s' holds what is shown above; 'flyball devices --replay' and 'flyball doctor --replay' "
                 "answer from it",
                 path);
    return code;
}

int record_facts(const struct cli_call *call, const char *path, struct fly_error *out_error)
{
    static struct device_list list; /* large */
    struct facts *facts = NULL;
    json_t *document = NULL;
    int code = check_path(path, out_error);

    if (code == 0)
        code = cli_open_devices_and(call, GPUS_ALL, LEFTOVERS_LEAVE, &list, NULL, out_error);
    if (code < 0)
        return code;
    code = facts_make(call, &list, &facts, out_error);
    if (code == 0)
        code = facts_document(facts, &document, out_error);
    if (code == 0)
        code = offer(call, path, document, out_error);
    json_decref(document);
    facts_free(facts);
    device_list_close(&list);
    return code;
}
