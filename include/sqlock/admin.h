/*
 * sqlock/admin.h - the lock table: create it, list it, break a lease, reap
 */
#ifndef SQLOCK_ADMIN_H
#define SQLOCK_ADMIN_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The drivers compiled in and registered, in the order in which they are asked,
 * each as "name (client library and version)"; NULL past the last one.
 */
SQLOCK_API const char *sqlock_driver_info(size_t index);

/** The layout that was found. */
SQLOCK_API sqlock_layout
sqlock_registry_layout(const sqlock_registry *registry);

#define SQLOCK_EPOCH_SIZE 64

/**
 * Whose history of the data the sessions of this registry have found, the one
 * opened last: with PostgreSQL the system identifier and the timeline, which a
 * promotion changes; with Oracle's MySQL the server's UUID; with MariaDB its
 * server_id.  When it changes, a standby has been promoted or another server
 * answers: where that one did not have everything, locks acknowledged before
 * may be gone.  A lease that is kept is found lost by its next renewal then; a
 * guard or a token keeps its holder out of the data.  `on_event` is told,
 * too.  A session is opened when it is needed first and after one broke, so it
 * takes a call until a change is noticed.  No I/O.
 *
 * @param[out] epoch filled in any case; "" before the first, and where there is
 *             none: SQLite, Galera, whose nodes are all alike
 * @return how often it has changed
 */
SQLOCK_API uint32_t sqlock_registry_epoch(sqlock_registry *registry,
                                          char epoch[SQLOCK_EPOCH_SIZE]);

/**
 * The LOCK_KEY of a name.
 * @return 0, EINVAL
 */
SQLOCK_MUSTUSE int sqlock_key_of(char key[SQLOCK_KEY_SIZE], const char *name,
                                 sqlock_key_rule rule, sqlock_error *err);

/**
 * The SQL that creates the lock table for the database of @p url (its scheme
 * is enough: "mysql:") with the prefix of @p options (NULL: "INT_").
 *
 * @param[out] text to be given to sqlock_free(); NULL on failure
 * @return 0, EINVAL, ENOTSUP, ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_schema_text(char **text, const char *url,
                                      const sqlock_options *options,
                                      sqlock_layout layout, sqlock_error *err);

/**
 * Check the lock table as sqlock_registry_open() does.
 * @param[out] layout which one was found; may be NULL
 */
SQLOCK_MUSTUSE int sqlock_schema_check(const char *url,
                                       const sqlock_options *options,
                                       sqlock_layout *layout,
                                       sqlock_error *err);

typedef enum sqlock_state {
    SQLOCK_FREE = 0, /* a row that keeps the last token */
    SQLOCK_HELD,
    SQLOCK_EXPIRED /* the holder did not release it */
} sqlock_state;

/** One row of the lock table. */
typedef struct sqlock_info {
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE]; /* "" when free */
    sqlock_state state;              /* by the database's clock */
    int64_t token;                   /* the key's last; 0 where the layout has
                                        none */
    int64_t acquired_at_us;
    int64_t expires_at_us;
    int64_t remaining_ms; /* 0 when not held */
    char *name;           /* NULL where not known */
    char *holder;         /* "host pid program note"; "peer" for a holder that
                             is no sqlock; "broken by ..." after
                             sqlock_break(), also when free; else NULL when
                             free or not known */
    int64_t ahead_ms;     /* held, but acquired in the future of the database's
                             clock, or by a peer for longer than peer_ttl_ms: by
                             so much the clock of its holder is ahead, at least;
                             0: nothing is known against it */
    int64_t held_ms;      /* since it was acquired; 0 when free */
    char *region;         /* sqlock_find(); else NULL */
    int32_t waiters;      /* sqlock_find() with `waiters`; -1: not known */
    char *waiter_names;   /* likewise: who they are, as far as the database
                             knows, with ", " between; else NULL */
} sqlock_info;

/**
 * The rows of the registry's region, by key.
 * @param[out] rows to be given to sqlock_info_free() with @p count
 * @return 0, EUNREACHABLE, EBUSY (the database did not end a statement within
 *         its time limit, or a SQLite file is locked), EACCESS, ESCHEMA,
 *         EREADONLY, ERESOURCE, EDATABASE, EINVAL, ENOMEM, EFORK
 */
SQLOCK_MUSTUSE int sqlock_list(sqlock_registry *registry, sqlock_info **rows,
                               size_t *count, sqlock_error *err);

/**
 * The row of one lock.
 * @param[out] row to be given to sqlock_info_free() with a count of 1
 * @return 0, ENOTFOUND, or as sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_show(sqlock_registry *registry, const char *name,
                               sqlock_info **row, sqlock_error *err);

typedef enum sqlock_sort {
    SQLOCK_SORT_NAME = 0,  /* by the bytes of the name, or of LOCK_KEY
                              where none is known */
    SQLOCK_SORT_HELD,      /* held for longest first */
    SQLOCK_SORT_REMAINING, /* least time left first */
    SQLOCK_SORT_TOKEN      /* latest token first */
} sqlock_sort;

/** Which locks sqlock_find() is to find.  Zero means the default in every
 *  field; begin with SQLOCK_FIND_INIT. */
typedef struct sqlock_find_options {
    size_t size;         /* sizeof(sqlock_find_options) */
    const char *pattern; /* of the name, or LOCK_KEY where none is known: '*'
                            stands for any characters, '?' for one; at most 255
                            bytes.  SQLite ignores the case of ASCII letters.
                            NULL: all */
    bool free_too;       /* rows that nobody holds, too */
    bool all_regions;    /* but those of names that transactions lock */
    bool waiters;        /* count who waits in the database: PostgreSQL tells
                            it */
    uint32_t limit;      /* rows at most; 0: all */
    sqlock_sort sort;    /* then by name, then by region */
} sqlock_find_options;
#define SQLOCK_FIND_INIT SQLOCK_SIZED(sqlock_find_options)

/**
 * The locks that are held or expired, as @p options say.  With a limit they are
 * ordered and limited by the database, in one statement; without one they are
 * read in pages, each within statement_timeout_ms, and ordered here.
 *
 * @param options NULL for the defaults
 * @param[out] rows to be given to sqlock_info_free() with @p count
 * @return as sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_find(sqlock_registry *registry,
                               const sqlock_find_options *options,
                               sqlock_info **rows, size_t *count,
                               sqlock_error *err);

/** Free what sqlock_list(), sqlock_find() or sqlock_show() gave.  NULL is
 *  allowed. */
SQLOCK_API void sqlock_info_free(sqlock_info *rows, size_t count);

/** Which holder sqlock_break() is to end, as sqlock_show() and sqlock_list()
 *  tell it: by client id, by token, or by both.  Client ids name every holder;
 *  one of sqlock has a fresh one for each acquisition, a Spring service one for
 *  all. */
typedef struct sqlock_break_options {
    size_t size;           /* sizeof(sqlock_break_options) */
    int64_t token;         /* our layout: its token, which a Spring service has
                              not, though the row shows an old one; 0: any */
    const char *client_id; /* its CLIENT_ID; NULL: any */
    const char *reason;    /* up to 80 bytes: why */
    const char *who;       /* up to 80 bytes: who answers for it, such as
                              "user@host"; NULL: this process */
    bool now;              /* free the lock at once.  Unsafe: the old holder may
                              still believe */
} sqlock_break_options;
#define SQLOCK_BREAK_INIT SQLOCK_SIZED(sqlock_break_options)

/**
 * End another owner's lease: its next renewal or release finds it lost.  The
 * lock passes on when the lease would have run out anyway, unless `now` is set.
 * Our layout keeps who and why in the row, until the next owner's name takes
 * the place.
 *
 * @return 0, ECONFLICT (not held by that client id, or with that token, any
 *         more: the message says who holds it), ENOTFOUND, EINVAL (neither is
 *         given, or, on Spring's layouts, no client id), EUNCERTAIN, EBUSY (a
 *         transaction has the row locked), or as sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_break(sqlock_registry *registry, const char *name,
                                const sqlock_break_options *options,
                                sqlock_error *err);

/* What sqlock_reap() keeps at the least. */
#define SQLOCK_RETENTION_DEFAULT_MS ((int64_t)600000)

/**
 * Remove the rows of the region that have been free or expired for longer than
 * @p retention_ms.  A row whose token is younger than that stays, so that a
 * token never comes again.  Never touches a lease that has not run out.  On the
 * four-column layout, expiry is judged with sqlock_options.peer_ttl_ms.
 *
 * Removes, too, the rows of names that sqlock_tx_lock() has made longer than
 * that ago and that no transaction has locked.  One that is asked for again is
 * made again.
 *
 * @param[out] removed how many, also before a failure; may be NULL
 * @return 0, EUNCERTAIN, EBUSY (a transaction has a row locked), or as
 *         sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_reap(sqlock_registry *registry, int64_t retention_ms,
                               int64_t *removed, sqlock_error *err);

/**
 * After the database was restored from a backup, cloned, or failed over to a
 * server that had not got everything: free every lock of the table, in all
 * regions, and raise the tokens that it keeps above all that were given before
 * (by a server whose clock was not ahead of this one's).  The holders of before
 * find themselves lost, but believe until then: no program that uses the locks
 * should be running.
 *
 * @param[out] rows how many were changed (Spring's layouts: removed); may be
 *             NULL
 * @return as sqlock_reap(), and ENOTSUP: the driver cannot
 */
SQLOCK_MUSTUSE int sqlock_after_restore(sqlock_registry *registry,
                                        int64_t *rows, sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_ADMIN_H */
