/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a new token for the service. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cli/frame/call.h"
#include "cli/serve/serve_commands.h"
#include "http/token_file.h"

static const char *const scopes[] = {"read", "train", "manage", NULL};

/* clang-format off */
static const struct cli_option options[] = {
    {.name = "scope", .type = CLI_CHOICE, .placeholder = "SCOPE", .choices = scopes, .default_text = "train",
     .help = "What its bearer may do: look at jobs and metrics, also train, or also change and delete jobs."},
    {.name = "expires", .type = CLI_TEXT, .placeholder = "WHEN", .default_text = "90d",
     .help = "How long it holds: days as 90d, hours as 12h, a date as 2027-02-19T23:00:00Z, or never."},
    {.name = "tokens", .type = CLI_TEXT, .placeholder = "FILE", .key = "serve.tokens", .sensitive = true,
     .help = "The service's file of tokens; one that is not there is made."},
};
/* clang-format on */

static int read_token(const struct cli_call *call, struct token *out_token, struct fly_error *out_error)
{
    struct token token = {.scope = SERVE_NOBODY};
    const char *expires = cli_text(call, "expires");
    const char *name = cli_operand_count(call) > 0 ? cli_operand(call, 0) : NULL;

    if (name == NULL || !token_name_is_good(name))
        return cli_usage(
            call, out_error,
            "give the token a name of at most %d letters, digits, '-', '_' and '.', by which it is "
            "known in logs",
            TOKEN_NAME_MAX - 1);
    if (cli_text(call, "tokens") == NULL)
        return cli_usage(call, out_error, "no file of tokens given; name it with --tokens");
    if (!token_expiry_parse(expires, time(NULL), &token.expires_s))
        return cli_value_error(call, "expires", expires,
                               "days as 90d, hours as 12h, a date as "
                               "2027-02-19T23:00:00Z, or never",
                               out_error);
    token_scope_parse(cli_text(call, "scope"), &token.scope);
    snprintf(token.name, sizeof token.name, "%s", name);
    *out_token = token;
    return 0;
}

static int token_run(const struct cli_call *call, struct fly_error *out_error)
{
    char secret[TOKEN_TEXT_MAX], line[TOKEN_TEXT_MAX + 1], date[TOKEN_DATE_MAX];
    struct token token = {.scope = SERVE_NOBODY};
    int code = read_token(call, &token, out_error);

    if (code == 0)
        code = token_draw(secret, token.hash, out_error);
    if (code == 0)
        code = token_file_add(cli_text(call, "tokens"), &token, out_error);
    if (code < 0)
        return code;
    snprintf(line, sizeof line, "%s\n", secret);
    code = cli_emit_text(call, line, out_error);
    if (code == 0)
        cli_note(call, "this token is shown once; it may %s until %s", cli_text(call, "scope"),
                 token_date(token.expires_s, date));
    return code;
}

const struct cli_command cmd_token = {
    .words = "token",
    .summary = "make a token for a service",
    .paragraphs =
        {"Draws a token of 256 random bits, adds its name, scope, expiry and SHA-256 to the service's file "
         "of "
         "tokens, and prints the token itself, which stands nowhere else. The service needs no restart; "
         "removing the line ends the token's life.",
         "A training is given the token in a file that FLYBALL_TOKEN_FILE names, or in FLYBALL_TOKEN."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "NAME",
    .operand_maximum = 1,
    .examples = {{"flyball token night-runs --tokens /etc/flyball/tokens", "let trainings in for 90 days"},
                 {"flyball token prometheus --scope read --expires never --tokens /etc/flyball/tokens",
                  "let Prometheus scrape the metrics"}},
    .run = token_run,
};
