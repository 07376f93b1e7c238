/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COMPAT_ZEUS_SERVE_SERVE_ZEUS_H
#define FLYBALL_COMPAT_ZEUS_SERVE_SERVE_ZEUS_H

#include <stdbool.h>

#include "serve/route_family.h"

/* The interface of the public batch-size server, whose paths start at the root. */
extern const struct serve_routes serve_zeus;

/* Whether it is in this build (option `zeus`); if not, `serve_zeus` answers nothing. */
extern const bool serve_zeus_is_built;

#endif
