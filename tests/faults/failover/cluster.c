/*
 * cluster.c - see failover.h
 */
#include "failover.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct database *const postgres = &databases[0];
static bool is_synchronous = true;

void cluster_choose(bool synchronous)
{
    is_synchronous = synchronous;
}

bool cluster_is_synchronous(void)
{
    return is_synchronous;
}

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

const char *cluster_standby(const char *what)
{
    char name[32];

    (void)snprintf(name, sizeof name, "%s_%s",
                   is_synchronous ? "SYNC" : "ASYNC", what);
    return variable(name);
}

/* One URL for the servers of two: the second's host and port in the list. */
static const char *join(char url[1024], const char *first, const char *second)
{
    const char *rest = strrchr(first, '/');
    const char *at = strrchr(second, '@') + 1;

    (void)snprintf(url, 1024, "%.*s,%.*s%s", (int)(rest - first), first,
                   (int)(strrchr(second, '/') - at), at, rest);
    return url;
}

const char *cluster_url(void)
{
    static char url[1024];

    return join(url, database_url(postgres), cluster_standby("URL"));
}

const char *cluster_url_backwards(void)
{
    static char url[1024];

    return join(url, cluster_standby("URL"), database_url(postgres));
}

void cluster_cut_off(void)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, postgres, cluster_standby("ADMIN_URL")),
                   &sql.err);
    (void)sql_run(&sql, "ALTER SYSTEM SET primary_conninfo = ''");
    (void)sql_integer(&sql, "SELECT pg_reload_conf()::int");
    assert_becomes_true(
        sql_integer(&sql, "SELECT count(*) FROM pg_stat_wal_receiver") == 0,
        PATIENCE_MS);
    sql_close(&sql);
}

static void hold_down(void)
{
    char path[512];
    int file;

    (void)snprintf(path, sizeof path, "%s/primary/hold", variable("CLUSTER"));
    file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    (void)close(file);
}

static void kill_child(const char *pid_text, pid_t parent)
{
    long pid = strtol(pid_text, NULL, 10);
    long its_parent = 0;
    char path[64];
    FILE *stat;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    stat = pid > 1 ? fopen(path, "r") : NULL;
    if (stat == NULL)
        return;
    if (fscanf(stat, "%*d (%*[^)]) %*c %ld", &its_parent) == 1 &&
        its_parent == parent)
        (void)kill((pid_t)pid, SIGKILL);
    (void)fclose(stat);
}

void cluster_kill_primary(void)
{
    pid_t server = database_pid(postgres);
    struct dirent *entry;
    DIR *directory;

    hold_down();
    assert_true(server > 1);
    /* Stopped, so that the list of its children does not change. */
    assert_int_equal(kill(server, SIGSTOP), 0);
    directory = opendir("/proc");
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL)
        kill_child(entry->d_name, server);
    (void)closedir(directory);
    assert_int_equal(kill(server, SIGKILL), 0);
}

void cluster_promote(void)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, postgres, cluster_standby("ADMIN_URL")),
                   &sql.err);
    (void)sql_integer(&sql, "SELECT pg_promote(true, 60)::int");
    /* The standby that commits waited for does not come back. */
    (void)sql_run(&sql, "ALTER SYSTEM SET synchronous_standby_names = ''");
    (void)sql_integer(&sql, "SELECT pg_reload_conf()::int");
    sql_close(&sql);
}
