/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_FAMILIES_H
#define FLYBALL_SERVE_FAMILIES_H

#include <stdbool.h>

#include "serve/route_family.h"

/*
 * Returns all families of routes of the service, ended by NULL, in the order in which they are
 * asked. With `compat_zeus` they include that of the public batch-size server, whose paths start
 * at the root. Static storage.
 */
const struct serve_routes *const *serve_families(bool compat_zeus);

#endif
