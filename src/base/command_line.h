/*
 * command_line.h - describe a process for others: user, host, pid, command line
 */
#ifndef LK_COMMAND_LINE_H
#define LK_COMMAND_LINE_H

#include <stddef.h>

/* Write the words, each of which ends with NUL, to out[size], separated by
 * spaces, as far as they fit.  Possible secrets are shown as "...": what
 * follows a "://", a '=' or the letter of an option, an argument after an
 * option named like a secret, and anything that is not a plain word, such as a
 * script.  A password that looks like a plain word cannot be recognized. */
void lk_command_line_show(char *out, size_t size, const char *words,
                          size_t length);

/* Write "user@host pid program arguments" of this process. */
void lk_process_show(char *out, size_t size);

#endif
