/*
 * run_clock.c - points in time, and timers for them
 */
#include "run.h"

#include <sys/timerfd.h>
#include <time.h>

int64_t run_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void run_set_timer(int timer_fd, int64_t at_ns)
{
    struct itimerspec when = {.it_value = {0}};

    if (at_ns > 0) {
        when.it_value.tv_sec = (time_t)(at_ns / 1000000000);
        when.it_value.tv_nsec = (long)(at_ns % 1000000000);
    }
    (void)timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}
