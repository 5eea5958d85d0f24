/*
 * secret.h - overwrite passwords, and texts that may contain one, after use
 */
#ifndef LK_SECRET_H
#define LK_SECRET_H

#include <stddef.h>

/* Overwrite memory in a way that a compiler does not optimize away. */
void lk_wipe(void *at, size_t size);

/* Overwrite a text, up to its NUL.  NULL is allowed. */
void lk_wipe_text(char *text);

/* Overwrite a text and free it.  NULL is allowed. */
void lk_wipe_free(char *text);

#endif
