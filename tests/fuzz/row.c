/*
 * row.c - rows that another program has written: whatever is in one, each call
 * about its lock succeeds or says why it does not, and what is said to be held
 * has a token and time left
 *
 * The input has a column a line: CLIENT_ID, HOLDER, QUEUE, SHARERS, the lease's
 * end in seconds from now, the token; then the id of a lease.
 */
#include "fuzz.h"

#include <stdio.h>
#include <unistd.h>

#include <sqlite3.h>

#include "cli/cli.h"
#include "sqlock/lease.h"
#include "sqlock/operator.h"
#include "sqlock/leader.h"
#include "sqlock/shared.h"

#define NAME "fuzz"

static char folder[] = "/tmp/sqlock-fuzz.XXXXXX";
static sqlock_registry *registry;
static sqlite3 *database;
static sqlite3_stmt *writer;

static void end(void)
{
    static const char *const names[] = {"db", "db-wal", "db-shm"};
    char path[64];

    (void)sqlite3_finalize(writer);
    (void)sqlite3_close(database);
    (void)sqlock_registry_close(registry, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char text[] =
        "INSERT OR REPLACE INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, HOLDER,"
        " QUEUE, SHARERS, CREATED_DATE, EXPIRED_AFTER, FENCE, LOCK_NAME)"
        " VALUES (?1, 'DEFAULT', ?2, ?3, ?4, ?5,"
        " unixepoch() * 1000000 - 100000000,"
        " (unixepoch() + ?6) * 1000000, ?7, '" NAME "')";
    char url[64], key[SQLOCK_KEY_SIZE];
    sqlock_options options = {.size = sizeof options, .ttl_ms = 5000};

    (void)argc;
    (void)argv;
    must(mkdtemp(folder) != NULL);
    (void)snprintf(url, sizeof url, "sqlite:%s/db", folder);
    must(sqlock_schema_create(url, &options, SQLOCK_LAYOUT_SQLOCK, NULL) == 0);
    must(sqlock_registry_open(&registry, url, &options, NULL) == 0);
    must(sqlite3_open(url + strlen("sqlite:"), &database) == SQLITE_OK);
    /* the registry gives back in the background what it took too late */
    must(sqlite3_busy_timeout(database, 60000) == SQLITE_OK);
    must(sqlite3_exec(database,
                      "PRAGMA synchronous=OFF;"
                      "PRAGMA ignore_check_constraints=ON",
                      NULL, NULL, NULL) == SQLITE_OK);
    must(sqlite3_prepare_v2(database, text, -1, &writer, NULL) == SQLITE_OK);
    must(sqlock_key_of(key, NAME, SQLOCK_KEY_CURRENT, NULL) == 0);
    must(sqlite3_bind_text(writer, 1, key, -1, SQLITE_TRANSIENT) == SQLITE_OK);
    (void)atexit(end);
    return 0;
}

/* An empty line stands for null. */
static void bind(int place, const char *text)
{
    if (*text == '\0')
        (void)sqlite3_bind_null(writer, place);
    else
        (void)sqlite3_bind_text(writer, place, text, -1, SQLITE_TRANSIENT);
}

static int64_t number_of(const char *text, int64_t most)
{
    int64_t number = 0;

    return lk_text_integer(text, &number) && number >= -most && number <= most
               ? number
               : 0;
}

static void write_row(char **at)
{
    for (int place = 2; place <= 5; place++)
        bind(place, fuzz_line(at));
    (void)sqlite3_bind_int64(writer, 6, number_of(fuzz_line(at), 100000));
    (void)sqlite3_bind_int64(writer, 7,
                             number_of(fuzz_line(at), INT64_C(1) << 61));
    must(sqlite3_step(writer) == SQLITE_DONE);
    (void)sqlite3_reset(writer);
}

/* A call succeeds, or says why it does not. */
static void check_told(int rc, const sqlock_error *err)
{
    must(rc == 0 || (rc < 0 && err->code == rc && err->message[0] != '\0'));
}

static void look(const char *id)
{
    sqlock_info *row = NULL;
    sqlock_error err = {0};
    char *text = NULL;
    size_t count = 0;
    int rc = sqlock_show(registry, NAME, &row, &err);

    check_told(rc, &err); /* on a slow machine, of a time-out */
    sqlock_info_free(row, rc == 0);
    row = NULL;
    rc = sqlock_find(registry, NULL, &row, &count, &err);
    check_told(rc, &err); /* the database may refuse to read such JSON */
    must(count <= 2 && (rc == 0 || count == 0));
    sqlock_info_free(row, count);
    rc = sqlock_lease_guard_text(&text, registry, id, &err);
    must(rc == 0 || text == NULL);
    if (rc == 0) {
        size_t quotes = 0;

        for (const char *at = text; *at != '\0'; at++)
            quotes += *at == '\'';
        must(quotes % 2 == 0);
    }
    sqlock_free(text);
}

/* Take the lock, alone or shared, if that is possible, and give it back.  Of a
 * text of SHARERS that no sqlock has written, the database itself may refuse
 * to make a new one. */
static void take(uint32_t permits)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};
    int rc;

    options.mode = permits > 0 ? SQLOCK_SHARED : SQLOCK_EXCLUSIVE;
    options.permits = permits;
    must(sqlock_obtain(&lock, registry, NAME, &err) == 0);
    rc = sqlock_acquire(lock, 0, &options, &err);
    check_told(rc, &err);
    must((rc == 0) == sqlock_is_held(lock));
    if (rc == 0) {
        must(sqlock_token(lock) > 0 && sqlock_remaining_ms(lock) > 0);
        check_told(sqlock_renew(lock, 0, &err), &err);
        check_told(sqlock_release(lock, &err), &err);
        must(!sqlock_is_held(lock));
    }
    must(sqlock_drop(lock, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *at = text;

    write_row(&at);
    look(at);
    take(0);
    take(3);
    look(at);
    free(text);
    return 0;
}
