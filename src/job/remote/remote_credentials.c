/* SPDX-License-Identifier: Apache-2.0 */
/* How a client proves itself to a service, and the service to the client. No text ever contains a token. */
#include "job/remote/remote_credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "Authorization: Bearer ";

/* The option, or the variable when it is NULL; NULL for an empty one. */
static const char *given(const char *option, const char *variable)
{
    const char *text = option != NULL ? option : getenv(variable);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* Puts a token into its header; blanks around it are ignored. */
static int take_token(struct job_remote *remote, const char *text, const char *from,
                      struct fly_error *out_error)
{
    static const char blanks[] = " \t\r\n";
    size_t length;
    char *header;

    text += strspn(text, blanks);
    length = strlen(text);
    while (length > 0 && strchr(blanks, text[length - 1]) != NULL)
        length--;
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= 0x20 || text[i] == 0x7f)
            return error_set(out_error, FLY_EUSAGE,
                             "the token in %.200s has a blank or another strange character; write it alone",
                             from);
    }
    if (length == 0 || length > REMOTE_TOKEN_MAX)
        return error_set(out_error, FLY_EUSAGE, "the token in %.200s: expected 1 to %d characters", from,
                         REMOTE_TOKEN_MAX);
    header = malloc(sizeof prefix + length);
    if (header == NULL)
        return error_no_memory(out_error);
    snprintf(header, sizeof prefix + length, "%s%.*s", prefix, (int)length, text);
    free(remote->authorization);
    remote->authorization = header;
    return 0;
}

static int read_token(struct job_remote *remote, struct fly_error *out_error)
{
    char text[REMOTE_TOKEN_MAX + 64] = "", from[300];
    FILE *file = fopen(remote->token_file, "re");
    size_t length;

    if (file == NULL)
        return error_set(out_error, errno == EACCES ? FLY_EPERM : FLY_ENOTFOUND,
                         "token file '%.200s' cannot be read: %s; see FLYBALL_TOKEN_FILE", remote->token_file,
                         strerror(errno));
    length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    if (memchr(text, '\0', length) != NULL)
        length = 0;
    text[length] = '\0';
    snprintf(from, sizeof from, "file '%.200s'", remote->token_file);
    return take_token(remote, text, from, out_error);
}

bool remote_renew_token(struct job_remote *remote)
{
    char *before = remote->authorization;
    bool other;

    if (remote->token_file == NULL)
        return false;
    remote->authorization = NULL;
    if (read_token(remote, NULL) < 0 || remote->authorization == NULL) {
        remote->authorization = before;
        return false;
    }
    other = before == NULL || strcmp(before, remote->authorization) != 0;
    free(before);
    return other;
}

int remote_credentials(struct job_remote *remote, const struct job_options *options,
                       struct fly_error *out_error)
{
    const char *file = given(options->token_file, "FLYBALL_TOKEN_FILE");
    const char *token = given(options->token, "FLYBALL_TOKEN");
    const char *authority = given(options->authority_file, "FLYBALL_CA_FILE");
    int code = 0;

    if ((file != NULL || token != NULL) && !remote->address.secret)
        return error_set(out_error, FLY_EUSAGE,
                         "service '%.200s': a token would travel in the clear; use https://, or unset "
                         "FLYBALL_TOKEN_FILE and FLYBALL_TOKEN",
                         remote->shown);
    if (authority != NULL) {
        remote->authority_file = strdup(authority);
        if (remote->authority_file == NULL)
            return error_no_memory(out_error);
    }
    if (file != NULL) {
        remote->token_file = strdup(file);
        code = remote->token_file != NULL ? read_token(remote, out_error) : error_no_memory(out_error);
    } else if (token != NULL) {
        code = take_token(remote, token, "FLYBALL_TOKEN", out_error);
    }
    return code;
}
