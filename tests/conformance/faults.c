/*
 * faults.c - another server answers, or a standby that was promoted (F57)
 */
#include "conformance.h"

#include <stdatomic.h>
#include <string.h>

#include "sqlock/admin.h"
#include "sqlock/event.h"
#include "support/tap.h"

static bool recovers(struct fixture *f, sqlock_registry *registry)
{
    sqlock_lock *lock = lock_obtain(registry, "recovery");
    int rc = lock_try(lock, 0, 0, &f->err);

    if (rc == 0)
        rc = sqlock_release(lock, &f->err);
    (void)sqlock_drop(lock, NULL);
    return rc == 0;
}

struct news {
    atomic_uint changes; /* events that name "epoch-two" */
};

static void note_news(void *context, const sqlock_event *event)
{
    struct news *news = context;

    if (strstr(event->text, "epoch-two") != NULL)
        (void)atomic_fetch_add(&news->changes, 1);
}

static int break_off(void *context, const struct tap_event *event)
{
    atomic_bool *is_contended = context;

    return event->call == TAP_EXECUTE && atomic_exchange(is_contended, false)
               ? SQLOCK_EUNREACHABLE
               : 0;
}

/* Break the connection, so that a new session is opened, which reports that
 * epoch.  Return how many changes of the epoch the registry has counted. */
static uint32_t reconnect(struct fixture *f, sqlock_registry *registry,
                          const char *epoch)
{
    char last[SQLOCK_EPOCH_SIZE];
    atomic_bool is_contended = true;
    uint32_t changes;

    tap_epoch(epoch);
    tap_hooks(break_off, NULL, &is_contended);
    assert_true(recovers(f, registry));
    tap_hooks(NULL, NULL, NULL);
    assert_false(atomic_load(&is_contended));
    changes = sqlock_registry_epoch(registry, last);
    assert_string_equal(last, epoch);
    return changes;
}

TEST(test_F57_a_promotion_is_noticed_and_told)
{
    sqlock_options options = fixture_options(f);
    struct news news = {0};
    sqlock_registry *registry;
    uint32_t before;

    options.on_event = note_news;
    options.event_context = &news;
    registry = fixture_tapped(f, &options);
    before = reconnect(f, registry, "epoch-one");
    assert_int_equal(reconnect(f, registry, "epoch-one"), before);
    assert_int_equal(atomic_load(&news.changes), 0);
    assert_int_equal(reconnect(f, registry, "epoch-two"), before + 1);
    assert_int_equal(atomic_load(&news.changes), 1);
    tap_epoch("");
    registry_end(registry);
}

/* A registry that only reads learns of it, too, from the first session that it
 * opens after a failover. */
TEST_STOPPING_IN(test_F57_who_only_reads_is_told_of_a_grace, ON_SERVERS,
                 IN_SQLOCK)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    atomic_bool is_contended = true;
    sqlock_info *rows;
    size_t count;

    assert_ok(list_all(registry, &rows, &count, &f->err));
    sqlock_info_free(rows, count);
    assert_int_equal(sqlock_registry_grace_ms(registry), 0);
    (void)sql_run(&f->sql, "UPDATE %s_SERVER SET GRANTS_FROM = '2100-01-01'",
                  f->table);
    tap_hooks(break_off, NULL, &is_contended);
    assert_ok(list_all(registry, &rows, &count, &f->err));
    tap_hooks(NULL, NULL, NULL);
    sqlock_info_free(rows, count);
    assert_true(sqlock_registry_grace_ms(registry) > 0);
    (void)sql_run(&f->sql, "UPDATE %s_SERVER SET GRANTS_FROM = SINCE",
                  f->table);
    check_sleep(1100); /* the row is read once a second */
    assert_ok(list_all(registry, &rows, &count, &f->err));
    sqlock_info_free(rows, count);
    assert_int_equal(sqlock_registry_grace_ms(registry), 0);
    registry_end(registry);
}
