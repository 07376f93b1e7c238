/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_settings.h"

#include <string.h>

#include "base/words.h"

static const char *const rules[] = {"refuse", "lower", NULL};
static const char *const public_groups[] = {SETTING_NONE, "gpu-control", "gpu-read", "cpu-read", NULL};
static const char *const log_formats[] = {"text", "json", NULL};

/* clang-format off */
const struct node_setting node_settings[KEY_COUNT] = {
    [KEY_LISTEN] = {{.name = "listen", .key = "server.listen", .type = CLI_LIST, .placeholder = "ADDRESS",
        .default_text = "unix:/run/flyballd/flyballd.sock,127.0.0.1:7471",
        .help = "Addresses to listen at: unix:PATH, 127.0.0.1:PORT, [::1]:PORT, or one of other machines' networks, "
                "which takes tokens and TLS."}, false},
    [KEY_SOCKET_OWNER] = {{.key = "server.socket_owner", .type = CLI_TEXT, .placeholder = "USER",
        .help = "User, by name or number, that owns the Unix sockets; if not given, the daemon's own."}, false},
    [KEY_SOCKET_GROUP] = {{.key = "server.socket_group", .type = CLI_TEXT, .placeholder = "GROUP",
        .help = "Group, by name or number, of the Unix sockets; if not given, the daemon's own."}, false},
    [KEY_SOCKET_MODE] = {{.key = "server.socket_mode", .type = CLI_TEXT, .placeholder = "MODE", .default_text = "0666",
        .help = "Mode of the Unix sockets, in octal: who may connect. What they may do there is a matter of rights."}, false},
    [KEY_TOKENS] = {{.key = "server.tokens", .type = CLI_TEXT, .placeholder = "FILE",
        .help = "File of tokens, made with 'flyball token'; a client over TCP controls nothing without one."}, false},
    [KEY_SIGNING_KEY] = {{.key = "server.signing_key", .type = CLI_TEXT, .placeholder = "FILE",
        .help = "Key of tokens that 'flyball token issue' signs; the public daemon's routes want one then. Read again at SIGHUP."}, false},
    [KEY_TLS_CERTIFICATE] = {{.key = "server.tls_certificate", .type = CLI_TEXT, .placeholder = "FILE",
        .help = "Certificate, with those between it and its authority, in PEM; TLS on TCP then. Read again at SIGHUP."}, false},
    [KEY_TLS_KEY] = {{.key = "server.tls_key", .type = CLI_TEXT, .placeholder = "FILE",
        .help = "Key of that certificate, in PEM. Read again at SIGHUP."}, false},
    [KEY_INSECURE_PLAIN_HTTP] = {{.key = "server.insecure_plain_http", .type = CLI_FLAG, .default_text = "no",
        .help = "Take tokens from other machines without TLS, because something in front of the daemon does it."}, false},
    [KEY_CONNECTIONS] = {{.key = "server.connections", .type = CLI_INTEGER, .minimum = 1, .maximum = 100000,
        .default_text = "16384", .help = "Most connections at once, of each address."}, false},
    [KEY_CONNECTIONS_PER_HOST] = {{.key = "server.connections_per_host", .type = CLI_INTEGER, .minimum = 1,
        .maximum = 100000, .default_text = "1024",
        .help = "Most connections at once of one user of this machine, or from another machine (of IPv6: from a network of "
        "64 bits), of each TCP address; never more than three quarters of server.connections."}, false},
    [KEY_CONNECTIONS_PER_USER] = {{.key = "server.connections_per_user", .type = CLI_INTEGER, .minimum = 1,
        .maximum = 100000, .default_text = "1024",
        .help = "Most connections at once of one user, over all Unix sockets together; root has no such limit."}, false},
    [KEY_BODY_MAX] = {{.key = "server.body_max", .type = CLI_INTEGER, .minimum = 1024, .maximum = 1 << 24,
        .default_text = "65536", .help = "Longest body of a request, in bytes."}, false},
    [KEY_REQUEST_TIMEOUT] = {{.key = "server.request_timeout", .type = CLI_REAL, .minimum = 0.1, .maximum = 3600,
        .default_text = "30", .help = "Seconds in which a client has to send its request and to take the answer."}, false},
    [KEY_WORKERS] = {{.key = "server.workers", .type = CLI_INTEGER, .minimum = 1, .maximum = 64, .default_text = "8",
        .help = "Requests that may wait for a GPU to be turned at once. Requests that only read never wait for them."}, false},
    [KEY_GRACE] = {{.key = "server.grace", .type = CLI_REAL, .minimum = 0, .maximum = 600, .default_text = "10",
        .help = "Seconds for putting everything back and for answers under way when the daemon is told to stop."}, true},
    [KEY_PUBLIC_GROUPS] = {{.key = "server.public_groups", .type = CLI_LIST, .placeholder = "GROUP", .choices = public_groups,
        .default_text = "gpu-control,gpu-read,cpu-read",
        .help = "Groups of the public daemon's routes that are there; 'none' for none of them."}, false},
    [KEY_POLL] = {{.name = "poll", .key = "watch.poll", .type = CLI_REAL, .placeholder = "SECONDS", .minimum = 0.01,
        .maximum = 60, .default_text = "0.1", .help = "Seconds between two readings of a GPU."}, false},
    [KEY_STATE] = {{.name = "state", .key = "watch.state", .type = CLI_TEXT, .placeholder = "DIRECTORY",
        .default_text = "/var/lib/flyballd",
        .help = "Directory of what outlives the daemon: counters of energy that go on, and who used the GPUs."}, false},
    [KEY_ATTRIBUTION_ENABLED] = {{.key = "attribution.enabled", .type = CLI_FLAG, .default_text = "yes",
        .help = "Keep account of which process uses which GPU, and of its share of the energy."}, false},
    [KEY_ATTRIBUTION_POLL] = {{.key = "attribution.poll", .type = CLI_REAL, .minimum = 0.05, .maximum = 60,
        .default_text = "0.5", .help = "Seconds between two looks at who is on a GPU."}, false},
    [KEY_ATTRIBUTION_KEEP] = {{.name = "keep", .key = "attribution.keep", .type = CLI_REAL, .placeholder = "SECONDS",
        .minimum = 0, .maximum = 1e7, .default_text = "3600",
        .help = "Seconds for which rows of processes are kept after the last process of their job has ended."}, true},
    [KEY_ATTRIBUTION_SERIES] = {{.key = "attribution.series", .type = CLI_INTEGER, .minimum = 1, .maximum = 1000,
        .default_text = "1000", .help = "Most series of Prometheus about who uses the GPUs; the rest is counted."}, false},
    [KEY_NVML] = {{.name = "nvml", .key = "devices.nvml", .type = CLI_TEXT, .placeholder = "FILE",
        .help = "NVIDIA's driver library; if not given, the system's."}, false},
    [KEY_AMDSMI] = {{.name = "amdsmi", .key = "devices.amdsmi", .type = CLI_TEXT, .placeholder = "FILE",
        .help = "AMD's driver library; if not given, the system's."}, false},
    [KEY_SYSFS_ROOT] = {{.name = "sysfs-root", .key = "devices.sysfs_root", .type = CLI_TEXT, .placeholder = "DIRECTORY",
        .help = "Directory that holds sys, proc and dev in place of the machine's; for tests."}, false},
    [KEY_LEASE_RULE] = {{.key = "lease.rule", .type = CLI_CHOICE, .choices = rules, .default_text = "refuse",
        .help = "What happens if a second lease wants the same GPU: it is refused, or the lower limit wins."}, true},
    [KEY_LEASE_PATIENCE] = {{.key = "lease.patience", .type = CLI_REAL, .minimum = 0.1, .maximum = 60,
        .default_text = "2", .help = "Seconds that a client waits for a driver that does not answer."}, false},
    [KEY_LEASE_MAXIMUM] = {{.key = "lease.maximum", .type = CLI_INTEGER, .minimum = 1, .maximum = 4096,
        .default_text = "256", .help = "Most leases at once."}, false},
    [KEY_LEASE_PER_USER] = {{.key = "lease.per_user", .type = CLI_INTEGER, .minimum = 1, .maximum = 4096,
        .default_text = "64", .help = "Most leases at once of one user, or of one token."}, false},
    [KEY_LEASE_AUDIT] = {{.key = "lease.audit", .type = CLI_TEXT, .placeholder = "FILE",
        .default_text = "/var/log/flyballd/audit.jsonl",
        .help = "Log of who turned what, one JSON object a line; 'none' writes no log. Opened again at SIGHUP."}, false},
    [KEY_LEASE_AUDIT_REQUIRED] = {{.key = "lease.audit_required", .type = CLI_FLAG, .default_text = "no",
        .help = "Lease nothing that is not on record: what is asked for is written to the audit log beforehand, and "
        "refused while that cannot be written."}, false},
    [KEY_RUNTIME_DIRECTORY] = {{.key = "lease.runtime_directory", .type = CLI_TEXT, .placeholder = "DIRECTORY",
        .default_text = "/run/flyball", .help = "Directory of locks and journal, which all programs on the machine share."}, false},
    [KEY_GUARD] = {{.key = "lease.guard", .type = CLI_TEXT, .placeholder = "FILE",
        .help = "The program flyball-guard; if not given, the one beside this program, or the installed one."}, false},
    [KEY_READONLY] = {{.key = "rights.readonly", .type = CLI_TEXT, .placeholder = "FILE",
        .default_text = "/etc/flyball/readonly", .help = "While this file is there, nobody turns anything."}, false},
    [KEY_RIGHTS_PROOF] = {{.key = "rights.proof", .type = CLI_FLAG, .default_text = "yes",
        .help = "Let a client control a GPU whose open device file it passes over the Unix socket."}, true},
    [KEY_RIGHTS_CLOSED] = {{.key = "rights.closed", .type = CLI_FLAG, .default_text = "no",
        .help = "Let local users read only by a rule, a proof or a token."}, true},
    [KEY_RIGHTS_OPEN] = {{.key = "rights.open", .type = CLI_FLAG, .default_text = "no",
        .help = "Let clients over TCP read without a token."}, true},
    [KEY_RIGHTS_CONTAINED] = {{.key = "rights.contained", .type = CLI_FLAG, .default_text = "no",
        .help = "Turn also where the daemon does not see the machine's processes, as in a container."}, true},
    [KEY_LOG_FORMAT] = {{.name = "log", .key = "log.format", .type = CLI_CHOICE, .placeholder = "FORMAT",
        .choices = log_formats, .default_text = "text",
        .help = "Form of the daemon's own log on standard error: lines of text, or of JSON objects."}, true},
    [KEY_LOG_REQUESTS] = {{.key = "log.requests", .type = CLI_FLAG, .default_text = "no",
        .help = "Log a line about each request."}, true},
};

const struct cli_option node_rule_keys[RULE_KEYS] = {
    [RULE_FOR] = {.key = "for", .type = CLI_TEXT, .placeholder = "WHO", .default_text = "anyone",
        .help = "Whom the rule is for: anyone, user:NAME, group:NAME or token:NAME; a number in place of a user's "
                "or a group's name."},
    [RULE_GPUS] = {.key = "gpus", .type = CLI_LIST, .placeholder = "GPU", .default_text = "*",
        .help = "GPUs by UUID, PCI address or index; * is all."},
    [RULE_ALLOW] = {.key = "allow", .type = CLI_LIST, .placeholder = "SCOPE",
        .help = "What it allows: read, control (which includes read), overrule (turn although others compute "
                "on the GPU). Anyone may at most be allowed to read."},
    [RULE_FLOOR] = {.key = "floor", .type = CLI_TEXT, .placeholder = "LIMIT",
        .help = "No power limit below this: in W, or as a share of the GPU's highest, as in 40%."},
    [RULE_CEILING] = {.key = "ceiling", .type = CLI_TEXT, .placeholder = "LIMIT",
        .help = "No power limit above this: in W, or as a share of the GPU's highest."},
};
/* clang-format on */

int node_setting_find(const char *key)
{
    for (int i = 0; i < KEY_COUNT; i++)
        if (strcmp(node_settings[i].option.key, key) == 0)
            return i;
    return -1;
}

const char *node_setting_nearest(const char *key)
{
    const char *keys[KEY_COUNT];
    int nearest;

    for (size_t i = 0; i < KEY_COUNT; i++)
        keys[i] = node_settings[i].option.key;
    nearest = word_nearest(key, keys, KEY_COUNT);
    return nearest < 0 ? NULL : keys[nearest];
}
