/*
 * open.h - the life of a store: made, opened, cleared
 */
#ifndef LK_OPEN_H
#define LK_OPEN_H

#include "lease/store.h"

/* Initialize the struct, without I/O.  Afterwards call lk_store_clear(),
 * whether lk_store_open() has succeeded, failed or not been called. */
void lk_store_init(struct lk_store *store);

/* Connect, find the table and read it once.  Strings are copied.  Results as
 * sqlock_registry_open(). */
int lk_store_open(struct lk_store *store, const char *url,
                  const sqlock_options *options, sqlock_error *err);

/* Stop the background service, end the connections and free the store.  No
 * other thread may use the store. */
void lk_store_clear(struct lk_store *store);

#endif
