/*
 * looks.c - remember looks at rows (looks.h)
 */
#include "lease/looks.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

#define PAUSE_NS (60000 * LK_NS_PER_MS)

void lk_looks_init(struct lk_looks *looks)
{
    memset(looks, 0, sizeof *looks);
    (void)pthread_mutex_init(&looks->mutex, NULL);
}

void lk_looks_clear(struct lk_looks *looks)
{
    (void)pthread_mutex_destroy(&looks->mutex);
}

static struct lk_look *slot_of(struct lk_looks *looks, const char *key)
{
    uint64_t hash = lk_hash_on(LK_HASH_NOTHING, key, strlen(key));

    return &looks->last[hash % LK_LOOKS_SIZE];
}

static int64_t more(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Return whether the database's clock went on between two looks as this host's
 * did, to a second: a step would look like another clock's. */
static bool is_in_step(const struct lk_look *before, const struct lk_look *now)
{
    int64_t step_us =
        (now->now_us - before->now_us) - (now->at_ns - before->at_ns) / 1000;

    return step_us < 1000000 && step_us > -1000000;
}

void lk_looks_add(struct lk_looks *looks, struct lk_look *look,
                  bool is_written_by_holder)
{
    struct lk_look *last;

    (void)pthread_mutex_lock(&looks->mutex);
    last = slot_of(looks, look->key);
    if (strcmp(last->key, look->key) == 0) {
        if (is_written_by_holder && last->created_us != look->created_us &&
            last->now_us < look->now_us && is_in_step(last, look))
            look->behind_us = more(0, last->now_us - look->created_us);
        if (strcmp(last->client_id, look->client_id) == 0) {
            look->ahead_us = more(last->ahead_us, look->ahead_us);
            look->behind_us = more(last->behind_us, look->behind_us);
        }
    }
    *last = *look;
    (void)pthread_mutex_unlock(&looks->mutex);
}

int64_t lk_looks_ahead_us(struct lk_looks *looks, const char *key,
                          const char *client_id)
{
    const struct lk_look *last;
    int64_t ahead_us = 0;

    (void)pthread_mutex_lock(&looks->mutex);
    last = slot_of(looks, key);
    if (strcmp(last->key, key) == 0 && strcmp(last->client_id, client_id) == 0)
        ahead_us = last->ahead_us;
    (void)pthread_mutex_unlock(&looks->mutex);
    return ahead_us;
}

bool lk_looks_may_tell(struct lk_looks *looks, enum lk_direction direction,
                       int64_t off_us, int64_t step_us, int64_t now_ns)
{
    bool may_tell;

    (void)pthread_mutex_lock(&looks->mutex);
    may_tell = looks->told[direction].at_ns == 0 ||
               now_ns - looks->told[direction].at_ns >= PAUSE_NS ||
               off_us > looks->told[direction].off_us + step_us;
    if (may_tell) {
        looks->told[direction].at_ns = now_ns;
        looks->told[direction].off_us = off_us;
    }
    (void)pthread_mutex_unlock(&looks->mutex);
    return may_tell;
}
