/*
 * renewal.h - renewals of one lease that overlap: what may be believed of it
 *
 * A thread, the renewer and, owned by the registry, other threads may renew a
 * lease at the same time, each with a TTL of its own.  The row ends as the one
 * says that the database carries out last; nobody here sees which that is:
 * their answers come back in any order.  So none of them makes the lease longer
 * than any other that was under way beside it does.
 */
#ifndef LK_RENEWAL_H
#define LK_RENEWAL_H

#include <stdbool.h>
#include <stdint.h>

struct lk_lease;
struct lk_entry;

/* One that is under way; whoever renews keeps it until it has ended.  Under the
 * entry's mutex. */
struct lk_renewal {
    struct lk_renewal *next, *previous; /* of the same lease */
    uint32_t old_ttl_ms;
    int64_t
        until_ns; /* carried out whenever it may be, the row lasts so long */
    int64_t others_ns; /* the soonest of those beside it; LK_NEVER: none */
};

/* Called with the entry's mutex held, by the one that has copied the lease and
 * is about to renew it with that TTL: what is believed may end sooner from here
 * on. */
void lk_renewal_begin(struct lk_entry *entry, struct lk_renewal *renewal,
                      uint32_t ttl_ms);

/* The same when it has ended, as rc and the copy say, those of an item of
 * lk_batch_renew().  The last statement was sent at that moment; 0:
 * none was.  False: the lease is another one by now, or over. */
bool lk_renewal_end(struct lk_entry *entry, struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns);

#endif
