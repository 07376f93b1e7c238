/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_WRITER_H
#define FLYBALL_TRAIN_PROGRAM_STEP_WRITER_H

#include <stdbool.h>

/*
 * The program's end of its steps: lines for the `flyball run` around it.
 *
 *     switch (step_writer_open(&writer)) {
 *     case STEPS_NOT_WANTED:      ... nobody is around ...
 *     case STEPS_OUT_OF_REACH:    ... somebody is, on another node or outside of this container ...
 *     case STEPS_OPEN:            step_writer_write(&writer, "epoch %d", epoch);
 *     }
 *     step_writer_close(&writer);
 *
 * Goes by FLYBALL_STEPS, and writes to no other file than the one that is named there: it checks
 * device and inode. Each line says the rank of this process, by its launcher's variables, and its
 * number. Under a command of 0.1, which sets FLYBALL_STEP_FD alone, that has to be a file in memory of
 * the name that those have, and lines say neither.
 */
enum step_way { STEPS_NOT_WANTED, STEPS_OUT_OF_REACH, STEPS_OPEN };

struct step_writer {
    int fd;     /* owned; -1: lines go nowhere */
    bool plain; /* lines do not say whose they are */
    int rank;   /* -1: not known */
};

enum step_way step_writer_open(struct step_writer *out_writer);

/* Writes a line, its end added. What cannot be written is not: the program goes on. */
__attribute__((format(printf, 2, 3))) void step_writer_write(const struct step_writer *writer,
                                                             const char *format, ...);

void step_writer_close(struct step_writer *writer);

#endif
