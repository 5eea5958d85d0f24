/*
 * history.h - who believed to hold a lock, and when; and whether that can be
 *
 * One history is of one lock.  Every party writes down what it was told, on the
 * machine's CLOCK_BOOTTIME: when it asked, when it was granted, until when it
 * may believe, when it let go.  A belief lasts from the answer to the deadline,
 * or to the moment it let go before.  Calls may come from any thread.
 */
#ifndef TESTS_HISTORY_H
#define TESTS_HISTORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_MAX 512
#define HISTORY_TEXT 256

enum history_what {
    HISTORY_GRANTED,
    HISTORY_RENEWED,
    HISTORY_ENDED, /* released, given up, or dead */
    HISTORY_TOLD   /* the signal that the lease is over was given */
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
void history_told(struct history *history, int who);

/*
 * Whether nothing in it is wrong; otherwise why tells the first thing that is:
 *     two parties believed at one time
 *     a token did not rise, or came twice
 *     somebody was told of its loss only after another one was granted
 *     a party was granted, renewed, ended or told out of turn
 */
bool history_is_good(struct history *history, char why[HISTORY_TEXT]);

/* Count the grants to one party right after another had held the lock. */
size_t history_handoffs(struct history *history);

/* Fails the running test, with the events, unless the history is good. */
#define history_check(history) history_check_at((history), __FILE__, __LINE__)
void history_check_at(struct history *history, const char *file, int line);

#endif
