/*
 * bell.h - the bells of a store: which sessions of a process others ring at
 *
 * A CLIENT_ID begins with the number of its registry, which is the bell's name
 * where one session hears for all; where each waiter has a session of its own,
 * the bell is named after the whole tenure: all but the last twelve digits,
 * which differ between leases that are handed off within the process.
 */
#ifndef LK_LEASE_BELL_H
#define LK_LEASE_BELL_H

#include "lease/lease.h"

#define LK_BELL_SIZE 24
/* The bytes of a CLIENT_ID by which the bell of one is named. */
#define LK_BELL_PREFIX 23

/* Return the driver's bell; NULL: waiters poll. */
const sqlock_bell *lk_bell_of(const struct lk_store *store);

/* Write the name of this registry's bell. */
void lk_bell_name(const struct lk_store *store, char name[LK_BELL_SIZE]);

/* Write the name of the bell of that CLIENT_ID, where each has its own. */
void lk_bell_name_of(const char *client_id, char name[LK_BELL_SIZE]);

/* Make a CLIENT_ID for that owner.  It keeps the bell of the one before, whose
 * session has it. */
void lk_bell_client_id(struct lk_store *store, uint64_t owner,
                       const char *before, char client_id[SQLOCK_KEY_SIZE]);

/* Call `begin` of the driver's bell, with a deadline that the watchdog
 * enforces. */
int lk_bell_call_begin(struct lk_store *store, struct lk_connection *connection,
                       const char *name, int64_t until_ns, int64_t deadline_ns,
                       sqlock_error *err);

/* Send the statement of `run` on the session that has the lease's bell.  Return
 * a result of lk_db_run_on(), or EUNREACHABLE, without sending, if the session
 * is broken. */
int lk_place_run(struct lk_store *store, const struct lk_place *place,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err);

/* Give back the session of a lease that is over, and clear *place.  has_rung:
 * its release has given the bell up.  is_outage: nothing is sent to a server,
 * which would only wait for another timeout; the bell ends with its session.
 * Return whether there is an outage now. */
bool lk_place_end(struct lk_store *store, struct lk_place *place, bool has_rung,
                  bool is_outage);

/* After the rows of those keys were released, or are shared: ask the first who
 * wait for them to look in a second whether those before them have died.
 * deadline_ns: of the statement; 0: the usual one. */
void lk_bell_ask_to_look(struct lk_store *store, const char *const *keys,
                         size_t count, int64_t deadline_ns);

/* Tell those who observe the leader of a lock that it has changed, if this
 * process tells at all.  A failure is theirs to outlast: they look again when
 * the lease that they have seen is over.  deadline_ns: as above. */
void lk_bell_tell(struct lk_store *store, const char *key, int64_t deadline_ns);

#endif
