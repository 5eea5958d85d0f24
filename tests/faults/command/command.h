/*
 * command.h - `sqlock run` as a child of the test, with a family under it that
 * does not want to end
 */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include <stdatomic.h>
#include <sys/types.h>

#include "support/suite_main.h"

extern const struct topic topic_ending;
extern const struct topic topic_outage;
extern const struct topic topic_signals;

/* --- family.c: what the command is --- */

/* Shared with every process of the family, in a file. */
struct activity {
    atomic_llong last_us; /* CLOCK_REALTIME, when one of them was last alive */
    atomic_int last_pid;  /* that one */
    atomic_int members;   /* how many have begun, but not those that only pass
                             on what they are */
    atomic_int terms;     /* TERM that the command itself has got and ignored */
};

/* The program's own second face: `PROGRAM family KIND FILE`.  Does not return.
 * KIND is "brief", which ends by itself after a moment, with success; "meek",
 * which any signal ends; or "stubborn": it ignores whatever can
 * be ignored, and forks into its own group, into sessions of their own, through
 * parents that end, and on and on. */
#define FAMILY_FACE "family"
void family_main(char **arguments);

/* How many members a stubborn family has in the end. */
#define FAMILY_STUBBORN 6

/* --- job.c: sqlock --- */

struct job {
    pid_t pid;
    int pidfd;
    int says; /* what it says, a pipe */
    char said[4096];
    size_t said_bytes;
    size_t filler_bytes; /* that keep it from saying anything */
    char file[256];
    struct activity *activity;
    int64_t clock_offset_us; /* of CLOCK_REALTIME from CLOCK_BOOTTIME */
};

/* Start `sqlock run OPTIONS NAME -- this program as a family`; the options end
 * with NULL.  URL: NULL is the fixture's. */
void job_start(struct job *job, const struct fixture *fixture, const char *url,
               const char *const *options, const char *kind);

/* Whether it has said this by now. */
bool job_has_said(struct job *job, const char *text);

/* Wait until it has. */
void job_await(struct job *job, const char *text);

/* Tell whether sqlock has ended, without waiting. */
bool job_has_ended(const struct job *job);

/* From now on nobody reads what it says, and the pipe is full. */
void job_deafen(struct job *job);

/* Read again. */
void job_listen(struct job *job);

/* Start it, and wait until the family has so many members. */
void job_run(struct job *job, const struct fixture *fixture, const char *url,
             const char *const *options, const char *kind, int members);

/* A process of sqlock's by its name, below sqlock itself. */
pid_t job_process(const struct job *job, const char *name);
#define JOB_WATCHER "lock-watcher"
#define JOB_SUPERVISOR "lock-supervisor"

/* Wait for sqlock's end, then for that of whoever descends from it, and fail if
 * that takes too long.  The exit status, or 128 and the number of a signal. */
int job_end(struct job *job);

/* Let sqlock be ended by TERM. */
void job_terminate(struct job *job);

/* Wait until a command runs that has not begun before, and end it by TERM. */
void job_expect_start(struct job *job);

/* Whether anyone descends from this process. */
bool job_is_anyone_left(void);

#endif
