/*
 * analyzer.h - what the analyzer cannot see across files, told before each one
 *
 * sqlock_error_set() returns the code it was given, a negative one: without
 * that, every `return lk_error(...)` looks as if it could be a success.
 */
#ifndef LINT_ANALYZER_H
#define LINT_ANALYZER_H

#include "sqlock_driver.h"

#define sqlock_error_set(err, code, ...)                                       \
    ((void)sqlock_error_set((err), (code), __VA_ARGS__), (code))

#endif
