/*
 * suite.h - the topics of this suite: locks on a database that wakes nobody
 */
#ifndef TESTS_POLLING_SUITE_H
#define TESTS_POLLING_SUITE_H

#include "support/suite_main.h"

extern const struct topic topic_form;

#endif
