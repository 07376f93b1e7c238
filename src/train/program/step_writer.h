/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_WRITER_H
#define FLYBALL_TRAIN_PROGRAM_STEP_WRITER_H

#include <stdbool.h>

/*
 * The program's end of its steps: writes lines for the `flyball run` around it.
 *
 *     switch (step_writer_open(&writer)) {
 *     case STEPS_NOT_WANTED:      ... no command is around the program ...
 *     case STEPS_OUT_OF_REACH:    ... one is, on another node or outside of this container ...
 *     case STEPS_OPEN:            step_writer_write(&writer, "epoch %d", epoch);
 *     }
 *     step_writer_close(&writer);
 *
 * It follows FLYBALL_STEPS, and writes only to the file named there: it checks device and inode. Each line
 * names this process's rank, from its launcher's variables, and its process number.
 */
enum step_way { STEPS_NOT_WANTED, STEPS_OUT_OF_REACH, STEPS_OPEN };

struct step_writer {
    int fd;   /* owned; -1: lines go nowhere */
    int rank; /* -1: not known */
};

enum step_way step_writer_open(struct step_writer *out_writer);

/* Writes a line and its newline. When that fails the line is dropped: the program goes on. */
__attribute__((format(printf, 2, 3))) void step_writer_write(const struct step_writer *writer,
                                                             const char *format, ...);

void step_writer_close(struct step_writer *writer);

#endif
