/*
 * model.c - see model.h
 */
#include "model.h"

#include <string.h>

#include "sqlock.h"

#define NS_PER_MS INT64_C(1000000)
#define SLACK_NS (5 * NS_PER_MS) /* SQLite's clock has milliseconds */

void model_begin(struct model *model, bool keeps_rows)
{
    memset(model, 0, sizeof *model);
    model->keeps_rows = keeps_rows;
    model->holder = NOBODY;
}

static struct term term_of(const struct moment *at, const struct wish *wish)
{
    /* A holder stops by the margin earlier: the larger of 1 ms and TTL / 20. */
    int64_t ttl_ns = wish->ttl_ms * NS_PER_MS;
    int64_t margin_ns = ttl_ns / 20 + NS_PER_MS;

    if (wish->is_renewed)
        return (struct term){INT64_MAX, INT64_MAX};
    return (struct term){.sure_ns =
                             at->began_ns + ttl_ns - margin_ns - SLACK_NS,
                         .over_ns = at->ended_ns + ttl_ns + SLACK_NS};
}

static bool lives(const struct term *term, const struct moment *at)
{
    return at->ended_ns < term->sure_ns;
}

static bool is_past(const struct term *term, const struct moment *at)
{
    return at->began_ns > term->over_ns;
}

static bool is_loss(int rc)
{
    return rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED;
}

static bool is_unanswered(const struct moment *at, int rc)
{
    return at->has_failed &&
           (rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE);
}

/* A renewal in the background finds out by itself that the row is gone. */
static bool may_know(const struct share *share)
{
    return (share->wish.is_renewed || share->may_know) &&
           (share->is_gone || share->may_be_gone);
}

/* A nested acquire sends nothing: it goes by the owner's belief. */
static bool may_nest(const struct share *mine, const struct moment *at, int rc)
{
    if (mine->knows || is_past(&mine->term, at))
        return is_loss(rc);
    return rc == 0 ||
           (is_loss(rc) && (!lives(&mine->term, at) || may_know(mine)));
}

bool model_are_siblings(int owner, int other)
{
    static const int processes[OWNERS] = {0, 0, 1, 2};

    return owner != other && processes[owner] == processes[other];
}

/* A process goes by what its own holder believes, and keeps others out until
 * the holder has been told of its loss: return whether there is one that
 * certainly does, or that may. */
static bool is_believed(const struct model *model, int owner,
                        const struct moment *at, bool certainly)
{
    for (int other = 0; other < OWNERS; other++) {
        const struct share *theirs = &model->of[other];

        if (!model_are_siblings(owner, other) || theirs->count == 0)
            continue;
        if (theirs->knows ? !certainly && theirs->wish.is_told
            : certainly   ? lives(&theirs->term, at) && !may_know(theirs)
                          : !is_past(&theirs->term, at))
            return true;
    }
    return false;
}

/* A wait may be over before anything was sent: the machine is busy. */
static bool was_slow(const struct moment *at, int64_t wait_ms)
{
    return wait_ms > 0 && at->ended_ns - at->began_ns > wait_ms * NS_PER_MS / 2;
}

bool model_may_take(const struct model *model, int owner, int64_t wait_ms,
                    const struct moment *at, int rc)
{
    int busy = wait_ms == 0 ? SQLOCK_EBUSY : SQLOCK_ETIMEDOUT;

    if (is_unanswered(at, rc))
        return true;
    if (model->of[owner].count > 0)
        return may_nest(&model->of[owner], at, rc);
    if (is_believed(model, owner, at, true))
        return rc == busy;
    if (model->is_in_doubt || is_believed(model, owner, at, false))
        return rc == 0 || rc == busy;
    if (model->holder == NOBODY || is_past(&model->term, at))
        return rc == 0 ||
               (rc == busy && at->has_failed && was_slow(at, wait_ms));
    return rc == busy || (rc == 0 && !lives(&model->term, at));
}

void model_took(struct model *model, int owner, const struct wish *wish,
                const struct moment *at, int rc)
{
    struct share *mine = &model->of[owner];

    if (is_unanswered(at, rc)) {
        model->is_in_doubt = true;
        if (model->holder >= 0)
            model->of[model->holder].may_be_gone = true;
    }
    if (rc != 0)
        return;
    if (mine->count++ > 0)
        return;
    if (model->holder >= 0)
        model->of[model->holder].is_gone = true;
    model->holder = owner;
    model->is_in_doubt = false;
    model->term = term_of(at, wish);
    *mine = (struct share){.count = 1, .wish = *wish, .term = model->term};
}

void model_touched(struct model *model, const struct moment *at)
{
    if (model->holder >= 0 && !lives(&model->term, at))
        model->of[model->holder].may_be_gone = true;
}

/* Return whether the last release of a lease may give that. */
static bool may_end(const struct share *mine, const struct moment *at, int rc)
{
    if (mine->is_gone || (mine->may_be_gone && rc == SQLOCK_ELOST))
        return rc == SQLOCK_ELOST;
    if (is_past(&mine->term, at))
        return rc == SQLOCK_EEXPIRED;
    return rc == 0 || (rc == SQLOCK_EEXPIRED && !lives(&mine->term, at));
}

bool model_give(struct model *model, int owner, const struct moment *at, int rc)
{
    struct share *mine = &model->of[owner];
    bool is_right;

    if (mine->count == 0)
        return rc == SQLOCK_EOWNER;
    if (--mine->count > 0)
        return rc == 0;
    /* A row that is not there tells a release that was sent again nothing. */
    is_right = may_end(mine, at, rc) || is_unanswered(at, rc) ||
               (rc == 0 && at->has_failed && !model->keeps_rows);
    if (model->holder == owner && !mine->is_gone) {
        model->is_in_doubt = is_unanswered(at, rc);
        model->holder = NOBODY;
    }
    memset(mine, 0, sizeof *mine);
    return is_right;
}

/* Return whether a renewal may give that. */
static bool may_renew(const struct share *mine, const struct moment *at, int rc)
{
    if (mine->knows || is_past(&mine->term, at))
        return mine->is_gone || mine->may_be_gone ? is_loss(rc)
                                                  : rc == SQLOCK_EEXPIRED;
    if (mine->may_be_gone && rc == SQLOCK_ELOST)
        return true;
    if (mine->is_gone)
        return rc == SQLOCK_ELOST ||
               (rc == SQLOCK_EEXPIRED && !lives(&mine->term, at));
    return rc == 0 || (rc == SQLOCK_EEXPIRED && !lives(&mine->term, at));
}

bool model_renew(struct model *model, int owner, const struct moment *at,
                 int rc)
{
    struct share *mine = &model->of[owner];
    struct term later = term_of(at, &mine->wish);

    if (mine->count == 0)
        return rc == SQLOCK_EOWNER;
    if (is_unanswered(at, rc)) { /* it may have been carried out */
        mine->term.over_ns = later.over_ns;
        if (model->holder == owner)
            model->term.over_ns = later.over_ns;
        return true;
    }
    if (!may_renew(mine, at, rc))
        return false;
    if (is_loss(rc))
        mine->knows = true;
    if (rc == 0)
        mine->term = model->term = later;
    return true;
}

void model_renewed(struct model *model, int owner, const struct moment *at)
{
    struct share *mine = &model->of[owner];
    struct moment unknown = *at;

    unknown.has_failed = true;
    mine->may_know = true;
    (void)model_renew(model, owner, &unknown, SQLOCK_EUNCERTAIN);
}

void model_break(struct model *model, bool now)
{
    model->of[model->holder].is_gone = true;
    model->holder = now ? NOBODY : GHOST;
}

void model_die(struct model *model, int owner, int64_t now_ns)
{
    struct share *mine = &model->of[owner];

    if (model->holder == owner) {
        model->holder = GHOST;
        if (mine->wish.is_renewed)
            model->term = (struct term){
                .sure_ns = now_ns,
                .over_ns = now_ns + mine->wish.ttl_ms * NS_PER_MS + SLACK_NS};
    }
    memset(mine, 0, sizeof *mine);
}

bool model_is_live(const struct model *model, int64_t now_ns)
{
    return model->holder >= 0 && now_ns < model->term.sure_ns;
}

bool model_is_lost(const struct model *model, int owner, int64_t now_ns)
{
    const struct share *mine = &model->of[owner];

    return mine->count > 0 && (mine->is_gone || now_ns > mine->term.over_ns);
}
