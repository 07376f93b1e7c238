/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the room in a build without it. */
#include "compat/zeus/serve/serve_zeus.h"

const bool serve_zeus_is_built = false;
const struct serve_routes serve_zeus;
