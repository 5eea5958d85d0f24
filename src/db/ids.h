/*
 * ids.h - give numbers to statements that are not the dialect's own, so that
 * they, too, are prepared once per connection
 */
#ifndef LK_IDS_H
#define LK_IDS_H

#include <pthread.h>

#include "db/driver.h"

/* The dialect's statements have the numbers 1 to SQLOCK_SQL_KINDS, the last
 * ones are for the application's texts: a program that makes up ever new texts
 * uses up no number of the library's. */
#define LK_IDS_FIRST (SQLOCK_SQL_KINDS + 1u)
#define LK_IDS_APPLICATION 32u
#define LK_IDS_LIBRARY                                                         \
    (SQLOCK_STATEMENT_IDS - LK_IDS_FIRST + 1 - LK_IDS_APPLICATION)

struct lk_ids {
    pthread_mutex_t mutex;
    uint32_t first; /* number of texts[0] */
    size_t most;
    struct lk_numbered {
        char *text;
        uint64_t types;
    } texts[LK_IDS_LIBRARY];
};

/* `most` as above, at most LK_IDS_LIBRARY. */
void lk_ids_init(struct lk_ids *ids, uint32_t first, size_t most);
void lk_ids_clear(struct lk_ids *ids);

/* Return the number of a text whose parameters have those types, always the
 * same, and keep a copy of the text.  `types` is any number that tells them
 * apart: PostgreSQL prepares a text for types.  Return 0 if numbers or memory
 * have run out: then the text is not prepared. */
uint32_t lk_ids_of(struct lk_ids *ids, const char *text, uint64_t types);

#endif
