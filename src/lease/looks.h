/*
 * looks.h - what earlier looks at rows have told about the clocks of their
 * holders: one look at a row says little, and less the older the row is
 */
#ifndef LK_LOOKS_H
#define LK_LOOKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sqlock.h"

#define LK_LOOKS_SIZE 64 /* keys that are remembered, at most */

/* A look at a row that has a holder. */
struct lk_look {
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
    int64_t created_us; /* CREATED_DATE */
    int64_t now_us;     /* the database's clock */
    int64_t at_ns;      /* CLOCK_MONOTONIC */
    /* by how much, at least, the holder's clock is off; 0: nothing is known */
    int64_t ahead_us, behind_us;
};

enum lk_direction { LK_CLOCK_AHEAD, LK_CLOCK_BEHIND, LK_DIRECTIONS };

struct lk_looks {
    pthread_mutex_t mutex; /* guards the following fields; innermost */
    struct lk_look last[LK_LOOKS_SIZE]; /* by hash of the key */
    /* the last report of each direction; at_ns 0: none */
    struct {
        int64_t at_ns;
        int64_t off_us;
    } told[LK_DIRECTIONS];
};

void lk_looks_init(struct lk_looks *looks);
void lk_looks_clear(struct lk_looks *looks);

/* Add a look, and raise look->ahead_us and behind_us to the most that any look
 * at this holder has told.  is_written_by_holder: the holder's own clock is in
 * CREATED_DATE whenever that changes, so a date before the last look at the
 * row, which still had another, is behind. */
void lk_looks_add(struct lk_looks *looks, struct lk_look *look,
                  bool is_written_by_holder);

/* Return by how much, at least, that holder's clock is ahead, as far as earlier
 * looks at the key have told. */
int64_t lk_looks_ahead_us(struct lk_looks *looks, const char *key,
                          const char *client_id);

/* Return whether to report now that a clock is off by off_us: once a minute, or
 * if it is worse than the last report by more than step_us.  Then it counts as
 * reported. */
bool lk_looks_may_tell(struct lk_looks *looks, enum lk_direction direction,
                       int64_t off_us, int64_t step_us, int64_t now_ns);

#endif
