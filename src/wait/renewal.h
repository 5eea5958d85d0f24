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

/* A renewal under way, in its caller's memory.  Guarded by the entry's
 * mutex. */
struct lk_renewal {
    struct lk_renewal *next, *previous; /* of the same lease */
    uint32_t old_ttl_ms;
    /* the row lasts at least until then, whenever the renewal is carried out */
    int64_t until_ns;
    /* the earliest until_ns of the overlapping ones; LK_NEVER: none */
    int64_t others_ns;
};

/* Begin to renew a copied lease with that TTL.  The entry's deadline may become
 * earlier.  Called with the entry's mutex held. */
void lk_renewal_begin(struct lk_entry *entry, struct lk_renewal *renewal,
                      uint32_t ttl_ms);

/* End the renewal with the rc and the copied lease of its item in
 * lk_batch_renew(), whose last statement was sent at that time (0: none was).
 * False: the lease is over, or another one by now.  Called with the entry's
 * mutex held. */
bool lk_renewal_end(struct lk_entry *entry, struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns);

#endif
