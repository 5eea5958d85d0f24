/*
 * exclusion.c - Spring services and workers of ours exclude each other
 */
#include "spring.h"

TEST(test_services_and_workers_exclude_each_other)
{
    struct contest contest;

    contest_start(&contest, f, stage_service(f, 0), stage_service(f, 1),
                  check_scale(25, 1000), &contest_pace);
    contest_end(&contest, false);
}
