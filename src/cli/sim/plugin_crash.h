/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_PLUGIN_CRASH_H
#define FLYBALL_CLI_SIM_PLUGIN_CRASH_H

/*
 * The end of the program inside a plug-in's function. A crash (SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL, SIGABRT) there, or a call of exit, _exit, _Exit or quick_exit, is answered with
 * one line that names the plug-in and the function, and the exit status of a defect:
 *
 *     flyball: plug-in './mine.so' crashed in 'propose' (SIGSEGV); ...
 *
 * So is one in a thread that the plug-in started, known by the plug-in's code on the thread's stack.
 *
 * Anywhere else, signals do what they always did. For the main program only: a
 * library installs no signal handlers.
 */

/* Installs the handlers, once; to be called before the first plug-in is loaded. */
void plugin_crash_watch(void);

/*
 * Readies a thread that will call plug-ins: gives it a stack for the handlers, so
 * that a plug-in that uses up its own can be named too. Nothing unless watched.
 * Fits `campaign_plan.thread_begun`.
 */
void plugin_crash_thread(void);

/* The file, or NULL for none, that such an end removes. The name is copied. */
void plugin_crash_remove(const char *path);

#endif
