/*
 * crew.h - run a job in several processes and watch them
 */
#ifndef DEMO_CREW_H
#define DEMO_CREW_H

/** The work of a process; 0 when all went well.  It reports its errors. */
typedef int (*crew_job)(int index, void *context);

/** Called about ten times a second while processes run. */
typedef void (*crew_tick)(void *context);

/** Once, before anything else: interrupts are from now on kept for crew_run(),
 *  which ends its processes, so that the program can clear up. */
void crew_start(void);

/**
 * Run @p job in @p count new processes (CREW_MAX at most).  As soon as one of
 * them fails or dies, or this one is interrupted, the others are ended.
 *
 * @param tick NULL: nothing is called
 * @return 0 when every job returned 0
 */
int crew_run(int count, crew_job job, void *context, crew_tick tick);
#define CREW_MAX 64

/** From here on interrupts have no effect: for clearing up.
 *  @return the signal that has interrupted this program, or 0 */
int crew_settle(void);

#endif /* DEMO_CREW_H */
