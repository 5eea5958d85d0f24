/*
 * hearing.h - functions of the tests of bells
 */
#ifndef TESTS_DRIVERS_HEARING_H
#define TESTS_DRIVERS_HEARING_H

#include "drivers/suite.h"

#define BELL "0123456789abcdef0123456789abcdef" /* as long as a name can be */
#define OTHER "0"
#define TEXTS_MAX 20000

/* Texts that were heard. */
struct heard {
    unsigned count;
    char last[40];
    bool is_lossy;           /* a text was "" */
    bool numbers[TEXTS_MAX]; /* texts that are numbers */
};

/* Call a function of the bell.  `until_ms` is the longest wait for the one
 * before. */
int begin_hearing(struct session *session, const char *name, int64_t until_ms);
int end_hearing(struct session *session);
int hear(struct session *session, struct heard *heard);

/* Hear until it rings or the bell is lost, and return that code. */
int await_ring(struct session *session, struct heard *heard);

/* Assert that the next thing that is heard is that text, alone; or that there
 * is nothing to hear. */
void hears(struct session *session, const char *text);
void hears_nothing(struct session *session);

/* Have session a hear at BELL, and return it; skip the test behind a pooler. */
struct session *hearer(struct fixture *f);
void skip_behind_a_pooler(void);

/* Write the SQL expression that rings. */
const char *ringing(char out[160], const char *name, const char *text);
void ring(struct session *session, const char *name, const char *text);

/* A child with a connection of its own. */
struct child {
    pid_t pid;
    int told;  /* the child closes it: it has done its first part */
    int go_on; /* closed by the parent: the child does the second */
};

/* Fork, while no connection is open (SQLite), and let the child open a
 * connection, run `first`, wait for end_child(), and run `second`.  Each may be
 * NULL, and returns a code. */
void start_child(struct child *child, int (*first)(struct session *),
                 int (*second)(struct session *));
/* Let the child run `second` and end, or kill it before that. */
void end_child(struct child *child, bool is_killed);

/* Close both sessions of a test, for start_child(). */
void close_both(struct fixture *f);

#endif
