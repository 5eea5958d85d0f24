/*
 * tap.h - a driver around each driver, which counts the calls that pass and can
 * disturb them
 *
 * A URL with "tap+" before its scheme leads through the tap, which forwards
 * every call to the real driver and the real database.  A test may have the tap
 * not send a statement, or lose the answer after the database has carried the
 * statement out.  If that breaks the connection, all later calls on it fail.
 *
 * A process has one set of counts and hooks.  Calls may come from any thread.
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include "database.h"

enum tap_call {
    TAP_OPEN,
    TAP_EXECUTE,
    TAP_BEGIN,
    TAP_COMMIT,
    TAP_ROLLBACK,
    TAP_ABORT,
    TAP_CALLS
};

struct tap_event {
    enum tap_call call;
    uint64_t number;  /* of this kind of call since tap_reset(), from 1 */
    uint64_t session; /* the number of the call that opened the connection */
    const char *text; /* of the statement, for TAP_EXECUTE; or NULL */
    const sqlock_value *parameters;
    size_t count;
    /* TAP_EXECUTE, in tap_after_fn, where rc is 0: the answer, which may be
     * changed; otherwise NULL */
    sqlock_result *result;
};

/* Function called before a call is forwarded, while no mutex of the tap is
 * held.  Return 0 to forward the call.  Any other code is the call's result,
 * and nothing is sent; EUNREACHABLE also breaks the connection. */
typedef int (*tap_before_fn)(void *context, const struct tap_event *event);

/* Function called after the real driver has returned rc.  Return the call's
 * result.  EUNCERTAIN or EUNREACHABLE in place of rc loses the answer and
 * breaks the connection. */
typedef int (*tap_after_fn)(void *context, const struct tap_event *event,
                            int rc);

/* Register the tap drivers; fail the test if that is refused.  Later calls do
 * nothing. */
void tap_install(void);

/* Write the URL, led through the tap, to out; return out. */
const char *tap_url(char out[1024], const char *url);

/* tap_reset(): reset counts and texts, and remove the hooks.  tap_hooks(): set
 * the hooks; NULL: none. */
void tap_reset(void);
void tap_hooks(tap_before_fn before, tap_after_fn after, void *context);

/* A tap_after_fn that loses the answer to each commit that succeeds. */
int tap_lose_commit(void *context, const struct tap_event *event, int rc);

/* Set the epoch that connections report from now on; "": the database's. */
void tap_epoch(const char *epoch);

/* Return the number of these calls since tap_reset(). */
uint64_t tap_count(enum tap_call call);

/* Return the number of statements, begins, commits and rollbacks since
 * tap_reset(): of all that a server would see. */
uint64_t tap_sent(void);

/* Return the number of leases of a statement about many; 0: it is none. */
size_t tap_leases(const struct tap_event *event);

/* Write the server's numbers of the connections that are open through the tap
 * to ids, at most max; return how many. */
size_t tap_connections(int64_t *ids, size_t max);

#endif
