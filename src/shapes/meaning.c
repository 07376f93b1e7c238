/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes/meaning.h"

static const char *const type_names[] = {[MEANING_TEXT] = "text",
                                         [MEANING_DATE] = "date",
                                         [MEANING_WHOLE] = "whole number",
                                         [MEANING_REAL] = "number",
                                         [MEANING_LIST] = "list"};
static const char *const course_names[] = {[MEANING_FACT] = "fact",
                                           [MEANING_GAUGE] = "gauge",
                                           [MEANING_COUNTER] = "counter",
                                           [MEANING_HISTOGRAM] = "histogram"};

const struct meaning *quantities_at(const struct quantities *quantities, size_t index)
{
    return (const struct meaning *)(const void *)((const char *)quantities->first +
                                                  index * quantities->stride);
}

const char *meaning_type_name(enum meaning_type type)
{
    return type_names[type];
}

const char *meaning_course_name(enum meaning_course course)
{
    return course_names[course];
}
