/*
 * history.h - record when each party believed that it held a lock, and let
 * tests/history/check.py judge that
 *
 * A history belongs to one lock.  A party is a user of the lock, known by a
 * number.  Each party records, by this machine's CLOCK_BOOTTIME, when it asked
 * for the lock, when it was granted, the deadline of its lease, and when it
 * gave the lock up.  A belief lasts from the answer to the deadline, or until
 * the party gave the lock up before that.  Calls may come from any thread.
 */
#ifndef TESTS_HISTORY_H
#define TESTS_HISTORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HISTORY_MAX 512
#define HISTORY_PATH 64

enum history_what {
    HISTORY_GRANTED,
    HISTORY_RENEWED,
    HISTORY_ENDED /* released, given up, or dead */
};

struct history_event {
    enum history_what what;
    int who;
    int64_t asked_ns; /* before the call */
    int64_t at_ns;    /* after it; ENDED: before the call */
    int64_t until_ns; /* GRANTED, RENEWED: the deadline */
    int64_t token;    /* GRANTED */
};

struct history {
    pthread_mutex_t mutex;
    size_t count;
    struct history_event events[HISTORY_MAX];
};

void history_init(struct history *history);
void history_clear(struct history *history);

void history_add(struct history *history, const struct history_event *event);
void history_granted(struct history *history, int who, int64_t asked_ns,
                     int64_t until_ns, int64_t token);
void history_renewed(struct history *history, int who, int64_t asked_ns,
                     int64_t until_ns);
void history_ended(struct history *history, int who);

/* Return the number of grants to another party than the grant before. */
size_t history_handoffs(struct history *history);

/* If the history is wrong, print why and where it is, and fail the test. */
#define history_check(history) history_check_at((history), __FILE__, __LINE__)
void history_check_at(struct history *history, const char *file, int line);

/* Open a file for a history in the language of tests/history/README.md, whose
 * times are history_ms(); close it, and return how many faults the checker
 * finds, which it prints if it is to.  The caller removes the file. */
FILE *history_file(char path[HISTORY_PATH]);
double history_ms(int64_t ns);
unsigned history_faults(FILE *file, const char *path, bool prints);

#endif
