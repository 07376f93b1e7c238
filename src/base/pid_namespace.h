/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_PID_NAMESPACE_H
#define FLYBALL_BASE_PID_NAMESPACE_H

#include <stdbool.h>

/*
 * Returns whether this process lives in the machine's first pid namespace, and so sees all processes under
 * the numbers that drivers use. A container has a namespace of its own as a rule. False also where that
 * cannot be found out. `proc_root` is "/proc".
 */
bool pid_namespace_is_first(const char *proc_root);

#endif
