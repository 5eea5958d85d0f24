/*
 * admin.c - an operator's calls: show the holder of one lock, end its lease,
 * and free all locks after a restore
 */
#include <stdio.h>
#include <string.h>

#include "admin/info.h"
#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "lease/options.h"

#define AUDIT_MAX 80 /* bytes of `reason` and of `who` */

/* --- one row --- */

static int show_key(struct lk_store *store, const char *key, sqlock_info **out,
                    sqlock_error *err)
{
    struct lk_arguments arguments;
    sqlock_result result = {0};
    sqlock_info *row = NULL;
    size_t count = 0;
    int rc;

    lk_store_arguments(store, key, &arguments);
    rc = lk_info_read(store, SQLOCK_SQL_READ, &arguments, &result, err);
    if (rc == 0)
        rc = lk_info_append(store, &row, &count, &result, err);
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
        return lk_error_null(err, "row");
    *row = NULL;
    rc = lk_store_key(registry, name, &store, key, err);
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

static int complete_break(sqlock_break_options *options,
                          const sqlock_break_options *given,
                          const struct lk_store *store, sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_break_options",
                                          "SQLOCK_BREAK_INIT", sizeof *options};
    bool has_tokens = store->layout == SQLOCK_LAYOUT_SQLOCK;
    bool has_client;
    int rc = lk_sized_read(options, &sized, given, err);

    if (rc < 0)
        return rc;
    if (options->token < 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "the token is %lld, but tokens are positive",
                        (long long)options->token);
    has_client = options->client_id != NULL && options->client_id[0] != '\0';
    if (!has_client && (options->token <= 0 || !has_tokens))
        return lk_error(err, SQLOCK_EINVAL,
                        "name the holder to be ended by its client id%s",
                        has_tokens ? ", or by its token" : "");
    rc = check_audit(options->reason, "the reason", err);
    return rc == 0 ? check_audit(options->who, "who breaks it", err) : rc;
}

/* Return the token of a row's holder; 0 for a Spring peer, which leaves the
 * previous holder's token in the row. */
static int64_t token_of_holder(const sqlock_info *row)
{
    bool is_peer =
        row->holder != NULL && strcmp(row->holder, LK_INFO_PEER) == 0;

    return is_peer ? 0 : row->token;
}

static int conflict(const sqlock_info *row, sqlock_error *err)
{
    if (row->state == SQLOCK_FREE)
        return lk_error(err, SQLOCK_ECONFLICT, "the lock is free");
    if (row->state == SQLOCK_EXPIRED)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "the lease of client id %s has expired",
                        row->client_id);
    if (token_of_holder(row) == 0)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "the lock is held without a token, with client id %s",
                        row->client_id);
    return lk_error(err, SQLOCK_ECONFLICT,
                    "the lock is held with token %lld and client id %s",
                    (long long)row->token, row->client_id);
}

/* Find out why a break changed no row.  Return ECONFLICT, with the state of the
 * row in err; ENOTFOUND; or why the row cannot be read. */
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

/* Find the client id of the holder that has this token.  Each acquisition has a
 * client id of its own, so the client id identifies the holder as well as the
 * token does. */
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

/* Find the client id of the holder to be ended.  Return ECONFLICT if the token
 * given is not the present holder's, or the client id given is another one. */
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
    char shown[LK_HOLDER_SIZE];
    struct lk_arguments arguments;
    struct lk_run run = {.arguments = &arguments};
    sqlock_result result = {0};
    int rc;

    rc = name_holder(store, key, options, named, err);
    if (rc < 0)
        return rc;
    lk_store_client_id_like(client_id, named);
    (void)snprintf(holder, sizeof holder, "%s broken by %s: %s", client_id,
                   options->who != NULL ? options->who : store->identity,
                   options->reason != NULL ? options->reason
                                           : "no reason given");
    lk_store_shown(store, shown, sizeof shown, holder);
    lk_store_arguments(store, key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, client_id);
    lk_argument_text(&arguments, SQLOCK_P_HOLDER, shown);
    lk_argument_text(&arguments, SQLOCK_P_OLD_CLIENT, named);
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
    sqlock_break_options complete = SQLOCK_BREAK_INIT;
    struct lk_store *store;
    char key[SQLOCK_KEY_SIZE] = "";
    int rc;

    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    rc = complete_break(&complete, options, store, err);
    if (rc < 0)
        return rc;
    rc = sqlock_key_of(key, name, store->options.key_rule, err);
    if (rc < 0)
        return rc;
    return break_key(store, key, &complete, err);
}

/* --- after a restore --- */

int sqlock_after_restore(sqlock_registry *registry, int64_t *rows,
                         sqlock_error *err)
{
    struct lk_store *store;
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .is_repeatable = true, /* a second run only raises tokens again */
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
