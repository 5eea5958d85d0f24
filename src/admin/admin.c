/*
 * admin.c - what an operator asks of a lock table: which locks are there, who
 * holds one, end a lease, remove old rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "lease/options.h"
#include "lease/skew.h"

#define LIST_PAGE 500
#define REAP_PAGE 1000
#define INFO_COLUMNS 8
#define AUDIT_MAX 80 /* of who and why */
#define PEER "peer"  /* the holder's name where it is no sqlock */

/* --- rows --- */

static int64_t integer_of(const sqlock_value *cell)
{
    return cell->type == SQLOCK_INT64 ? cell->integer : 0;
}

static void copy_id(char out[SQLOCK_KEY_SIZE], const sqlock_value *cell)
{
    (void)snprintf(out, SQLOCK_KEY_SIZE, "%s",
                   cell->type == SQLOCK_TEXT ? cell->text : "");
}

/* HOLDER begins with its CLIENT_ID; where it does not, somebody took the lock
 * who does not know the column: a Spring peer.  Its own layouts have none.  A
 * release leaves it empty: what a free row says is who broke the lease. */
static const char *holder_of(const sqlock_info *info, const sqlock_value *cell,
                             sqlock_layout layout)
{
    size_t length = strlen(info->client_id);

    if (layout != SQLOCK_LAYOUT_SQLOCK)
        return NULL;
    if (length == 0)
        return cell->type == SQLOCK_TEXT && cell->length >= SQLOCK_KEY_SIZE
                   ? cell->text + SQLOCK_KEY_SIZE
                   : NULL;
    if (cell->type == SQLOCK_TEXT &&
        strncmp(cell->text, info->client_id, length) == 0 &&
        cell->text[length] == ' ')
        return cell->text + length + 1;
    return PEER;
}

static int copy_text(char **out, const char *text)
{
    if (text == NULL)
        return 0;
    *out = strdup(text);
    return *out != NULL ? 0 : SQLOCK_ENOMEM;
}

static int info_from_cells(sqlock_info *out, const sqlock_value *cells,
                           const struct lk_store *store)
{
    int64_t remaining_us = integer_of(&cells[3]);
    int rc;

    memset(out, 0, sizeof *out);
    copy_id(out->key, &cells[0]);
    copy_id(out->client_id, &cells[1]);
    out->token = integer_of(&cells[2]);
    out->acquired_at_us = integer_of(&cells[4]);
    out->expires_at_us = integer_of(&cells[5]);
    if (out->client_id[0] == '\0') {
        out->state = SQLOCK_FREE;
    } else if (remaining_us < 0) {
        out->state = SQLOCK_EXPIRED;
    } else {
        out->state = SQLOCK_HELD;
        out->remaining_ms = remaining_us / 1000;
    }
    out->ahead_ms = (lk_skew_us(store, cells) + 999) / 1000;
    rc = copy_text(&out->name,
                   cells[6].type == SQLOCK_TEXT ? cells[6].text : NULL);
    if (rc == 0)
        rc = copy_text(&out->holder, holder_of(out, &cells[7], store->layout));
    return rc;
}

void sqlock_info_free(sqlock_info *rows, size_t count)
{
    if (rows == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        free(rows[i].name);
        free(rows[i].holder);
    }
    free(rows);
}

/* --- reading --- */

static int read_rows(struct lk_store *store, sqlock_statement_kind kind,
                     const struct lk_arguments *arguments,
                     sqlock_result *result, sqlock_error *err)
{
    struct lk_run run = {
        .arguments = arguments,
        .deadline_ns = lk_store_deadline(store),
        .is_repeatable = true,
    };

    return lk_store_run(store, kind, &run, result, err);
}

/* Append a page of info rows; `last` becomes the key of the last one. */
static int append_page(const struct lk_store *store, sqlock_info **rows,
                       size_t *count, const sqlock_result *page,
                       char last[SQLOCK_KEY_SIZE], sqlock_error *err)
{
    sqlock_info *grown;

    if (page->rows == 0)
        return 0;
    if (page->columns < INFO_COLUMNS)
        return lk_error(err, SQLOCK_EDATABASE, "a row has too few columns");
    grown = realloc(*rows, (*count + page->rows) * sizeof *grown);
    if (grown == NULL)
        return lk_error_nomem(err);
    *rows = grown;
    for (size_t row = 0; row < page->rows; row++) {
        int rc = info_from_cells(&grown[*count],
                                 &page->cells[row * page->columns], store);

        (*count)++;
        if (rc < 0)
            return lk_error_nomem(err);
        memcpy(last, grown[*count - 1].key, SQLOCK_KEY_SIZE);
    }
    return 0;
}

int sqlock_list(sqlock_registry *registry, sqlock_info **rows, size_t *count,
                sqlock_error *err)
{
    struct lk_store *store;
    char last[SQLOCK_KEY_SIZE] = "";
    struct lk_arguments arguments;
    sqlock_info *found = NULL;
    size_t number = 0;
    size_t page_rows;
    int rc;

    if (rows == NULL || count == NULL)
        return lk_error(err, SQLOCK_EINVAL, "no place for the rows");
    *rows = NULL;
    *count = 0;
    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    do {
        sqlock_result page = {0};

        lk_store_arguments(store, last, &arguments);
        lk_argument_integer(&arguments, SQLOCK_P_DURATION_US, LIST_PAGE);
        rc = read_rows(store, SQLOCK_SQL_LIST, &arguments, &page, err);
        if (rc == 0)
            rc = append_page(store, &found, &number, &page, last, err);
        page_rows = page.rows;
        sqlock_result_clear(&page);
    } while (rc == 0 && page_rows == LIST_PAGE);
    if (rc < 0) {
        sqlock_info_free(found, number);
        return rc;
    }
    *rows = found;
    *count = number;
    return 0;
}

static int show_key(struct lk_store *store, const char *key, sqlock_info **out,
                    sqlock_error *err)
{
    char last[SQLOCK_KEY_SIZE] = "";
    struct lk_arguments arguments;
    sqlock_result result = {0};
    sqlock_info *row = NULL;
    size_t count = 0;
    int rc;

    lk_store_arguments(store, key, &arguments);
    rc = read_rows(store, SQLOCK_SQL_READ, &arguments, &result, err);
    if (rc == 0)
        rc = append_page(store, &row, &count, &result, last, err);
    sqlock_result_clear(&result);
    if (rc == 0 && count > 1)
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "%s has two rows for one key: its primary key is missing",
                      store->table.plain);
    if (rc == 0 && row == NULL)
        rc = lk_error(err, SQLOCK_ENOTFOUND, "%s has no row for %s",
                      store->table.plain, key);
    if (rc < 0) {
        sqlock_info_free(row, count);
        return rc;
    }
    *out = row;
    return 0;
}

int sqlock_show(sqlock_registry *registry, const char *name, sqlock_info **row,
                sqlock_error *err)
{
    struct lk_store *store;
    char key[SQLOCK_KEY_SIZE] = "";
    int rc;

    if (row == NULL)
        return lk_error(err, SQLOCK_EINVAL, "no place for the row");
    *row = NULL;
    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    rc = sqlock_key_of(key, name, store->options.key_rule, err);
    if (rc < 0)
        return rc;
    return show_key(store, key, row, err);
}

/* --- breaking --- */

static int check_audit(const char *text, const char *what, sqlock_error *err)
{
    if (text != NULL && (strlen(text) > AUDIT_MAX || !lk_utf8_is_valid(text)))
        return lk_error(err, SQLOCK_EINVAL,
                        "%s must be UTF-8 of at most %d bytes", what,
                        AUDIT_MAX);
    return 0;
}

static int check_break(const struct lk_store *store,
                       const sqlock_break_options *options, sqlock_error *err)
{
    bool has_tokens = store->layout == SQLOCK_LAYOUT_SQLOCK;
    bool has_client;
    int rc;

    if (options == NULL || options->size != sizeof *options)
        return lk_error(err, SQLOCK_EINVAL,
                        "begin sqlock_break_options with SQLOCK_BREAK_INIT");
    if (options->token < 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "the token is %lld: none is below 0",
                        (long long)options->token);
    has_client = options->client_id != NULL && options->client_id[0] != '\0';
    if (!has_client && (options->token <= 0 || !has_tokens))
        return lk_error(err, SQLOCK_EINVAL,
                        "say which holder is to be ended: by the client id it "
                        "has%s",
                        has_tokens ? ", or by its token" : "");
    rc = check_audit(options->reason, "the reason", err);
    return rc == 0 ? check_audit(options->who, "who breaks it", err) : rc;
}

/* The holder's token: the row's, unless a peer took the lock over, who leaves
 * the last one there. */
static int64_t token_of_holder(const sqlock_info *row)
{
    bool is_peer = row->holder != NULL && strcmp(row->holder, PEER) == 0;

    return is_peer ? 0 : row->token;
}

static int conflict(const sqlock_info *row, sqlock_error *err)
{
    if (row->state == SQLOCK_FREE)
        return lk_error(err, SQLOCK_ECONFLICT, "the lock is free");
    if (row->state == SQLOCK_EXPIRED)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "the lease of client id %s has run out",
                        row->client_id);
    if (token_of_holder(row) == 0)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "the lock is held without a token, with client id %s",
                        row->client_id);
    return lk_error(err, SQLOCK_ECONFLICT,
                    "the lock is held with token %lld and client id %s",
                    (long long)row->token, row->client_id);
}

/* Nothing was changed: say why. */
static int explain_conflict(struct lk_store *store, const char *key,
                            sqlock_error *err)
{
    sqlock_info *row = NULL;
    int rc = show_key(store, key, &row, err);

    if (rc < 0 || row == NULL)
        return rc;
    rc = conflict(row, err);
    sqlock_info_free(row, 1);
    return rc;
}

/* The client id of the holder that has the token: no other acquisition ever has
 * that client id, so that it names the holder as well. */
static int client_of_token(struct lk_store *store, const char *key,
                           int64_t token, char client_id[SQLOCK_KEY_SIZE],
                           sqlock_error *err)
{
    sqlock_info *row = NULL;
    int rc = show_key(store, key, &row, err);

    if (rc < 0 || row == NULL)
        return rc;
    if (row->state != SQLOCK_HELD || token_of_holder(row) != token)
        rc = conflict(row, err);
    memcpy(client_id, row->client_id, SQLOCK_KEY_SIZE);
    sqlock_info_free(row, 1);
    return rc;
}

/* Whose lease is to end; ECONFLICT: both are given, and of different holders. */
static int name_holder(struct lk_store *store, const char *key,
                       const sqlock_break_options *options,
                       char client_id[SQLOCK_KEY_SIZE], sqlock_error *err)
{
    bool by_token = store->layout == SQLOCK_LAYOUT_SQLOCK && options->token > 0;
    const char *given = options->client_id != NULL ? options->client_id : "";
    int rc;

    if (!by_token) {
        if (strlen(given) >= SQLOCK_KEY_SIZE)
            return lk_error(err, SQLOCK_EINVAL,
                            "a client id has at most %d characters",
                            SQLOCK_KEY_SIZE - 1);
        (void)snprintf(client_id, SQLOCK_KEY_SIZE, "%s", given);
        return 0;
    }
    rc = client_of_token(store, key, options->token, client_id, err);
    if (rc == 0 && given[0] != '\0' && strcmp(given, client_id) != 0)
        rc = explain_conflict(store, key, err);
    return rc;
}

static int break_key(struct lk_store *store, const char *key,
                     const sqlock_break_options *options, sqlock_error *err)
{
    char named[SQLOCK_KEY_SIZE] = "";
    char client_id[SQLOCK_KEY_SIZE];
    char holder[2 * LK_HOLDER_SIZE + AUDIT_MAX];
    struct lk_arguments arguments;
    struct lk_run run = {.arguments = &arguments};
    sqlock_result result = {0};
    int rc;

    rc = name_holder(store, key, options, named, err);
    if (rc < 0)
        return rc;
    lk_random_uuid(client_id);
    (void)snprintf(holder, sizeof holder, "%s broken by %s: %s", client_id,
                   options->who != NULL ? options->who : store->identity,
                   options->reason != NULL ? options->reason
                                           : "no reason given");
    holder[lk_utf8_prefix(holder, LK_HOLDER_SIZE - 1)] = '\0';
    lk_store_arguments(store, key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, client_id);
    lk_argument_text(&arguments, SQLOCK_P_HOLDER, holder);
    lk_argument_text(&arguments, SQLOCK_P_OTHER, named);
    run.deadline_ns = lk_store_deadline(store);
    rc = lk_store_run(store,
                      options->now ? SQLOCK_SQL_BREAK_NOW : SQLOCK_SQL_BREAK,
                      &run, &result, err);
    if (rc == 0 && result.affected == 0)
        rc = explain_conflict(store, key, err);
    sqlock_result_clear(&result);
    return rc;
}

int sqlock_break(sqlock_registry *registry, const char *name,
                 const sqlock_break_options *options, sqlock_error *err)
{
    struct lk_store *store;
    char key[SQLOCK_KEY_SIZE] = "";
    int rc;

    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    rc = check_break(store, options, err);
    if (rc < 0)
        return rc;
    rc = sqlock_key_of(key, name, store->options.key_rule, err);
    if (rc < 0)
        return rc;
    return break_key(store, key, options, err);
}

/* --- reaping --- */

struct reaped {
    const char *region;
    const struct lk_statement *statement;
};

/* The last key of the page after `from`; *is_last when no key is left. */
static int next_bound(struct lk_store *store, const struct reaped *reaped,
                      const char *from, char bound[SQLOCK_KEY_SIZE],
                      bool *is_last, sqlock_error *err)
{
    struct lk_arguments arguments;
    sqlock_result result = {0};
    int rc;

    lk_store_arguments(store, from, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_REGION, reaped->region);
    lk_argument_integer(&arguments, SQLOCK_P_DURATION_US, REAP_PAGE);
    rc = read_rows(store, SQLOCK_SQL_REAP_BOUND, &arguments, &result, err);
    *is_last =
        rc == 0 && (result.rows == 0 || result.cells[0].type != SQLOCK_TEXT);
    if (rc == 0 && !*is_last)
        copy_id(bound, &result.cells[0]);
    sqlock_result_clear(&result);
    return rc;
}

static int reap_page(struct lk_store *store, const struct reaped *reaped,
                     const char *from, const char *bound, int64_t retention_ms,
                     int64_t *removed, sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .statement = reaped->statement,
        .arguments = &arguments,
        .deadline_ns = lk_store_deadline(store),
        .is_repeatable = true, /* what is gone is not deleted twice */
        .is_write = true,
    };
    sqlock_result result = {0};
    int rc;

    lk_store_arguments(store, from, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_REGION, reaped->region);
    lk_argument_text(&arguments, SQLOCK_P_OTHER, bound);
    lk_argument_integer(&arguments, SQLOCK_P_DURATION_US, retention_ms * 1000);
    rc = lk_db_run(&store->db, &run, &result, err);
    if (rc == 0)
        *removed += result.affected;
    sqlock_result_clear(&result);
    return rc;
}

static int reap_region(struct lk_store *store, const struct reaped *reaped,
                       int64_t retention_ms, int64_t *removed,
                       sqlock_error *err)
{
    char from[SQLOCK_KEY_SIZE] = "";
    char bound[SQLOCK_KEY_SIZE] = "";
    bool is_last = false;
    int rc;

    for (;;) {
        rc = next_bound(store, reaped, from, bound, &is_last, err);
        if (rc < 0 || is_last)
            return rc;
        rc = reap_page(store, reaped, from, bound, retention_ms, removed, err);
        if (rc < 0)
            return rc;
        memcpy(from, bound, sizeof from);
    }
}

/* The names that transactions lock have rows that nobody renews: they are old
 * while they are in use, too, and those that are locked stay. */
static int reap_names(struct lk_store *store, int64_t retention_ms,
                      int64_t *removed, sqlock_error *err)
{
    const sqlock_driver *driver = store->db.driver;
    char region[LK_REGION_MAX + sizeof LK_NAMES_SUFFIX];
    struct lk_statement statement;
    struct reaped names = {.region = region, .statement = &statement};
    int rc;

    if (driver->transactions == NULL)
        return 0;
    rc = lk_statement_of_tx(&statement, driver, store->layout,
                            SQLOCK_TX_SQL_REAP, store->table.quoted, 0);
    if (rc == SQLOCK_ENOTSUP)
        return 0;
    if (rc < 0)
        return lk_error(err, rc, "%s", sqlock_strerror(rc));
    (void)snprintf(region, sizeof region, "%s%s", store->region,
                   LK_NAMES_SUFFIX);
    rc = reap_region(store, &names, retention_ms, removed, err);
    lk_statement_clear(&statement);
    return rc;
}

int sqlock_reap(sqlock_registry *registry, int64_t retention_ms,
                int64_t *removed, sqlock_error *err)
{
    struct lk_store *store;
    struct reaped leases;
    int64_t total = 0;
    int rc;

    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    if (retention_ms < 0 || retention_ms > INT64_MAX / 1000000)
        return lk_error(err, SQLOCK_EINVAL,
                        "retention_ms is %lld: use 0 or more",
                        (long long)retention_ms);
    leases = (struct reaped){
        .region = store->region,
        .statement = &store->statements[SQLOCK_SQL_REAP],
    };
    rc = reap_region(store, &leases, retention_ms, &total, err);
    if (rc == 0)
        rc = reap_names(store, retention_ms, &total, err);
    if (removed != NULL)
        *removed = total;
    return rc;
}

/* --- after a restore --- */

int sqlock_after_restore(sqlock_registry *registry, int64_t *rows,
                         sqlock_error *err)
{
    struct lk_store *store;
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .is_repeatable = true, /* tokens may rise twice */
    };
    sqlock_result result = {0};
    int rc;

    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    if (store->statements[SQLOCK_SQL_AFTER_RESTORE].text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this driver cannot free all locks at once");
    lk_store_arguments(store, "", &arguments);
    run.deadline_ns = lk_store_deadline(store);
    rc = lk_store_run(store, SQLOCK_SQL_AFTER_RESTORE, &run, &result, err);
    if (rc == 0 && rows != NULL)
        *rows = result.affected;
    sqlock_result_clear(&result);
    return rc;
}
