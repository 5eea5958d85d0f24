/*
 * cluster.c - see cluster.h
 */
#include "cluster.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cluster_main(const struct cluster_suite *suite, int argc, char **argv)
{
    program_read(&suite->program, argc, argv);
    if (!program_lists() && database_url(suite->database) == NULL) {
        print_message("skipped: no servers for %s here\n", suite->program.name);
        return 77;
    }
    return group_run(&suite->group) == 0 ? 0 : 1;
}

const char *cluster_variable(const char *suite, const char *format, ...)
{
    char name[64] = "SQLOCK_TEST_";
    const size_t length = sizeof "SQLOCK_TEST_" - 1;
    const char *value;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(name + length, sizeof name - length, format, args);
    va_end(args);
    value = getenv(name);
    if (value == NULL)
        fail_msg("%s is not set: run this by tests/faults/%s/with.sh", name,
                 suite);
    return value;
}

void cluster_create_table(const char *url, const char *prefix)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    options.table_prefix = prefix;
    assert_lock_ok(
        sqlock_schema_create(url, &options, SQLOCK_LAYOUT_SQLOCK, &err), &err);
}

void cluster_keep_down(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

    assert_true(file >= 0);
    (void)close(file);
}

void cluster_act(const char *action, char *out, size_t size)
{
    char command[128];
    FILE *script;
    char *line;

    (void)snprintf(command, sizeof command,
                   "bash tests/tools/servers/promote.sh %s", action);
    script = popen(command, "re"); /* NOLINT: of our own making */
    assert_non_null(script);
    line = fgets(out, (int)size, script);
    if (pclose(script) != 0 || line == NULL)
        fail_msg("promote.sh %s failed", action);
    out[strcspn(out, "\n")] = '\0';
}

int cluster_end_write(sqlock_tx *tx, int rc, enum fate *fate, sqlock_error *err)
{
    if (rc < 0) {
        (void)sqlock_tx_rollback(tx, NULL);
        return rc;
    }
    rc = sqlock_tx_commit(tx, err);
    if (rc == 0)
        *fate = ACKNOWLEDGED;
    else if (rc == SQLOCK_EUNCERTAIN)
        *fate = UNKNOWN;
    return rc;
}
