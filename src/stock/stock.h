/*
 * stock.h - the structs of a stock and of an operation on it; for src/stock
 * only
 *
 * open.c opens a stock, schema.c makes its tables, statement.c sends its
 * statements, request.c takes requests and operation.c runs them, orders.c
 * records their answers, change.c adds and sets, reservation.c ends
 * reservations, expiry.c overdue ones, retention.c forgets both, list.c lists
 * items.  Each strategy has a file of its own; combine.c is one round of the
 * coalesced one.
 */
#ifndef LK_STOCK_H
#define LK_STOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/retry.h"
#include "sqlock/stock.h"
#include "tx/tx.h"

/* Results used within src/stock, besides the negative codes. */
enum {
    LK_STOCK_IN_TRANSACTION = 1, /* not possible in one statement */
    LK_STOCK_KNOWN = 2,          /* the order has entries */
    LK_STOCK_UNKNOWN = 3         /* it has none */
};

/* Kind (KIND) and outcome (STATUS) of an entry. */
enum { LK_KIND_DEDUCT = 'D', LK_KIND_ADD = 'A', LK_KIND_SET = 'S' };
enum { LK_KIND_RESERVE = 'R' };
enum { LK_ENTRY_DONE = 'D', LK_ENTRY_INSUFFICIENT = 'I' };
enum { LK_ENTRY_NOTHING = 'N', LK_ENTRY_UNDONE = 'U' };

struct lk_stock_operation;

/* One item of an operation. */
struct lk_stock_line {
    const char *name;  /* as in our tables */
    sqlock_value item; /* as in the stock's table */
    char number[24];
    int64_t quantity;
    int64_t delta; /* set once it is done */
    int64_t left;
    int result;
    size_t index; /* in the caller's lines */
};

/* How a quantity is deducted. */
struct lk_stock_strategy {
    /* Deduct within op->tx.  0: line->left is what is left; EINSUFFICIENT: what
     * is there. */
    int (*take)(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err);
    /* Deduct the only line of an operation outside a transaction, and record
     * its order.  LK_STOCK_KNOWN; LK_STOCK_IN_TRANSACTION: use take(). NULL:
     * always use take(). */
    int (*alone)(struct lk_stock_operation *op, sqlock_error *err);
};

extern const struct lk_stock_strategy lk_stock_conditional;
extern const struct lk_stock_strategy lk_stock_pessimistic;
extern const struct lk_stock_strategy lk_stock_optimistic;
extern const struct lk_stock_strategy lk_stock_buckets;
extern const struct lk_stock_strategy lk_stock_coalesced;

struct lk_combine_queue;

struct sqlock_stock {
    struct lk_store *store;
    sqlock_stock_options options;
    const struct lk_stock_strategy *strategy;
    struct lk_statement statements[SQLOCK_STOCK_KINDS];
    bool is_ours;    /* the table is one of ours */
    char *name;      /* the application's table; "": ours */
    bool has_orders; /* our tables are there */
    bool has_integer_items;
    int64_t most; /* the greatest value of the quantity's column */
    /* one writer: our transactions do not compete for it */
    bool takes_turns;

    pthread_mutex_t mutex; /* guards the following fields */
    bool is_writing;       /* one of our transactions has its turn */
    pthread_cond_t written;
    struct lk_combine_queue *queues;

    atomic_uint_fast64_t operations, retries, rounds, combined, most_rounds,
        rebalances;
};

struct lk_stock_operation {
    sqlock_stock *stock;
    /* the transaction it runs in; NULL: each statement by itself */
    sqlock_tx *tx;
    const char *order;
    char kind;
    struct lk_stock_line *lines; /* sorted by name */
    size_t count;
    int64_t ttl_us;
    int64_t deadline_ns; /* of all attempts */
    bool wants_left;
    bool is_duplicate;
    bool is_settled; /* a refusal has been recorded with the order */
    uint32_t attempts;
    uint32_t attempts_max; /* 0: as in the stock's options */
};

/* --- statement.c --- */

/* Names in templates. */
struct lk_stock_names {
    const char *stock, *item, *quantity, *version; /* version may be NULL */
    const char *entry, *reservation, *bucket;
    bool has_buckets; /* parts of the quantities are in buckets */
    const char *most; /* in decimal */
};

int lk_stock_render(sqlock_stock *stock, const struct lk_stock_names *names,
                    sqlock_error *err);

bool lk_stock_can(const sqlock_stock *stock, sqlock_stock_kind kind);

/* Collect the arguments of statements about an item; line may be NULL. */
void lk_stock_arguments(const struct lk_stock_operation *op,
                        const struct lk_stock_line *line,
                        struct lk_arguments *out);
void lk_stock_argument(struct lk_arguments *arguments,
                       sqlock_stock_parameter which, const char *text);
void lk_stock_argument_integer(struct lk_arguments *arguments,
                               sqlock_stock_parameter which, int64_t integer);

/* Return the code to report for a result.  Calls on a stock cannot be
 * cancelled, so a statement ended by a time limit is EBUSY. */
int lk_stock_told(int rc, sqlock_error *err);

/* Send a statement, in the operation's transaction or by itself.  Clear the
 * result. */
int lk_stock_send(struct lk_stock_operation *op, sqlock_stock_kind kind,
                  const struct lk_arguments *arguments, sqlock_result *result,
                  sqlock_error *err);

/* Send a statement about one item that returns one integer or no row: 1 or
 * 0. */
int lk_stock_ask(struct lk_stock_operation *op, sqlock_stock_kind kind,
                 const struct lk_stock_line *line, int64_t *out,
                 sqlock_error *err);

/* Read an item's quantity, with what is in buckets: 1; 0: there is no such
 * item. */
int lk_stock_ask_total(struct lk_stock_operation *op,
                       const struct lk_stock_line *line, int64_t *out,
                       sqlock_error *err);

/* Send a statement that returns only a count. */
int lk_stock_do(struct lk_stock_operation *op, sqlock_stock_kind kind,
                const struct lk_arguments *arguments, int64_t *affected,
                sqlock_error *err);

/* --- arguments.c --- */

int lk_stock_check(const sqlock_stock *stock, sqlock_tx *tx, sqlock_error *err);
/* Check that our tables are there; ESCHEMA: they are missing. */
int lk_stock_check_orders(const sqlock_stock *stock, sqlock_error *err);
int lk_stock_check_text(const char *what, const char *text, size_t most,
                        sqlock_error *err);
int lk_stock_line_init(const sqlock_stock *stock, struct lk_stock_line *line,
                       const char *item, int64_t quantity, sqlock_error *err);

/* Refuse a line: set its result and the message. */
int lk_stock_insufficient(struct lk_stock_line *line, int64_t there,
                          sqlock_error *err);
int lk_stock_no_item(struct lk_stock_line *line, sqlock_error *err);

/* --- operation.c --- */

/* Run an operation in the application's transaction, or in its own until it is
 * answered.  `body` is called in the transaction. */
typedef int (*lk_stock_body)(struct lk_stock_operation *op, sqlock_error *err);
int lk_stock_run(struct lk_stock_operation *op, sqlock_tx *tx,
                 lk_stock_body body, sqlock_error *err);

/* Run the body in a transaction of its own, once. */
int lk_stock_run_apart(struct lk_stock_operation *op, lk_stock_body body,
                       sqlock_error *err);

/* The results after which an operation is retried, and the pauses; each caller
 * sets the attempts and whether to retry uncertain ones. */
extern const struct lk_retry_policy lk_stock_retrying;

/* Return the final code: after an attempt without an answer, only a code that
 * is also true of that attempt. */
int lk_stock_outcome(const struct lk_stock_operation *op, int rc,
                     bool was_uncertain, sqlock_error *err);

/* --- orders.c --- */

/* Append the entry of a line to an array. */
void lk_entry_write(FILE *out, const char *order, size_t number,
                    const struct lk_stock_line *line, char kind, char status);

/* Write the entries of an operation, done or refused, as JSON.  The caller
 * frees it; NULL: out of memory. */
char *lk_entries_write(const struct lk_stock_operation *op, bool is_done);

/* Deduct a line and record entries in one statement.  The entries are freed;
 * NULL: ENOMEM.  1; 0: there is too little; LK_STOCK_KNOWN. */
int lk_stock_combine(struct lk_stock_operation *op,
                     const struct lk_stock_line *line, char *entries,
                     int64_t *left, sqlock_error *err);

/* Record the operation as done.  0, LK_STOCK_KNOWN. */
int lk_stock_record(struct lk_stock_operation *op, sqlock_error *err);
/* Record the operation as refused.  0, LK_STOCK_KNOWN; some lines may have been
 * recorded all the same. */
int lk_stock_refuse(struct lk_stock_operation *op, sqlock_error *err);
/* Columns of ENTRIES, ordered by order. */
#define LK_ENTRY_COLUMNS 7
/* Give the answer recorded in the order's entries.  EORDER. */
int lk_stock_compare(struct lk_stock_operation *op, const sqlock_value *cells,
                     size_t rows, sqlock_error *err);
/* Read the entries of the order; clear the result in any case. */
int lk_stock_entries(struct lk_stock_operation *op, sqlock_result *entries,
                     sqlock_error *err);
/* Give the answer that the order got before.  LK_STOCK_UNKNOWN, EORDER. */
int lk_stock_recall(struct lk_stock_operation *op, sqlock_error *err);

/* --- change.c --- */

int lk_stock_add(struct lk_stock_operation *op, struct lk_stock_line *line,
                 sqlock_error *err);
int lk_stock_assign(struct lk_stock_operation *op, struct lk_stock_line *line,
                    sqlock_error *err);

/* --- reservation.c --- */

/* End one reservation with that body.  Results as sqlock_stock_cancel(). */
int lk_reservation_end(struct lk_stock_operation *op, sqlock_tx *tx,
                       lk_stock_body body, sqlock_stock_answer *answer,
                       sqlock_error *err);
/* Let a reservation expire: a body for lk_reservation_end(). */
int lk_reservation_lapse(struct lk_stock_operation *op, sqlock_error *err);

/* --- expiry.c --- */

/* The last row of a page. */
struct lk_stock_page {
    int64_t after_us;
    int64_t line; /* of an entry */
    char after[SQLOCK_ORDER_MAX + 1];
};

void lk_stock_page_next(struct lk_stock_page *page, const char *order,
                        int64_t at_us);

/* Read the next page of DUE, at most `most` rows; clear the result in any
 * case. */
int lk_stock_due(sqlock_stock *stock, const char *state, int64_t age_us,
                 int64_t most, struct lk_stock_page *page, sqlock_result *due,
                 sqlock_error *err);

/* --- buckets.c --- */

/* Move what is in buckets back to the item's row, which is locked.  Return how
 * much. */
int lk_buckets_gather(struct lk_stock_operation *op, struct lk_stock_line *line,
                      int64_t *gathered, sqlock_error *err);
/* Gather for a strategy that deducts from the item's row.  1: something was in
 * buckets, and the row holds *there now; 0: nothing was. */
int lk_buckets_empty(struct lk_stock_operation *op, struct lk_stock_line *line,
                     int64_t *there, sqlock_error *err);

/* --- coalesced.c --- */

void lk_combine_clear(sqlock_stock *stock);

#endif
