/*
 * test_group.c - what each of several threads is told, whose statements are in
 * one transaction
 *
 * The driver is SQLite's, with an `execute` that the tests delay or let fail,
 * and a `commit` that they let fail.
 */
#include "support/test.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "db/driver.h"
#include "db/db.h"
#include "support/workers.h"

#define MEMBERS 4
#define INSERT "INSERT INTO t VALUES (1) RETURNING i"
#define GIVES "gives " /* and a code: what the statement comes to */
#define CROWD 66       /* more than a transaction has */

static const sqlock_driver *sqlite;
static atomic_bool is_held;  /* statements wait */
static atomic_uint executed; /* statements that began */
static int commit_gives;     /* a code, or 0 */
static atomic_uint in_one;   /* statements since the last commit */
static atomic_uint most_in_one;
static _Atomic int64_t least_deadline_ns; /* of the statements that began */
static _Atomic int64_t held_until_ns; /* those of a transaction wait so long */
static atomic_bool *begin_waits; /* and so does a begin, until this is true */
static struct {
    bool fails; /* the first one for others, although the database has begun */
    unsigned count, rollbacks;
    pid_t by[2];           /* threads */
    bool is_for_others[2]; /* it waits for the file for a moment only */
} begins;

static int held_execute(void *connection, const sqlock_statement *statement,
                        const sqlock_value *parameters, size_t count,
                        int64_t deadline_ns, sqlock_result *result,
                        sqlock_error *err)
{
    if (deadline_ns < atomic_load(&least_deadline_ns))
        atomic_store(&least_deadline_ns, deadline_ns);
    atomic_fetch_add(&executed, 1);
    while (atomic_load(&is_held) ||
           (atomic_load(&executed) > 1 &&
            check_deadline_ns(0) <= atomic_load(&held_until_ns)))
        (void)check_pause(INT64_MAX);
    atomic_fetch_add(&in_one, 1);
    if (strncmp(statement->text, GIVES, strlen(GIVES)) == 0)
        return sqlock_error_set(err, atoi(statement->text + strlen(GIVES)), 0,
                                NULL, "the statement failed");
    return sqlite->execute(connection, statement, parameters, count,
                           deadline_ns, result, err);
}

static int counted_begin(void *connection, int64_t deadline_ns,
                         sqlock_error *err)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);
    unsigned i = begins.count++;
    int rc;

    while (begin_waits != NULL && !atomic_load(begin_waits) &&
           check_pause(until))
        ;
    rc = sqlite->begin(connection, deadline_ns, err);
    atomic_store(&in_one, 0);
    if (i > 1)
        return rc;
    begins.by[i] = gettid();
    begins.is_for_others[i] = deadline_ns < check_deadline_ns(900);
    return i == 0 && rc == 0 && begins.fails && begins.is_for_others[0]
               ? sqlock_error_set(err, SQLOCK_ECANCELED, 0, NULL, "too late")
               : rc;
}

static int counted_rollback(void *connection, int64_t deadline_ns,
                            sqlock_error *err)
{
    begins.rollbacks++;
    return sqlite->rollback(connection, deadline_ns, err);
}

static int failing_commit(void *connection, int64_t deadline_ns,
                          sqlock_error *err)
{
    if (atomic_load(&in_one) > atomic_load(&most_in_one))
        atomic_store(&most_in_one, atomic_load(&in_one));
    if (commit_gives == 0)
        return sqlite->commit(connection, deadline_ns, err);
    (void)sqlite->rollback(connection, deadline_ns, NULL);
    return sqlock_error_set(err, commit_gives, 0, NULL, "the commit failed");
}

struct scene {
    struct lk_db db;
    char path[64];
};

/* A thread that sends a statement. */
struct member {
    struct scene *scene;
    struct worker worker;
    const char *text;
    int64_t deadline_ns;
    size_t rows;
    int rc;
    atomic_bool has_returned;
};

static int run_member(struct worker *worker)
{
    struct member *self = worker->context;
    const sqlock_statement statement = {.text = self->text};
    sqlock_result result = {0};
    struct lk_request request = {
        .statement = &statement,
        .deadline_ns = self->deadline_ns,
        .result = &result,
        .err = &worker->err,
    };

    self->rc =
        lk_group_run(&self->scene->db.group, &self->scene->db.pool, &request);
    self->rows = result.rows;
    sqlock_result_clear(&result);
    atomic_store(&self->has_returned, true);
    return 0;
}

static void begin(struct member *member, struct scene *scene, const char *text,
                  int64_t deadline_ns)
{
    member->scene = scene;
    member->text = text;
    member->deadline_ns = deadline_ns;
    atomic_store(&member->has_returned, false);
    worker_start(&member->worker, run_member, member);
}

static unsigned queued(struct scene *scene)
{
    unsigned count = 0;

    pthread_mutex_lock(&scene->db.group.mutex);
    for (const struct lk_crew_member *at = scene->db.group.first; at != NULL;
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

static struct scene *stage; /* of the test that runs */

static void open_scene(void)
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
    driver.begin = counted_begin;
    driver.commit = failing_commit;
    driver.rollback = counted_rollback;
    scene.db.driver = &driver;
    atomic_store(&is_held, false);
    atomic_store(&held_until_ns, 0);
    begin_waits = NULL;
    commit_gives = 0;
    memset(&begins, 0, sizeof begins);
    (void)run_plain(&scene, "CREATE TABLE t (i INTEGER)");
    stage = &scene;
}

static void close_scene(void)
{
    lk_db_clear(&stage->db);
    (void)unlink(stage->path);
}

/* Let the first statement run alone, until let_go(). */
static void begin_first(struct member *first, struct scene *scene)
{
    atomic_store(&executed, 0);
    atomic_store(&is_held, true);
    begin(first, scene, INSERT, check_deadline_ns(PATIENCE_MS));
    assert_becomes_true(atomic_load(&executed) == 1, PATIENCE_MS);
}

/* Let a statement wait for the next transaction. */
static void let_wait(struct member *member, struct scene *scene,
                     const char *text, int64_t deadline_ns)
{
    unsigned before = queued(scene);

    begin(member, scene, text, deadline_ns);
    assert_becomes_true(queued(scene) == before + 1 ||
                            atomic_load(&member->has_returned),
                        PATIENCE_MS);
}

static void let_go(struct member *members, size_t count)
{
    atomic_store(&is_held, false);
    for (size_t i = 0; i < count; i++)
        worker_join(&members[i].worker);
    assert_lock_ok(members[0].rc, &members[0].worker.err);
}

/* Assert what a member was told; a row only if it has inserted one. */
static void expect(const struct member *member, int code)
{
    assert_code(code, member->rc, &member->worker.err);
    assert_int_equal(member->rows, code == 0 ? 1 : 0);
}

/* While the first statement runs alone, the others gather: they make a group of
 * their own, whose commit gives that code. */
static void insert_together(struct scene *scene, int code)
{
    struct member members[1 + MEMBERS];

    begin_first(&members[0], scene);
    commit_gives = code;
    for (unsigned i = 1; i <= MEMBERS; i++)
        let_wait(&members[i], scene, INSERT, check_deadline_ns(PATIENCE_MS));
    let_go(members, 1 + MEMBERS);
    for (unsigned i = 1; i <= MEMBERS; i++)
        expect(&members[i], code);
}

#define SCENE_TEST(name_)                                                      \
    TEST_WITH(name_, .open = open_scene, .close = close_scene)

SCENE_TEST(test_a_commit_is_told_to_all)
{
    insert_together(stage, 0);
    assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"), 1 + MEMBERS);
}

SCENE_TEST(test_a_commit_that_fails_is_told_to_all)
{
    static const int codes[] = {SQLOCK_EUNCERTAIN, SQLOCK_ERESOURCE,
                                SQLOCK_EDATABASE};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        insert_together(stage, codes[i]);
        assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"), i + 1);
    }
}

/* Send an INSERT, a statement that gives the code, and another INSERT. */
static void insert_around(struct scene *scene, int code, int others_code)
{
    struct member members[4];
    char text[32];
    int64_t deadline_ns = check_deadline_ns(PATIENCE_MS);

    (void)snprintf(text, sizeof text, GIVES "%d", code);
    begin_first(&members[0], scene);
    let_wait(&members[1], scene, INSERT, deadline_ns);
    let_wait(&members[2], scene, text, deadline_ns);
    let_wait(&members[3], scene, INSERT, deadline_ns);
    let_go(members, 4);
    expect(&members[1], others_code);
    expect(&members[2], code);
    expect(&members[3], others_code);
}

SCENE_TEST(test_a_statement_that_is_refused_undoes_itself_only)
{
    static const int codes[] = {SQLOCK_EBUSY, SQLOCK_EDATABASE, SQLOCK_ESCHEMA,
                                SQLOCK_EINVAL};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        insert_around(stage, codes[i], 0);
        assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"),
                         3 * (i + 1));
    }
}

/* Nobody else waits, so there is no transaction around it. */
SCENE_TEST(test_a_statement_alone_is_told_what_it_came_to)
{
    static const int codes[] = {SQLOCK_EBUSY, SQLOCK_EDATABASE, SQLOCK_ERETRY};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct member member;
        char text[32];

        (void)snprintf(text, sizeof text, GIVES "%d", codes[i]);
        begin(&member, stage, text, check_deadline_ns(PATIENCE_MS));
        worker_join(&member.worker);
        expect(&member, codes[i]);
    }
}

/* The transaction is rolled back, and the connection stays. */
SCENE_TEST(test_a_statement_that_fails_undoes_all)
{
    static const int codes[] = {SQLOCK_ERETRY, SQLOCK_ERESOURCE, SQLOCK_ENOMEM};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        insert_around(stage, codes[i], codes[i]);
        assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"), i + 1);
    }
    assert_int_equal(lk_stats_count(&stage->db.stats, LK_COUNT_OPENED), 1);
}

SCENE_TEST(test_all_have_the_latest_deadline)
{
    int64_t deadline_ns = check_deadline_ns(PATIENCE_MS);
    struct member members[4];

    begin_first(&members[0], stage);
    let_wait(&members[1], stage, INSERT, deadline_ns);
    let_wait(&members[2], stage, INSERT, 3 * deadline_ns);
    let_wait(&members[3], stage, INSERT, 2 * deadline_ns);
    atomic_store(&least_deadline_ns, INT64_MAX);
    let_go(members, 4);
    for (size_t i = 1; i < 4; i++)
        expect(&members[i], 0);
    assert_true(atomic_load(&least_deadline_ns) >= 3 * deadline_ns);
}

SCENE_TEST(test_a_transaction_has_sixty_four_statements_at_most)
{
    static struct member members[1 + CROWD];

    begin_first(&members[0], stage);
    for (size_t i = 1; i <= CROWD; i++)
        let_wait(&members[i], stage, INSERT, check_deadline_ns(PATIENCE_MS));
    atomic_store(&most_in_one, 0);
    let_go(members, 1 + CROWD);
    for (size_t i = 1; i <= CROWD; i++)
        expect(&members[i], 0);
    assert_int_equal(atomic_load(&most_in_one), 64);
}

/* The late thread is the last one that waits, alone or behind another. */
SCENE_TEST(test_whose_time_is_over_leaves_the_others)
{
    struct member members[3];
    struct member late[2];

    begin_first(&members[0], stage);
    for (size_t i = 0; i < 2; i++) {
        begin(&late[i], stage, INSERT, check_deadline_ns(1));
        worker_join(&late[i].worker);
        expect(&late[i], SQLOCK_ECANCELED);
        let_wait(&members[i + 1], stage, INSERT,
                 check_deadline_ns(PATIENCE_MS));
    }
    let_go(members, 3);
    for (size_t i = 1; i < 3; i++)
        expect(&members[i], 0);
    assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"), 3);
}

/* The transaction has the late one's statement, but has not begun. */
SCENE_TEST(test_whose_time_is_over_leaves_what_has_not_begun)
{
    struct member members[3];

    begin_first(&members[0], stage);
    let_wait(&members[1], stage, INSERT, check_deadline_ns(PATIENCE_MS));
    let_wait(&members[2], stage, INSERT, check_deadline_ns(200));
    begin_waits = &members[2].has_returned;
    let_go(members, 3);
    expect(&members[1], 0);
    expect(&members[2], SQLOCK_ECANCELED);
    assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"), 2);
}

/* On a busy machine its time may be over before the transaction begins. */
SCENE_TEST(test_whose_time_is_over_within_the_transaction_is_done)
{
    struct member members[3];
    unsigned rounds = 0;

    do {
        int64_t deadline_ns = check_deadline_ns(500);

        begin_first(&members[0], stage);
        let_wait(&members[1], stage, INSERT, check_deadline_ns(PATIENCE_MS));
        let_wait(&members[2], stage, INSERT, deadline_ns);
        atomic_store(&held_until_ns, deadline_ns);
        let_go(members, 3);
        expect(&members[1], 0);
    } while (members[2].rc == SQLOCK_ECANCELED && ++rounds < 20);
    expect(&members[2], 0);
    assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"),
                     3 + 2 * rounds);
}

/* Let two wait behind the first one, and its begin for them fail.  Return
 * whether it has begun for them at all: it does so for a moment only. */
static bool begin_again(struct scene *scene)
{
    struct member members[3];

    begin_first(&members[0], scene);
    memset(&begins, 0, sizeof begins);
    begins.fails = true;
    for (size_t i = 1; i < 3; i++)
        let_wait(&members[i], scene, INSERT, check_deadline_ns(PATIENCE_MS));
    let_go(members, 3);
    for (size_t i = 1; i < 3; i++)
        expect(&members[i], 0);
    return begins.count == 2;
}

/* Whose own statement is done begins for the others, but does not wait for the
 * file; one of them does.  A begin that is told to have failed is rolled back:
 * the next statements would else run in its transaction, without a commit. */
SCENE_TEST(test_a_begin_that_fails_is_made_by_another)
{
    unsigned rounds = 1;

    while (!begin_again(stage) && rounds < 100)
        rounds++;
    assert_int_equal(begins.rollbacks, 1);
    assert_true(begins.is_for_others[0]);
    assert_false(begins.is_for_others[1]);
    assert_int_not_equal(begins.by[0], begins.by[1]);
    assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"), 3 * rounds);
}

SCENE_TEST(test_without_a_connection_nothing_is_done)
{
    struct lk_connection *connection;
    struct member member;

    assert_int_equal(lk_pool_take(&stage->db.pool,
                                  check_deadline_ns(PATIENCE_MS), &connection,
                                  NULL),
                     0);
    begin(&member, stage, INSERT, check_deadline_ns(50));
    worker_join(&member.worker);
    expect(&member, SQLOCK_ERESOURCE);
    lk_pool_give(&stage->db.pool, connection);
    assert_int_equal(run_plain(stage, "SELECT count(*) FROM t"), 0);
}

#endif
