/*
 * text.h - UTF-8: what is valid, where it may be cut, how it is shown
 */
#ifndef LK_TEXT_H
#define LK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at text, and its length in bytes (never past the NUL); 0 when
 * there is none, or no valid one: overlong forms, surrogates and the like. */
size_t lk_utf8_decode(const char *text, uint32_t *character);

/* ... its length alone. */
size_t lk_utf8_length(const char *text);

/* Whether all of a NUL-terminated text is valid. */
bool lk_utf8_is_valid(const char *text);

/* The longest prefix of valid text that has at most `limit` bytes and ends
 * with a whole character. */
size_t lk_utf8_prefix(const char *text, size_t limit);

/* Copy text into out[size] for one line of a log or a terminal (F79): control
 * characters and invalid bytes become \xHH; what does not fit is cut. */
void lk_text_escape(char *out, size_t size, const char *text);

/* Whether a text matches one of the patterns of the shell "a*|b", of at most 63
 * bytes each; without regard to case. */
bool lk_text_matches(const char *text, const char *patterns);

#endif
