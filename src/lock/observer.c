/*
 * observer.c - be woken when a leader changes (observer.h)
 */
#include "lock/observer.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "lease/bell.h"
#include "lock/registry.h"

/* How long a bell that could not be had is not tried again. */
#define BELL_MS 5000

void lk_observer_begin(struct lk_observer *out, sqlock_registry *registry,
                       const char *key)
{
    const sqlock_bell *driver = lk_bell_of(&registry->store);

    *out = (struct lk_observer){.bell = &registry->bell, .key = key, .fd = -1};
    if (driver == NULL || driver->is_of_one)
        return;
    out->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (out->fd < 0)
        return;
    pthread_mutex_lock(&out->bell->mutex);
    DL_APPEND2(out->bell->observers, out, previous, next);
    lk_bell_use(out->bell); /* also for who does not open it: nobody leads */
    pthread_mutex_unlock(&out->bell->mutex);
}

void lk_observer_end(struct lk_observer *observer)
{
    if (observer->fd < 0)
        return;
    pthread_mutex_lock(&observer->bell->mutex);
    DL_DELETE2(observer->bell->observers, observer, previous, next);
    lk_bell_use(observer->bell);
    pthread_mutex_unlock(&observer->bell->mutex);
    (void)close(observer->fd);
    observer->fd = -1;
}

void lk_observer_expect(struct lk_observer *observer)
{
    eventfd_t count;

    if (observer->fd < 0)
        return;
    (void)eventfd_read(observer->fd, &count);
    pthread_mutex_lock(&observer->bell->mutex);
    observer->heard = observer->bell->number;
    pthread_mutex_unlock(&observer->bell->mutex);
}

bool lk_observer_hears(struct lk_observer *observer)
{
    int64_t now = sqlock_monotonic_ns();
    bool is_late;

    if (observer->fd < 0 || now < observer->none_until_ns ||
        !lk_bell_is_there(observer->bell))
        return false;
    if (lk_bell_hear_all(observer->bell, observer->heard, &is_late, NULL) < 0) {
        observer->none_until_ns = lk_after_ms(now, BELL_MS);
        return false;
    }
    if (is_late)
        (void)eventfd_write(observer->fd, 1);
    return true;
}
