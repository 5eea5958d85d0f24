/*
 * cluster.c - see failover.h
 */
#include "failover.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *cluster_standby(const char *what)
{
    return cluster_variable("failover", "POSTGRES_%s_%s",
                            is_synchronous ? "SYNC" : "ASYNC", what);
}

/* Write the first URL to `url`, with the second's host and port added to its
 * list of hosts; return `url`. */
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

    (void)snprintf(path, sizeof path, "%s/primary/hold",
                   cluster_variable("failover", "POSTGRES_CLUSTER"));
    cluster_keep_down(path);
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
    /* Commits must not wait for a standby: no synchronous one is left. */
    (void)sql_run(&sql, "ALTER SYSTEM SET synchronous_standby_names = ''");
    (void)sql_integer(&sql, "SELECT pg_reload_conf()::int");
    sql_close(&sql);
}
