/*
 * wait.c - wait for a session's socket until a deadline or an abort
 *
 * libpq may close its socket in any of its calls and open another one.  So
 * abort uses the descriptor only while the session's thread is in ppoll(), when
 * libpq cannot close it.  So abort never shuts down another file that has got
 * the descriptor's number.
 */
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/thread.h"
#include "drivers/postgres/session.h"

/* One mutex serves all sessions: no thread holds it for long, and a zeroed
 * session has no initialised mutex. */
LK_STATIC_MUTEX(mutex);

static bool begin_waiting(lk_pg *session, int fd)
{
    bool allowed;

    pthread_mutex_lock(&mutex);
    allowed = !session->aborted;
    session->fd = fd;
    session->waiting = allowed;
    pthread_mutex_unlock(&mutex);
    return allowed;
}

static bool end_waiting(lk_pg *session)
{
    bool aborted;

    pthread_mutex_lock(&mutex);
    session->waiting = false;
    aborted = session->aborted;
    pthread_mutex_unlock(&mutex);
    return !aborted;
}

int lk_pg_wait(lk_pg *session, int fd, short events, int64_t deadline_ns,
               short *ready)
{
    struct pollfd entry = {.fd = fd, .events = events};
    struct timespec left;
    int64_t left_ns;
    int count;

    /* At the deadline it looks once more: what came in time is there, even if
     * this thread did not run meanwhile. */
    for (;;) {
        left_ns = deadline_ns - sqlock_monotonic_ns();
        if (left_ns < 0)
            left_ns = 0;
        left.tv_sec = (time_t)(left_ns / 1000000000);
        left.tv_nsec = (long)(left_ns % 1000000000);

        if (!begin_waiting(session, fd))
            return LK_PG_ABORTED;
        count = ppoll(&entry, 1, &left, NULL);
        if (!end_waiting(session))
            return LK_PG_ABORTED;
        if (count > 0)
            break;
        /* A signal, or poll() out of memory: look at the clock and go on. */
        if (left_ns == 0)
            return LK_PG_TIME_IS_UP;
    }

    if (ready != NULL)
        *ready = entry.revents;
    return LK_PG_READY;
}

void lk_pg_abort(lk_pg *session)
{
    pthread_mutex_lock(&mutex);
    session->aborted = true;
    if (session->waiting)
        (void)shutdown(session->fd, SHUT_RDWR);
    pthread_mutex_unlock(&mutex);
}
