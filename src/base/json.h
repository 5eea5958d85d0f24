/*
 * json.h - write the JSON arguments of statements about many leases or items
 */
#ifndef LK_JSON_H
#define LK_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Write valid UTF-8 as a JSON text: all of it, or its first `length` bytes.
 * Only the caller uses the stream: it is not locked. */
void lk_json_text(FILE *out, const char *text);
void lk_json_prefix(FILE *out, const char *text, size_t length);

#endif
