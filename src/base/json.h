/*
 * json.h - write the JSON arguments of statements about many leases or items
 */
#ifndef LK_JSON_H
#define LK_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Write a text of valid UTF-8 as a JSON string, in quotes.  The stream is not
 * locked: no other thread may use it meanwhile. */
void lk_json_text(FILE *out, const char *text);

/* Write the first `length` bytes of a text, otherwise as lk_json_text(). */
void lk_json_prefix(FILE *out, const char *text, size_t length);

#endif
