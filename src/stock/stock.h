/*
 * stock.h - the structs of a stock and of an operation on it; for src/stock
 * only
 *
 * open.c opens a stock, statement.c sends its statements, request.c checks the
 * application's requests, operation.c runs them, orders.c records their
 * answers, change.c adds and sets quantities, reservation.c ends one
 * reservation, expiry.c ends all overdue ones, retention.c removes old orders
 * and reservations, list.c lists items.  Each strategy has a file of its own.
 * queue.c combines threads, and combine.c runs one round of them.
 *
 * In src/stock, "our" tables are INT_STOCK and those beside it, which
 * sqlock_stock_schema_create() creates.  An entry is a row of INT_STOCK_ENTRY:
 * one item of an order, with the order's answer.  A line is an item and a
 * quantity of an operation, in memory.
 */
#ifndef LK_STOCK_H
#define LK_STOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "sqlock/stock.h"
#include "sqlock/tx.h"
#include "stock/sql/tables.h"

/* Results used within src/stock, besides 0 and the negative codes. */
enum {
    LK_STOCK_IN_TRANSACTION = 1, /* not possible in one statement: nothing was
                                    changed */
    LK_STOCK_KNOWN = 2,          /* the order has entries */
    LK_STOCK_UNKNOWN = 3         /* the order has no entries */
};

/* Kind (KIND) and outcome (STATUS) of an entry. */
enum { LK_KIND_DEDUCT = 'D', LK_KIND_ADD = 'A', LK_KIND_SET = 'S' };
enum { LK_KIND_RESERVE = 'R' };
enum { LK_ENTRY_DONE = 'D', LK_ENTRY_INSUFFICIENT = 'I' };
enum { LK_ENTRY_NOTHING = 'N', LK_ENTRY_UNDONE = 'U' };

struct lk_stock_operation;

/* One item of an operation. */
struct lk_stock_line {
    const char *name;  /* the item as text, as in our tables; not a copy */
    sqlock_value item; /* the item as in the stock's table */
    char number[24];   /* where items are integers: the text of `name` */
    int64_t quantity;
    int64_t delta; /* change of the item's quantity, once it was made */
    int64_t left;  /* of the item, now or when it was refused; -1: unknown */
    int result;    /* 0, or why the line was refused in this attempt */
    size_t index;  /* in the application's lines */
};

/* How a quantity is deducted. */
struct lk_stock_strategy {
    /* Deduct a line within op->tx.  Return 0 after lk_stock_changed();
     * EINSUFFICIENT after lk_stock_insufficient(); or another code. */
    int (*take)(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err);
    /* Deduct the only line of an operation without a transaction around it, and
     * record its order.  Return 0 or an error as take(), LK_STOCK_KNOWN, or
     * LK_STOCK_IN_TRANSACTION: nothing was changed, use take() instead.  NULL:
     * always use take(). */
    int (*alone)(struct lk_stock_operation *op, sqlock_error *err);
};

extern const struct lk_stock_strategy lk_stock_conditional;
extern const struct lk_stock_strategy lk_stock_pessimistic;
extern const struct lk_stock_strategy lk_stock_optimistic;
extern const struct lk_stock_strategy lk_stock_coalesced;

struct lk_combine_queue;

struct sqlock_stock {
    sqlock_registry *registry;
    struct lk_stock_tables tables;
    sqlock_stock_options options;
    const struct lk_stock_strategy *strategy;
    /* lk_stock_take_back(): operations stand below expiry.c */
    int (*take_back)(struct lk_stock_operation *op, sqlock_error *err);
    char *name; /* the application's table; "": ours */

    pthread_mutex_t mutex;  /* guards the following fields */
    bool is_writing;        /* a transaction runs, where there is one writer */
    pthread_cond_t written; /* signalled when is_writing becomes false */
    struct lk_combine_queue *queues;

    atomic_uint_fast64_t operations, retries, rounds, combined, most_rounds;
};

struct lk_stock_operation {
    sqlock_stock *stock;
    /* the transaction of its statements; NULL: each is committed by itself */
    sqlock_tx *tx;
    const char *order; /* the order id; NULL: none */
    char kind;
    struct lk_stock_line *lines; /* sorted by name */
    size_t count;                /* 0: it ends a reservation, or only reads */
    int64_t ttl_us;              /* of a new reservation */
    int64_t deadline_ns;         /* CLOCK_MONOTONIC; of all attempts together */
    bool is_duplicate;           /* the order had its answer before */
    bool is_settled;             /* a round recorded the refusal */
    uint32_t attempts;
    uint32_t attempts_max; /* 0: as in the stock's options */
};

/* --- statement.c --- */

/* Set the arguments that most statements of an operation have and, unless it is
 * NULL, those of a line.  Texts are not copied. */
void lk_stock_arguments_of(const struct lk_stock_operation *op,
                           const struct lk_stock_line *line,
                           struct lk_stock_arguments *out);
void lk_stock_argument(struct lk_stock_arguments *arguments,
                       sqlock_stock_parameter which, const char *text);
void lk_stock_argument_integer(struct lk_stock_arguments *arguments,
                               sqlock_stock_parameter which, int64_t integer);

/* Return the code that the application gets for rc: EBUSY instead of ECANCELED
 * and ETIMEDOUT, since a call on a stock cannot be cancelled, so a time limit
 * has ended the statement; otherwise rc. */
int lk_stock_told(int rc, sqlock_error *err);

/* Send a statement, in the operation's transaction or by itself.  The caller
 * clears the result, also after a failure. */
int lk_stock_send(struct lk_stock_operation *op, sqlock_stock_kind kind,
                  const struct lk_stock_arguments *arguments,
                  sqlock_result *result, sqlock_error *err);

/* Send a statement about one item that returns one integer or no row.  Return
 * 1, with the integer in *out; 0 if there was no row; or a negative code. */
int lk_stock_ask(struct lk_stock_operation *op, sqlock_stock_kind kind,
                 const struct lk_stock_line *line, int64_t *out,
                 sqlock_error *err);

/* Send a statement that returns no rows.  On success *affected, unless NULL,
 * becomes the number of rows that it changed. */
int lk_stock_do(struct lk_stock_operation *op, sqlock_stock_kind kind,
                const struct lk_stock_arguments *arguments, int64_t *affected,
                sqlock_error *err);

/* --- arguments.c --- */

/* Check that the stock, and the transaction unless NULL, can be used. */
int lk_stock_check(const sqlock_stock *stock, sqlock_tx *tx, sqlock_error *err);
/* Return 0, or ESCHEMA if our tables for orders and reservations are
 * missing. */
int lk_stock_check_orders(const sqlock_stock *stock, sqlock_error *err);
/* Check an item or an order id of at most `most` bytes; `what` names it in the
 * message.  Return 0 or EINVAL. */
int lk_stock_check_text(const char *what, const char *text, size_t most,
                        sqlock_error *err);
/* Check an item, which is not copied, and initialize a line for it. */
int lk_stock_line_init(const sqlock_stock *stock, struct lk_stock_line *line,
                       const char *item, int64_t quantity, sqlock_error *err);

/* Note that a line was changed by `delta`, though it may have been refused a
 * moment ago. */
void lk_stock_changed(struct lk_stock_line *line, int64_t delta, int64_t left);
/* Refuse a line: set line->result and err, and return that code.  `there` is
 * the item's quantity, which becomes line->left. */
int lk_stock_insufficient(struct lk_stock_line *line, int64_t there,
                          sqlock_error *err);
int lk_stock_no_item(struct lk_stock_line *line, sqlock_error *err);

/* --- operation.c --- */

/* The work of an operation, called within op->tx.  After any result but 0 its
 * changes are undone. */
typedef int (*lk_stock_body)(struct lk_stock_operation *op, sqlock_error *err);
/* Run an operation once in the application's transaction `tx`; or, with tx
 * NULL, in transactions of its own until there is an answer, or no time or no
 * attempt left.  The strategy's alone() replaces `body` where it can. */
int lk_stock_run(struct lk_stock_operation *op, sqlock_tx *tx,
                 lk_stock_body body, sqlock_error *err);

/* Run the body in one transaction of its own, without another attempt, and
 * commit if it returns 0.  Return the body's result, or why there was no
 * commit. */
int lk_stock_run_apart(struct lk_stock_operation *op, lk_stock_body body,
                       sqlock_error *err);

/* Send a statement as lk_stock_do(), by itself, until it is carried out or no
 * time is left: others may have locked its rows. */
int lk_stock_do_again(struct lk_stock_operation *op, sqlock_stock_kind kind,
                      const struct lk_stock_arguments *arguments,
                      int64_t *affected, sqlock_error *err);

/* --- orders.c --- */

/* Write the entry of a line as an object of a JSON array of entries, see
 * db/dialect.h.  `number` is the line's number in the order. */
void lk_entry_write(FILE *out, const char *order, size_t number,
                    const struct lk_stock_line *line, char kind, char status);

/* Return the entries of an operation, done or refused, as a JSON array, which
 * the caller frees; NULL: out of memory. */
char *lk_entries_write(const struct lk_stock_operation *op, bool is_done);

/* Deduct a line from the item's row and record `entries`, a JSON array, in one
 * statement.  Return 1, with what is left in *left; 0 if there is too little,
 * or no such item; LK_STOCK_KNOWN if an order may have entries already; or a
 * negative code. */
int lk_stock_combine(struct lk_stock_operation *op,
                     const struct lk_stock_line *line, const char *entries,
                     int64_t *left, sqlock_error *err);

/* Record the operation as done.  Return 0, LK_STOCK_KNOWN, or a negative
 * code. */
int lk_stock_record(struct lk_stock_operation *op, sqlock_error *err);
/* Record the operation as refused.  Results as of lk_stock_record().  After
 * LK_STOCK_KNOWN some lines may have been recorded: the caller undoes that. */
int lk_stock_refuse(struct lk_stock_operation *op, sqlock_error *err);
/* Number of columns of SQLOCK_STOCK_SQL_ENTRIES. */
#define LK_ENTRY_COLUMNS 7
/* Set the operation's answer to that recorded in its order's entries, which are
 * `rows` rows of cells.  Return the recorded result, or EORDER if the order id
 * was used for something else. */
int lk_stock_compare(struct lk_stock_operation *op, const sqlock_value *cells,
                     size_t rows, sqlock_error *err);
/* Read the entries of the operation's order.  The caller clears `entries`, also
 * after a failure. */
int lk_stock_entries(struct lk_stock_operation *op, sqlock_result *entries,
                     sqlock_error *err);
/* Set the operation's answer to the one that its order got before.  Results as
 * of lk_stock_compare(), LK_STOCK_UNKNOWN, or why it could not be read. */
int lk_stock_recall(struct lk_stock_operation *op, sqlock_error *err);

/* --- change.c --- */

/* Add line->quantity to the item, or set the item to it.  Return 0, ENOTFOUND,
 * EINVAL if the column cannot hold the result, or another code. */
int lk_stock_add(struct lk_stock_operation *op, struct lk_stock_line *line,
                 sqlock_error *err);
int lk_stock_assign(struct lk_stock_operation *op, struct lk_stock_line *line,
                    sqlock_error *err);

/* --- request.c --- */

/* Check the application's answer, which may be NULL, and set it to that of an
 * operation that has sent nothing.  Return 0, or EINVAL for a wrong size. */
int lk_answer_begin(sqlock_stock_answer *answer, sqlock_error *err);
/* Copy an answer to the application's, if that is not NULL. */
void lk_answer_give(sqlock_stock_answer *answer, sqlock_stock_answer full);

/* --- reservation.c --- */

/* End the reservation op->order by `body`, in the application's transaction
 * `tx` or, with NULL, in one of its own.  Results as sqlock_stock_cancel(). */
int lk_reservation_end(struct lk_stock_operation *op, sqlock_tx *tx,
                       lk_stock_body body, sqlock_stock_answer *answer,
                       sqlock_error *err);
/* Let an overdue reservation expire: a body for lk_reservation_end(). */
int lk_reservation_lapse(struct lk_stock_operation *op, sqlock_error *err);

/* --- expiry.c --- */

/* The last row of a page, behind which the next page begins; zero: none was
 * read yet. */
struct lk_stock_page {
    int64_t after_us;                 /* the row's time, in us since 1970 */
    int64_t line;                     /* LINE, if the rows are entries */
    char after[SQLOCK_ORDER_MAX + 1]; /* the row's order id */
};

/* Note the time and the order id, which is copied, of the last row. */
void lk_stock_page_next(struct lk_stock_page *page, const char *order,
                        int64_t at_us);

/* Read the next page of reservations whose STATE is `state` and EXPIRES_AT was
 * age_us ago or more, at most `most` rows, and set *page to its last row.  The
 * caller clears `due`, also after a failure. */
int lk_stock_due(sqlock_stock *stock, const char *state, int64_t age_us,
                 int64_t most, struct lk_stock_page *page, sqlock_result *due,
                 sqlock_error *err);

/* Let some overdue reservations of the lines that are refused expire, in the
 * transaction op->tx or in some of their own.  Return 1 if any has ended, which
 * may be another session's doing, 0 if not, or a negative code. */
int lk_stock_take_back(struct lk_stock_operation *op, sqlock_error *err);

#endif
