/*
 * find.c - list the locks that match the options, with their waiters
 *
 * With a limit the database chooses the rows by their order; without one they
 * are read in pages.  They are sorted here.  Only waiters that the database
 * knows are listed: not those in the FIFO of a process, and not those that poll
 * the row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/info.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

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

/* --- waiters --- */

/* A row with the number of its wait queue. */
struct queue {
    int64_t number;
    sqlock_info *row;
};

static int by_number(const void *one, const void *other)
{
    const struct queue *a = one;
    const struct queue *b = other;

    return (a->number > b->number) - (a->number < b->number);
}

static struct queue *queues_of(const struct lk_store *store, sqlock_info *rows,
                               size_t count)
{
    struct queue *queues = calloc(count, sizeof *queues);

    for (size_t i = 0; queues != NULL && i < count; i++) {
        const char *region =
            rows[i].region != NULL ? rows[i].region : store->region;

        queues[i].number = lk_queue_number_in(store, region, rows[i].key);
        queues[i].row = &rows[i];
    }
    if (queues != NULL)
        qsort(queues, count, sizeof *queues, by_number);
    return queues;
}

static int count_waiters(sqlock_info *rows, struct queue *queues, size_t count,
                         const sqlock_result *result, sqlock_error *err)
{
    for (size_t row = 0; row < result->rows; row++) {
        const sqlock_value *cells = &result->cells[row * result->columns];
        struct queue key = {.number = cells[0].integer};
        struct queue *found =
            bsearch(&key, queues, count, sizeof key, by_number);

        if (found == NULL)
            continue;
        found->row->waiters++;
        if (cells[1].type == SQLOCK_TEXT &&
            lk_info_add_waiter(rows, found->row, cells[1].text) < 0)
            return lk_error_nomem(err);
    }
    return 0;
}

/* Add the waiters to each row.  If the database does not list waiters, or not
 * for this login, `waiters` of each row stays -1, unknown. */
static int add_waiters(struct lk_store *store, sqlock_info *rows, size_t count,
                       sqlock_error *err)
{
    struct lk_arguments arguments;
    sqlock_result result = {0};
    struct queue *queues;
    int rc;

    if (count == 0 || store->statements[SQLOCK_SQL_WAITERS].text == NULL)
        return 0;
    lk_store_arguments(store, "", &arguments);
    rc = lk_info_read(store, SQLOCK_SQL_WAITERS, &arguments, &result, err);
    if (rc == SQLOCK_EACCESS || rc == SQLOCK_ESCHEMA ||
        rc == SQLOCK_EDATABASE) {
        sqlock_result_clear(&result);
        return 0;
    }
    for (size_t i = 0; rc == 0 && i < count; i++)
        rows[i].waiters = 0;
    queues = rc == 0 && result.rows > 0 ? queues_of(store, rows, count) : NULL;
    if (rc == 0 && result.rows > 0)
        rc = queues != NULL ? count_waiters(rows, queues, count, &result, err)
                            : lk_error_nomem(err);
    free(queues);
    sqlock_result_clear(&result);
    return rc;
}

/* --- */

static int read_limited(struct lk_store *store,
                        const struct lk_arguments *arguments, sqlock_sort sort,
                        sqlock_info **rows, size_t *count, sqlock_error *err)
{
    sqlock_result result = {0};
    int rc = lk_info_read(store, SQLOCK_SQL_FIND, arguments, &result, err);

    if (rc == 0)
        rc = lk_info_append(store, rows, count, &result, err);
    sqlock_result_clear(&result);
    return rc == 0 ? lk_info_sort(rows, *count, (int)sort, err) : rc;
}

/* Read all rows, page by page, and sort them. */
static int read_all(struct lk_store *store,
                    const struct lk_arguments *arguments, sqlock_sort sort,
                    sqlock_info **rows, size_t *count, sqlock_error *err)
{
    struct lk_info_query query = {.begin = SQLOCK_SQL_FIND_BEGIN,
                                  .page = SQLOCK_SQL_FIND_PAGE,
                                  .arguments = *arguments};
    int rc = lk_info_read_pages(store, &query, rows, count, err);

    return rc == 0 ? lk_info_sort(rows, *count, (int)sort, err) : rc;
}

int sqlock_find_sized(sqlock_registry *registry,
                      const sqlock_find_options *options, sqlock_info **rows,
                      size_t *count, size_t size, sqlock_error *err)
{
    sqlock_find_options chosen = SQLOCK_FIND_INIT;
    char like[2 * PATTERN_MAX + 1];
    struct lk_arguments arguments;
    struct lk_store *store;
    int rc;

    if (rows == NULL || count == NULL)
        return lk_error_null(err, "rows and count");
    *rows = NULL;
    *count = 0;
    rc = lk_row_check("sqlock_info", size, sizeof **rows, err);
    if (rc == 0)
        rc = lk_store_of(registry, &store, err);
    if (rc == 0)
        rc = complete(&chosen, options, err);
    if (rc != 0)
        return rc;
    if (store->statements[SQLOCK_SQL_FIND].text == NULL ||
        store->statements[SQLOCK_SQL_FIND_PAGE].text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP, "this driver cannot find locks");
    fill(store, &chosen, like, &arguments);
    rc = chosen.limit != 0
             ? read_limited(store, &arguments, chosen.sort, rows, count, err)
             : read_all(store, &arguments, chosen.sort, rows, count, err);
    if (rc == 0 && chosen.waiters)
        rc = add_waiters(store, *rows, *count, err);
    if (rc < 0) {
        sqlock_info_free(*rows, *count);
        *rows = NULL;
        *count = 0;
    }
    lk_rows_pack(*rows, *count, sizeof **rows, size);
    return rc;
}
