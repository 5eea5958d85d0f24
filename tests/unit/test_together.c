/*
 * test_together.c - claims and releases that wait for a place are sent in one
 * statement, and each has an outcome of its own
 *
 * The tests answer the statements, and hold up the first one until others wait.
 * The connections are SQLite's, on which nothing is sent; without that driver
 * the suite is empty.
 */
#include "unit.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lease/batch.h"
#include "lease/store.h"
#include "support/workers.h"

#define TTL_MS 5000
#define CLAIM SQLOCK_SQL_CLAIM_UNQUEUED
#define RELEASE SQLOCK_SQL_RELEASE_UNQUEUED

/* The keys of the tests: each is one of these characters. */
static const char keys[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "abcdefghijklmnopqrstuvwxyz!#$%&*+-";
#define FIRST '0' /* of the statement that is held up */
#define MEMBERS (sizeof keys - 1)

/* A thread that sends a statement about one key. */
struct member {
    struct worker worker;
    struct scene *scene;
    sqlock_statement_kind kind;
    char key[2];
    struct lk_item item;
    struct lk_batch batch;
    struct lk_run run;
    size_t rows;
    int64_t affected;
    int64_t token;
    atomic_bool has_ended;
    int rc;
};

struct scene {
    struct lk_store store;
    char path[64];
    struct member members[MEMBERS];
    size_t count;
};

/* --- the database --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char sent[2048];        /* "claims 01, release 2, " */
static atomic_uint executed;   /* statements that began */
static atomic_bool is_held;    /* the statement about FIRST waits */
static atomic_int first_gives; /* the result of the statement about FIRST */
static atomic_int many_give;   /* of a statement about several */
static _Atomic(char) taken;    /* no row is returned for that key */

/* Write the keys of a statement, a text or a JSON array, to out. */
static void read_keys(const char *text, char out[MEMBERS + 1])
{
    size_t count = 0;

    if (text[0] != '[')
        out[count++] = text[0];
    for (const char *at = strstr(text, "\"k\":\"");
         at != NULL && count < MEMBERS; at = strstr(at + 1, "\"k\":\""))
        out[count++] = at[5];
    out[count] = '\0';
}

static void note(const char *statement, const char *about)
{
    size_t length;

    pthread_mutex_lock(&mutex);
    length = strlen(sent);
    (void)snprintf(sent + length, sizeof sent - length, "%s %s, ", statement,
                   about);
    pthread_mutex_unlock(&mutex);
}

/* Return a row for each key but the one that is taken, the last one first.  The
 * token is the key's character. */
static int answer(const char *statement, const char *about,
                  sqlock_result *result)
{
    bool is_claim = statement[0] == 'c';
    bool is_many = statement[strlen(statement) - 1] == 's';
    int rc = sqlock_result_start(result, is_many && is_claim ? 2 : 1);

    for (size_t i = strlen(about); i-- > 0;) {
        const sqlock_value key = {
            .type = SQLOCK_TEXT, .text = &about[i], .length = 1};
        const sqlock_value token = {.type = SQLOCK_INT64, .integer = about[i]};

        if (about[i] == atomic_load(&taken))
            continue;
        if (rc == 0 && is_many)
            rc = sqlock_result_push(result, &key);
        if (rc == 0 && is_claim)
            rc = sqlock_result_push(result, &token);
        result->affected++;
    }
    return rc;
}

static int execute(void *connection, const sqlock_statement *statement,
                   const sqlock_value *parameters, size_t count,
                   int64_t deadline_ns, sqlock_result *result,
                   sqlock_error *err)
{
    char about[MEMBERS + 1];
    int rc = 0;

    (void)connection;
    (void)count;
    (void)deadline_ns;
    read_keys(parameters[0].text, about);
    note(statement->text, about);
    atomic_fetch_add(&executed, 1);
    while (about[0] == FIRST && atomic_load(&is_held))
        (void)check_pause(INT64_MAX);
    if (about[0] == FIRST)
        rc = atomic_load(&first_gives);
    else if (statement->text[strlen(statement->text) - 1] == 's')
        rc = atomic_load(&many_give);
    if (rc < 0)
        return sqlock_error_set(err, rc, 0, NULL, "so the test wants it");
    return answer(statement->text, about, result);
}

/* --- the scene --- */

static void add_statement(struct lk_store *store, sqlock_statement_kind kind,
                          const char *text)
{
    static const unsigned char order[] = {SQLOCK_P_KEY};
    struct lk_statement *statement = &store->statements[kind];

    statement->text = strdup(text);
    assert_non_null(statement->text);
    statement->sent.text = statement->text;
    statement->count = 1;
    statement->order = order;
}

static void open_database(struct scene *scene)
{
    static sqlock_driver driver;
    const struct lk_pool_options options = {
        .size = 2,
        .connect_timeout_ms = PATIENCE_MS,
        .statement_timeout_ms = PATIENCE_MS,
        .lock_timeout_ms = PATIENCE_MS,
    };
    char url[80];
    int fd;

    (void)snprintf(scene->path, sizeof scene->path,
                   "/tmp/sqlock-together.XXXXXX");
    fd = mkstemp(scene->path);
    assert_int_not_equal(fd, -1);
    (void)close(fd);
    (void)snprintf(url, sizeof url, "sqlite:%s", scene->path);
    assert_int_equal(lk_db_init(&scene->store.db, url, &options, NULL), 0);
    driver = *scene->store.db.driver;
    driver.execute = execute;
    driver.has_one_writer = false;
    scene->store.db.driver = &driver;
}

static int open_scene(void **state)
{
    static struct scene scene;

    memset(&scene, 0, sizeof scene);
    lk_store_init(&scene.store);
    open_database(&scene);
    scene.store.options.statement_timeout_ms = PATIENCE_MS;
    scene.store.together.places = 1;
    add_statement(&scene.store, CLAIM, "claim");
    add_statement(&scene.store, RELEASE, "release");
    add_statement(&scene.store, SQLOCK_SQL_CLAIM_UNQUEUED_MANY, "claims");
    add_statement(&scene.store, SQLOCK_SQL_RELEASE_UNQUEUED_MANY, "releases");
    sent[0] = '\0';
    atomic_store(&executed, 0);
    atomic_store(&is_held, true);
    atomic_store(&first_gives, 0);
    atomic_store(&many_give, 0);
    atomic_store(&taken, '\0');
    *state = &scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;

    lk_store_clear(&scene->store);
    (void)unlink(scene->path);
    return 0;
}

static unsigned queued(struct scene *scene)
{
    unsigned count;

    pthread_mutex_lock(&scene->store.together.mutex);
    count = scene->store.together.threads - scene->store.together.running;
    pthread_mutex_unlock(&scene->store.together.mutex);
    return count;
}

static int run_member(struct worker *worker)
{
    struct member *self = worker->context;

    sqlock_result result = {0};

    self->rc = lk_together_run(&self->scene->store, self->kind, &self->batch,
                               &self->run, &result, &worker->err);
    self->rows = result.rows;
    self->affected = result.affected;
    if (result.rows > 0)
        self->token = result.cells[0].integer;
    sqlock_result_clear(&result);
    atomic_store(&self->has_ended, true);
    return 0;
}

/* Make a member, which begin() lets run. */
static struct member *add(struct scene *scene, sqlock_statement_kind kind,
                          char key)
{
    struct member *member = &scene->members[scene->count++];
    struct lk_lease lease = {.name = "name", .ttl_ms = TTL_MS};

    member->scene = scene;
    member->kind = kind;
    member->key[0] = key;
    lease.key = member->key;
    lk_batch_of_one(&member->batch, &member->item, &lease,
                    check_deadline_ns(PATIENCE_MS));
    return member;
}

/* Let the first member run, which is held up; or another one, which waits. */
static void begin(struct member *member)
{
    unsigned before = queued(member->scene);

    worker_start(&member->worker, run_member, member);
    assert_becomes_true(member->key[0] == FIRST
                            ? atomic_load(&executed) == 1
                            : queued(member->scene) == before + 1,
                        PATIENCE_MS);
}

static struct member *add_and_begin(struct scene *scene,
                                    sqlock_statement_kind kind, char key)
{
    struct member *member = add(scene, kind, key);

    begin(member);
    return member;
}

/* Let a member run, while the first one is held up. */
static void run_to_its_end(struct member *member)
{
    worker_start(&member->worker, run_member, member);
    assert_becomes_true(atomic_load(&member->has_ended), PATIENCE_MS);
}

/* Claim the keys up to the last one. */
static void claim_to(struct scene *scene, char last)
{
    for (char key = FIRST; key <= last; key++)
        add_and_begin(scene, CLAIM, key);
}

/* Let all go on and end. */
static void end_all(struct scene *scene)
{
    const struct lk_together *together = &scene->store.together;

    atomic_store(&is_held, false);
    for (size_t i = 0; i < scene->count; i++)
        worker_join(&scene->members[i].worker);
    assert_int_equal(together->threads, 0);
    assert_int_equal(together->running, 0);
    assert_null(together->first);
    assert_null(together->last);
}

/* Assert that the call has changed the row, with the token of its own key. */
static void expect_done(const struct member *member)
{
    bool is_claim = member->kind == CLAIM;

    assert_lock_ok(member->rc, &member->worker.err);
    assert_int_equal(member->affected, 1);
    assert_int_equal(member->rows, is_claim ? 1 : 0);
    if (is_claim)
        assert_int_equal(member->token, member->key[0]);
    assert_true(member->run.is_write);
    assert_int_not_equal(member->run.sent_boot_ns, 0);
    assert_int_equal(member->batch.sent_boot_ns, member->run.sent_boot_ns);
    assert_true(member->batch.answered_boot_ns >= member->run.sent_boot_ns);
    assert_true(member->run.deadline_ns >= member->batch.deadline_ns);
}

/* Assert that the row was not changed, so that the caller goes on alone. */
static void expect_nothing(const struct member *member)
{
    assert_lock_ok(member->rc, &member->worker.err);
    assert_int_equal(member->affected, 0);
    assert_int_equal(member->rows, 0);
}

/* --- tests --- */

static void test_each_has_its_own_row(void **state)
{
    struct scene *scene = *state;

    add_and_begin(scene, CLAIM, FIRST);
    add_and_begin(scene, CLAIM, '3');
    add_and_begin(scene, RELEASE, '5');
    add_and_begin(scene, CLAIM, '1');
    add_and_begin(scene, RELEASE, '4');
    add_and_begin(scene, CLAIM, '2');
    end_all(scene);
    assert_string_equal(sent, "claim 0, claims 123, releases 45, ");
    for (size_t i = 0; i < scene->count; i++)
        expect_done(&scene->members[i]);
}
static void test_those_not_free_are_told_alone(void **state)
{
    struct scene *scene = *state;

    claim_to(scene, '4');
    atomic_store(&taken, '3');
    end_all(scene);
    assert_string_equal(sent, "claim 0, claims 1234, ");
    for (size_t i = 0; i < scene->count; i++)
        if (i == 3)
            expect_nothing(&scene->members[i]);
        else
            expect_done(&scene->members[i]);
}

/* A lease that is released late has the key of the one after it. */
static void test_a_key_is_sent_once(void **state)
{
    struct scene *scene = *state;
    int64_t done = 0;

    add_and_begin(scene, RELEASE, FIRST);
    add_and_begin(scene, RELEASE, '2');
    add_and_begin(scene, RELEASE, '1');
    add_and_begin(scene, RELEASE, '2');
    end_all(scene);
    assert_string_equal(sent, "release 0, releases 12, ");
    expect_done(&scene->members[2]);
    for (size_t i = 1; i <= 3; i += 2) {
        assert_lock_ok(scene->members[i].rc, &scene->members[i].worker.err);
        done += scene->members[i].affected;
    }
    assert_int_equal(done, 1);
}

static void test_a_statement_is_about_sixty_four_at_most(void **state)
{
    struct scene *scene = *state;

    for (size_t i = 0; i < MEMBERS; i++)
        add_and_begin(scene, CLAIM, keys[i]);
    end_all(scene);
    for (size_t i = 0; i < MEMBERS; i++)
        expect_done(&scene->members[i]);
    assert_int_equal(strchr(strstr(sent, "claims "), ',') -
                         (strstr(sent, "claims ") + strlen("claims ")),
                     64);
}

/* The refusal may be due to one of them. */
static void test_after_a_refusal_each_goes_on_alone(void **state)
{
    struct scene *scene = *state;

    claim_to(scene, '2');
    atomic_store(&many_give, SQLOCK_EDATABASE);
    end_all(scene);
    assert_string_equal(sent, "claim 0, claims 12, ");
    for (size_t i = 1; i < scene->count; i++) {
        expect_nothing(&scene->members[i]);
        assert_int_equal(scene->members[i].batch.items[0].lease.cap_ms, 0);
    }
}

/* The statement may yet arrive, and shorten the lease of each. */
static void test_each_is_in_doubt_without_an_answer(void **state)
{
    struct scene *scene = *state;

    claim_to(scene, '2');
    atomic_store(&many_give, SQLOCK_EUNCERTAIN);
    end_all(scene);
    for (size_t i = 1; i < scene->count; i++) {
        const struct member *member = &scene->members[i];

        assert_code(SQLOCK_EUNCERTAIN, member->rc, &member->worker.err);
        assert_int_not_equal(member->batch.sent_boot_ns, 0);
        assert_true(member->run.was_uncertain);
        assert_int_equal(member->item.lease.cap_ms, TTL_MS);
    }
}

/* Those who are patient get the time of a statement from then on. */
static void test_each_is_told_that_the_database_is_full(void **state)
{
    struct scene *scene = *state;

    scene->store.options.statement_timeout_ms = 2000;
    add_and_begin(scene, RELEASE, FIRST);
    for (int key = '1'; key <= '2'; key++) {
        struct member *member = add(scene, RELEASE, (char)key);

        member->run.patient_until_ns = check_deadline_ns(PATIENCE_MS);
        member->batch.deadline_ns = 1;
        begin(member);
    }
    atomic_store(&many_give, SQLOCK_ERESOURCE);
    end_all(scene);
    assert_contains(sent, "release 0, releases 12, ");
    for (size_t i = 1; i < scene->count; i++) {
        const struct member *member = &scene->members[i];

        assert_code(SQLOCK_ERESOURCE, member->rc, &member->worker.err);
        assert_true(member->batch.deadline_ns > 1);
        assert_true(member->run.deadline_ns > 1);
    }
}

/* Statements that began before a call was asked for say nothing of it; one that
 * is asked for just now is sent. */
static void test_an_outage_is_shared_by_those_asked_before(void **state)
{
    static const struct {
        int64_t asked_ns[2];
        int code;
    } rows[] = {
        {{10, 20}, SQLOCK_EUNREACHABLE},
        {{10, 40}, 0},
        {{40, 10}, 0},
        {{10, 0}, 0},
        {{0, 10}, 0},
    };
    struct scene *scene = *state;

    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        atomic_store(&executed, 0);
        atomic_store(&is_held, true);
        /* An answer would end the outage. */
        atomic_store(&first_gives, SQLOCK_EDATABASE);
        atomic_store(&scene->store.in_vain_since_ns, 0);
        memset(scene->members, 0, sizeof scene->members);
        scene->count = 0;
        add_and_begin(scene, CLAIM, FIRST);
        for (size_t i = 0; i < 2; i++) {
            struct member *member = add(scene, CLAIM, keys[i + 1]);

            member->run.asked_ns = rows[row].asked_ns[i];
            begin(member);
        }
        atomic_store(&scene->store.in_vain_since_ns, 30);
        end_all(scene);
        for (size_t i = 1; i <= 2; i++)
            assert_code(rows[row].code, scene->members[i].rc,
                        &scene->members[i].worker.err);
    }
}

static void test_whose_time_is_over_leaves_the_others(void **state)
{
    struct scene *scene = *state;
    struct member *late;

    add_and_begin(scene, CLAIM, FIRST);
    for (int key = '1'; key <= '3'; key++) {
        late = add(scene, CLAIM, key == '1' ? 'a' : key == '2' ? 'b' : 'c');
        late->batch.deadline_ns = check_deadline_ns(1);
        run_to_its_end(late);
        assert_code(SQLOCK_ERESOURCE, late->rc, &late->worker.err);
        add_and_begin(scene, CLAIM, (char)key);
    }
    end_all(scene);
    assert_string_equal(sent, "claim 0, claims 123, ");
}

/* Its deadline begins when it has a connection. */
static void test_whoever_was_patient_goes_on_alone(void **state)
{
    struct scene *scene = *state;
    struct member *patient;

    add_and_begin(scene, RELEASE, FIRST);
    patient = add(scene, RELEASE, '1');
    patient->batch.deadline_ns = 1;
    patient->run.patient_until_ns = check_deadline_ns(1);
    run_to_its_end(patient);
    expect_done(patient);
    end_all(scene);
    assert_string_equal(sent, "release 0, release 1, ");
}

static void test_nobody_waits_for_a_statement_that_hangs(void **state)
{
    struct scene *scene = *state;

    scene->store.together.places = 2;
    add_and_begin(scene, CLAIM, FIRST);
    for (int key = '1'; key <= '4'; key++)
        run_to_its_end(add(scene, CLAIM, (char)key));
    end_all(scene);
    for (size_t i = 0; i < scene->count; i++)
        expect_done(&scene->members[i]);
}

static uint64_t waits(struct scene *scene)
{
    uint64_t count = 0;

    for (size_t i = 0; i < SQLOCK_STATS_BUCKETS; i++)
        count += atomic_load(&scene->store.db.stats.pool_wait.buckets[i]);
    return count;
}

/* So that statements are about many: but not if there is none to wait for. */
static void test_a_crowd_waits_while_places_are_free(void **state)
{
    struct scene *scene = *state;

    scene->store.together.places = 2;
    scene->store.together.threads = 2; /* others */
    add_and_begin(scene, CLAIM, FIRST);
    assert_int_equal(waits(scene), 1); /* for a connection */
    run_to_its_end(add(scene, CLAIM, '1'));
    assert_int_equal(waits(scene), 3);
    scene->store.together.threads -= 2;
    end_all(scene);
}

static void test_nobody_waits_where_no_rows_are_returned(void **state)
{
    struct scene *scene = *state;

    add_and_begin(scene, CLAIM, FIRST);
    atomic_store(&scene->store.db.pool.returns_no_rows, true);
    run_to_its_end(add(scene, CLAIM, '1'));
    end_all(scene);
    assert_string_equal(sent, "claim 0, claim 1, ");
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown((function), open_scene, close_scene)

static const struct CMUnitTest tests[] = {
    TEST(test_each_has_its_own_row),
    TEST(test_those_not_free_are_told_alone),
    TEST(test_a_key_is_sent_once),
    TEST(test_a_statement_is_about_sixty_four_at_most),
    TEST(test_after_a_refusal_each_goes_on_alone),
    TEST(test_each_is_in_doubt_without_an_answer),
    TEST(test_each_is_told_that_the_database_is_full),
    TEST(test_an_outage_is_shared_by_those_asked_before),
    TEST(test_whose_time_is_over_leaves_the_others),
    TEST(test_whoever_was_patient_goes_on_alone),
    TEST(test_nobody_waits_for_a_statement_that_hangs),
    TEST(test_a_crowd_waits_while_places_are_free),
    TEST(test_nobody_waits_where_no_rows_are_returned),
};
const struct suite suite_together = SUITE("statements sent together", tests);

#else

const struct suite suite_together = {"statements sent together", NULL, 0};

#endif
