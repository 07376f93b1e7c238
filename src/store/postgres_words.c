/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_words.h"

#include <string.h>

#include <flyball/error.h>

#define TRY_AGAIN "try again"
#define SEE_SERVER "see the server's log"

/* Looked up by the beginning of a SQLSTATE (appendix A of PostgreSQL's manual); the first match counts. */
static const struct state_row {
    const char *state;
    struct postgres_meaning meaning;
} state_rows[] = {
    {"08", {FLY_EUNREACHABLE, TRY_AGAIN}},
    {"57P", {FLY_EUNREACHABLE, TRY_AGAIN}},
    {"25P03", {FLY_EUNREACHABLE, "end changes sooner"}},
    {"55P03", {FLY_EBUSY, TRY_AGAIN}},
    {"57014", {FLY_EBUSY, TRY_AGAIN}},
    {"40", {FLY_EBUSY, TRY_AGAIN}},
    {"53300", {FLY_EBUSY, "allow more connections (max_connections), or use fewer"}},
    {"53100", {FLY_EWRITE, "free some space on the server"}},
    {"53200", {FLY_ENOMEM, "free some on the server"}},
    {"53", {FLY_EWRITE, SEE_SERVER}},
    {"58", {FLY_EWRITE, SEE_SERVER}},
    {"XX001", {FLY_EREAD, "restore a copy"}},
    {"XX002", {FLY_EREAD, "rebuild it with REINDEX"}},
    {"28", {FLY_EPERM, "see user and password of the address, and the server's pg_hba.conf"}},
    {"42501", {FLY_EPERM, "let the user CREATE in the schema, or own the tables"}},
    {"25006", {FLY_EPERM, "name the primary server"}},
    {"3D", {FLY_ENOTFOUND, "make it with 'createdb'"}},
    {"3F", {FLY_ENOTFOUND, "make the schema with CREATE SCHEMA"}},
    {"42", {FLY_EDATA, "name another database, or set search_path in the address's options"}},
    {"22021", {FLY_EUSAGE, "write UTF-8"}},
};

/* Words with which servers refuse a connection, in English. */
static const struct connect_row {
    const char *words;
    struct postgres_meaning meaning;
} connect_rows[] = {
    {"password", {FLY_EPERM, "see user and password of the address"}},
    {"authentication failed",
     {FLY_EPERM, "see user and password of the address, and the server's pg_hba.conf"}},
    {"pg_hba.conf", {FLY_EPERM, "let the server's pg_hba.conf admit this machine"}},
    {"role \"", {FLY_EPERM, "make the role with 'createuser'"}},
    {"permission denied", {FLY_EPERM, "ask for the right to connect"}},
    {"read-only", {FLY_EPERM, "name the primary server"}},
    {"database \"", {FLY_ENOTFOUND, "make it with 'createdb'"}},
    {"too many", {FLY_EBUSY, "allow more connections (max_connections), or use fewer"}},
    {"connection slots", {FLY_EBUSY, "allow more connections (max_connections), or use fewer"}},
};

struct postgres_meaning postgres_state_meaning(const char *state)
{
    if (state == NULL || state[0] == '\0')
        return (struct postgres_meaning){FLY_EUNREACHABLE, TRY_AGAIN};
    for (size_t i = 0; i < sizeof state_rows / sizeof state_rows[0]; i++) {
        if (strncmp(state, state_rows[i].state, strlen(state_rows[i].state)) == 0)
            return state_rows[i].meaning;
    }
    return (struct postgres_meaning){FLY_EINTERNAL, SEE_SERVER};
}

struct postgres_meaning postgres_connect_meaning(const char *text)
{
    for (size_t i = 0; i < sizeof connect_rows / sizeof connect_rows[0]; i++) {
        if (strstr(text, connect_rows[i].words) != NULL)
            return connect_rows[i].meaning;
    }
    return (struct postgres_meaning){
        FLY_EUNREACHABLE, "see whether the server runs and listens, and host and port of the address"};
}

static const char *without_severity(const char *message)
{
    size_t word = strspn(message, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    if (word == 0 || message[word] != ':')
        return message;
    message += word + 1;
    return message + strspn(message, " ");
}

char *postgres_words(const char *message, char *out, size_t size)
{
    size_t length = 0;

    for (message = without_severity(message); *message != '\0' && length + 1 < size; message++)
        out[length++] = (char)((unsigned char)*message < ' ' ? ' ' : *message);
    while (length > 0 && out[length - 1] == ' ')
        length--;
    out[length] = '\0';
    return out;
}
