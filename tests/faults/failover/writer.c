/*
 * writer.c - see failover.h
 */
#include "failover.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct notes *notes_make(void)
{
    struct notes *notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(notes != MAP_FAILED);
    return notes;
}

pid_t writer_fork(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0 &&
        (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(1);
    return pid;
}

/* --- one write --- */

static int count_up(sqlock_tx *tx, enum lane lane, const struct notes *notes,
                    struct grant *grant, sqlock_error *err)
{
    sqlock_value values[3] = {sqlock_integer((int64_t)lane)};
    sqlock_result result = {0};
    int rc = sqlock_tx_execute(tx,
                               "UPDATE counter SET n = n + 1 WHERE lane = ?"
                               " RETURNING n, inet_server_port()::bigint",
                               values, 1, &result, err);

    if (rc == 0) {
        grant->number = result.cells[0].integer;
        grant->is_late = result.cells[1].integer == notes->port;
        values[1] = sqlock_integer(grant->number);
        values[2] = sqlock_integer(grant->token);
        rc = sqlock_tx_execute(tx, "INSERT INTO written VALUES (?, ?, ?)",
                               values, 3, NULL, err);
    }
    sqlock_result_clear(&result);
    return rc;
}

int write_guarded(sqlock_registry *registry, sqlock_lock *lock, enum lane lane,
                  const struct notes *notes, struct grant *grant,
                  sqlock_error *err)
{
    sqlock_tx *tx = NULL;
    int rc = sqlock_tx_begin(&tx, registry, err);

    if (rc < 0)
        return rc;
    rc = sqlock_tx_guard(tx, lock, err);
    if (rc == 0)
        rc = count_up(tx, lane, notes, grant, err);
    return cluster_end_write(tx, rc, &grant->fate, err);
}

int write_fenced(sqlock_registry *registry, const struct notes *notes,
                 int64_t token, const char *owner, sqlock_error *err)
{
    const sqlock_table table = {.size = sizeof table,
                                .name = "counter",
                                .key_column = "lane",
                                .fence_column = "fence",
                                .fence_owner_column = "fence_owner"};
    const sqlock_value key = sqlock_integer(LANE_FENCED);
    struct grant grant = {.token = token};
    sqlock_tx *tx = NULL;
    int rc = sqlock_tx_begin(&tx, registry, err);

    if (rc < 0)
        return rc;
    rc = sqlock_tx_fence(tx, &table, &key, token, owner, err);
    if (rc == 0)
        rc = count_up(tx, LANE_FENCED, notes, &grant, err);
    return cluster_end_write(tx, rc, &grant.fate, err);
}

/* --- a process --- */

static struct grant *note(struct writer *writer, int64_t token)
{
    struct grant *grant = &writer->grants[writer->count];

    /* There is room for minutes of grants, more than the tests take. */
    if (writer->count < GRANTS_MAX - 1)
        writer->count++;
    memset(grant, 0, sizeof *grant);
    grant->token = token;
    return grant;
}

/* Take and release one lock, with a write under it; the caller repeats this. */
static int write_and_release(struct writer *writer, const struct notes *notes,
                             sqlock_registry *registry, sqlock_lock *lock,
                             sqlock_error *err)
{
    int rc = sqlock_acquire(lock, 500, NULL, err);
    struct grant *grant;
    int released;

    if (rc < 0)
        return rc;
    grant = note(writer, sqlock_token(lock));
    rc = write_guarded(registry, lock, LANE_WRITERS, notes, grant, err);
    if (rc == 0) {
        writer->late = writer->late + grant->is_late;
        writer->acknowledged = writer->acknowledged + 1;
    }
    released = sqlock_release(lock, rc == 0 ? err : NULL);
    return rc == 0 ? released : rc;
}

void writer_run(struct writer *writer, struct notes *notes)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};
    int rc;

    options.table_prefix = PREFIX;
    options.ttl_ms = 1000; /* how long a lost release delays the others */
    options.statement_timeout_ms = 2000;
    options.poll_ms = 5;
    rc = sqlock_registry_open(&registry, cluster_url(), &options, &err);
    if (rc == 0)
        rc = sqlock_obtain(&lock, registry, "failover", &err);
    while (rc == 0 && notes->over == 0) {
        int done = write_and_release(writer, notes, registry, lock, &err);

        if (done == 0 || done == SQLOCK_ETIMEDOUT)
            continue;
        writer->refused++;
        writer->last = done;
        (void)snprintf(writer->message, sizeof writer->message, "%s",
                       err.message);
        (void)check_pause(check_deadline_ns(1000));
    }
    if (rc < 0)
        (void)snprintf(writer->message, sizeof writer->message, "%s",
                       err.message);
    (void)sqlock_drop(lock, NULL);
    (void)sqlock_registry_close(registry, NULL);
}
