/*
 * group.c - group commit
 *
 * Connections that compete for SQLite's single write lock starve each other,
 * and a commit of one statement costs as much as a commit of many.  So the
 * statements of a process queue up here, and one thread, the leader, runs those
 * that have gathered in one transaction, a group.  A leader whose own statement
 * is done continues briefly, and only while no other process uses the file;
 * then another thread becomes the leader.  Waking a new leader for each group
 * would cost as much as the group.
 */
#include "db/db.h"

#include "base/clock.h"
#include "base/error.h"

/* Statements of a group at most: they bound the time for which a group holds
 * the file's write lock against other processes. */
#define GROUP_MAX 64

/* How long a leader continues after its own statement. */
#define LEAD_NS LK_NS_PER_MS

static struct lk_request *first_of(const struct lk_crew_member *head)
{
    return (struct lk_request *)head->next;
}

/* Give each request of the list the result rc, and no rows. */
static void fail_all(const struct lk_crew_member *head, int rc,
                     const sqlock_error *why)
{
    for (struct lk_request *at = first_of(head); at != NULL;
         at = first_of(&at->member)) {
        at->rc = rc;
        sqlock_result_clear(at->result);
        if (at->err != NULL)
            *at->err = *why;
    }
}

static int execute(const struct lk_pool *pool, struct lk_connection *connection,
                   struct lk_request *request, int64_t deadline_ns)
{
    return pool->db->driver->execute(
        connection->state, request->statement, request->values, request->count,
        deadline_ns, request->result, request->err);
}

/* Return whether an error of a statement ends the whole transaction. */
static bool ends_transaction(int rc)
{
    return rc < 0 && rc != SQLOCK_EBUSY && rc != SQLOCK_EDATABASE &&
           rc != SQLOCK_ESCHEMA && rc != SQLOCK_EINVAL;
}

/* Note when the requests of the list are sent, and return their latest
 * deadline. */
static int64_t note_sent(const struct lk_crew_member *head)
{
    int64_t sent_boot_ns = lk_boottime_ns();
    int64_t latest_ns = 0;

    for (struct lk_request *at = first_of(head); at != NULL;
         at = first_of(&at->member)) {
        at->sent_boot_ns = sent_boot_ns;
        latest_ns = lk_later(latest_ns, at->deadline_ns);
    }
    return latest_ns;
}

/* A group that is to be run. */
struct turn {
    struct lk_crew_member head; /* of the list of its requests */
    int64_t begin_by_ns;
    bool is_alone;  /* one request, without a transaction */
    bool has_begun; /* the transaction, and no request leaves any more */
};

/* Run in one transaction what has gathered when that begins; a statement that
 * fails undoes only itself.  All have the latest of their deadlines: past its
 * own, a statement would be refused and would end the transaction, while its
 * thread waits for the group anyway.  A failed begin is rolled back, too, for
 * the next user of the connection. */
static int run_together(struct lk_crew *crew, const struct lk_pool *pool,
                        struct lk_connection *connection, struct turn *turn,
                        sqlock_error *err)
{
    const struct sqlock_driver *driver = pool->db->driver;
    struct lk_crew_member *own = turn->head.next;
    int64_t deadline_ns = lk_after_ns(turn->begin_by_ns, connection->late_ns);
    int rc = driver->begin(connection->state, deadline_ns, err);

    turn->has_begun = rc == 0;
    if (rc == 0) {
        (void)lk_crew_gather(crew, own != NULL ? own : &turn->head,
                             GROUP_MAX - (own != NULL), NULL);
        deadline_ns = lk_after_ns(note_sent(&turn->head), connection->late_ns);
    }
    for (struct lk_request *at = first_of(&turn->head); rc == 0 && at != NULL;
         at = first_of(&at->member)) {
        at->rc = execute(pool, connection, at, deadline_ns);
        if (ends_transaction(at->rc))
            rc = at->err != NULL
                     ? lk_error_pass(err, at->err, at->rc)
                     : lk_error(err, at->rc, "%s", sqlock_strerror(at->rc));
    }
    if (rc == 0)
        rc = driver->commit(connection->state, deadline_ns, err);
    if (rc < 0) {
        (void)driver->rollback(connection->state, deadline_ns, NULL);
        if (turn->has_begun)
            fail_all(&turn->head, rc, err);
    }
    return rc;
}

/* Take the connection for writes.  As long as there is none, take an idle one
 * for reads rather than open it: a brief command needs no two. */
static int take(struct lk_pool *pool, const struct lk_wish *wish,
                struct lk_connection **out, sqlock_error *err)
{
    const struct lk_wish idle = {.is_open = true};

    if (lk_pool_take_as(pool, &idle, out, NULL) == 0 ||
        lk_pool_take_as(&pool->db->pool, &idle, out, NULL) == 0)
        return 0;
    return lk_db_take(pool->db, pool, wish, out, err);
}

static int run_on(struct lk_crew *crew, const struct lk_pool *pool,
                  struct lk_connection *connection, struct turn *turn,
                  sqlock_error *why)
{
    struct lk_request *own = first_of(&turn->head);
    int rc;

    if (turn->is_alone) {
        rc = own->rc =
            execute(pool, connection, own,
                    lk_after_ns(note_sent(&turn->head), connection->late_ns));
    } else {
        rc = run_together(crew, pool, connection, turn, why);
    }
    if (rc == 0)
        atomic_store(&connection->has_written, true);
    return rc;
}

/* Run a group: the leader's own request (NULL: it is done), and those that wait
 * when the transaction has begun.  Return false if it did not begin by then:
 * that is the result of the leader's own. */
static bool run_group(struct lk_crew *crew, struct lk_pool *pool,
                      struct lk_request *own, int64_t begin_by_ns)
{
    struct turn turn = {
        .head = {.next = own != NULL ? &own->member : NULL},
        .begin_by_ns = begin_by_ns,
        .is_alone = own != NULL && !lk_crew_is_waited_for(crew),
    };
    const struct lk_wish wish = {
        .wait_until_ns = begin_by_ns,
        .latest_ns = lk_after_ms(begin_by_ns, pool->options.connect_timeout_ms),
    };
    struct lk_connection *connection;
    sqlock_error why = {0};
    int rc = take(pool, &wish, &connection, &why);
    bool has_run = rc == 0 && turn.is_alone;

    if (rc == 0) {
        rc = run_on(crew, pool, connection, &turn, &why);
        if (!turn.has_begun && lk_db_replace(pool->db, &wish, rc, &connection))
            rc = run_on(crew, pool, connection, &turn, &why);
        if (rc < 0)
            lk_pool_return(connection->pool, connection);
        else
            lk_pool_give(connection->pool, connection);
    }
    has_run = has_run || turn.has_begun;
    if (!has_run)
        fail_all(&turn.head, rc, &why);
    lk_crew_dismiss(own != NULL ? &own->member : &turn.head);
    return has_run;
}

/* Run a group with the leader's own request, by the deadline of that; then
 * further ones, that begin within LEAD_NS, as long as somebody waits. */
static void lead(struct lk_crew *crew, struct lk_pool *pool,
                 struct lk_request *own)
{
    bool goes_on = run_group(crew, pool, own, own->deadline_ns);
    int64_t until_ns = 0;

    while (goes_on && lk_crew_is_waited_for(crew)) {
        int64_t now_ns = sqlock_monotonic_ns();

        if (until_ns == 0)
            until_ns = now_ns + LEAD_NS;
        goes_on = now_ns < until_ns && run_group(crew, pool, NULL, until_ns);
    }
}

int lk_group_run(struct lk_crew *crew, struct lk_pool *pool,
                 struct lk_request *request)
{
    bool has_waited;

    switch (lk_crew_join(crew, &request->member, request->deadline_ns, LK_NEVER,
                         &has_waited)) {
    case LK_CREW_LEADS:
        lead(crew, pool, request);
        lk_crew_pass_on(crew);
        break;
    case LK_CREW_LEFT:
        request->rc = lk_error(request->err, SQLOCK_ECANCELED,
                               "the statement timed out before it was its turn "
                               "to be sent");
        break;
    default:
        break;
    }
    lk_crew_leave(crew, &request->member);
    return request->rc;
}
