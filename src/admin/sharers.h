/*
 * sharers.h - tell who shares a lock, from the SHARERS of its row
 */
#ifndef LK_ADMIN_SHARERS_H
#define LK_ADMIN_SHARERS_H

#include "sqlock/admin.h"

/* The sharers of a row, as its column says.  The caller frees the texts. */
struct lk_sharing {
    uint32_t permits;
    bool is_shared; /* the row's lease is that of a group */
    int32_t count;  /* of the sharers that are not over */
    uint32_t taken; /* their weights */
    /* of the first that is not over, nor broken if there is one: since when,
     * and the holder; 0 and NULL: there are none */
    int64_t since_us;
    char *holder;
    char *names; /* a line for each; NULL: there are none */
};

/* Read the text of SHARERS, which may be NULL, of a row with that CLIENT_ID and
 * state at now_us, by the database's clock.  The sharers of an expired row are
 * all over: those are told that it still has.  Return 0 or ENOMEM. */
int lk_sharing_read(struct lk_sharing *out, const char *sharers,
                    const char *client_id, sqlock_state state, int64_t now_us);
void lk_sharing_clear(struct lk_sharing *sharing);

#endif
