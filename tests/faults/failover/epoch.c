/*
 * epoch.c - a registry that outlives the primary reports the new epoch
 */
#include "failover.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sqlock/event.h"

static struct {
    sqlock_registry *registry;
    char epoch[SQLOCK_EPOCH_SIZE]; /* of the primary */
    pthread_mutex_t mutex;         /* guards the following fields */
    unsigned lines;
    char line[512];
} watched = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void note_line(void *context, const sqlock_event *event)
{
    (void)context;
    if (event->kind != SQLOCK_EVENT_EPOCH)
        return;
    pthread_mutex_lock(&watched.mutex);
    watched.lines++;
    (void)snprintf(watched.line, sizeof watched.line, "%s", event->text);
    pthread_mutex_unlock(&watched.mutex);
}

/* Return whether a call succeeds; it opens a session if the last has broken. */
static bool is_reached(void)
{
    sqlock_info *rows = NULL;
    size_t count = 0;
    int rc = list_all(watched.registry, &rows, &count, NULL);

    sqlock_info_free(rows, count);
    return rc == 0;
}

static void end_sessions(void)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, postgres, database_admin_url(postgres)),
                   &sql.err);
    assert_true(sql_integer(&sql, "SELECT count(pg_terminate_backend(pid)) FROM"
                                  " pg_stat_activity WHERE usename ="
                                  " 'sqlock_test'") > 0);
    sql_close(&sql);
}

void test_F57_a_new_session_is_no_new_epoch(void **state)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    char epoch[SQLOCK_EPOCH_SIZE] = "";
    sqlock_error err = {0};

    (void)state;
    options.table_prefix = PREFIX;
    options.on_event = note_line;
    assert_lock_ok(
        sqlock_registry_open(&watched.registry, cluster_url(), &options, &err),
        &err);
    assert_int_equal(sqlock_registry_epoch(watched.registry, watched.epoch), 0);
    /* Any system identifier, and the first timeline. */
    assert_contains(watched.epoch, "/00000001");
    end_sessions();
    assert_becomes_true(is_reached(), PATIENCE_MS);
    assert_int_equal(sqlock_registry_epoch(watched.registry, epoch), 0);
    assert_string_equal(epoch, watched.epoch);
    assert_int_equal(watched.lines, 0);
}

void test_F57_a_promotion_is_reported(void **state)
{
    char epoch[SQLOCK_EPOCH_SIZE] = "";
    sqlock_error err = {0};

    (void)state;
    assert_becomes_true(is_reached(), PATIENCE_MS);
    assert_int_equal(sqlock_registry_epoch(watched.registry, epoch), 1);
    assert_contains(epoch, "/00000002");
    assert_memory_equal(epoch, watched.epoch, strcspn(epoch, "/"));
    assert_lock_ok(sqlock_registry_close(watched.registry, &err), &err);
    assert_int_equal(watched.lines, 1);
    assert_contains(watched.line, epoch);
    assert_contains(watched.line, watched.epoch);
}
