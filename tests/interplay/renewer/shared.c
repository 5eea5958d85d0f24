/*
 * shared.c - see renewer.h
 */
#include "renewer.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "locks/registry.h"
#include "support/tap.h"

void told_note(void *context, sqlock_lock *lock, int code)
{
    struct told *told = context;

    (void)lock;
    atomic_store(&told->at_ns, lk_boottime_ns());
    atomic_store(&told->code, code);
    (void)atomic_fetch_add(&told->times, 1);
}

sqlock_options renewer_options(const struct fixture *fixture)
{
    sqlock_options options = fixture_options(fixture);

    options.renew_period_ms = PERIOD_MS;
    return options;
}

sqlock_acquire_options renewed_options(uint32_t ttl_ms, struct told *told)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.ttl_ms = ttl_ms;
    options.auto_renew = true;
    if (told != NULL) {
        options.on_lost = told_note;
        options.lost_context = told;
    }
    return options;
}

void take_renewed_at(sqlock_lock *lock, uint32_t ttl_ms, struct told *told,
                     const char *file, int line)
{
    sqlock_acquire_options options = renewed_options(ttl_ms, told);
    sqlock_error err = {0};
    int rc = sqlock_acquire(lock, 0, &options, &err);

    check_code(0, rc, &err, file, line);
}

int64_t lock_deadline(sqlock_lock *lock)
{
    int64_t deadline;

    pthread_mutex_lock(&lock->entry->mutex);
    deadline = lock->entry->deadline_boot_ns;
    pthread_mutex_unlock(&lock->entry->mutex);
    return deadline;
}

static bool has_moved(sqlock_lock *lock, int64_t from)
{
    assert_true(sqlock_is_held(lock));
    return lock_deadline(lock) > from;
}

void await_renewals(sqlock_lock *lock, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        int64_t before = lock_deadline(lock);

        assert_becomes_true(has_moved(lock, before), PATIENCE_MS);
    }
}

int64_t make_due(sqlock_lock *lock)
{
    int64_t before;

    pthread_mutex_lock(&lock->entry->mutex);
    lock->entry->deadline_boot_ns -=
        (int64_t)lock->entry->ttl_ms / 4 * LK_NS_PER_MS;
    before = lock->entry->deadline_boot_ns;
    pthread_mutex_unlock(&lock->entry->mutex);
    lk_renewer_wake(&lock->registry->renewer);
    return before;
}

void renew_now(sqlock_lock *lock)
{
    int64_t before = make_due(lock);

    assert_becomes_true(has_moved(lock, before), PATIENCE_MS);
}

bool is_readable(int fd)
{
    struct pollfd ask = {.fd = fd, .events = POLLIN};

    return poll(&ask, 1, 0) == 1;
}

const char *nth_name(const struct fixture *fixture, char out[96], size_t i)
{
    (void)snprintf(out, 96, "%s/%zu", fixture->name, i);
    return out;
}

sqlock_lock *nth_lock(struct fixture *fixture, sqlock_registry *registry,
                      size_t i)
{
    char name[96];

    return lock_obtain(registry, nth_name(fixture, name, i));
}

const char *census_text(sqlock_registry *registry, sqlock_statement_kind kind)
{
    return registry->store.statements[kind].sent.text;
}

const char *census_array(const struct tap_event *event, unsigned *leases)
{
    *leases = 0;
    for (size_t i = 0; i < event->count; i++) {
        const sqlock_value *value = &event->parameters[i];

        if (value->type != SQLOCK_TEXT || value->text[0] != '[')
            continue;
        /* strstr() of a checked build measures the whole text each time. */
        for (size_t k = 0; k + 4 < value->length; k++)
            if (memcmp(&value->text[k], "\"k\":", 4) == 0)
                (*leases)++;
        return value->text;
    }
    return NULL;
}

static int count_renewal(void *context, const struct tap_event *event)
{
    struct census *census = context;
    const char *array;
    unsigned leases;

    if (event->call != TAP_EXECUTE || event->text != census->renewal)
        return 0;
    array = census_array(event, &leases);
    if (leases < atomic_load(&census->least))
        atomic_store(&census->least, leases);
    if (census->key != NULL && array != NULL &&
        strstr(array, census->key) != NULL)
        (void)atomic_fetch_add(&census->with_key, 1);
    (void)atomic_fetch_add(&census->renewals, 1);
    return 0;
}

void census_begin(struct census *census, sqlock_registry *registry)
{
    census->renewal = census_text(registry, SQLOCK_SQL_RENEW_MANY);
    atomic_store(&census->renewals, 0);
    atomic_store(&census->with_key, 0);
    atomic_store(&census->least, UINT32_MAX);
    tap_reset();
    tap_hooks(count_renewal, NULL, census);
}
