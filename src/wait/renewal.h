/*
 * renewal.h - renewals of one lease that overlap, and the deadline they allow
 *
 * A thread, the renewer and, where the registry owns, other threads may renew a
 * lease at the same time, each with a TTL of its own.  The row gets the end of
 * the renewal that the database carries out last; this process does not see
 * which one that is, since answers arrive in any order.  No renewal therefore
 * makes the deadline later than any other that was under way beside it.
 */
#ifndef LK_RENEWAL_H
#define LK_RENEWAL_H

#include <stdbool.h>
#include <stdint.h>

struct lk_lease;
struct lk_entry;

/* A renewal that is under way, in memory of its caller.  Under the entry's
 * mutex. */
struct lk_renewal {
    struct lk_renewal *next, *previous; /* of the same lease */
    uint32_t old_ttl_ms;
    int64_t until_ns;  /* the row lasts so long, whenever it is carried out */
    int64_t others_ns; /* the soonest until_ns beside it; LK_NEVER: none */
};

/* Begin to renew a copied lease with that TTL.  The entry's deadline may become
 * sooner.  Called with the entry's mutex held. */
void lk_renewal_begin(struct lk_entry *entry, struct lk_renewal *renewal,
                      uint32_t ttl_ms);

/* End the renewal with the rc and the copied lease of its item of
 * lk_batch_renew(), whose last statement was sent at that moment (0: none was).
 * False: the lease is another one by now, or over.  Called with the entry's
 * mutex held.  */
bool lk_renewal_end(struct lk_entry *entry, struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns);

#endif
