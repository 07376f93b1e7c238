/* SPDX-License-Identifier: Apache-2.0 */
#include "http/target.h"

#include <string.h>

#include "base/error.h"
#include "base/text/utf8.h"

enum { HEX = 16 };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decodes in place; with `keep` it only checks whether the text could be decoded. */
static int decode(char *text, bool keep, struct fly_error *out_error)
{
    static const char wrong[] = "the request's address has a '%' without two hexadecimal digits, or a "
                                "control character behind one; encode a '%' itself as '%25'";
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        char c = *from;

        if (c == '%') {
            int high = hex_digit(from[1]);
            int low = high >= 0 ? hex_digit(from[2]) : -1;

            if (low < 0 || high * HEX + low < ' ' || high * HEX + low == 0x7f)
                return error_set(out_error, FLY_EUSAGE, "%s", wrong);
            c = (char)(high * HEX + low);
            from += 2;
        } else if (c == '+' && !keep) {
            c = ' ';
        }
        if (!keep)
            *to++ = c;
    }
    if (!keep)
        *to = '\0';
    return 0;
}

static bool is_text(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    }
    return text_is_utf8(text, strlen(text));
}

static int add_parameter(char *pair, struct serve_request *request, struct fly_error *out_error)
{
    char *value = strchr(pair, '=');
    int code;

    if (pair[0] == '\0')
        return 0;
    if (request->query_count == SERVE_QUERY_MAX)
        return error_set(out_error, FLY_ELIMIT, "the request's address has more than %d parameters",
                         SERVE_QUERY_MAX);
    if (value != NULL)
        *value++ = '\0';
    else
        value = pair + strlen(pair);
    code = decode(pair, false, out_error);
    if (code == 0)
        code = decode(value, false, out_error);
    if (code == 0 && (!is_text(pair) || !is_text(value)))
        code = error_set(out_error, FLY_EUSAGE,
                         "a parameter of the request's address is not UTF-8, or has control characters");
    if (code == 0 && serve_query(request, pair) != NULL)
        code = error_set(out_error, FLY_EUSAGE, "a parameter of the request's address is given twice");
    if (code == 0)
        request->query[request->query_count++] = (struct serve_parameter){pair, value};
    return code;
}

int serve_target_parse(char *target, struct serve_request *out_request, struct fly_error *out_error)
{
    struct serve_request request = *out_request;
    char *query = strchr(target, '?');
    int code = 0;

    request.query_count = 0;
    if (query != NULL)
        *query++ = '\0';
    if (target[0] != '/' || !is_text(target))
        return error_set(out_error, FLY_EUSAGE,
                         "the request's address is no path, not UTF-8, or has control characters");
    code = decode(target, true, out_error);
    while (query != NULL && code == 0) {
        char *next = strchr(query, '&');

        if (next != NULL)
            *next++ = '\0';
        code = add_parameter(query, &request, out_error);
        query = next;
    }
    if (code == 0) {
        request.path = target;
        *out_request = request;
    }
    return code;
}
