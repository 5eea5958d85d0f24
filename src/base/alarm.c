/*
 * alarm.c - a timerfd and an eventfd: a condition variable cannot wait on
 * CLOCK_BOOTTIME.
 */
#include "base/alarm.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

int lk_alarm_open(struct lk_alarm *alarm, sqlock_error *err)
{
    alarm->poke = -1;
    alarm->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (alarm->timer >= 0)
        alarm->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (alarm->poke < 0) {
        int rc = lk_error(err, SQLOCK_ERESOURCE, "cannot open a timer: %s",
                          strerror(errno));

        lk_alarm_close(alarm);
        return rc;
    }
    return 0;
}

void lk_alarm_close(struct lk_alarm *alarm)
{
    if (alarm->timer >= 0)
        (void)close(alarm->timer);
    if (alarm->poke >= 0)
        (void)close(alarm->poke);
    alarm->timer = -1;
    alarm->poke = -1;
}

static void set_timer(const struct lk_alarm *alarm, int64_t until_boot_ns)
{
    struct itimerspec at;

    memset(&at, 0, sizeof at);
    /* All zero disarms; a point in the past fires at once. */
    if (until_boot_ns != LK_NEVER)
        at.it_value = lk_timespec(until_boot_ns > 0 ? until_boot_ns : 1);
    (void)timerfd_settime(alarm->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void drain(int descriptor)
{
    uint64_t count;

    (void)!read(descriptor, &count, sizeof count);
}

void lk_alarm_sleep(struct lk_alarm *alarm, int64_t until_boot_ns)
{
    struct pollfd waits[2] = {
        {.fd = alarm->timer, .events = POLLIN},
        {.fd = alarm->poke, .events = POLLIN},
    };
    int ready;

    set_timer(alarm, until_boot_ns);
    do {
        ready = poll(waits, 2, -1);
    } while (ready < 0 && errno == EINTR);
    drain(alarm->timer);
    drain(alarm->poke);
}

void lk_alarm_poke(struct lk_alarm *alarm)
{
    uint64_t one = 1;

    (void)!write(alarm->poke, &one, sizeof one);
}
