/*
 * work.c - one process: two owners, which take locks in every mode, rely on
 * them, and note what they are told
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "chaos.h"
#include "sqlock/async.h"
#include "sqlock/leader.h"
#include "sqlock/many.h"
#include "sqlock/once.h"
#include "sqlock/shared.h"
#include "sqlock/stock.h"
#include "sqlock/tx.h"

#define WORKS 8       /* that are done once */
#define FORKS_EACH 30 /* of so many leases one sees a fork */
#define LOOK_MS 20
#define GAP_MS 100 /* less than the margin, by which a loss is told early */

const char *const chaos_locks[LOCKS] = {"x", "y", "p", "a", "b",
                                        "c", "d", "e", "f"};

struct owner {
    struct chaos *chaos;
    sqlock_registry *registry;
    sqlock_stock *stock;
    unsigned process, life, index;
    struct dice dice;
    sqlock_lock *locks[LOCKS];
    sqlock_error err;
};

/* A lease: of which lock, and how it was asked for. */
struct held {
    size_t lock;
    int weight;
    bool is_renewed; /* in the background */
    bool is_unclear; /* alone, or a share: nothing is relied on */
};

static unsigned below(struct owner *owner, unsigned limit)
{
    return dice_below(&owner->dice, limit);
}

static struct line *begin(struct owner *owner, const char *verb,
                          const char *lock)
{
    return chaos_line(owner->chaos, verb, owner->process, owner->life,
                      owner->index, lock);
}

static void end(struct line *line, int rc)
{
    line->rc = rc;
    atomic_store(&line->to_ns, lk_boottime_ns());
}

/* End a line after which the lease may be relied on so long. */
static void end_with(struct line *line, int rc, sqlock_lock *lock)
{
    int64_t now = lk_boottime_ns();

    line->until_ns = lk_after_ms(now, sqlock_remaining_ms(lock));
    end(line, rc);
}

/* --- taking --- */

static void on_lost(void *context, sqlock_lock *lock, int code)
{
    struct owner *owner = context;
    struct line *line = begin(owner, "told", sqlock_name(lock));

    atomic_store(&line->is_whole, true);
    end(line, code);
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

/* Acquire by a request, and wait for its end. */
static int acquire_async(struct owner *owner, sqlock_lock *lock,
                         int64_t wait_ms, const sqlock_acquire_options *how)
{
    sqlock_request *request = NULL;
    int rc =
        sqlock_request_acquire(&request, lock, wait_ms, how, 0, &owner->err);

    while (rc == 0 && sqlock_request_status(request) == SQLOCK_REQUEST_FETCHING)
        check_sleep(1);
    return rc == 0 ? sqlock_request_finish(request, &owner->err) : rc;
}

static int take(struct owner *owner, const struct held *held, int64_t wait_ms,
                const sqlock_acquire_options *how)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line = begin(owner, "acquire", chaos_locks[held->lock]);
    int rc;

    line->wait_ms = wait_ms;
    line->weight = held->weight;
    line->is_watched = how->on_lost != NULL;
    atomic_store(&line->is_whole, true);
    rc = below(owner, 4) == 0 ? acquire_async(owner, lock, wait_ms, how)
                              : sqlock_acquire(lock, wait_ms, how, &owner->err);
    line->token = rc == 0 ? sqlock_token(lock) : 0;
    end_with(line, rc, lock);
    return rc;
}

/* --- having it --- */

static void renew(struct owner *owner, const struct held *held, bool is_look)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line = begin(owner, "renew", chaos_locks[held->lock]);
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
    struct line *line = begin(owner, "downgrade", chaos_locks[held->lock]);
    int rc;

    line->weight = 1;
    atomic_store(&line->is_whole, true);
    rc = sqlock_downgrade(lock, &owner->err);
    end_with(line, rc, lock);
    held->weight = 1;
    held->is_unclear = rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE;
}

/* Write a row, numbered, in a transaction that guards the lease.  The number is
 * drawn under the guard, and the line begins with the commit: no later owner
 * has a smaller number, or was granted the lock before the commit. */
static void write_guarded(struct owner *owner, const struct held *held)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line = begin(owner, "write", chaos_locks[held->lock]);
    char text[200];
    sqlock_tx *tx = NULL;
    int rc;

    line->token = sqlock_token(lock);
    rc = sqlock_tx_begin(&tx, owner->registry, &owner->err);
    if (rc == 0)
        rc = sqlock_tx_guard(tx, lock, &owner->err);
    if (rc == 0 && below(owner, 4) == 0)
        check_sleep(below(owner, 200));
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
    end(line, rc);
}

/* Publish a text: the number of this call. */
static void publish(struct owner *owner, const struct held *held)
{
    struct line *line = begin(owner, "publish", chaos_locks[held->lock]);
    char text[16];

    line->number = atomic_fetch_add(&owner->chaos->numbers, 1) + 1;
    atomic_store(&line->is_whole, true);
    (void)snprintf(text, sizeof text, "%u", line->number);
    end(line, sqlock_publish(owner->locks[held->lock], text, &owner->err));
}

static void give(struct owner *owner, const struct held *held)
{
    sqlock_lock *lock = owner->locks[held->lock];
    struct line *line;
    int rc;

    if (held->is_renewed && !held->is_unclear)
        renew(owner, held, true); /* so it is known until when it had lasted */
    line = begin(owner, "release", chaos_locks[held->lock]);
    atomic_store(&line->is_whole, !held->is_unclear);
    do
        rc = sqlock_release(lock, &owner->err);
    while (rc == SQLOCK_EINUSE);
    end(line, rc);
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
            write_guarded(owner, held);
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
                write_guarded(owner, held);
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
    if (take(owner, &held, wait_ms, &how) != 0)
        return;
    have(owner, &held);
    give(owner, &held);
}

/* Take both locks that one may have alone, in one call. */
static void use_both(struct owner *owner)
{
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    struct line *lines[2];
    int rc;

    how.ttl_ms = 800;
    for (size_t i = 0; i < 2; i++) {
        lines[i] = begin(owner, "acquire", chaos_locks[i]);
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
        give(owner, &(struct held){.lock = i});
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
        if (take(owner, &held, below(owner, 2) * 50, &how) != 0)
            return;
        give(owner, &held);
    }
}

/* Read the text of the leader, if there is one. */
static void observe(struct owner *owner)
{
    const char *name = chaos_locks[below(owner, 2)];
    struct line *line = begin(owner, "observe", name);
    sqlock_info *seen = NULL;
    int rc = sqlock_observe(owner->registry, name, 0, 0, &seen, &owner->err);

    end(line, rc);
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
        struct line *line = begin(owner, "sell", ITEM);

        line->number = number;
        atomic_store(&line->is_whole, true);
        end(line, sqlock_stock_deduct(owner->stock, NULL, order, ITEM, 1, NULL,
                                      &owner->err));
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
        line = begin(owner, "run", name);
        rc = sqlock_once_check(owner->registry, name, &owner->err);
        if (rc == SQLOCK_ENOTFOUND) {
            atomic_store(&line->is_whole, true);
            end(line, sqlock_once_record(lock, &owner->err));
        } else if (rc == 0) {
            end(line, DONE);
            atomic_store(&line->is_whole, true);
        }
        (void)!sqlock_release(lock, NULL);
    }
    (void)sqlock_drop(lock, NULL);
}

static void *run(void *context)
{
    struct owner *owner = context;
    struct chaos *chaos = owner->chaos;

    /* Each sells something at first, so that every round has a sale. */
    for (unsigned what = 2; !chaos_is_over(chaos); what = below(owner, 20)) {
        atomic_fetch_add(&chaos->calls, 1);
        if (what == 0)
            do_once(owner);
        else if (what == 1)
            use_both(owner);
        else if (what == 2)
            sell(owner);
        else if (what == 3)
            observe(owner);
        else if (what < 12)
            use_briefly(owner);
        else
            use_lock(owner);
        check_sleep(below(owner, 8));
    }
    return NULL;
}

static sqlock_options options_of(const struct chaos *chaos)
{
    sqlock_options options = fixture_options(&chaos->fixture);

    options.ttl_ms = TTL_MS;
    options.margin_ms = 200; /* a busy machine tells a loss so late */
    options.statement_timeout_ms = STATEMENT_MS;
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    return options;
}

static sqlock_registry *open_registry(struct chaos *chaos, unsigned process,
                                      struct dice *dice)
{
    sqlock_options options = options_of(chaos);
    const char *url = chaos->urls[process % PROXIES];
    sqlock_registry *registry = NULL;

    options.detect_deadlocks = dice_below(dice, 4) == 0;
    if (dice_below(dice, 4) == 0)
        options.waiting = SQLOCK_WAITING_POLL;
    while (!chaos_is_over(chaos) &&
           sqlock_registry_open(&registry, url, &options, NULL) != 0)
        check_sleep(20);
    return registry;
}

/* Note when this process was not run for long, as if it had been stopped: what
 * it is told then it is told late. */
static void *watch(void *context)
{
    const struct owner *owner = context;

    for (;;) {
        int64_t from_ns = lk_boottime_ns();

        check_sleep(LOOK_MS);
        if (lk_boottime_ns() >= lk_after_ms(from_ns, GAP_MS))
            chaos_note(owner->chaos, "stopped", owner->process, owner->life,
                       from_ns);
    }
    return NULL;
}

int work(struct chaos *chaos, unsigned process, unsigned life)
{
    static struct owner owners[OWNERS], itself;
    pthread_t threads[OWNERS];
    pthread_t watcher; /* ends with the process */
    sqlock_registry *registry;
    sqlock_stock *stock = NULL;
    struct dice dice;

    dice_begin(&dice, chaos->seed, process * 1000 + life);
    registry = open_registry(chaos, process, &dice);
    while (!chaos_is_over(chaos) && registry != NULL &&
           sqlock_stock_open(&stock, registry, NULL, NULL) != 0)
        check_sleep(20);
    if (stock == NULL)
        return 0; /* the round is over */
    itself = (struct owner){.chaos = chaos, .process = process, .life = life};
    if (pthread_create(&watcher, NULL, watch, &itself) != 0)
        return 1;
    for (unsigned i = 0; i < OWNERS; i++) {
        struct owner *owner = &owners[i];

        *owner = (struct owner){.chaos = chaos,
                                .registry = registry,
                                .stock = stock,
                                .process = process,
                                .life = life,
                                .index = i + 1};
        dice_begin(&owner->dice, chaos->seed,
                   (process * 1000 + life) * 10 + i + 1);
        for (size_t k = 0; k < LOCKS; k++)
            if (sqlock_obtain(&owner->locks[k], registry, chaos_locks[k],
                              NULL) != 0)
                return 1;
        if (pthread_create(&threads[i], NULL, run, owner) != 0)
            return 1;
    }
    for (unsigned i = 0; i < OWNERS; i++)
        (void)pthread_join(threads[i], NULL);
    return 0; /* what it holds ends with its leases */
}

void work_at_end(struct chaos *chaos)
{
    static const sqlock_find_options names = {.size = sizeof names,
                                              .pattern = "?"};
    sqlock_options options = options_of(chaos);
    struct fixture *f = &chaos->fixture;
    struct owner owner = {.chaos = chaos, .process = PROCESSES, .index = 1};
    sqlock_info *rows = NULL;
    size_t count = 0;
    struct line *line;

    owner.registry = fixture_registry(f, &options);
    for (size_t i = 0; i < LOCKS; i++) {
        struct held held = {.lock = i};
        sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;

        if (strcmp(chaos_locks[i], "p") == 0) {
            held.weight = PERMITS;
            how.mode = SQLOCK_SHARED;
            how.permits = PERMITS;
            how.weight = PERMITS;
        }
        owner.locks[i] = lock_obtain(owner.registry, chaos_locks[i]);
        if (take(&owner, &held, TTL_MS + 2 * STATEMENT_MS, &how) == 0)
            give(&owner, &held);
    }
    line = begin(&owner, "row", "*");
    assert_ok(sqlock_find(owner.registry, &names, &rows, &count, &f->err));
    line->number = (unsigned)count;
    end(line, 0);
    atomic_store(&line->is_whole, true);
    sqlock_info_free(rows, count);
    registry_end(owner.registry);
}
