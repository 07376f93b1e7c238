/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_reference.h"

#include <string.h>

#include "cli/frame/help.h"
#include "cli/frame/value.h"
#include "cli/kit/mdoc.h"
#include "http/process_metrics.h"
#include "http/traffic.h"
#include "node/node_arguments.h"
#include "node/node_figures.h"
#include "node/node_settings.h"

enum { FACTS_MAX = 1 << 12 };

static void put_option_line(const struct cli_option *option, struct buffer *out)
{
    buffer_printf(out, "  --%s %s\n      %s", option->name, option->placeholder, option->help);
    if (option->default_text != NULL)
        buffer_printf(out, " Default: %s.", option->default_text);
    buffer_puts(out, "\n");
}

void node_reference_help(struct buffer *out)
{
    buffer_puts(
        out,
        "flyballd: lends the knobs of a machine's GPUs, watches their joules, and gives everything back\n\n"
        "usage: flyballd [restore|release|resume] [OPTION...]\n\n");
    for (int i = 0; i < MODE_COUNT; i++)
        buffer_printf(out, "  %s\n      %s\n", node_modes[i].word != NULL ? node_modes[i].word : "(no word)",
                      node_modes[i].help);
    buffer_puts(out, "  " NODE_CONFIG_OPTION " FILE\n      Configuration to read. Default: " NODE_CONFIG_PATH
                     ".\n");
    for (int i = 0; i < KEY_COUNT; i++)
        if (node_settings[i].option.name != NULL)
            put_option_line(&node_settings[i].option, out);
    buffer_puts(out, "\nAll settings: flyballd(8).\n");
}

static void put_item(const char *macro, const char *term, const char *help, struct buffer *out)
{
    buffer_printf(out, ".It %s", macro);
    mdoc_argument(term, out);
    buffer_puts(out, "\n");
    mdoc_text(help, out);
}

static void put_facts(const struct cli_option *option, struct buffer *out)
{
    struct buffer facts;

    buffer_init(&facts, FACTS_MAX);
    help_option_facts(option, &facts);
    if (facts.length > 0)
        mdoc_text(facts.data, out);
    buffer_deinit(&facts);
}

static void put_modes(struct buffer *out)
{
    buffer_puts(out, ".Bl -tag -width Ds\n");
    for (int i = 0; i < MODE_COUNT; i++)
        if (node_modes[i].word != NULL)
            put_item(node_modes[i].word[0] == '-' ? "Li" : "Cm", node_modes[i].word, node_modes[i].help, out);
    put_item("Li", NODE_CONFIG_OPTION " FILE", "Configuration to read. Default: " NODE_CONFIG_PATH ".", out);
    for (int i = 0; i < KEY_COUNT; i++) {
        const struct cli_option *option = &node_settings[i].option;
        struct buffer term;

        if (option->name == NULL)
            continue;
        buffer_init(&term, FACTS_MAX);
        buffer_printf(&term, "--%s %s", option->name, option->placeholder);
        put_item("Li", term.data, option->help, out);
        buffer_deinit(&term);
    }
    buffer_puts(out, ".El\n");
}

static void put_settings(struct buffer *out)
{
    mdoc_section("SETTINGS", out);
    mdoc_text(
        "The part of a key before the dot is its section in the file. Settings marked so are put in force "
        "by SIGHUP; the others take a restart.",
        out);
    buffer_puts(out, ".Bl -tag -width Ds\n");
    for (int i = 0; i < KEY_COUNT; i++) {
        put_item("Cm", node_settings[i].option.key, node_settings[i].option.help, out);
        put_facts(&node_settings[i].option, out);
        if (node_settings[i].reloads)
            mdoc_text("In force at SIGHUP.", out);
    }
    buffer_puts(out, ".El\n");
    mdoc_section("RULES", out);
    mdoc_text(
        "A section [rule NAME] says who may do what, and between which limits. Of several floors the highest "
        "holds, of several ceilings the lowest. Its keys:",
        out);
    buffer_puts(out, ".Bl -tag -width Ds\n");
    for (int i = 0; i < RULE_KEYS; i++) {
        put_item("Cm", node_rule_keys[i].key, node_rule_keys[i].help, out);
        put_facts(&node_rule_keys[i], out);
    }
    buffer_puts(out, ".El\n");
}

void node_reference_manual(struct buffer *out)
{
    mdoc_begin("flyballd", 8, "lends the knobs of a machine's GPUs and watches their joules", out);
    mdoc_section("SYNOPSIS", out);
    buffer_puts(out, ".Nm flyballd\n.Op Cm restore | release | resume\n.Op Ar option ...\n");
    mdoc_section("DESCRIPTION", out);
    mdoc_text(
        "One daemon of a machine, started by root. Clients ask it over a Unix socket, or over TCP, for power "
        "limits and clocks that they may not set themselves, and for what GPUs use. Whatever it set, it puts "
        "back: when a client ends, when it ends itself, and after it was killed.",
        out);
    put_modes(out);
    put_settings(out);
    mdoc_section("SIGNALS", out);
    mdoc_text(
        "SIGTERM and SIGINT end all leases, put everything back and end the daemon. SIGHUP has it read its "
        "configuration, its certificate and its tokens again; no lease is lost. If the configuration has a "
        "fault, the earlier one stays in force.",
        out);
    mdoc_section("EXIT STATUS", out);
    mdoc_text("0 for a daemon that was told to stop, 64 for a wrong command line, 78 for a fault in the "
              "configuration, 69 for an address that is taken and for a GPU that could not be put back.",
              out);
    mdoc_section("SEE ALSO", out);
    buffer_puts(out, ".Xr flyball 1 ,\n.Xr flyball.ini 5\n");
}

void node_reference_quantities(struct buffer *out)
{
    static const struct quantities *const tables[] = {
        &watch_quantities,      &share_quantities,   &node_gpu_quantities, &node_quantities,
        &own_energy_quantities, &traffic_quantities, &process_quantities};

    help_quantities_tables(tables, sizeof tables / sizeof tables[0], out);
}
