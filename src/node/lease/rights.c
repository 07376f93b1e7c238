/* SPDX-License-Identifier: Apache-2.0 */
/* Decides from facts alone. Whatever is not granted is refused. */
#include "node/lease/rights.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/number.h"
#include "knob/knob.h"

/* Skips leading zeros and colons of a PCI address' domain, which is written with four digits or eight. */
static const char *after_domain_zeros(const char *pci)
{
    const char *bus = strchr(pci, ':');

    if (bus == NULL || strchr(bus + 1, ':') == NULL)
        return pci; /* "07:00.0": without a domain, which is 0 */
    while (*pci == '0')
        pci++;
    return *pci == ':' ? pci + 1 : pci;
}

bool rights_gpu_is(const char *text, const struct rights_gpu *gpu)
{
    uint64_t index;

    if (strcmp(text, "*") == 0)
        return true;
    if (text[0] == '\0')
        return false;
    if (number_parse_u64(text, LEASE_GPUS_MAX, &index))
        return index == gpu->index;
    if (gpu->uuid != NULL && gpu->uuid[0] != '\0' && strcasecmp(text, gpu->uuid) == 0)
        return true;
    return gpu->pci != NULL && gpu->pci[0] != '\0' &&
           strcasecmp(after_domain_zeros(text), after_domain_zeros(gpu->pci)) == 0;
}

bool rights_is_readonly(const char *path)
{
    struct stat status;

    return lstat(path != NULL ? path : KNOB_READONLY_PATH, &status) == 0 ||
           (errno != ENOENT && errno != ENOTDIR);
}

static bool in_group(const struct rights_peer *peer, uint64_t gid)
{
    for (size_t i = 0; i < peer->gid_count; i++) {
        if (peer->gids[i] == gid)
            return true;
    }
    return false;
}

static bool is_for(const struct rights_rule *rule, const struct rights_peer *peer)
{
    switch (rule->who) {
    case RIGHTS_ANYONE:
        return true;
    case RIGHTS_USER:
        return peer->local && peer->same_namespaces && peer->uid == rule->id;
    case RIGHTS_GROUP:
        return peer->local && peer->same_namespaces && in_group(peer, rule->id);
    case RIGHTS_TOKEN:
        return peer->has_token && peer->token != NULL &&
               (strcmp(rule->token, "*") == 0 || strcmp(rule->token, peer->token) == 0);
    case RIGHTS_WHO_COUNT:
        break;
    }
    return false;
}

/* What a rule of that kind may grant at all; a token's own scopes come from the token. */
static unsigned grantable(enum rights_who who)
{
    static const unsigned scopes[RIGHTS_WHO_COUNT] = {
        [RIGHTS_ANYONE] = RIGHTS_READ,
        [RIGHTS_USER] = RIGHTS_READ | RIGHTS_CONTROL | RIGHTS_OVERRULE,
        [RIGHTS_GROUP] = RIGHTS_READ | RIGHTS_CONTROL | RIGHTS_OVERRULE,
        [RIGHTS_TOKEN] = RIGHTS_OVERRULE,
    };

    return scopes[who];
}

static int64_t limit_mw(double power_w)
{
    return power_w >= 1e12 ? (int64_t)1e15 : llround(power_w * 1e3);
}

/* A share of an unknown maximum bounds nothing below, and above it the driver does. */
static int64_t bound_mw(const struct rights_limit *limit, const struct rights_gpu *gpu, bool is_floor)
{
    int64_t absolute = limit->power_w > 0 ? limit_mw(limit->power_w) : 0;
    int64_t share = limit->share > 0 ? (int64_t)llround(limit->share * (double)gpu->highest_mw) : 0;

    if (absolute == 0 || share == 0)
        return absolute + share;
    return (absolute > share) == is_floor ? absolute : share;
}

static void tighten(struct lease_bounds *bounds, const struct rights_rule *rule, const struct rights_gpu *gpu)
{
    int64_t floor_mw = bound_mw(&rule->floor, gpu, true), ceiling_mw = bound_mw(&rule->ceiling, gpu, false);

    if (floor_mw > bounds->floor_mw)
        bounds->floor_mw = floor_mw;
    if (ceiling_mw > 0 && (bounds->ceiling_mw == 0 || ceiling_mw < bounds->ceiling_mw))
        bounds->ceiling_mw = ceiling_mw;
}

/* Adds up the rules that match; returns their scopes. */
static unsigned apply_rules(const struct node_rights *rights, const struct rights_peer *peer,
                            const struct rights_gpu *gpu, struct lease_bounds *bounds)
{
    unsigned scopes = 0;

    for (size_t i = 0; i < rights->rule_count; i++) {
        const struct rights_rule *rule = &rights->rules[i];

        if (!rights_gpu_is(rule->gpu, gpu) || !is_for(rule, peer))
            continue;
        /* An unknown peer from elsewhere is not "anyone" for reading: `open` decides that. */
        if (peer->local || rule->who != RIGHTS_ANYONE)
            scopes |= rule->scopes & grantable(rule->who);
        tighten(bounds, rule, gpu);
    }
    return scopes;
}

static bool has_proof(const struct rights_peer *peer, const struct rights_gpu *gpu)
{
    for (size_t i = 0; peer->local && gpu->minor >= 0 && i < peer->minor_count; i++) {
        if (peer->minors[i] == gpu->minor)
            return true;
    }
    return false;
}

/* What the peer has without any rule. */
static unsigned own_scopes(const struct node_rights *rights, const struct rights_peer *peer,
                           const struct rights_gpu *gpu)
{
    unsigned scopes = 0;

    if (peer->local ? !rights->closed : rights->open)
        scopes |= RIGHTS_READ;
    if (peer->has_token)
        scopes |= peer->token_scopes & (RIGHTS_READ | RIGHTS_CONTROL);
    if (rights->proof && has_proof(peer, gpu))
        scopes |= RIGHTS_CONTROL;
    if (peer->local && peer->uid == 0 && peer->same_namespaces)
        scopes |= RIGHTS_READ | RIGHTS_CONTROL | RIGHTS_OVERRULE;
    return scopes;
}

/* Says why a peer may not control; "" if it may. */
static void say_why(const struct node_rights *rights, const struct rights_peer *peer,
                    const struct rights_gpu *gpu, unsigned scopes, char why[RIGHTS_WHY_MAX])
{
    const char *path = rights->readonly_path != NULL ? rights->readonly_path : KNOB_READONLY_PATH;

    if (rights->readonly)
        snprintf(why, RIGHTS_WHY_MAX,
                 "the operator keeps knobs from being turned by '%.100s'; ask for it to be removed", path);
    else if (rights->contained)
        snprintf(why, RIGHTS_WHY_MAX,
                 "the daemon does not see the machine's processes, and so turns nothing; run it in the "
                 "machine's own pid namespace");
    else if ((scopes & RIGHTS_CONTROL) != 0)
        why[0] = '\0';
    else if (!peer->local)
        snprintf(why, RIGHTS_WHY_MAX,
                 "GPU %zu is %s without a token %s; send one, or use the daemon's Unix socket", gpu->index,
                 (scopes & RIGHTS_READ) != 0 ? "only read" : "not shown",
                 (scopes & RIGHTS_READ) != 0 ? "that lets you control" : "that holds");
    else if (peer->uid == 0 && !peer->same_namespaces)
        snprintf(why, RIGHTS_WHY_MAX,
                 "root of a container may not control GPU %zu; pass an open /dev/nvidia%d, or a token",
                 gpu->index, gpu->minor >= 0 ? gpu->minor : 0);
    else
        snprintf(why, RIGHTS_WHY_MAX,
                 "user %lld may not control GPU %zu; pass an open device file of it or a token, or ask "
                 "the operator for a rule",
                 (long long)peer->uid, gpu->index);
}

void rights_decide(const struct node_rights *rights, const struct rights_peer *peer,
                   const struct rights_gpu *gpu, struct rights_decision *out_decision)
{
    struct rights_decision decision = {.code = 0};
    unsigned scopes = own_scopes(rights, peer, gpu);

    scopes |= apply_rules(rights, peer, gpu, &decision.bounds);
    say_why(rights, peer, gpu, scopes, decision.why);
    decision.may_read = (scopes & (RIGHTS_READ | RIGHTS_CONTROL)) != 0;
    decision.may_control = decision.why[0] == '\0';
    decision.may_overrule = decision.may_control && (scopes & RIGHTS_OVERRULE) != 0;
    decision.code = decision.may_control ? 0 : FLY_EPERM;
    *out_decision = decision;
}

void rights_bounds(const struct node_rights *rights, const struct rights_gpu *gpu,
                   struct lease_bounds *out_bounds)
{
    struct lease_bounds bounds = {.floor_mw = 0};

    for (size_t i = 0; i < rights->rule_count; i++) {
        const struct rights_rule *rule = &rights->rules[i];

        if (rule->who == RIGHTS_ANYONE && rights_gpu_is(rule->gpu, gpu))
            tighten(&bounds, rule, gpu);
    }
    *out_bounds = bounds;
}
