/*
 * suite.h - what the files of this suite include
 *
 * tests/scenes says what waiters may expect.  Here is what cannot be seen from
 * outside.
 */
#ifndef TESTS_WAITING_SUITE_H
#define TESTS_WAITING_SUITE_H

#include "support/suite_main.h"
#include "sqlock/async.h"
#include "support/workers.h"

#endif
