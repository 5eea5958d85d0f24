/*
 * command.h - run `sqlock run` as a child of the test, with this program as its
 * command
 *
 * The command and its descendants are called a family, its processes members.
 * A job is one run of sqlock with its family.
 */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include <stdatomic.h>
#include <sys/types.h>

#include "support/suite_main.h"

/* --- family.c: the command and its descendants --- */

/* Signs of life of a family, in a file that the test and all members map. */
struct activity {
    atomic_llong last_us; /* CLOCK_REALTIME when a member was last alive */
    atomic_int last_pid;  /* process id of that member */
    atomic_int members;   /* how many have begun; a chain of processes that
                             replace each other counts as one */
    atomic_int terms;     /* TERM signals that a stubborn command has ignored */
};

/* Run this program as the command of sqlock, in place of the tests: it was
 * called as `PROGRAM family KIND FILE`, and FILE has the struct activity.  Does
 * not return.  KIND is "brief": one process that ends after a moment, with
 * success; "meek": one process that any signal ends; or "stubborn": processes
 * that ignore every signal that can be ignored.  Of these, one is in the
 * command's process group, others are in sessions of their own, one is a
 * daemon, and one is a chain of processes that replace each other. */
#define FAMILY_FACE "family"
void family_main(char **arguments);

/* Number of members of a stubborn family, once all have begun. */
#define FAMILY_STUBBORN 6

/* --- job.c: sqlock --- */

struct job {
    pid_t pid;
    int pidfd;
    int says; /* pipe from sqlock's stderr */
    char said[4096];
    size_t said_bytes;
    size_t filler_bytes; /* with which job_deafen() has filled the pipe */
    char file[256];
    struct activity *activity;
    int64_t clock_offset_us; /* CLOCK_REALTIME minus CLOCK_BOOTTIME */
};

/* Start `sqlock run OPTIONS NAME -- COMMAND`: NAME is the fixture's lock, and
 * COMMAND this program as a family of that kind.  The options end with NULL; a
 * url of NULL stands for the fixture's.  job_end() frees what the job has. */
void job_start(struct job *job, const struct fixture *fixture, const char *url,
               const char *const *options, const char *kind);

/* Read what sqlock has written so far; return whether the text is in it. */
bool job_has_said(struct job *job, const char *text);

/* Wait until sqlock has written the text; fail the test if it ends without
 * that, or after PATIENCE_MS. */
void job_await(struct job *job, const char *text);

/* Tell whether sqlock has ended, without waiting. */
bool job_has_ended(const struct job *job);

/* Read what sqlock has written so far, then fill the pipe: sqlock's next write
 * blocks until job_listen(). */
void job_deafen(struct job *job);

/* Read the filler, so that sqlock can write again. */
void job_listen(struct job *job);

/* Start a job as job_start() does, and wait until its family has so many
 * members.  If sqlock ends before with 69 or 76, as it may on a busy machine,
 * start it again; in other cases, and after some time, fail the test. */
void job_run(struct job *job, const struct fixture *fixture, const char *url,
             const char *const *options, const char *kind, int members);

/* Return the process id of sqlock's child or grandchild of that name; fail the
 * test if there is none. */
pid_t job_process(const struct job *job, const char *name);
#define JOB_WATCHER "lock-watcher"
#define JOB_SUPERVISOR "lock-supervisor"

/* Wait until sqlock has ended, then until all its descendants have, and free
 * what the job has except `said`.  Fail the test if either takes longer than
 * PATIENCE_MS.  Return sqlock's exit status, or 128 plus the number of the
 * signal that ended it. */
int job_end(struct job *job);

/* Send TERM to sqlock, and end the job; fail the test unless TERM ended it. */
void job_terminate(struct job *job);

/* Wait until the command has begun, then end the job by job_terminate(). */
void job_expect_start(struct job *job);

/* Collect all children that have ended; return whether others are left.  This
 * process is a subreaper: orphaned descendants are its children, too. */
bool job_is_anyone_left(void);

#endif
