/*
 * link.c - send messages between sqlock and the supervisor, through a socket,
 * and sleep until one comes
 *
 * Neither process waits for the other.  End of file means that the other
 * process has ended.
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

void run_link_send(int fd, const run_message *message)
{
    ssize_t sent;

    do {
        sent = send(fd, message, sizeof *message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
}

bool run_link_receive(int *fd, run_message *message)
{
    ssize_t got;

    if (*fd < 0)
        return false;
    /* If a process ends with messages unread, the kernel reports ECONNRESET
     * once, before the messages that the process has sent. */
    do {
        got = recv(*fd, message, sizeof *message, MSG_DONTWAIT);
    } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got != (ssize_t)sizeof *message && !(got < 0 && errno == EAGAIN)) {
        (void)close(*fd);
        *fd = -1;
    }
    return got == (ssize_t)sizeof *message;
}

/* The kernel is given the time that is left, not the point in time, which
 * libfaketime in a test would shift. */
void run_sleep(int timer_fd, int64_t at_ns, const int fds[3])
{
    struct pollfd files[] = {{.fd = timer_fd, .events = POLLIN},
                             {.fd = fds[0], .events = POLLIN},
                             {.fd = fds[1], .events = POLLIN},
                             {.fd = fds[2], .events = POLLIN}};
    struct itimerspec when = {.it_value = {0}};
    int64_t left_ns = at_ns - lk_boottime_ns();

    if (at_ns > 0) {
        left_ns = left_ns > 0 ? left_ns : 1;
        when.it_value.tv_sec = (time_t)(left_ns / 1000000000);
        when.it_value.tv_nsec = (long)(left_ns % 1000000000);
    }
    (void)timerfd_settime(timer_fd, 0, &when, NULL);
    (void)poll(files, sizeof files / sizeof files[0], -1);
}
