/*
 * say.c - messages on stderr while the lock may be held
 *
 * stderr may be a full pipe or a stopped terminal: a thread that writes there
 * can block for ever.  The lease's thread and the main thread must not block,
 * so they start a thread for each message, one thread at a time.
 *
 * run_note() and run_info() wait until the message is written, so that messages
 * and the command's output keep their order.  They wait for MOMENT_NS, or for
 * LATE_NS if stderr is writable, since then the message's thread is only late.
 * After that they return, and the thread goes on by itself.  sqlock does not
 * wait for that thread when it ends.
 */
#include "run.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MOMENT_NS (50 * RUN_NS_PER_MS)
#define LATE_NS (1000 * RUN_NS_PER_MS) /* on a busy machine */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t written = PTHREAD_COND_INITIALIZER;
static bool is_writing;
static char text[1024]; /* the message, while is_writing */

static void *write_it(void *argument)
{
    (void)argument;
    cli_note("%s", text);
    (void)pthread_mutex_lock(&mutex);
    is_writing = false;
    (void)pthread_cond_broadcast(&written);
    (void)pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Return whether stderr takes a message without blocking. */
static bool takes_more(void)
{
    struct pollfd file = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&file, 1, 0) == 1 && (file.revents & POLLOUT) != 0;
}

static struct timespec after(const struct timespec *time, int64_t ns)
{
    struct timespec sum = *time;

    sum.tv_nsec += (long)ns;
    sum.tv_sec += sum.tv_nsec / 1000000000;
    sum.tv_nsec %= 1000000000;
    return sum;
}

/* Wait until no message is being written, for patience_ns after `begun` at
 * most, or for LATE_NS if the message's thread is only late.  The caller holds
 * the mutex.  Return whether no message is being written. */
static bool wait_until_written(const struct timespec *begun,
                               int64_t patience_ns)
{
    struct timespec until = after(begun, patience_ns);
    int rc = 0;

    while (is_writing && rc == 0) {
        rc = pthread_cond_clockwait(&written, &mutex, CLOCK_MONOTONIC, &until);
        if (rc != 0 && patience_ns == MOMENT_NS && takes_more()) {
            patience_ns = LATE_NS;
            until = after(begun, patience_ns);
            rc = 0;
        }
    }
    return !is_writing;
}

static bool start_writing(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0)));

static bool start_writing(const char *format, va_list arguments)
{
    pthread_t thread;

    (void)vsnprintf(text, sizeof text, format, arguments);
    is_writing = pthread_create(&thread, NULL, write_it, NULL) == 0;
    if (is_writing)
        (void)pthread_detach(thread);
    return is_writing;
}

static bool say(int64_t patience_ns, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static bool say(int64_t patience_ns, const char *format, va_list arguments)
{
    struct timespec begun;
    bool is_begun;

    (void)clock_gettime(CLOCK_MONOTONIC, &begun);
    (void)pthread_mutex_lock(&mutex);
    is_begun = wait_until_written(&begun, patience_ns) &&
               start_writing(format, arguments);
    if (is_begun)
        (void)wait_until_written(&begun, patience_ns);
    (void)pthread_mutex_unlock(&mutex);
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
