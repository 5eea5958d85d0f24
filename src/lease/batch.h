/*
 * batch.h - claim, renew or release N >= 1 leases together
 *
 * A batch of one is sent as the statement about one lease, which is cheaper and
 * can do more: it waits for a locked row, leaves a ticket in it, and goes to
 * the session that has the lease's bell.  The answer is handled in the same way
 * for any number.
 *
 * A claim, renewal or release returns 0 when the database answered; each item's
 * rc is then the result for that lease.  Any other return value says why there
 * was no answer, and stands for all items.  Where the database refuses a
 * renewal or a release because of one of the leases, which it does not name,
 * the others are sent without it, and where many time out, fewer are sent.
 *
 * Leases that share their locks, or may do so, are sent one by one; and more
 * leases than have time in one statement are sent in several
 * (lk_batch_send_parts()).
 */
#ifndef LK_BATCH_H
#define LK_BATCH_H

#include "lease/lease.h"

/* The most leases in one statement; more are sent in several.  A thousand cost
 * as much each as ten thousand do, and their text has half a megabyte, which
 * each server accepts. */
#define LK_BATCH_MAX 1000

/* The time that a statement about many has for each of them.  On an idle server
 * a lease costs 5 to 30 us, and 130 us where MariaDB inserts its row.  A
 * statement must end within statement_timeout_ms, which is set in the session,
 * and after which it is known not to arrive any more: so a batch that takes
 * longer is sent in parts, each with the time of one statement. */
#define LK_LEASE_US 500

/* The row of a key. */
struct lk_row {
    bool exists;
    bool is_taken; /* CLIENT_ID is set and the lease is not over */
    /* HOLDER begins with CLIENT_ID: a sqlock process claimed the row, and will
     * notify when it releases the lease */
    bool is_sqlocks;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;        /* 0: the layout has none */
    int64_t remaining_us; /* negative: the lease is over */
    int64_t acquired_at_us;
    int64_t expires_at_us;
    /* The lock is shared, by so many: the fields above are those of the group,
     * but those of the lease's share if it has one. */
    bool is_shared;
    /* a break is what changed the row last, as HOLDER says; or that of a share,
     * whose token another sharer has */
    bool is_broken;
    bool is_waited_for; /* QUEUE has a ticket that is not over */
    bool has_text;      /* the leader's; only where the row was read */
    uint32_t sharers;
    uint32_t weight;  /* of the lease's share; 0: it has none */
    uint32_t permits; /* LK_NO_LIMIT: none, or none known */
    int64_t first_us; /* of a shared lock: when the first sharer's lease ends */
    /* place of the lease's ticket in QUEUE, 0: the first, -1: it has none; and
     * the CLIENT_ID of the one before it whose bell it hears, "" if it is the
     * first */
    int place;
    char before[SQLOCK_KEY_SIZE];
    /* the ticket was called (pass_on.h).  Only where the row was read. */
    bool is_called;
    /* how often the lock changes hands before that ticket has it; 0: it may
     * join those who share the lock.  Only where the row was read. */
    unsigned rounds;
};

/* One lease of a batch, its row where that was read, and its result. */
struct lk_item {
    struct lk_lease lease;
    struct lk_row row;
    int rc;
    /* the batch was sent in parts, and not this one, for the reason that rc
     * gives; or the claim of this part was refused as a whole, or timed out,
     * and has changed nothing */
    bool is_left_out;
    /* its row is that of a copy of its claim, and is not released */
    bool is_passed_over;
    /* its part of the batch failed as a whole, which `err` tells */
    bool is_told;
    void *owner; /* for the caller; not used here */
};

struct lk_batch {
    /* each key once, sorted by key, or as lk_batch_sort_parts() sorts them */
    struct lk_item *items;
    size_t count;
    int64_t deadline_ns;
    /* where it is sent in parts or halves: none of them has a later deadline;
     * 0: that of lk_batch_latest(), and halves have twice the time of one */
    int64_t latest_ns;
    /* asked between two parts of a claim: 0, or ECANCELED with its text, and no
     * more are sent; NULL: nobody is asked */
    int (*stops)(void *caller, sqlock_error *err);
    void *caller;
    /* use the renewer's connection, and wait for no locked row */
    bool is_reserved;
    /* a claim: once a lock is refused, the parts behind it are not sent.  So of
     * two that claim the same locks, which both take in order of the keys, one
     * has all. */
    bool is_all_or_none;
    /* send it on this session of db.waiting; NULL: on any connection */
    struct lk_connection *session;
    const char *old_client; /* of a hand-off: who gives the lease */
    /* out, set by each statement: it timed out, and was not carried out */
    bool has_timed_out;
    /* out, set by each statement: when the batch was last sent and when it was
     * answered, CLOCK_BOOTTIME; set by a renewal: now_us, the database's
     * clock */
    int64_t now_us; /* 0: unknown */
    int64_t sent_boot_ns, answered_boot_ns;
};

/* Sort the leases by key. */
void lk_batch_sort(struct lk_batch *batch);

/* The same where they are renewed or released; but those that may be shares go
 * to the end as they were, since each is a statement of its own, which may wait
 * for a locked row: that is not to take the time of the others. */
void lk_batch_sort_parts(struct lk_batch *batch);

/* Make a batch of a copy of one lease.  The item must last as long as the
 * batch, and gets the result. */
void lk_batch_of_one(struct lk_batch *batch, struct lk_item *item,
                     const struct lk_lease *lease, int64_t deadline_ns);

/* Return the item whose key is in this cell of a result, or NULL if there is
 * none. */
struct lk_item *lk_batch_find(const struct lk_batch *batch,
                              const sqlock_value *key);

/* Return the item that has the lease of that row of a result, or NULL if none
 * has: that of the key, if there is no third column; otherwise that of the
 * CLIENT_ID there.  Keys that the application chooses may be spelt otherwise in
 * the row, where the column compares loosely. */
struct lk_item *lk_batch_find_owner(const struct lk_store *store,
                                    const struct lk_batch *batch,
                                    const sqlock_result *result, size_t row);

/* Return the deadline for so many leases, whose statements are sent from now on
 * one after another. */
int64_t lk_batch_deadline(const struct lk_store *store, size_t count);

/* Return until when the parts of the batch are sent, if they have from_ns on
 * the time of a statement for each thousand leases, and of one for all that
 * share their locks. */
int64_t lk_batch_latest(const struct lk_store *store,
                        const struct lk_batch *batch, int64_t from_ns);

/* Send the statement of that kind about the batch.  `run` has the options of
 * this call; its statement, arguments and deadline are set here.  Return 0,
 * ENOMEM, ENOTSUP if the driver has no such statement, or a result of
 * lk_store_run().  Clear `result` afterwards. */
int lk_batch_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_batch *batch, struct lk_run *run,
                 sqlock_result *result, sqlock_error *err);

/* Give the next statement about the batch the time that the run had, which was
 * extended when it waited for a connection. */
static inline void lk_batch_go_on(struct lk_batch *batch,
                                  const struct lk_run *run)
{
    if (run->deadline_ns > batch->deadline_ns)
        batch->deadline_ns = run->deadline_ns;
}

/* Note when the batch was sent and answered, and cap the leases of an
 * unanswered write.  If this run sent nothing, the time of the previous run
 * stays: its statement may still be carried out, and the leases count from
 * then. */
void lk_batch_note_times(struct lk_batch *batch, const struct lk_run *run);

/* Return whether a statement about the batch has failed with rc, changed
 * nothing, and may succeed for some of the leases: a row, or what was requested
 * for it, may be refused by the database, and the whole statement with it; or
 * the statement timed out, and one about fewer leases is faster. */
bool lk_batch_is_divisible(const struct lk_batch *batch, int rc);

/* Return whether one statement does not do for the batch: it has a lease that
 * shares its lock, and others; or more than have time in a statement. */
bool lk_batch_has_parts(const struct lk_store *store,
                        const struct lk_batch *batch);

/* Send the batch by `send` in parts.  With rc 0, since it has parts: each lease
 * that shares its lock alone, and the others in order between them, each part
 * with the time that batch->deadline_ns leaves for one.  Otherwise since the
 * whole has failed with rc and is divisible: its halves, for which `send` calls
 * this function again if they fail and are divisible, so the leases that alone
 * are refused are found.
 *
 * A claim that times out is sent again in halves, a few times and within the
 * time for all.  An outage ends the attempts, as do the failure of a claim, and
 * the time for all; a claim also ends when its first lease does.  Those that
 * were not sent then have ETIMEDOUT, or EBUSY if they are no claims.
 *
 * Return 0: each item's rc is its result, also if it was refused or got no
 * answer; err tells of the first part that failed. */
typedef int (*lk_batch_fn)(struct lk_store *store, struct lk_batch *batch,
                           sqlock_error *err);
int lk_batch_send_parts(struct lk_store *store, struct lk_batch *batch,
                        lk_batch_fn send, int rc, sqlock_error *err);

/* Claim each lock with a fresh CLIENT_ID; only a claim in doubt keeps its own.
 * The claim is sent again if the connection breaks.  Results of items: 0;
 * EBUSY: another owner has the lock; ETIMEDOUT: granted, but the lease is over
 * already; ECONFLICT: the lock cannot be shared so, and no ticket was left
 * (lk_claim_error()).  After EUNCERTAIN or an outage, either repeat the claims
 * in doubt, or pass them to lk_resolver_add_claim(). */
int lk_batch_claim(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err);

/* Renew each lease, unless it is over, for its TTL.  Results of items: 0;
 * EBUSY: a transaction has locked the row, and the deadline stays; EEXPIRED;
 * ELOST. */
int lk_batch_renew(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err);

/* Release the leases, and give up their bells.  Results of items: 0,
 * EEXPIRED, ELOST, EUNCERTAIN.  The resolver repeats a release that was not
 * carried out, until the lease is over. */
int lk_batch_release(struct lk_store *store, struct lk_batch *batch,
                     sqlock_error *err);

/* Give up the bells of the leases, in an outage without sending anything, as
 * lk_place_end(). */
void lk_batch_end_bells(struct lk_store *store, struct lk_batch *batch,
                        bool has_rung, bool is_outage);

/* Read the row as the holder of the lease sees it.  Return 0 if it is held;
 * ELOST or EEXPIRED; or why it cannot be read. */
int lk_lease_read(struct lk_store *store, const struct lk_lease *lease,
                  struct lk_row *row, sqlock_error *err);

/* Describe in err the result of an item of a claim, a renewal, or a release,
 * and return rc.  Results that need no text leave err as it is. */
int lk_claim_error(const struct lk_item *item, sqlock_error *err);
int lk_renewal_error(int rc, sqlock_error *err);
int lk_release_error(int rc, sqlock_error *err);

#endif
