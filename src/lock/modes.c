/*
 * modes.c - how the locks of a call are wanted, and in which mode each
 */
#include "lock/modes.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/options.h"
#include "lease/share.h"

sqlock_mode lk_mode_of(const sqlock_acquire_options *options, size_t place)
{
    return options->modes != NULL ? options->modes[place] : options->mode;
}

static int check(const struct lk_set *set, sqlock_acquire_options *options,
                 sqlock_error *err)
{
    bool is_shared = false;

    for (size_t i = 0; i < set->count; i++) {
        sqlock_mode mode = lk_mode_of(options, i);

        if (mode != SQLOCK_EXCLUSIVE && mode != SQLOCK_SHARED)
            return lk_error(err, SQLOCK_EINVAL, "unknown mode %d", (int)mode);
        is_shared = is_shared || mode == SQLOCK_SHARED;
    }
    if (is_shared) {
        if (options->weight == 0)
            options->weight = 1;
        return lk_share_check(&set->registry->store, options->weight,
                              options->permits, err);
    }
    if (options->weight != 0 || options->permits != LK_NO_LIMIT)
        return lk_error(err, SQLOCK_EINVAL,
                        "permits and weight are for the mode SQLOCK_SHARED");
    return 0;
}

int lk_modes_read(const struct lk_set *set, int64_t wait_ms,
                  const sqlock_acquire_options *options,
                  sqlock_acquire_options *complete, sqlock_error *err)
{
    static const struct lk_sized sized = {
        "sqlock_acquire_options", "SQLOCK_ACQUIRE_INIT", sizeof *complete};
    const sqlock_options *defaults = &set->registry->store.options;
    int rc = lk_sized_read(complete, &sized, options, err);

    if (rc == 0)
        rc = lk_check_wait(wait_ms, complete->cancel_fd, err);
    if (rc < 0)
        return rc;
    rc = lk_ttl_check(defaults, &complete->ttl_ms, complete->ttl_ms,
                      defaults->ttl_ms, err);
    return rc < 0 ? rc : check(set, complete, err);
}

bool lk_may_join(const struct lk_set *set,
                 const sqlock_acquire_options *options)
{
    return set->count == 1 && options->weight == 1 &&
           options->permits == LK_NO_LIMIT &&
           !set->registry->store.options.detect_deadlocks;
}
