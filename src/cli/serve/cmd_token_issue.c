/* SPDX-License-Identifier: Apache-2.0 */
/* Signs a token for the public daemon's routes of flyballd, or for that daemon. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cli/frame/call.h"
#include "cli/serve/serve_commands.h"
#include "http/signing_key.h"
#include "http/tokens.h"

/* clang-format off */
static const struct cli_option options[] = {
    {.name = "signing-key", .type = CLI_TEXT, .placeholder = "FILE",
     .help = "Key of the daemon's setting server.signing_key: all bytes of the file, 32 or more."},
    {.name = "user", .type = CLI_TEXT, .placeholder = "NAME", .help = "Who is to have it; by that he is known in logs."},
    {.name = "scope", .type = CLI_LIST, .placeholder = "SCOPE", .choices = signed_scope_words, .default_text = "gpu-read",
     .help = "What its bearer may do."},
    {.name = "expires", .type = CLI_TEXT, .placeholder = "WHEN", .default_text = "90d",
     .help = "How long it holds: days as 90d, hours as 12h, a date as 2027-02-19T23:00:00Z, or never."},
};
/* clang-format on */

static int read_expiry(const struct cli_call *call, struct signed_token *token, struct fly_error *out_error)
{
    const char *expires = cli_text(call, "expires");

    if (strcmp(expires, "0") == 0) /* as the public daemon's command has it */
        expires = "never";
    if (!token_expiry_parse(expires, time(NULL), &token->expires_s))
        return cli_value_error(call, "expires", expires,
                               "days as 90d, hours as 12h, a date as 2027-02-19T23:00:00Z, or never",
                               out_error);
    token->expires = token->expires_s != INT64_MAX;
    if (!token->expires)
        token->expires_s = 0;
    return 0;
}

static int read_token(const struct cli_call *call, struct signed_token *out_token,
                      struct fly_error *out_error)
{
    struct signed_token token = {.scopes = 0};
    const char *user = cli_text(call, "user");
    const struct cli_list *scopes = cli_list(call, "scope");
    int code;

    if (user == NULL || user[0] == '\0' || strlen(user) >= sizeof token.subject)
        return cli_usage(call, out_error, "say with --user who is to have the token, in at most %d bytes",
                         SIGNED_SUBJECT_MAX - 1);
    if (cli_text(call, "signing-key") == NULL)
        return cli_usage(call, out_error, "no key given; name its file with --signing-key");
    code = read_expiry(call, &token, out_error);
    snprintf(token.subject, sizeof token.subject, "%s", user);
    for (size_t i = 0; i < scopes->count; i++)
        token.scopes |= 1U << scopes->choices[i];
    if (code == 0)
        *out_token = token;
    return code;
}

static int sign(const struct cli_call *call, const struct signed_token *token, char text[SIGNED_TOKEN_MAX],
                struct fly_error *out_error)
{
    struct signing_key key;
    int code = signing_key_open(&key, cli_text(call, "signing-key"), out_error);

    if (code < 0)
        return code;
    code = signed_token_write(token, key.bytes, key.length, text, out_error);
    signing_key_close(&key);
    return code;
}

static int issue_run(const struct cli_call *call, struct fly_error *out_error)
{
    char text[SIGNED_TOKEN_MAX], line[SIGNED_TOKEN_MAX + 1], date[TOKEN_DATE_MAX], name[SIGNED_NAME_MAX];
    struct signed_token token = {.scopes = 0};
    int code = read_token(call, &token, out_error);

    if (code == 0)
        code = sign(call, &token, text, out_error);
    if (code < 0)
        return code;
    snprintf(line, sizeof line, "%s\n", text);
    code = cli_emit_text(call, line, out_error);
    signed_token_name(&token, name);
    if (code == 0)
        cli_note(call, "it is known as '%s', and holds until %s or until the key is changed", name,
                 token_date(token.expires ? token.expires_s : INT64_MAX, date));
    return code;
}

const struct cli_command cmd_token_issue = {
    .words = "token issue",
    .summary = "sign a token for the public daemon's routes of flyballd",
    .paragraphs =
        {"Signs a JSON web token (HS256) with a key that flyballd has as 'server.signing_key', and prints "
         "it. "
         "Clients of the public daemon take it from ZEUSD_TOKEN; flyballd takes it on its own routes, too.",
         "No file lists such tokens: one holds until it expires or the key is changed."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball token issue --signing-key /etc/flyball/signing.key --user alice --scope "
                  "gpu-control,gpu-read",
                  "let alice read and turn GPUs for 90 days"},
                 {"flyball token issue --signing-key /etc/flyball/signing.key --user grafana --expires never",
                  "let a dashboard read GPUs"}},
    .run = issue_run,
};
