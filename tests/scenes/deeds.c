/*
 * deeds.c - see deeds.h
 */
#include "deeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_MS (60000 * SLOWNESS)
#define SHORT_MS (90 * SLOWNESS)
#define MIDDLE_MS (900 * SLOWNESS)
#define RENEWED_MS (20000 * SLOWNESS)
#define HEARING_MS (8000 * SLOWNESS) /* of a loss, before the lease ends */
#define DEATHS_MAX 8

static const char *const names[LOCKS] = {"L", "M", "N"};

static int64_t now_ns(void)
{
    return check_deadline_ns(0);
}

/* ------------------------------------------------------------ one step -- */

int run_step(struct run *run, const char *text, struct moment *at)
{
    struct result result;
    struct step *step = &run->steps[run->count].step;
    char *words = run->steps[run->count].words;
    char printed[512];
    size_t length = strlen(run->scene);

    (void)snprintf(words, sizeof run->steps->words, "%s", text);
    if (++run->count == STEPS_MAX || step_parse(step, words) != NULL)
        abort();
    at->began_ns = now_ns();
    (void)play_step(&run->play, step, &result);
    at->ended_ns = now_ns();
    if (run->is_to_fail && proxy_times(run->play.proxies[0]) > 0)
        run->is_to_fail = false; /* it has failed */
    (void)snprintf(run->scene + length, sizeof run->scene - length,
                   "    %s -> %s\n", step_print(printed, step),
                   result_name(result.rc));
    (void)snprintf(run->difference, sizeof run->difference, "%s: %s", text,
                   result.message != NULL ? result.message : "");
    return result.rc;
}

/* Return whether the network may fail at this call of the owner. */
static struct moment call_of(struct run *run, int owner)
{
    bool has_failed = run->is_to_fail || run->shaken[owner] > 0;

    run->shaken[owner] -= run->shaken[owner] > 0;
    return (struct moment){.has_failed = has_failed};
}

/* Note a difference that is none of a result; return false. */
static bool differs(struct run *run, const char *what, int lock)
{
    (void)snprintf(run->difference, sizeof run->difference, "%s: %s", what,
                   names[lock]);
    return false;
}

/* ------------------------------------------------- rows and callbacks -- */

static struct row row_of(struct run *run, int lock)
{
    char name[96];

    return fixture_row(run->play.f, play_name(&run->play, name, names[lock]));
}

/* Return what the owner's process was told of losses of the lock. */
static const struct loss *losses_of(struct run *run, int owner, int lock)
{
    char id[8];
    char name[96];

    (void)snprintf(id, sizeof id, "%.*s", (int)strcspn(run->owners[owner], "."),
                   run->owners[owner]);
    company_listen(&run->play.company, 0);
    return company_loss(company_find(&run->play.company, id),
                        play_name(&run->play, name, names[lock]));
}

/* Remember whose row it is now. */
static void know_row(struct run *run, int lock)
{
    struct row row = row_of(run, lock);

    run->clients[lock][0] = '\0';
    if (model_is_live(&run->models[lock], now_ns()))
        memcpy(run->clients[lock], row.client, sizeof row.client);
}

/* Compare the row with the model: it belongs to whoever has it, and to nobody
 * where nobody does. */
static bool is_row_right(struct run *run, int lock)
{
    const struct model *model = &run->models[lock];
    struct row row;

    if (model->is_in_doubt || run->waiters[lock] >= 0)
        return true;
    row = row_of(run, lock);
    if (model->holder == NOBODY)
        return row.client[0] == '\0' ||
               differs(run, "nobody has it, and the row is taken", lock);
    if (model->holder == GHOST || !model_is_live(model, now_ns()) ||
        run->clients[lock][0] == '\0')
        return true;
    return strcmp(row.client, run->clients[lock]) == 0 ||
           differs(run, "the row is not that of its holder", lock);
}

static void took(struct run *run, int lock, int owner, const struct wish *wish,
                 const struct moment *at, int rc)
{
    struct model *model = &run->models[lock];
    bool is_first = rc == 0 && model->of[owner].count == 0;

    model_took(model, owner, wish, at, rc);
    if (!is_first)
        return;
    model->of[owner].told_before = losses_of(run, owner, lock)->times;
    know_row(run, lock);
}

static bool take(struct run *run, const struct act *act, struct wish wish,
                 int64_t wait_ms)
{
    struct model *model = &run->models[act->lock];
    struct moment at = call_of(run, act->owner);
    char text[120];
    int rc;

    if (model->of[act->owner].count > 0)
        wish = model->of[act->owner].wish; /* nested: the same options */
    (void)snprintf(
        text, sizeof text, "%s takes %s ttl=%lld wait=%lld%s%s",
        run->owners[act->owner], names[act->lock],
        (long long)wish.ttl_ms / SLOWNESS, (long long)wait_ms / SLOWNESS,
        wish.is_renewed ? " renewed" : "", wish.is_told ? " told" : "");
    rc = run_step(run, text, &at);
    /* The player has made a claim that outlasted a short lease again. */
    if (!model_may_take(model, act->owner, wait_ms, &at, rc))
        return false;
    took(run, act->lock, act->owner, &wish, &at, rc);
    return true;
}

static const struct wish lasting = {.ttl_ms = LONG_MS};

/* All are taken or none: a result of 0 must be right for each, another one for
 * some. */
static bool take_many(struct run *run, const struct act *act)
{
    int other = (act->lock + 1) % LOCKS;
    int locks[2] = {act->lock, other};
    struct moment at = call_of(run, act->owner);
    bool is_right = false;
    bool is_wrong = false;
    char text[120];
    int rc;

    for (int i = 0; i < 2; i++)
        if (run->models[locks[i]].of[act->owner].count > 0)
            return true;
    (void)snprintf(text, sizeof text, "%s takes %s,%s ttl=%d",
                   run->owners[act->owner], names[act->lock], names[other],
                   LONG_MS / SLOWNESS);
    rc = run_step(run, text, &at);
    for (int i = 0; i < 2; i++) {
        bool may =
            model_may_take(&run->models[locks[i]], act->owner, 0, &at, rc);

        is_right = is_right || may;
        is_wrong = is_wrong || !may;
    }
    if (rc == 0 ? is_wrong : !is_right)
        return false;
    for (int i = 0; i < 2; i++) {
        model_touched(&run->models[locks[i]], &at);
        took(run, locks[i], act->owner, &lasting, &at, rc);
    }
    return is_row_right(run, other);
}

static bool end_wait(struct run *run, int lock)
{
    int owner = run->waiters[lock];
    struct moment at = {0};
    char text[120];
    int rc;

    (void)snprintf(text, sizeof text, "%s ends", run->owners[owner]);
    rc = run_step(run, text, &at);
    run->waiters[lock] = -1;
    /* It may have got the lock, for its long TTL, as soon as that was free. */
    if (rc == 0)
        took(run, lock, owner, &lasting, &at, rc);
    return rc == 0;
}

static bool is_waiting(const struct run *run, int owner)
{
    for (int i = 0; i < LOCKS; i++)
        if (run->waiters[i] == owner)
            return true;
    return false;
}

/* Return whether the owner has any lock. */
static bool has_any(const struct run *run, int owner)
{
    for (int i = 0; i < LOCKS; i++)
        if (run->models[i].of[owner].count > 0)
            return true;
    return false;
}

/* Begin to wait, behind a holder whose lease is long.  An owner that has
 * something does not, so that no two wait for each other. */
static bool begin_wait(struct run *run, const struct act *act)
{
    struct model *model = &run->models[act->lock];
    struct moment at = {0};
    char text[120];

    if (has_any(run, act->owner) || run->waiters[act->lock] >= 0 ||
        run->is_to_fail || model->is_in_doubt || model->holder == GHOST ||
        !model_is_live(model, now_ns() + SHORT_MS * INT64_C(1000000)))
        return true;
    (void)snprintf(text, sizeof text, "%s takes %s ttl=%d wait=ever &",
                   run->owners[act->owner], names[act->lock],
                   LONG_MS / SLOWNESS);
    run->waiters[act->lock] = act->owner;
    return run_step(run, text, &at) == 0;
}

/* Return whether threads of the owner's process may have been told of other
 * leases of the lock. */
static bool has_siblings(int owner)
{
    return model_are_siblings(owner, owner == 0 ? 1 : 0);
}

/* The last release of a lease tells its owner, or has told before.  Return
 * whether it was told as often as it may have been. */
static bool is_told_right(struct run *run, int owner, int lock,
                          const struct share *before, int rc)
{
    int told;

    if (before->count != 1 || has_siblings(owner))
        return true;
    told = losses_of(run, owner, lock)->times - before->told_before;
    if (before->wish.is_told ? told > 1 || (told == 1 && rc == 0) : told != 0)
        return differs(run, "its loss was told more often than it was lost",
                       lock);
    return true;
}

/* Where rows are deleted, MySQL does not say which of them were there: either
 * may have been lost. */
static void doubt(const struct run *run, struct model *model, int owner,
                  struct moment *at)
{
    if (model->keeps_rows || run->play.f->database->bit != ON_MYSQL)
        return;
    model->of[owner].may_be_gone = true;
    at->has_failed = true;
}

static bool give_two(struct model *first, struct model *second, int owner,
                     const struct moment *at, int rc)
{
    struct model before = *first;

    /* The call gives the first result that is not 0, in the locks' order. */
    if (rc == 0)
        return model_give(first, owner, at, 0) &&
               model_give(second, owner, at, 0);
    if (model_give(first, owner, at, rc)) {
        (void)model_give(second, owner, at, rc);
        second->is_in_doubt = second->is_in_doubt || second->holder < 0;
        return true;
    }
    *first = before;
    return model_give(first, owner, at, 0) && model_give(second, owner, at, rc);
}

static bool give(struct run *run, const struct act *act, int other)
{
    struct moment at = call_of(run, act->owner);
    struct model *model = &run->models[act->lock];
    struct share before = model->of[act->owner];
    bool is_many = other >= 0 && model->of[act->owner].count > 0 &&
                   run->models[other].of[act->owner].count > 0;
    bool is_right;
    char text[120];
    int rc;

    (void)snprintf(text, sizeof text, "%s gives %s%s%s",
                   run->owners[act->owner], names[act->lock],
                   is_many ? "," : "", is_many ? names[other] : "");
    rc = run_step(run, text, &at);
    if (!is_many)
        return model_give(model, act->owner, &at, rc) &&
               is_told_right(run, act->owner, act->lock, &before, rc);
    doubt(run, model, act->owner, &at);
    doubt(run, &run->models[other], act->owner, &at);
    is_right = give_two(model, &run->models[other], act->owner, &at, rc);
    return is_right && is_row_right(run, other);
}

static bool renew(struct run *run, const struct act *act)
{
    struct moment at = call_of(run, act->owner);
    char text[120];
    int rc;

    (void)snprintf(text, sizeof text, "%s renews %s", run->owners[act->owner],
                   names[act->lock]);
    rc = run_step(run, text, &at);
    return model_renew(&run->models[act->lock], act->owner, &at, rc);
}

/* The call gives the first result that is not 0. */
static bool renew_many(struct run *run, const struct act *act)
{
    int other = (act->lock + 1) % LOCKS;
    struct model *first = &run->models[act->lock];
    struct model *second = &run->models[other];
    struct model before = *first;
    struct moment at = call_of(run, act->owner);
    char text[120];
    int rc;

    if (first->of[act->owner].count == 0 || second->of[act->owner].count == 0)
        return true;
    (void)snprintf(text, sizeof text, "%s renews %s,%s",
                   run->owners[act->owner], names[act->lock], names[other]);
    rc = run_step(run, text, &at);
    if (rc == 0)
        return model_renew(first, act->owner, &at, 0) &&
               model_renew(second, act->owner, &at, 0);
    if (model_renew(first, act->owner, &at, rc)) {
        model_renewed(second, act->owner, &at);
        return true;
    }
    *first = before;
    return model_renew(first, act->owner, &at, 0) &&
           model_renew(second, act->owner, &at, rc);
}

/* Wait until the owner has been told that its lease is lost. */
static bool hear(struct run *run, const struct act *act)
{
    struct share *mine = &run->models[act->lock].of[act->owner];
    int64_t until = check_deadline_ns(HEARING_MS);
    const struct loss *loss;

    if (!mine->wish.is_told ||
        !model_is_lost(&run->models[act->lock], act->owner, now_ns()))
        return true;
    while (losses_of(run, act->owner, act->lock)->times == mine->told_before)
        if (!check_pause(until))
            return differs(run, "its loss is not told", act->lock);
    mine->knows = true;
    loss = losses_of(run, act->owner, act->lock);
    if (mine->wish.is_renewed && loss->code != SQLOCK_ELOST)
        return differs(run, "it is told that a renewed lease expired",
                       act->lock);
    return has_siblings(act->owner) || loss->times == mine->told_before + 1 ||
           differs(run, "its loss is told twice", act->lock);
}

static bool break_lease(struct run *run, const struct act *act, bool now)
{
    struct model *model = &run->models[act->lock];
    struct moment at = {0};
    char text[120];
    int rc;

    /* A process does not notice: its own waiter would wait for the lease's
     * end.  A lease that is renewed has no end that is known. */
    if (model->is_in_doubt || model->holder == GHOST ||
        !model_is_live(model, now_ns() + SHORT_MS * INT64_C(500000)) ||
        (!now && model->of[model->holder].wish.is_renewed) ||
        (run->waiters[act->lock] >= 0 &&
         (!now || model_are_siblings(model->holder, run->waiters[act->lock]))))
        return true;
    (void)snprintf(text, sizeof text, "operator breaks %s%s", names[act->lock],
                   now ? " now" : "");
    rc = run_step(run, text, &at);
    model_break(model, now);
    run->play.somebody_died = run->play.somebody_died || !now;
    return rc == 0;
}

static bool anybody_waits(const struct run *run)
{
    for (int i = 0; i < LOCKS; i++)
        if (run->waiters[i] >= 0)
            return true;
    return false;
}

static bool fail_network(struct run *run, int lock)
{
    struct moment at = {0};

    if (run->play.f->database->bit == ON_SQLITE || run->is_to_fail ||
        anybody_waits(run))
        return true;
    if (run_step(run,
                 lock % 2 == 0 ? "network cuts when=carried_out"
                               : "network cuts",
                 &at) != 0)
        return false;
    run->is_to_fail = true;
    return true;
}

static bool shake_network(struct run *run)
{
    struct moment at = {0};

    if (run->play.f->database->bit == ON_SQLITE || run->is_to_fail ||
        anybody_waits(run))
        return true;
    for (int owner = 0; owner < OWNERS; owner++)
        run->shaken[owner] = 4;
    return run_step(run, "network breaks", &at) == 0;
}

bool run_open_process(struct run *run, const char *id)
{
    bool is_file = run->play.f->database->bit == ON_SQLITE;
    struct moment at = {0};
    char text[120];

    (void)snprintf(text, sizeof text, "%s opens period=150%s", id,
                   is_file ? "" : " through=network");
    return run_step(run, text, &at) == 0;
}

/* The last owner's process dies with what it has, and another one comes. */
static bool die(struct run *run)
{
    int owner = OWNERS - 1;
    struct moment at = {0};
    char text[40];
    char id[2] = {(char)('c' + run->deaths), '\0'};

    if (run->deaths == DEATHS_MAX || run->is_to_fail || is_waiting(run, owner))
        return true;
    for (int i = 0; i < LOCKS; i++)
        if (run->waiters[i] >= 0 && run->models[i].holder == owner)
            return true;
    (void)snprintf(text, sizeof text, "%s dies", id);
    if (run_step(run, text, &at) != 0)
        return false;
    for (int i = 0; i < LOCKS; i++)
        model_die(&run->models[i], owner, now_ns());
    run->deaths++;
    id[0]++;
    (void)snprintf(run->owners[owner], sizeof run->owners[owner], "%s.1", id);
    return run_open_process(run, id);
}

/* Let those get their locks that wait for one which is, or may be, free. */
static bool end_waits(struct run *run)
{
    for (int i = 0; i < LOCKS; i++)
        if (run->waiters[i] >= 0 && !model_is_live(&run->models[i], now_ns()) &&
            !end_wait(run, i))
            return false;
    return true;
}

/* Return the act, if it is to be apt: by an owner that has the lock, and that
 * may not know that it has lost it. */
static struct act aptly(const struct run *run, const struct act *act)
{
    const struct share *of = run->models[act->lock].of;
    struct act apt = *act;

    for (int i = OWNERS; act->is_apt && i > 0; i--) {
        int owner = (act->owner + i) % OWNERS;

        if (of[owner].count > 0)
            apt.owner = owner;
    }
    for (int owner = 0; act->is_apt && owner < OWNERS; owner++)
        if (of[owner].count > 0 && of[owner].is_gone && !of[owner].knows)
            apt.owner = owner;
    return apt;
}

static bool do_act(struct run *run, const struct act *given)
{
    struct act act = aptly(run, given);
    struct moment at = {0};

    if (!end_waits(run))
        return false;
    if (act.deed < BREAK && is_waiting(run, act.owner))
        return true;
    switch (act.deed) {
    case TAKE:
        return take(run, &act, lasting, 0);
    case TAKE_SHORT:
        return take(run, &act, (struct wish){.ttl_ms = SHORT_MS}, 0);
    case TAKE_MIDDLE:
        return take(run, &act,
                    (struct wish){.ttl_ms = MIDDLE_MS, .is_told = true}, 0);
    case TAKE_RENEWED:
        return take(run, &act,
                    (struct wish){RENEWED_MS, .is_renewed = true, true}, 0);
    case TAKE_AND_WAIT:
        return take(run, &act, lasting, 30 * SLOWNESS);
    case TAKE_MANY:
        return take_many(run, &act);
    case WAIT:
        return begin_wait(run, &act);
    case GIVE:
        return give(run, &act, -1);
    case GIVE_MANY:
        return give(run, &act, (act.lock + 1) % LOCKS);
    case RENEW:
        return renew(run, &act);
    case RENEW_MANY:
        return renew_many(run, &act);
    case HEAR:
        return hear(run, &act);
    case BREAK:
    case BREAK_NOW:
        return break_lease(run, &act, act.deed == BREAK_NOW);
    case FAIL:
        return fail_network(run, act.lock);
    case SHAKE:
        return shake_network(run);
    case DIE:
        return die(run);
    case PASS:
        return run_step(run, "time passes ms=100", &at) == 0;
    case PASS_LONG:
        return run_step(run, "time passes ms=950", &at) == 0;
    case DEEDS:
        break;
    }
    return false;
}

bool run_act(struct run *run, const struct act *act)
{
    return do_act(run, act) && is_row_right(run, act->lock);
}

bool run_end(struct run *run)
{
    for (int i = 0; i < LOCKS; i++)
        for (int owner = 0; owner < OWNERS; owner++)
            if (!hear(run, &(struct act){HEAR, owner, i, false}))
                return false;
    for (int i = 0; i < LOCKS; i++) {
        if (run->waiters[i] >= 0 && run->models[i].holder >= 0 &&
            run->models[i].holder != GHOST) {
            struct act last = {GIVE, run->models[i].holder, i, false};

            while (run->models[i].of[last.owner].count > 0)
                if (!give(run, &last, -1))
                    return false;
        }
        if (run->waiters[i] >= 0 && !end_wait(run, i))
            return false;
        for (int owner = 0; owner < OWNERS; owner++) {
            struct act last = {GIVE, owner, i, false};

            while (run->models[i].of[owner].count > 0)
                if (!give(run, &last, -1))
                    return false;
        }
    }
    return true;
}
