/*
 * info.h - rows of the lock table as sqlock_info, for the calls that show one
 * lock and those that list many: neither knows the columns
 */
#ifndef LK_INFO_H
#define LK_INFO_H

#include "lease/store.h"

#define LK_INFO_PEER "peer" /* the name of a holder that does not run sqlock */

/* Run a statement that only reads.  The caller clears the result, also after a
 * failure. */
int lk_info_read(struct lk_store *store, sqlock_statement_kind kind,
                 const struct lk_arguments *arguments, sqlock_result *result,
                 sqlock_error *err);

/* Append the rows of a result to *rows, which is NULL at first and may move.
 * Return 0, ENOMEM or EDATABASE.  The caller frees *rows with
 * sqlock_info_free(), also after a failure. */
int lk_info_append(struct lk_store *store, sqlock_info **rows, size_t *count,
                   const sqlock_result *page, sqlock_error *err);

/* Read the row of a key into *out, which the caller frees.  Return 0,
 * ENOTFOUND, ESCHEMA if there are two, or why it cannot be read. */
int lk_info_of_key(struct lk_store *store, const char *key, sqlock_info **out,
                   sqlock_error *err);

/* Return whether the leader of a row of lk_info_of_key() has published a text,
 * and tells of changes (lease/leader_text.h). */
bool lk_info_tells(sqlock_info *row);

/* Sort the rows, and replace *rows.  Return 0, or ENOMEM with *rows as it
 * was. */
int lk_info_sort(sqlock_info **rows, size_t count, sqlock_sort order,
                 sqlock_error *err);

#endif
