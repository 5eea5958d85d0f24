/*
 * company.h - the processes of a scene, and the calls that their threads make
 *
 * Each process is a program that speaks the protocol of README.md: this one
 * with --actor, or the command in SQLOCK_TEST_ACTOR.  It has one registry, and
 * says when a call begins, when it ends, and which leases it was told are lost.
 */
#ifndef TESTS_SCENES_COMPANY_H
#define TESTS_SCENES_COMPANY_H

#include <sys/types.h>

#include "support/check.h"

#define PROCESSES_MAX 20
#define THREADS_MAX 20 /* numbered from 0, which opens and closes */
#define LOSSES_MAX 128

/* The last call of a thread. */
struct call {
    bool is_made;
    bool has_begun;
    bool is_over;
    int tid; /* the kernel's number of the thread */
    int rc;
    int64_t token; /* of what it acquired; 0: nothing */
    char message[512];
};

/* The losses that a process was told of one lock. */
struct loss {
    char name[96];
    int times;
    int code;
};

struct process {
    char id[16];
    pid_t pid;
    int to; /* its standard input; -1: it has been closed */
    int from;
    bool is_gone; /* its standard output has ended */
    char bytes[4096];
    size_t count;
    struct call calls[THREADS_MAX];
    struct loss losses[LOSSES_MAX];
    int told;       /* losses of all locks */
    int to_tell;    /* at most, as it took so many locks with told */
    int counted;    /* losses, the last time that was asked; -1: not since */
    size_t threads; /* it had, and descriptors */
    size_t fds;
};

struct company {
    struct process all[PROCESSES_MAX];
    size_t count;
};

/* Return the process of that id; NULL if there is none. */
struct process *company_find(struct company *company, const char *id);

/* Start a process. */
struct process *company_start(struct company *company, const char *id);

/* Let a thread of the process make a call: the words of a step. */
void company_call(struct process *process, int thread, const char *words);

/* Read what the processes have to say, for at most that many ms. */
void company_listen(struct company *company, int ms);

/* Listen until the call is over; return false if it takes too long. */
bool company_await(struct company *company, const struct process *process,
                   int thread);

/* Listen until the call is over, or its thread sleeps, and so has come to its
 * place; or, with is_idle, until it sleeps where another thread wakes it, or
 * long.  Return whether it sleeps. */
bool company_settle(struct company *company, const struct process *process,
                    int thread, bool is_idle);

/* Return how often the thread has gone to sleep of itself. */
long company_sleeps(const struct process *process, int thread);

/* Return the processor time that the process has used. */
int64_t company_processor_ms(const struct process *process);

/* Return what the process was told of the lock of that name. */
const struct loss *company_loss(const struct process *process,
                                const char *name);

/* Wait for the process's end, and return its status.  Kill it first, if it does
 * not end by itself. */
int company_end(struct company *company, struct process *process);

#endif
