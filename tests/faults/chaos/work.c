/*
 * work.c - one process: its registries, and its two owners, each a thread
 */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "owner.h"
#include "sqlock/shared.h"

#define LOOK_MS 20
#define GAP_MS 100 /* less than the margin, by which a loss is told early */

static void *run(void *context)
{
    struct owner *owner = context;
    struct chaos *chaos = owner->chaos;

    /* Each sells something at first, so that every round has a sale. */
    for (unsigned what = SELL; !chaos_is_over(chaos);
         what = dice_below(&owner->dice, OWNER_ACTS)) {
        atomic_fetch_add(&chaos->calls, 1);
        owner_act(owner, what);
        check_sleep(dice_below(&owner->dice, 8));
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

static sqlock_registry *open_registry(struct chaos *chaos, const char *url,
                                      struct dice *dice)
{
    sqlock_options options = options_of(chaos);
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
                       from_ns, lk_boottime_ns());
    }
    return NULL;
}

/* Make what an owner uses; return false if that is refused. */
static bool equip(struct owner *owner, sqlock_registry *const all[SERVERS])
{
    for (size_t k = 0; k < LOCKS; k++)
        if (sqlock_obtain(&owner->locks[k], owner->registry, chaos_locks[k],
                          NULL) != 0)
            return false;
    for (size_t i = 0; i < SERVERS; i++)
        if (all[i] == NULL)
            return true; /* without a quorum */
    return sqlock_quorum_obtain(&owner->quorum, all, SERVERS, "quorum", NULL,
                                NULL) == 0;
}

int work(struct chaos *chaos, unsigned process, unsigned life)
{
    static struct owner owners[OWNERS], itself;
    pthread_t threads[OWNERS];
    pthread_t watcher; /* ends with the process */
    sqlock_registry *all[SERVERS] = {NULL}, *registry;
    sqlock_stock *stock = NULL;
    struct dice dice;

    dice_begin(&dice, chaos->seed, process * 1000 + life);
    all[0] = open_registry(chaos, chaos->urls[process % PROXIES], &dice);
    registry = all[0];
    for (size_t i = 1; i < SERVERS && chaos->files[i - 1][0] != '\0'; i++)
        all[i] = open_registry(chaos, chaos->files[i - 1], &dice);
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
        if (!equip(owner, all))
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
        if (owner_take(&owner, &held, TTL_MS + 2 * STATEMENT_MS, &how) == 0)
            owner_give(&owner, &held);
    }
    line = owner_begin(&owner, "row", "*");
    assert_ok(sqlock_find(owner.registry, &names, &rows, &count, &f->err));
    line->number = (unsigned)count;
    owner_end(line, 0);
    atomic_store(&line->is_whole, true);
    sqlock_info_free(rows, count);
    registry_end(owner.registry);
}
