/*
 * lease.c - compute until when the holder may rely on a lease (lease.h)
 */
#include "lease/lease.h"

#include "base/clock.h"

int64_t lk_believe_until(const struct lk_store *store, int64_t sent_ns,
                         uint32_t ttl_ms)
{
    uint32_t margin = lk_margin_ms(&store->options, ttl_ms);

    return lk_after_ms(sent_ns, (int64_t)ttl_ms - margin);
}

int64_t lk_believe_row_until(const struct lk_store *store,
                             int64_t asked_boot_ns, int64_t remaining_us,
                             uint32_t ttl_ms)
{
    uint32_t margin = lk_margin_ms(&store->options, ttl_ms);

    return lk_after_us(asked_boot_ns, remaining_us) -
           (int64_t)margin * LK_NS_PER_MS;
}

int64_t lk_lease_until_ns(const struct lk_lease *lease)
{
    return sqlock_monotonic_ns() + lease->believed.until_boot_ns -
           lk_boottime_ns();
}

void lk_lease_cap(struct lk_lease *lease, uint32_t ttl_ms)
{
    if (lease->believed.cap_ms == 0 || ttl_ms < lease->believed.cap_ms)
        lease->believed.cap_ms = ttl_ms;
    if (lease->asked.ttl_ms > lease->believed.cap_ms)
        lease->asked.ttl_ms = lease->believed.cap_ms;
}

void lk_lease_believe_less(const struct lk_store *store, struct lk_lease *lease,
                           int64_t since_boot_ns)
{
    lk_lease_cap(lease, lease->asked.ttl_ms);
    lease->believed.until_boot_ns =
        lk_sooner(lease->believed.until_boot_ns,
                  lk_believe_until(store, since_boot_ns, lease->asked.ttl_ms));
}

bool lk_lease_may_be_shared(const struct lk_lease *lease)
{
    return lease->asked.weight > 0 || lease->believed.may_be_share;
}

uint32_t lk_capped_ms(const struct lk_lease *lease, uint32_t ttl_ms)
{
    return lease->believed.cap_ms != 0 && ttl_ms > lease->believed.cap_ms
               ? lease->believed.cap_ms
               : ttl_ms;
}
