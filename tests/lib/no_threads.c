/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before a test of the suite `alone`, which the thread sanitizer passes over: such a test that starts
 * a thread all the same ends with a word on that. What the test starts may have threads.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char words[] = "Bail out! a test of the suite 'alone' starts a thread; take it out of "
                            "alone_tests in tests/meson.build\n";

/* The library's names of parameters are its own.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*run)(void *), void *state)
{
    int (*real)(pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *state);

    if (strncmp(program_invocation_short_name, "test_", 5) == 0) {
        (void)!write(STDOUT_FILENO, words, sizeof words - 1);
        abort();
    }
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, state);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
