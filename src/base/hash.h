/*
 * hash.h - hash functions and hash tables
 *
 * The tables are uthash's, which would end the process when memory runs out:
 * here, a table to which nothing could be added is NULL (hh.tbl).
 */
#ifndef LK_HASH_H
#define LK_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of 64 bits, for data that nobody makes collide on purpose.  Hash data
 * in parts: begin with LK_HASH_NOTHING, and pass each result to the next
 * call. */
#define LK_HASH_NOTHING UINT64_C(14695981039346656037)
uint64_t lk_hash_on(uint64_t hash, const void *at, size_t size);

/* Hash a text, without its NUL. */
uint64_t lk_hash_text(const char *text);

#endif
