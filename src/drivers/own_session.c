/*
 * own_session.c - detect a proxy that shares sessions (own_session.h)
 */
#include "drivers/own_session.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* With other clients on the proxy, a single comparison may look as if there
 * were no proxy. */
#define COMPARISONS 8

/* Two connections that are compared. */
struct pair {
    const sqlock_driver *driver;
    sqlock_statement query; /* its result names the session in the server */
    void *one;
    void *other;
    int64_t deadline_ns;
};

static int name_session(const struct pair *pair, void *connection, char out[64],
                        sqlock_error *err)
{
    sqlock_result result = {0};
    int rc;

    rc = pair->driver->execute(connection, &pair->query, NULL, 0,
                               pair->deadline_ns, &result, err);
    if (rc == 0)
        (void)snprintf(out, 64, "%s",
                       result.rows == 1 && result.cells[0].type == SQLOCK_TEXT
                           ? result.cells[0].text
                           : "");
    sqlock_result_clear(&result);
    return rc;
}

/* Replace the EBUSY of a statement that met its time limit by EUNREACHABLE: an
 * EBUSY of lk_own_session() means a proxy. */
static int no_answer(int rc, sqlock_error *err)
{
    return rc != SQLOCK_EBUSY
               ? rc
               : lk_error(err, SQLOCK_EUNREACHABLE,
                          "the sessions could not be compared in time");
}

/* Compare once.  A proxy that lends a session for one transaction at a time
 * lends the session that `one` has just used to the transaction of `other`,
 * which keeps that session; `one` then gets a different session.  A proxy that
 * lends its sessions by turns does so only after `other` has used one more. */
static int compare(const struct pair *pair, bool by_turns, sqlock_error *err)
{
    char before[64] = "";
    char theirs[64] = "";
    char after[64] = "";
    int rc;

    rc = name_session(pair, pair->one, before, err);
    if (rc == 0 && by_turns)
        rc = name_session(pair, pair->other, theirs, err);
    if (rc == 0)
        rc = pair->driver->begin(pair->other, pair->deadline_ns, err);
    if (rc < 0)
        return no_answer(rc, err);
    rc = name_session(pair, pair->other, theirs, err);
    if (rc == 0)
        rc = name_session(pair, pair->one, after, err);
    (void)pair->driver->rollback(pair->other, pair->deadline_ns, NULL);
    if (rc < 0)
        return no_answer(rc, err);
    if (strcmp(before, after) != 0 || strcmp(before, theirs) == 0)
        return lk_error(err, SQLOCK_EBUSY,
                        "connected through a transaction-pooling proxy");
    return 0;
}

int lk_own_session(const sqlock_driver *driver, const char *query, void *one,
                   void *other, int64_t deadline_ns, sqlock_error *err)
{
    const struct pair pair = {.driver = driver,
                              .query = {.text = query},
                              .one = one,
                              .other = other,
                              .deadline_ns = deadline_ns};
    int rc = 0;

    for (int i = 0; i < COMPARISONS && rc == 0; i++)
        rc = compare(&pair, i % 2 == 1, err);
    return rc;
}
