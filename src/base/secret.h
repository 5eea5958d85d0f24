/*
 * secret.h - texts that nobody is to read once they are done with: passwords,
 * and what may contain one
 */
#ifndef LK_SECRET_H
#define LK_SECRET_H

#include <stddef.h>

/* Overwrite memory, also where a compiler thinks that nobody reads it again. */
void lk_wipe(void *at, size_t size);

/* Overwrite a text, up to its NUL.  NULL is allowed. */
void lk_wipe_text(char *text);

/* Overwrite a text and free it.  NULL is allowed. */
void lk_wipe_free(char *text);

#endif
