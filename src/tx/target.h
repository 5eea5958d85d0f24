/*
 * target.h - a row that is to be locked: a name's, or one of the application
 */
#ifndef LK_TX_TARGET_H
#define LK_TX_TARGET_H

#include "tx/tx.h"

struct lk_tx_target {
    /* a name */
    const char *name;
    const char *key;
    struct lk_arguments arguments;
    /* or a row */
    char *free_text, *wait_text, *plain_text;
    const sqlock_value *row_key;

    unsigned blind; /* attempts that found nothing to wait for */
    bool was_made;  /* the name's row, by us */
};

/* Lock the row; with `waits`, wait for its lock.  1: locked; 0: there was no
 * row to lock; EBUSY: another session has it. */
int lk_tx_target_lock(sqlock_tx *tx, const struct lk_tx_target *target,
                      bool waits, int64_t deadline_ns, sqlock_error *err);

/* Insert a name's row if it is missing, without looking for it in the
 * transaction: that could lock the gap where the row is to be, or take a
 * snapshot without it. */
int lk_tx_target_ensure(sqlock_tx *tx, const struct lk_tx_target *target,
                        sqlock_error *err);

/* Find out why there was nothing to lock.  0: another session has the row, or
 * had it; 1: it was missing, and has been inserted; ENOTFOUND: the application
 * has no such row. */
int lk_tx_target_examine(sqlock_tx *tx, struct lk_tx_target *target,
                         sqlock_error *err);

#endif
