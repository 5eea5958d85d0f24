/*
 * combine.c - one round of combined requests: answer several requests for one
 * item
 *
 * If there is enough for all requests, their sum is deducted in one statement.
 * Otherwise, or if one of the orders has been answered before, the row is
 * locked and each request is decided by itself, first come, first served.
 * Answers are given only after the commit.  A round is tried once: after a
 * failure each thread tries its own request again (operation.c).
 */
#include "stock/combine.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/writer.h"

static struct lk_stock_line *line_of(const struct lk_combined_request *request)
{
    return &request->op->lines[0];
}

/* Return whether this attempt is about the request: it is not answered, and no
 * duplicate. */
static bool is_live(const struct lk_combined_request *request)
{
    return !request->is_answered && request->original == NULL;
}

static void answer(struct lk_combined_request *request, int rc,
                   const sqlock_error *why)
{
    request->is_answered = true;
    request->rc = rc;
    if (rc < 0 && why != NULL && why != &request->err)
        request->err = *why;
}

/* --- an order given twice in a round --- */

static void find_duplicates(struct lk_combine *combine)
{
    for (size_t i = 0; i < combine->count; i++) {
        struct lk_combined_request *request = combine->requests[i];

        if (request->op->order == NULL)
            continue;
        request->hash = lk_hash_text(request->op->order);
        for (size_t k = 0; k < i && request->original == NULL; k++) {
            struct lk_combined_request *other = combine->requests[k];

            if (other->op->order != NULL && other->hash == request->hash &&
                strcmp(other->op->order, request->op->order) == 0)
                request->original = other;
        }
    }
}

/* Give a duplicate the answer of the first request with its order id, which it
 * would get a moment later anyway.  After EORDER, the first request differs
 * from what is recorded, but the duplicate may not: LK_STOCK_KNOWN makes its
 * thread read the entries. */
static void answer_duplicate(struct lk_combined_request *request)
{
    const struct lk_stock_line *first = line_of(request->original);
    struct lk_stock_line *line = line_of(request);
    int rc = request->original->rc;

    if (rc == SQLOCK_EORDER) {
        answer(request, LK_STOCK_KNOWN, NULL);
        return;
    }
    if (rc == SQLOCK_ENOTFOUND) {
        answer(request, lk_stock_no_item(line, &request->err), &request->err);
        return;
    }
    if (rc != 0 && rc != SQLOCK_EINSUFFICIENT) {
        answer(request, rc, &request->original->err);
        return;
    }
    if (first->quantity != line->quantity) {
        answer(request,
               lk_error(&request->err, SQLOCK_EORDER,
                        "the order %s was given before with another quantity",
                        request->op->order),
               &request->err);
        return;
    }
    line->left = first->left;
    line->result = first->result;
    request->op->is_duplicate = true;
    answer(request, rc, &request->original->err);
}

/* --- sums --- */

static int64_t count_orders(const struct lk_combine *combine)
{
    int64_t count = 0;

    for (size_t i = 0; i < combine->count; i++)
        count += is_live(combine->requests[i]) &&
                 combine->requests[i]->op->order != NULL;
    return count;
}

/* Compute the sum of the requested quantities.  Return false if it exceeds a
 * 64-bit integer. */
static bool add_up(const struct lk_combine *combine, int64_t *total)
{
    *total = 0;
    for (size_t i = 0; i < combine->count; i++)
        if (is_live(combine->requests[i]) &&
            __builtin_add_overflow(
                *total, line_of(combine->requests[i])->quantity, total))
            return false;
    return true;
}

/* --- JSON --- */

/* Return a JSON array of the entries of requests with an order id, or of the
 * order ids alone.  The caller frees it; NULL: out of memory. */
static char *write_orders(const struct lk_combine *combine, bool as_entries)
{
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);
    char separator = '[';

    if (stream == NULL)
        return NULL;
    for (size_t i = 0; i < combine->count; i++) {
        const struct lk_combined_request *request = combine->requests[i];
        struct lk_stock_line entry = *line_of(request);

        if (!is_live(request) || request->op->order == NULL)
            continue;
        (void)fputc(separator, stream);
        separator = ',';
        entry.left = request->left;
        entry.delta = -entry.quantity;
        if (as_entries)
            lk_entry_write(
                stream, request->op->order, 0, &entry, LK_KIND_DEDUCT,
                request->is_refused ? LK_ENTRY_INSUFFICIENT : LK_ENTRY_DONE);
        else
            lk_json_text(stream, request->op->order);
    }
    (void)fputs(separator == '[' ? "[]" : "]", stream);
    return lk_writer_close(&writer);
}

/* Insert the entries of the round.  Return 0, LK_STOCK_KNOWN if an order had
 * some already, or a negative code. */
static int record(struct lk_combine *combine, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    int64_t affected = 0;
    char *entries;
    int rc;

    if (count_orders(combine) == 0)
        return 0;
    entries = write_orders(combine, true);
    if (entries == NULL)
        return lk_error_nomem(err);
    lk_stock_arguments_of(&combine->operation, NULL, &arguments);
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, entries);
    rc = lk_stock_do(&combine->operation, SQLOCK_STOCK_SQL_RECORD, &arguments,
                     &affected, err);
    free(entries);
    if (rc == 0 && affected != count_orders(combine))
        rc = LK_STOCK_KNOWN;
    return rc;
}

/* --- all at once --- */

/* Plan to deduct for all requests: `left` remains after the last one. */
static void plan_all(struct lk_combine *combine, int64_t left)
{
    int64_t rest = combine->total;

    for (size_t i = 0; i < combine->count; i++) {
        struct lk_combined_request *request = combine->requests[i];

        if (!is_live(request))
            continue;
        rest -= line_of(request)->quantity;
        request->left = left + rest;
        request->is_refused = false;
    }
}

/* Deduct the line, the sum of the requests.  Return 1, with what is left in
 * *left; 0 if there is too little, or no such item; or a negative code. */
static int deduct(struct lk_combine *combine, int64_t *left, sqlock_error *err)
{
    return lk_stock_ask(&combine->operation, SQLOCK_STOCK_SQL_DEDUCT,
                        &combine->line, left, err);
}

/* Deduct for all requests and record their orders in one statement.  Results as
 * lk_stock_combine(). */
static int deduct_and_enter(struct lk_combine *combine, int64_t *left,
                            sqlock_error *err)
{
    char *entries;
    int rc;

    /* To BALANCE the statement adds what is left. */
    plan_all(combine, 0);
    entries = write_orders(combine, true);
    if (entries == NULL)
        return lk_error_nomem(err);
    rc = lk_stock_combine(&combine->operation, &combine->line, entries, left,
                          err);
    free(entries);
    return rc;
}

/* Deduct for all requests and record their orders: an lk_stock_body, where one
 * statement cannot do both. */
static int deduct_then_enter(struct lk_stock_operation *operation,
                             sqlock_error *err)
{
    struct lk_combine *combine = (struct lk_combine *)operation;
    int rc;

    rc = deduct(combine, &combine->known_left, err);
    if (rc == 0)
        return LK_STOCK_UNKNOWN; /* there is too little */
    if (rc < 0)
        return rc;
    plan_all(combine, combine->known_left);
    return record(combine, err);
}

/* Try to deduct for all requests at once.  Return 0 if done; LK_STOCK_KNOWN if
 * there is too little, or an order was answered before, so that each request
 * has to be decided by itself; or a negative code. */
static int try_all(struct lk_combine *combine, sqlock_error *err)
{
    int64_t left = 0;
    int rc;

    combine->line.quantity = combine->total;
    if (count_orders(combine) == 0) {
        rc = deduct(combine, &left, err);
    } else if (lk_stock_has(&combine->operation.stock->tables,
                            SQLOCK_STOCK_SQL_COMBINE)) {
        rc = deduct_and_enter(combine, &left, err);
    } else {
        rc = lk_stock_run_apart(&combine->operation, deduct_then_enter, err);
        if (rc < 0)
            return rc;
        left = combine->known_left;
        rc = rc == 0 ? 1 : LK_STOCK_KNOWN;
    }
    if (rc < 0)
        return rc;
    combine->known_left = rc == 1 ? left : -1;
    if (rc != 1)
        return LK_STOCK_KNOWN;
    plan_all(combine, left);
    return 0;
}

/* --- each by itself --- */

/* Answer the requests whose order has entries; that answer stands whether or
 * not this attempt succeeds. */
static void answer_known(struct lk_combine *combine,
                         const sqlock_result *entries)
{
    const sqlock_value *cells = entries->cells;
    size_t rows;

    for (size_t at = 0; at < entries->rows; at += rows) {
        const char *order = cells[at * LK_ENTRY_COLUMNS].text;
        uint64_t hash = lk_hash_text(order);

        for (rows = 1; at + rows < entries->rows; rows++)
            if (strcmp(cells[(at + rows) * LK_ENTRY_COLUMNS].text, order) != 0)
                break;
        for (size_t i = 0; i < combine->count; i++) {
            struct lk_combined_request *request = combine->requests[i];

            if (is_live(request) && request->hash == hash &&
                request->op->order != NULL &&
                strcmp(request->op->order, order) == 0)
                answer(request,
                       lk_stock_compare(request->op,
                                        &cells[at * LK_ENTRY_COLUMNS], rows,
                                        &request->err),
                       &request->err);
        }
    }
}

static int recall_all(struct lk_combine *combine, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    sqlock_result entries = {0};
    char *orders;
    int rc;

    if (count_orders(combine) == 0)
        return 0;
    orders = write_orders(combine, false);
    if (orders == NULL)
        return lk_error_nomem(err);
    lk_stock_arguments_of(&combine->operation, NULL, &arguments);
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, orders);
    rc = lk_stock_send(&combine->operation, SQLOCK_STOCK_SQL_ENTRIES,
                       &arguments, &entries, err);
    free(orders);
    if (rc == 0)
        answer_known(combine, &entries);
    sqlock_result_clear(&entries);
    return rc;
}

/* Decide each request by itself, first come, first served.  Return the sum to
 * be deducted, and whether one is refused in combine->line.result. */
static int64_t plan_each(struct lk_combine *combine, int64_t there)
{
    int64_t left = there;

    combine->line.result = 0;
    for (size_t i = 0; i < combine->count; i++) {
        struct lk_combined_request *request = combine->requests[i];

        if (!is_live(request))
            continue;
        request->is_refused = line_of(request)->quantity > left;
        if (!request->is_refused)
            left -= line_of(request)->quantity;
        else
            combine->line.result = SQLOCK_EINSUFFICIENT;
        request->left = left;
    }
    return there - left;
}

static void answer_no_item(struct lk_combine *combine)
{
    for (size_t i = 0; i < combine->count; i++) {
        struct lk_combined_request *request = combine->requests[i];

        if (is_live(request))
            answer(request, lk_stock_no_item(line_of(request), &request->err),
                   &request->err);
    }
}

/* Deduct the line from its row, which this transaction has locked. */
static int deduct_locked(struct lk_combine *combine, int64_t there,
                         sqlock_error *err)
{
    int64_t left = 0;
    int rc = deduct(combine, &left, err);

    if (rc == 0)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "%s has changed from the %lld that were locked",
                        combine->line.name, (long long)there);
    return rc < 0 ? rc : 0;
}

static int judge_each(struct lk_stock_operation *operation, sqlock_error *err)
{
    struct lk_combine *combine = (struct lk_combine *)operation;
    int64_t there = 0;
    bool exists;
    int rc;

    combine->known_left = -1;
    rc = lk_stock_ask(operation, SQLOCK_STOCK_SQL_LOCK, &combine->line, &there,
                      err);
    exists = rc == 1;
    if (rc >= 0)
        rc = recall_all(combine, err);
    if (rc < 0)
        return rc;
    if (!exists) {
        answer_no_item(combine);
        return 0;
    }
    combine->line.quantity = plan_each(combine, there);
    while ((rc = operation->stock->take_back(operation, err)) > 0) {
        rc = lk_stock_ask(operation, SQLOCK_STOCK_SQL_LOCK, &combine->line,
                          &there, err);
        if (rc < 0)
            break;
        combine->line.quantity = plan_each(combine, there);
    }
    if (rc >= 0 && combine->line.quantity > 0)
        rc = deduct_locked(combine, there, err);
    if (rc < 0)
        return rc;
    combine->known_left = there - combine->line.quantity;
    return record(combine, err);
}

/* Read the quantity, for a round without orders.  Return 0 if no request can be
 * served, so that nothing is to be written; LK_STOCK_KNOWN if one can; or a
 * negative code. */
static int look(struct lk_combine *combine, sqlock_error *err)
{
    int64_t there = 0;
    int rc;

    rc = lk_stock_ask(&combine->operation, SQLOCK_STOCK_SQL_READ,
                      &combine->line, &there, err);
    if (rc < 0)
        return rc;
    if (rc == 0) {
        answer_no_item(combine);
        return 0;
    }
    if (plan_each(combine, there) > 0)
        return LK_STOCK_KNOWN;
    combine->known_left = there;
    rc = combine->operation.stock->take_back(&combine->operation, err);
    return rc > 0 ? LK_STOCK_KNOWN : rc;
}

/* --- attempts --- */

static void answer_as_planned(struct lk_combine *combine)
{
    for (size_t i = 0; i < combine->count; i++) {
        struct lk_combined_request *request = combine->requests[i];
        struct lk_stock_line *line = line_of(request);

        if (!is_live(request))
            continue;
        if (request->is_refused) {
            answer(request,
                   lk_stock_insufficient(line, request->left, &request->err),
                   &request->err);
            /* The round has recorded this refusal. */
            request->op->is_settled = true;
            continue;
        }
        lk_stock_changed(line, -line->quantity, request->left);
        answer(request, 0, NULL);
    }
}

static int try_round(struct lk_combine *combine, sqlock_error *err)
{
    int rc = LK_STOCK_KNOWN;

    if (add_up(combine, &combine->total) &&
        (combine->known_left < 0 || combine->known_left >= combine->total))
        rc = try_all(combine, err);
    if (rc == LK_STOCK_KNOWN && count_orders(combine) == 0)
        rc = look(combine, err);
    if (rc == LK_STOCK_KNOWN)
        rc = lk_stock_run_apart(&combine->operation, judge_each, err);
    if (rc == LK_STOCK_KNOWN)
        rc = lk_error(err, SQLOCK_ERETRY,
                      "another session is recording an order of this round");
    if (rc == 0)
        answer_as_planned(combine);
    return rc;
}

/* Count the requests that the next attempt is about. */
static size_t count_live(const struct lk_combine *combine)
{
    size_t count = 0;

    for (size_t i = 0; i < combine->count; i++)
        count += is_live(combine->requests[i]);
    return count;
}

/* Answer the requests that have no answer yet with the attempt's error. */
static void answer_all(struct lk_combine *combine, int rc,
                       const sqlock_error *why)
{
    for (size_t i = 0; i < combine->count; i++)
        if (is_live(combine->requests[i]))
            answer(combine->requests[i], rc, why);
}

/* Try each request in an attempt of its own, because the database refused the
 * statement for all: perhaps a CHECK of the table is broken by one request
 * only, or by the sum. */
static void try_one_by_one(struct lk_combine *combine)
{
    struct lk_combined_request **all = combine->requests;
    size_t count = combine->count;

    combine->count = 1;
    for (size_t i = 0; i < count; i++) {
        int rc;

        combine->requests = &all[i];
        if (!is_live(all[i]))
            continue;
        combine->known_left = -1;
        rc = try_round(combine, &all[i]->err);
        if (rc < 0)
            answer_all(combine, rc, &all[i]->err);
    }
    combine->requests = all;
    combine->count = count;
}

void lk_combine_run(struct lk_combine *combine, sqlock_stock *stock)
{
    sqlock_error err = {0};
    int rc;

    combine->line = *line_of(combine->requests[0]);
    combine->operation = (struct lk_stock_operation){
        .stock = stock,
        .kind = LK_KIND_DEDUCT,
        .lines = &combine->line,
        .count = 1,
        .deadline_ns = INT64_MAX,
    };
    for (size_t i = 0; i < combine->count; i++)
        combine->operation.deadline_ns =
            lk_sooner(combine->operation.deadline_ns,
                      combine->requests[i]->op->deadline_ns);
    find_duplicates(combine);
    rc = try_round(combine, &err);
    if (rc == SQLOCK_EDATABASE && count_live(combine) > 1)
        try_one_by_one(combine);
    else if (rc < 0)
        answer_all(combine, rc, &err);
    for (size_t i = 0; i < combine->count; i++)
        if (!combine->requests[i]->is_answered)
            answer_duplicate(combine->requests[i]);
}
