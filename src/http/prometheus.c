/* SPDX-License-Identifier: Apache-2.0 */
#include "http/prometheus.h"

void prometheus_head(struct buffer *text, const struct meaning *family)
{
    buffer_printf(text, "# HELP %s %s\n# TYPE %s %s\n", family->key, family->help, family->key,
                  meaning_course_name(family->course));
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
