/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_PLUGIN_CRASH_H
#define FLYBALL_CLI_SIM_PLUGIN_CRASH_H

/*
 * Handles the end of the program inside a plug-in's function. After a crash (SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL, SIGABRT), or a call of exit, _exit, _Exit or quick_exit there, it prints one
 * line that names the plug-in and the function, and the program ends with the exit status of a
 * defect:
 *
 *     flyball: plug-in './mine.so' crashed in 'propose' (SIGSEGV); ...
 *
 * The same holds for a thread that the plug-in started, which is recognised by the plug-in's code
 * on the thread's stack. Everywhere else signals keep their usual effect. Only for the main
 * program: a library installs no signal handlers.
 */

/* Installs the handlers, once. Call it before the first plug-in is loaded. */
void plugin_crash_watch(void);

/*
 * Prepares a thread that will call plug-ins: gives it a stack for the handlers, so that a plug-in
 * that overflows its own stack can be named too. Does nothing without plugin_crash_watch. Fits
 * `campaign_plan.thread_begun`.
 */
void plugin_crash_thread(void);

/* Sets the file that such an end removes, NULL for none. The name is copied. */
void plugin_crash_remove(const char *path);

#endif
