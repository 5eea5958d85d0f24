/*
 * hash.h - hash functions and hash tables
 *
 * The tables are uthash's, set up so that they do not end the process when
 * memory runs out: the hh.tbl of an element that could not be added is NULL.
 */
#ifndef LK_HASH_H
#define LK_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <stddef.h>
#include <stdint.h>

/* Hash data by FNV-1a of 64 bits, which is not safe against collisions that
 * somebody makes on purpose.  Pass LK_HASH_NOTHING as `hash`, or, to hash more
 * data behind the data hashed so far, the previous result. */
#define LK_HASH_NOTHING UINT64_C(14695981039346656037)
uint64_t lk_hash_on(uint64_t hash, const void *at, size_t size);

/* Return the hash of a text, without its NUL. */
uint64_t lk_hash_text(const char *text);

#endif
