/*
 * shared.c - see renewer.h
 */
#include "renewer.h"

#include <stdio.h>

#include "lock/hold.h"
#include "lock/registry.h"
#include "support/tap.h"

sqlock_options renewer_options(const struct fixture *fixture)
{
    sqlock_options options = fixture_options(fixture);

    options.renew_period_ms = PERIOD_MS;
    return options;
}

void await_told(struct told *told, int code)
{
    assert_becomes_true(atomic_load(&told->times) > 0, PATIENCE_MS);
    assert_int_equal(atomic_load(&told->code), code);
}

sqlock_registry *renewer_registry(struct fixture *fixture)
{
    sqlock_options options = renewer_options(fixture);

    return fixture_registry(fixture, &options);
}

sqlock_registry *renewer_tapped(struct fixture *fixture)
{
    sqlock_options options = renewer_options(fixture);

    return fixture_tapped(fixture, &options);
}

sqlock_acquire_options renewed_options(uint32_t ttl_ms, struct told *told)
{
    sqlock_acquire_options options = told_options(ttl_ms, told);

    options.auto_renew = true;
    return options;
}

sqlock_acquire_options told_options(uint32_t ttl_ms, struct told *told)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.ttl_ms = ttl_ms;
    if (told != NULL) {
        options.on_lost = told_note;
        options.lost_context = told;
    }
    return options;
}

void take_briefly_at(sqlock_lock *lock, const sqlock_acquire_options *options,
                     const char *file, int line)
{
    int64_t end = check_deadline_ns(PATIENCE_MS);
    sqlock_error err = {0};
    int rc;

    do
        rc = sqlock_acquire(lock, 0, options, &err);
    while (rc == SQLOCK_ETIMEDOUT && check_pause(end));
    check_code(0, rc, &err, file, line);
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

    pthread_mutex_lock(&lk_mutex);
    deadline = lk_present(lock->slot)->lease.believed.until_boot_ns;
    pthread_mutex_unlock(&lk_mutex);
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

const char *statement_text(sqlock_registry *registry,
                           sqlock_statement_kind kind)
{
    return registry->store.statements[kind].sent.text;
}
