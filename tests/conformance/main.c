/*
 * main.c - the conformance suite: what is promised of a lock, on every database
 * and each table layout (see support/suite_main.h)
 */
#include "conformance.h"

static const struct topic *const topics[] = {

    &topic_ownership,    &topic_overdue,     &topic_handles,   &topic_keys,
    &topic_spellings,    &topic_tokens,      &topic_shares,

    &topic_spring,       &topic_admin,       &topic_find,      &topic_stats,
    &topic_lease_id,     &topic_reap,        &topic_schema,    &topic_kinds,
    &topic_access,       &topic_hosts,       &topic_fork,      &topic_faults,
    &topic_clocks,       &topic_crosswise,   &topic_doctor,    &topic_orphans,
    &topic_capabilities, &topic_codes,       &topic_batches,   &topic_forgetful,
    &topic_beside,       &topic_refused,

    &topic_limits,       &topic_search_path, &topic_leader,    &topic_observe,
    &topic_together,     &topic_quorum,      &topic_passed_on, NULL,
};

/* Tests that stop a server run before the others, alone. */
static const struct suite_main suite = {
    .name = "conformance",
    .about = "what sqlock.h says, on each database and table layout",
    .topics = topics,
    .layouts = IN_ALL,
    .lanes = 3,
    .stops_servers = true,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
