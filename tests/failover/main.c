/*
 * main.c - one failover of PostgreSQL: the primary is killed under guarded
 * writes of several processes, and a standby is promoted
 *
 *     bash tests/failover/with.sh build/tests/failover
 *
 * One run uses the servers up; with.sh runs it with new ones, once for each kind
 * of standby, which it gives as the last argument: sync or async.
 */
#include "failover.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS 4
#define ENOUGH 25 /* writes before and after, over all */
#define PREFIX "fo_"

static const struct database *const postgres = &databases[0];
static bool is_synchronous = true;
static struct notes *notes;
static pid_t writers[WRITERS_MAX];
static char both[1024]; /* URL of primary and standby */

static const char *variable(const char *what)
{
    static char name[64];
    const char *value;

    (void)snprintf(name, sizeof name, "SQLOCK_TEST_POSTGRES_%s", what);
    value = getenv(name);
    if (value == NULL)
        fail_msg("%s is not set: SQLOCK_TEST_SERVERS=standby", name);
    return value;
}

static const char *standby(const char *what)
{
    char name[32];

    (void)snprintf(name, sizeof name, "%s_%s",
                   is_synchronous ? "SYNC" : "ASYNC", what);
    return variable(name);
}

/* One URL for the servers of two: the second's host and port in the list. */
static void join(const char *first, const char *second)
{
    const char *rest = strrchr(first, '/');
    const char *at = strrchr(second, '@') + 1;

    (void)snprintf(both, sizeof both, "%.*s,%.*s%s", (int)(rest - first), first,
                   (int)(strrchr(second, '/') - at), at, rest);
}

static void run_sql(const char *url, const char *const *statements)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, postgres, url), &sql.err);
    for (; *statements != NULL; statements++)
        (void)sql_run(&sql, "%s", *statements);
    sql_close(&sql);
}

static int set_up(void **state)
{
    static const char *const tables[] = {
        "CREATE TABLE counter (n BIGINT NOT NULL)",
        "INSERT INTO counter VALUES (0)",
        "CREATE TABLE written (number BIGINT PRIMARY KEY, token BIGINT NOT "
        "NULL,"
        " writer INT NOT NULL)",
        NULL,
    };
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    (void)state;
    join(database_url(postgres), standby("URL"));
    run_sql(database_url(postgres), tables);
    options.table_prefix = PREFIX;
    assert_lock_ok(
        sqlock_schema_create(both, &options, SQLOCK_LAYOUT_SQLOCK, &err), &err);
    notes = notes_make();
    notes->port = strtol(strrchr(standby("URL"), ':') + 1, NULL, 10);
    return 0;
}

static int open_at(const char *url, sqlock_registry **registry,
                   sqlock_error *err)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = PREFIX;
    options.connect_timeout_ms = 2000;
    return sqlock_registry_open(registry, url, &options, err);
}

/* Whether the standby has what was made on the primary. */
static bool has_table(const char *url)
{
    struct sql sql;
    int64_t count = 0;

    if (sql_open(&sql, postgres, url) == 0)
        count = sql_integer(&sql, "SELECT count(*) FROM pg_class WHERE"
                                  " relname = 'fo_lock'");
    sql_close(&sql);
    return count == 1;
}

static void test_F59_no_decision_comes_from_a_standby(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};

    (void)state;
    assert_becomes_true(has_table(standby("URL")), PATIENCE_MS);
    assert_code(SQLOCK_EREADONLY, open_at(standby("URL"), &registry, &err),
                &err);
    assert_null(registry);
}

static void test_F59_a_list_of_hosts_leads_to_the_primary(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};
    char forth[1024];

    (void)state;
    (void)snprintf(forth, sizeof forth, "%s", both);
    join(standby("URL"), database_url(postgres));
    assert_lock_ok(open_at(both, &registry, &err), &err);
    (void)snprintf(both, sizeof both, "%s", forth);
    assert_lock_ok(sqlock_obtain(&lock, registry, "list", &err), &err);
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_release(lock, &err), &err);
    assert_lock_ok(sqlock_drop(lock, &err), &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}

/* --- the failover --- */

static unsigned count_writes(bool late)
{
    unsigned count = 0;

    for (size_t i = 0; i < WRITERS_MAX; i++)
        count += late ? notes->writers[i].late : notes->writers[i].count;
    return count;
}

/* End a server and its children at once, and keep it from coming back. */
static void kill_primary(void)
{
    pid_t server = database_pid(postgres);
    struct dirent *entry;
    char path[512];
    DIR *directory;
    int file;

    (void)snprintf(path, sizeof path, "%s/primary/hold", variable("CLUSTER"));
    file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    (void)close(file);
    assert_true(server > 1);
    /* Stopped, so that the list of its children does not change. */
    assert_int_equal(kill(server, SIGSTOP), 0);
    directory = opendir("/proc");
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        long pid = strtol(entry->d_name, NULL, 10);
        long parent = 0;
        FILE *stat;

        (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        stat = pid > 1 ? fopen(path, "r") : NULL;
        if (stat == NULL)
            continue;
        if (fscanf(stat, "%*d (%*[^)]) %*c %ld", &parent) == 1 &&
            parent == server)
            (void)kill((pid_t)pid, SIGKILL);
        (void)fclose(stat);
    }
    (void)closedir(directory);
    assert_int_equal(kill(server, SIGKILL), 0);
}

static void promote(void)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, postgres, standby("ADMIN_URL")), &sql.err);
    (void)sql_integer(&sql, "SELECT pg_promote(true, 60)::int");
    /* Whoever it waited for does not come back. */
    (void)sql_run(&sql, "ALTER SYSTEM SET synchronous_standby_names = ''");
    (void)sql_integer(&sql, "SELECT pg_reload_conf()::int");
    sql_close(&sql);
}

/* Cut the standby off, so that it misses what is acknowledged from now on. */
static void cut_off(void)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, postgres, standby("ADMIN_URL")), &sql.err);
    (void)sql_run(&sql, "ALTER SYSTEM SET primary_conninfo = ''");
    (void)sql_integer(&sql, "SELECT pg_reload_conf()::int");
    assert_becomes_true(
        sql_integer(&sql, "SELECT count(*) FROM pg_stat_wal_receiver") == 0,
        PATIENCE_MS);
    sql_close(&sql);
}

static void start_writers(void)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        assert_true(writers[i] >= 0);
        if (writers[i] == 0) {
            write_on(&notes->writers[i], notes, both, PREFIX, i);
            _exit(0);
        }
    }
}

static void end_writers(void)
{
    notes->over = 1;
    for (unsigned i = 0; i < WRITERS; i++) {
        int status = -1;

        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_int_equal(status, 0);
    }
}

static void await_writes(bool late, unsigned count)
{
    if (!wait_until(count_writes(late) >= count, PATIENCE_MS))
        fail_msg("no more writes: %s", notes->writers[0].message);
}

static void test_F57_a_failover_under_guarded_writes(void **state)
{
    (void)state;
    start_writers();
    await_writes(false, ENOUGH);
    if (!is_synchronous) {
        cut_off();
        await_writes(false, count_writes(false) + ENOUGH);
    }
    kill_primary();
    promote();
    await_writes(true, ENOUGH);
    end_writers();
    for (unsigned i = 0; i < WRITERS; i++)
        print_message("writer %u: %u writes, %u calls refused, %u commits not "
                      "known, last %d: %s\n",
                      i, notes->writers[i].count, notes->writers[i].refused,
                      notes->writers[i].unknown, notes->writers[i].last,
                      notes->writers[i].message);
}

/* --- what is left --- */

static int by_token(const void *a, const void *b)
{
    const struct write *left = a;
    const struct write *right = b;

    return (left->token > right->token) - (left->token < right->token);
}

/* All that was acknowledged, by token. */
static size_t collect(struct write *writes)
{
    size_t count = 0;

    for (size_t i = 0; i < WRITERS_MAX; i++) {
        const struct writer *writer = &notes->writers[i];

        memcpy(writes + count, writer->writes,
               writer->count * sizeof writer->writes[0]);
        count += writer->count;
    }
    qsort(writes, count, sizeof *writes, by_token);
    return count;
}

static void test_F57_no_token_is_given_twice(void **state)
{
    struct write *writes = calloc(WRITERS_MAX * WRITES_MAX, sizeof *writes);
    size_t count;

    (void)state;
    assert_non_null(writes);
    count = collect(writes);
    for (size_t i = 1; i < count; i++)
        assert_less(writes[i - 1].token, writes[i].token);
    free(writes);
}

/* What was acknowledged is there; after an asynchronous failover, all but the
 * last ones before it. */
static void test_F57_acknowledged_writes_are_there(void **state)
{
    struct write *writes = calloc(WRITERS_MAX * WRITES_MAX, sizeof *writes);
    struct sql sql;
    size_t count;
    size_t lost = 0;

    (void)state;
    assert_non_null(writes);
    count = collect(writes);
    assert_lock_ok(sql_open(&sql, postgres, standby("URL")), &sql.err);
    for (size_t i = 0; i < count; i++) {
        bool is_there =
            sql_integer(&sql,
                        "SELECT count(*) FROM written WHERE number = %lld AND"
                        " token = %lld",
                        (long long)writes[i].number,
                        (long long)writes[i].token) == 1;

        /* Behind a lost one there are lost ones only, until the failover. */
        if (writes[i].is_late || lost == 0 || !is_there)
            lost += !is_there;
        else
            fail_msg("a write was lost, and a later one was not");
        assert_false(writes[i].is_late && !is_there);
    }
    sql_close(&sql);
    free(writes);
    print_message("%zu writes acknowledged, %zu lost\n", count, lost);
    if (is_synchronous)
        assert_int_equal(lost, 0);
    else
        assert_true(lost >= ENOUGH); /* as it was made to */
}

static void test_F57_no_write_comes_after_its_successors(void **state)
{
    struct sql sql;

    (void)state;
    assert_lock_ok(sql_open(&sql, postgres, standby("URL")), &sql.err);
    assert_int_equal(
        sql_integer(&sql, "SELECT count(*) FROM (SELECT token, lag(token) OVER "
                          "(ORDER BY number) AS last FROM written) AS w "
                          "WHERE token <= last"),
        0);
    assert_int_equal(sql_integer(&sql, "SELECT n FROM counter"),
                     sql_integer(&sql, "SELECT count(*) FROM written"));
    sql_close(&sql);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F59_no_decision_comes_from_a_standby),
        cmocka_unit_test(test_F59_a_list_of_hosts_leads_to_the_primary),
        cmocka_unit_test(test_F57_a_failover_under_guarded_writes),
        cmocka_unit_test(test_F57_no_token_is_given_twice),
        cmocka_unit_test(test_F57_acknowledged_writes_are_there),
        cmocka_unit_test(test_F57_no_write_comes_after_its_successors),
    };

    if (argc > 1)
        is_synchronous = strcmp(argv[argc - 1], "async") != 0;
    print_message("failover to the %s standby\n",
                  is_synchronous ? "synchronous" : "asynchronous");
    return cmocka_run_group_tests(tests, set_up, NULL) == 0 ? 0 : 1;
}
