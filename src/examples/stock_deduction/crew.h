/*
 * crew.h - run a job in several processes and watch them
 */
#ifndef DEMO_CREW_H
#define DEMO_CREW_H

/** The work of a process.  Returns 0, or another value after a message. */
typedef int (*crew_job)(int index, void *context);

/** Called about ten times a second while processes run. */
typedef void (*crew_tick)(void *context);

/** Leave the interrupts SIGINT, SIGTERM and SIGHUP to crew_run(), which at one
 *  of them ends its processes and returns, so that the program can clear up.
 *  Call this once, before anything else. */
void crew_start(void);

/**
 * Run @p job in @p count new processes (CREW_MAX at most).  As soon as one of
 * them fails or dies, or this one is interrupted, the others are ended.
 *
 * @param context argument of @p job and @p tick
 * @param tick    NULL: nothing is called
 * @return 0 when every job returned 0
 */
int crew_run(int count, crew_job job, void *context, crew_tick tick);
#define CREW_MAX 64

/** Ignore interrupts from now on, so that the program can clear up.
 *  @return the signal that has interrupted the program before, or 0 */
int crew_settle(void);

#endif /* DEMO_CREW_H */
