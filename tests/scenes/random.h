/*
 * random.h - scenes that are made up: random steps, compared with a model
 */
#ifndef TESTS_SCENES_RANDOM_H
#define TESTS_SCENES_RANDOM_H

#include "support/suite_main.h"

extern const struct topic topic_random;

#endif
