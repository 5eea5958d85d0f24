/*
 * holder.c - see failover.h
 */
#include "failover.h"
#include "sqlock/lease.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "paused"
/* Longer than the tests take. */
#define TTL_MS 600000

static int open_here(sqlock_registry **registry, sqlock_lock **lock,
                     sqlock_error *err)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    int rc;

    options.table_prefix = PREFIX;
    options.ttl_ms = TTL_MS;
    rc = sqlock_registry_open(registry, cluster_url(), &options, err);
    if (rc == 0)
        rc = sqlock_obtain(lock, *registry, NAME, err);
    return rc;
}

/* Return whether rc may come from the end of the primary: the holder then tries
 * again. */
static bool is_passing(int rc)
{
    return rc == SQLOCK_EUNREACHABLE || rc == SQLOCK_EUNCERTAIN ||
           rc == SQLOCK_ERETRY || rc == SQLOCK_EREADONLY;
}

static int write_until_told(sqlock_registry *registry, sqlock_lock *lock,
                            const struct notes *notes, sqlock_error *err)
{
    int64_t end = check_deadline_ns(PATIENCE_MS);
    int rc;

    do {
        struct grant grant = {.token = sqlock_token(lock)};

        rc = write_guarded(registry, lock, LANE_GUARDED, notes, &grant, err);
    } while (is_passing(rc) && check_pause(end));
    return rc;
}

static int hold(struct notes *notes, sqlock_error *err)
{
    struct holder *holder = &notes->holder;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    char owner[SQLOCK_KEY_SIZE];
    int rc = open_here(&registry, &lock, err);

    if (rc == 0)
        rc = sqlock_acquire(lock, PATIENCE_MS, NULL, err);
    if (rc < 0)
        return rc;
    holder->token = sqlock_token(lock);
    sqlock_client_id(lock, owner);
    for (;;) {
        (void)raise(SIGSTOP);
        holder->guarded = write_until_told(registry, lock, notes, err);
        holder->fenced =
            write_fenced(registry, notes, holder->token, owner, err);
    }
}

static void await_stop(const struct notes *notes)
{
    int status = 0;

    assert_int_equal(waitpid(notes->holder.pid, &status, WUNTRACED),
                     notes->holder.pid);
    if (!WIFSTOPPED(status))
        fail_msg("the holder has ended: %s", notes->holder.message);
}

void holder_start(struct notes *notes)
{
    struct holder *holder = &notes->holder;
    sqlock_error err = {0};
    pid_t pid = writer_fork();

    if (pid == 0) {
        (void)hold(notes, &err);
        (void)snprintf(holder->message, sizeof holder->message, "%s",
                       err.message);
        _exit(1);
    }
    holder->pid = pid;
    await_stop(notes);
}

void holder_go_on(struct notes *notes)
{
    assert_int_equal(kill(notes->holder.pid, SIGCONT), 0);
    await_stop(notes);
}

void holder_end(struct notes *notes)
{
    assert_int_equal(kill(notes->holder.pid, SIGKILL), 0);
    assert_int_equal(waitpid(notes->holder.pid, NULL, 0), notes->holder.pid);
}

/* Check that the promoted synchronous standby has the holder's lease: another
 * registry does not get the lock, and the holder's writes succeed.  Then break
 * the lease. */
static void check_grant_survived(sqlock_registry *registry, sqlock_lock *lock,
                                 struct notes *notes)
{
    sqlock_break_options options = SQLOCK_BREAK_INIT;
    sqlock_error err = {0};

    assert_code(SQLOCK_EBUSY, sqlock_acquire(lock, 0, NULL, &err), &err);
    holder_go_on(notes);
    assert_int_equal(notes->holder.guarded, 0);
    assert_int_equal(notes->holder.fenced, 0);
    options.token = notes->holder.token;
    options.now = true;
    assert_lock_ok(sqlock_break(registry, NAME, &options, &err), &err);
}

void test_F57_a_superseded_holder_writes_no_more(void **state)
{
    struct notes *notes = judged;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    struct grant grant = {0};
    sqlock_error err = {0};
    char owner[SQLOCK_KEY_SIZE];

    (void)state;
    assert_lock_ok(open_here(&registry, &lock, &err), &err);
    if (cluster_is_synchronous())
        check_grant_survived(registry, lock, notes);
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    grant.token = sqlock_token(lock);
    assert_less(notes->holder.token, grant.token);
    sqlock_client_id(lock, owner);
    assert_lock_ok(
        write_guarded(registry, lock, LANE_GUARDED, notes, &grant, &err), &err);
    assert_lock_ok(write_fenced(registry, notes, grant.token, owner, &err),
                   &err);
    /* By its own deadline the holder still has the lease; the database refuses
     * its writes. */
    holder_go_on(notes);
    assert_int_equal(notes->holder.guarded, SQLOCK_ELOST);
    assert_int_equal(notes->holder.fenced, SQLOCK_ECONFLICT);
    holder_end(notes);
    assert_lock_ok(sqlock_release(lock, &err), &err);
    assert_lock_ok(sqlock_drop(lock, &err), &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}
