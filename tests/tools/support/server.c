/*
 * server.c - see server.h
 *
 * PostgreSQL has one process per session.  Their parent is stopped first, so
 * that the list of its children does not change while it is read.
 */
#include "server.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STOPPED_MAX 256

static pid_t stopped[STOPPED_MAX];
static volatile sig_atomic_t stopped_count;

bool server_can_stop(const struct database *database)
{
    pid_t pid = database_pid(database);

    return pid > 1 && kill(pid, 0) == 0;
}

bool server_can_restart(const struct database *database)
{
    char variable[64];
    const char *file;

    (void)snprintf(variable, sizeof variable, "SQLOCK_TEST_%s_PIDFILE",
                   database->variable);
    file = getenv(variable);
    return file != NULL && *file != '\0' && server_can_stop(database);
}

static bool answers(const struct database *database, const char *url)
{
    struct sql sql;
    int rc = sql_open(&sql, database, url);

    sql_close(&sql);
    return rc == 0;
}

static void stop(pid_t pid)
{
    if (stopped_count == STOPPED_MAX)
        return;
    stopped[stopped_count] = pid;
    stopped_count = stopped_count + 1;
    (void)kill(pid, SIGSTOP);
}

/* Read "pid (program name) state parent".  The program names of the servers
 * that are stopped have no ')' in them. */
static bool read_stat(const char *path, char *status, int *parent)
{
    FILE *file = fopen(path, "r");
    bool ok;

    if (file == NULL)
        return false;
    ok = fscanf(file, "%*d (%*[^)]) %c %d", status, parent) == 2;
    (void)fclose(file);
    return ok;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    char status;
    int parent = 0;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    return read_stat(path, &status, &parent) ? (pid_t)parent : 0;
}

/* Return whether every thread of the process has stopped or ended. */
static bool is_stopped(pid_t pid)
{
    char path[300];
    struct dirent *entry;
    bool ok = true;
    DIR *tasks;

    (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    tasks = opendir(path);
    if (tasks == NULL)
        return true; /* the process has ended */
    while (ok && (entry = readdir(tasks)) != NULL) {
        char status = 'T';
        int parent;

        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%ld/task/%s/stat", (long)pid,
                       entry->d_name);
        if (read_stat(path, &status, &parent))
            ok = status == 'T' || status == 'Z' || status == 'X';
    }
    (void)closedir(tasks);
    return ok;
}

void server_stop(const struct database *database)
{
    pid_t server = database_pid(database);
    struct dirent *entry;
    DIR *directory;
    sig_atomic_t i;

    assert_true(server > 1);
    stop(server);
    assert_becomes_true(is_stopped(server), PATIENCE_MS);
    directory = opendir("/proc");
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && parent_of(pid) == server)
            stop(pid);
    }
    (void)closedir(directory);
    for (i = 0; i < stopped_count; i++)
        assert_becomes_true(is_stopped(stopped[i]), PATIENCE_MS);
}

/* Wait until the server answers that was started again. */
static void await_again(struct sql *sql, const char *url, pid_t old)
{
    const struct database *database = sql->database;

    assert_becomes_true(database_pid(database) != old &&
                            database_pid(database) != 0,
                        PATIENCE_MS);
    assert_becomes_true(answers(database, url), PATIENCE_MS);
    assert_int_equal(sql_open(sql, database, url), 0);
}

void server_restart(struct sql *sql, const char *url, int number)
{
    pid_t old = database_pid(sql->database);

    sql_close(sql);
    assert_int_equal(kill(old, number), 0);
    await_again(sql, url, old);
}

void server_crash(struct sql *sql, const char *url)
{
    pid_t old = database_pid(sql->database);

    sql_close(sql);
    server_stop(sql->database);
    for (sig_atomic_t i = 0; i < stopped_count; i++)
        (void)kill(stopped[i], SIGKILL);
    stopped_count = 0;
    await_again(sql, url, old);
}

void server_restart_itself(struct sql *sql, const char *url, pid_t pid)
{
    const struct database *database = sql->database;

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_becomes_true(sql_try(sql, NULL, "SELECT 1") != 0, PATIENCE_MS);
    sql_close(sql);
    assert_becomes_true(answers(database, url), PATIENCE_MS);
    assert_int_equal(sql_open(sql, database, url), 0);
}

void server_stop_process(pid_t pid)
{
    stop(pid);
    assert_becomes_true(is_stopped(pid), PATIENCE_MS);
}

void server_go_on(void)
{
    sig_atomic_t i;

    for (i = stopped_count - 1; i >= 0; i--)
        (void)kill(stopped[i], SIGCONT);
    stopped_count = 0;
}

/* At once: a server that finds no time in its file ends. */
void server_set_clock(const char *file, int ms)
{
    char path[512];
    FILE *next;

    (void)snprintf(path, sizeof path, "%s.%ld", file, (long)getpid());
    next = fopen(path, "we");
    assert_non_null(next);
    (void)fprintf(next, "%c%d.%03d\n", ms < 0 ? '-' : '+', abs(ms) / 1000,
                  abs(ms) % 1000);
    assert_int_equal(fclose(next), 0);
    assert_int_equal(rename(path, file), 0);
}

/* Ask the server to end a session.  PostgreSQL warns of one that does not
 * exist, so the statement looks for it first. */
static int end_session(struct sql *sql, int64_t id)
{
    if (sql->database->bit == ON_POSTGRES)
        return sql_try(sql, NULL,
                       "SELECT pg_terminate_backend(pid)"
                       " FROM pg_stat_activity WHERE pid = %lld",
                       (long long)id);
    return sql_try(sql, NULL, "KILL %lld", (long long)id);
}

bool server_has_session(struct sql *sql, int64_t id)
{
    return sql_integer(sql,
                       sql->database->bit == ON_POSTGRES
                           ? "SELECT count(*) FROM pg_stat_activity"
                             " WHERE pid = %lld"
                           : "SELECT count(*) FROM information_schema."
                             "processlist WHERE id = %lld",
                       (long long)id) > 0;
}

void server_end_sessions(struct sql *sql, const int64_t *ids, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        (void)end_session(sql, ids[i]);
    for (i = 0; i < count; i++)
        assert_becomes_true(!server_has_session(sql, ids[i]), PATIENCE_MS);
}

size_t server_end_some(struct sql *sql, const int64_t *ids, size_t count)
{
    size_t ended = 0;
    size_t i;

    for (i = 0; i < count; i++)
        if (end_session(sql, ids[i]) == 0)
            ended++;
    return ended;
}
