/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_EXIT_GATE_H
#define FLYBALL_BASE_THREAD_EXIT_GATE_H

/*
 * Keeps threads that nobody waits for out of a foreign library once the program exits.
 *
 * Libraries such as OpenSSL clean up in an exit handler, and a thread that works in one of them at
 * that moment crashes a training that had come to a good end. A thread stands inside the gate for
 * as long as it is in such a library, never while it waits:
 *
 *     exit_gate_enter();
 *     state = library_poll(connection);
 *     exit_gate_leave();
 *
 * As the program exits, the gate shuts, waits for whoever is inside, a second at most, and halts
 * for good whoever comes later, except for the thread that exits. It does not nest. In a forked
 * child nobody is inside. Thread-safe.
 */

/*
 * From now on, exit() shuts the gate before it runs the handlers that are registered already. Call it
 * before the library is loaded, and keep the library from registering a handler of its own later, which
 * would run first. Calls after the first have no effect.
 */
void exit_gate_install(void);
void exit_gate_enter(void);
void exit_gate_leave(void);

#endif
