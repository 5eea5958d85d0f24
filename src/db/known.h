/*
 * known.h - what was learnt of connections of the application, from one
 * adoption to the next
 *
 * A handle says little: after it was freed another one may have its address,
 * and it may lead to another session.  So what is kept here is a hint, which a
 * driver proves on the server before it relies on it
 * (sqlock_transactions.resume).
 */
#ifndef LK_KNOWN_H
#define LK_KNOWN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most connections that are remembered; then the one that was not adopted
 * for the longest time is forgotten. */
#define LK_KNOWN_MAX 256

struct lk_known {
    void *native;
    int64_t session;   /* its number on the server, as the handle says */
    uint32_t identity; /* number of the identity that it had */
    bool is_prepared;  /* has the registry's statements */
    /* may have none: a pooler lends the session, or the application has
     * deallocated what was there */
    bool is_bare;
    uint64_t used; /* rises with each note */
};

struct lk_known_list {
    pthread_mutex_t mutex;
    struct lk_known *list;
    size_t count;
    uint64_t uses;
};

void lk_known_init(struct lk_known_list *known);
void lk_known_clear(struct lk_known_list *known);

/* Find what is known of that handle and session.  Return false, and set *out to
 * a session of which nothing is known, if there is nothing. */
bool lk_known_find(struct lk_known_list *known, void *native, int64_t session,
                   struct lk_known *out);

/* Remember that of its handle, as the last that was noted of it.  Without
 * memory it is forgotten. */
void lk_known_note(struct lk_known_list *known, struct lk_known *what);

/* Return whether nothing was noted of that handle since *what was. */
bool lk_known_is_last(struct lk_known_list *known, const struct lk_known *what);

#endif
