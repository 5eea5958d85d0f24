/*
 * lease_id.c - renew, release or guard a lease by its id, in a process that did
 * not acquire it
 *
 * The id holds what the statements about a lease need, with ':' between:
 * CLIENT_ID, token, TTL, and LOCK_KEY, which comes last because it may contain
 * any character.  Region and table are those of the registry.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/writer.h"
#include "lease/row.h"
#include "lock/guarded.h"
#include "sqlock/operator.h"

/* The lease of an id, whose `key` points to the copy here. */
struct named_lease {
    struct lk_lease lease;
    char key[SQLOCK_KEY_SIZE];
};

/* --- the id --- */

/* Read a decimal number and the ':' after it, and move *at behind both.  Return
 * false if they are not there. */
static bool read_number(const char **at, int64_t *number)
{
    bool is_number = **at >= '0' && **at <= '9';

    *number = lk_text_digits(at);
    return is_number && *(*at)++ == ':';
}

static int parse(struct named_lease *out, const char *id)
{
    size_t length = strcspn(id, ":");
    const char *at = id + length + 1;
    uint32_t longest_ms = LK_TTL_MAX_MS;
    int64_t ttl_ms;

    memset(out, 0, sizeof *out);
    if (length == 0 || length >= SQLOCK_KEY_SIZE || id[length] == '\0' ||
        !read_number(&at, &out->lease.answered.token) ||
        !read_number(&at, &ttl_ms) || ttl_ms < LK_TTL_MIN_MS ||
        ttl_ms > longest_ms || *at == '\0' || strlen(at) >= SQLOCK_KEY_SIZE)
        return SQLOCK_EINVAL;
    memcpy(out->lease.client_id, id, length);
    out->lease.asked.ttl_ms = (uint32_t)ttl_ms;
    (void)snprintf(out->key, sizeof out->key, "%s", at);
    out->lease.key = out->key;
    out->lease.asked.at_ns = sqlock_monotonic_ns();
    return 0;
}

static int find(struct named_lease *out, struct lk_store **store,
                sqlock_registry *registry, const char *id, sqlock_error *err)
{
    int rc = lk_store_of(registry, store, err);

    if (rc < 0)
        return rc;
    if (id == NULL || parse(out, id) < 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "invalid lease id: use one made by sqlock_lease_id() "
                        "or `sqlock acquire`");
    return 0;
}

int sqlock_lease_id(char id[SQLOCK_LEASE_ID_SIZE], sqlock_lock *lock,
                    uint32_t ttl_ms, sqlock_error *err)
{
    struct lk_store *store;
    struct lk_view view;
    int rc;

    if (id == NULL || lock == NULL)
        return lk_error_null(err, "lock and id");
    id[0] = '\0';
    rc = lk_guarded_store(lock, &store, err);
    if (rc < 0)
        return rc;
    rc = lk_check_number("ttl_ms", &ttl_ms, 0, LK_TTL_MIN_MS, LK_TTL_MAX_MS,
                         err);
    if (rc < 0)
        return rc;
    view = lk_lock_name(lock);
    if (view.left_ns == 0)
        return lk_error(
            err, SQLOCK_EEXPIRED,
            "the caller does not hold this lock, so there is no lease");
    if (view.is_joined)
        return lk_error(err, SQLOCK_EINUSE,
                        "other readers of this process have the same share: "
                        "ask for the id before they come, or from a registry "
                        "of its own");
    (void)snprintf(id, SQLOCK_LEASE_ID_SIZE, "%s:%" PRId64 ":%u:%s",
                   view.client_id, view.token, ttl_ms, sqlock_key(lock));
    return 0;
}

/* --- its row --- */

/* Read the row as the lease's holder sees it, and set the lease's weight: an id
 * has none, so that it stays valid after a downgrade. */
static int read_row(struct lk_store *store, struct lk_lease *lease,
                    struct lk_row *row, sqlock_error *err)
{
    int rc = lk_row_read_as(store, lease, lk_store_deadline(store), row, err);

    lease->asked.weight = row->weight;
    return rc;
}

/* Read the row, and return ELOST if it does not have the lease. */
static int read_own_row(struct lk_store *store, struct lk_lease *lease,
                        struct lk_row *row, sqlock_error *err)
{
    int rc = read_row(store, lease, row, err);

    if (rc == 0 &&
        lk_row_judge(store, row, lease, LK_NEVER, false) == LK_VERDICT_LOST)
        rc = lk_error(err, SQLOCK_ELOST,
                      "the lease is over: it was released or lost, and another "
                      "owner may have had the lock");
    return rc;
}

/* --- renewing and releasing --- */

int sqlock_lease_renew(sqlock_registry *registry, const char *id,
                       uint32_t ttl_ms, int64_t *remaining_ms,
                       sqlock_error *err)
{
    struct named_lease named;
    struct lk_store *store;
    struct lk_batch batch;
    struct lk_item item;
    struct lk_row row;
    uint32_t wanted_ms;
    int64_t left_ns;
    int rc;

    if (remaining_ms != NULL)
        *remaining_ms = 0;
    rc = find(&named, &store, registry, id, err);
    if (rc == 0)
        rc = lk_ttl_check(&store->options, &wanted_ms, ttl_ms,
                          named.lease.asked.ttl_ms, err);
    if (rc == 0)
        rc = read_own_row(store, &named.lease, &row, err);
    if (rc < 0)
        return rc;
    named.lease.asked.ttl_ms = wanted_ms;
    lk_batch_of_one(&batch, &item, &named.lease, lk_store_deadline(store));
    rc = lk_batch_renew(store, &batch, err);
    if (rc == 0)
        rc = lk_renewal_error(item.rc, err);
    if (rc < 0)
        return rc;
    left_ns = item.lease.believed.until_boot_ns - lk_boottime_ns();
    if (left_ns <= 0)
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the renewal took longer than the lease");
    if (remaining_ms != NULL)
        *remaining_ms = left_ns / LK_NS_PER_MS;
    return 0;
}

int sqlock_lease_release(sqlock_registry *registry, const char *id,
                         sqlock_error *err)
{
    struct named_lease named;
    struct lk_store *store;
    struct lk_batch batch;
    struct lk_item item;
    struct lk_row row;
    int64_t asked_ns = lk_boottime_ns();
    int rc;

    rc = find(&named, &store, registry, id, err);
    if (rc == 0)
        rc = read_own_row(store, &named.lease, &row, err);
    if (rc < 0)
        return rc;
    named.lease.believed.until_boot_ns =
        lk_after_us(asked_ns, row.remaining_us);
    named.lease.believed.has_text = row.has_text;
    lk_batch_of_one(&batch, &item, &named.lease, lk_store_deadline(store));
    rc = lk_batch_release(store, &batch, err);
    return rc < 0 ? rc : lk_release_error(item.rc, err);
}

/* --- the guard, as text --- */

/* Write a value as an SQL literal, with quotes doubled.  A backslash is
 * refused, because its meaning depends on the session. */
static int write_literal(FILE *out, const sqlock_value *value,
                         sqlock_error *err)
{
    const char *at;

    if (value->type == SQLOCK_INT64) {
        (void)fprintf(out, "%" PRId64, value->integer);
        return 0;
    }
    (void)fputc('\'', out);
    for (at = value->text; *at != '\0'; at++) {
        if (*at == '\\' || (unsigned char)*at < ' ')
            return lk_error(err, SQLOCK_ENOTSUP,
                            "a region or key with a backslash or a control "
                            "character cannot be written as a literal");
        if (*at == '\'')
            (void)fputc('\'', out);
        (void)fputc(*at, out);
    }
    (void)fputc('\'', out);
    return 0;
}

/* Write the statement with literals in place of its parameters, each of which
 * is '?', or '$' and a number. */
static int write_statement(FILE *out, const struct lk_statement *statement,
                           const struct lk_arguments *arguments,
                           sqlock_error *err)
{
    const char *at = statement->sent.text;
    sqlock_value values[LK_PLACES_MAX];
    size_t place = 0;
    int rc = 0;

    lk_statement_order(statement, arguments, values);
    while (rc == 0 && *at != '\0') {
        if (*at == '?') {
            rc = write_literal(out, &values[place++], err);
            at++;
        } else if (*at == '$' && at[1] >= '1' && at[1] <= '9') {
            /* There are fewer than ten parameters. */
            rc = write_literal(out, &values[at[1] - '1'], err);
            at += 2;
        } else {
            (void)fputc(*at++, out);
        }
    }
    return rc;
}

int sqlock_lease_guard_text(char **text, sqlock_registry *registry,
                            const char *id, sqlock_error *err)
{
    const struct lk_statement *statement;
    struct lk_arguments arguments;
    struct named_lease named;
    struct lk_store *store;
    struct lk_writer writer;
    struct lk_row row;
    FILE *stream;
    int rc;

    if (text == NULL)
        return lk_error_null(err, "text");
    *text = NULL;
    rc = find(&named, &store, registry, id, err);
    if (rc == 0)
        rc = read_row(store, &named.lease, &row, err);
    if (rc < 0)
        return rc;
    if (named.lease.asked.weight > 0)
        return lk_error(
            err, SQLOCK_ENOTSUP,
            "the lock is shared: only a lease that has it alone can "
            "be guarded");
    statement = &store->statements[SQLOCK_SQL_GUARD];
    if (statement->sent.text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this driver has no guard for other programs");
    lk_store_arguments(store, named.key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, named.lease.client_id);
    lk_argument_integer(&arguments, SQLOCK_P_TOKEN, named.lease.answered.token);
    stream = lk_writer_open(&writer);
    if (stream == NULL)
        return lk_error_nomem(err);
    rc = write_statement(stream, statement, &arguments, err);
    *text = lk_writer_close(&writer);
    if (*text == NULL && rc == 0)
        rc = lk_error_nomem(err);
    if (rc < 0) {
        free(*text);
        *text = NULL;
    }
    return rc;
}
