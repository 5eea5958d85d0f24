/*
 * sqlock/stock.h - stock that never oversells, in the database an application
 * already has
 *
 * Part of the contract with applications; sqlock.h says what holds for both:
 * results, errors, threads, fork(), strings.  Whoever locks and sells nothing
 * needs only that one.
 *
 * A stock is a table of items and quantities: ours (sql/DATABASE/stock.sql), or
 * the application's own by description.  What is asked for is deducted entirely
 * or not at all, and every caller gets its own exact answer.
 *
 * Calling sequence
 *     sqlock_stock_schema_create()  once per database (or a DBA)
 *     sqlock_registry_open()        once per process
 *     sqlock_stock_open()           once per process and strategy
 *     sqlock_stock_deduct() ...     from any thread
 *     sqlock_stock_close(), sqlock_registry_close()
 *
 * Orders
 *     An order id names one operation: with one, the operation happens once,
 *     however often it is sent, by whomever, after a crash, a lost answer or a
 *     commit that nobody knows of.  The same order again gets the first
 *     answer, also when that was "insufficient": who wants to try anew takes a
 *     new id.  The id and the answer are kept in a row that is written in the
 *     transaction that changes the quantity, until sqlock_stock_reap() removes
 *     it.  NULL in place of an order id:
 *     nothing is kept, and after EUNCERTAIN the caller does not know.
 *
 * Transactions
 *     With a NULL sqlock_tx an operation is a transaction of its own, tried
 *     again inside the library after deadlocks and lost connections.  With one
 *     it is part of it, done when that commits; a refusal leaves the
 *     transaction usable and as it was, and nothing is tried again: after
 *     ERETRY run the whole transaction again.  Under REPEATABLE READ and
 *     SERIALIZABLE expect ERETRY and ECONFLICT more often.
 */
#ifndef SQLOCK_STOCK_H
#define SQLOCK_STOCK_H

#include <sqlock/tx.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sqlock_stock sqlock_stock; /* a table of stock, opened */

/* Longest names, in bytes.  Both are UTF-8 without control characters that does
 * not end with a blank. */
#define SQLOCK_ITEM_MAX 190
#define SQLOCK_ORDER_MAX 190
/* The most items of one order. */
#define SQLOCK_LINES_MAX 1000

/* How a quantity is changed.  All are right, and may be used side by side on
 * one table, but for BUCKETS: the processes that sell an item use it all or
 * none. */
typedef enum sqlock_stock_strategy {
    SQLOCK_STOCK_CONDITIONAL = 0, /* UPDATE ... WHERE quantity >= n: for most */
    SQLOCK_STOCK_PESSIMISTIC,     /* SELECT ... FOR UPDATE, then UPDATE */
    SQLOCK_STOCK_OPTIMISTIC, /* read, compare and set by the version (or the
                                quantity where there is none): for items that
                                few want */
    SQLOCK_STOCK_BUCKETS,    /* one item over several rows: for a hot item
                                     and many processes; our table only */
    SQLOCK_STOCK_COALESCED,  /* one thread deducts for all that wait: for a
                                     hot item and many threads of a process */
    SQLOCK_STOCK_STRATEGIES
} sqlock_stock_strategy;

/** "conditional", "pessimistic", ... a constant; NULL for an unknown one. */
SQLOCK_API const char *
sqlock_stock_strategy_name(sqlock_stock_strategy strategy);

/** Zero means the default in every field; begin with SQLOCK_STOCK_INIT. */
typedef struct sqlock_stock_options {
    size_t size; /* sizeof(sqlock_stock_options): the struct may grow */
    sqlock_stock_strategy strategy;
    /* The application's table; names are letters, digits and '_', as the
     * database's catalogue has them.  NULL: ours, with the registry's prefix.
     * Orders and reservations are kept in our tables in any case, and refused
     * with ESCHEMA where those are missing.  Stocks of one prefix share its
     * order ids; each sees the reservations of its own table, by the name given
     * here, and no others. */
    const char *table;           /* "stock" or "schema.stock" */
    const char *item_column;     /* unique; a text or an integer */
    const char *quantity_column; /* an integer */
    const char *version_column;  /* an integer; raised by every strategy.  NULL:
                                    there is none */
    uint32_t buckets;            /* rows of an item, 2 to 256; 16 */
    uint32_t batch;       /* COALESCED: callers in one statement, at most, 1 to
                             1000; 256 */
    uint32_t attempts;    /* of one operation, at most; 100 */
    uint32_t deadline_ms; /* for all of them, 10 ms to 1 hour; 30 000 */
} sqlock_stock_options;
#define SQLOCK_STOCK_INIT SQLOCK_SIZED(sqlock_stock_options)

/**
 * Open the stock of @p registry, which must stay open longer, and check the
 * tables and columns.  Connections are the registry's: its pool_size bounds how
 * many callers reach the database at a time.
 *
 * @param options NULL for the defaults
 * @param[out] out to be given to sqlock_stock_close(); NULL on failure
 * @return 0, EINVAL, ENOTSUP (the driver; BUCKETS on the application's table),
 *         ESCHEMA (a table or column is missing or of another type), EFORK, or
 *         as sqlock_registry_open()
 */
SQLOCK_MUSTUSE int sqlock_stock_open(sqlock_stock **out,
                                     sqlock_registry *registry,
                                     const sqlock_stock_options *options,
                                     sqlock_error *err);

/** Free it; no other call may be running.  NULL is allowed. */
SQLOCK_API void sqlock_stock_close(sqlock_stock *stock);

/* ----------------------------------------------------------- operations -- */

/** What an operation answers besides its result; filled in any case. */
typedef struct sqlock_stock_answer {
    int64_t left; /* after 0: what is left; after EINSUFFICIENT: what is there;
                     -1: not known.  Of a duplicate: as it was then.  With
                     BUCKETS the sum as it was seen beside other callers.  Of
                     several items: of the line below */
    size_t line;  /* several items: the first that was refused; 0 */
    bool is_duplicate; /* the order had been answered before, perhaps by a try
                          of this call that lost its answer */
    uint32_t attempts; /* how often it was tried, 1 or more once it was sent */
} sqlock_stock_answer;

/** One item of several. */
typedef struct sqlock_stock_line {
    const char *item; /* each once, in any order */
    int64_t quantity; /* 1 or more */
    int result;       /* out: 0, EINSUFFICIENT, ENOTFOUND; ECANCELED: would have
                         been possible, or was not looked at, but another line
                         was refused */
    int64_t left;     /* out: as in the answer */
} sqlock_stock_line;

/**
 * Deduct @p quantity, 1 or more, of an item, unless less is there.
 *
 * @param tx NULL: a transaction of its own
 * @param order NULL: not kept
 * @param answer may be NULL
 * @return 0
 *         EINSUFFICIENT   less is there; nothing was changed
 *         ENOTFOUND       there is no such item; nothing is kept of the order
 *         EORDER          the order id was used for something else
 *         ECONFLICT, ERETRY, EBUSY   others were in the way, or the database
 *                         was too slow, until attempts or time ran out; nothing
 *                         was changed
 *         EINVAL          an argument; or there would be more than the
 *                         quantity's column, or a 64-bit integer, holds;
 *                         nothing was changed
 *         EDATABASE       the table's own CHECK refused, or another error
 *         EUNCERTAIN      only without an order id, or when the database could
 *                         not be reached again in time
 *         ESCHEMA, EACCESS, EREADONLY, ERESOURCE, EUNREACHABLE, ELOST, ENOMEM,
 *         EFORK
 */
SQLOCK_MUSTUSE int sqlock_stock_deduct(sqlock_stock *stock, sqlock_tx *tx,
                                       const char *order, const char *item,
                                       int64_t quantity,
                                       sqlock_stock_answer *answer,
                                       sqlock_error *err);

/** Add @p quantity, 1 or more, to an item.  @return as sqlock_stock_deduct() */
SQLOCK_MUSTUSE int sqlock_stock_restore(sqlock_stock *stock, sqlock_tx *tx,
                                        const char *order, const char *item,
                                        int64_t quantity,
                                        sqlock_stock_answer *answer,
                                        sqlock_error *err);

/** Make an item's quantity @p quantity, 0 or more; in our table an item that is
 *  missing is made.  @return as sqlock_stock_deduct() */
SQLOCK_MUSTUSE int sqlock_stock_set(sqlock_stock *stock, sqlock_tx *tx,
                                    const char *order, const char *item,
                                    int64_t quantity,
                                    sqlock_stock_answer *answer,
                                    sqlock_error *err);

/**
 * Read the quantity of an item, summed over all of its rows.
 *
 * @return 0, ENOTFOUND, EUNREACHABLE, EBUSY (the database did not answer within
 *         a statement's time, or a SQLite file is locked), ESCHEMA, EACCESS,
 *         EREADONLY, ERESOURCE, EDATABASE, EINVAL, ENOMEM, EFORK; with a
 *         transaction also ERETRY, ELOST
 */
SQLOCK_MUSTUSE int sqlock_stock_read(sqlock_stock *stock, sqlock_tx *tx,
                                     const char *item, int64_t *quantity,
                                     sqlock_error *err);

/** One item. */
typedef struct sqlock_stock_item {
    const char *name;
    int64_t quantity; /* in all of its rows; -1: null, or no 64-bit integer */
} sqlock_stock_item;

/**
 * All items, by name, or by number where they are integers.
 *
 * @param[out] items to be given to sqlock_free(), which frees their names, too;
 *             NULL on failure
 * @return as sqlock_stock_read(), but for ENOTFOUND
 */
SQLOCK_MUSTUSE int sqlock_stock_list(sqlock_stock *stock,
                                     sqlock_stock_item **items, size_t *count,
                                     sqlock_error *err);

/**
 * Deduct several items, all or nothing, in the order of their names, so that
 * two orders seldom wait for each other crosswise.
 *
 * @param lines 1 to SQLOCK_LINES_MAX
 * @return as sqlock_stock_deduct(): the result of the first line refused
 */
SQLOCK_MUSTUSE int
sqlock_stock_deduct_many(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                         sqlock_stock_line *lines, size_t count,
                         sqlock_stock_answer *answer, sqlock_error *err);

/** Add to several items, all or nothing.  @return as
 * sqlock_stock_deduct_many() */
SQLOCK_MUSTUSE int
sqlock_stock_restore_many(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                          sqlock_stock_line *lines, size_t count,
                          sqlock_stock_answer *answer, sqlock_error *err);

/* --------------------------------------------------------- reservations -- */

/* What has become of a reservation. */
typedef enum sqlock_stock_state {
    SQLOCK_STOCK_RESERVED = 0, /* deducted; may be claimed until its time is
                                  over, and cancelled until it has expired */
    SQLOCK_STOCK_CLAIMED,      /* for good */
    SQLOCK_STOCK_CANCELLED,    /* the quantities are back */
    SQLOCK_STOCK_EXPIRED       /* likewise */
} sqlock_stock_state;

/**
 * Deduct as sqlock_stock_deduct_many(), until it is claimed, is cancelled, or
 * @p ttl_ms (1 ms to 365 days) have passed on the database's clock.  The order
 * id is the reservation's, and must not be NULL.
 *
 * @return as sqlock_stock_deduct_many()
 */
SQLOCK_MUSTUSE int
sqlock_stock_reserve(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                     sqlock_stock_line *lines, size_t count, int64_t ttl_ms,
                     sqlock_stock_answer *answer, sqlock_error *err);

/**
 * Make a reservation final.
 *
 * @return 0, also when it was claimed before (@p answer: is_duplicate);
 *         EEXPIRED: its time is over; ECONFLICT: it was cancelled; ENOTFOUND:
 *         no such reservation; or as sqlock_stock_deduct()
 */
SQLOCK_MUSTUSE int sqlock_stock_claim(sqlock_stock *stock, sqlock_tx *tx,
                                      const char *order,
                                      sqlock_stock_answer *answer,
                                      sqlock_error *err);

/**
 * Give a reservation's quantities back.  An item that has been deleted since
 * gets nothing, which the event ITEM_MISSING tells.
 *
 * @return 0, also when it was cancelled before (@p answer: is_duplicate);
 *         EEXPIRED: they are back already; ECONFLICT: it was claimed;
 *         ENOTFOUND; or as sqlock_stock_deduct()
 */
SQLOCK_MUSTUSE int sqlock_stock_cancel(sqlock_stock *stock, sqlock_tx *tx,
                                       const char *order,
                                       sqlock_stock_answer *answer,
                                       sqlock_error *err);

/**
 * Give back the quantities of this table's reservations whose time is over,
 * each in a transaction of its own: to be called now and then, by any process,
 * by several at once if need be.  The command `sqlock reap` does so for ours.
 * A reservation that cannot give back (a CHECK of the table refuses, its item
 * is locked for long) stays as it is, and keeps no other from it.
 *
 * @param[out] expired how many this call has given back; may be NULL
 * @return 0; or, after all others, the first failure of one reservation:
 *         EINVAL, EDATABASE, EBUSY, ERETRY; or what ended it before:
 *         EUNCERTAIN, ELOST, or as sqlock_stock_list()
 */
SQLOCK_MUSTUSE int sqlock_stock_expire(sqlock_stock *stock, int64_t *expired,
                                       sqlock_error *err);

/**
 * Look at a reservation.
 *
 * @param[out] state may be NULL
 * @param[out] remaining_ms by the database's clock, 0 when over; may be NULL
 * @return as sqlock_stock_read()
 */
SQLOCK_MUSTUSE int sqlock_stock_status(sqlock_stock *stock, sqlock_tx *tx,
                                       const char *order,
                                       sqlock_stock_state *state,
                                       int64_t *remaining_ms,
                                       sqlock_error *err);

/* ------------------------------------------------------------ retention -- */

/* How long orders are kept at least: a call may send its own again for an hour,
 * the greatest deadline_ms. */
#define SQLOCK_STOCK_RETENTION_MIN_MS INT64_C(3600000)
#define SQLOCK_STOCK_RETENTION_DEFAULT_MS INT64_C(7776000000) /* 90 days */

/** Rows that a call has removed; with dry_run, that it would remove. */
typedef struct sqlock_stock_reaped {
    int64_t entries;      /* of orders: one for each item */
    int64_t reservations; /* that have ended */
} sqlock_stock_reaped;

/** Zero means the default in every field; begin with SQLOCK_STOCK_REAP_INIT. */
typedef struct sqlock_stock_reap_options {
    size_t size;          /* sizeof(sqlock_stock_reap_options) */
    int64_t retention_ms; /* 1 hour to 10 years; 90 days */
    bool dry_run;         /* count, and remove nothing */
    /* Called with context after each page of at most 1000 rows; other than 0
     * ends the call. */
    int (*progress)(void *context, const sqlock_stock_reaped *so_far);
    void *context;
} sqlock_stock_reap_options;
#define SQLOCK_STOCK_REAP_INIT SQLOCK_SIZED(sqlock_stock_reap_options)

/**
 * Forget what is long over: remove the entries of orders that were answered
 * more than retention_ms ago, and this table's reservations that ended more
 * than that ago, by the database's clock.  An order id that comes again within
 * the retention, counted from when its row was written, is always known; one
 * that comes again later is a new order.  A reservation keeps the entries of
 * its order until it is removed itself; one that is open is never removed.
 * Entries are those of all stocks of the prefix, as order ids are.
 *
 * Each statement removes at most 1000 rows and the other items of their orders,
 * and is committed by itself, beside those who sell, and by several callers at
 * once if need be.  Needs the right to delete from both tables.
 *
 * @param options NULL for the defaults
 * @param[out] reaped filled in any case; may be NULL
 * @return 0; ECANCELED: `progress` has ended it; EUNCERTAIN, or as
 *         sqlock_stock_list()
 */
SQLOCK_MUSTUSE int sqlock_stock_reap(sqlock_stock *stock,
                                     const sqlock_stock_reap_options *options,
                                     sqlock_stock_reaped *reaped,
                                     sqlock_error *err);

/* -------------------------------------------------------------- figures -- */

/** What a stock has done since it was opened. */
typedef struct sqlock_stock_stats {
    uint64_t operations;  /* calls that got as far as the database */
    uint64_t retries;     /* attempts beyond the first of each */
    uint64_t rounds;      /* COALESCED: statements or transactions of leaders */
    uint64_t combined;    /* COALESCED: callers served by them */
    uint64_t most_rounds; /* COALESCED: rounds that one caller waited for, the
                             one under way when it came among them: 2, unless
                             more wait than fit in a batch */
    uint64_t rebalances;  /* BUCKETS: times an item was spread anew */
} sqlock_stock_stats;

SQLOCK_API void sqlock_stock_statistics(sqlock_stock *stock,
                                        sqlock_stock_stats *stats);

/* --------------------------------------------------------------- schema -- */

/**
 * The SQL that creates our tables for the database of @p url (its scheme is
 * enough) with the prefix of @p options (NULL: "INT_").
 *
 * @param[out] text to be given to sqlock_free(); NULL on failure
 * @return 0, EINVAL, ENOTSUP, ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_stock_schema_text(char **text, const char *url,
                                            const sqlock_options *options,
                                            sqlock_error *err);

/**
 * Create our tables where they do not exist yet, and the index that
 * sqlock_stock_reap() reads by where a table of before has none: writing to
 * that table waits meanwhile.
 * @return 0, ESCHEMA (one exists in another shape), or as
 *         sqlock_schema_create()
 */
SQLOCK_MUSTUSE int sqlock_stock_schema_create(const char *url,
                                              const sqlock_options *options,
                                              sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_STOCK_H */
