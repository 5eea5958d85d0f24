/*
 * test_group.c - a transaction that fails with the statements of several
 * threads in it is told to each of them
 *
 * The driver is SQLite's, with an `execute` that the tests delay, and a
 * `commit` that they let fail.
 */
#include "unit.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "db/driver.h"
#include "db/db.h"
#include "support/workers.h"

#define MEMBERS 4

static const sqlock_driver *sqlite;
static atomic_bool is_held;  /* statements wait */
static atomic_uint executed; /* statements that began */
static int commit_gives;     /* a code, or 0 */

static int held_execute(void *connection, const sqlock_statement *statement,
                        const sqlock_value *parameters, size_t count,
                        int64_t deadline_ns, sqlock_result *result,
                        sqlock_error *err)
{
    atomic_fetch_add(&executed, 1);
    while (atomic_load(&is_held))
        (void)check_pause(INT64_MAX);
    return sqlite->execute(connection, statement, parameters, count,
                           deadline_ns, result, err);
}

static int failing_commit(void *connection, int64_t deadline_ns,
                          sqlock_error *err)
{
    if (commit_gives == 0)
        return sqlite->commit(connection, deadline_ns, err);
    (void)sqlite->rollback(connection, deadline_ns, NULL);
    return sqlock_error_set(err, commit_gives, 0, NULL, "the commit failed");
}

struct scene {
    struct lk_db db;
    char path[64];
};

/* A thread that inserts one row. */
struct member {
    struct scene *scene;
    struct worker worker;
    int rc;
};

static int insert(struct worker *worker)
{
    const sqlock_statement statement = {.text = "INSERT INTO t VALUES (1)"};
    struct member *self = worker->context;
    sqlock_result result = {0};
    struct lk_request request = {
        .statement = &statement,
        .deadline_ns = check_deadline_ns(PATIENCE_MS),
        .result = &result,
        .err = &worker->err,
    };

    self->rc =
        lk_group_run(&self->scene->db.group, &self->scene->db.pool, &request);
    sqlock_result_clear(&result);
    return 0;
}

static unsigned queued(struct scene *scene)
{
    unsigned count = 0;

    pthread_mutex_lock(&scene->db.group.mutex);
    for (const struct lk_request *at = scene->db.group.first; at != NULL;
         at = at->next)
        count++;
    pthread_mutex_unlock(&scene->db.group.mutex);
    return count;
}

static int64_t run_plain(struct scene *scene, const char *text)
{
    const sqlock_statement statement = {.text = text};
    struct lk_connection *connection;
    sqlock_result result = {0};
    int64_t answer = 0;

    assert_int_equal(lk_pool_take(&scene->db.pool,
                                  check_deadline_ns(PATIENCE_MS), &connection,
                                  NULL),
                     0);
    assert_int_equal(sqlite->execute(connection->state, &statement, NULL, 0,
                                     check_deadline_ns(PATIENCE_MS), &result,
                                     NULL),
                     0);
    if (result.rows > 0)
        answer = result.cells[0].integer;
    sqlock_result_clear(&result);
    lk_pool_give(&scene->db.pool, connection);
    return answer;
}

static int open_scene(void **state)
{
    static struct scene scene;
    static sqlock_driver driver;
    const struct lk_pool_options options = {
        .size = 1,
        .connect_timeout_ms = PATIENCE_MS,
        .statement_timeout_ms = PATIENCE_MS,
        .lock_timeout_ms = PATIENCE_MS,
    };
    char url[80];
    int fd;

    (void)snprintf(scene.path, sizeof scene.path, "/tmp/sqlock-group.XXXXXX");
    fd = mkstemp(scene.path);
    assert_int_not_equal(fd, -1);
    (void)close(fd);
    (void)snprintf(url, sizeof url, "sqlite:%s", scene.path);
    assert_int_equal(lk_db_init(&scene.db, url, &options, NULL), 0);
    sqlite = scene.db.driver;
    driver = *sqlite;
    driver.execute = held_execute;
    driver.commit = failing_commit;
    scene.db.driver = &driver;
    atomic_store(&is_held, false);
    commit_gives = 0;
    (void)run_plain(&scene, "CREATE TABLE t (i INTEGER)");
    *state = &scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;

    lk_db_clear(&scene->db);
    (void)unlink(scene->path);
    return 0;
}

/* While the first statement runs alone, the others gather: they make a group of
 * their own, whose commit gives that code. */
static void insert_together(struct scene *scene, int code)
{
    struct member members[1 + MEMBERS];

    atomic_store(&executed, 0);
    atomic_store(&is_held, true);
    commit_gives = code;
    for (unsigned i = 0; i <= MEMBERS; i++) {
        members[i].scene = scene;
        worker_start(&members[i].worker, insert, &members[i]);
        if (i == 0)
            assert_becomes_true(atomic_load(&executed) == 1, PATIENCE_MS);
    }
    assert_becomes_true(queued(scene) == MEMBERS, PATIENCE_MS);
    atomic_store(&is_held, false);
    for (unsigned i = 0; i <= MEMBERS; i++)
        worker_join(&members[i].worker);
    assert_int_equal(members[0].rc, 0);
    for (unsigned i = 1; i <= MEMBERS; i++)
        assert_code(code, members[i].rc, &members[i].worker.err);
}

static void test_a_commit_is_told_to_all(void **state)
{
    insert_together(*state, 0);
    assert_int_equal(run_plain(*state, "SELECT count(*) FROM t"), 1 + MEMBERS);
}

static void test_a_commit_that_fails_is_told_to_all(void **state)
{
    static const int codes[] = {SQLOCK_EUNCERTAIN, SQLOCK_ERESOURCE,
                                SQLOCK_EDATABASE};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        insert_together(*state, codes[i]);
        assert_int_equal(run_plain(*state, "SELECT count(*) FROM t"), i + 1);
    }
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown((function), open_scene, close_scene)

static const struct CMUnitTest tests[] = {
    TEST(test_a_commit_is_told_to_all),
    TEST(test_a_commit_that_fails_is_told_to_all),
};
const struct suite suite_group = SUITE("group commit", tests);

#else

const struct suite suite_group = {"group commit", NULL, 0};

#endif
