/*
 * result.h - the results of steps, as scenes write them
 */
#ifndef TESTS_SCENES_RESULT_H
#define TESTS_SCENES_RESULT_H

#include <stdbool.h>
#include <stddef.h>

/* As the result of a step: it is none that can be performed, or it broke a rule
 * of all scenes. */
#define NOT_PLAYED (-1000)

/* The number of a word that is no result. */
#define NOT_A_RESULT (-1001)

/* Return the number that a word stands for: a code of the library without
 * SQLOCK_, a word such as "held", or a number; else NOT_A_RESULT. */
int result_number(const char *word, size_t length);

/* Return whether a result is one of those expected: words, and ranges "1..4",
 * with "|" between. */
bool result_is(const char *expected, int rc);

/* Return whether each of those, with "|" or "," between, is a result. */
bool result_is_known(const char *expected);

/* Return the name of a code, or the number. */
const char *result_name(int rc);

#endif
