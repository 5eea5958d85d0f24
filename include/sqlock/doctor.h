/*
 * sqlock/doctor.h - check whether a database keeps the promises of locks
 *
 * Calling sequence
 *     sqlock_check *checks = NULL;
 *     size_t count = 0, i;
 *
 *     rc = sqlock_diagnose(url, NULL, &checks, &count, &err);
 *     for (i = 0; i < count; i++)
 *         if (checks[i].severity != SQLOCK_FINE)
 *             printf("%s: %s\n", checks[i].check, checks[i].found);
 *     sqlock_checks_free(checks, count);
 */
#ifndef SQLOCK_DOCTOR_H
#define SQLOCK_DOCTOR_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Severity of what a check has found. */
typedef enum sqlock_severity {
    SQLOCK_FINE = 0, /* as it should be */
    SQLOCK_WARNING,  /* locks work, but less is promised, or it may go wrong */
    SQLOCK_FAILURE   /* locks do not work, or two owners could hold one */
} sqlock_severity;

/** Result of one check of sqlock_diagnose(). */
typedef struct sqlock_check {
    const char *check;        /* a constant: connection, tls, durability,
                                 failover, isolation, sharing, timeouts, pooler,
                                 clock, layout, place, view, rights, once,
                                 stock, collation, waiting, peers */
    sqlock_severity severity; /* fine, a warning or a failure */
    char *found;              /* what there is, one line */
    char *advice;             /* what to change, one line; NULL: nothing.  Of
                                 a fine one: what some applications need */
} sqlock_check;

/** Do as sqlock_diagnose(), for rows of @p size bytes: for other languages. */
SQLOCK_MUSTUSE int sqlock_diagnose_sized(const char *url,
                                         const sqlock_options *options,
                                         sqlock_check **checks, size_t *count,
                                         size_t size, sqlock_error *err);

/**
 * Check all that the promises of locks rest on: the connection, the server's
 * settings, the table, the rights on it, and who else uses it.  It takes,
 * renews and releases a lock in the region "sqlock-doctor", and removes its
 * row.  It has a URL as argument, not a registry, which may fail to open.
 *
 * @param[out] checks freed by sqlock_checks_free(); has those made so far also
 *                    after a failure
 * @return 0           all checks were made, whatever they found
 *         any other   the other checks could not be made
 */
SQLOCK_INLINE int sqlock_diagnose(const char *url,
                                  const sqlock_options *options,
                                  sqlock_check **checks, size_t *count,
                                  sqlock_error *err)
{
    return sqlock_diagnose_sized(url, options, checks, count,
                                 sizeof(sqlock_check), err);
}

/** Free what sqlock_diagnose() gave.  NULL is allowed. */
SQLOCK_API void sqlock_checks_free(sqlock_check *checks, size_t count);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_DOCTOR_H */
