/*
 * resolver.c - send releases, in the background, for claims and releases in
 * doubt, until each is final: none of its statements can take the row any more
 *
 * A release in doubt is final as soon as the database answers its repetition.
 * A claim is final when a release frees its row after the time at which its
 * last copy can reach the database.  Both are final when the lease would be
 * over.  The pauses between the attempts at a row grow with each attempt, which
 * keeps statements few.  An outage pauses all rows at once.
 */
#include "lease/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/retry.h"
#include "lease/bell.h"
#include "lease/ticket.h"

/* Pauses between attempts at one row, and, after an outage, at all rows. */
static const struct lk_retry_policy row_policy = {
    .first_us = 10000,
    .longest_us = LK_NEVER / LK_NS_PER_US,
};
static const struct lk_retry_policy outage_policy = {
    .first_us = 50000,
    .longest_us = 1000000,
};

/* How long a wait that has ended tries to remove its ticket. */
#define LEAVE_MS 250

/* A claim or release in doubt.  Times are CLOCK_BOOTTIME. */
struct lk_doubt {
    struct lk_doubt *next;
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
    int64_t due_ns;
    uint32_t tries;
    /* no copy of a claim arrives after this time; 0: none is under way */
    int64_t arrives_by_ns;
    bool is_release; /* which may have been carried out, and told nobody */
    bool has_ticket; /* in the row's QUEUE, perhaps */
    bool is_share;   /* or it is one, if it has not the row itself */
    bool has_text;   /* of a leader */
    int64_t over_ns; /* by then its lease has run out */
};

/* --- one row; the caller holds no mutex --- */

/* Return as lk_store_change(). */
static int send(struct lk_store *store, const struct lk_doubt *doubt,
                sqlock_statement_kind kind, int64_t deadline_ns)
{
    struct lk_arguments arguments;
    struct lk_run run = {.deadline_ns = deadline_ns, .is_repeatable = true};

    lk_store_arguments(store, doubt->key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, doubt->client_id);
    return lk_store_change(store, kind, &arguments, &run, NULL);
}

/* Tell those who are to know that the row has been released. */
static void tell(struct lk_store *store, const struct lk_doubt *doubt,
                 int64_t deadline_ns)
{
    const char *key = doubt->key;

    if (doubt->has_text)
        lk_bell_tell(store, key, deadline_ns);
    lk_bell_ask_to_look(store, &key, 1, deadline_ns);
}

/* Remove the ticket, and free the row.  A ticket that is not there any more may
 * have been given the row, so this order misses neither.  Return whether the
 * doubt is final; *rc is the result of the last statement, 0 if none was
 * sent. */
static bool resolve(struct lk_store *store, struct lk_doubt *doubt,
                    int64_t deadline_ns, int *rc)
{
    int left = 0;
    int done;

    *rc = 0;
    if (lk_boottime_ns() >= doubt->over_ns)
        return true;
    if (doubt->has_ticket)
        left = send(store, doubt, SQLOCK_SQL_LEAVE, deadline_ns);
    done =
        left != 0 ? left : send(store, doubt, SQLOCK_SQL_RELEASE, deadline_ns);
    if (done == 0 && doubt->is_share)
        done = send(store, doubt, SQLOCK_SQL_RELEASE_SHARE, deadline_ns);
    *rc = done < 0 ? done : 0;
    if (*rc == 0 && left == 0 && (done > 0 || doubt->is_release)) {
        tell(store, doubt, deadline_ns);
        doubt->is_release = false;
    }
    if (doubt->arrives_by_ns == 0)
        return *rc == 0;
    return done > 0 && lk_boottime_ns() >= doubt->arrives_by_ns;
}

/* --- all rows; the caller holds the mutex --- */

static void put_off(struct lk_resolver *resolver, struct lk_doubt *doubt,
                    int rc)
{
    int64_t now = lk_boottime_ns();

    if (lk_is_outage(rc)) {
        resolver->failures++;
        resolver->not_before_ns =
            now + lk_retry_pause_ns(&outage_policy, resolver->failures);
        doubt->due_ns = now;
    } else {
        doubt->tries++;
        doubt->due_ns =
            lk_after_ns(now, lk_retry_pause_ns(&row_policy, doubt->tries));
    }
}

/* Return the row that is due first; NULL: none is left. */
static struct lk_doubt *first_due(const struct lk_resolver *resolver)
{
    struct lk_doubt *first = NULL;
    struct lk_doubt *doubt;

    LL_FOREACH(resolver->doubts, doubt)
    {
        if (first == NULL || doubt->due_ns < first->due_ns)
            first = doubt;
    }
    return first;
}

static int64_t due_at(const struct lk_resolver *resolver,
                      const struct lk_doubt *doubt)
{
    if (doubt == NULL)
        return LK_NEVER;
    return doubt->due_ns > resolver->not_before_ns ? doubt->due_ns
                                                   : resolver->not_before_ns;
}

/* Resolve one row, and free the doubt if it is final.  The caller holds the
 * mutex, which is released during the statement. */
static void resolve_one(struct lk_resolver *resolver, struct lk_doubt *doubt)
{
    bool is_final;
    int rc;

    LL_DELETE(resolver->doubts, doubt);
    pthread_mutex_unlock(&resolver->mutex);
    is_final = resolve(resolver->store, doubt,
                       lk_store_deadline(resolver->store), &rc);
    pthread_mutex_lock(&resolver->mutex);
    if (!lk_is_outage(rc))
        resolver->failures = 0;
    if (is_final) {
        free(doubt);
    } else {
        put_off(resolver, doubt, rc);
        LL_APPEND(resolver->doubts, doubt);
    }
}

/* Run by the service, without the mutex: send at most one statement.  Return
 * when the next one is due. */
static int64_t resolve_due(void *owner)
{
    struct lk_resolver *resolver = owner;
    struct lk_doubt *doubt;
    int64_t due;

    pthread_mutex_lock(&resolver->mutex);
    doubt = first_due(resolver);
    due = due_at(resolver, doubt);
    if (due <= lk_boottime_ns()) {
        resolve_one(resolver, doubt);
        due = due_at(resolver, first_due(resolver));
    }
    pthread_mutex_unlock(&resolver->mutex);
    return due;
}

/* --- interface --- */

void lk_resolver_init(struct lk_resolver *resolver, struct lk_store *store)
{
    memset(resolver, 0, sizeof *resolver);
    resolver->store = store;
    (void)pthread_mutex_init(&resolver->mutex, NULL);
    lk_handler_init(&resolver->handler, &store->background, resolve_due, NULL,
                    resolver);
}

static void add(struct lk_resolver *resolver, struct lk_doubt *doubt)
{
    bool is_added;

    pthread_mutex_lock(&resolver->mutex);
    is_added = lk_handler_start(&resolver->handler, NULL) == 0;
    if (is_added) {
        LL_APPEND(resolver->doubts, doubt);
        lk_handler_wake_at(&resolver->handler, doubt->due_ns);
    }
    pthread_mutex_unlock(&resolver->mutex);
    if (!is_added)
        free(doubt);
}

static void fill(struct lk_doubt *doubt, const char *key, const char *client_id)
{
    (void)snprintf(doubt->key, sizeof doubt->key, "%s", key);
    (void)snprintf(doubt->client_id, sizeof doubt->client_id, "%s", client_id);
    doubt->due_ns = lk_boottime_ns() + lk_retry_pause_ns(&row_policy, 1);
}

/* Memory is taken only for what could not be done at once. */
void lk_resolver_leave(struct lk_store *store, const char *key,
                       const char *client_id, bool is_outage)
{
    struct lk_doubt now = {.has_ticket = true};
    struct lk_doubt *later;
    int rc = 0;

    fill(&now, key, client_id);
    now.due_ns = lk_boottime_ns();
    now.over_ns = lk_after_ms(now.due_ns, LK_TICKET_MS);
    if (!is_outage &&
        resolve(store, &now, lk_after_ms(sqlock_monotonic_ns(), LEAVE_MS), &rc))
        return;
    later = malloc(sizeof *later);
    if (later == NULL)
        return;
    *later = now;
    add(&store->resolver, later);
}

/* Note until when the doubt can matter.  A statement may reach the table up to
 * one statement timeout after it was sent; claim_sent_ns is when a copy of the
 * claim was that got no answer, 0: none did. */
static void set_times(const struct lk_store *store, struct lk_doubt *doubt,
                      const struct lk_lease *lease, int64_t claim_sent_ns)
{
    int64_t timeout_ms = store->options.statement_timeout_ms;

    if (claim_sent_ns == 0) {
        doubt->over_ns = lk_after_ms(
            lease->believed.until_boot_ns,
            lk_margin_ms(&store->options, lease->asked.ttl_ms) + timeout_ms);
        return;
    }
    doubt->arrives_by_ns = lk_after_ms(claim_sent_ns, timeout_ms);
    doubt->over_ns = lk_after_ms(doubt->arrives_by_ns, lease->asked.ttl_ms);
    doubt->has_ticket = lease->asked.has_ticket;
}

/* Report a doubt about the lease, and add it. */
static void add_doubt(struct lk_store *store, const struct lk_lease *lease,
                      int64_t claim_sent_ns, bool is_release)
{
    struct lk_doubt *doubt = calloc(1, sizeof *doubt);

    if (doubt == NULL)
        return;
    fill(doubt, lease->key, lease->client_id);
    set_times(store, doubt, lease, claim_sent_ns);
    doubt->is_release = is_release;
    doubt->is_share = lk_lease_may_be_shared(lease);
    doubt->has_text = lease->believed.has_text;
    lk_store_tell(store,
                  &(sqlock_event){.kind = SQLOCK_EVENT_IN_DOUBT,
                                  .lock = lease->name,
                                  .key = doubt->key,
                                  .code = SQLOCK_EUNCERTAIN},
                  "it is not yet known whether the lock %s was freed, because "
                  "the database did not answer; it is tried again",
                  lease->name != NULL ? lease->name : lease->key);
    lk_count(&store->db.stats, LK_COUNT_IN_DOUBT);
    add(&store->resolver, doubt);
}

void lk_resolver_add_claim(struct lk_store *store, const struct lk_lease *lease,
                           int64_t sent_boot_ns)
{
    add_doubt(store, lease, sent_boot_ns, false);
}

void lk_resolver_add_release(struct lk_store *store,
                             const struct lk_lease *lease, int64_t sent_boot_ns)
{
    bool is_late = lease->believed.fate != LK_CLAIM_ANSWERED;

    add_doubt(store, lease, is_late ? sent_boot_ns : 0, true);
}

void lk_resolver_clear(struct lk_resolver *resolver)
{
    while (resolver->doubts != NULL) {
        struct lk_doubt *doubt = resolver->doubts;
        int rc;

        resolver->doubts = doubt->next;
        (void)resolve(resolver->store, doubt,
                      lk_store_deadline(resolver->store), &rc);
        free(doubt);
    }
}
