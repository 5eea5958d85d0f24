/*
 * refused.c - an event tells which lease the database refuses to renew;
 * scenes/parts.scene has what becomes of the others in its statement
 */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sqlock/event.h"
#include "support/tap.h"

#define COUNT 3
#define BAD 1 /* the lock whose row is refused */

/* The last news of one lease whose renewal failed.  On a slow machine there may
 * be news of all, which got no answer in time. */
struct news {
    pthread_mutex_t mutex;
    int code;
    char key[SQLOCK_KEY_SIZE];
    char text[256];
};

static void hear(void *context, const sqlock_event *event)
{
    struct news *news = context;

    if (event->kind != SQLOCK_EVENT_NOT_RENEWED || event->key == NULL)
        return;
    pthread_mutex_lock(&news->mutex);
    news->code = event->code;
    (void)snprintf(news->key, sizeof news->key, "%s", event->key);
    (void)snprintf(news->text, sizeof news->text, "%s", event->text);
    pthread_mutex_unlock(&news->mutex);
}

/* Refuse each statement about the key. */
static int refuse(void *context, const struct tap_event *event)
{
    const char *key = context;

    for (size_t i = 0; i < event->count; i++)
        if (event->parameters[i].type == SQLOCK_TEXT &&
            memmem(event->parameters[i].text, event->parameters[i].length, key,
                   strlen(key)) != NULL)
            return SQLOCK_EDATABASE;
    return 0;
}

TEST_ON(test_a_renewal_that_is_refused_is_told, ON_ALL, IN_SQLOCK)
{
    static struct news news = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registry;
    sqlock_lock *locks[COUNT];

    options.on_event = hear;
    options.event_context = &news;
    options.event_level = SQLOCK_LEVEL_WARNING;
    registry = fixture_tapped(f, &options);
    how.auto_renew = true;
    how.ttl_ms = 8000 * SLOWNESS;
    for (size_t i = 0; i < COUNT; i++) {
        locks[i] = lock_obtain(registry, f->name);
        assert_ok(sqlock_acquire(locks[i], 0, &how, &f->err));
        fixture_next(f);
    }
    tap_hooks(refuse, NULL, (void *)(uintptr_t)sqlock_key(locks[BAD]));
    assert_becomes_true(!sqlock_is_held(locks[BAD]), PATIENCE_MS);
    tap_reset();
    pthread_mutex_lock(&news.mutex);
    assert_int_equal(news.code, SQLOCK_EDATABASE);
    assert_contains(news.text, "not sent");
    assert_string_equal(news.key, sqlock_key(locks[BAD]));
    assert_contains(news.text, sqlock_name(locks[BAD]));
    pthread_mutex_unlock(&news.mutex);
    for (size_t i = 0; i < COUNT; i++) {
        if (i == BAD)
            assert_fails(SQLOCK_EEXPIRED, sqlock_release(locks[i], &f->err));
        else
            lock_give(locks[i]);
        lock_drop(locks[i]);
    }
    registry_end(registry);
}
