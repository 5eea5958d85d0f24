/*
 * together.c - see together.h
 */
#include "together.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the database --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
char sent[2048];
atomic_uint executed;
atomic_bool is_held;
atomic_int first_gives;
atomic_int many_give;
atomic_int many_times;
_Atomic(char) taken;

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
    if (rc < 0 && atomic_load(&many_times) > 0 &&
        atomic_fetch_sub(&many_times, 1) == 1)
        atomic_store(&many_give, 0);
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
        .lock_timeout_ms = PATIENCE_MS / 10,
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

struct scene *stage;

void open_scene(void)
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
    atomic_store(&many_times, 0);
    atomic_store(&taken, '\0');
    stage = &scene;
}

void close_scene(void)
{
    lk_store_clear(&stage->store);
    (void)unlink(stage->path);
}

unsigned queued(struct scene *scene)
{
    unsigned count;

    pthread_mutex_lock(&scene->store.together.mutex);
    count = scene->store.together.members - scene->store.together.leaders;
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

struct member *add(struct scene *scene, sqlock_statement_kind kind, char key)
{
    struct member *member = &scene->members[scene->count++];
    struct lk_lease lease = {.name = "name", .asked.ttl_ms = TTL_MS};

    member->scene = scene;
    member->kind = kind;
    member->key[0] = key;
    lease.key = member->key;
    lk_batch_of_one(&member->batch, &member->item, &lease,
                    check_deadline_ns(PATIENCE_MS));
    return member;
}

void begin(struct member *member)
{
    unsigned before = queued(member->scene);

    worker_start(&member->worker, run_member, member);
    assert_becomes_true(member->key[0] == FIRST
                            ? atomic_load(&executed) == 1
                            : queued(member->scene) == before + 1,
                        PATIENCE_MS);
}

struct member *add_and_begin(struct scene *scene, sqlock_statement_kind kind,
                             char key)
{
    struct member *member = add(scene, kind, key);

    begin(member);
    return member;
}

void run_to_its_end(struct member *member)
{
    worker_start(&member->worker, run_member, member);
    assert_becomes_true(atomic_load(&member->has_ended), PATIENCE_MS);
}

void claim_to(struct scene *scene, char last)
{
    for (char key = FIRST; key <= last; key++)
        add_and_begin(scene, CLAIM, key);
}

void end_all(struct scene *scene)
{
    const struct lk_crew *together = &scene->store.together;

    atomic_store(&is_held, false);
    for (size_t i = 0; i < scene->count; i++)
        worker_join(&scene->members[i].worker);
    assert_int_equal(together->members, 0);
    assert_int_equal(together->leaders, 0);
    assert_null(together->first);
    assert_null(together->last);
}

void expect_done(const struct member *member)
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

void expect_nothing(const struct member *member)
{
    assert_lock_ok(member->rc, &member->worker.err);
    assert_int_equal(member->affected, 0);
    assert_int_equal(member->rows, 0);
}

#endif
