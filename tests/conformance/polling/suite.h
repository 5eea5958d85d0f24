/*
 * suite.h - the topics of this suite: locks without a wait queue in the
 * database
 */
#ifndef TESTS_POLLING_SUITE_H
#define TESTS_POLLING_SUITE_H

#include "support/suite_main.h"

extern const struct topic topic_form;

#endif
