/*
 * tap.h - a driver around each driver, which counts the calls that pass and can
 * disturb them
 *
 * A URL with "tap+" before its scheme goes through it.  It forwards every call
 * to the real driver and the real database: nothing is imitated.  A test may
 * ask it not to send a statement, or to lose its answer after the database has
 * carried it out; the connection is then of no use any more, as after a break.
 *
 * Counts and hooks are the process's; calls may come from any thread.
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
    const char *text; /* of the statement, for TAP_EXECUTE; or NULL */
    const sqlock_value *parameters;
    size_t count;
    int64_t affected; /* after: what the database said */
};

/* Called before a call is forwarded, without any lock of the tap's.  0 forwards
 * it; EUNREACHABLE breaks the connection instead; another code is the answer
 * and nothing is sent. */
typedef int (*tap_before_fn)(void *context, const struct tap_event *event);

/* Called when the real driver has answered rc.  Its return value is reported;
 * EUNCERTAIN in place of 0 loses the answer and breaks the connection. */
typedef int (*tap_after_fn)(void *context, const struct tap_event *event,
                            int rc);

/* Register the tap drivers; fails the test when that is refused.  Again does
 * nothing. */
void tap_install(void);

/* The URL through the tap, in out. */
const char *tap_url(char out[1024], const char *url);

/* Forget counts, texts and hooks. */
void tap_reset(void);
void tap_hooks(tap_before_fn before, tap_after_fn after, void *context);

/* A hook that loses the answer to each commit that succeeds. */
int tap_lose_commit(void *context, const struct tap_event *event, int rc);

/* Set the epoch that connections report from here on; "": the database's. */
void tap_epoch(const char *epoch);

/* Calls since tap_reset(). */
uint64_t tap_count(enum tap_call call);

/* Statements, begins, commits and rollbacks: all that a server would see. */
uint64_t tap_sent(void);

/* Print the texts of the last statements, oldest first. */
void tap_print(void);

/* Server-side numbers of the connections that are open through the tap. */
size_t tap_connections(int64_t *ids, size_t max);

#endif
