/*
 * sqlock/once.h - what was done and is not to be done again
 */
#ifndef SQLOCK_ONCE_H
#define SQLOCK_ONCE_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A table beside the lock table, INT_DONE by default, tells what was done and
 * is not to be done again: a row for each key, which nothing here removes.
 * The process that does it holds the lock of that name: check, acquire, check
 * again, do it, record it, release.
 */

/**
 * Whether it was recorded, of the registry's region.
 * @return 0: it was; ENOTFOUND: it was not; ESCHEMA: there is no such table;
 *         ENOTSUP: nothing can be recorded, since a lease cannot be guarded
 *         (Galera); or as sqlock_show()
 */
SQLOCK_MUSTUSE int sqlock_once_check(sqlock_registry *registry,
                                     const char *name, sqlock_error *err);

/**
 * Record that what @p lock, held by the caller, stands for is done, in a
 * transaction that guards the lease.
 * @return 0; ELOST, EEXPIRED: nothing was recorded; ESCHEMA; or as
 *         sqlock_tx_retry()
 */
SQLOCK_MUSTUSE int sqlock_once_record(sqlock_lock *lock, sqlock_error *err);

/** One record. */
typedef struct sqlock_once_info {
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE]; /* of the lease under which it was done */
    int64_t token;                   /* likewise */
    int64_t done_at_us;
    char *name; /* NULL where not known */
} sqlock_once_info;

/**
 * The records of the registry's region, by name; or that of @p name alone.
 *
 * @param name NULL: all
 * @param[out] rows to be given to sqlock_once_free() with @p count, which may
 *             be 0
 * @return 0; ESCHEMA: there is no such table; or as sqlock_show()
 */
SQLOCK_MUSTUSE int sqlock_once_list(sqlock_registry *registry, const char *name,
                                    sqlock_once_info **rows, size_t *count,
                                    sqlock_error *err);

/** Free what sqlock_once_list() gave.  NULL is allowed. */
SQLOCK_API void sqlock_once_free(sqlock_once_info *rows, size_t count);

/**
 * Remove a record, so that it may be done again.
 * @return 0; ENOTFOUND: there is none; ESCHEMA; or as sqlock_break()
 */
SQLOCK_MUSTUSE int sqlock_once_forget(sqlock_registry *registry,
                                      const char *name, sqlock_error *err);

/** As sqlock_schema_text(), for this table. */
SQLOCK_MUSTUSE int sqlock_once_schema_text(char **text, const char *url,
                                           const sqlock_options *options,
                                           sqlock_error *err);

/** Create the table where it does not exist yet.
 *  @return 0, or as sqlock_registry_open() */
SQLOCK_MUSTUSE int sqlock_once_schema_create(const char *url,
                                             const sqlock_options *options,
                                             sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_ONCE_H */
