/*
 * analyzer.h - what the analyzer cannot see, told to it before each file
 *
 * sqlock_error_set() returns the code it was given, a negative one: without
 * that, every `return lk_error(...)` looks as if it could be a success.  And
 * uthash's way to take an entry out looks as if it left an empty table whose
 * next entry is then used.
 */
#ifndef LINT_ANALYZER_H
#define LINT_ANALYZER_H

#include "base/hash.h"
#include "db/driver.h"

#define sqlock_error_set(err, code, ...)                                       \
    ((void)sqlock_error_set((err), (code), __VA_ARGS__), (code))

void *lint_some_pointer(void *head, const void *entry);

#undef HASH_DEL
#define HASH_DEL(head, entry) ((head) = lint_some_pointer((head), (entry)))

#endif
