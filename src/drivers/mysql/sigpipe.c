/*
 * sigpipe.c - keep SIGPIPE away from the program
 *
 * With TLS both client libraries write through OpenSSL, which does not suppress
 * SIGPIPE, and which writes (an alert) even while it reads from a closed
 * connection.  By default the signal would end the program.  A library must not
 * change the program's handling of signals, so SIGPIPE is blocked in the
 * calling thread during a call, and discarded if it came.  This costs three
 * system calls; it is skipped where the client library suppresses SIGPIPE
 * itself.
 */
#include "drivers/mysql/sigpipe.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

static bool is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

void lk_mysql_sigpipe_hold(struct lk_mysql_sigpipe *held, MYSQL *mysql)
{
    sigset_t pipe;

    held->is_held = !lk_mysql_client_spares_sigpipe(mysql);
    if (!held->is_held)
        return;
    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &held->before);
    /* A signal that was pending before is left alone. */
    held->was_pending =
        sigismember(&held->before, SIGPIPE) == 1 && is_pending();
}

void lk_mysql_sigpipe_release(const struct lk_mysql_sigpipe *held)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe;

    if (!held->is_held)
        return;
    if (!held->was_pending && is_pending()) {
        (void)sigemptyset(&pipe);
        (void)sigaddset(&pipe, SIGPIPE);
        (void)sigtimedwait(&pipe, NULL, &at_once);
    }
    (void)pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}
