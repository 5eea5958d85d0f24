/*
 * target.h - a row that is to be locked, whether it stands for a name or is the
 * application's: lock.c waits for both in the same way
 */
#ifndef LK_TX_TARGET_H
#define LK_TX_TARGET_H

#include "tx/tx.h"

struct lk_tx_target {
    /* set for a name */
    const char *name;
    const char *key;
    struct lk_arguments arguments;
    /* set for a row of the application: SELECTs that lock the row without
     * waiting, that wait, and that lock nothing */
    char *free_text, *wait_text, *plain_text;
    const sqlock_value *row_key;

    unsigned blind; /* attempts for which the row was invisible but free */
    bool was_made;  /* this call has inserted the name's row */
};

/* Lock the row; with `waits`, wait while another session has it locked.  Return
 * 1 if it is locked now, 0 if there was no row to lock, EBUSY if another
 * session has it locked, or another error. */
int lk_tx_target_lock(sqlock_tx *tx, const struct lk_tx_target *target,
                      bool waits, int64_t deadline_ns, sqlock_error *err);

/* Insert a name's row if it is missing, without looking for the row in the
 * transaction: a look could lock the gap where the row is to be, or take a
 * snapshot without it. */
int lk_tx_target_ensure(sqlock_tx *tx, const struct lk_tx_target *target,
                        sqlock_error *err);

/* Find out why there was nothing to lock.  Return 0 if another session has the
 * row locked, or had it locked; 1 if it was missing, and has been inserted;
 * ENOTFOUND if the application has no such row; or another error. */
int lk_tx_target_examine(sqlock_tx *tx, struct lk_tx_target *target,
                         sqlock_error *err);

#endif
