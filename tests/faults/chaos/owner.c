/*
 * owner.c - what an owner does: it takes locks in every mode, relies on them,
 * and notes what it is told
 */
#include "owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sqlock/async.h"
#include "sqlock/leader.h"
#include "sqlock/many.h"
#include "sqlock/once.h"
#include "sqlock/shared.h"
#include "sqlock/tx.h"

#define WORKS 8       /* that are done once */
#define FORKS_EACH 30 /* of so many leases one sees a fork */

const char *const chaos_locks[LOCKS] = {"x", "y", "p", "a", "b",
                                        "c", "d", "e", "f"};

static unsigned below(struct owner *owner, unsigned limit)
{
    return dice_below(&owner->dice, limit);
}

struct line *owner_begin(struct owner *owner, const char *verb,
                         const char *lock)
{
    return chaos_line(owner->chaos, verb, owner->process, owner->life,
                      owner->index, lock);
}

void owner_end(struct line *line, int rc)
{
    line->rc = rc;
    atomic_store(&line->to_ns, lk_boottime_ns());
}

/* End a line after which the lease may be relied on so long. */
static void end_for(struct line *line, int rc, int64_t remaining_ms)
{
    line->until_ns = lk_after_ms(lk_boottime_ns(), remaining_ms);
    owner_end(line, rc);
}

static void end_with(struct line *line, int rc, sqlock_lock *lock)
{
    end_for(line, rc, sqlock_remaining_ms(lock));
}

/* --- taking --- */

static void on_lost(void *context, sqlock_lock *lock, int code)
{
    struct owner *owner = context;
    struct line *line = owner_begin(owner, "told", sqlock_name(lock));

    atomic_store(&line->is_whole, true);
    owner_end(line, code);
}

static void choose(struct owner *owner, struct held *held,
                   sqlock_acquire_options *how, int64_t *wait_ms)
{
    static const int64_t waits_ms[] = {0, 50, 500, 2500};
    static const uint32_t ttls_ms[] = {500, 800, TTL_MS};

    *how = (sqlock_acquire_options)SQLOCK_ACQUIRE_INIT;
    how->ttl_ms = ttls_ms[below(owner, 3)];
    how->auto_renew = below(owner, 3) == 0;
    *wait_ms = waits_ms[below(owner, 4)];
    *held = (struct held){.lock = below(owner, WANTED),
                          .is_renewed = how->auto_renew};
    if (below(owner, 3) == 0) {
        how->on_lost = on_lost;
        how->lost_context = owner;
    }
    if (strcmp(chaos_locks[held->lock], "p") == 0) {
        held->weight = 1 + (int)below(owner, 2);
        how->mode = SQLOCK_SHARED;
        how->permits = PERMITS;
        how->weight = (uint32_t)held->weight;
    } else if (below(owner, 2) == 0) {
        held->weight = 1;
        how->mode = SQLOCK_SHARED;
    }
}

/* Return whether this process has a ticket for that lock. */
static bool has_ticket(const struct owner *owner, const char *name)
{
    sqlock_info *row = NULL;
    bool has =
        sqlock_show(owner->registry, name, &row, NULL) == 0 && row->place > 0;

    sqlock_info_free(row, row != NULL);
    return has;
}

/* Acquire by a request, wait for its end, and look now and then whether it has
 * a place among those who wait. */
static int acquire_async(struct owner *owner, sqlock_lock *lock,
                         int64_t wait_ms, const sqlock_acquire_options *how,
                         struct line *line)
{
    sqlock_request *request = NULL;
    int rc =
        sqlock_request_acquire(&request, lock, wait_ms, how, 0, &owner->err);

    for (int i = 1;
         rc == 0 && sqlock_request_status(request) == SQLOCK_REQUEST_FETCHING;
         i++) {
        check_sleep(1);
        if (line->queued_ns == 0 && i % 20 == 0 &&
            has_ticket(owner, line->lock))
            line->queued_ns = lk_boottime_ns();
    }
    return rc == 0 ? sqlock_request_finish(request, &owner->err) : rc;
}

int owner_take(struct owner *owner, const struct held *held, int64_t wait_ms,
               const sqlock_acquire_options *how)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line = owner_begin(owner, "acquire", chaos_locks[held->lock]);
    int rc;

    line->wait_ms = wait_ms;
    line->weight = held->weight;
    line->is_watched = how->on_lost != NULL;
    line->is_renewed = how->auto_renew;
    atomic_store(&line->is_whole, true);
    rc = below(owner, 4) == 0 ? acquire_async(owner, lock, wait_ms, how, line)
                              : sqlock_acquire(lock, wait_ms, how, &owner->err);
    line->token = rc == 0 ? sqlock_token(lock) : 0;
    end_with(line, rc, lock);
    return rc;
}

/* --- having it --- */

static void renew(struct owner *owner, const struct held *held, bool is_look)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line = owner_begin(owner, "renew", chaos_locks[held->lock]);
    int rc = 0;

    atomic_store(&line->is_whole, !is_look);
    if (!is_look)
        rc = sqlock_renew(lock, 0, &owner->err);
    end_with(line, rc, lock);
    /* what is relied on, where the lease is renewed in the background */
    atomic_store(&line->is_whole, !is_look || sqlock_is_held(lock));
}

static void downgrade(struct owner *owner, struct held *held)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line =
        owner_begin(owner, "downgrade", chaos_locks[held->lock]);
    int rc;

    line->weight = 1;
    atomic_store(&line->is_whole, true);
    rc = sqlock_downgrade(lock, &owner->err);
    end_with(line, rc, lock);
    held->weight = 1;
    held->is_unclear = rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE;
}

/* Let no write follow in a transaction that has an older token than one of
 * before. */
static int fence(struct owner *owner, sqlock_tx *tx, const char *name,
                 int64_t token)
{
    sqlock_table table = SQLOCK_TABLE_INIT;
    const sqlock_value key = sqlock_text(name);
    char fences[64];

    (void)snprintf(fences, sizeof fences, "%sFENCES",
                   owner->chaos->fixture.prefix);
    table.name = fences;
    table.key_column = "NAME";
    table.fence_column = "TOKEN";
    table.fence_owner_column = "OWNER";
    return sqlock_tx_fence(tx, &table, &key, token, name, &owner->err);
}

/* Write a row, numbered, in a transaction that guards the lease or, now and
 * then and where rows cannot be guarded, is fenced by its token.  The number is
 * drawn under the guard, and the line begins with the commit: no later owner
 * has a smaller number, or was granted the lock before the commit. */
static void write_row(struct owner *owner, const struct held *held)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line = owner_begin(owner, "write", chaos_locks[held->lock]);
    char text[200];
    sqlock_tx *tx = NULL;
    int rc;

    line->token = sqlock_token(lock);
    line->is_fenced = below(owner, 4) == 0 || !chaos_can_guard();
    rc = sqlock_tx_begin(&tx, owner->registry, &owner->err);
    if (rc == 0)
        rc = line->is_fenced ? fence(owner, tx, line->lock, line->token)
                             : sqlock_tx_guard(tx, lock, &owner->err);
    if (rc == 0 && below(owner, 4) == 0)
        check_sleep(below(owner, below(owner, 3) == 0 ? 900 : 200));
    line->number = atomic_fetch_add(&owner->chaos->numbers, 1) + 1;
    (void)snprintf(text, sizeof text,
                   "INSERT INTO %sWRITES VALUES (%u, '%s', %lld)",
                   owner->chaos->fixture.prefix, line->number,
                   chaos_locks[held->lock], (long long)line->token);
    if (rc == 0)
        rc = sqlock_tx_execute(tx, text, NULL, 0, NULL, &owner->err);
    line->from_ns = lk_boottime_ns();
    atomic_store(&line->is_whole, true);
    if (rc == 0)
        rc = sqlock_tx_commit(tx, &owner->err);
    else
        (void)sqlock_tx_rollback(tx, NULL);
    owner_end(line, rc);
}

/* Publish a text: the number of this call. */
static void publish(struct owner *owner, const struct held *held)
{
    struct line *line = owner_begin(owner, "publish", chaos_locks[held->lock]);
    char text[16];

    line->number = atomic_fetch_add(&owner->chaos->numbers, 1) + 1;
    atomic_store(&line->is_whole, true);
    (void)snprintf(text, sizeof text, "%u", line->number);
    owner_end(line,
              sqlock_publish(owner->locks[held->lock], text, &owner->err));
}

void owner_give(struct owner *owner, const struct held *held)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line;
    int rc;

    if (held->is_renewed && !held->is_unclear)
        renew(owner, held, true); /* so it is known until when it had lasted */
    line = owner_begin(owner, "release", chaos_locks[held->lock]);
    atomic_store(&line->is_whole, !held->is_unclear);
    do
        rc = sqlock_release(lock, &owner->err);
    while (rc == SQLOCK_EINUSE);
    owner_end(line, rc);
}

/* Fork, while other threads are in calls: the child is refused each call about
 * the lock, and its end changes nothing for its parent. */
static void fork_away(const struct owner *owner, const struct held *held)
{
    sqlock_lock *lock = owner->locks[held->lock];
    pid_t parent = getpid();
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        check_end_with(parent);
        _exit(!sqlock_is_held(lock) &&
                      sqlock_renew(lock, 0, NULL) == SQLOCK_EFORK &&
                      sqlock_release(lock, NULL) == SQLOCK_EFORK
                  ? 0
                  : 1);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || status != 0)
        abort(); /* which the parent tells */
    atomic_fetch_add(&owner->chaos->forks, 1);
}

/* Have it, and now and then for longer than its lease lasts. */
static void have(struct owner *owner, struct held *held)
{
    if (below(owner, held->weight == 0 ? 4 : 10) == 0) {
        check_sleep(300 + below(owner, 1000));
        if (held->weight == 0)
            write_row(owner, held);
    }
    if (below(owner, FORKS_EACH) == 0)
        fork_away(owner, held);
    for (unsigned i = below(owner, 4); i > 0 && !held->is_unclear; i--) {
        check_sleep(below(owner, 3) == 0 ? below(owner, 250)
                                         : below(owner, 10));
        switch (below(owner, 5)) {
        case 0:
            renew(owner, held, false);
            break;
        case 1:
            if (held->weight == 0)
                write_row(owner, held);
            break;
        case 2:
            if (held->weight == 0 && below(owner, 2) == 0)
                downgrade(owner, held);
            break;
        case 3:
            if (held->weight == 0)
                publish(owner, held);
            break;
        default:
            renew(owner, held, true);
            break;
        }
    }
}

/* --- one thing after another --- */

static void use_lock(struct owner *owner)
{
    sqlock_acquire_options how;
    struct held held;
    int64_t wait_ms;

    choose(owner, &held, &how, &wait_ms);
    if (owner_take(owner, &held, wait_ms, &how) != 0)
        return;
    have(owner, &held);
    owner_give(owner, &held);
}

/* Take both locks that one may have alone, in one call. */
static void use_both(struct owner *owner)
{
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    struct line *lines[2];
    int rc;

    how.ttl_ms = 800;
    for (size_t i = 0; i < 2; i++) {
        lines[i] = owner_begin(owner, "acquire", chaos_locks[i]);
        lines[i]->weight = 0;
        lines[i]->is_part = true;
        atomic_store(&lines[i]->is_whole, true);
    }
    rc = sqlock_acquire_many(owner->locks, 2, below(owner, 2) * 500, &how, NULL,
                             &owner->err);
    for (size_t i = 0; i < 2; i++) {
        lines[i]->token = rc == 0 ? sqlock_token(owner->locks[i]) : 0;
        end_with(lines[i], rc, owner->locks[i]);
    }
    for (size_t i = 0; rc == 0 && i < 2; i++)
        owner_give(owner, &(struct held){.lock = i});
}

/* Take one of the locks that few want, again and again. */
static void use_briefly(struct owner *owner)
{
    size_t lock = WANTED + below(owner, LOCKS - WANTED);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;

    how.ttl_ms = 500;
    for (unsigned i = 1 + below(owner, 20); i > 0; i--) {
        struct held held = {.lock = lock, .weight = below(owner, 4) == 0};

        how.mode = held.weight > 0 ? SQLOCK_SHARED : SQLOCK_EXCLUSIVE;
        if (owner_take(owner, &held, below(owner, 2) * 50, &how) != 0)
            return;
        if (held.weight == 0 && below(owner, 16) == 0)
            write_row(owner, &held);
        owner_give(owner, &held);
    }
}

/* Take the lock of most of three servers, of which one is harmed. */
static void use_quorum(struct owner *owner)
{
    static const int64_t waits_ms[] = {0, 100, 500};
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    int64_t wait_ms = waits_ms[below(owner, 3)];
    struct line *line;
    int rc;

    if (owner->quorum == NULL)
        return;
    how.ttl_ms = 800;
    how.auto_renew = below(owner, 2) == 0;
    line = owner_begin(owner, "acquire", "quorum");
    line->wait_ms = wait_ms;
    line->weight = 0;
    line->is_part = true; /* two may keep it from each other */
    atomic_store(&line->is_whole, true);
    rc = sqlock_quorum_acquire(owner->quorum, wait_ms, &how, NULL, &owner->err);
    end_for(line, rc, sqlock_quorum_remaining_ms(owner->quorum));
    if (rc != 0)
        return;
    check_sleep(below(owner, 4) == 0 ? below(owner, 1000) : below(owner, 20));
    line = owner_begin(owner, "renew", "quorum");
    end_for(line, 0, sqlock_quorum_remaining_ms(owner->quorum));
    atomic_store(&line->is_whole, line->until_ns > line->to_ns);
    line = owner_begin(owner, "release", "quorum");
    atomic_store(&line->is_whole, true);
    owner_end(line, sqlock_quorum_release(owner->quorum, NULL, &owner->err));
}

/* Read the text of the leader, if there is one. */
static void observe(struct owner *owner)
{
    const char *name = chaos_locks[below(owner, 2)];
    struct line *line = owner_begin(owner, "observe", name);
    sqlock_info *seen = NULL;
    int rc = sqlock_observe(owner->registry, name, 0, 0, &seen, &owner->err);

    owner_end(line, rc);
    if (rc == 0 && seen != NULL && seen->text != NULL) {
        line->number = (unsigned)strtoul(seen->text, NULL, 10);
        atomic_store(&line->is_whole, true);
    }
    sqlock_info_free(seen, seen != NULL);
}

static void sell(struct owner *owner)
{
    unsigned number = atomic_fetch_add(&owner->chaos->numbers, 1) + 1;
    char order[40];

    (void)snprintf(order, sizeof order, "order-%u", number);
    for (int i = 0; i < 3; i++) {
        struct line *line = owner_begin(owner, "sell", ITEM);

        line->number = number;
        atomic_store(&line->is_whole, true);
        owner_end(line, sqlock_stock_deduct(owner->stock, NULL, order, ITEM, 1,
                                            NULL, &owner->err));
        if (line->rc == 0)
            return;
    }
}

/* Do some work, unless it is done. */
static void do_once(struct owner *owner)
{
    char name[16];
    sqlock_lock *lock = NULL;
    struct line *line;
    int rc;

    (void)snprintf(name, sizeof name, "once%u", below(owner, WORKS));
    if (sqlock_obtain(&lock, owner->registry, name, &owner->err) != 0)
        return;
    if (sqlock_acquire(lock, 0, NULL, &owner->err) == 0) {
        line = owner_begin(owner, "run", name);
        rc = sqlock_once_check(owner->registry, name, &owner->err);
        if (rc == SQLOCK_ENOTFOUND) {
            atomic_store(&line->is_whole, true);
            owner_end(line, sqlock_once_record(lock, &owner->err));
        } else if (rc == 0) {
            owner_end(line, DONE);
            atomic_store(&line->is_whole, true);
        }
        (void)!sqlock_release(lock, NULL);
    }
    (void)sqlock_drop(lock, NULL);
}

void owner_act(struct owner *owner, unsigned number)
{
    enum chaos_word what = number < BRIEFLY ? number
                           : number < 12    ? BRIEFLY
                                            : WANT;

    if (chaos_leaves_out(owner->chaos, what))
        return;
    if (what == ONCE)
        do_once(owner);
    else if (what == BOTH)
        use_both(owner);
    else if (what == SELL)
        sell(owner);
    else if (what == OBSERVE)
        observe(owner);
    else if (what == QUORUM)
        use_quorum(owner);
    else if (what == BRIEFLY)
        use_briefly(owner);
    else
        use_lock(owner);
}
