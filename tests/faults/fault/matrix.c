/*
 * matrix.c - each operation under each fault at each point
 *
 * Each test is a cell of the matrix.  Party A performs the operation, during
 * which the fault begins; if it begins after the answer, A performs its next
 * operation under the fault.  The results are compared with the table.  After
 * the end of the fault party B gets the locks as soon as A's leases are over;
 * then A acquires, renews and releases them again.
 */
#include "fault.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"

/* How long B waits at most: for the rest of a lease, for a statement that
 * arrives late, and 10 s for a busy machine. */
#define WAIT_MS (TTL_MS + 2 * STATEMENT_MS + CONNECT_MS + 10000)

const char *const op_names[OPS] = {"acquire", "take over",    "renew",
                                   "release", "acquire many", "release many"};

/* -------------------------------------------------------- the operations -- */

int op_locks(enum op op)
{
    return op == OP_ACQUIRE_MANY || op == OP_RELEASE_MANY ? ALL_LOCKS : 0;
}

static size_t lock_count(enum op op)
{
    return op_locks(op) == ALL_LOCKS ? LOCKS : 1;
}

static bool is_acquire(enum op op)
{
    return op == OP_ACQUIRE || op == OP_TAKE_OVER || op == OP_ACQUIRE_MANY;
}

static bool is_release(enum op op)
{
    return op == OP_RELEASE || op == OP_RELEASE_MANY;
}

static int acquire(struct party *party, int which)
{
    return party_acquire(party, which, 0);
}

int op_prepare(struct party *party, enum op op)
{
    int rc;

    if (!is_acquire(op))
        return party_repeat(acquire, party, op_locks(op));
    if (op != OP_TAKE_OVER)
        return 0;
    /* a new handle does not know the row: its first statement takes over */
    rc = sqlock_drop(party->locks[0], &party->err);
    party->locks[0] = NULL;
    return rc < 0 ? rc
                  : sqlock_obtain(&party->locks[0], party->registry,
                                  stage.names[0], &party->err);
}

int op_perform(struct party *party, enum op op)
{
    if (is_acquire(op))
        return party_acquire(party, op_locks(op), 0);
    if (is_release(op))
        return party_release(party, op_locks(op));
    return party_renew(party, op_locks(op));
}

enum op op_next(enum op op)
{
    static const enum op next[OPS] = {
        [OP_ACQUIRE] = OP_RENEW,
        [OP_TAKE_OVER] = OP_RELEASE,
        [OP_RENEW] = OP_RELEASE,
        [OP_RELEASE] = OP_ACQUIRE,
        [OP_ACQUIRE_MANY] = OP_RELEASE_MANY,
        [OP_RELEASE_MANY] = OP_ACQUIRE_MANY,
    };

    return next[op];
}

/* -------------------------------------------------------------- checks -- */

static void expect(enum outcome outcome, int rc, const sqlock_error *err)
{
    switch (outcome) {
    case GOES_THROUGH:
        assert_lock_ok(rc, err);
        break;
    case IS_OUTAGE:
        assert_code_of(SQLOCK_EUNCERTAIN, SQLOCK_EUNREACHABLE, rc, err);
        break;
    case IS_REFUSED:
        assert_true(rc < 0);
        assert_true(err == NULL || check_one_line(err->message));
        break;
    case IS_EITHER:
        assert_true(rc <= 0);
        break;
    }
}

static void check_not_held(sqlock_lock *lock)
{
    assert_false(sqlock_is_held(lock));
    assert_int_equal(sqlock_hold_count(lock), 0);
    assert_int_equal(sqlock_remaining_ms(lock), 0);
    assert_true(sqlock_token(lock) == 0);
}

/* Check that the table has a grant or a renewal that was reported: the lock's
 * token, a CLIENT_ID, and a lease that lasts longer than the holder's own
 * deadline. */
static void check_ours(size_t i, sqlock_lock *lock)
{
    struct row row = stage_row(i);
    int64_t now_us = sql_now_us(&stage.fixture.sql);
    /* read last: time that passes since the other reads makes it smaller */
    int64_t remaining_us = sqlock_remaining_ms(lock) * 1000;

    assert_int_equal(sqlock_hold_count(lock), 1);
    if (remaining_us == 0)
        return; /* held when the call returned, but this machine is slow */
    assert_true(row.exists);
    assert_int_equal(strlen(row.client), 36);
    assert_true(row.fence == sqlock_token(lock));
    assert_less(remaining_us, row.expires_us - now_us);
}

/* Check that the table has a release that was reported: the row is free, and
 * has the token of the released lease. */
static void check_freed(size_t i, int64_t token)
{
    struct row row = stage_row(i);

    assert_true(row.exists);
    assert_string_equal(row.client, "");
    assert_true(row.fence == token);
}

struct before {
    int64_t tokens[LOCKS]; /* held before the operation */
};

static void check_told(struct party *party, enum op op, int rc,
                       const struct before *before)
{
    for (size_t i = 0; i < lock_count(op); i++) {
        sqlock_lock *lock = party->locks[i];

        if (is_release(op) || (is_acquire(op) && rc < 0))
            check_not_held(lock);
        else if (rc == 0)
            check_ours(i, lock);
        else /* a renewal failed: the old lease goes on */
            assert_int_equal(sqlock_hold_count(lock), 1);
        if (is_release(op) && rc == 0)
            check_freed(i, before->tokens[i]);
        /* party B has not acquired anything yet */
        if (is_release(op))
            assert_true(rc != SQLOCK_ELOST);
    }
}

/* Check that a lease in the row ends within a TTL plus a statement's time. */
static void check_bounded(size_t i)
{
    int64_t now_us = sql_now_us(&stage.fixture.sql);
    struct row row = stage_row(i);

    if (row.exists && row.client[0] != '\0')
        assert_less(row.expires_us - now_us,
                    (int64_t)(TTL_MS + STATEMENT_MS) * 1000);
}

static void remember(const struct party *party, struct before *before)
{
    for (size_t i = 0; i < LOCKS; i++)
        before->tokens[i] = sqlock_token(party->locks[i]);
}

static int step(struct party *party, enum op op, struct before *before)
{
    remember(party, before);
    memset(&party->err, 0, sizeof party->err);
    return op_perform(party, op);
}

/* --------------------------------------------------------------- the end -- */

/* Let B acquire each lock, within WAIT_MS.  history_check() finds out later
 * whether B got one before A's deadline. */
static void let_b_in(void)
{
    for (size_t i = 0; i < LOCKS; i++) {

        check_bounded(i);
        assert_lock_ok(party_acquire(&stage.b, (int)i, WAIT_MS), &stage.b.err);
        check_ours(i, stage.b.locks[i]);
        assert_false(sqlock_is_held(stage.a.locks[i]));
        assert_int_equal(sqlock_remaining_ms(stage.a.locks[i]), 0);
    }
}

/* While B holds all locks, check that a lease that A still counts is lost, that
 * A does not get a lock, and that B's rows stay as they are. */
static void turn_a_away(void)
{
    for (size_t i = 0; i < LOCKS; i++) {
        int rc;

        if (sqlock_hold_count(stage.a.locks[i]) > 0) {
            /* EUNCERTAIN: the release took longer than STATEMENT_MS on a busy
             * machine, and its repetition cannot say what the first one did. */
            rc = party_release(&stage.a, (int)i);
            assert_code_of(SQLOCK_ELOST, SQLOCK_EUNCERTAIN, rc, &stage.a.err);
        }
        check_not_held(stage.a.locks[i]);
        rc = party_ask(&stage.a, (int)i);
        assert_code(SQLOCK_EBUSY, rc, &stage.a.err);
        check_ours(i, stage.b.locks[i]);
    }
}

/* Acquire, renew and release, and check what each call has told. */
static int check_turn(struct party *party, int which)
{
    struct before before;
    int rc = step(party, OP_ACQUIRE_MANY, &before);

    check_told(party, OP_ACQUIRE_MANY, rc, &before);
    if (rc < 0)
        return rc;
    rc = party_renew(party, 0);
    if (rc < 0) {
        (void)party_release(party, which);
        return rc;
    }
    rc = step(party, OP_RELEASE_MANY, &before);
    check_told(party, OP_RELEASE_MANY, rc, &before);
    return rc;
}

static void let_a_in_again(void)
{
    assert_lock_ok(party_release(&stage.b, ALL_LOCKS), &stage.b.err);
    assert_lock_ok(party_repeat(check_turn, &stage.a, ALL_LOCKS), &stage.a.err);
}

/* A releases every lock that it holds, and each row becomes free. */
static void leave_in_order(void)
{
    for (size_t i = 0; i < LOCKS; i++) {
        struct before before;

        if (sqlock_hold_count(stage.a.locks[i]) == 0)
            continue;
        remember(&stage.a, &before);
        assert_lock_ok(party_release(&stage.a, (int)i), &stage.a.err);
        check_freed(i, before.tokens[i]);
    }
}

static void finish_story(void)
{
    let_b_in();
    turn_a_away();
    let_a_in_again();
    for (size_t i = 0; i < LOCKS; i++) {
        history_check(&stage.histories[i]);
        assert_true(history_handoffs(&stage.histories[i]) >= 1);
    }
}

/* --------------------------------------------------------------- a cell -- */

static void run_here(const struct cell *cell)
{
    const struct fault *fault = cell->fault;
    struct before before = {{0}};
    enum op last = cell->op;
    bool met;
    int rc;

    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    assert_lock_ok(op_prepare(&stage.a, cell->op), &stage.a.err);
    if (cell->op == OP_TAKE_OVER)
        stage_leave_expired(0);

    fault->arm(fault, cell->point, cell->op);
    rc = step(&stage.a, cell->op, &before);
    met = fault->was_met();
    if (cell->point == FAULT_REPLIED && met && rc == 0) {
        if (!fault->stops_server)
            check_told(&stage.a, cell->op, rc, &before);
        last = op_next(cell->op);
        rc = step(&stage.a, last, &before);
    }
    fault->heal();

    assert_true(met);
    if (cell->point == FAULT_REPLIED)
        assert_int_equal(last, op_next(cell->op));
    expect(fault->outcomes[cell->point], rc, &stage.a.err);
    check_told(&stage.a, last, rc, &before);
    if (fault->only_before)
        leave_in_order();
    finish_story();
}

/* -------------------------------------------------- A in another process -- */

/* Check the report of the other process, and record its grants in the histories
 * of this one. */
static void adopt(enum op op, const struct report *report)
{
    if (is_release(op) || (is_acquire(op) && report->rc < 0)) {
        assert_false(report->is_held);
        assert_int_equal(report->hold_count, 0);
    } else {
        assert_int_equal(report->hold_count, 1);
    }
    for (size_t i = 0; report->is_held && i < lock_count(op); i++) {
        struct history_event event = {.what = HISTORY_GRANTED,
                                      .who = PARTY_CHILD,
                                      .asked_ns = report->asked_ns,
                                      .at_ns = lk_boottime_ns(),
                                      .until_ns = report->until_ns,
                                      .token = report->tokens[i]};

        if (report->rc == 0)
            assert_true(stage_row(i).fence == report->tokens[i]);
        history_add(&stage.histories[i], &event);
    }
}

static void bury(const struct report *report, enum op op, struct holder *holder)
{
    holder_kill(holder);
    for (size_t i = 0; report->is_held && i < lock_count(op); i++)
        history_ended(&stage.histories[i], PARTY_CHILD);
}

static bool is_wire(const struct database *database)
{
    return database->bit != ON_SQLITE;
}

/* Party A is killed (SIGKILL) before its statement is sent, before it has seen
 * the answer (with a server: before the answer arrives), or after that. */
static void run_killed(const struct cell *cell)
{
    const struct fault *fault = cell->fault;
    bool on_wire = is_wire(stage.fixture.database) && cell->point == FAULT_SENT;
    struct report report = {0};
    struct holder holder;
    bool is_told;

    holder_start(&holder, cell->op, cell->point,
                 on_wire ? HALT_NOT : HALT_WAIT);
    if (cell->op == OP_TAKE_OVER)
        stage_leave_expired(0);
    if (on_wire)
        killer_arm(holder.pid);
    holder_go(&holder);
    is_told = holder_read(&holder, &report);
    /* killed by the proxy without a report; or waiting, after a report */
    assert_true(is_told == !on_wire);
    assert_true(!is_told || report.is_done == (cell->point == FAULT_REPLIED));
    if (is_told && report.is_done) {
        assert_int_equal(report.rc, 0);
        adopt(cell->op, &report);
    }
    if (on_wire)
        assert_true(proxy_await(stage.proxy, PATIENCE_MS));
    bury(&report, cell->op, &holder);
    fault->heal();
    finish_story();
}

/* Party A is stopped (SIGSTOP) at the point, for longer than a statement may
 * take, and goes on. */
static void run_stopped(const struct cell *cell)
{
    enum op last = cell->point == FAULT_REPLIED ? op_next(cell->op) : cell->op;
    struct report report = {0};
    struct holder holder;
    int status = 0;

    holder_start(&holder, cell->op, cell->point, HALT_STOP);
    if (cell->op == OP_TAKE_OVER)
        stage_leave_expired(0);
    holder_go(&holder);
    assert_true(holder_read(&holder, &report));
    assert_int_equal(waitpid(holder.pid, &status, WUNTRACED), holder.pid);
    assert_true(WIFSTOPPED(status));
    check_sleep(STATEMENT_MS + 50);
    (void)kill(holder.pid, SIGCONT);
    assert_true(holder_read(&holder, &report));
    assert_true(report.is_done);
    expect(cell->fault->outcomes[cell->point], report.rc, NULL);
    adopt(last, &report);
    finish_story();
    holder_kill(&holder);
}

/* ------------------------------------------------------------ the tables -- */

void test_cell(void **state)
{
    const struct cell *cell = *state;

    if (cell->fault->stops_server)
        stage_need_stopping();
    if (cell->fault->place == A_IS_KILLED)
        run_killed(cell);
    else if (cell->fault->place == A_IS_STOPPED)
        run_stopped(cell);
    else
        run_here(cell);
}

static size_t add_cells(struct cell *cells, size_t count, size_t max,
                        const struct fault *fault,
                        const struct database *database)
{
    int points = fault->only_before ? 1 : FAULT_POINTS;

    for (int op = 0; op < OPS; op++)
        for (int point = 0; point < points; point++) {
            struct cell *cell = &cells[count];

            assert_true(count < max);
            cell->fault = fault;
            cell->op = (enum op)op;
            cell->point = (enum fault_point)point;
            (void)snprintf(cell->name, sizeof cell->name, "%s/%s/%s/%s",
                           op_names[op], fault_point_names[point], fault->name,
                           database->name);
            count++;
        }
    return count;
}

size_t matrix_cells(struct cell *cells, size_t max,
                    const struct database *database, bool stops_server)
{
    const struct {
        const struct fault *faults;
        size_t count;
    } tables[] = {
        {wire_faults, wire_fault_count},
        {sqlite_faults, sqlite_fault_count},
        {code_faults, code_fault_count},
    };
    size_t count = 0;

    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (size_t i = 0; i < tables[t].count; i++) {
            const struct fault *fault = &tables[t].faults[i];

            if ((fault->databases & database->bit) != 0 &&
                fault->stops_server == stops_server)
                count = add_cells(cells, count, max, fault, database);
        }
    return count;
}
