/* SPDX-License-Identifier: Apache-2.0 */
/* An entry of the journal of knobs: an entry that was read can be written, and reads the same again. */
#include <string.h>

#include "fuzz.h"
#include "knob/journal.h"

enum { TEXT_MAX = 1 << 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX], again[JOURNAL_TEXT_MAX];
    struct journal_entry entry, second;
    struct fly_error error;

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (journal_parse(text, &entry, &error) < 0) {
        FUZZ_CHECK(error.code == FLY_EDATA || error.code == FLY_EUNSUPPORTED);
        return 0;
    }
    FUZZ_CHECK(entry.turn_count <= TURNS_MAX);
    FUZZ_CHECK(journal_format(&entry, again) < JOURNAL_TEXT_MAX);
    FUZZ_CHECK(journal_parse(again, &second, NULL) == 0);
    FUZZ_CHECK(strcmp(entry.uuid, second.uuid) == 0 && strcmp(entry.program, second.program) == 0);
    for (size_t i = 0; i < entry.turn_count; i++)
        FUZZ_CHECK(setting_equals(&entry.turns[i].previous, &second.turns[i].previous) &&
                   setting_equals(&entry.turns[i].earlier, &second.turns[i].earlier) &&
                   setting_equals(&entry.turns[i].ours, &second.turns[i].ours));
    return 0;
}
