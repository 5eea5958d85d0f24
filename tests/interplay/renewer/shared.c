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
#include "support/workers.h"

sqlock_options renewer_options(const struct fixture *fixture)
{
    sqlock_options options = fixture_options(fixture);

    options.renew_period_ms = PERIOD_MS;
    return options;
}

sqlock_registry *registry_within(struct fixture *fixture, uint32_t statement_ms)
{
    sqlock_options options = fixture_options(fixture);

    options.statement_timeout_ms = statement_ms;
    return fixture_tapped(fixture, &options);
}

void expect_freed(struct fixture *fixture, const char *name)
{
    assert_becomes_true(fixture_is_free(fixture, name), PATIENCE_MS);
}

int take_and_give(struct worker *worker)
{
    sqlock_lock *lock = worker->context;

    worker_expect(worker, 0,
                  lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &worker->err));
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    return 0;
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
    deadline = lock->entry->lease.deadline_boot_ns;
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
    lock->entry->lease.deadline_boot_ns -=
        (int64_t)lock->entry->lease.ttl_ms / 4 * LK_NS_PER_MS;
    before = lock->entry->lease.deadline_boot_ns;
    pthread_mutex_unlock(&lock->entry->mutex);
    lk_handler_wake(&lock->registry->renewer.handler);
    return before;
}

void renew_now(sqlock_lock *lock)
{
    int64_t before = make_due(lock);

    assert_becomes_true(has_moved(lock, before), PATIENCE_MS);
}

bool is_alone(sqlock_lock *lock)
{
    bool alone;

    pthread_mutex_lock(&lock->entry->mutex);
    alone = lock->entry->renewals == NULL;
    pthread_mutex_unlock(&lock->entry->mutex);
    return alone;
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

static int count_text(void *context, const struct tap_event *event)
{
    struct spy *spy = context;

    if (event->text == spy->text)
        (void)atomic_fetch_add(&spy->times, 1);
    return 0;
}

void spy_begin(struct spy *spy, sqlock_registry *registry,
               sqlock_statement_kind kind)
{
    spy->text = census_text(registry, kind);
    atomic_store(&spy->times, 0);
    tap_hooks(count_text, NULL, spy);
}

static void hold_up(struct barrier *barrier, const struct tap_event *event)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);

    if (event->text != barrier->text ||
        !atomic_exchange(&barrier->is_armed, false))
        return;
    atomic_store(&barrier->is_up, true);
    while (!atomic_load(&barrier->may_go) && check_pause(until))
        ;
}

static int barrier_before(void *context, const struct tap_event *event)
{
    struct barrier *barrier = context;

    if (!barrier->is_after)
        hold_up(barrier, event);
    return 0;
}

static int barrier_after(void *context, const struct tap_event *event, int rc)
{
    struct barrier *barrier = context;

    if (barrier->is_after)
        hold_up(barrier, event);
    if (event->text == barrier->text && atomic_load(&barrier->may_go))
        atomic_store(&barrier->has_passed, true);
    return rc;
}

void barrier_begin(struct barrier *barrier, sqlock_registry *registry,
                   sqlock_statement_kind kind, bool is_after)
{
    memset(barrier, 0, sizeof *barrier);
    barrier->text = census_text(registry, kind);
    barrier->is_after = is_after;
    atomic_store(&barrier->is_armed, true);
    tap_hooks(barrier_before, barrier_after, barrier);
}

const char *census_array(const struct tap_event *event, unsigned *leases)
{
    *leases = 0;
    for (size_t i = 0; i < event->count; i++) {
        const sqlock_value *value = &event->parameters[i];

        if (value->type != SQLOCK_TEXT || value->text[0] != '[')
            continue;
        /* Not strstr(): under a sanitizer, each call reads the whole text. */
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
    if (leases > atomic_load(&census->most))
        atomic_store(&census->most, leases);
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
    atomic_store(&census->most, 0);
    tap_reset();
    tap_hooks(count_renewal, NULL, census);
}
