/*
 * hearer.c - the connection of a pool that hears rings (pool.h)
 */
#include "db/pool.h"

void lk_pool_hear(struct lk_pool *pool, struct lk_connection *connection,
                  struct lk_handler *ear)
{
    pthread_mutex_lock(&pool->mutex);
    pool->hearer = connection;
    pool->ear = ear;
    pthread_mutex_unlock(&pool->mutex);
}

void lk_pool_use_hearer(struct lk_pool *pool, enum lk_hearer_use use)
{
    pthread_mutex_lock(&pool->mutex);
    pool->hearer_use = use;
    pthread_cond_broadcast(&pool->given_back); /* they may take it now */
    pthread_mutex_unlock(&pool->mutex);
}

bool lk_pool_has_hearer(struct lk_pool *pool)
{
    bool has_hearer;

    pthread_mutex_lock(&pool->mutex);
    has_hearer = pool->hearer != NULL;
    pthread_mutex_unlock(&pool->mutex);
    return has_hearer;
}
