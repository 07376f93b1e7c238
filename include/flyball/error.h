/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_ERROR_H
#define FLYBALL_ERROR_H

#include <flyball/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Errors of the library and of its programs.
 *
 * A function that can fail returns 0 or one of the negative codes below, and
 * leaves its out-parameters untouched on failure. If a sentence can say more
 * than the code, the last parameter is an optional `struct fly_error` of the
 * caller; NULL is always allowed. There is no global last error.
 *
 *     struct fly_error error;
 *     if (fly_power_search_new(&options, &search, &error) < 0)
 *         fprintf(stderr, "%s\n", error.text);
 *
 * One table gives the code, the sentence, the exit status of a program that
 * stops because of it, and the HTTP status of a service that answers with it:
 *
 *     X(name, code, exit status, HTTP status, sentence)
 */
#define FLY_ERROR_MAP(X)                                                                         \
    X(FLY_EUSAGE, -1, 64, 400, "the call or command line is malformed")                          \
    X(FLY_EDATA, -2, 65, 422, "input data does not have the documented form")                    \
    X(FLY_ENOTFOUND, -3, 66, 404, "what was named does not exist")                               \
    X(FLY_EUNSUPPORTED, -4, 69, 501, "this build or this machine does not offer that")           \
    X(FLY_EEXHAUSTED, -5, 69, 409, "no choice is left to make")                                  \
    X(FLY_EINTERNAL, -6, 70, 500, "a defect of this program; please report it")                  \
    X(FLY_ESTATE, -7, 70, 409, "the call does not fit the state of its handle")                  \
    X(FLY_ENOMEM, -8, 71, 503, "memory is exhausted")                                            \
    X(FLY_ELIMIT, -9, 65, 413, "a documented limit is exceeded")                                 \
    X(FLY_EREAD, -10, 74, 500, "reading failed")                                                 \
    X(FLY_EWRITE, -11, 74, 507, "writing failed")                                                \
    X(FLY_EPERM, -12, 77, 403, "permission is missing")                                          \
    X(FLY_ECONFIG, -13, 78, 500, "a configuration file or variable is wrong")                    \
    X(FLY_EBUSY, -14, 69, 503, "somebody else holds it for too long")                            \
    X(FLY_EUNREACHABLE, -15, 69, 503, "a server cannot be reached")                              \
    X(FLY_EUNSURE, -16, 69, 503, "whether it was done is not known; look before doing it again") \
    X(FLY_ECONFLICT, -17, 65, 409, "it contradicts what is on record")

#define FLY_ERROR_ENUM(name, code, exit_status, http_status, sentence) name = (code),
enum fly_error_code { FLY_ERROR_MAP(FLY_ERROR_ENUM) };
#undef FLY_ERROR_ENUM

#define FLY_ERROR_TEXT_MAX 512

/*
 * What went wrong, in one line without a final newline: what failed, its
 * subject in quotes, the cause, the next step. Caller-owned; its layout never
 * changes. Longer texts are cut.
 */
struct fly_error {
    int code;
    char text[FLY_ERROR_TEXT_MAX];
};

/*
 * Name ("FLY_EDATA"), sentence, exit status and HTTP status of a code; 0 gives
 * "FLY_OK", "success", 0 and 200, and an unknown code reads as FLY_EINTERNAL.
 * Static storage. Thread-safe.
 */
FLY_API const char *fly_error_name(int code);
FLY_API const char *fly_error_sentence(int code);
FLY_API int fly_error_exit_status(int code);
FLY_API int fly_error_http_status(int code);

#ifdef __cplusplus
}
#endif

#endif
