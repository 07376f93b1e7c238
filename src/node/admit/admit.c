/* SPDX-License-Identifier: Apache-2.0 */
#include "node/admit/admit.h"

#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "node/owner/owner.h"

enum { GROUPS_MAX = 256, USER_BYTES = 4096 };

struct admit {
    struct watch *watch;
    pthread_rwlock_t lock; /* of all below */
    struct node_rights rights;
    struct rights_rule *rules; /* owned; NULL: none */
    char *readonly_path;       /* owned; NULL: the usual one */
    uint64_t renewals;
    bool with_groups; /* there is a rule for a group */
    bool here;
};

static int copy_rules(const struct admit_rules *from, struct admit *made, struct fly_error *out_error)
{
    if (from->rule_count > RIGHTS_RULES_MAX)
        return error_set(out_error, FLY_ELIMIT, "more than %d rules", RIGHTS_RULES_MAX);
    made->rules = calloc(from->rule_count + 1, sizeof *made->rules);
    made->readonly_path = from->readonly_path != NULL ? strdup(from->readonly_path) : NULL;
    if (made->rules == NULL || (from->readonly_path != NULL && made->readonly_path == NULL)) {
        free(made->rules);
        free(made->readonly_path);
        return error_no_memory(out_error);
    }
    for (size_t i = 0; i < from->rule_count; i++) {
        made->rules[i] = from->rules[i];
        made->with_groups = made->with_groups || from->rules[i].who == RIGHTS_GROUP;
    }
    made->here = from->here;
    made->rights =
        (struct node_rights){.rules = made->rules,
                             .rule_count = from->rule_count,
                             .proof = from->proof,
                             .closed = from->closed,
                             .open = from->open,
                             /* Where processes are not all visible, nobody can tell who computes. */
                             .contained = !from->contained && !owner_sees_all(),
                             .readonly_path = made->readonly_path};
    return 0;
}

int admit_open(struct watch *watch, const struct admit_rules *rules, struct admit **out_admit,
               struct fly_error *out_error)
{
    struct admit *admit = calloc(1, sizeof *admit);
    int code;

    if (admit == NULL)
        return error_no_memory(out_error);
    code = copy_rules(rules, admit, out_error);
    if (code < 0) {
        free(admit);
        return code;
    }
    admit->watch = watch;
    pthread_rwlock_init(&admit->lock, NULL);
    *out_admit = admit;
    return 0;
}

void admit_close(struct admit *admit)
{
    if (admit == NULL)
        return;
    pthread_rwlock_destroy(&admit->lock);
    free(admit->rules);
    free(admit->readonly_path);
    free(admit);
}

int admit_renew(struct admit *admit, const struct admit_rules *rules, struct fly_error *out_error)
{
    struct admit made = {.with_groups = false};
    int code = copy_rules(rules, &made, out_error);
    struct rights_rule *old_rules;
    char *old_path;

    if (code < 0)
        return code;
    pthread_rwlock_wrlock(&admit->lock);
    old_rules = admit->rules;
    old_path = admit->readonly_path;
    admit->rights = made.rights;
    admit->rules = made.rules;
    admit->readonly_path = made.readonly_path;
    admit->with_groups = made.with_groups;
    admit->here = made.here;
    admit->renewals++;
    pthread_rwlock_unlock(&admit->lock);
    free(old_rules);
    free(old_path);
    return 0;
}

/* Gives a user's groups; the group of the peer's process always counts. */
static size_t find_groups(const struct admit_class *peer, bool all, gid_t groups[GROUPS_MAX])
{
    char bytes[USER_BYTES];
    struct passwd entry, *user = NULL;
    int count = GROUPS_MAX;

    groups[0] = peer->gid;
    if (!all || getpwuid_r(peer->uid, &entry, bytes, sizeof bytes, &user) != 0 || user == NULL)
        return 1;
    return getgrouplist(user->pw_name, peer->gid, groups, &count) < 0 ? 1 : (size_t)count;
}

static unsigned scopes_of(enum serve_scope scope)
{
    return (scope >= SERVE_READ ? (unsigned)RIGHTS_READ : 0) |
           (scope >= SERVE_TRAIN ? (unsigned)RIGHTS_CONTROL : 0);
}

void admit_class_of(const struct serve_request *request, struct admit_class *out_class)
{
    const struct serve_peer *peer = &request->peer;

    *out_class = (struct admit_class){.local = peer->local,
                                      .same_namespaces = peer->same_namespaces,
                                      .uid = peer->uid,
                                      .gid = peer->gid,
                                      .minor_count = peer->minor_count};
    memcpy(out_class->minors, peer->minors, peer->minor_count * sizeof peer->minors[0]);
    out_class->has_token = request->caller_name[0] != '\0';
    if (!out_class->has_token)
        return;
    out_class->token_scope = request->scope;
    snprintf(out_class->token, sizeof out_class->token, "%s", request->caller_name);
}

bool admit_class_is(const struct admit_class *one, const struct admit_class *other)
{
    return one->local == other->local && one->same_namespaces == other->same_namespaces &&
           one->has_token == other->has_token && one->uid == other->uid && one->gid == other->gid &&
           one->token_scope == other->token_scope && one->minor_count == other->minor_count &&
           memcmp(one->minors, other->minors, one->minor_count * sizeof one->minors[0]) == 0 &&
           strcmp(one->token, other->token) == 0;
}

/* Decisions see nothing of a caller but his class. */
static void describe_peer(const struct admit_class *class, struct rights_peer *out_peer)
{
    *out_peer = (struct rights_peer){.local = class->local,
                                     .same_namespaces = class->same_namespaces,
                                     .uid = class->uid,
                                     .minors = class->minors,
                                     .minor_count = class->minor_count,
                                     .has_token = class->has_token,
                                     .token = class->has_token ? class->token : NULL,
                                     .token_scopes = class->has_token ? scopes_of(class->token_scope) : 0};
}

uint64_t admit_stamp(struct admit *admit)
{
    uint64_t stamp;

    pthread_rwlock_rdlock(&admit->lock);
    stamp = 2 * admit->renewals + rights_is_readonly(admit->readonly_path);
    pthread_rwlock_unlock(&admit->lock);
    return stamp;
}

static int64_t known(const struct watch_sample *sample, enum quantity quantity)
{
    const struct reading *reading = &sample->reading.values[quantity];

    return reading->state == READING_OK ? reading->value : 0;
}

/* Texts of the result point into `info`. */
static void describe_gpu(struct watch *watch, size_t gpu, struct device_info *info,
                         struct rights_gpu *out_gpu)
{
    struct watch_sample sample;

    watch_gpu_info(watch, gpu, info);
    *out_gpu =
        (struct rights_gpu){.uuid = info->uuid, .pci = info->pci, .index = info->index, .minor = info->minor};
    if (watch_latest(watch, gpu, &sample, NULL) < 0)
        return;
    out_gpu->lowest_mw = known(&sample, QUANTITY_POWER_LIMIT_MIN);
    out_gpu->highest_mw = known(&sample, QUANTITY_POWER_LIMIT_MAX);
}

static void decide(struct admit *admit, const struct serve_request *request, const struct rights_gpu *about,
                   struct rights_decision *out_decision)
{
    gid_t groups[GROUPS_MAX];
    struct node_rights rights;
    struct rights_peer peer;
    struct admit_class class;

    admit_class_of(request, &class);
    describe_peer(&class, &peer);
    pthread_rwlock_rdlock(&admit->lock);
    if (peer.local) {
        peer.gids = groups;
        peer.gid_count = find_groups(&class, admit->with_groups, groups);
    }
    rights = admit->rights;
    rights.readonly = rights_is_readonly(admit->readonly_path);
    rights_decide(&rights, &peer, about, out_decision);
    pthread_rwlock_unlock(&admit->lock);
}

void admit_decide(struct admit *admit, const struct serve_request *request, size_t gpu,
                  struct rights_decision *out_decision)
{
    struct device_info info;
    struct rights_gpu about;

    describe_gpu(admit->watch, gpu, &info, &about);
    decide(admit, request, &about, out_decision);
}

bool admit_reads_cpus(struct admit *admit, const struct serve_request *request)
{
    static const struct rights_gpu none = {.uuid = "", .pci = "", .index = SIZE_MAX, .minor = -1};
    struct rights_decision decision;

    if (request->signed_token != NULL && (request->signed_token->scopes & 1U << SIGNED_SCOPE_CPU_READ) != 0)
        return true;
    decide(admit, request, &none, &decision);
    return decision.may_read;
}

static bool is_closed(struct admit *admit)
{
    bool closed;

    pthread_rwlock_rdlock(&admit->lock);
    closed = admit->rights.closed;
    pthread_rwlock_unlock(&admit->lock);
    return closed;
}

bool admit_shows(struct admit *admit, const struct serve_request *request, int gpu)
{
    struct rights_decision decision;

    if (!is_closed(admit))
        return true;
    if (gpu == ADMIT_CPUS)
        return admit_reads_cpus(admit, request);
    admit_decide(admit, request, (size_t)gpu, &decision);
    return decision.may_read;
}

bool admit_shows_figures(struct admit *admit, const struct serve_request *request)
{
    size_t count = watch_gpu_count(admit->watch);

    for (size_t gpu = 0; gpu < count; gpu++) {
        if (!admit_shows(admit, request, (int)gpu))
            return false;
    }
    return admit_shows(admit, request, ADMIT_CPUS);
}

uint64_t admit_renewals(struct admit *admit)
{
    uint64_t renewals;

    pthread_rwlock_rdlock(&admit->lock);
    renewals = admit->renewals;
    pthread_rwlock_unlock(&admit->lock);
    return renewals;
}

bool admit_is_renewed(void *self, uint64_t since)
{
    return admit_renewals(self) != since;
}

void admit_bounds(struct admit *admit, size_t gpu, struct lease_bounds *out_bounds)
{
    struct device_info info;
    struct rights_gpu about;

    describe_gpu(admit->watch, gpu, &info, &about);
    pthread_rwlock_rdlock(&admit->lock);
    rights_bounds(&admit->rights, &about, out_bounds);
    pthread_rwlock_unlock(&admit->lock);
}

enum serve_scope admit_scope(struct admit *admit, const struct serve_request *request)
{
    bool open;

    if (request->caller_name[0] != '\0') /* its token's, which rights count */
        return request->scope;
    if (request->peer.local)
        return SERVE_MANAGE;
    pthread_rwlock_rdlock(&admit->lock);
    open = (admit->here && !admit->rights.closed) || admit->rights.open;
    pthread_rwlock_unlock(&admit->lock);
    return open ? SERVE_READ : SERVE_NOBODY;
}

bool admit_is_root(const struct serve_request *request)
{
    return request->peer.local && request->peer.same_namespaces && request->peer.uid == 0;
}

void admit_holder(const struct serve_request *request, struct lease_holder *out_holder)
{
    const struct serve_peer *peer = &request->peer;

    *out_holder = (struct lease_holder){.uid = peer->local ? peer->uid : LEASE_NOBODY};
    if (peer->local && !peer->same_namespaces)
        out_holder->elsewhere = peer->pid > 0 ? peer->pid : -1;
    snprintf(out_holder->token, sizeof out_holder->token, "%s", request->caller_name);
}

int admit_find_gpu(struct admit *admit, const char *text)
{
    size_t count = watch_gpu_count(admit->watch);

    for (size_t i = 0; i < count; i++) {
        struct device_info info;
        struct rights_gpu about;

        watch_gpu_info(admit->watch, i, &info);
        about =
            (struct rights_gpu){.uuid = info.uuid, .pci = info.pci, .index = info.index, .minor = info.minor};
        if (strcmp(text, "*") != 0 && rights_gpu_is(text, &about))
            return (int)i;
    }
    return -1;
}
