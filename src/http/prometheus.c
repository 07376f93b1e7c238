/* SPDX-License-Identifier: Apache-2.0 */
#include "http/prometheus.h"

void prometheus_head(struct buffer *text, const char *name, const char *type, const char *help)
{
    buffer_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void prometheus_label(struct buffer *text, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"')
            buffer_append(text, "\\", 1);
        if (*value == '\n')
            buffer_puts(text, "\\n");
        else
            buffer_append(text, value, 1);
    }
}
