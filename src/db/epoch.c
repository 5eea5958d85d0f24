/*
 * epoch.c - detect a change of the server's epoch (see epoch.h)
 */
#include "db/epoch.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

void lk_epoch_init(struct lk_epoch *epoch)
{
    memset(epoch, 0, sizeof *epoch);
    (void)pthread_mutex_init(&epoch->mutex, NULL);
}

void lk_epoch_clear(struct lk_epoch *epoch)
{
    (void)pthread_mutex_destroy(&epoch->mutex);
}

bool lk_epoch_note(struct lk_epoch *epoch, const char *now, uint32_t *changes)
{
    char before[SQLOCK_EPOCH_SIZE];
    bool is_another;
    bool is_left;

    pthread_mutex_lock(&epoch->mutex);
    memcpy(before, epoch->last, sizeof before);
    is_another = *now != '\0' && *before != '\0' && strcmp(before, now) != 0;
    is_left = is_another && epoch->changes != *changes;
    if (*now != '\0' && !is_left) {
        epoch->changes += is_another;
        (void)snprintf(epoch->last, sizeof epoch->last, "%s", now);
    }
    *changes = epoch->changes;
    pthread_mutex_unlock(&epoch->mutex);
    if (is_another && !is_left && epoch->changed != NULL)
        epoch->changed(epoch->context, before, now);
    return !is_left;
}

void lk_epoch_note_settings(struct lk_epoch *epoch, const char *settings)
{
    bool is_news;

    pthread_mutex_lock(&epoch->mutex);
    is_news = strcmp(epoch->settings, settings) != 0;
    (void)snprintf(epoch->settings, sizeof epoch->settings, "%s", settings);
    pthread_mutex_unlock(&epoch->mutex);
    if (is_news && *settings != '\0' && epoch->forgets != NULL)
        epoch->forgets(epoch->context, settings);
}

uint32_t lk_epoch_last(struct lk_epoch *epoch, char last[SQLOCK_EPOCH_SIZE])
{
    uint32_t changes;

    pthread_mutex_lock(&epoch->mutex);
    memcpy(last, epoch->last, sizeof epoch->last);
    changes = epoch->changes;
    pthread_mutex_unlock(&epoch->mutex);
    return changes;
}

void lk_epoch_hold_back(struct lk_epoch *epoch, int64_t until_ns)
{
    atomic_store(&epoch->held_until_ns, until_ns);
}

int64_t lk_epoch_held_ns(const struct lk_epoch *epoch)
{
    int64_t until_ns = atomic_load(&epoch->held_until_ns);
    int64_t now_ns = until_ns != 0 ? lk_boottime_ns() : 0;

    return until_ns > now_ns ? until_ns - now_ns : 0;
}

int lk_epoch_error(const struct lk_epoch *epoch, int rc, sqlock_error *err)
{
    int64_t held_ns = lk_epoch_held_ns(epoch);

    if (held_ns == 0)
        return rc;
    return lk_error(err, rc,
                    "the server may have forgotten leases, and grants nothing "
                    "for another %lld ms",
                    (long long)(held_ns / LK_NS_PER_MS + 1));
}
