/*
 * sqlock/once.h - work that is done once and never again
 *
 * A table beside the lock table, INT_DONE by default, records what was done: a
 * row for each key, which nothing removes by itself.  The process that does the
 * work holds the lock of the same name: check, acquire, check again, do it,
 * record it, release.
 *
 * Calling sequence
 *     rc = sqlock_once_check(registry, "migration/17", &err);
 *     if (rc != SQLOCK_ENOTFOUND)
 *         return rc;
 *     rc = sqlock_obtain(&lock, registry, "migration/17", &err);
 *     if (rc == 0)
 *         rc = sqlock_acquire(lock, SQLOCK_FOREVER, NULL, &err);
 *     if (rc != 0)
 *         return rc;
 *     rc = sqlock_once_check(registry, "migration/17", &err);
 *     if (rc == SQLOCK_ENOTFOUND) {
 *         do_a_step();
 *         rc = sqlock_once_record(lock, &err);
 *     }
 *     if (sqlock_release(lock, &err) != 0)
 *         fprintf(stderr, "%s\n", err.message);
 */
#ifndef SQLOCK_ONCE_H
#define SQLOCK_ONCE_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Check whether a name is recorded as done, in the registry's region.
 *
 * @return 0           it is
 *         ENOTFOUND   it is not
 *         ESCHEMA     there is no such table: sqlock_once_schema_create()
 *         ENOTSUP     no lease can be guarded here, so nothing can be recorded
 *                     (Galera)
 */
SQLOCK_MUSTUSE int sqlock_once_check(sqlock_registry *registry,
                                     const char *name, sqlock_error *err);

/**
 * Record the work of a lock that the caller holds as done, in a transaction
 * that guards the lease.
 *
 * It tries again for as long as the lease lasts, also on another connection.
 *
 * @return 0                 recorded, now or before this lease
 *         ELOST, EEXPIRED   the lease is over; nothing was recorded
 *         EUNCERTAIN        a commit got no answer, and no record was seen
 *                           since: check again
 */
SQLOCK_MUSTUSE int sqlock_once_record(sqlock_lock *lock, sqlock_error *err);

/** One record. */
typedef struct sqlock_once_info {
    char key[SQLOCK_KEY_SIZE];       /* LOCK_KEY of the name */
    char client_id[SQLOCK_KEY_SIZE]; /* of the lease under which it was done */
    int64_t token;                   /* of that lease */
    int64_t done_at_us;              /* when it was recorded: microseconds since
                                        1970, on the database's clock */
    char *name;                      /* NULL where not known */
} sqlock_once_info;

/** Do as sqlock_once_list(), for rows of @p size bytes: for other languages. */
SQLOCK_MUSTUSE int sqlock_once_list_sized(sqlock_registry *registry,
                                          const char *name,
                                          sqlock_once_info **rows,
                                          size_t *count, size_t size,
                                          sqlock_error *err);

/**
 * Read the records of the registry's region, ordered by name.
 *
 * @param name     only this one; NULL: all
 * @param[out] rows  freed by sqlock_once_free(); NULL on failure
 * @param[out] count may be 0
 * @return 0              done
 *         ESCHEMA        there is no such table
 */
SQLOCK_INLINE int sqlock_once_list(sqlock_registry *registry, const char *name,
                                   sqlock_once_info **rows, size_t *count,
                                   sqlock_error *err)
{
    return sqlock_once_list_sized(registry, name, rows, count,
                                  sizeof(sqlock_once_info), err);
}

/** Free what sqlock_once_list() gave.  NULL is allowed. */
SQLOCK_API void sqlock_once_free(sqlock_once_info *rows, size_t count);

/**
 * Remove a record, so that the work may be done again.
 *
 * @return 0            removed
 *         ENOTFOUND    there is no such record
 *         ESCHEMA      there is no such table
 *         EUNCERTAIN   it may be removed or not: the call does not try again,
 *                      since the work may be recorded anew meanwhile
 */
SQLOCK_MUSTUSE int sqlock_once_forget(sqlock_registry *registry,
                                      const char *name, sqlock_error *err);

/**
 * The SQL that creates the table of records, as sqlock_schema_text() gives it
 * for the lock table.
 *
 * @param[out] text freed by sqlock_free(); NULL on failure
 */
SQLOCK_MUSTUSE int sqlock_once_schema_text(char **text, const char *url,
                                           const sqlock_options *options,
                                           sqlock_error *err);

/**
 * Create the table of records where it does not exist.
 *
 * @return 0              the table exists
 *         ECONFLICT      it exists where only other sessions find it
 *         EACCESS        login, TLS, or no right to create tables
 */
SQLOCK_MUSTUSE int sqlock_once_schema_create(const char *url,
                                             const sqlock_options *options,
                                             sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_ONCE_H */
