/*
 * request.c - the functions of sqlock/stock.h that change quantities: check a
 * request, sort its lines, run it, and give the answer
 *
 * Lines are sorted by item, so that two orders lock their rows in one order and
 * seldom deadlock.
 */
#include "stock/stock.h"

#include <stddef.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

/* The longest time of a reservation: 365 days. */
#define TTL_MOST_MS (INT64_C(365) * 24 * 3600 * 1000)

int lk_answer_begin(sqlock_stock_answer *answer, sqlock_error *err)
{
    static const struct lk_sized sized = {
        "sqlock_stock_answer", "SQLOCK_STOCK_ANSWER_INIT", sizeof *answer};
    int rc = answer != NULL ? lk_sized_check(&sized, answer, err) : 0;

    if (rc == 0)
        lk_answer_give(answer, (sqlock_stock_answer){.left = -1});
    return rc;
}

void lk_answer_give(sqlock_stock_answer *answer, sqlock_stock_answer full)
{
    if (answer != NULL)
        lk_sized_write(answer, &full);
}

static int change(struct lk_stock_operation *op, struct lk_stock_line *line,
                  sqlock_error *err)
{
    switch (op->kind) {
    case LK_KIND_ADD:
        return lk_stock_add(op, line, err);
    case LK_KIND_SET:
        return lk_stock_assign(op, line, err);
    default:
        return op->stock->strategy->take(op, line, err);
    }
}

static int reserve(struct lk_stock_operation *op, sqlock_error *err)
{
    struct lk_stock_arguments arguments;

    lk_stock_arguments_of(op, NULL, &arguments);
    lk_stock_argument_integer(&arguments, SQLOCK_SP_TTL, op->ttl_us);
    return lk_stock_do(op, SQLOCK_STOCK_SQL_RESERVE, &arguments, NULL, err);
}

/* Change the items of all lines, then record the order: its entries hold what
 * is left of each item. */
static int change_all(struct lk_stock_operation *op, sqlock_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < op->count; i++) {
        rc = change(op, &op->lines[i], err);
        if (rc == SQLOCK_EINVAL)
            op->lines[i].result = rc;
    }
    if (rc == 0 && op->order != NULL)
        rc = lk_stock_record(op, err);
    if (rc == 0 && op->kind == LK_KIND_RESERVE)
        rc = reserve(op, err);
    return rc;
}

/* Return the line's item as text.  That of an integer is within the line, so
 * `name` cannot point to it while lines are sorted. */
static const char *name_of(const struct lk_stock_line *line)
{
    return line->item.type == SQLOCK_INT64 ? line->number : line->name;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(name_of(a), name_of(b));
}

/* The application's request. */
struct request {
    sqlock_stock *stock;
    sqlock_tx *tx;
    const char *order;
    char kind;
    sqlock_stock_line *lines;
    size_t count;
    size_t size; /* of a line, in the application's header */
    int64_t ttl_us;
};

/* Copy line i from the application's lines, or to them: those members that its
 * header has. */
static sqlock_stock_line line_from(const struct request *request, size_t i)
{
    sqlock_stock_line line = {0};

    memcpy(&line, (const char *)request->lines + i * request->size,
           request->size);
    return line;
}

static void line_to(const struct request *request, size_t i,
                    const sqlock_stock_line *line)
{
    memcpy((char *)request->lines + i * request->size, line, request->size);
}

static void set_result(const struct request *request, size_t i, int result)
{
    sqlock_stock_line line = line_from(request, i);

    line.result = result;
    line.left = -1;
    line_to(request, i, &line);
}

/* Set the application's lines to those of an operation that has sent
 * nothing. */
static void begin_lines(const struct request *request)
{
    if (request->lines == NULL || request->count > SQLOCK_LINES_MAX)
        return;
    for (size_t i = 0; i < request->count; i++)
        set_result(request, i, SQLOCK_ECANCELED);
}

static int read_line(struct lk_stock_operation *op,
                     const struct request *request, size_t i, sqlock_error *err)
{
    int64_t least = op->kind == LK_KIND_SET ? 0 : 1;
    const sqlock_stock_line given = line_from(request, i);
    struct lk_stock_line *line = &op->lines[i];
    int rc =
        lk_stock_line_init(op->stock, line, given.item, given.quantity, err);

    line->index = i;
    if (rc == 0 && line->quantity < least)
        rc = lk_error(err, SQLOCK_EINVAL,
                      "the quantity of %s is %" PRId64 ", it must be %" PRId64
                      " or more",
                      line->name, line->quantity, least);
    return rc;
}

/* Read and check the lines, and sort them.  A line that is refused is named in
 * its result and in the answer. */
static int read_lines(struct lk_stock_operation *op,
                      const struct request *request,
                      sqlock_stock_answer *answer, sqlock_error *err)
{
    for (size_t i = 0; i < op->count; i++) {
        int rc = read_line(op, request, i, err);

        if (rc < 0) {
            set_result(request, i, rc);
            lk_answer_give(answer,
                           (sqlock_stock_answer){.left = -1, .line = i});
            return rc;
        }
    }
    qsort(op->lines, op->count, sizeof *op->lines, by_name);
    for (size_t i = 0; i < op->count; i++)
        op->lines[i].name = name_of(&op->lines[i]);
    for (size_t i = 1; i < op->count; i++)
        if (strcmp(op->lines[i - 1].name, op->lines[i].name) == 0)
            return lk_error(err, SQLOCK_EINVAL, "the item %s is given twice",
                            op->lines[i].name);
    return 0;
}

/* Return the line whose result is reported: the first that was refused or, if
 * none was, the first. */
static const struct lk_stock_line *
telling_line(const struct lk_stock_operation *op, int rc)
{
    for (size_t i = 0; i < op->count; i++)
        if (op->lines[i].result == rc)
            return &op->lines[i];
    return &op->lines[0];
}

/* Give the application the answer of the operation, whose result is rc, and of
 * each line.  A line may have been refused in an attempt that came to another
 * result, since the order was known, or the refusal could not be recorded: then
 * that is not told. */
static void tell(const struct lk_stock_operation *op, int rc,
                 const struct request *request, sqlock_stock_answer *answer)
{
    const struct lk_stock_line *telling = telling_line(op, rc);
    bool is_known = rc == 0 || rc == SQLOCK_EINSUFFICIENT;

    for (size_t i = 0; i < op->count; i++) {
        const struct lk_stock_line *line = &op->lines[i];
        sqlock_stock_line out = line_from(request, line->index);

        out.result = line->result == rc ? rc : SQLOCK_ECANCELED;
        out.left = is_known && out.result == rc ? line->left : -1;
        line_to(request, line->index, &out);
    }
    lk_answer_give(answer, (sqlock_stock_answer){
                               .left = is_known ? telling->left : -1,
                               .line = telling->index,
                               .is_duplicate = op->is_duplicate,
                               .attempts = op->attempts,
                           });
}

static int check_request(const struct request *request, sqlock_error *err)
{
    int rc;

    rc = lk_stock_check(request->stock, request->tx, err);
    if (rc == 0 && request->order != NULL)
        rc = lk_stock_check_text("the order id", request->order,
                                 SQLOCK_ORDER_MAX, err);
    if (rc < 0)
        return rc;
    if (request->lines == NULL || request->count == 0)
        return lk_error(err, SQLOCK_EINVAL, "no items are given");
    if (request->count > SQLOCK_LINES_MAX)
        return lk_error(err, SQLOCK_EINVAL,
                        "%zu items are given, but at most %d are allowed",
                        request->count, SQLOCK_LINES_MAX);
    return 0;
}

static int run_request(const struct request *request,
                       sqlock_stock_answer *answer, sqlock_error *err)
{
    struct lk_stock_line one;
    struct lk_stock_operation op = {
        .stock = request->stock,
        .order = request->order,
        .kind = request->kind,
        .lines = &one,
        .count = request->count,
        .ttl_us = request->ttl_us,
    };
    int rc;

    rc = check_request(request, err);
    if (rc < 0)
        return rc;
    if (op.count > 1)
        op.lines = calloc(op.count, sizeof *op.lines);
    if (op.lines == NULL)
        return lk_error_nomem(err);
    rc = read_lines(&op, request, answer, err);
    if (rc == 0) {
        rc = lk_stock_run(&op, request->tx, change_all, err);
        tell(&op, rc, request, answer);
    }
    if (op.lines != &one)
        free(op.lines);
    return rc;
}

/* Change one item. */
static int change_one(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                      char kind, const char *item, int64_t quantity,
                      sqlock_stock_answer *answer, sqlock_error *err)
{
    sqlock_stock_line line = {.item = item, .quantity = quantity};
    const struct request request = {.stock = stock,
                                    .tx = tx,
                                    .order = order,
                                    .kind = kind,
                                    .lines = &line,
                                    .count = 1,
                                    .size = sizeof line};
    int rc = lk_answer_begin(answer, err);

    return rc < 0 ? rc : run_request(&request, answer, err);
}

int sqlock_stock_deduct(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                        const char *item, int64_t quantity,
                        sqlock_stock_answer *answer, sqlock_error *err)
{
    return change_one(stock, tx, order, LK_KIND_DEDUCT, item, quantity, answer,
                      err);
}

int sqlock_stock_restore(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                         const char *item, int64_t quantity,
                         sqlock_stock_answer *answer, sqlock_error *err)
{
    return change_one(stock, tx, order, LK_KIND_ADD, item, quantity, answer,
                      err);
}

int sqlock_stock_set(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                     const char *item, int64_t quantity,
                     sqlock_stock_answer *answer, sqlock_error *err)
{
    return change_one(stock, tx, order, LK_KIND_SET, item, quantity, answer,
                      err);
}

/* NOLINTNEXTLINE(readability-function-size): three functions of C in one */
int sqlock_stock_change_sized(sqlock_stock *stock, sqlock_tx *tx,
                              sqlock_stock_change kind, const char *order,
                              sqlock_stock_line *lines, size_t count,
                              int64_t ttl_ms, sqlock_stock_answer *answer,
                              size_t size, sqlock_error *err)
{
    static const struct lk_row_size row = {"sqlock_stock_line",
                                           offsetof(sqlock_stock_line, left),
                                           sizeof(sqlock_stock_line)};
    static const char kinds[] = {[SQLOCK_STOCK_DEDUCT] = LK_KIND_DEDUCT,
                                 [SQLOCK_STOCK_RESTORE] = LK_KIND_ADD,
                                 [SQLOCK_STOCK_RESERVE] = LK_KIND_RESERVE};
    struct request request = {.stock = stock,
                              .tx = tx,
                              .order = order,
                              .lines = lines,
                              .count = count,
                              .size = size};
    bool is_reservation = kind == SQLOCK_STOCK_RESERVE;
    int rc = lk_answer_begin(answer, err);

    if (rc == 0)
        rc = lk_row_check(&row, size, err);
    if (rc < 0)
        return rc;
    begin_lines(&request);
    if ((size_t)kind >= sizeof kinds)
        return lk_error(err, SQLOCK_EINVAL, "unknown kind of change %d",
                        (int)kind);
    if (is_reservation && order == NULL)
        return lk_error(err, SQLOCK_EINVAL, "a reservation needs an order id");
    if (is_reservation && (ttl_ms < 1 || ttl_ms > TTL_MOST_MS))
        return lk_error(err, SQLOCK_EINVAL,
                        "a reservation of %" PRId64
                        " ms: 1 ms to 365 days are allowed",
                        ttl_ms);
    request.kind = kinds[kind];
    request.ttl_us = is_reservation ? ttl_ms * 1000 : 0;
    return run_request(&request, answer, err);
}

int sqlock_stock_read(sqlock_stock *stock, sqlock_tx *tx, const char *item,
                      int64_t *quantity, sqlock_error *err)
{
    struct lk_stock_line line;
    struct lk_stock_operation op = {.stock = stock, .tx = tx};
    int64_t there = 0;
    int rc;

    rc = lk_stock_check(stock, tx, err);
    if (rc == 0 && quantity == NULL)
        rc = lk_error_null(err, "quantity");
    if (rc == 0)
        rc = lk_stock_line_init(stock, &line, item, 0, err);
    if (rc < 0)
        return rc;
    rc = lk_stock_ask(&op, SQLOCK_STOCK_SQL_READ, &line, &there, err);
    if (rc == 0)
        return lk_stock_no_item(&line, err);
    if (rc == 1)
        *quantity = there;
    return rc < 0 ? rc : 0;
}
