/*
 * alarm.h - what a thread of the library sleeps on: a point of CLOCK_BOOTTIME,
 * which goes on while the machine is suspended (F16), or a poke
 */
#ifndef LK_ALARM_H
#define LK_ALARM_H

#include "sqlock.h"

struct lk_alarm {
    int timer; /* timerfd */
    int poke;  /* eventfd */
};

/* 0, ERESOURCE. */
int lk_alarm_open(struct lk_alarm *alarm, sqlock_error *err);
void lk_alarm_close(struct lk_alarm *alarm);

/* Return at a point of CLOCK_BOOTTIME (LK_NEVER: none), or when poked since the
 * last return. */
void lk_alarm_sleep(struct lk_alarm *alarm, int64_t until_boot_ns);

/* From any thread. */
void lk_alarm_poke(struct lk_alarm *alarm);

#endif
