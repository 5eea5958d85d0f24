/*
 * main.c - three members of a group of Oracle's MySQL: a member outside the
 * group grants nothing, and a commit that the group may have carried out gives
 * EUNCERTAIN
 *
 *     bash tests/faults/group/with.sh build/tests/group
 *
 * The servers serve for one run.  Each test goes on where the one before it has
 * stopped: the first member is the primary until it loses the majority.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mysql.h>

#include "support/cluster.h"
#include "support/login.h"
#include "support/server.h"

#define PREFIX "gr_"
#define MEMBERS 3
#define PRIMARY_WAIT_MS (4 * PATIENCE_MS)

static const struct database *const mysql = &databases[1];

static const char *variable(unsigned member, const char *what)
{
    return cluster_variable("group", "GROUP_%u_%s", member, what);
}

static sqlock_options the_options(void)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = PREFIX;
    options.ttl_ms = 120000; /* longer than the tests take */
    options.statement_timeout_ms = 30000;
    options.connect_timeout_ms = 5000;
    return options;
}

static int open_at(const char *url, sqlock_registry **registry,
                   sqlock_error *err)
{
    sqlock_options options = the_options();

    return sqlock_registry_open(registry, url, &options, err);
}

static sqlock_lock *obtain(sqlock_registry *registry, const char *name)
{
    sqlock_error err = {0};
    sqlock_lock *lock = NULL;

    assert_lock_ok(sqlock_obtain(&lock, registry, name, &err), &err);
    return lock;
}

static pid_t member_pid(unsigned member)
{
    return database_pid_in(variable(member, "PIDFILE"));
}

/* Get the first line that a member answers to a statement of the administrator,
 * "" for none; return whether the statement succeeded.  A client program sends
 * the statement, since the library would refuse some. */
static bool ask_member(unsigned member, char *out, size_t size,
                       const char *statement)
{
    char command[1024];
    FILE *shell;

    *out = '\0';
    (void)snprintf(command, sizeof command, "%s -e \"%s\" 2>/dev/null",
                   variable(member, "SHELL"), statement);
    shell = popen(command, "r"); /* NOLINT: of our own making */
    assert_non_null(shell);
    if (fgets(out, (int)size, shell) != NULL)
        out[strcspn(out, "\n")] = '\0';
    return pclose(shell) == 0;
}

static bool on_member(unsigned member, const char *statement)
{
    char answer[64];

    return ask_member(member, answer, sizeof answer, statement);
}

static bool is_writable(unsigned member)
{
    char text[16];

    (void)ask_member(member, text, sizeof text, "SELECT @@super_read_only");
    return strcmp(text, "0") == 0;
}

static bool has_state(unsigned member, const char *wanted)
{
    char state[32];

    ask_member(
        member, state, sizeof state,
        "SELECT COALESCE(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, "
        "NULL)), 'OFFLINE') FROM "
        "performance_schema.replication_group_members");
    return strcmp(state, wanted) == 0;
}

/* Print which members the group has, and their states, as a member sees it. */
static void print_group(unsigned member, const char *when)
{
    char members[256];

    (void)ask_member(
        member, members, sizeof members,
        "SELECT GROUP_CONCAT(CONCAT_WS(' ', MEMBER_PORT, MEMBER_STATE, "
        "MEMBER_ROLE) SEPARATOR ', ') FROM "
        "performance_schema.replication_group_members");
    print_message("member %u, %s: %s\n", member, when, members);
}

/* Return whether each member sees all members online.  On a busy machine a
 * member may be silent for so long that the others expel it; it then joins
 * again by itself. */
static bool is_group_whole(void)
{
    char count[8];

    for (unsigned member = 1; member <= MEMBERS; member++) {
        (void)ask_member(member, count, sizeof count,
                         "SELECT COUNT(*) FROM "
                         "performance_schema.replication_group_members WHERE "
                         "MEMBER_STATE = 'ONLINE'");
        if (atoi(count) != MEMBERS)
            return false;
    }
    return true;
}

static int set_up(void **state)
{
    (void)state;
    cluster_create_table(variable(1, "URL"), PREFIX);
    return 0;
}

static void test_the_primary_grants(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    sqlock_lock *lock;

    (void)state;
    assert_lock_ok(open_at(variable(1, "URL"), &registry, &err), &err);
    lock = obtain(registry, "granted");
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_release(lock, &err), &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
    assert_code(SQLOCK_EREADONLY, open_at(variable(2, "URL"), &registry, &err),
                &err);
}

static void check_one(const sqlock_check *checks, size_t count,
                      const char *found)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(checks[i].found, found) == 0) {
            assert_int_equal(checks[i].severity, SQLOCK_FINE);
            return;
        }
    fail_msg("no check says %s", found);
}

static void test_the_doctor_tells_of_the_group(void **state)
{
    sqlock_options options = the_options();
    sqlock_check *checks = NULL;
    sqlock_error err = {0};
    size_t count = 0;

    (void)state;
    assert_lock_ok(
        sqlock_diagnose(variable(1, "URL"), &options, &checks, &count, &err),
        &err);
    check_one(checks, count, "group_member_state = ONLINE");
    check_one(checks, count, "group_majority = YES");
    check_one(checks, count, "group_members_online = 3");
    check_one(checks, count,
              "group_replication_consistency = BEFORE_ON_PRIMARY_FAILOVER");
    sqlock_checks_free(checks, count);
}

/* A user without the right to read the member's state is refused, by the
 * registry and by doctor, and the message says what to grant. */
static void test_the_right_to_see_the_state_is_demanded(void **state)
{
    sqlock_options options = the_options();
    sqlock_registry *registry = NULL;
    sqlock_check *checks = NULL;
    sqlock_error err = {0};
    const char *url = variable(1, "URL");
    char other[512];
    size_t count = 0;

    (void)state;
    assert_true(on_member(1, "CREATE USER blind@'%' IDENTIFIED BY 'b'"));
    assert_true(on_member(1, "GRANT ALL ON sqlock.* TO blind@'%'"));
    (void)snprintf(other, sizeof other, "mysql://blind:b%s", strchr(url, '@'));
    assert_code(SQLOCK_EACCESS, open_at(other, &registry, &err), &err);
    assert_contains(err.message, "GRANT SELECT");
    assert_code(SQLOCK_EACCESS,
                sqlock_diagnose(other, &options, &checks, &count, &err), &err);
    assert_true(count > 0);
    assert_contains(checks[0].found, "GRANT SELECT");
    sqlock_checks_free(checks, count);
}

/* ------------------------------------------------------ a lost majority -- */

static void *commit(void *context)
{
    struct sql *by_hand = context;

    by_hand->err.code = sql_commit(by_hand);
    return NULL;
}

static void stop_the_others(void)
{
    for (unsigned member = 2; member <= MEMBERS; member++)
        server_stop_process(member_pid(member));
}

/* Return how many of the other members have the row. */
static unsigned have_row(const char *name)
{
    unsigned found = 0;

    for (unsigned member = 2; member <= MEMBERS; member++) {
        char query[160];
        char count[8];

        (void)snprintf(query, sizeof query,
                       "SELECT COUNT(*) FROM sqlock.gr_LOCK "
                       "WHERE LOCK_KEY = '%s'",
                       name);
        (void)ask_member(member, count, sizeof count, query);
        found += strcmp(count, "1") == 0;
    }
    return found;
}

/* The primary loses the other members before a claim and a COMMIT.  Both end
 * with error 3100, and the others may have them all the same: EUNCERTAIN. */
static void test_a_commit_without_a_majority_is_uncertain(void **state)
{
    const char *insert =
        "INSERT INTO gr_LOCK (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER) "
        "VALUES ('by-hand', 'R', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))";
    char key[SQLOCK_KEY_SIZE];
    struct sql by_hand;
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    sqlock_lock *lock;
    pthread_t thread;
    int rc;

    (void)state;
    assert_lock_ok(open_at(variable(1, "URL"), &registry, &err), &err);
    lock = obtain(registry, "claimed");
    (void)snprintf(key, sizeof key, "%s", sqlock_key(lock));
    assert_lock_ok(sql_open(&by_hand, mysql, variable(1, "URL")), &by_hand.err);
    assert_lock_ok(sql_begin(&by_hand), &by_hand.err);
    (void)sql_run(&by_hand, "%s", insert);
    assert_becomes_true(is_group_whole(), PRIMARY_WAIT_MS);
    stop_the_others();
    assert_int_equal(pthread_create(&thread, NULL, commit, &by_hand), 0);
    rc = sqlock_acquire(lock, 0, NULL, &err);
    (void)pthread_join(thread, NULL);
    print_group(1, "alone");
    server_go_on();
    print_message("commit: %s\nclaim: %s\n", by_hand.err.message, err.message);
    assert_code(SQLOCK_EUNCERTAIN, by_hand.err.code, &by_hand.err);
    assert_int_equal(by_hand.err.native, 3100);
    sql_close(&by_hand);
    assert_code(SQLOCK_EUNCERTAIN, rc, &err);
    (void)sqlock_registry_close(registry, &err);
    assert_becomes_true(is_writable(2) || is_writable(3), PRIMARY_WAIT_MS);
    print_message("%u and %u of 2 have carried them out\n", have_row("by-hand"),
                  have_row(key));
}

/* ------------------------------------------------- outside of the group -- */

/* The first member is killed, and started again outside the group.  It cannot
 * join, since it gets an address at which it cannot listen.  It is writable all
 * the same, but the library refuses it. */
static void test_a_member_that_does_not_join_grants_nothing(void **state)
{
    sqlock_options options = the_options();
    sqlock_registry *registry = NULL;
    sqlock_check *checks = NULL;
    sqlock_error err = {0};
    size_t count = 0;

    (void)state;
    assert_int_equal(kill(member_pid(1), SIGKILL), 0);
    assert_becomes_true(has_state(1, "OFFLINE"), PRIMARY_WAIT_MS);
    assert_true(on_member(1, "SET GLOBAL group_replication_local_address = "
                             "'127.0.0.1:1'"));
    assert_false(on_member(1, "START GROUP_REPLICATION"));
    assert_true(has_state(1, "OFFLINE"));
    assert_true(is_writable(1));
    assert_code(SQLOCK_EREADONLY, open_at(variable(1, "URL"), &registry, &err),
                &err);
    assert_contains(err.message, "OFFLINE");
    assert_code(
        SQLOCK_EREADONLY,
        sqlock_diagnose(variable(1, "URL"), &options, &checks, &count, &err),
        &err);
    assert_true(count > 0);
    assert_contains(checks[0].found, "OFFLINE");
    sqlock_checks_free(checks, count);
}

/* Connect to a member without the library, as an application does.  Fails the
 * test if that fails; the caller closes the connection. */
static MYSQL *connect_to(unsigned member)
{
    MYSQL *native = mysql_init(NULL);
    struct url_parts parts;

    assert_non_null(native);
    url_take_apart(variable(member, "URL"), &parts);
    (void)mysql_options(native, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(
            native, parts.host, parts.user, parts.password, parts.database,
            (unsigned)strtoul(parts.port, NULL, 10), NULL, 0) == NULL)
        fail_msg("member %u: %s", member, mysql_error(native));
    return native;
}

static int adopt(sqlock_registry *registry, MYSQL *native, sqlock_error *err)
{
    sqlock_tx *tx = NULL;
    int rc = sqlock_tx_adopt(&tx, registry, native, err);

    if (rc == 0)
        rc = sqlock_tx_rollback(tx, err);
    return rc;
}

/* The first member is outside the group, so that locks of a transaction there
 * exclude nobody at the other members: a connection to it is not adopted, one
 * to the primary is. */
static void test_a_connection_outside_the_group_is_not_adopted(void **state)
{
    unsigned primary = is_writable(2) ? 2 : 3;
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    sqlock_tx *tx = NULL;
    sqlock_lock *lock;
    MYSQL *native;

    (void)state;
    assert_lock_ok(open_at(variable(primary, "URL"), &registry, &err), &err);
    lock = obtain(registry, "adopted");
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    native = connect_to(1);
    assert_code(SQLOCK_EREADONLY, sqlock_tx_adopt(&tx, registry, native, &err),
                &err);
    assert_contains(err.message, "OFFLINE");
    assert_null(tx);
    assert_int_equal(mysql_query(native, "DO 1"), 0); /* still usable */
    mysql_close(native);
    native = connect_to(primary);
    assert_lock_ok(sqlock_tx_adopt(&tx, registry, native, &err), &err);
    assert_lock_ok(sqlock_tx_guard(tx, lock, &err), &err);
    assert_lock_ok(sqlock_tx_commit(tx, &err), &err);
    mysql_close(native);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}

/* The primary leaves the group, and is made writable: sessions that were opened
 * before that are refused, too. */
static void test_a_member_that_leaves_grants_nothing(void **state)
{
    unsigned primary = is_writable(2) ? 2 : 3;
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    sqlock_lock *lock;
    MYSQL *native;

    (void)state;
    assert_lock_ok(open_at(variable(primary, "URL"), &registry, &err), &err);
    lock = obtain(registry, "left");
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    native = connect_to(primary);
    assert_lock_ok(adopt(registry, native, &err), &err);
    assert_true(on_member(primary, "STOP GROUP_REPLICATION; "
                                   "SET GLOBAL super_read_only = OFF; "
                                   "SET GLOBAL read_only = OFF"));
    assert_true(is_writable(primary));
    check_sleep(1100); /* the library keeps the state for a second */
    assert_code(SQLOCK_EREADONLY, adopt(registry, native, &err), &err);
    assert_contains(err.message, "OFFLINE");
    mysql_close(native);
    assert_code(SQLOCK_EREADONLY, sqlock_renew(lock, 0, &err), &err);
    lock = obtain(registry, "late");
    assert_code(SQLOCK_EREADONLY, sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_contains(err.message, "OFFLINE");
    (void)sqlock_registry_close(registry, &err);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_primary_grants),
        cmocka_unit_test(test_the_doctor_tells_of_the_group),
        cmocka_unit_test(test_the_right_to_see_the_state_is_demanded),
        cmocka_unit_test(test_a_commit_without_a_majority_is_uncertain),
        cmocka_unit_test(test_a_member_that_does_not_join_grants_nothing),
        cmocka_unit_test(test_a_connection_outside_the_group_is_not_adopted),
        cmocka_unit_test(test_a_member_that_leaves_grants_nothing),
    };
    static const struct cluster_suite suite = {
        .program = {.name = "group",
                    .about = "what members of a MySQL group grant"},
        .group = {.tests = tests,
                  .count = sizeof tests / sizeof *tests,
                  .test_seconds = TEST_SECONDS,
                  .open = set_up,
                  .is_sequence = true},
        .database = &databases[1],
    };

    return cluster_main(&suite, argc, argv);
}
