/*
 * suite.h - the topics of this suite: waiting for a lock, and being next
 *
 * tests/scenes says what waiters may expect.  Here is what cannot be seen from
 * outside.
 */
#ifndef TESTS_WAITING_SUITE_H
#define TESTS_WAITING_SUITE_H

#include "support/suite_main.h"
#include "sqlock/async.h"
#include "support/workers.h"

extern const struct topic topic_cancel;
extern const struct topic topic_crowd;
extern const struct topic topic_queue;
extern const struct topic topic_steps;

#endif
