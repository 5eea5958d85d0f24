/*
 * writer.c - see failover.h
 */
#include "failover.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "sqlock.h"

struct notes *notes_make(void)
{
    struct notes *notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(notes != MAP_FAILED);
    return notes;
}

/* Count up and write a row in one guarded transaction. */
static int write_guarded(sqlock_tx *tx, sqlock_lock *lock, unsigned number,
                         const struct notes *notes, struct write *write,
                         sqlock_error *err)
{
    sqlock_result result = {0};
    sqlock_value values[3];
    int rc = sqlock_tx_guard(tx, lock, err);

    if (rc == 0)
        rc = sqlock_tx_execute(tx,
                               "UPDATE counter SET n = n + 1"
                               " RETURNING n, inet_server_port()::bigint",
                               NULL, 0, &result, err);
    if (rc == 0) {
        write->number = result.cells[0].integer;
        write->token = sqlock_token(lock);
        write->is_late = result.cells[1].integer == notes->port;
        values[0] = sqlock_integer(write->number);
        values[1] = sqlock_integer(write->token);
        values[2] = sqlock_integer(number);
        rc = sqlock_tx_execute(tx, "INSERT INTO written VALUES (?, ?, ?)",
                               values, 3, NULL, err);
    }
    sqlock_result_clear(&result);
    return rc;
}

static void note(struct writer *writer, const struct write *write)
{
    if (writer->count == WRITES_MAX)
        return;
    writer->writes[writer->count] = *write;
    writer->late = writer->late + write->is_late;
    writer->count = writer->count + 1;
}

static int write_once(struct writer *writer, const struct notes *notes,
                      sqlock_registry *registry, sqlock_lock *lock,
                      unsigned number, sqlock_error *err)
{
    struct write write = {0};
    sqlock_tx *tx = NULL;
    int rc = sqlock_tx_begin(&tx, registry, err);

    if (rc < 0)
        return rc;
    rc = write_guarded(tx, lock, number, notes, &write, err);
    if (rc < 0) {
        (void)sqlock_tx_rollback(tx, NULL);
        return rc;
    }
    rc = sqlock_tx_commit(tx, err);
    if (rc == 0)
        note(writer, &write);
    else if (rc == SQLOCK_EUNCERTAIN)
        writer->unknown++;
    return rc;
}

/* The same lock again and again; what fails is noted and tried again. */
static int write_and_release(struct writer *writer, const struct notes *notes,
                             sqlock_registry *registry, sqlock_lock *lock,
                             unsigned number, sqlock_error *err)
{
    int rc = sqlock_acquire(lock, 500, NULL, err);
    int released;

    if (rc < 0)
        return rc;
    rc = write_once(writer, notes, registry, lock, number, err);
    released = sqlock_release(lock, rc == 0 ? err : NULL);
    return rc == 0 ? released : rc;
}

void write_on(struct writer *writer, struct notes *notes, const char *url,
              const char *prefix, unsigned number)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};
    int rc;

    options.table_prefix = prefix;
    options.ttl_ms = 1000; /* how long a lost release holds the others up */
    options.statement_timeout_ms = 2000;
    options.poll_ms = 5;
    rc = sqlock_registry_open(&registry, url, &options, &err);
    if (rc == 0)
        rc = sqlock_obtain(&lock, registry, "failover", &err);
    while (rc == 0 && notes->over == 0) {
        int done =
            write_and_release(writer, notes, registry, lock, number, &err);

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
