/*
 * pooler.c - see pooler.h
 */
#include "pooler.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 60000

/* Read the URL that the script writes to a file when PgBouncer has started.
 * Return false if the file does not have it yet. */
static bool read_url(struct pooler *pooler)
{
    static const char variable[] = "SQLOCK_TEST_POSTGRES_URL='";
    bool found = false;
    char path[96];
    char line[600];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/env", pooler->folder);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        found = strncmp(line, variable, strlen(variable)) == 0;
        if (found)
            (void)snprintf(pooler->url, sizeof pooler->url, "%.*s",
                           (int)strcspn(line + strlen(variable), "'"),
                           line + strlen(variable));
    }
    (void)fclose(file);
    return found;
}

void pooler_start(struct pooler *pooler, struct fixture *f,
                  const char *settings)
{
    bool has_ended;
    int status = 0;

    memset(pooler, 0, sizeof *pooler);
    (void)snprintf(pooler->folder, sizeof pooler->folder,
                   "/tmp/sqlock-pooler.XXXXXX");
    assert_non_null(mkdtemp(pooler->folder));
    pooler->pid = fork();
    if (pooler->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)setenv("SQLOCK_TEST_POOL_MODE", "transaction", 1);
        (void)setenv("SQLOCK_TEST_POOLER_OF", f->url, 1);
        (void)setenv("SQLOCK_TEST_POOLER_SETTINGS", settings, 1);
        (void)execlp("bash", "bash", "tests/tools/servers/pgbouncer.sh",
                     pooler->folder, (char *)NULL);
        _exit(127);
    }
    assert_true(pooler->pid > 0);
    assert_becomes_true(read_url(pooler) ||
                            waitpid(pooler->pid, &status, WNOHANG) != 0,
                        START_MS);
    has_ended = pooler->url[0] == '\0';
    if (has_ended && WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip_or_fail("there is no PgBouncer");
    assert_false(has_ended);
}

void pooler_end(struct pooler *pooler)
{
    int status;

    assert_int_equal(kill(pooler->pid, SIGTERM), 0);
    assert_int_equal(waitpid(pooler->pid, &status, 0), pooler->pid);
}
