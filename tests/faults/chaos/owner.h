/*
 * owner.h - one of the owners of a process, which has handles of its own
 */
#ifndef TESTS_CHAOS_OWNER_H
#define TESTS_CHAOS_OWNER_H

#include "chaos.h"
#include "sqlock/quorum.h"
#include "sqlock/stock.h"

struct owner {
    struct chaos *chaos;
    sqlock_registry *registry;
    sqlock_stock *stock;
    unsigned process, life, index;
    struct dice dice;
    sqlock_lock *locks[LOCKS];
    sqlock_quorum *quorum; /* NULL: there is none */
    sqlock_error err;
};

/* A lease: of which lock, and how it was asked for. */
struct held {
    size_t lock;
    int weight;
    bool is_renewed; /* in the background */
    bool is_unclear; /* alone, or a share: nothing is relied on */
};

/* Do something, by a number below this: an act that has no number of its own
 * has several. */
#define OWNER_ACTS 20
void owner_act(struct owner *owner, unsigned number);

/* Begin and end a line of the history about a call. */
struct line *owner_begin(struct owner *owner, const char *verb,
                         const char *lock);
void owner_end(struct line *line, int rc);
/* Acquire a lock, and release one. */
int owner_take(struct owner *owner, const struct held *held, int64_t wait_ms,
               const sqlock_acquire_options *how);
void owner_give(struct owner *owner, const struct held *held);

#endif
