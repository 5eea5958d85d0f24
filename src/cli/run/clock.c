/*
 * clock.c - points in time, and timers for them
 */
#include "run.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

int64_t run_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
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
    int64_t left_ns = at_ns - run_now_ns();

    if (at_ns > 0) {
        left_ns = left_ns > 0 ? left_ns : 1;
        when.it_value.tv_sec = (time_t)(left_ns / 1000000000);
        when.it_value.tv_nsec = (long)(left_ns % 1000000000);
    }
    (void)timerfd_settime(timer_fd, 0, &when, NULL);
    (void)poll(files, sizeof files / sizeof files[0], -1);
}
