/*
 * sqlock/admin.h - looking after the lock table
 *
 * Listing holders, ending a holder's lease, removing old rows, and the SQL of
 * the table.
 *
 * Calling sequence
 *     sqlock_find_options options = SQLOCK_FIND_INIT;
 *     sqlock_info *rows = NULL;
 *     size_t count = 0, i;
 *
 *     options.pattern = "invoice/?*";
 *     rc = sqlock_find(registry, &options, &rows, &count, &err);
 *     for (i = 0; i < count; i++)
 *         printf("%s %s\n", rows[i].name ? rows[i].name : rows[i].key,
 *                rows[i].holder ? rows[i].holder : "");
 *     sqlock_info_free(rows, count);
 *     if (rc == 0)
 *         rc = sqlock_reap(registry, SQLOCK_RETENTION_DEFAULT_MS, NULL, &err);
 */
#ifndef SQLOCK_ADMIN_H
#define SQLOCK_ADMIN_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ who holds -- */

/** State of a row, by the database's clock. */
typedef enum sqlock_state {
    SQLOCK_FREE = 0, /* nobody has a lease; the row keeps the last token */
    SQLOCK_HELD,     /* somebody has a lease */
    SQLOCK_EXPIRED   /* the lease is over, and its holder did not release it */
} sqlock_state;

/** One row of the lock table. */
typedef struct sqlock_info {
    char key[SQLOCK_KEY_SIZE];       /* LOCK_KEY */
    char client_id[SQLOCK_KEY_SIZE]; /* the holder's; "" when free */
    sqlock_state state;              /* free, held or expired */
    int64_t token;                   /* the key's last; 0 where the layout has
                                        none */
    int64_t acquired_at_us;          /* when the lease was acquired; 0: not
                                        known, see held_ms */
    int64_t expires_at_us;           /* when it expires */
    int64_t remaining_ms;            /* until then; 0 when not held */
    char *name;                      /* NULL where not known */
    char *holder;       /* "user@host pid command line (note)", with "..." in
                           place of what may be a secret; "peer" for a holder
                           that is not sqlock; "broken by ..." after
                           sqlock_break(), also when free; else NULL when free
                           or not known */
    int64_t held_ms;    /* since it was acquired; when expired, until it
                           expired; 0 when free; -1: not known, as of a Spring
                           service that took over a row which sqlock had used.
                           On Spring 7's layout it is that of the row where a
                           Spring service has the lock */
    char *region;       /* from sqlock_find(); otherwise NULL */
    int32_t waiters;    /* processes that wait for it; -1: not known, as on
                           Spring's layouts */
    int32_t place;      /* of this registry among them, from 1; 0: it does not
                           wait, or not yet with a place */
    char *waiter_names; /* a line for each waiter, in the order in which they
                           get the lock: user, host, process, command and note;
                           "to share", with its weight if that is not 1, or
                           else it waits to have the lock alone; and for how
                           long it has waited; NULL: there are none */
    char *last_holder;  /* of a free lock: who released it last; NULL where the
                           row does not say it: after a break, and on Spring's
                           layouts */
    /* Of a lock in shared mode (sqlock/shared.h), client_id is that of all
     * sharers together; token is the last one that was given; expires_at_us is
     * the latest end of a sharer; and acquired_at_us, held_ms and holder are
     * those of the sharer who has had it for longest. */
    sqlock_mode mode;   /* of the lease; SQLOCK_EXCLUSIVE when free */
    uint32_t permits;   /* of the lock, also when free; 0: none */
    uint32_t taken;     /* the sum of the sharers' weights */
    int32_t sharers;    /* leases that share the lock and have not expired */
    char *sharer_names; /* a line for each sharer, who has had it for longest
                           first: user, host, process, command and note, or
                           "broken by ..."; its weight if that is not 1, its
                           token, for how long it has had the lock and how long
                           its lease remains; when expired, of those that did
                           not release it; NULL: there are none */
    char *text; /* what the leader has published (sqlock/leader.h), who has the
                   lock alone; NULL: nothing, or nobody leads */
} sqlock_info;

/**
 * Read the row of one lock.
 *
 * @param[out] row freed by sqlock_info_free() with a count of 1; NULL on
 *                 failure
 * @return 0              done
 *         ENOTFOUND      the table has no such row: the lock is free
 */
SQLOCK_MUSTUSE int sqlock_show(sqlock_registry *registry, const char *name,
                               sqlock_info **row, sqlock_error *err);

/** Order of the rows that sqlock_find() gives; then by name and region. */
typedef enum sqlock_sort {
    SQLOCK_SORT_NAME = 0,  /* by the bytes of the name, or of LOCK_KEY where no
                              name is known */
    SQLOCK_SORT_HELD,      /* held for longest first; expired ones behind */
    SQLOCK_SORT_REMAINING, /* least time left first */
    SQLOCK_SORT_TOKEN      /* latest token first */
} sqlock_sort;

/** Filter of sqlock_find().  Zero means the default. */
typedef struct sqlock_find_options {
    size_t size;         /* sizeof(sqlock_find_options): the struct may grow */
    const char *pattern; /* of the name, or of LOCK_KEY where no name is known:
                            '*' stands for any characters, '?' for one; at most
                            255 bytes.  SQLite ignores the case of ASCII
                            letters.  NULL: all */
    bool free_too;       /* free rows, too */
    bool all_regions;    /* all regions but those of sqlock_tx_lock() */
    uint32_t limit;      /* rows at most; 0: all */
    sqlock_sort sort;    /* default SQLOCK_SORT_NAME */
} sqlock_find_options;
#define SQLOCK_FIND_INIT SQLOCK_SIZED(sqlock_find_options)

/** Do as sqlock_find(), for rows of @p size bytes: for other languages. */
SQLOCK_MUSTUSE int sqlock_find_sized(sqlock_registry *registry,
                                     const sqlock_find_options *options,
                                     sqlock_info **rows, size_t *count,
                                     size_t size, sqlock_error *err);

/**
 * Read the held or expired rows that the options select.  With a limit the
 * database orders them, in one statement.  Without a limit they are read in
 * pages, each within statement_timeout_ms, and ordered by this call.
 *
 * @param options   NULL: all defaults
 * @param[out] rows freed by sqlock_info_free(); NULL on failure
 * @return 0              done
 *         EINVAL         the options: an unknown order, or the pattern
 */
SQLOCK_INLINE int sqlock_find(sqlock_registry *registry,
                              const sqlock_find_options *options,
                              sqlock_info **rows, size_t *count,
                              sqlock_error *err)
{
    return sqlock_find_sized(registry, options, rows, count,
                             sizeof(sqlock_info), err);
}

/** Free what sqlock_find() or sqlock_show() gave.  NULL is allowed. */
SQLOCK_API void sqlock_info_free(sqlock_info *rows, size_t count);

/* ------------------------------------------------------------ intervene -- */

/** Holder whose lease sqlock_break() ends: its client id, its token, or both,
 *  as sqlock_show() gives them.  Every holder has a client id.  sqlock makes a
 *  new one for each acquisition, a Spring service one for all of its locks.  Of
 *  a shared lock, the token of a sharer, or the client id of its lease's id,
 *  names that one, and the row's client id all of them. */
typedef struct sqlock_break_options {
    size_t size;           /* sizeof(sqlock_break_options): it may grow */
    int64_t token;         /* of the holder, on sqlock's layout; Spring services
                              have none, although the row shows an old one; 0:
                              any */
    const char *client_id; /* of the holder; NULL: any */
    const char *reason;    /* kept in the row, up to 80 bytes; NULL: none */
    const char *who;       /* who breaks the lock, such as "user@host", up to 80
                              bytes; NULL: this process */
    bool now;              /* UNSAFE: free the lock at once, while the old
                              holder may still be at work */
} sqlock_break_options;
#define SQLOCK_BREAK_INIT SQLOCK_SIZED(sqlock_break_options)

/**
 * End another owner's lease: its next renewal or release finds it lost.  The
 * lock becomes free when the lease would have expired, or at once with `now`.
 * That wakes waiters; on MySQL and MariaDB those behind a stopped holder that
 * has waited itself notice it within a second.
 * sqlock's layout keeps who and why in the row until the next acquisition; of
 * one share, until its lease would have ended, or with `now` if it was the
 * last.
 *
 * @return 0            broken
 *         ECONFLICT    another holder has it by now, or nobody; the message
 *                      says who
 *         ENOTFOUND    the table has no such row
 *         EUNCERTAIN   the outcome is not known: look at the row again
 *         any other    not broken.  EBUSY: a transaction has locked the row.
 *                      EINVAL: neither client id nor token, or, on Spring's
 *                      layouts, no client id
 */
SQLOCK_MUSTUSE int sqlock_break(sqlock_registry *registry, const char *name,
                                const sqlock_break_options *options,
                                sqlock_error *err);

/* The retention of `sqlock reap`: 10 minutes. */
#define SQLOCK_RETENTION_DEFAULT_MS ((int64_t)600000)

/**
 * Remove the rows of the region that have been free or expired for
 * @p retention_ms.  A lease that has not expired is never touched.  A row whose
 * token was granted less than @p retention_ms ago stays, so that no token is
 * given twice.  Rows that sqlock_tx_lock() made for names longer ago than that
 * are removed, too, unless a transaction has locked them.  On the four-column
 * layout `peer_ttl_ms` decides expiry.  Last, the longest TTL of the table of
 * the server is lowered if no lease is longer.
 *
 * @param retention_ms how long a row stays after its lease
 * @param[out] removed how many rows, also on failure; NULL: not wanted
 * @return 0            done
 *         EUNCERTAIN   the outcome of the last statement is not known
 *         any other    some rows may be left.  EBUSY: one is locked
 */
SQLOCK_MUSTUSE int sqlock_reap(sqlock_registry *registry, int64_t retention_ms,
                               int64_t *removed, sqlock_error *err);

/**
 * Free every lock of the table, in all regions, and raise its tokens above all
 * that were given before.  For a database that was restored from a backup,
 * cloned, or failed over to a server that had not received everything.  Earlier
 * holders find their leases lost, but go on until then: stop all programs that
 * use the locks first.  Tokens that an earlier server gave after the backup are
 * below the new ones only if its clock was not ahead of this server's.  One
 * transaction writes all rows: for a table of many rows open the registry with
 * a statement_timeout_ms that is long enough.  Once a call has succeeded, no
 * earlier one takes away a lease that was given since.
 *
 * @param[out] rows how many were changed (Spring's layouts: removed) by the
 *                  last attempt; written on success only; NULL: not wanted
 * @return 0            done
 *         EUNCERTAIN   the outcome is not known: call it again
 */
SQLOCK_MUSTUSE int sqlock_after_restore(sqlock_registry *registry,
                                        int64_t *rows, sqlock_error *err);

/**
 * Return for how many ms the server grants nothing, as this registry found it
 * last: when it was opened, acquired a lock, or called sqlock_find() over a new
 * session.  A server that was promoted, or was recovered to a point in
 * time, may have forgotten leases: until the longest of them has run out,
 * acquiring is EBUSY or waits, while leases are renewed, released and guarded
 * as ever.  After a snapshot, or pg_restore into the same server, nothing is
 * noticed: call sqlock_after_restore().  See sqlock-databases(7).  No I/O.
 *
 * @return 0: it grants, or has no table INT_LOCK_SERVER, and grants at any time
 */
SQLOCK_API int64_t sqlock_registry_grace_ms(sqlock_registry *registry);

/**
 * Let such a server grant at once: an operator knows that no holder from before
 * is left.  Other registries notice within a second.
 *
 * @param reason stored in INT_LOCK_SERVER, behind who has called this
 * @return 0        done
 *         EINVAL   there is no reason
 *         ENOTFOUND it grants already
 *         ENOTSUP  there is no table INT_LOCK_SERVER that this login may read
 */
SQLOCK_MUSTUSE int sqlock_grace_end(sqlock_registry *registry,
                                    const char *reason, sqlock_error *err);

/**
 * Let leases be as long as @p ttl_ms at once, and let sqlock_reap() lower to
 * that what INT_LOCK_SERVER has as the longest one, when no lease is longer:
 * for so long a promoted server grants nothing.  Give half more than the TTLs
 * that are usual: a lease counts as longer while more than seven tenths of
 * @p ttl_ms are left of it.  A claim of a longer lease raises the longest one
 * by itself, but only once the connected standbys of PostgreSQL have it, and is
 * EINVAL where that cannot be seen, or takes too long; a lease that is renewed
 * then gets what leases may have.  To open a registry raises nothing.  This
 * does not wait for the standbys: take no such lease before they have it.
 *
 * @param ttl_ms 10 to 604800000; 30000 at first
 * @return 0        done
 *         EINVAL   not such a number
 *         ENOTSUP  there is no table INT_LOCK_SERVER that this login may write
 */
SQLOCK_MUSTUSE int sqlock_grace_longest(sqlock_registry *registry,
                                        int64_t ttl_ms, sqlock_error *err);

/* ---------------------------------------------------------------- table -- */

/**
 * Compute the LOCK_KEY of a name.
 *
 * @return 0        done
 *         EINVAL   the name is NULL, too long or not UTF-8, or no raw key; or
 *                  the rule is unknown
 */
SQLOCK_MUSTUSE int sqlock_key_of(char key[SQLOCK_KEY_SIZE], const char *name,
                                 sqlock_key_rule rule, sqlock_error *err);

/**
 * The SQL that creates the lock table.
 *
 * @param[out] text freed by sqlock_free(); NULL on failure
 * @param url       of the database; its scheme is enough: "mysql:"
 * @param options   for the table's prefix; NULL: "INT_"
 */
SQLOCK_MUSTUSE int sqlock_schema_text(char **text, const char *url,
                                      const sqlock_options *options,
                                      sqlock_layout layout, sqlock_error *err);

/* -------------------------------------------------------------- session -- */

/** Layout of the table that a registry has opened; SQLOCK_LAYOUT_SQLOCK for
 *  NULL.  No I/O. */
SQLOCK_API sqlock_layout
sqlock_registry_layout(const sqlock_registry *registry);

/* Size of an epoch with its NUL. */
#define SQLOCK_EPOCH_SIZE 64

/**
 * Copy the epoch of the data: a text that identifies the server, as the session
 * opened last found it.  When it changes, another server answers, or the file
 * was replaced, and locks that the old one acknowledged may be missing there:
 * see sqlock-databases(7).  The event EPOCH reports it, too.  No I/O.
 *
 * @param[out] epoch always written; "" if no session has found one: before the
 *                   first, and with Galera, whose nodes are alike
 * @return number of changes since the registry was opened
 */
SQLOCK_API uint32_t sqlock_registry_epoch(sqlock_registry *registry,
                                          char epoch[SQLOCK_EPOCH_SIZE]);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_ADMIN_H */
