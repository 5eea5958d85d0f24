/*
 * conformance.h - the topics of this suite
 *
 * A test runs once for each database and table layout that it names.
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include "support/suite_main.h"

extern const struct topic topic_ownership;
extern const struct topic topic_overdue;
extern const struct topic topic_passed_on;
extern const struct topic topic_handles;
extern const struct topic topic_keys;
extern const struct topic topic_spellings;
extern const struct topic topic_tokens;
extern const struct topic topic_spring;
extern const struct topic topic_admin;
extern const struct topic topic_find;
extern const struct topic topic_stats;
extern const struct topic topic_lease_id;
extern const struct topic topic_reap;
extern const struct topic topic_schema;
extern const struct topic topic_kinds;
extern const struct topic topic_search_path;
extern const struct topic topic_access;
extern const struct topic topic_hosts;
extern const struct topic topic_fork;
extern const struct topic topic_faults;
extern const struct topic topic_clocks;
extern const struct topic topic_crosswise;
extern const struct topic topic_doctor;
extern const struct topic topic_orphans;
extern const struct topic topic_capabilities;
extern const struct topic topic_batches;
extern const struct topic topic_codes;
extern const struct topic topic_forgetful;
extern const struct topic topic_beside;
extern const struct topic topic_refused;
extern const struct topic topic_limits;
extern const struct topic topic_shares;
extern const struct topic topic_leader;
extern const struct topic topic_observe;
extern const struct topic topic_together;
extern const struct topic topic_quorum;

/* Make a column of that type ignore case, on a server. */
void loosen(struct fixture *f, const char *table, const char *column,
            const char *type);
/* Make the column LOCK_KEY of a table ignore case.  On SQLite the table is made
 * anew, as a table there cannot change. */
void loosen_key(struct fixture *f, const char *table);

/* Assert that the text says that a statement timed out, and what to do, and
 * does not say that somebody has cancelled it. */
void assert_timed_out(const sqlock_error *err);

#endif
