/*
 * text.h - validate and truncate UTF-8, escape it for a log or a terminal, and
 * match it with patterns
 */
#ifndef LK_TEXT_H
#define LK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read the character at `text` into *character, and return its length in bytes.
 * Return 0 at the end of the text, and for a character that is incomplete,
 * overlong, a surrogate or otherwise invalid.  It reads nothing after the
 * NUL. */
size_t lk_utf8_decode(const char *text, uint32_t *character);

/* Return the length of the character at `text`, or 0, as lk_utf8_decode(). */
size_t lk_utf8_length(const char *text);

/* Return whether a NUL-terminated text is valid UTF-8. */
bool lk_utf8_is_valid(const char *text);

/* Return the length of the longest prefix of `text` that is valid, has at most
 * `limit` bytes and ends with a whole character. */
size_t lk_utf8_prefix(const char *text, size_t limit);

/* Copy text into out[size] for one line of a log or a terminal (F79), with what
 * a terminal would interpret or hide escaped: control characters of ASCII and
 * invalid bytes as \xHH, other control characters and invisible ones as
 * \u{HHHH}.  The copy is at most four times as long as the text.  It is
 * truncated, after a whole character, if it does not fit. */
void lk_text_escape(char *out, size_t size, const char *text);

/* Copy text into out[size] for a database whose encoding may lack characters:
 * those outside of ASCII become \uHHHH or \UHHHHHHHH.  The copy is truncated,
 * after a whole character, if it does not fit. */
void lk_text_to_ascii(char *out, size_t size, const char *text);

/* Read a decimal integer, which may be negative.  Return false if the text is
 * none of 64 bits; *integer is then unchanged. */
bool lk_text_integer(const char *text, int64_t *integer);

/* Read the decimal digits at *text, up to one with which they would not fit,
 * and move *text behind them. */
int64_t lk_text_digits(const char **text);

/* Return whether the first `length` bytes of `word` are one of "a|b|c". */
bool lk_text_is_listed(const char *list, const char *word, size_t length);

/* Return whether a text matches one of several shell patterns, "a*|b", of at
 * most 63 bytes each, ignoring case. */
bool lk_text_matches(const char *text, const char *patterns);

#endif
