/* SPDX-License-Identifier: Apache-2.0 */
#include "node/owner/owner.h"

#include <stddef.h>

#include "base/pid_namespace.h"

#define OWNER_RUNTIME_WORD(name, word) word,
static const char *const words[] = {OWNER_RUNTIME_MAP(OWNER_RUNTIME_WORD)};
#undef OWNER_RUNTIME_WORD
_Static_assert(sizeof words / sizeof words[0] == OWNER_RUNTIME_COUNT, "a word for each runtime");

const char *owner_runtime_word(enum owner_runtime runtime)
{
    return words[runtime];
}

bool owner_sees_all(void)
{
    return pid_namespace_is_first("/proc");
}
