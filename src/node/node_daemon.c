/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_daemon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "node/lease/audit_past.h"
#include "node/node_log.h"

enum { PATH_BYTES = 4096 };
_Static_assert((int)WATCH_GPUS_MAX <= (int)LEASE_GPUS_MAX, "each GPU that is watched can be leased");

static const char program[] = "flyballd";
/* For a GPU while the driver is opened. */
static const double open_patience_s = 3;

void daemon_device_options(const struct config *config, struct device_options *out_devices,
                           struct knob_options *out_knob)
{
    *out_devices = (struct device_options){.nvml_path = config_text(config, KEY_NVML),
                                           .amdsmi_path = config_text(config, KEY_AMDSMI),
                                           .sysfs_root = config_text(config, KEY_SYSFS_ROOT),
                                           .patience_s = open_patience_s};
    *out_knob = (struct knob_options){.runtime_directory = config_text(config, KEY_RUNTIME_DIRECTORY),
                                      .readonly_path = config_text(config, KEY_READONLY),
                                      .guard_path = config_text(config, KEY_GUARD),
                                      .nvml_path = config_text(config, KEY_NVML),
                                      .amdsmi_path = config_text(config, KEY_AMDSMI),
                                      .daemon = "", /* that may be this one */
                                      .program = program};
}

static void tell(void *state, const char *line)
{
    (void)state;
    log_say(SAY_WARNING, "%s", line);
}

static void tell_watched(void *state, bool trouble, const char *line)
{
    (void)state;
    log_say(trouble ? SAY_WARNING : SAY_INFO, "%s", line);
}

static void lease_ended(void *state, const struct lease *lease, enum lease_end end, const char *why)
{
    char holder[LEASE_HOLDER_TEXT_MAX];
    bool more = why != NULL && why[0] != '\0' && strcmp(why, lease_end_text(end)) != 0;

    (void)state;
    log_say(end == LEASE_END_FOREIGN || end == LEASE_END_FAILED ? SAY_WARNING : SAY_INFO,
            "lease %s of %s has ended: %s%s%s", lease->id, lease_holder_text(&lease->ask.holder, holder),
            lease_end_text(end), more ? "; " : "", more ? why : "");
}

static void fresh(void *state)
{
    struct daemon *daemon = state;

    sample_streams_wake(daemon->streams);
}

static int borrow(void *devices, size_t gpu, const struct device **out_device, struct fly_error *out_error)
{
    return watch_borrow(devices, gpu, out_device, out_error);
}

static void give_back(void *devices, size_t gpu)
{
    watch_give_back(devices, gpu);
}

static int open_watch(struct daemon *daemon, struct fly_error *out_error)
{
    char state[PATH_BYTES];
    struct watch_options options = {
        .devices = &daemon->devices,
        .poll_s = config_real(daemon->config, KEY_POLL),
        .state_path = state,
        .tell = tell_watched,
    };

    snprintf(state, sizeof state, "%s/totals", config_text(daemon->config, KEY_STATE));
    return watch_open(&options, &daemon->watch, out_error);
}

static size_t count_gpus(void *devices)
{
    return watch_gpu_count(devices);
}

/* The operator's bounds of a GPU; while the daemon starts they are not known yet, and set at its end. */
static void bounds_of(void *rules, size_t gpu, struct lease_bounds *out_bounds)
{
    struct daemon *daemon = rules;

    if (daemon->admit != NULL)
        admit_bounds(daemon->admit, gpu, out_bounds);
}

/* Leases whose end nobody wrote down: the daemon before this one was killed, or the machine went down. */
static void tell_lost(const char *path, struct audit *audit)
{
    struct audit_lost *lost = calloc(AUDIT_PAST_MAX, sizeof *lost);
    size_t count = lost != NULL ? audit_past_lost(path, lost, AUDIT_PAST_MAX) : 0;

    for (size_t i = 0; i < count; i++) {
        static const char why[] = "it was lost: the daemon or the machine went down";
        const struct audit_event event = {
            .what = AUDIT_END, .why = why, .holder = &lost[i].holder, .lease = lost[i].lease};
        char holder[LEASE_HOLDER_TEXT_MAX];

        (void)audit_write(audit, &event, NULL);
        log_say(SAY_WARNING, "lease %s of %s has ended: %s", lost[i].lease,
                lease_holder_text(&lost[i].holder, holder), why);
    }
    free(lost);
}

static int open_leases(struct daemon *daemon, struct fly_error *out_error)
{
    const struct config *config = daemon->config;
    const char *audit = config_text(config, KEY_LEASE_AUDIT);
    bool required = config_flag(config, KEY_LEASE_AUDIT_REQUIRED);
    struct leases_options options = {
        .gpu_count = watch_gpu_count(daemon->watch),
        .count = count_gpus,
        .bounds = bounds_of,
        .rules = daemon,
        .borrow = borrow,
        .give_back = give_back,
        .devices = daemon->watch,
        .knob = &daemon->knob,
        .table = {.maximum = (size_t)config_integer(config, KEY_LEASE_MAXIMUM),
                  .per_user = (size_t)config_integer(config, KEY_LEASE_PER_USER),
                  .rule = (enum lease_rule)config_choice(config, KEY_LEASE_RULE)},
        .patience_s = config_real(config, KEY_LEASE_PATIENCE),
        .listener = {.ended = lease_ended, .tell = tell},
    };
    int code;

    if (required && strcmp(audit, SETTING_NONE) == 0)
        return error_set(
            out_error, FLY_ECONFIG,
            "'lease.audit_required' takes an audit log, and 'lease.audit' is 'none'; name a file");
    code = audit_open(strcmp(audit, SETTING_NONE) != 0 ? audit : NULL, required, &daemon->audit, out_error);
    if (code < 0)
        return code;
    if (daemon->audit != NULL)
        tell_lost(audit, daemon->audit);
    options.audit = daemon->audit;
    return leases_open(&options, &daemon->leases, out_error);
}

static int open_share(struct daemon *daemon, struct fly_error *out_error)
{
    const struct config *config = daemon->config;
    const struct share_options options = {
        .watch = daemon->watch,
        .poll_s = config_real(config, KEY_ATTRIBUTION_POLL),
        .keep_s = config_real(config, KEY_ATTRIBUTION_KEEP),
        .series = (size_t)config_integer(config, KEY_ATTRIBUTION_SERIES),
        .state = config_text(config, KEY_STATE),
        .root = config_text(config, KEY_SYSFS_ROOT),
        .tell = tell_watched,
    };

    if (!config_flag(config, KEY_ATTRIBUTION_ENABLED))
        return 0;
    return share_open(&options, &daemon->share, out_error);
}

static struct admit_rules rules_of(const struct config *config)
{
    struct admit_rules rules = {.proof = config_flag(config, KEY_RIGHTS_PROOF),
                                .closed = config_flag(config, KEY_RIGHTS_CLOSED),
                                .open = config_flag(config, KEY_RIGHTS_OPEN),
                                .contained = config_flag(config, KEY_RIGHTS_CONTAINED),
                                .here = config_text(config, KEY_TOKENS) == NULL &&
                                        config_text(config, KEY_SIGNING_KEY) == NULL,
                                .readonly_path = config_text(config, KEY_READONLY)};

    rules.rules = config_rules(config, &rules.rule_count);
    return rules;
}

/* The operator's bounds hold for leases that exist, too. */
static void set_bounds(struct daemon *daemon)
{
    size_t count = watch_gpu_count(daemon->watch);

    for (size_t gpu = 0; gpu < count && gpu < LEASE_GPUS_MAX; gpu++) {
        struct lease_bounds bounds;

        admit_bounds(daemon->admit, gpu, &bounds);
        leases_bound(daemon->leases, gpu, &bounds);
    }
}

static int release(void *self, double most_s, struct fly_error *out_error)
{
    struct daemon *daemon = self;
    struct mono_time until = mono_after_s(mono_now(), most_s);
    int code = leases_release(daemon->leases, most_s, out_error);
    /* Also if a GPU hangs: the others are let go, and that one when it answers. */
    int watched = watch_release(daemon->watch, fmax(mono_elapsed_s(mono_now(), until), 0.1),
                                code == 0 ? out_error : NULL);

    if (code == 0)
        code = watched;
    if (code < 0)
        log_say(SAY_WARNING, "releasing the GPUs: %s", out_error->text);
    else
        log_say(SAY_INFO, "the GPUs are released; 'flyballd resume' opens them again");
    return code;
}

static int resume(void *self, struct fly_error *out_error)
{
    struct daemon *daemon = self;

    (void)out_error;
    watch_resume(daemon->watch);
    leases_resume(daemon->leases);
    log_say(SAY_INFO, "the GPUs are watched and lent again");
    return 0;
}

/* The groups of the public daemon's routes that the configuration names. */
static unsigned public_groups(const struct config *config)
{
    const struct cli_list *names = config_list(config, KEY_PUBLIC_GROUPS);
    unsigned groups = 0;

    for (size_t i = 0; i < names->count; i++) {
        for (unsigned group = 0; group < SIGNED_SCOPE_COUNT; group++)
            groups |= strcmp(names->words[i], signed_scope_words[group]) == 0 ? 1U << group : 0;
    }
    return groups;
}

static int open_public(struct daemon *daemon, struct fly_error *out_error)
{
    const struct node_public_options options = {.watch = daemon->watch,
                                                .admit = daemon->admit,
                                                .leases = daemon->leases,
                                                .streams = daemon->streams,
                                                .leased = LEASE_GPUS_MAX,
                                                .groups = public_groups(daemon->config),
                                                .wants_tokens =
                                                    config_text(daemon->config, KEY_SIGNING_KEY) != NULL,
                                                .tell = tell};

    return node_public_open(&options, &daemon->public, out_error);
}

static int open_routes(struct daemon *daemon, struct fly_error *out_error)
{
    const struct admit_rules rules = rules_of(daemon->config);
    int streams = sample_streams_new(&daemon->streams, out_error);
    int code = streams < 0 ? streams : admit_open(daemon->watch, &rules, &daemon->admit, out_error);
    const struct node_v1_options options = {.watch = daemon->watch,
                                            .admit = daemon->admit,
                                            .leases = daemon->leases,
                                            .streams = daemon->streams,
                                            .share = daemon->share,
                                            .leased = LEASE_GPUS_MAX,
                                            .release = release,
                                            .resume = resume,
                                            .daemon = daemon};

    if (code == 0)
        code = node_v1_open(&options, &daemon->v1, out_error);
    return code < 0 ? code : open_public(daemon, out_error);
}

int daemon_open(const struct config *config, struct daemon *out_daemon, struct fly_error *out_error)
{
    struct daemon *daemon = out_daemon;
    int code;

    *daemon = (struct daemon){.config = config};
    own_energy_init(&daemon->own);
    daemon_device_options(config, &daemon->devices, &daemon->knob);
    code = open_watch(daemon, out_error);
    if (code == 0)
        code = open_leases(daemon, out_error);
    if (code == 0)
        code = open_share(daemon, out_error);
    if (code == 0)
        code = open_routes(daemon, out_error);
    if (code < 0) {
        daemon_close(daemon, 0);
        return code;
    }
    set_bounds(daemon);
    watch_listen(daemon->watch, fresh, daemon);
    return 0;
}

void daemon_tick(struct daemon *daemon)
{
    leases_tick(daemon->leases);
}

int daemon_reload(struct daemon *daemon, const struct config *config, struct fly_error *out_error)
{
    const struct admit_rules rules = rules_of(config);
    int code = daemon->audit != NULL ? audit_reopen(daemon->audit, out_error) : 0;

    if (code == 0)
        code = admit_renew(daemon->admit, &rules, out_error);
    if (code < 0)
        return code;
    if (daemon->share != NULL)
        share_keep(daemon->share, config_real(config, KEY_ATTRIBUTION_KEEP));
    leases_rule(daemon->leases, (enum lease_rule)config_choice(config, KEY_LEASE_RULE));
    set_bounds(daemon);
    return 0;
}

int daemon_end_leases(struct daemon *daemon, double most_s, struct fly_error *out_error)
{
    return leases_release(daemon->leases, most_s, out_error);
}

void daemon_close(struct daemon *daemon, double most_s)
{
    if (daemon->watch != NULL)
        watch_listen(daemon->watch, NULL, NULL);
    node_public_close(daemon->public);
    leases_close(daemon->leases, most_s);
    node_v1_close(daemon->v1);
    sample_streams_free(daemon->streams);
    share_close(daemon->share);
    admit_close(daemon->admit);
    if (daemon->audit != NULL)
        audit_close(daemon->audit);
    if (daemon->watch != NULL)
        watch_close(daemon->watch);
    own_energy_deinit(&daemon->own);
    *daemon = (struct daemon){.config = NULL};
}
