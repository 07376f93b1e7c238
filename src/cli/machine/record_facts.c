/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is meant for other people, so its user sees it first: everything in it is shown, and
 * it is written only after a yes.
 */
#include "cli/machine/record_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/atomic_file.h"
#include "cli/machine/facts_maker.h"
#include "cli/options/open_devices.h"
#include "shapes/json_layout.h"

enum { ANSWER_MAX = 64, NOT_WRITTEN = 1 };

/*
 * Checks that the file does not exist yet, since an existing file is kept; a pipe or a device may
 * be written to.
 */
static int check_path(const char *path, struct fly_error *out_error)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
        return error_set(out_error, FLY_EUSAGE, "'%s' exists; name another file, or remove it", path);
    return 0;
}

static int show(const struct cli_call *call, json_t *document, struct fly_error *out_error)
{
    struct buffer text;
    int code;

    if (cli_format(call) == TABLE_FORMAT_JSON)
        return cli_emit_json(call, json_incref(document), out_error);
    buffer_init(&text, FACTS_BYTES_MAX);
    json_layout_text(document, &text);
    code = text.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

static bool says_yes(const char *path)
{
    char answer[ANSWER_MAX];

    fflush(stdout);
    fprintf(stderr, "Write this to '%s', to be given to others? [y/N] ", path);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    answer[strcspn(answer, "\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

/* Asks whether to write it: 1, 0, or an error if nobody can be asked. */
static int ask(const struct cli_call *call, const char *path, struct fly_error *out_error)
{
    if (cli_flag(call, "yes"))
        return 1;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return error_set(out_error, FLY_EUSAGE,
                         "'%s' was not written: there is no terminal to ask on; look at what is shown, then "
                         "add --yes",
                         path);
    return says_yes(path);
}

static int write_document(const char *path, json_t *document, struct fly_error *out_error)
{
    struct atomic_file file;
    struct buffer text;
    int code = check_path(path, out_error);

    if (code < 0)
        return code;
    buffer_init(&text, FACTS_BYTES_MAX);
    json_layout_file(document, &text);
    code = text.error < 0 ? error_no_memory(out_error) : atomic_file_open(path, &file, out_error);
    if (code == 0) {
        fwrite(text.data, 1, text.length, file.stream);
        code = atomic_file_commit(&file, out_error);
    }
    buffer_deinit(&text);
    return code;
}

static int offer(const struct cli_call *call, const char *path, json_t *document, struct fly_error *out_error)
{
    int code = show(call, document, out_error);

    if (code == 0)
        code = ask(call, path, out_error);
    if (code == 0) {
        cli_note(call, "'%s' was not written", path);
        cli_exit_with(call, NOT_WRITTEN);
    }
    if (code <= 0)
        return code;
    code = write_document(path, document, out_error);
    if (code == 0)
        cli_note(call,
                 "'%s' holds what is shown above; 'flyball devices --replay' and 'flyball doctor --replay' "
                 "answer from it",
                 path);
    return code;
}

int record_facts(const struct cli_call *call, const char *path, struct fly_error *out_error)
{
    static struct device_list list; /* large */
    struct facts *facts = NULL;
    json_t *document = NULL;
    int code = check_path(path, out_error);

    if (code == 0)
        code = cli_open_devices_and(call, GPUS_ALL, LEFTOVERS_LEAVE, &list, NULL, out_error);
    if (code < 0)
        return code;
    code = facts_make(call, &list, &facts, out_error);
    if (code == 0)
        code = facts_document(facts, &document, out_error);
    if (code == 0)
        code = offer(call, path, document, out_error);
    json_decref(document);
    facts_free(facts);
    device_list_close(&list);
    return code;
}
