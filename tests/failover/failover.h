/*
 * failover.h - one failover of PostgreSQL under guarded writes of several
 * processes: what they noted down, and what the promoted standby has of it
 */
#ifndef TESTS_FAILOVER_H
#define TESTS_FAILOVER_H

#include "support/database.h"

#define WRITERS_MAX 8
#define WRITES_MAX 20000

/* A guarded write whose commit was acknowledged.  Writes are numbered in the
 * database, by a counter that the same transaction counts up. */
struct write {
    int64_t number;
    int64_t token;
    bool is_late; /* on the promoted standby */
};

/* Shared by the processes. */
struct notes {
    int64_t port;      /* of the standby that is promoted */
    volatile int over; /* time to end */
    struct writer {
        volatile unsigned count;
        volatile unsigned late;
        unsigned unknown; /* commits that broke under way */
        unsigned refused; /* calls that failed */
        int last;         /* code of the last one */
        char message[512];
        struct write writes[WRITES_MAX];
    } writers[WRITERS_MAX];
};

struct notes *notes_make(void);

/* A process of its own: take the lock, write, release, until it is over. */
void write_on(struct writer *writer, struct notes *notes, const char *url,
              const char *prefix, unsigned number);

#endif
