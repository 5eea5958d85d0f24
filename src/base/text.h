/*
 * text.h - UTF-8: validate, cut and escape it
 */
#ifndef LK_TEXT_H
#define LK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read the character at `text`, and return its length in bytes (never past the
 * NUL).  0: there is none, or it is invalid: overlong, a surrogate and the
 * like. */
size_t lk_utf8_decode(const char *text, uint32_t *character);

/* Return the length of the character at `text`, as lk_utf8_decode() does. */
size_t lk_utf8_length(const char *text);

/* Tell whether a NUL-terminated text is valid UTF-8. */
bool lk_utf8_is_valid(const char *text);

/* Return the length of the longest prefix of valid text that has at most
 * `limit` bytes and ends with a whole character. */
size_t lk_utf8_prefix(const char *text, size_t limit);

/* Copy text into out[size] for one line of a log or a terminal (F79): control
 * characters and invalid bytes become \xHH; what does not fit is cut. */
void lk_text_escape(char *out, size_t size, const char *text);

/* Tell whether a text matches one of several shell patterns, "a*|b", of at most
 * 63 bytes each, ignoring case. */
bool lk_text_matches(const char *text, const char *patterns);

#endif
