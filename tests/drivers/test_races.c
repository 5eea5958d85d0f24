/*
 * test_races.c - two sessions that change a row at once, and the clock by which
 * a lease is counted
 */
#include "drivers/suite.h"

#define ROUNDS 200
#define TRIES 50

/* One of the two contenders: its session, its client id, its result. */
struct contender {
    struct fixture *f;
    struct session *session;
    const char *client;
    int64_t token;  /* 0: busy */
    unsigned again; /* number of failed attempts */
};

struct race {
    struct contender contenders[2];
};

static struct race race_of(struct fixture *f)
{
    return (struct race){
        .contenders = {{.f = f, .session = &f->a, .client = f->client_a},
                       {.f = f, .session = &f->b, .client = f->client_b}}};
}

/* Claim.  After a deadlock, or if SQLite's file is busy, try again, as the
 * library does. */
static int contend(struct worker *worker)
{
    struct race *race = worker->context;
    struct contender *self = &race->contenders[worker->index];
    struct lk_arguments arguments =
        arguments_for(self->f, self->client, LONG_US);
    int rc = SQLOCK_ERETRY;

    self->token = 0;
    for (unsigned i = 0;
         i < TRIES && (rc == SQLOCK_ERETRY || rc == SQLOCK_EBUSY); i++) {
        rc =
            statement_try(self->session, self->f, SQLOCK_SQL_CLAIM, &arguments);
        if (rc < 0)
            self->again++;
    }
    if (rc < 0)
        return worker_fail(worker, "%d: %s", rc, self->session->err.message);
    if (self->session->result.rows == 1)
        self->token = self->session->result.cells[0].integer;
    return 0;
}

/* Of two first claims one is granted, though no row keeps the other out (F20,
 * F24). */
TEST_ON(test_of_two_claims_at_once_one_is_granted, ON_ALL, IN_ALL)
{
    struct race race = race_of(f);
    int64_t last = 0;

    for (size_t round = 0; round < ROUNDS; round++) {
        struct workers workers;
        const struct contender *winner;

        /* Every second round finds the row that the round before has left. */
        if (round % 2 == 0) {
            next_key(f->key);
            last = 0;
        }
        workers_start(&workers, 2, contend, &race);
        workers_join(&workers);
        assert_int_equal((race.contenders[0].token != 0) +
                             (race.contenders[1].token != 0),
                         1);
        winner = &race.contenders[race.contenders[0].token != 0 ? 0 : 1];
        assert_less(last, winner->token);
        last = winner->token;
        assert_int_equal(release(winner->session, f, winner->client), 1);
    }
    print_message("%u + %u claims had to be sent again\n",
                  race.contenders[0].again, race.contenders[1].again);
}

/* Contender 0 releases the lease while contender 1 claims it.  Whichever
 * statement is carried out first, the lock is then free or contender 1's. */
static int let_go_or_take(struct worker *worker)
{
    struct race *race = worker->context;
    struct contender *self = &race->contenders[worker->index];
    struct lk_arguments arguments;
    int rc = SQLOCK_ERETRY;

    if (worker->index == 1)
        return contend(worker);
    arguments = arguments_for(self->f, self->client, 0);
    for (unsigned i = 0;
         i < TRIES && (rc == SQLOCK_ERETRY || rc == SQLOCK_EBUSY); i++)
        rc = statement_try(self->session, self->f, SQLOCK_SQL_RELEASE,
                           &arguments);
    if (rc < 0)
        return worker_fail(worker, "%d: %s", rc, self->session->err.message);
    if (self->session->result.affected != 1)
        return worker_fail(worker, "the release affected %lld rows",
                           (long long)self->session->result.affected);
    return 0;
}

TEST_ON(test_release_beside_a_claim_is_never_lost, ON_ALL, IN_ALL)
{
    struct race race = race_of(f);

    for (size_t round = 0; round < ROUNDS / 4; round++) {
        struct workers workers;

        assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
        workers_start(&workers, 2, let_go_or_take, &race);
        workers_join(&workers);
        if (race.contenders[1].token == 0)
            assert_less(0, claim(&f->b, f, f->client_b, LONG_US));
        assert_int_equal(release(&f->a, f, f->client_a), 0);
        assert_int_equal(release(&f->b, f, f->client_b), 1);
    }
}

/* F9: on some servers the clock of a transaction stands still.  b's transaction
 * begins before a's lease has expired, and yet finds it expired later. */
TEST_ON(test_old_transaction_sees_an_expired_lease, ON_ALL, IN_ALL)
{
    int64_t token = claim(&f->a, f, f->client_a, SECOND_US / 4);

    assert_lock_ok(session_begin(&f->b), &f->b.err);
    session_run(&f->b, "SELECT 1");
    await_expiry(&f->a, f);
    assert_less(remaining_us(&f->b, f), 0);
    assert_less(token, claim(&f->b, f, f->client_b, LONG_US));
    assert_lock_ok(session_commit(&f->b), &f->b.err);
}

TEST_ON(test_old_transaction_writes_a_whole_lease, ON_ALL, IN_ALL)
{
    const int64_t ttl_us = SECOND_US;
    int64_t began, now;

    assert_lock_ok(session_begin(&f->b), &f->b.err);
    session_run(&f->b, "SELECT 1");
    began = now_us(&f->a);
    assert_becomes_true(now_us(&f->a) > began + ttl_us / 2, PATIENCE_MS);
    now = now_us(&f->a);
    assert_less(now - 1, claim(&f->b, f, f->client_b, ttl_us));
    assert_true(read_row(&f->b, f));
    assert_less(now + ttl_us - 1, cell_integer(&f->b, 0, LK_INFO_EXPIRES));
    assert_int_equal(renew(&f->b, f, f->client_b, LONG_US), 1);
    assert_true(read_row(&f->b, f));
    assert_less(now + LONG_US - 1, cell_integer(&f->b, 0, LK_INFO_EXPIRES));
    assert_lock_ok(session_commit(&f->b), &f->b.err);
    assert_less(0, remaining_us(&f->a, f));
}

TEST_ON(test_zone_of_a_session_does_not_matter, ON_SERVERS, IN_ALL)
{
    int64_t token;

    session_run(&f->b, "%s", subject.spelling->set_zone);
    token = claim(&f->a, f, f->client_a, LONG_US);
    assert_less(0, remaining_us(&f->b, f));
    assert_less(remaining_us(&f->b, f), LONG_US + 1);
    assert_true(read_row(&f->b, f));
    assert_less(cell_integer(&f->b, 0, LK_INFO_EXPIRES),
                now_us(&f->a) + LONG_US + 1);
    assert_int_equal(claim(&f->b, f, f->client_b, LONG_US), 0);
    assert_int_equal(release(&f->a, f, f->client_a), 1);
    assert_less(token, claim(&f->b, f, f->client_b, LONG_US));
    assert_less(0, remaining_us(&f->a, f));
    assert_less(remaining_us(&f->a, f), LONG_US + 1);
    assert_int_equal(renew(&f->b, f, f->client_b, LONG_US), 1);
    assert_less(remaining_us(&f->a, f), LONG_US + 1);
}
