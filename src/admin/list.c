/*
 * list.c - read rows of the lock table in pages, and list all locks of a region
 * by key
 *
 * Where the database can read the table in key order, pages are read by key.
 * Elsewhere (LIST_BEGIN, FIND_BEGIN) pages are read in storage order, in one
 * transaction, and the rows are sorted here.  Each page has a deadline of its
 * own: a single statement for a million rows would exceed its time limit.
 */
#include <stdlib.h>
#include <string.h>

#include "admin/info.h"
#include "base/check.h"
#include "base/error.h"
#include "base/retry.h"
#include "db/transaction.h"

#define PAGE 1000 /* rows: few enough for a slow network */

struct list {
    struct lk_store *store;
    const struct lk_info_query *query;
    sqlock_info *rows;
    size_t count;
};

static void arguments_of(const struct list *list,
                         struct lk_arguments *arguments)
{
    const sqlock_info *last =
        list->count > 0 ? &list->rows[list->count - 1] : NULL;
    const char *region = last != NULL ? last->region : NULL;

    *arguments = list->query->arguments;
    lk_argument_text(arguments, SQLOCK_P_AFTER, last != NULL ? last->key : "");
    lk_argument_text(arguments, SQLOCK_P_AFTER_REGION,
                     region != NULL ? region : "");
    lk_argument_integer(arguments, SQLOCK_P_LIMIT, PAGE);
}

/* --- in pages by key --- */

static int read_by_key(struct list *list, sqlock_error *err)
{
    size_t page_rows = 0;
    int rc;

    do {
        struct lk_arguments arguments;
        sqlock_result page = {0};

        arguments_of(list, &arguments);
        rc = lk_info_read(list->store, list->query->page, &arguments, &page,
                          err);
        if (rc == 0)
            rc = lk_info_append(list->store, &list->rows, &list->count, &page,
                                err);
        page_rows = page.rows;
        sqlock_result_clear(&page);
    } while (rc == 0 && page_rows == PAGE);
    return rc;
}

/* --- in a transaction --- */

static int run_within(struct lk_transaction *transaction,
                      const struct list *list, sqlock_statement_kind kind,
                      sqlock_result *result, sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .statement = &list->store->statements[kind],
        .arguments = &arguments,
        .deadline_ns = lk_store_deadline(list->store),
    };

    arguments_of(list, &arguments);
    return lk_transaction_run(transaction, &run, result, err);
}

static int read_within(struct lk_transaction *transaction, struct list *list,
                       sqlock_error *err)
{
    sqlock_result page = {0};
    size_t page_rows = 0;
    int rc = run_within(transaction, list, list->query->begin, &page, err);

    sqlock_result_clear(&page);
    if (rc < 0)
        return rc;
    do {
        rc = run_within(transaction, list, list->query->page, &page, err);
        if (rc == 0)
            rc = lk_info_append(list->store, &list->rows, &list->count, &page,
                                err);
        page_rows = page.rows;
    } while (rc == 0 && page_rows > 0);
    sqlock_result_clear(&page);
    return rc;
}

static int read_once(struct list *list, sqlock_error *err)
{
    struct lk_store *store = list->store;
    struct lk_transaction transaction;
    int rc = lk_transaction_begin(&transaction, &store->db, false,
                                  lk_store_deadline(store), err);

    if (rc < 0)
        return rc;
    rc = read_within(&transaction, list, err);
    lk_transaction_rollback(&transaction, lk_store_deadline(store));
    return rc;
}

/* Read all pages in one transaction.  After a conflict or an outage begin again
 * with the first page, until the deadline. */
static int read_at_once(struct list *list, sqlock_error *err)
{
    static const struct lk_retry_policy policy = {
        .first_us = 20000,
        .longest_us = 20000,
        .classes = LK_RETRY_CONFLICT | LK_RETRY_BUSY | LK_RETRY_FULL |
                   LK_RETRY_UNREACHABLE | LK_RETRY_UNCERTAIN,
        .last = LK_RETRY_WITHIN,
    };
    struct lk_retry retry;
    int rc;

    lk_retry_begin(&retry, &policy, lk_store_deadline(list->store));
    do {
        sqlock_info_free(list->rows, list->count);
        list->rows = NULL;
        list->count = 0;
        rc = read_once(list, err);
    } while (lk_retry_goes_on(&retry, rc));
    return lk_db_of_reading(rc, err);
}

int lk_info_read_pages(struct lk_store *store,
                       const struct lk_info_query *query, sqlock_info **rows,
                       size_t *count, sqlock_error *err)
{
    struct list list = {.store = store, .query = query};
    int rc = store->statements[query->begin].text == NULL
                 ? read_by_key(&list, err)
                 : read_at_once(&list, err);

    if (rc < 0) {
        sqlock_info_free(list.rows, list.count);
        return rc;
    }
    *rows = list.rows;
    *count = list.count;
    return 0;
}

/* --- */

int sqlock_list_sized(sqlock_registry *registry, sqlock_info **rows,
                      size_t *count, size_t size, sqlock_error *err)
{
    struct lk_info_query query = {.begin = SQLOCK_SQL_LIST_BEGIN,
                                  .page = SQLOCK_SQL_LIST};
    struct lk_store *store;
    int rc;

    if (rows == NULL || count == NULL)
        return lk_error_null(err, "rows and count");
    *rows = NULL;
    *count = 0;
    rc = lk_row_check("sqlock_info", size, sizeof **rows, err);
    if (rc == 0)
        rc = lk_store_of(registry, &store, err);
    if (rc != 0)
        return rc;
    lk_store_arguments(store, "", &query.arguments);
    rc = lk_info_read_pages(store, &query, rows, count, err);
    if (rc == 0 && store->statements[SQLOCK_SQL_LIST_BEGIN].text != NULL)
        rc = lk_info_sort(rows, *count, LK_INFO_BY_KEY, err);
    if (rc < 0) {
        sqlock_info_free(*rows, *count);
        *rows = NULL;
        *count = 0;
    }
    lk_rows_pack(*rows, *count, sizeof **rows, size);
    return rc;
}
