/*
 * say.c - messages on stderr while the lock may be held
 * stderr may be a full pipe or a stopped terminal: a thread that writes there
 * can block for ever.  The main thread must not block, so it starts a thread
 * for each message, one thread at a time.
 * run_note() and run_info() wait until the message is written, so that messages
 * and the command's output keep their order.  They wait for MOMENT_NS, or for
 * LATE_NS if stderr is writable, since then the message's thread is only late.
 * After that they return, and the thread goes on by itself.  sqlock does not
 * wait for that thread when it ends.
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define MOMENT_NS (50 * LK_NS_PER_MS)
#define LATE_NS (1000 * LK_NS_PER_MS) /* on a busy machine */

static bool is_writing; /* a thread was started, and has not been joined */
static pthread_t writer;
static char text[1024]; /* its message */

static void *write_it(void *argument)
{
    (void)argument;
    cli_note("%s", text);
    return NULL;
}

bool run_takes_output(int fd)
{
    struct pollfd file = {.fd = fd, .events = POLLOUT};

    return poll(&file, 1, 0) == 1 && (file.revents & POLLOUT) != 0;
}

/* Wait until no message is being written, but not longer than until then.
 * Return whether none is. */
static bool is_written_by(int64_t until_ns)
{
    struct timespec until = lk_timespec(until_ns);

    if (is_writing)
        is_writing = pthread_clockjoin_np(writer, NULL, CLOCK_MONOTONIC,
                                          &until) == ETIMEDOUT;
    return !is_writing;
}

/* Wait for patience_ns, or for LATE_NS if the thread is only late. */
static bool is_written(int64_t begun_ns, int64_t patience_ns)
{
    return is_written_by(begun_ns + patience_ns) ||
           (patience_ns > 0 && run_takes_output(STDERR_FILENO) &&
            is_written_by(begun_ns + LATE_NS));
}

static bool say(int64_t patience_ns, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static bool say(int64_t patience_ns, const char *format, va_list arguments)
{
    int64_t begun_ns = sqlock_monotonic_ns();
    bool is_begun = is_written(begun_ns, patience_ns);

    if (is_begun) {
        (void)vsnprintf(text, sizeof text, format, arguments);
        is_begun = pthread_create(&writer, NULL, write_it, NULL) == 0;
        is_writing = is_begun;
        (void)is_written(begun_ns, patience_ns);
    }
    return is_begun;
}

void run_note(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)say(MOMENT_NS, format, arguments);
    va_end(arguments);
}

void run_info(const char *format, ...)
{
    va_list arguments;

    if (!cli_is_verbose())
        return;
    va_start(arguments, format);
    (void)say(MOMENT_NS, format, arguments);
    va_end(arguments);
}

bool run_note_at_once(const char *format, ...)
{
    va_list arguments;
    bool is_begun;

    va_start(arguments, format);
    is_begun = say(0, format, arguments);
    va_end(arguments);
    return is_begun;
}
