/*
 * peers.c - turns of Spring services (peers.h)
 */
#include "lock/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "lease/arguments.h"
#include "lease/options.h"
#include "lease/ticket.h"
#include "lock/part.h"
#include "lock/ticket.h"

/* JdbcLockRegistry's default pause between two attempts, plus the time of an
 * attempt: how long the row is open.  RELEASE_TO_PEERS has it, too. */
#define OPEN_NS (110 * LK_NS_PER_MS)
/* A row that services have left for so long is taken back. */
#define LINGER_NS (10 * LK_NS_PER_MS)
/* Pause between two looks at an open row, and at one that a service has, at
 * first. */
#define LOOK_NS (2 * LK_NS_PER_MS)
#define LOOK_TAKEN_NS LK_NS_PER_MS

/* Until the row is opened again: if no service has come yet; if one came, at
 * most; if one came before, and none this time; and after long in vain. */
#define FIRST_PAUSE_NS (2000 * LK_NS_PER_MS)
#define TURNS_NS (1000 * LK_NS_PER_MS)
#define SHORT_PAUSE_NS (200 * LK_NS_PER_MS)
#define LONG_PAUSE_NS (9000 * LK_NS_PER_MS)

/* The account is claimed again when it has less time left. */
#define SPARE_NS (1000 * LK_NS_PER_MS)
/* A wait with less time left opens nothing. */
#define SPARE_MS 1000

/* To share a lock, a process waits no longer for those who share it. */
#define SHARERS_NS (250 * LK_NS_PER_MS)

/* A process without the account leaves others so much time to take the row back
 * once a service is gone, or in any case. */
#define LATE_GONE_NS (50 * LK_NS_PER_MS)
#define LATE_MS 300

/* After so many openings without it a service is gone. */
#define OPENINGS_OF_OTHERS 8

/* Return whether the row can be left free for services although others wait. */
static bool can_open(const struct lk_slot *slot)
{
    return !slot->store->options.no_peers &&
           slot->store->statements[SQLOCK_SQL_RELEASE_TO_PEERS].text != NULL;
}

/* --- the account --- */

bool lk_peers_are_due(const struct lk_slot *slot)
{
    const struct lk_peers *peers = &slot->peers;

    return peers->due_ns != 0 &&
           (peers->due_ns <= sqlock_monotonic_ns() || peers->turns_left == 0);
}

/* Services are due in ns, or after so many turns of ours. */
static void put_off(struct lk_peers *peers, int64_t ns, uint32_t turns)
{
    peers->due_ns = lk_after_ns(sqlock_monotonic_ns(), ns);
    peers->turns_left = turns;
}

/* Claim the account, or its lease anew.  Its row is in the region of names that
 * transactions lock, which `reap` removes; no name has such a key.
 * A raw key is made a UUID first; any other is one. */
static bool claim_account(struct lk_slot *slot, uint32_t ttl_ms)
{
    struct lk_store *store = slot->store;
    char region[LK_REGION_MAX + sizeof LK_NAMES_SUFFIX];
    char key[SQLOCK_KEY_SIZE];
    struct lk_lease lease = {
        .key = key, .name = slot->name, .asked.ttl_ms = ttl_ms};
    struct lk_run run = {.deadline_ns = lk_store_deadline(store),
                         .is_repeatable = true};
    struct lk_lease_arguments arguments;
    sqlock_result result = {0};
    bool is_granted;
    int rc;

    (void)snprintf(region, sizeof region, "%s%s", store->region,
                   LK_NAMES_SUFFIX);
    if (sqlock_key_of(key, slot->key, SQLOCK_KEY_CURRENT, NULL) < 0)
        return false;
    key[0] = 's';
    if (slot->peers.account[0] == '\0')
        lk_store_client_id(store, 0, slot->peers.account);
    memcpy(lease.client_id, slot->peers.account, sizeof lease.client_id);
    lk_arguments_of_one(&arguments, store, &lease, SQLOCK_SQL_CLAIM);
    lk_argument_text(&arguments.values, SQLOCK_P_REGION, region);
    run.arguments = &arguments.values;
    rc = lk_store_run(store, SQLOCK_SQL_CLAIM, &run, &result, NULL);
    is_granted = rc == 0 && result.rows == 1 &&
                 result.cells[0].type == SQLOCK_INT64 &&
                 result.cells[0].integer != 0;
    sqlock_result_clear(&result);
    return is_granted;
}

/* Return whether this process has the account.  If not, it asks again later. */
static bool has_account(struct lk_slot *slot)
{
    struct lk_peers *peers = &slot->peers;
    int64_t now = sqlock_monotonic_ns();
    int64_t ttl_ns = lk_later(peers->pause_ns, FIRST_PAUSE_NS);

    if (!can_open(slot))
        return false;
    if (peers->account_ns > lk_after_ns(now, SPARE_NS))
        return true;
    if (claim_account(slot, (uint32_t)(ttl_ns / LK_NS_PER_MS))) {
        peers->account_ns = lk_after_ns(now, ttl_ns);
        return true;
    }
    peers->account_ns = 0;
    put_off(peers, lk_random_between(FIRST_PAUSE_NS / 2, FIRST_PAUSE_NS),
            UINT32_MAX);
    return false;
}

/* Return how many services came lately. */
static uint32_t count_services(const struct lk_peers *peers)
{
    uint32_t count = 0;

    for (size_t i = 0; i < LK_PEERS_MAX; i++)
        count +=
            peers->seen[i].opening != 0 &&
            peers->openings + 1 - peers->seen[i].opening < OPENINGS_OF_OTHERS;
    return count > 0 ? count : 1;
}

/* Note that a service has a turn. */
static void meet(struct lk_peers *peers, const char client_id[SQLOCK_KEY_SIZE])
{
    struct lk_peer *oldest = &peers->seen[0];
    uint64_t id;

    memcpy(&id, client_id, sizeof id);
    peers->turns++;
    for (size_t i = 0; i < LK_PEERS_MAX; i++) {
        struct lk_peer *seen = &peers->seen[i];

        if (seen->id == id || seen->opening < oldest->opening)
            oldest = seen;
        if (seen->id == id)
            break;
    }
    *oldest = (struct lk_peer){.id = id, .opening = peers->openings + 1};
}

/* Settle when the row is opened again, after the part had it for services, who
 * may have come. */
static void settle(struct lk_peers *peers)
{
    int64_t pause_ns = lk_later(peers->pause_ns, SHORT_PAUSE_NS);

    if (peers->last < LK_PEERS_OPEN) {
        put_off(peers, pause_ns, UINT32_MAX);
    } else if (peers->turns > 0) {
        uint32_t each = peers->turns / count_services(peers);

        put_off(peers, TURNS_NS, each > 0 ? each : 1);
        peers->pause_ns = SHORT_PAUSE_NS;
    } else {
        put_off(peers, pause_ns, UINT32_MAX);
        peers->pause_ns = lk_sooner(2 * pause_ns, LONG_PAUSE_NS);
    }
    peers->openings++;
}

bool lk_peers_begin(struct lk_part *part)
{
    struct lk_slot *slot = part->slot;
    bool is_share = part->weight > 0 && slot->ticket[0] != '\0';

    if (slot->peers.is_host)
        return true;
    if (!lk_peers_are_due(slot) || is_share || part->waiter->wait_ms == 0 ||
        part->is_kept || part->lease.believed.fate != LK_CLAIM_ANSWERED ||
        part->waiter->deadline_ns <
            lk_after_ms(sqlock_monotonic_ns(), SPARE_MS))
        return false;
    slot->peers.is_host = has_account(slot);
    slot->peers.mine_ns = part->weight == 0
                              ? LK_NEVER
                              : lk_after_ns(sqlock_monotonic_ns(), SHARERS_NS);
    return slot->peers.is_host;
}

int64_t lk_peers_until_ns(const struct lk_slot *slot)
{
    bool is_open = slot->peers.last >= LK_PEERS_OPEN;

    return slot->peers.is_host && !is_open ? slot->peers.mine_ns : LK_NEVER;
}

/* --- while the part waits --- */

static void see(struct lk_peers *peers, enum lk_peers_last now_is)
{
    peers->last = now_is;
    peers->since_ns = sqlock_monotonic_ns();
}

/* Look at a row that a service has.  Its renewals change EXPIRED_AFTER alone,
 * and each turn has a new row. */
static void look_at_turn(struct lk_peers *peers, const struct lk_row *row)
{
    if (peers->last == LK_PEERS_TAKEN &&
        peers->turn_began_us == row->acquired_at_us)
        return;
    see(peers, LK_PEERS_TAKEN);
    peers->turn_began_us = row->acquired_at_us;
    meet(peers, row->client_id);
}

/* Look at a row that a service has deleted.  Return how long it is left to
 * others. */
static int64_t look_at_gone(struct lk_peers *peers)
{
    int64_t linger_ns = peers->is_host ? LINGER_NS : LATE_GONE_NS;

    if (peers->last == LK_PEERS_OPEN) /* it came and went unseen */
        peers->turns++;
    if (peers->last != LK_PEERS_GONE)
        see(peers, LK_PEERS_GONE);
    return lk_after_ns(
        lk_sooner(peers->mine_ns, lk_after_ns(peers->since_ns, linger_ns)),
        -sqlock_monotonic_ns());
}

/* Look at a row that another process of ours has.  If it took it back from
 * services, the part's ticket may have been deleted: claim anew. */
static int64_t look_at_ours(struct lk_slot *slot, int64_t left_ns)
{
    if (slot->peers.last < LK_PEERS_OPEN)
        return left_ns;
    lk_peers_end_wait(slot);
    return 0;
}

int64_t lk_peers_look(struct lk_slot *slot, const struct lk_row *row)
{
    struct lk_peers *peers = &slot->peers;
    int64_t left_ns = lk_row_blocked_ns(row);
    int64_t open_us =
        row->acquired_at_us - (row->expires_at_us - row->remaining_us);

    if (!lk_store_has_tickets(slot->store)) /* we poll as services do */
        return left_ns;
    if (lk_row_is_of_peer(slot->store, row))
        look_at_turn(peers, row);
    else if (!row->exists)
        left_ns = look_at_gone(peers);
    else if (row->is_taken)
        left_ns = look_at_ours(slot, left_ns);
    else if (peers->last == LK_PEERS_TAKEN)
        see(peers, LK_PEERS_GONE); /* its lease is over */
    else if (peers->last == LK_PEERS_OPEN)
        left_ns = open_us * LK_NS_PER_US;
    return left_ns > 0 ? left_ns : 0;
}

/* A service has the row, or may come.  With the account, the part takes the row
 * back, at once if it did not open it; without, others may come first. */
static void begin_to_watch(struct lk_part *part, const struct lk_row *row,
                           bool is_open)
{
    struct lk_slot *slot = part->slot;
    struct lk_peers *peers = &slot->peers;
    bool may_ask = !is_open && part->weight == 0 &&
                   (peers->due_ns == 0 || peers->account_ns != 0 ||
                    lk_peers_are_due(slot));

    see(peers, LK_PEERS_OPEN);
    peers->mine_ns = peers->since_ns;
    if (!peers->is_host && may_ask)
        peers->is_host = has_account(slot);
    if (!peers->is_host)
        peers->mine_ns = lk_after_ms(
            peers->since_ns,
            LATE_MS + INT64_C(1000) * (row->place > 0 ? row->place : 0));
}

bool lk_peers_refused(struct lk_part *part, const struct lk_row *row)
{
    struct lk_slot *slot = part->slot;
    bool is_of_peer = lk_row_is_of_peer(slot->store, row);
    bool is_open = row->exists && row->client_id[0] == '\0' && row->is_taken;

    if (!is_open && !is_of_peer) {
        if (slot->peers.last >= LK_PEERS_OPEN)
            lk_peers_end_wait(slot);
        return false;
    }
    if (slot->peers.last < LK_PEERS_OPEN)
        begin_to_watch(part, row, is_open);
    return true;
}

int64_t lk_peers_pause_ns(const struct lk_slot *slot)
{
    const struct lk_peers *peers = &slot->peers;
    int64_t since_ns = sqlock_monotonic_ns() - peers->since_ns;
    int64_t longest_ns = (int64_t)slot->store->options.poll_ms * LK_NS_PER_MS;
    int64_t pause_ns = LOOK_NS;

    if (peers->last < LK_PEERS_OPEN)
        return LK_NEVER;
    if (peers->last == LK_PEERS_TAKEN)
        pause_ns = LOOK_TAKEN_NS + since_ns / 4;
    if (!peers->is_host)
        pause_ns *= 4;
    return lk_sooner(pause_ns, longest_ns);
}

bool lk_peers_may_try(const struct lk_slot *slot)
{
    return slot->peers.last == LK_PEERS_TAKEN &&
           slot->peers.mine_ns <= sqlock_monotonic_ns();
}

void lk_peers_end_wait(struct lk_slot *slot)
{
    struct lk_peers *peers = &slot->peers;

    if (peers->is_host)
        settle(peers);
    peers->is_host = false;
    peers->last = LK_PEERS_NOTHING;
    peers->mine_ns = 0;
    peers->turns = 0;
    free(peers->queue);
    peers->queue = NULL;
}

/* --- when it has the row --- */

/* Return whether others want the lock that the part was granted, or did. */
static bool is_wanted(const struct lk_part *part)
{
    const struct lk_slot *slot = part->slot;
    bool is_wanted;

    pthread_mutex_lock(&lk_mutex);
    is_wanted = lk_first_queued(slot) != NULL;
    pthread_mutex_unlock(&lk_mutex);
    return is_wanted || slot->is_contended || slot->place >= 0;
}

void lk_peers_granted(struct lk_part *part, bool is_turn)
{
    struct lk_slot *slot = part->slot;
    struct lk_peers *peers = &slot->peers;

    if (!can_open(slot) || (peers->is_host && peers->last < LK_PEERS_OPEN))
        return;
    if (peers->is_host && peers->turns == 0)
        peers->turns += part->lease.answered.is_new_row;
    lk_peers_end_wait(slot);
    if (is_turn && peers->turns_left > 0 && peers->turns_left != UINT32_MAX)
        peers->turns_left--;
    if (peers->due_ns != 0 || (part->weight == 0 && !is_wanted(part)))
        return;
    peers->pause_ns = FIRST_PAUSE_NS;
    put_off(peers, lk_random_between(0, FIRST_PAUSE_NS / 2), UINT32_MAX);
}

/* Keep the tickets of those who came until the row was opened; they do not look
 * at it.  If a service has deleted it already, those from before that stay. */
static void keep_queue(struct lk_slot *slot)
{
    char *queue = NULL;
    char *others;

    if (lk_row_queue(slot->store, slot->key, lk_store_deadline(slot->store),
                     NULL, &queue, NULL) < 0 ||
        queue == NULL)
        return;
    others = lk_ticket_behind(queue, slot->ticket);
    free(queue);
    if (others == NULL)
        return;
    free(slot->peers.queue);
    slot->peers.queue = others;
}

bool lk_peers_go_first(struct lk_part *part)
{
    struct lk_slot *slot = part->slot;
    char *queue;

    if (!slot->peers.is_host || slot->peers.last >= LK_PEERS_OPEN)
        return false;
    if (!is_wanted(part) || part->lease.believed.fate != LK_CLAIM_ANSWERED ||
        part->waiter->deadline_ns <
            lk_after_ms(sqlock_monotonic_ns(), SPARE_MS) ||
        lk_row_queue(slot->store, slot->key, lk_store_deadline(slot->store),
                     NULL, &queue, NULL) < 0) {
        lk_peers_end_wait(slot);
        return false;
    }
    free(slot->peers.queue); /* of an opening that failed */
    slot->peers.queue = queue;
    return true;
}

int lk_peers_open(struct lk_part *part, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    struct lk_store *store = slot->store;
    struct lk_batch batch;
    struct lk_item item;
    int rc;

    lk_ticket_becomes_lease(part);
    lk_store_client_id(store, part->marked_as, slot->ticket);
    slot->began_ns = part->lease.asked.began_ns;
    slot->late_until_ns = 0;
    slot->place = -1;
    part->lease.asked.is_for_peers = true;
    part->lease.believed.is_unqueued = false;
    part->lease.asked.ticket = slot->ticket;
    lk_batch_of_one(&batch, &item, &part->lease, lk_store_deadline(store));
    rc = lk_batch_release(store, &batch, err);
    part->lease.answered.place = (struct lk_place){0};
    if (item.rc == SQLOCK_EEXPIRED) /* the row is open all the same */
        item.rc = 0;
    if (rc < 0 || item.rc < 0)
        return rc < 0 ? rc : item.rc;
    slot->place = 0;
    keep_queue(slot);
    see(&slot->peers, LK_PEERS_OPEN);
    slot->peers.mine_ns = lk_after_ns(slot->peers.since_ns, OPEN_NS);
    return 0;
}
