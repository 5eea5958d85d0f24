/*
 * ids.h - give numbers to statements that are not the dialect's own, so that
 * they, too, are prepared once per connection
 */
#ifndef LK_IDS_H
#define LK_IDS_H

#include <pthread.h>

#include "db/driver.h"

/* The dialect's statements have the numbers 1 to SQLOCK_SQL_KINDS. */
#define LK_IDS_FIRST (SQLOCK_SQL_KINDS + 1u)
#define LK_IDS_COUNT (SQLOCK_STATEMENT_IDS - LK_IDS_FIRST + 1)

struct lk_ids {
    pthread_mutex_t mutex;
    char *texts[LK_IDS_COUNT]; /* by number, from LK_IDS_FIRST on */
};

void lk_ids_init(struct lk_ids *ids);
void lk_ids_clear(struct lk_ids *ids);

/* Return the number of a text, always the same, and keep a copy of the text.
 * Return 0 if numbers or memory have run out: then the text is not
 * prepared. */
uint32_t lk_ids_of(struct lk_ids *ids, const char *text);

#endif
