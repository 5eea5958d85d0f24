/*
 * callback.c - keep a list of the callbacks that each thread runs
 */
#include "base/callback.h"

#include <stddef.h>

static _Thread_local struct lk_callback *innermost;

void lk_callback_begin(struct lk_callback *callback, const void *store,
                       const void *lock)
{
    callback->store = store;
    callback->lock = lock;
    callback->outer = innermost;
    innermost = callback;
}

void lk_callback_end(const struct lk_callback *callback)
{
    innermost = callback->outer;
}

bool lk_callback_of(const void *store)
{
    const struct lk_callback *one = innermost;

    while (one != NULL && one->store != store)
        one = one->outer;
    return one != NULL;
}

bool lk_callback_of_event(const void *store)
{
    const struct lk_callback *one = innermost;

    while (one != NULL && (one->store != store || one->lock != NULL))
        one = one->outer;
    return one != NULL;
}

bool lk_callback_of_lock(const void *lock)
{
    const struct lk_callback *one = innermost;

    while (one != NULL && one->lock != lock)
        one = one->outer;
    return one != NULL;
}
