/*
 * stale_sessions.c - count the sessions that still run at the server for a
 * lease that is over, because their client is gone but their statement is not
 * (F74)
 *
 * A holder gives its sessions the tag of its lease as a name; the next holder
 * of the lock looks for sessions with the tag of another token.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "lock/registry.h"
#include "sqlock/operator.h"

#define TAG_LOCK_SIZE 32 /* "sqlock:", 16 digits, ":" */

/* Return whether the database's sessions have names. */
static bool has_tags(const sqlock_lock *lock)
{
    return lock->registry->store.statements[SQLOCK_SQL_STALE_SESSIONS].text !=
           NULL;
}

/* Write the common prefix of the tags of all leases of a lock: a hash of its
 * table, region and key. */
static void write_lock_part(const sqlock_lock *lock, char part[TAG_LOCK_SIZE])
{
    (void)snprintf(
        part, TAG_LOCK_SIZE, "sqlock:%016" PRIx64 ":",
        (uint64_t)lk_lock_number(&lock->registry->store, lock->slot->key));
}

void sqlock_session_tag(sqlock_lock *lock, char tag[SQLOCK_TAG_SIZE])
{
    char part[TAG_LOCK_SIZE];
    struct lk_view view;

    if (tag == NULL)
        return;
    tag[0] = '\0';
    if (lk_lock_ours(lock, NULL) < 0 || !has_tags(lock))
        return;
    view = lk_lock_look(lock);
    if (view.left_ns == 0)
        return;
    write_lock_part(lock, part);
    (void)snprintf(tag, SQLOCK_TAG_SIZE, "%s%" PRId64, part, view.token);
}

/* Ask for a number of sessions. */
static int ask(sqlock_lock *lock, sqlock_statement_kind kind, const char *tag,
               int64_t *count, sqlock_error *err)
{
    struct lk_store *store = &lock->registry->store;
    sqlock_result result = {0};
    struct lk_arguments arguments;
    struct lk_run run = {
        .statement = &store->statements[kind],
        .arguments = &arguments,
        .deadline_ns = lk_store_deadline(store),
        .is_repeatable = true,
    };
    char part[TAG_LOCK_SIZE];
    int rc;

    write_lock_part(lock, part);
    lk_store_arguments(store, lock->slot->key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_TAG_PREFIX, part);
    lk_argument_text(&arguments, SQLOCK_P_TAG, tag);
    rc = lk_db_run(&store->db, &run, &result, err);
    if (rc == 0 && (result.rows != 1 || result.cells[0].type != SQLOCK_INT64))
        rc = lk_error(err, SQLOCK_EDATABASE, "a row has too few columns");
    if (rc == 0)
        *count = result.cells[0].integer;
    sqlock_result_clear(&result);
    return rc;
}

int sqlock_stale_sessions(sqlock_lock *lock, int64_t *count, sqlock_error *err)
{
    char tag[SQLOCK_TAG_SIZE];
    int64_t tagged = 0;
    int rc;

    if (count == NULL)
        return lk_error_null(err, "count");
    *count = 0;
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    if (!has_tags(lock))
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this database does not support tags of sessions");
    sqlock_session_tag(lock, tag);
    if (tag[0] == '\0')
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the caller does not hold this lock");
    rc = ask(lock, SQLOCK_SQL_TAGGED_SESSIONS, tag, &tagged, err);
    if (rc == 0 && tagged > 0)
        rc = ask(lock, SQLOCK_SQL_STALE_SESSIONS, tag, count, err);
    return rc;
}
