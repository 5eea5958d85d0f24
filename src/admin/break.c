/*
 * break.c - end another owner's lease: of one who has the lock alone, of one of
 * those who share it, or of all these together, by the CLIENT_ID of the row
 */
#include <stdio.h>
#include <string.h>

#include "admin/info.h"
#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "lease/bell.h"
#include "lease/options.h"
#include "lease/row.h"
#include "lease/share.h"

#define AUDIT_MAX 80 /* bytes of `reason` and of `who` */
#define AUDIT_SIZE (LK_HOLDER_SIZE + AUDIT_MAX) /* of the text with both */

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
    if (row->mode == SQLOCK_SHARED)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "the lock is shared by %d others: name one by its "
                        "token, or all by their client id %s",
                        row->sharers, row->client_id);
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
    int rc = lk_info_of_key(store, key, &row, err);

    if (rc < 0 || row == NULL)
        return rc;
    rc = conflict(row, err);
    sqlock_info_free(row, 1);
    return rc;
}

static const char *given_client(const sqlock_break_options *options)
{
    return options->client_id != NULL ? options->client_id : "";
}

/* Return whether the row's holder, whose lease may be over, is the one with the
 * token that is given, and with the client id if there is one.  The token of a
 * shared lock is not that of all sharers: to end them all takes their client
 * id. */
static bool is_holder(const sqlock_info *row,
                      const sqlock_break_options *options)
{
    const char *given = given_client(options);

    if (token_of_holder(row) != options->token)
        return false;
    return given[0] != '\0' ? strcmp(given, row->client_id) == 0
                            : row->mode != SQLOCK_SHARED;
}

/* Find the client id of the holder to be ended.  Each acquisition has a client
 * id of its own, so that identifies the holder as well as the token does.
 * Return ECONFLICT if the token given is not the present holder's, or the
 * client id given is another one. */
static int name_holder(struct lk_store *store, const char *key,
                       const sqlock_break_options *options,
                       char client_id[SQLOCK_KEY_SIZE], sqlock_error *err)
{
    bool by_token = store->layout == SQLOCK_LAYOUT_SQLOCK && options->token > 0;
    const char *given = given_client(options);
    sqlock_info *row = NULL;
    int rc;

    if (!by_token) {
        if (strlen(given) >= SQLOCK_KEY_SIZE)
            return lk_error(err, SQLOCK_EINVAL,
                            "a client id has at most %d characters",
                            SQLOCK_KEY_SIZE - 1);
        (void)snprintf(client_id, SQLOCK_KEY_SIZE, "%s", given);
        return 0;
    }
    rc = lk_info_of_key(store, key, &row, err);
    if (rc < 0 || row == NULL)
        return rc;
    if (!is_holder(row, options))
        rc = conflict(row, err);
    memcpy(client_id, row->client_id, SQLOCK_KEY_SIZE);
    sqlock_info_free(row, 1);
    return rc;
}

/* --- one of those who share the lock --- */

/* Return whether the row is shared, and by one with the token and the client id
 * that are given.  Copy its client id. */
static bool names_share(const sqlock_result *result,
                        const sqlock_break_options *options,
                        char client_id[SQLOCK_KEY_SIZE])
{
    const sqlock_value *cells = result->cells;
    const char *given = given_client(options);
    struct lk_sharer sharer;
    const char *sharers;

    if (result->rows != 1 || lk_cell_text(&cells[LK_INFO_CLIENT]) == NULL ||
        lk_cell_text(&cells[LK_INFO_SHARERS]) == NULL ||
        !lk_sharers_have(cells[LK_INFO_SHARERS].text,
                         cells[LK_INFO_CLIENT].text))
        return false;
    sharers = cells[LK_INFO_SHARERS].text;
    while (lk_sharer_next(&sharers, &sharer)) {
        (void)snprintf(client_id, SQLOCK_KEY_SIZE, "%s", sharer.as.client_id);
        if ((options->token == 0 || options->token == sharer.token) &&
            (given[0] == '\0' || strcmp(given, client_id) == 0))
            return true;
    }
    return false;
}

/* Find out whether the options name a share, and copy its client id. */
static int find_share(struct lk_store *store, const char *key,
                      const sqlock_break_options *options, bool *is_share,
                      char client_id[SQLOCK_KEY_SIZE], sqlock_error *err)
{
    struct lk_arguments arguments;
    sqlock_result result = {0};
    int rc;

    lk_store_arguments(store, key, &arguments);
    rc = lk_info_read(store, SQLOCK_SQL_READ, &arguments, &result, err);
    *is_share = rc == 0 && names_share(&result, options, client_id);
    sqlock_result_clear(&result);
    return rc;
}

/* --- the row --- */

/* Return whether the row has that CLIENT_ID, and is not over. */
static bool has_row(struct lk_store *store, const char *key,
                    const char *client_id)
{
    struct lk_lease lease = {.key = key};
    struct lk_row row;

    memcpy(lease.client_id, client_id, SQLOCK_KEY_SIZE);
    return lk_lease_read(store, &lease, &row, NULL) == 0;
}

static int break_lease(struct lk_store *store, const char *key,
                       const sqlock_break_options *options, const char *audit,
                       sqlock_error *err)
{
    char named[SQLOCK_KEY_SIZE] = "";
    char client_id[SQLOCK_KEY_SIZE];
    char holder[SQLOCK_KEY_SIZE + AUDIT_SIZE];
    char shown[LK_HOLDER_SIZE];
    struct lk_arguments arguments;
    /* a copy cannot tell whether the first one has freed the row */
    struct lk_run run = {.is_repeatable = !options->now};
    int rc;

    rc = name_holder(store, key, options, named, err);
    if (rc < 0)
        return rc;
    lk_store_client_id_like(client_id, named);
    (void)snprintf(holder, sizeof holder, "%s %s", client_id, audit);
    lk_store_shown(store, shown, sizeof shown, holder);
    lk_store_arguments(store, key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, client_id);
    lk_argument_text(&arguments, SQLOCK_P_HOLDER, shown);
    lk_argument_text(&arguments, SQLOCK_P_OLD_CLIENT, named);
    rc = lk_store_change(store,
                         options->now ? SQLOCK_SQL_BREAK_NOW : SQLOCK_SQL_BREAK,
                         &arguments, &run, err);
    if (rc == 0 && !(run.was_uncertain && has_row(store, key, client_id)))
        return explain_conflict(store, key, err);
    if (rc >= 0 || rc == SQLOCK_EUNCERTAIN) {
        lk_bell_tell(store, key, 0);
        if (options->now)
            lk_bell_ask_to_look(store, &key, 1, 0);
    }
    return rc < 0 ? rc : 0;
}

static int break_key(struct lk_store *store, const char *key,
                     const sqlock_break_options *options, sqlock_error *err)
{
    char share[SQLOCK_KEY_SIZE];
    char audit[AUDIT_SIZE];
    char shown[LK_IDENTITY_SIZE];
    bool is_share = false;
    int rc = find_share(store, key, options, &is_share, share, err);

    if (rc < 0)
        return rc;
    (void)snprintf(audit, sizeof audit, "broken by %s: %s",
                   options->who != NULL ? options->who : store->identity,
                   options->reason != NULL ? options->reason
                                           : "no reason given");
    if (!is_share)
        return break_lease(store, key, options, audit, err);
    lk_ticket_holder(store, shown, sizeof shown, audit);
    return lk_share_break(store, key, share, shown, options->now, err);
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
