/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that a program reports: each is one of the events, and lines that count as a step or an epoch are
 * short and without control characters.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "train/program/step_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct step_report report = {.epoch = 0};
    struct step_sender sender;
    char text[STEP_LINE_MAX + 1] = "";
    enum step_event event = step_line_event((const char *)data, size, &sender, &report);

    FUZZ_CHECK(event <= STEP_MALFORMED);
    if (event == STEP_MALFORMED || size == 0)
        return 0;
    FUZZ_CHECK(size <= STEP_LINE_MAX && memchr(data, '\0', size) == NULL && memchr(data, '\n', size) == NULL);
    FUZZ_CHECK(sender.rank >= -1 && sender.pid >= -1);
    memcpy(text, data, size);
    if (strncmp(step_line_sender(text, &sender), "epoch", 5) == 0)
        FUZZ_CHECK(event == STEP_EPOCH_BEGIN || event == STEP_EPOCH_END || event == STEP_REPORT);
    else
        FUZZ_CHECK(event == STEP_BEGIN || event == STEP_SESSION || event == STEP_OUT_OF_MEMORY);
    FUZZ_CHECK(event != STEP_REPORT || !isinf(report.metric));
    return 0;
}
