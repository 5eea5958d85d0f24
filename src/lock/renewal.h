/*
 * renewal.h - renewals of one lease that overlap, and the deadline they allow
 *
 * A thread, the renewer and, where the registry is the owner, other threads may
 * renew a lease at the same time, each with a TTL of its own.  The row gets the
 * end of the renewal that the database carries out last; this process does not
 * see which one that is, since answers arrive in any order.  A renewal that
 * overlaps with others therefore sets no later deadline than those allow.
 */
#ifndef LK_RENEWAL_H
#define LK_RENEWAL_H

#include <stdbool.h>
#include <stdint.h>

struct lk_lease;
struct lk_slot;

/* A renewal under way.  The caller provides the memory; the slot's mutex
 * guards it. */
struct lk_renewal {
    struct lk_renewal *next, *previous; /* of the same lease */
    uint32_t ttl_ms, old_ttl_ms;
    /* the row lasts at least until then, whenever the renewal is carried out;
     * CLOCK_BOOTTIME */
    int64_t until_ns;
    /* the earliest until_ns of the renewals that overlap; LK_NEVER: none */
    int64_t others_ns;
};

/* Begin to renew the slot's lease for that TTL, before a copy of the lease is
 * sent.  The slot's deadline may become earlier.  The caller holds the slot's
 * mutex. */
void lk_renewal_begin(struct lk_slot *slot, struct lk_renewal *renewal,
                      uint32_t ttl_ms);

/* Return the shortest TTL that the lease has or is being renewed for.  The
 * caller holds the slot's mutex. */
uint32_t lk_shortest_ttl_ms(const struct lk_slot *slot);

/* End the renewal.  `lease` and rc are those of the item that was given to
 * lk_batch_renew(), and sent_boot_ns is when its last statement was sent (0:
 * none was).  Return false if the lease is over, or another one by now.  The
 * caller holds the slot's mutex. */
bool lk_renewal_end(struct lk_slot *slot, struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns);

#endif
