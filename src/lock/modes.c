/*
 * modes.c - in which mode each lock of a call is wanted
 */
#include "lock/modes.h"

#include "base/error.h"
#include "lease/share.h"

sqlock_mode lk_mode_of(const sqlock_acquire_options *options, size_t place)
{
    return options->modes != NULL ? options->modes[place] : options->mode;
}

int lk_modes_check(const struct lk_set *set, sqlock_acquire_options *options,
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
