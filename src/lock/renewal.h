/*
 * renewal.h - renewals of leases under way, and what their answers change
 */
#ifndef LK_RENEWAL_H
#define LK_RENEWAL_H

#include <stdbool.h>
#include <stdint.h>

struct lk_hold;
struct lk_lease;

/* A renewal under way.  A thread, the renewer and, where the registry is the
 * owner, other threads may renew a lease at the same time, each with a TTL of
 * its own.  The row gets the end of the renewal that the database carries out
 * last; this process does not see which one that is, since answers arrive in
 * any order.  A renewal that overlaps with others therefore sets no later
 * deadline than those allow. */
struct lk_renewal {
    struct lk_renewal *next, *previous; /* of the slot */
    struct lk_hold *hold;
    uint32_t ttl_ms, old_ttl_ms;
    /* what is asked for the row: more than ttl_ms where others of this process
     * rely on the same share for longer */
    uint32_t row_ttl_ms;
    /* the row lasts at least until then, whenever the renewal is carried out;
     * CLOCK_BOOTTIME */
    int64_t until_ns;
    /* the earliest until_ns of the renewals that overlap; LK_NEVER: none */
    int64_t others_ns;
};

/* The caller of all functions holds the mutex. */

/* Begin to renew the lease for that TTL, and pin the hold.  A copy of the lease
 * is sent then, for renewal->row_ttl_ms.  The deadline may become earlier. */
void lk_renewal_begin(struct lk_hold *hold, struct lk_renewal *renewal,
                      uint32_t ttl_ms);

/* Before its end let the renewal, which came to rc, be that of another reader
 * of the share, too; but no longer than the lease that it has renewed: the
 * reader may have come, or have asked for more, since it was sent. */
void lk_renewal_ride(struct lk_hold *hold, const struct lk_renewal *renewal,
                     const struct lk_lease *lease, int rc,
                     int64_t sent_boot_ns);

/* Return whether a renewal of the hold is under way. */
bool lk_is_being_renewed(const struct lk_hold *hold);

/* Return the shortest TTL that the lease has or is being renewed for. */
uint32_t lk_shortest_ttl_ms(const struct lk_hold *hold);

/* End the renewal, and unpin the hold.  `lease` and rc are those of the item
 * that was given to lk_batch_renew(), and sent_boot_ns is when its last
 * statement was sent (0: none was).  The caller gives up the bell of `lease`
 * then, without the mutex: the hold has none any more.  Return rc; or ELOST or
 * EEXPIRED if the database renewed a lease that is over: it was given up
 * meanwhile, or the answer came too late. */
int lk_renewal_end(struct lk_hold *hold, struct lk_renewal *renewal,
                   struct lk_lease *lease, int rc, int64_t sent_boot_ns);

/* Wait, without the mutex, for the end of a renewal of a lease that is being
 * downgraded, or of a call about a lease (call.h); and tell of it. */
void lk_renewal_await_end(void);
void lk_renewal_tell_end(void);

#endif
