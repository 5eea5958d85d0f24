/*
 * outage.c - `sqlock run` waits while the database does not answer, and starts
 * the command when the database answers again; with --fail-fast it ends with
 * the first error
 */
#include "command.h"

#include <string.h>

#include "support/peer.h"
#include "support/proxy.h"

/* With a TTL of 6 s an attempt may take 3 s, time enough to connect on a busy
 * machine. */
static const char *const patient[] = {"-t", "6", "-w", "300", NULL};
static const char *const hasty[] = {"-t",  "2",           "-w",
                                    "300", "--fail-fast", NULL};

/* Start a job whose URL leads through a proxy that forwards nothing.  Return
 * the proxy, which the caller closes. */
static struct proxy *start_in_silence(struct job *job, struct fixture *f,
                                      const char *const *options)
{
    struct proxy *proxy = proxy_open(f->database, f->url);
    char url[1024];

    assert_non_null(proxy);
    (void)proxy_url(proxy, url, f->url);
    proxy_blackhole(proxy);
    job_start(job, f, url, options, "meek");
    return proxy;
}

TEST_ON(test_a_wait_outlasts_a_silent_server, ON_SERVERS, 0)
{
    struct job job;
    struct proxy *proxy = start_in_silence(&job, f, patient);

    job_await(&job, "waiting: ");
    assert_int_equal(atomic_load(&job.activity->members), 0);
    proxy_heal(proxy);
    job_expect_start(&job);
    proxy_close(proxy);
}

/* The time of an outage counts for the wait.  Were it counted anew after the
 * outage, the wait would still go on when the lock is released. */
TEST_ON(test_a_wait_is_as_long_with_an_outage_in_it, ON_SERVERS, 0)
{
    static const char *const limited[] = {"-t", "6", "-w", "8", NULL};
    struct proxy *proxy = proxy_open(f->database, f->url);
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct job job;
    char url[1024];

    assert_non_null(proxy);
    lock_take(lock, 600000);
    proxy_down(proxy);
    job_start(&job, f, proxy_url(proxy, url, f->url), limited, "meek");
    job_await(&job, "waiting: ");
    check_sleep(6000);
    proxy_heal(proxy);
    check_sleep(6000);
    lock_give(lock);
    assert_int_equal(job_end(&job), 75);
    lock_drop(lock);
    proxy_close(proxy);
}

TEST_ON(test_a_hasty_one_ends_with_the_first_error, ON_SERVERS, 0)
{
    struct job job;
    struct proxy *proxy = start_in_silence(&job, f, hasty);

    assert_int_equal(job_end(&job), 69);
    proxy_close(proxy);
}

/* Another connection's transaction locks the file for longer than an attempt of
 * sqlock may take: sqlock starts the command after the rollback. */
TEST_ON(test_a_wait_outlasts_a_locked_file, ON_SQLITE, 0)
{
    struct job job;

    assert_lock_ok(sql_begin(&f->sql), &f->sql.err);
    job_start(&job, f, NULL, patient, "meek");
    job_await(&job, "waiting: ");
    assert_int_equal(atomic_load(&job.activity->members), 0);
    assert_lock_ok(sql_rollback(&f->sql), &f->sql.err);
    job_expect_start(&job);
}

/* A peer takes a lock whose row still has the token of an earlier lease.  The
 * message of the waiting sqlock gives the peer's CLIENT_ID, and no token, which
 * a peer does not have. */
TEST_ON(test_a_peer_is_named_by_its_client_id, ON_ALL, 0)
{
    static const char *const waiting[] = {"-w", "300", NULL};
    const struct peer peer = {
        .fixture = f,
        .sql = &f->sql,
        .client = "11111111-2222-4333-8444-555555555555",
        .ttl_ms = 600000,
    };
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct job job;

    lock_take(lock, 0);
    lock_give(lock);
    assert_int_equal(peer_acquire(&peer, f->name), 1);
    job_start(&job, f, NULL, waiting, "meek");
    job_await(&job, "is held by a peer (client id "
                    "11111111-2222-4333-8444-555555555555)");
    assert_null(strstr(job.said, "token"));
    assert_int_equal(peer_release(&peer, f->name), 1);
    job_expect_start(&job);
    lock_drop(lock);
}
