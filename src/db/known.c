/*
 * known.c - see known.h
 */
#include "db/known.h"

#include <stdlib.h>
#include <string.h>

void lk_known_init(struct lk_known_list *known)
{
    memset(known, 0, sizeof *known);
    (void)pthread_mutex_init(&known->mutex, NULL);
}

void lk_known_clear(struct lk_known_list *known)
{
    free(known->list);
    (void)pthread_mutex_destroy(&known->mutex);
    memset(known, 0, sizeof *known);
}

static struct lk_known *find(struct lk_known_list *known, const void *native)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->list[i].native == native)
            return &known->list[i];
    return NULL;
}

bool lk_known_find(struct lk_known_list *known, void *native, int64_t session,
                   struct lk_known *out)
{
    const struct lk_known *found;

    *out = (struct lk_known){.native = native, .session = session};
    pthread_mutex_lock(&known->mutex);
    found = find(known, native);
    if (found != NULL && found->session != session)
        found = NULL;
    if (found != NULL)
        *out = *found;
    pthread_mutex_unlock(&known->mutex);
    return found != NULL;
}

/* Return a place for one more: a new one, or that of the oldest; NULL: out of
 * memory. */
static struct lk_known *make_place(struct lk_known_list *known)
{
    struct lk_known *oldest = known->list;
    struct lk_known *longer;

    if (known->count < LK_KNOWN_MAX) {
        longer = realloc(known->list, (known->count + 1) * sizeof *longer);
        if (longer == NULL)
            return NULL;
        known->list = longer;
        return &longer[known->count++];
    }
    for (size_t i = 1; i < known->count; i++)
        if (known->list[i].used < oldest->used)
            oldest = &known->list[i];
    return oldest;
}

void lk_known_note(struct lk_known_list *known, struct lk_known *what)
{
    struct lk_known *place;

    pthread_mutex_lock(&known->mutex);
    place = find(known, what->native);
    if (place == NULL)
        place = make_place(known);
    what->used = ++known->uses;
    if (place != NULL)
        *place = *what;
    pthread_mutex_unlock(&known->mutex);
}

bool lk_known_is_last(struct lk_known_list *known, const struct lk_known *what)
{
    const struct lk_known *found;
    bool is_last;

    pthread_mutex_lock(&known->mutex);
    found = find(known, what->native);
    is_last = found != NULL && found->used == what->used;
    pthread_mutex_unlock(&known->mutex);
    return is_last;
}
