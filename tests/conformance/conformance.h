/*
 * conformance.h - what the files of this suite share
 *
 * A test runs once for each database and table layout that it names.
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include "support/suite_main.h"

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
