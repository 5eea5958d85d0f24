/*
 * find.c - list the locks that match the options
 *
 * With a limit the database chooses the rows by their order.  Without one they
 * are read in pages, each with a deadline of its own: a single statement for a
 * million rows would exceed its time limit.  Where the database can read the
 * table in key order, pages are read by key; elsewhere (FIND_BEGIN) in storage
 * order, in one transaction.  All are sorted here.
 */
#include <stddef.h>
#include <string.h>

#include "admin/info.h"
#include "base/check.h"
#include "base/error.h"
#include "base/retry.h"
#include "base/text.h"
#include "db/transaction.h"
#include "lease/grace.h"

#define PATTERN_MAX 255 /* bytes; LOCK_NAME has as many characters */

static const char *const orders[] = {
    [SQLOCK_SORT_NAME] = "name",
    [SQLOCK_SORT_HELD] = "held",
    [SQLOCK_SORT_REMAINING] = "ttl",
    [SQLOCK_SORT_TOKEN] = "token",
};
#define ORDERS (sizeof orders / sizeof *orders)

/* --- the options --- */

static int complete(sqlock_find_options *options,
                    const sqlock_find_options *given, sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_find_options",
                                          "SQLOCK_FIND_INIT", sizeof *options};
    const char *pattern;
    int rc = lk_sized_read(options, &sized, given, err);

    if (rc < 0)
        return rc;
    pattern = options->pattern;
    if ((size_t)options->sort >= ORDERS)
        return lk_error(err, SQLOCK_EINVAL,
                        "unknown sort order: use a sqlock_sort");
    if (pattern != NULL &&
        (strlen(pattern) > PATTERN_MAX || !lk_utf8_is_valid(pattern)))
        return lk_error(err, SQLOCK_EINVAL,
                        "the pattern must be UTF-8 of at most %d bytes",
                        PATTERN_MAX);
    return 0;
}

/* Turn a shell pattern into a LIKE pattern whose escape character is '!'. */
static void like_of(const char *pattern, char out[2 * PATTERN_MAX + 1])
{
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*' || *pattern == '?') {
            *out++ = *pattern == '*' ? '%' : '_';
            continue;
        }
        if (*pattern == '%' || *pattern == '_' || *pattern == '!')
            *out++ = '!';
        *out++ = *pattern;
    }
    *out = '\0';
}

static void fill(const struct lk_store *store,
                 const sqlock_find_options *options,
                 char like[2 * PATTERN_MAX + 1], struct lk_arguments *out)
{
    char shown[PATTERN_MAX + 1];

    lk_store_arguments(store, "", out);
    if (options->all_regions)
        lk_argument_text(out, SQLOCK_P_REGION, NULL);
    lk_argument_integer(out, SQLOCK_P_LIMIT,
                        options->limit != 0 ? options->limit : INT64_MAX);
    if (options->pattern != NULL) {
        lk_store_shown(store, shown, sizeof shown, options->pattern);
        like_of(shown, like);
        lk_argument_text(out, SQLOCK_P_PATTERN, like);
    }
    lk_argument_integer(out, SQLOCK_P_WITH_FREE, options->free_too);
    lk_argument_text(out, SQLOCK_P_ORDER, orders[options->sort]);
}

/* Rows of a page: few enough for a slow network. */
#define PAGE 1000

struct list {
    struct lk_store *store;
    const struct lk_arguments *arguments; /* all but those of a page */
    sqlock_info *rows;
    size_t count;
};

/* The next page begins behind the last row of `page`, whose key a stranger may
 * have made longer than a sqlock_info's. */
static void arguments_of(const struct list *list, const sqlock_result *page,
                         struct lk_arguments *arguments)
{
    const sqlock_value *last =
        page->rows > 0 ? &page->cells[(page->rows - 1) * page->columns] : NULL;
    const char *region = last != NULL && page->columns > LK_INFO_REGION
                             ? lk_cell_text(&last[LK_INFO_REGION])
                             : NULL;

    *arguments = *list->arguments;
    lk_argument_text(arguments, SQLOCK_P_AFTER,
                     last != NULL ? lk_cell_text(&last[LK_INFO_KEY]) : "");
    lk_argument_text(arguments, SQLOCK_P_AFTER_REGION,
                     region != NULL ? region : "");
    lk_argument_integer(arguments, SQLOCK_P_LIMIT, PAGE);
}

/* --- reading --- */

static int read_by_key(struct list *list, sqlock_error *err)
{
    sqlock_result page = {0};
    int rc;

    do {
        struct lk_arguments arguments;
        sqlock_result next = {0};

        arguments_of(list, &page, &arguments);
        rc = lk_info_read(list->store, SQLOCK_SQL_FIND_PAGE, &arguments, &next,
                          err);
        if (rc == 0)
            rc = lk_info_append(list->store, &list->rows, &list->count, &next,
                                err);
        sqlock_result_clear(&page);
        page = next;
    } while (rc == 0 && page.rows == PAGE);
    sqlock_result_clear(&page);
    return rc;
}

static int run_within(struct lk_transaction *transaction,
                      const struct list *list, sqlock_statement_kind kind,
                      sqlock_result *result, sqlock_error *err)
{
    static const sqlock_result none; /* a cursor knows where it is */
    struct lk_arguments arguments;
    struct lk_run run = {
        .statement = &list->store->statements[kind],
        .arguments = &arguments,
        .deadline_ns = lk_store_deadline(list->store),
    };

    arguments_of(list, &none, &arguments);
    return lk_transaction_run(transaction, &run, result, err);
}

static int read_within(struct lk_transaction *transaction, struct list *list,
                       sqlock_error *err)
{
    sqlock_result page = {0};
    size_t page_rows = 0;
    int rc = run_within(transaction, list, SQLOCK_SQL_FIND_BEGIN, &page, err);

    sqlock_result_clear(&page);
    if (rc < 0)
        return rc;
    do {
        rc = run_within(transaction, list, SQLOCK_SQL_FIND_PAGE, &page, err);
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
    sqlock_error own = {0};
    int rc;

    lk_retry_begin(&retry, &policy, lk_store_deadline(list->store));
    do {
        sqlock_info_free(list->rows, list->count);
        list->rows = NULL;
        list->count = 0;
        rc = read_once(list, &own);
    } while (lk_retry_goes_on(&retry, rc));
    return lk_error_pass(err, &own, lk_db_of_reading(rc, &own));
}

static int read_limited(struct list *list, sqlock_error *err)
{
    sqlock_result result = {0};
    int rc = lk_info_read(list->store, SQLOCK_SQL_FIND, list->arguments,
                          &result, err);

    if (rc == 0)
        rc = lk_info_append(list->store, &list->rows, &list->count, &result,
                            err);
    sqlock_result_clear(&result);
    return rc;
}

static int read_rows(struct list *list, bool has_limit, sqlock_error *err)
{
    if (has_limit)
        return read_limited(list, err);
    return list->store->statements[SQLOCK_SQL_FIND_BEGIN].text == NULL
               ? read_by_key(list, err)
               : read_at_once(list, err);
}

int sqlock_find_sized(sqlock_registry *registry,
                      const sqlock_find_options *options, sqlock_info **rows,
                      size_t *count, size_t size, sqlock_error *err)
{
    static const struct lk_row_size row = {
        "sqlock_info", offsetof(sqlock_info, token), sizeof(sqlock_info)};
    sqlock_find_options chosen = SQLOCK_FIND_INIT;
    char like[2 * PATTERN_MAX + 1];
    struct lk_arguments arguments;
    struct list list = {.arguments = &arguments};
    int rc;

    if (rows == NULL || count == NULL)
        return lk_error_null(err, "rows and count");
    *rows = NULL;
    *count = 0;
    rc = lk_row_check(&row, size, err);
    if (rc == 0)
        rc = lk_store_of(registry, &list.store, err);
    if (rc == 0)
        rc = complete(&chosen, options, err);
    if (rc != 0)
        return rc;
    if (list.store->statements[SQLOCK_SQL_FIND].text == NULL ||
        list.store->statements[SQLOCK_SQL_FIND_PAGE].text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP, "this driver cannot find locks");
    fill(list.store, &chosen, like, &arguments);
    rc = read_rows(&list, chosen.limit != 0, err);
    if (rc == 0) {
        lk_grace_refresh(list.store); /* over the session that has read */
        rc = lk_info_sort(&list.rows, list.count, chosen.sort, err);
    }
    if (rc < 0) {
        sqlock_info_free(list.rows, list.count);
        return rc;
    }
    *rows = list.rows;
    *count = list.count;
    lk_rows_pack(*rows, *count, sizeof **rows, size);
    return 0;
}
