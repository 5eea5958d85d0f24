/*
 * leader.c - publish the text of a leader (leader.h)
 */
#include "lease/leader.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/error.h"
#include "lease/leader_text.h"
#include "lease/row.h"

/* Return the serial of a text.  A lease is one process's, so it is enough that
 * those of a process rise. */
static int64_t next_serial(void)
{
    static atomic_llong last;

    return atomic_fetch_add(&last, 1) + 1;
}

int lk_leader_publish(struct lk_store *store, const struct lk_lease *lease,
                      const char *text, sqlock_error *err)
{
    struct lk_arguments arguments;
    int64_t serial = next_serial();
    char digits[LK_LEADER_SERIAL_LENGTH + 1];
    struct lk_row row;
    int changed;

    if (store->statements[SQLOCK_SQL_PUBLISH].text == NULL)
        return lk_store_unshared(store, err);
    (void)snprintf(digits, sizeof digits, "%016" PRIx64, (uint64_t)serial);
    lk_store_arguments(store, lease->key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, lease->client_id);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, text);
    lk_argument_text(&arguments, SQLOCK_P_SERIAL, digits);
    changed = lk_store_change(store, SQLOCK_SQL_PUBLISH, &arguments, NULL, err);
    if (changed < 0)
        return changed;
    if (changed > 0 && !lk_row_may_be_copys(store, lease))
        return 0;
    /* or the text is there, by an earlier copy of the statement, or a later */
    return lk_lease_read(store, lease, &row, err);
}
