/*
 * exclusion.c - Spring services and workers of ours exclude each other
 */
#include "spring.h"

static void test_services_and_workers_exclude_each_other(struct fixture *f)
{
    struct contest contest;

    contest_start(&contest, f, stage_service(f, 0), stage_service(f, 1),
                  check_scale(25, 1000), &contest_pace);
    contest_end(&contest, false);
}

static const struct test tests[] = {
    TEST(test_services_and_workers_exclude_each_other),
};

const struct topic topic_exclusion = TOPIC(tests);
