/*
 * process.c - another process that holds or waits for a lock until it is
 * killed: this program again, with --hold or --wait
 */
#include "suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The arguments are URL PREFIX NAME TTL_MS.  Write a letter to standard output
 * when the parent may go on: `w` before the acquire with --wait, `h` once the
 * lock is held. */
int be_process(char **arguments, bool holds)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};

    options.table_prefix = arguments[1];
    how.ttl_ms = (uint32_t)strtoul(arguments[3], NULL, 10);
    if (sqlock_registry_open(&registry, arguments[0], &options, &err) < 0 ||
        sqlock_obtain(&lock, registry, arguments[2], &err) < 0 ||
        (!holds && write(STDOUT_FILENO, "w", 1) != 1) ||
        sqlock_acquire(lock, SQLOCK_FOREVER, &how, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    if (write(STDOUT_FILENO, "h", 1) != 1)
        return 1;
    for (;;)
        (void)pause();
}

pid_t process_start(struct fixture *f, const char *role, uint32_t ttl_ms)
{
    char ttl[16];
    char letter;
    int ends[2];
    pid_t parent = getpid();
    pid_t pid;

    (void)snprintf(ttl, sizeof ttl, "%u", ttl_ms);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        check_end_with(parent);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl("/proc/self/exe", "waiting", role, f->url, f->prefix,
                    f->name, ttl, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &letter, 1), 1);
    (void)close(ends[0]);
    return pid;
}
