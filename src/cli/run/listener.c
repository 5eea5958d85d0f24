/*
 * listener.c - listen for the signal that ends the wait for the lock, in a
 * thread, while the main thread may be waiting for the database
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long the main thread has to leave the queue after a signal. */
#define LEAVE_MS 500

/* A claim under way cannot be withdrawn: if it is granted, the row expires
 * after the TTL. */
static void *listen_to_signals(void *argument)
{
    run_listener *listener = argument;
    struct pollfd heard = {.fd = listener->heard_fd, .events = POLLIN};

    for (;;) {
        int number =
            run_signals_await(listener->signals, -1, listener->heard_fd);

        if (number < 0)
            return NULL;
        if (number == SIGTSTP)
            run_signals_stop();
        if (number == 0 || !run_signals_end_wait(listener->signals, number))
            continue;
        listener->number = number;
        (void)eventfd_write(listener->stop_fd, 1);
        if (poll(&heard, 1, LEAVE_MS) == 0 && !*listener->is_held)
            listener->die(listener->context, number);
    }
}

static void close_all(run_listener *listener)
{
    if (listener->heard_fd >= 0)
        (void)close(listener->heard_fd);
    if (listener->stop_fd >= 0)
        (void)close(listener->stop_fd);
    listener->heard_fd = -1;
    listener->stop_fd = -1;
}

int run_listener_begin(run_listener *listener, sqlock_error *err)
{
    int error = 0;

    listener->heard_fd = eventfd(0, EFD_CLOEXEC);
    listener->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (listener->heard_fd < 0 || listener->stop_fd < 0)
        error = errno;
    else
        error = pthread_create(&listener->thread, NULL, listen_to_signals,
                               listener);
    if (error == 0)
        return 0;
    close_all(listener);
    return lk_error_limit(err, "cannot listen for signals", error);
}

void run_listener_end(run_listener *listener)
{
    (void)eventfd_write(listener->heard_fd, 1);
    (void)pthread_join(listener->thread, NULL);
    close_all(listener);
}
