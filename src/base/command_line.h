/*
 * command_line.h - a process as others may see it: user, host, pid, command
 * line
 */
#ifndef LK_COMMAND_LINE_H
#define LK_COMMAND_LINE_H

#include <stddef.h>

/* Write the words, each with its NUL, to out[size] with a space before each, as
 * far as they fit.  What may be a secret is shown as "...": what follows a
 * "://", a '=' or the letter of an option, an argument behind an option that is
 * called after a secret, and whatever is no plain word, such as a script.  An
 * argument that is a password and looks like a plain word is not told from
 * one. */
void lk_command_line_show(char *out, size_t size, const char *words,
                          size_t length);

/* "user@host pid program arguments", of this process. */
void lk_process_show(char *out, size_t size);

#endif
