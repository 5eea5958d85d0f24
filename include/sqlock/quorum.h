/*
 * sqlock/quorum.h - one lock in several registries, held while most hold it
 *
 * For those whose lock must outlive the loss of any one database server: the
 * name is acquired in an odd number of registries on independent servers, and
 * held while more than half of them hold it (the recipe that Redis calls
 * RedLock); or, with `all`, in two or more, and held while each of them does
 * (Redisson's MultiLock).  Where one server that fails over is enough, one
 * registry is simpler, has a token and guards, and costs a third.
 *
 * A quorum is an owner of its own, which any thread may use, one call of
 * acquire, release or drop at a time.  It is not re-entrant.  The registries
 * have the ownership SQLOCK_OWNED_BY_HANDLE, may have different databases and
 * layouts, and stay open until the quorum is dropped.  All who exclude each
 * other use the same servers, whatever their order, and the same choice of
 * `all`.
 *
 * Conditions
 *     A quorum bears servers that are away, as long as they are fewer than
 *     half.  It does not bear servers that break the conditions of
 *     sqlock-failures(7): two majorities may have one server in common, and if
 *     that one forgets a lease, both hold the lock.  With `all` they have each
 *     in common, and one that keeps its conditions is enough.
 *
 * Servers that restart
 *     A server that restarts still has the lease, if its commits are durable:
 *     `sqlock doctor` of each says whether they are.  One that is promoted
 *     without having received everything, or restored from a backup, has broken
 *     its conditions: keep it away for the longest TTL before it is used again.
 *
 * Clocks
 *     A lease is counted by this host's CLOCK_BOOTTIME from before its claim
 *     was sent, less the margin, so slow answers make it shorter.  Only its
 *     expiry at the server rests on that server's clock, which must not jump by
 *     more than the margin.  Renewals notice a jump, and end that lease.
 *
 * Holders that pause
 *     A holder that is paused can still write after its leases, as with one
 *     lock: ask sqlock_quorum_remaining_ms() before each step.  Tokens are of
 *     one registry each.  A fence, and a guard, need all holders to have the
 *     lock of the same server, and two majorities may have another server in
 *     common each time.  So fence with `all`, by one and the same registry; or
 *     use one registry in place of a quorum.
 *
 * Calling sequence
 *     sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
 *     sqlock_quorum *quorum;
 *
 *     options.auto_renew = true;
 *     rc = sqlock_quorum_obtain(&quorum, registries, 3, "service", NULL, &err);
 *     if (rc == 0)
 *         rc = sqlock_quorum_acquire(quorum, 5000, &options, NULL, &err);
 *     if (rc == 0) {
 *         while (work_to_do() && sqlock_quorum_remaining_ms(quorum) > 0)
 *             do_a_step();
 *         rc = sqlock_quorum_release(quorum, NULL, &err);
 *     }
 *     if (quorum != NULL && sqlock_quorum_drop(quorum, NULL) == 0)
 *         quorum = NULL;
 */
#ifndef SQLOCK_QUORUM_H
#define SQLOCK_QUORUM_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most registries of a quorum. */
#define SQLOCK_QUORUM_MAX 15

/** One name in several registries. */
typedef struct sqlock_quorum sqlock_quorum;

/** Options of a quorum.  Zero means the default. */
typedef struct sqlock_quorum_options {
    size_t size; /* sizeof(sqlock_quorum_options): the struct may grow */
    bool all;    /* hold all of them, in place of more than half */
} sqlock_quorum_options;
#define SQLOCK_QUORUM_INIT SQLOCK_SIZED(sqlock_quorum_options)

/**
 * Get a quorum for a name.  No I/O.
 *
 * @param[out] out   dropped by sqlock_quorum_drop(); NULL on failure
 * @param registries an odd number, 3 to SQLOCK_QUORUM_MAX; with `all` any
 *                   number from 2 on
 * @param options    NULL: all defaults
 * @return 0        done
 *         EINVAL   the number; a registry that is there twice, or has another
 *                  ownership; or two that lead to one server, by the epoch of
 *                  sqlock_registry_epoch().  On MariaDB that is server_id,
 *                  which has to differ.  Servers of which no epoch is known
 *                  (Galera) are not compared
 */
SQLOCK_MUSTUSE int sqlock_quorum_obtain(sqlock_quorum **out,
                                        sqlock_registry *const *registries,
                                        size_t count, const char *name,
                                        const sqlock_quorum_options *options,
                                        sqlock_error *err);

/**
 * Drop a quorum.  NULL is allowed.
 *
 * @return 0        dropped
 *         EINUSE   refused: it is held, or in use by another call, or on_event
 *                  of one of its registries runs in this thread
 *         EFORK    this is a child process: nothing was touched
 */
SQLOCK_API int sqlock_quorum_drop(sqlock_quorum *quorum, sqlock_error *err);

/**
 * Take the lock.  All registries are asked at the same time, so that one that
 * is slow or away delays nobody while the others are enough.  Once they are,
 * those that have not answered get as long as these took after any queue, 25 ms
 * at least.  Then they are waited for in the background: one that grants its
 * lock while the others are enough counts from then on, so that the quorum
 * bears the loss of another.  The release ends what is still under way, and
 * what that gets is freed in the background.
 *
 * A contender that has some locks, but too few, and others have the rest, gives
 * them back after 100 ms or more, pauses for a random time, and goes on to wait
 * where others were before it, with nothing held.  So two that split the
 * servers do not wait for each other.
 *
 * If the call fails, all that it got is given back before it returns, and
 * claims that were under way are waited for: it takes as long as
 * sqlock_acquire() and sqlock_release() of the slowest registry.
 *
 * @param wait_ms as of sqlock_acquire()
 * @param options as of sqlock_acquire(), but without `permits`, of which
 *                several majorities would have more than there are.  `on_lost`
 *                is called once, when too few registries hold the lock, with
 *                the lock whose loss that was; `auto_renew` has each registry
 *                renew its own lease
 * @param[out] results of each registry: 0 granted, and given back again if the
 *                call fails; EUNCERTAIN: it has not answered, and may count
 *                later, or, if the call fails, it is not held, but whether its
 *                row is free is not known: it is freed in the background, or
 *                expires; others: not granted, and why.  NULL: not wanted
 * @return 0            held
 *         EBUSY        wait_ms is 0, and others have the lock in too many
 *                      registries
 *         ETIMEDOUT    the same, after wait_ms
 *         EUNCERTAIN   not held, and a result is EUNCERTAIN
 *         ECANCELED    by `cancel_fd`
 *         EINUSE       the quorum is held, or in use by another call, or
 *                      on_event of one of its registries runs in this thread
 *         EFORK        this is a child process: nothing was touched
 *         any other    not held: too few registries could be asked; the first
 *                      one's code that could not
 */
SQLOCK_MUSTUSE int sqlock_quorum_acquire(sqlock_quorum *quorum, int64_t wait_ms,
                                         const sqlock_acquire_options *options,
                                         int *results, sqlock_error *err);

/**
 * Give the lock back, in all registries at the same time.  The caller then
 * holds it no longer, whatever the result, except EOWNER, EINUSE and EFORK:
 * see there.
 *
 * @param[out] results of each registry, as of sqlock_release(); EOWNER: it did
 *                hold nothing.  NULL: not wanted
 * @return 0           enough registries held the lock until here, or until a
 *                     call before this one that returned EINUSE: nobody else
 *                     had it.  Others may not have answered, see `results`
 *         ELOST, EEXPIRED   they did not
 *         EOWNER      not held; nothing was done
 *         EINUSE      a transaction guards a lock of it, and only such locks
 *                     are still held, which are mostly too few: rely on the
 *                     quorum no more, end the transaction, and call again.  So
 *                     after an on_lost which waits for the callback that runs
 *                     in this thread.  Or the quorum is in use by another call,
 *                     or on_event of one of its registries runs in this thread:
 *                     nothing was done
 *         EFORK       this is a child process: nothing was touched
 *         any other   given up, in too many registries: each goes on trying to
 *                     free the row until the lease expires
 */
SQLOCK_MUSTUSE int sqlock_quorum_release(sqlock_quorum *quorum, int *results,
                                         sqlock_error *err);

/** Milliseconds for which enough registries hold the lock: the time that is
 *  left of the second longest lease of three, of the shortest with `all`.  0:
 *  not held, lost or over.  No I/O: ask before each step that has effects. */
SQLOCK_API int64_t sqlock_quorum_remaining_ms(sqlock_quorum *quorum);

/** The lock of one registry, by its place, for its token, name and key.  Do not
 *  acquire, release or drop it.  A caller without `auto_renew` may renew each
 *  by sqlock_renew(), where one that is away delays the others.  NULL: there is
 *  no such place. */
SQLOCK_API sqlock_lock *sqlock_quorum_lock(sqlock_quorum *quorum, size_t place);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_QUORUM_H */
