/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http_curl.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/shared_object.h"

/* The names in distributions: over OpenSSL, GnuTLS, NSS. */
static const char *const library_names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

struct curl_calls http_curl;

struct call_row {
    size_t offset;
    const char *name;
};
#define CURL_ROW(slot, result, parameters, name) {offsetof(struct curl_calls, slot), name},
static const struct call_row call_rows[] = {CURL_CALLS(CURL_ROW)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct fly_error load_error; /* of the only attempt; code 0: it succeeded */

/* The library stays loaded until the process ends: it registers exit handlers, so it must not be unloaded. */
static void load(void)
{
    struct shared_object object;
    struct fly_error why = {.code = 0};
    int code = FLY_ENOTFOUND;

    for (size_t i = 0; i < sizeof library_names / sizeof library_names[0] && code < 0; i++)
        code = shared_object_open_library(library_names[i], &object, i == 0 ? &why : NULL);
    if (code < 0) {
        error_set(&load_error, FLY_EUNSUPPORTED,
                  "%.300s; install libcurl (Debian's package is libcurl4) to speak to servers", why.text);
        return;
    }
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        const void *found = shared_object_find(&object, call_rows[i].name);

        if (found == NULL) {
            error_set(&load_error, FLY_EUNSUPPORTED,
                      "libcurl lacks the function '%s'; install a newer one to speak to servers",
                      call_rows[i].name);
            return;
        }
        memcpy((char *)&http_curl + call_rows[i].offset, &found, sizeof found);
    }
    if (http_curl.global_init(CURL_GLOBAL_DEFAULT) != CURL_OK)
        error_set(&load_error, FLY_EUNSUPPORTED, "libcurl does not start; see whether 'curl' works");
}

int http_curl_ready(struct fly_error *out_error)
{
    pthread_once(&once, load);
    return load_error.code < 0 ? error_set(out_error, load_error.code, "%s", load_error.text) : 0;
}
