/*
 * hash.c - compute FNV-1a as RFC 9923 defines it
 */
#include "base/hash.h"

#include <string.h>

#define PRIME UINT64_C(1099511628211)

uint64_t lk_hash_on(uint64_t hash, const void *at, size_t size)
{
    const unsigned char *bytes = at;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * PRIME;
    return hash;
}

uint64_t lk_hash_text(const char *text)
{
    return lk_hash_on(LK_HASH_NOTHING, text, strlen(text));
}
