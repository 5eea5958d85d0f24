/*
 * row.h - the rows of the lock table, read without locking them
 */
#ifndef LK_ROW_H
#define LK_ROW_H

#include "lease/batch.h"

/* The row of a key. */
struct lk_row {
    bool exists;
    bool is_taken;   /* CLIENT_ID is there and the lease is not over */
    bool is_sqlocks; /* HOLDER says so: its release will notify */
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;        /* 0: the layout has none */
    int64_t remaining_us; /* negative when over */
    int64_t acquired_at_us;
    int64_t expires_at_us;
};

/* Read the row of a key.  Never EUNCERTAIN. */
int lk_row_read(struct lk_store *store, const char *key, int64_t deadline_ns,
                struct lk_row *row, sqlock_error *err);

/* Read the text of the holder of a key's live lease, or a peer's CLIENT_ID; "":
 * nobody holds it.  Results as those of lk_row_read(). */
int lk_row_holder(struct lk_store *store, const char *key,
                  char holder[LK_HOLDER_SIZE], sqlock_error *err);

/* Read the rows of a batch, in the order of its items; `rows` is zeroed before.
 * Results as those of lk_row_read(). */
int lk_rows_read(struct lk_store *store, struct lk_batch *batch,
                 struct lk_row *rows, sqlock_error *err);

/* Find the row of a key among those of a batch; NULL: there is none. */
const struct lk_row *lk_row_of(const struct lk_batch *batch,
                               const struct lk_row *rows, const char *key);

#endif
