/*
 * takeover.c - a holder is killed, and the other side gets the lock when the
 * lease is over, and not before
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holder.h"
#include "spring.h"

/* --- a process of ours: `spring --hold URL PREFIX NAME TTL_MS` --- */

int holder_main(char **arguments)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};

    options.table_prefix = arguments[1];
    options.ttl_ms = (uint32_t)strtoul(arguments[3], NULL, 10);
    options.peer_ttl_ms = options.ttl_ms;
    if (sqlock_registry_open(&registry, arguments[0], &options, &err) < 0 ||
        sqlock_obtain(&lock, registry, arguments[2], &err) < 0 ||
        sqlock_acquire(lock, PATIENCE_MS, NULL, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    (void)printf("%lld\n", (long long)sqlock_token(lock));
    (void)fflush(stdout);
    for (;;)
        (void)pause(); /* until it is killed */
}

static void become(const struct fixture *f, int says)
{
    char ttl[16];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(ttl, sizeof ttl, "%d", PASSING_TTL_MS);
    if (dup2(says, STDOUT_FILENO) >= 0)
        (void)execl("/proc/self/exe", "spring", HOLDER_FACE, f->url, f->prefix,
                    f->name, ttl, (char *)NULL);
    _exit(98);
}

/* Start a process that takes the lock, and kill it.  Return the token of its
 * lease, and in *expires_us the end of the lease. */
static int64_t hold_and_be_killed(struct fixture *f, int64_t *expires_us)
{
    char line[32] = "";
    FILE *says;
    int status;
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        become(f, ends[1]);
    (void)close(ends[1]);
    says = fdopen(ends[0], "r");
    assert_non_null(says);
    assert_non_null(fgets(line, sizeof line, says));
    *expires_us = stage_expiry_us(f, PASSING_TTL_MS);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    (void)fclose(says);
    return strtoll(line, NULL, 10);
}

static void check_service_takes_over(struct fixture *f, unsigned number)
{
    struct service *service = stage_service(f, number);
    sqlock_registry *registry = stage_registry(f, PASSING_TTL_MS);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int64_t expires_us;
    int64_t token;

    stage_open_peer(service, f, "take", PASSING_TTL_MS, NULL);
    token = hold_and_be_killed(f, &expires_us);
    service_expect("true", service, "take", "try take %s %d", f->name,
                   JVM_WAIT_MS);
    assert_less(expires_us, sql_now_us(&f->sql));
    service_expect("ok", service, "take", "unlock take %s", f->name);
    assert_ok(lock_try(lock, JVM_WAIT_MS, 0, &f->err));
    assert_less(token, sqlock_token(lock));
    lock_give(lock);
    service_expect("ok", service, "take", "close take");
    registry_end(registry);
}

TEST(test_a_service_takes_over_from_a_killed_process)
{
    stage_each_service(f, check_service_takes_over);
}

static void check_we_take_over(struct fixture *f, unsigned number)
{
    struct service *service = stage_service(f, number);
    sqlock_registry *registry = stage_registry(f, PASSING_TTL_MS);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int64_t expires_us;

    stage_open_peer(service, f, "take", PASSING_TTL_MS, NULL);
    service_expect("true", service, "take", "try take %s 0", f->name);
    expires_us = stage_expiry_us(f, PASSING_TTL_MS);
    service_kill(service);
    assert_ok(lock_try(lock, JVM_WAIT_MS, 0, &f->err));
    assert_less(expires_us, fixture_row(f, f->name).created_us);
    assert_less(expires_us, sqlock_token(lock));
    lock_give(lock);
    registry_end(registry);
}

TEST(test_we_take_over_from_a_killed_service)
{
    stage_each_service(f, check_we_take_over);
}
