/*
 * command_line.h - describe a process for others: user, host, pid, command line
 */
#ifndef LK_COMMAND_LINE_H
#define LK_COMMAND_LINE_H

#include <stddef.h>

#define LK_PROCESS_NAME_SIZE 64

/* Write the words, each of which ends with NUL (`length` bytes in all), to
 * out[size], each after a space, as many whole words as fit.  Possible secrets
 * are shown as "...": the text after a "://", a '=' or the letter of an option,
 * an argument after an option named like a secret, and any word with other than
 * harmless characters, such as a script.  A password that looks like a plain
 * word cannot be recognized. */
void lk_command_line_show(char *out, size_t size, const char *words,
                          size_t length);

/* Write "user@host pid program arguments" of this process to out[size],
 * truncated if it does not fit. */
void lk_process_show(char *out, size_t size);

/* Write "sqlock HOST PID" to
 * out[LK_PROCESS_NAME_SIZE], by which a server tells whose a session
 * is: PostgreSQL takes 63 bytes. */
void lk_process_name(char *out);

#endif
