/*
 * hosts.c - see hosts.h
 */
#include "drivers/hosts.h"

#include <string.h>

#include "base/clock.h"

/* HY000 is no state of a refusal, but also that of a client library which gives
 * up. */
bool lk_hosts_is_refused(int rc, const sqlock_error *err)
{
    return (rc == SQLOCK_EACCESS || rc == SQLOCK_ESCHEMA) &&
           err->sqlstate[0] != '\0' && strcmp(err->sqlstate, "HY000") != 0;
}

int lk_hosts_try(size_t hosts, int64_t deadline_ns, lk_host_fn try_host,
                 void *context, sqlock_error *err)
{
    for (size_t i = 0; i < hosts; i++) {
        int64_t now = sqlock_monotonic_ns();
        int64_t share = (deadline_ns - now) / (int64_t)(hosts - i);
        sqlock_error failure = {0};
        bool is_last;
        int rc;

        if (i > 0 && share <= 0)
            break;
        rc = try_host(context, i, now + share, &failure);
        if (rc == 0)
            return 0;
        is_last = rc == SQLOCK_ENOMEM || lk_hosts_is_refused(rc, &failure);
        if (i == 0 || is_last || rc == SQLOCK_EUNREACHABLE ||
            rc == SQLOCK_ERESOURCE || rc == SQLOCK_EREADONLY)
            *err = failure;
        if (is_last)
            break;
    }
    return err->code;
}
