/*
 * secret.c - overwrite secrets in memory
 */
#include "base/secret.h"

#include <stdlib.h>
#include <string.h>

void lk_wipe(void *at, size_t size)
{
    explicit_bzero(at, size);
}

void lk_wipe_text(char *text)
{
    if (text != NULL)
        lk_wipe(text, strlen(text));
}

void lk_wipe_free(char *text)
{
    lk_wipe_text(text);
    free(text);
}
