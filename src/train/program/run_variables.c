/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/run_variables.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RUN_VARIABLE_FACTS(name, variable, holds) {variable, holds},
const struct run_variable_facts run_variables[RUN_VARIABLE_COUNT] = {RUN_VARIABLE_MAP(RUN_VARIABLE_FACTS)};
#undef RUN_VARIABLE_FACTS

const char *run_variable(enum run_variable variable)
{
    const char *value = getenv(run_variables[variable].name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

unsigned run_variable_number(enum run_variable variable)
{
    const char *value = run_variable(variable);
    unsigned long number;
    char *end;

    if (value == NULL || value[0] < '0' || value[0] > '9')
        return 0;
    errno = 0;
    number = strtoul(value, &end, 10);
    return *end == '\0' && errno == 0 && number <= UINT32_MAX ? (unsigned)number : 0;
}

bool run_variables_of(const char *job)
{
    const char *name = run_variable(RUN_VARIABLE_JOB);

    return name != NULL && strcmp(name, job) == 0 && run_variable(RUN_VARIABLE_REQUEST) != NULL;
}
