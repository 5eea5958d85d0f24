/*
 * sharers.c - the holders of a shared lock, in SHARERS, and what a row and
 * those who wait make of them
 */
#include "fuzz.h"

#include "lease/row.h"
#include "lease/sharer.h"
#include "lease/waits.h"

#define NOW_US INT64_C(1700000000000000)
#define ID "12345678-1234-4000-8000-000000000001"
#define GROUP "00000000-0000-4000-8000-000000000009"

static void check_row(const char *sharers, int64_t end_us)
{
    struct lk_lease lease = {.answered.token = 1, .client_id = ID};
    struct lk_row row = {.exists = true,
                         .is_taken = true,
                         .client_id = GROUP,
                         .remaining_us = end_us - NOW_US,
                         .expires_at_us = end_us};

    lk_row_add_sharers(&row, sharers, &lease);
    must(row.permits == lk_sharers_permits(sharers));
    must(!row.is_shared || lk_sharers_have(sharers, GROUP));
    must(strlen(row.client_id) == SQLOCK_KEY_SIZE - 1);
}

/* Where nobody waits there is no circle. */
static void check_waits(const char *sharers, const char *queue)
{
    struct lk_waits waits = {0};

    must(lk_waits_add_lock(&waits, ID, sharers, NULL, NOW_US));
    for (size_t i = 0; i < waits.count; i++)
        must(!lk_waits_are_closed(&waits, waits.all[i].owner));
    must(lk_waits_add_lock(&waits, ID, sharers, queue, NOW_US));
    must(lk_waits_add_lock(&waits, GROUP, queue, sharers, NOW_US));
    must(waits.locks <= 3);
    for (size_t i = 0; i < waits.count && i < 16; i++)
        (void)lk_waits_are_closed(&waits, waits.all[i].owner);
    lk_waits_clear(&waits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *queue = fuzz_text(data, size);
    char *sharers = fuzz_line(&queue);
    const char *at = sharers;
    int64_t end_us = lk_sharers_end_us(sharers);
    struct lk_sharer sharer;

    while (lk_sharer_next(&at, &sharer)) {
        must(sharer.as.ends_at_us <= end_us && sharer.token >= 0);
        must(sharer.as.holder_length <= strlen(sharer.as.holder));
    }
    must(lk_sharers_first_us(sharers, 1000) <= 1000);
    must(lk_sharers_first_us(sharers, 1000) >= 0);
    (void)lk_sharers_rounds(sharers, true, queue, ID, NOW_US);
    check_row(sharers, end_us);
    check_waits(sharers, queue);
    free(sharers);
    return 0;
}
