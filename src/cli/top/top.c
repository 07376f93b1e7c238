/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/top.h"

#include "base/clock.h"

int top_read(struct top *top, struct fly_error *out_error)
{
    struct top_answer answer;
    struct top_groups groups;
    struct arena arena;
    int code;

    arena_init(&arena, TOP_ANSWER_BYTES);
    code = top_ask(top->daemon, &arena, &answer, out_error);
    if (code == 0)
        code = top_group_make(&answer, &top->wish, &arena, &groups, out_error);
    if (code < 0) {
        arena_deinit(&arena);
        return code;
    }
    top_end(top);
    top->arena = arena;
    top->answer = answer;
    top->groups = groups;
    top->read_unix_s = (double)clock_real.date(clock_real.state).ns * 1e-9;
    return 0;
}

void top_end(struct top *top)
{
    arena_deinit(&top->arena);
}
