/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_report.h"

#include <flyball/record.h>

#include "base/harmless.h"
#include "cli/kit/table_print.h"
#include "cli/measure/own_use.h"
#include "cli/run/run_files.h"

enum { REPORT_MAX = 1 << 22 };

/* The report in the form of --format. */
static void put_report(const struct cli_call *call, const struct run_result *result,
                       const struct fly_meter *meter, struct buffer *out)
{
    static char lines[REPORT_MAX / 8];
    json_t *document;

    switch (cli_format(call)) {
    case TABLE_FORMAT_TABLE:
        run_report_text(result, cli_flag(call, "verbose"), out);
        break;
    case TABLE_FORMAT_JSON:
        document = run_report_json(result);
        table_print_json(document, out, NULL);
        json_decref(document);
        break;
    case TABLE_FORMAT_CSV:
        if (result->fault != NULL)
            break;
        if (fly_record_header(meter, FLY_RECORD_CSV, lines, sizeof lines) > 0)
            buffer_puts(out, lines);
        if (fly_record_window(meter, &result->measured, FLY_RECORD_CSV, lines, sizeof lines) > 0)
            buffer_puts(out, lines);
        break;
    }
}

void run_report_emit(const struct cli_call *call, struct run_result *result, const struct fly_meter *meter)
{
    const char *output = result->output, *csv = result->csv;
    struct fly_error error;
    struct buffer text;

    own_use_count(result);
    if (output != NULL && run_output_write(result, output, &error) < 0) {
        cli_warn(call, "no report: %s", error.text);
        result->output = NULL;
    }
    if (csv != NULL && result->fault != NULL)
        cli_warn(call, "'%s': no line is added, since nothing was measured", csv);
    else if (csv != NULL && run_csv_append(meter, &result->measured, csv, &error) < 0)
        cli_warn(call, "%s", error.text);
    if (cli_flag(call, "quiet"))
        return;
    buffer_init(&text, REPORT_MAX);
    put_report(call, result, meter, &text);
    if (text.length > 0)
        text.length = harmless_make(text.data, text.length, true);
    fwrite(text.data, 1, text.length, cli_err(call));
    fflush(cli_err(call));
    buffer_deinit(&text);
}
