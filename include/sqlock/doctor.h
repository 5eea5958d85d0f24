/*
 * sqlock/doctor.h - whether the promises of locks hold with a database
 */
#ifndef SQLOCK_DOCTOR_H
#define SQLOCK_DOCTOR_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sqlock_severity {
    SQLOCK_FINE = 0,
    SQLOCK_WARNING, /* locks work; less is promised, or it may go wrong */
    SQLOCK_FAILURE  /* locks do not work, or two could hold one */
} sqlock_severity;

/** One thing that sqlock_diagnose() has looked at. */
typedef struct sqlock_check {
    const char *check; /* a constant: connection, tls, durability, failover,
                          isolation, timeouts, pooler, clock, layout, rights,
                          once, stock, waiting, peers */
    sqlock_severity severity;
    char *found;  /* one line */
    char *advice; /* what to change, one line; NULL when nothing */
} sqlock_check;

/**
 * Look at all that the promises of locks rest on: the connection, the server's
 * settings, the table, our rights on it (a lock in the region "sqlock-doctor"
 * is taken, renewed, released and its row removed), whoever else uses it.
 * Takes a URL, because a registry may not open for what is wrong.
 *
 * @param[out] checks to be given to sqlock_checks_free() with @p count;
 *             those made so far also after a failure
 * @return 0: all was looked at, whatever was found; or why the rest could not
 *         be: EINVAL, ENOTSUP, EUNREACHABLE, EBUSY, EACCESS, ESCHEMA,
 *         EREADONLY, ERESOURCE, EDATABASE, ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_diagnose(const char *url,
                                   const sqlock_options *options,
                                   sqlock_check **checks, size_t *count,
                                   sqlock_error *err);

typedef enum sqlock_support {
    SQLOCK_SUPPORT_REFUSED = 0, /* ENOTSUP; wake-ups: done without */
    SQLOCK_SUPPORT_WEAKER,      /* what is weaker is said below */
    SQLOCK_SUPPORT_FULL
} sqlock_support;

/** What a database gives. */
typedef struct sqlock_capabilities {
    size_t size;              /* sizeof(sqlock_capabilities) */
    sqlock_support leases;    /* weaker: tokens are the clock alone (Spring's
                                 layouts); refused: two had one, do not use */
    sqlock_support row_locks; /* sqlock_tx_lock(), sqlock_tx_lock_row() */
    sqlock_support guards;    /* sqlock_tx_guard() */
    sqlock_support wakeups;   /* who waits is woken by the release; weaker: by
                                 that on the same node (Galera); refused, as on
                                 Spring's layouts: waiters look at the row */
} sqlock_capabilities;
#define SQLOCK_CAPABILITIES_INIT SQLOCK_SIZED(sqlock_capabilities)

/**
 * Find out what the database gives, by two sessions that get in each other's
 * way, whatever it calls itself: in the region "sqlock-doctor", whose rows are
 * removed.
 *
 * @return 0, EINVAL, ETIMEDOUT (somebody else is at it), or as
 *         sqlock_registry_open()
 */
SQLOCK_MUSTUSE int sqlock_capabilities_of(const char *url,
                                          const sqlock_options *options,
                                          sqlock_capabilities *found,
                                          sqlock_error *err);

/** Free what sqlock_diagnose() gave.  NULL is allowed. */
SQLOCK_API void sqlock_checks_free(sqlock_check *checks, size_t count);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_DOCTOR_H */
