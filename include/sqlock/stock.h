/*
 * sqlock/stock.h - stock that never oversells
 *
 * A stock is a table of items and quantities: sqlock's own
 * (sql/DATABASE/stock.sql), or one of the application that the options
 * describe.  An operation deducts all that was asked for, or nothing, and
 * returns what is left, exactly.
 *
 * Calling sequence
 *     sqlock_stock *stock = NULL;
 *     sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
 *
 *     rc = sqlock_stock_schema_create(url, NULL, &err);
 *     if (rc == 0)
 *         rc = sqlock_stock_open(&stock, registry, NULL, &err);
 *     if (rc == 0)
 *         rc = sqlock_stock_set(stock, NULL, "delivery/1", "widget", 100,
 *                               &answer, &err);
 *     if (rc == 0)
 *         rc = sqlock_stock_deduct(stock, NULL, "order/4711", "widget", 2,
 *                                  &answer, &err);
 *     if (rc == SQLOCK_EINSUFFICIENT)
 *         printf("only %lld left\n", (long long)answer.left);
 *     sqlock_stock_close(stock);
 *
 * Orders
 *     An order id names one operation.  With one, the operation happens once,
 *     however often and by whomever it is sent, also after a crash or a lost
 *     answer.  Sent again, it gets the first answer again, also when that was
 *     "insufficient": a new attempt needs a new id.  The id and the answer are
 *     a row that is written in the same transaction as the quantity, and that
 *     sqlock_stock_reap() removes later.  Without an order id (NULL) nothing is
 *     kept, and after EUNCERTAIN the outcome stays unknown.
 *
 * Transactions
 *     Without a transaction (NULL) an operation has one of its own; the library
 *     tries it again after deadlocks and lost connections.  If a transaction is
 *     given, the operation is part of it.  A refusal leaves that transaction
 *     usable and unchanged, the library tries nothing again, and after ERETRY
 *     the application runs the whole transaction again.
 *     Under REPEATABLE READ and SERIALIZABLE expect ERETRY and ECONFLICT more
 *     often.
 *
 * Results
 *     After a failure nothing was changed, except that after EUNCERTAIN the
 *     outcome is not known.  Results, errors, threads, fork() and strings are
 *     as in sqlock.h.
 */
#ifndef SQLOCK_STOCK_H
#define SQLOCK_STOCK_H

#include <sqlock/tx.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open table of stock. */
typedef struct sqlock_stock sqlock_stock;

/* Longest name of an item, or order id, in bytes.  It is UTF-8 without control
 * characters, and does not end with a blank. */
#define SQLOCK_ITEM_MAX 190
#define SQLOCK_ORDER_MAX 190
/* The most items of one order. */
#define SQLOCK_LINES_MAX 1000

/** Strategy for changing a quantity.  All strategies are exact, and may be
 *  mixed on one table. */
typedef enum sqlock_stock_strategy {
    SQLOCK_STOCK_CONDITIONAL = 0, /* UPDATE ... WHERE quantity >= n: for most */
    SQLOCK_STOCK_PESSIMISTIC,     /* SELECT ... FOR UPDATE, then UPDATE */
    SQLOCK_STOCK_OPTIMISTIC, /* read, then compare and set by the version, or by
                                the quantity where there is none: for items with
                                few buyers */
    SQLOCK_STOCK_COALESCED,  /* one thread deducts for all that wait: for a hot
                                item and many threads of a process */
    SQLOCK_STOCK_STRATEGIES  /* number of strategies */
} sqlock_stock_strategy;

/** Name of a strategy, "conditional", "pessimistic"...: a constant; NULL for an
 *  unknown one. */
SQLOCK_API const char *
sqlock_stock_strategy_name(sqlock_stock_strategy strategy);

/** Options of a stock.  Zero means the default. */
typedef struct sqlock_stock_options {
    size_t size; /* sizeof(sqlock_stock_options): the struct may grow */
    sqlock_stock_strategy strategy; /* default SQLOCK_STOCK_CONDITIONAL */
    /* The application's table, "stock" or "schema.stock".  Names are letters,
     * digits and '_', as the database's catalogue has them.  Orders and
     * reservations are in sqlock's tables in any case.  Stocks of one prefix
     * share their order ids; each sees the reservations of its own table only,
     * by the name given here.  NULL: sqlock's table, with the registry's
     * prefix. */
    const char *table;
    const char *item_column;     /* unique; a text, compared by its bytes even
                                    if the database finds others equal, or an
                                    integer */
    const char *quantity_column; /* an integer */
    const char *version_column;  /* an integer that each strategy raises, and
                                    no column above; NULL: there is none */
    uint32_t batch;       /* with COALESCED, callers in one statement, 1 to
                             1000; default 256 */
    uint32_t attempts;    /* of one operation, at most; default 100 */
    uint32_t deadline_ms; /* until the last attempt begins, of which each
                             statement may take statement_timeout_ms; 10 ms to
                             1 hour; default 30 000 */
} sqlock_stock_options;
#define SQLOCK_STOCK_INIT SQLOCK_SIZED(sqlock_stock_options)

/**
 * Open a stock, and check its tables and columns.  It uses the connections of
 * the registry, whose `pool_size` limits how many callers reach the database at
 * a time.  Close the stock before the registry.
 *
 * @param options   NULL: all defaults
 * @param[out] out  closed by sqlock_stock_close(); NULL on failure
 * @return 0         open
 *         ESCHEMA   a table or column is missing, or of another type, or
 *                   sqlock's tables do not compare texts by their bytes
 *         ENOTSUP   not with this driver
 */
SQLOCK_MUSTUSE int sqlock_stock_open(sqlock_stock **out,
                                     sqlock_registry *registry,
                                     const sqlock_stock_options *options,
                                     sqlock_error *err);

/** Free a stock.  No other call may be running.  NULL is allowed. */
SQLOCK_API void sqlock_stock_close(sqlock_stock *stock);

/* ----------------------------------------------------------- operations -- */

/** Answer of an operation besides its result; written in any case. */
typedef struct sqlock_stock_answer {
    size_t size;  /* sizeof(sqlock_stock_answer): the struct may grow */
    int64_t left; /* after 0: what is left; after EINSUFFICIENT: what is there;
                     -1: not known.  Of a duplicate: as it was then.  With
                     several items: of the item `line` */
    size_t line;  /* index of an item: the first that was refused, by name; if
                     none was, the first by name */
    bool is_duplicate; /* the order had been answered before, perhaps by an
                          attempt of this call that lost its answer */
    uint32_t attempts; /* number of attempts; 0: nothing was sent */
} sqlock_stock_answer;
#define SQLOCK_STOCK_ANSWER_INIT SQLOCK_SIZED(sqlock_stock_answer)

/** One item of an order with several. */
typedef struct sqlock_stock_line {
    const char *item; /* each item once, in any order */
    int64_t quantity; /* 1 or more */
    int result;       /* out: 0; why this line was refused: EINSUFFICIENT,
                         ENOTFOUND, EINVAL; ECANCELED: the call failed for
                         another reason.  Written in any case, but if there
                         are too many lines */
    int64_t left;     /* out: as in the answer */
} sqlock_stock_line;

/**
 * Deduct a quantity of an item, unless there is less; add one; or set it, which
 * makes an item that is missing from sqlock's table.
 *
 * @param tx       NULL: a transaction of its own
 * @param order    NULL: none is kept
 * @param quantity 1 or more; to set it also 0
 * @param answer   NULL: not wanted
 * @return 0              done
 *         EINSUFFICIENT  there is less
 *         ENOTFOUND      there is no such item; the order is not kept
 *         EORDER         the order id was used for something else
 *         ECONFLICT, ERETRY, EBUSY   others were in the way until attempts or
 *                        time ran out: try again later
 *         EUNCERTAIN     the outcome is not known; only without an order id, or
 *                        when the database did not come back in time
 *         any other      nothing was changed.  EINVAL: an argument, or the
 *                        column is too small for the new quantity.  EDATABASE:
 *                        a CHECK of the table, or another error
 */
SQLOCK_MUSTUSE int sqlock_stock_deduct(sqlock_stock *stock, sqlock_tx *tx,
                                       const char *order, const char *item,
                                       int64_t quantity,
                                       sqlock_stock_answer *answer,
                                       sqlock_error *err);
SQLOCK_MUSTUSE int sqlock_stock_restore(sqlock_stock *stock, sqlock_tx *tx,
                                        const char *order, const char *item,
                                        int64_t quantity,
                                        sqlock_stock_answer *answer,
                                        sqlock_error *err);
SQLOCK_MUSTUSE int sqlock_stock_set(sqlock_stock *stock, sqlock_tx *tx,
                                    const char *order, const char *item,
                                    int64_t quantity,
                                    sqlock_stock_answer *answer,
                                    sqlock_error *err);

/**
 * Read the quantity of an item, over all of its rows.
 *
 * @return 0              done
 *         ENOTFOUND      there is no such item
 *         EBUSY          a statement took longer than its limit, or the SQLite
 *                        file is locked
 */
SQLOCK_MUSTUSE int sqlock_stock_read(sqlock_stock *stock, sqlock_tx *tx,
                                     const char *item, int64_t *quantity,
                                     sqlock_error *err);

/** One item. */
typedef struct sqlock_stock_item {
    const char *name; /* as text, also where items are integers */
    int64_t quantity; /* in all of its rows; -1: null, or no 64-bit integer */
} sqlock_stock_item;

/** Do as sqlock_stock_list(), for rows of @p size bytes: for other
 *  languages. */
SQLOCK_MUSTUSE int sqlock_stock_list_sized(sqlock_stock *stock,
                                           sqlock_stock_item **items,
                                           size_t *count, size_t size,
                                           sqlock_error *err);

/**
 * List all items, by name, or by number where they are integers.
 *
 * @param[out] items freed by sqlock_free(), with their names; NULL on failure
 * @return 0              done
 *         EBUSY          a statement took longer than its limit, or the SQLite
 *                        file is locked
 */
SQLOCK_INLINE int sqlock_stock_list(sqlock_stock *stock,
                                    sqlock_stock_item **items, size_t *count,
                                    sqlock_error *err)
{
    return sqlock_stock_list_sized(stock, items, count,
                                   sizeof(sqlock_stock_item), err);
}

/** Kind of a change of several items. */
typedef enum sqlock_stock_change {
    SQLOCK_STOCK_DEDUCT = 0, /* sqlock_stock_deduct_many() */
    SQLOCK_STOCK_RESTORE,    /* sqlock_stock_restore_many() */
    SQLOCK_STOCK_RESERVE     /* sqlock_stock_reserve(), alone with a ttl_ms */
} sqlock_stock_change;

/** Do as the function of that kind, for lines of @p size bytes: for other
 *  languages. */
SQLOCK_MUSTUSE int sqlock_stock_change_sized(
    sqlock_stock *stock, sqlock_tx *tx, sqlock_stock_change kind,
    const char *order, sqlock_stock_line *lines, size_t count, int64_t ttl_ms,
    sqlock_stock_answer *answer, size_t size, sqlock_error *err);

/**
 * Deduct several items, or add to them: all or none.  They are changed in the
 * order of their names, so two orders seldom deadlock.
 *
 * @param lines 1 to SQLOCK_LINES_MAX
 * @return 0           all are changed
 *         EINSUFFICIENT, ENOTFOUND   of the first line that was refused; no
 *                     quantity was changed
 */
SQLOCK_INLINE int
sqlock_stock_deduct_many(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                         sqlock_stock_line *lines, size_t count,
                         sqlock_stock_answer *answer, sqlock_error *err)
{
    return sqlock_stock_change_sized(stock, tx, SQLOCK_STOCK_DEDUCT, order,
                                     lines, count, 0, answer,
                                     sizeof(sqlock_stock_line), err);
}
SQLOCK_INLINE int
sqlock_stock_restore_many(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                          sqlock_stock_line *lines, size_t count,
                          sqlock_stock_answer *answer, sqlock_error *err)
{
    return sqlock_stock_change_sized(stock, tx, SQLOCK_STOCK_RESTORE, order,
                                     lines, count, 0, answer,
                                     sizeof(sqlock_stock_line), err);
}

/* --------------------------------------------------------- reservations -- */

/** State of a reservation. */
typedef enum sqlock_stock_state {
    SQLOCK_STOCK_RESERVED = 0, /* deducted; can be claimed */
    SQLOCK_STOCK_CLAIMED,      /* deducted for good */
    SQLOCK_STOCK_CANCELLED,    /* the quantities are back */
    SQLOCK_STOCK_EXPIRED       /* its time is over: the quantities are back, or
                                  will be as soon as they are wanted */
} sqlock_stock_state;

/**
 * Deduct several items for a limited time.  They stay deducted until the
 * reservation is claimed or cancelled, or expires.
 *
 * @param order  of the reservation; not NULL
 * @param ttl_ms 1 ms to 365 days, on the database's clock
 */
SQLOCK_INLINE int
sqlock_stock_reserve(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                     sqlock_stock_line *lines, size_t count, int64_t ttl_ms,
                     sqlock_stock_answer *answer, sqlock_error *err)
{
    return sqlock_stock_change_sized(stock, tx, SQLOCK_STOCK_RESERVE, order,
                                     lines, count, ttl_ms, answer,
                                     sizeof(sqlock_stock_line), err);
}

/**
 * Make a reservation final; or cancel it, which gives its quantities back.  An
 * item that was deleted since gets nothing, which the event ITEM_MISSING
 * reports.
 *
 * @return 0           done, now or before (@p answer: is_duplicate)
 *         EEXPIRED    its time is over; cancelled: the quantities are back
 *         ECONFLICT   it was cancelled, or claimed
 *         ENOTFOUND   there is no such reservation
 */
SQLOCK_MUSTUSE int sqlock_stock_claim(sqlock_stock *stock, sqlock_tx *tx,
                                      const char *order,
                                      sqlock_stock_answer *answer,
                                      sqlock_error *err);
SQLOCK_MUSTUSE int sqlock_stock_cancel(sqlock_stock *stock, sqlock_tx *tx,
                                       const char *order,
                                       sqlock_stock_answer *answer,
                                       sqlock_error *err);

/**
 * Give back the quantities of reservations whose time is over, so that reads
 * count them: what would be refused for want of an item does so for that item
 * by itself, in its transaction.  Several processes may call it at once, and
 * `sqlock reap` does it for sqlock's table.
 *
 * Each reservation is a transaction of its own.  If one cannot give its
 * quantities back (a CHECK of the table, an item locked for long), it stays as
 * it is, and the call goes on with the others.
 *
 * @param[out] expired how many this call has given back; NULL: not wanted
 * @return 0            done
 *         EINVAL, EDATABASE, EBUSY, ERETRY   the first failure of one
 *                      reservation; all others were tried, too
 *         EUNCERTAIN   the outcome of the last one is not known
 *         any other    ended early
 */
SQLOCK_MUSTUSE int sqlock_stock_expire(sqlock_stock *stock, int64_t *expired,
                                       sqlock_error *err);

/**
 * Read the state of a reservation.
 *
 * @param[out] state        NULL: not wanted
 * @param[out] remaining_ms until it expires, 0 when over; NULL: not wanted
 * @return 0              done
 *         ENOTFOUND      there is no such reservation
 */
SQLOCK_MUSTUSE int sqlock_stock_status(sqlock_stock *stock, sqlock_tx *tx,
                                       const char *order,
                                       sqlock_stock_state *state,
                                       int64_t *remaining_ms,
                                       sqlock_error *err);

/* ------------------------------------------------------------ retention -- */

/* The shortest retention: a call may send its own order again for an hour, the
 * greatest deadline_ms. */
#define SQLOCK_STOCK_RETENTION_MIN_MS INT64_C(3600000)
/* The default retention: 90 days. */
#define SQLOCK_STOCK_RETENTION_DEFAULT_MS INT64_C(7776000000)

/** Rows that sqlock_stock_reap() has removed, or would remove. */
typedef struct sqlock_stock_reaped {
    size_t size;          /* sizeof(sqlock_stock_reaped): the struct may grow */
    int64_t entries;      /* of orders: one for each item */
    int64_t reservations; /* that have ended */
} sqlock_stock_reaped;
#define SQLOCK_STOCK_REAPED_INIT SQLOCK_SIZED(sqlock_stock_reaped)

/** Options of sqlock_stock_reap().  Zero means the default. */
typedef struct sqlock_stock_reap_options {
    size_t size;          /* sizeof(sqlock_stock_reap_options): it may grow */
    int64_t retention_ms; /* 1 hour to 10 years; default 90 days */
    bool dry_run;         /* count, and remove nothing */
    /* Called after each page of at most 1000 rows; a result other than 0 ends
     * the call.  NULL: none. */
    int (*progress)(void *context, const sqlock_stock_reaped *so_far);
    void *context; /* first argument of `progress` */
} sqlock_stock_reap_options;
#define SQLOCK_STOCK_REAP_INIT SQLOCK_SIZED(sqlock_stock_reap_options)

/**
 * Remove old orders and old reservations: entries of orders that were answered
 * longer ago than the retention, and reservations of this table that ended
 * longer ago, on the database's clock.  An order id that comes again within the
 * retention is always known; one that comes later is a new order.  A
 * reservation keeps the entries of its order; an open one is never removed.
 * Entries are removed for all stocks of the prefix, which share their order
 * ids.
 *
 * Each statement removes at most 1000 rows, with the other items of their
 * orders, and is committed by itself, so others can sell and reap meanwhile.
 * Where another transaction has locked such a row, the call waits for it, for
 * `deadline_ms` of the stock's options at most in each statement.
 * The login needs the right to delete from the tables of entries and of
 * reservations.
 *
 * @param options      NULL: all defaults
 * @param[out] reaped  written in any case; NULL: not wanted
 * @return 0            done
 *         EBUSY        a row was still locked then, or a statement takes longer
 *                      than statement_timeout_ms
 *         ECANCELED    `progress` has ended it
 *         EUNCERTAIN   the outcome of the last statement is not known
 */
SQLOCK_MUSTUSE int sqlock_stock_reap(sqlock_stock *stock,
                                     const sqlock_stock_reap_options *options,
                                     sqlock_stock_reaped *reaped,
                                     sqlock_error *err);

/* -------------------------------------------------------------- figures -- */

/** Counts of a stock since it was opened. */
typedef struct sqlock_stock_stats {
    size_t size;          /* sizeof(sqlock_stock_stats): the struct may grow */
    uint64_t operations;  /* calls that reached the database */
    uint64_t retries;     /* attempts beyond the first of each, and of each
                             statement of a reap */
    uint64_t rounds;      /* COALESCED: statements or transactions for all that
                             wait */
    uint64_t combined;    /* COALESCED: callers that these served */
    uint64_t most_rounds; /* COALESCED: the most rounds that one caller waited
                             for, the one under way when it came included: 2,
                             unless more wait than fit in a batch */
} sqlock_stock_stats;
#define SQLOCK_STOCK_STATS_INIT SQLOCK_SIZED(sqlock_stock_stats)

/**
 * Copy the counts of a stock.  No I/O.
 *
 * @return 0           done
 *         any other   EINVAL (NULL, or another size), EFORK
 */
SQLOCK_API int sqlock_stock_statistics(sqlock_stock *stock,
                                       sqlock_stock_stats *stats,
                                       sqlock_error *err);

/* --------------------------------------------------------------- schema -- */

/**
 * The SQL that creates sqlock's tables of stock.
 *
 * @param[out] text freed by sqlock_free(); NULL on failure
 * @param url       of the database; its scheme is enough
 * @param options   for the tables' prefix; NULL: "INT_"
 */
SQLOCK_MUSTUSE int sqlock_stock_schema_text(char **text, const char *url,
                                            const sqlock_options *options,
                                            sqlock_error *err);

/**
 * Create sqlock's tables of stock where they do not exist.  A table of an
 * earlier version gets the index that sqlock_stock_reap() reads by; writing to
 * that table waits meanwhile.
 *
 * @return 0              the tables exist
 *         ESCHEMA        one exists with other columns
 *         ECONFLICT      one exists where only other sessions find it
 */
SQLOCK_MUSTUSE int sqlock_stock_schema_create(const char *url,
                                              const sqlock_options *options,
                                              sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_STOCK_H */
