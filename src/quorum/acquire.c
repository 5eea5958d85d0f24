/*
 * acquire.c - acquire a quorum: rounds in which all registries are asked at the
 * same time
 *
 * A round ends with enough locks, or with too many that cannot be had, or with
 * a setback: there are some locks, too few, for too long.  Then they are given
 * back, and the next round waits with nothing held where others were first.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "quorum/quorum.h"

/* How long some locks, too few, are kept; the double after each setback, so
 * that slow servers have the time that they need. */
#define PATIENCE_MS 100
#define PATIENCE_MAX_MS 3000

/* The least that those get who have not answered when there are enough. */
#define STRAGGLERS_MS 25

/* A lock that comes later than this has queued at its server. */
#define QUEUED_MS 100

enum round_end { ROUND_GOES_ON, ROUND_WON, ROUND_SETBACK, ROUND_FAILED };

struct round {
    int64_t patience_ns;
    int64_t asked_ns; /* when the last member was asked */
    int64_t got_ns;   /* when the first lock was had; LK_NEVER: none yet */
    int64_t until_ns; /* when there is to be an end; LK_NEVER: no end yet */
    bool is_won;      /* there are enough: only stragglers are waited for */
    int rc;           /* of waiting */
};

/* Return whether the caller's time is over, so that each request ends by itself
 * and none begins anew; it is from the start of one try. */
static bool is_late(const sqlock_quorum *quorum)
{
    return sqlock_monotonic_ns() >= quorum->deadline_ns;
}

/* Ask those that are idle; in a round after a setback the others only when one
 * of the first has its lock. */
static void ask(sqlock_quorum *quorum, struct round *round)
{
    bool asks_all = lk_quorum_count(quorum, LK_MEMBER_HELD) > 0;

    for (size_t i = 0; i < quorum->count; i++) {
        struct lk_member *member = &quorum->members[i];

        if (member->state != LK_MEMBER_IDLE || !(asks_all || member->is_first))
            continue;
        lk_member_ask(member);
        round->asked_ns = sqlock_monotonic_ns();
    }
}

/* Return since when answers have taken their time: since the members were
 * asked; but the first lock, if it came late, had others before it, and how
 * long it has queued says nothing. */
static int64_t answers_since(const struct round *round)
{
    return round->got_ns - round->asked_ns > QUEUED_MS * LK_NS_PER_MS
               ? round->got_ns
               : round->asked_ns;
}

/* Note that there are enough.  The others get as long as these have taken, and
 * at most a quarter of what is left of the leases. */
static void win(sqlock_quorum *quorum, struct round *round)
{
    int64_t now_ns = sqlock_monotonic_ns();
    int64_t more_ns = now_ns - answers_since(round);
    int64_t left_ns = lk_quorum_left_ms(quorum) * LK_NS_PER_MS / 4;

    round->is_won = true;
    if (more_ns < STRAGGLERS_MS * LK_NS_PER_MS)
        more_ns = STRAGGLERS_MS * LK_NS_PER_MS;
    round->until_ns = lk_after_ns(now_ns, lk_sooner(more_ns, left_ns));
}

/* Look where the round stands. */
static enum round_end look(sqlock_quorum *quorum, struct round *round)
{
    size_t held = lk_quorum_count(quorum, LK_MEMBER_HELD);
    size_t asked = lk_quorum_count(quorum, LK_MEMBER_ASKING);
    size_t failed = lk_quorum_count(quorum, LK_MEMBER_FAILED);
    int64_t now_ns = sqlock_monotonic_ns();

    if (held > 0 && round->got_ns == LK_NEVER)
        round->got_ns = now_ns;
    if (held >= quorum->need && !round->is_won)
        win(quorum, round);
    if (round->is_won)
        return asked == 0 || now_ns >= round->until_ns ? ROUND_WON
                                                       : ROUND_GOES_ON;
    if (failed > quorum->count - quorum->need)
        return ROUND_FAILED;
    if (held == 0 || is_late(quorum))
        round->until_ns = LK_NEVER;
    else if (round->until_ns == LK_NEVER)
        round->until_ns = lk_after_ns(now_ns, round->patience_ns);
    return now_ns >= round->until_ns ? ROUND_SETBACK : ROUND_GOES_ON;
}

static enum round_end run_round(sqlock_quorum *quorum, struct round *round,
                                sqlock_error *err)
{
    enum round_end end;

    round->until_ns = LK_NEVER;
    round->got_ns = LK_NEVER;
    round->is_won = false;
    for (;;) {
        lk_quorum_harvest(quorum);
        if (!round->is_won)
            ask(quorum, round);
        end = look(quorum, round);
        if (end != ROUND_GOES_ON)
            return end;
        round->rc = lk_quorum_wait(quorum, round->until_ns,
                                   quorum->options.cancel_fd, err);
        if (round->rc < 0)
            return ROUND_FAILED;
    }
}

/* Note that the quorum is held: from here on a loss is told, and who has not
 * answered is late.  Return how many are.  The caller holds the mutex. */
static size_t begin_hold(sqlock_quorum *quorum)
{
    quorum->state = LK_QUORUM_WON;
    for (size_t i = 0; i < quorum->count; i++) {
        struct lk_member *member = &quorum->members[i];

        member->counts = member->state == LK_MEMBER_HELD;
        if (member->state != LK_MEMBER_ASKING)
            continue;
        member->state = LK_MEMBER_LATE;
        member->rc = SQLOCK_EUNCERTAIN;
    }
    return lk_quorum_count(quorum, LK_MEMBER_LATE);
}

/* Hold what there is, and leave those behind that were given back after a
 * setback.  Return false, and leave none, if some of it was lost meanwhile, so
 * that there is not enough. */
static bool hold(sqlock_quorum *quorum)
{
    bool is_given_back[SQLOCK_QUORUM_MAX] = {false};
    bool is_enough;
    size_t late = 0;

    for (size_t i = 0; i < quorum->count; i++)
        is_given_back[i] = quorum->members[i].state != LK_MEMBER_HELD &&
                           quorum->members[i].state != LK_MEMBER_ASKING;
    pthread_mutex_lock(&quorum->mutex);
    is_enough = lk_quorum_left_ms(quorum) > 0;
    if (is_enough)
        late = begin_hold(quorum);
    pthread_mutex_unlock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count && is_enough; i++)
        if (is_given_back[i])
            (void)lk_member_leave(&quorum->members[i], NULL);
    if (late > 0)
        lk_quorum_await_late(quorum);
    return is_enough;
}

/* Give back what there is, and pause, for a time by which those that have split
 * the servers are not in step. */
static int set_back(sqlock_quorum *quorum, struct round *round,
                    enum round_end end, sqlock_error *err)
{
    int64_t until_ns = lk_after_ns(sqlock_monotonic_ns(),
                                   lk_random_between(0, round->patience_ns));

    for (size_t i = 0; i < quorum->count; i++) {
        struct lk_member *member = &quorum->members[i];

        /* Where there were enough, but not for long enough, none is waited
         * for. */
        member->is_first = end == ROUND_WON || member->state != LK_MEMBER_HELD;
        lk_member_give_back(member);
    }
    if (round->patience_ns < PATIENCE_MAX_MS * LK_NS_PER_MS)
        round->patience_ns *= 2;
    until_ns = lk_sooner(until_ns, quorum->deadline_ns);
    while (round->rc == 0 && sqlock_monotonic_ns() < until_ns) {
        round->rc =
            lk_quorum_wait(quorum, until_ns, quorum->options.cancel_fd, err);
        lk_quorum_harvest(quorum);
    }
    return round->rc;
}

/* Run rounds to the end.  Return 0: held; ECANCELED; or EBUSY: not had. */
static int take(sqlock_quorum *quorum, sqlock_error *err)
{
    struct round round = {
        .patience_ns = lk_random_between(PATIENCE_MS * LK_NS_PER_MS,
                                         PATIENCE_MS * LK_NS_PER_MS * 2),
    };

    for (;;) {
        enum round_end end = run_round(quorum, &round, err);

        if (end == ROUND_WON && hold(quorum))
            return 0;
        if (end == ROUND_FAILED || is_late(quorum))
            return round.rc < 0 ? round.rc : SQLOCK_EBUSY;
        if (set_back(quorum, &round, end, err) < 0)
            return round.rc;
    }
}

/* --- why it failed --- */

static bool is_busy(int rc)
{
    return rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT;
}

/* Return the first member that is in doubt; or else the first one that failed,
 * because its lock was busy or for another reason; NULL: there is none. */
static const struct lk_member *culprit(const sqlock_quorum *quorum,
                                       bool is_for_doubt, bool is_for_busy)
{
    for (size_t i = 0; i < quorum->count; i++) {
        const struct lk_member *member = &quorum->members[i];

        if (is_for_doubt ? member->is_in_doubt
                         : member->state == LK_MEMBER_FAILED &&
                               is_busy(member->rc) == is_for_busy)
            return member;
    }
    return NULL;
}

/* Return the result of a failed acquisition that has given all back: whether
 * the others would have been enough decides if it is busy. */
static int result_of(const sqlock_quorum *quorum, int64_t wait_ms,
                     sqlock_error *err)
{
    const struct lk_member *member = culprit(quorum, true, false);
    size_t others = 0;
    int rc = SQLOCK_EUNCERTAIN;

    for (size_t i = 0; i < quorum->count; i++)
        others += quorum->members[i].state == LK_MEMBER_FAILED &&
                  !is_busy(quorum->members[i].rc);
    if (member == NULL && others > quorum->count - quorum->need) {
        member = culprit(quorum, false, false);
        rc = member->rc;
    } else if (member == NULL) {
        member = culprit(quorum, false, true);
        rc = wait_ms == 0 ? SQLOCK_EBUSY : SQLOCK_ETIMEDOUT;
    }
    if (member == NULL)
        return lk_error(err, rc, "%s", sqlock_strerror(rc));
    return sqlock_error_set(
        err, rc, member->err.native, member->err.sqlstate,
        "%zu of %zu locks are needed; registry %zu: %s", quorum->need,
        quorum->count, (size_t)(member - quorum->members), member->err.message);
}

/* --- the call --- */

static int read_options(sqlock_quorum *quorum, int64_t wait_ms,
                        const sqlock_acquire_options *options,
                        sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_acquire_options",
                                          "SQLOCK_ACQUIRE_INIT",
                                          sizeof(sqlock_acquire_options)};
    sqlock_acquire_options *read = &quorum->options;
    int rc = lk_sized_read(read, &sized, options, err);

    if (rc == 0)
        rc = lk_check_wait(wait_ms, read->cancel_fd, err);
    if (rc < 0)
        return rc;
    if (read->permits != 0 || read->weight != 0 || read->modes != NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "a quorum has no permits, weight or modes: several "
                        "majorities would have more permits than there are");
    quorum->deadline_ns =
        wait_ms < 0 ? LK_NEVER : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    return 0;
}

static void prepare(sqlock_quorum *quorum)
{
    quorum->is_told = false;
    for (size_t i = 0; i < quorum->count; i++) {
        struct lk_member *member = &quorum->members[i];

        member->state = LK_MEMBER_IDLE;
        member->rc = SQLOCK_ECANCELED; /* unless it is asked */
        member->counts = false;
        member->is_in_doubt = false;
        member->is_first = true;
    }
}

static int acquire(sqlock_quorum *quorum, int64_t wait_ms,
                   const sqlock_acquire_options *options, int *results,
                   sqlock_error *err)
{
    sqlock_error ignored;
    int rc = read_options(quorum, wait_ms, options, err);

    if (rc == 0)
        rc = lk_quorum_compare(quorum, err);
    if (rc < 0)
        return rc;
    prepare(quorum);
    rc = take(quorum, err);
    if (rc < 0) {
        lk_quorum_give_back(quorum);
        if (rc == SQLOCK_EBUSY || culprit(quorum, true, false) != NULL)
            rc = result_of(quorum, wait_ms, err != NULL ? err : &ignored);
    }
    pthread_mutex_lock(&quorum->mutex); /* those that are late may come */
    for (size_t i = 0; results != NULL && i < quorum->count; i++) {
        const struct lk_member *member = &quorum->members[i];

        results[i] = member->is_in_doubt ? SQLOCK_EUNCERTAIN : member->rc;
    }
    pthread_mutex_unlock(&quorum->mutex);
    return rc;
}

int sqlock_quorum_acquire(sqlock_quorum *quorum, int64_t wait_ms,
                          const sqlock_acquire_options *options, int *results,
                          sqlock_error *err)
{
    int rc = lk_quorum_begin(quorum, LK_QUORUM_FREE, err);

    if (rc < 0)
        return rc;
    rc = acquire(quorum, wait_ms, options, results, err);
    lk_quorum_settle(quorum, rc == 0 ? LK_QUORUM_HELD : LK_QUORUM_FREE);
    return rc;
}
