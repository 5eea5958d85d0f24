/*
 * forgetful.c - a server that may lose commits in a crash is told of by an
 * event (F61)
 */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>

#include "sqlock/event.h"

static struct {
    pthread_mutex_t mutex; /* guards the following fields */
    unsigned lines;        /* events about such a server */
    char last[512];        /* text of the last one */
} heard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void hear(void *context, const sqlock_event *event)
{
    (void)context;
    if (event->kind != SQLOCK_EVENT_FORGETFUL)
        return;
    pthread_mutex_lock(&heard.mutex);
    heard.lines++;
    (void)snprintf(heard.last, sizeof heard.last, "%s", event->text);
    pthread_mutex_unlock(&heard.mutex);
}

/* Return what the server's settings say: 0 if a crash loses no commit. */
static int64_t may_forget(struct fixture *f)
{
    if (f->database->bit == ON_SQLITE)
        return 0;
    if (f->database->bit == ON_POSTGRES)
        return sql_integer(&f->sql,
                           "SELECT COUNT(*) FROM pg_settings WHERE name IN"
                           " ('fsync', 'full_page_writes') AND setting ="
                           " 'off'");
    return sql_integer(&f->sql, "SELECT @@innodb_flush_log_at_trx_commit <> 1"
                                " OR (@@log_bin AND @@sync_binlog <> 1)");
}

TEST_ON(test_F61_a_server_that_forgets_is_told_at_open, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    char epoch[SQLOCK_EPOCH_SIZE] = "";
    sqlock_registry *registry;
    sqlock_lock *lock;
    bool is_told;

    options.on_event = hear;
    heard.lines = 0;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    /* The event is sent once, however many connections are opened. */
    lock_take_and_give(lock);
    (void)sqlock_registry_epoch(registry, epoch);
    /* MySQL grants nothing after a crash, but where it is a cluster. */
    is_told = may_forget(f) != 0 &&
              (f->database->bit != ON_MYSQL || epoch[0] == '\0');
    assert_int_equal(heard.lines, is_told);
    if (heard.lines > 0) {
        assert_contains(heard.last,
                        f->database->bit == ON_POSTGRES ? " = off" : " = ");
        assert_true(check_one_line(heard.last));
    }
    lock_drop(lock);
    registry_end(registry);
}
