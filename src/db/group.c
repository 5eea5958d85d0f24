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

#include <errno.h>

#include "base/clock.h"
#include "base/error.h"

/* Statements of a group at most: they bound the time for which a group holds
 * the file's write lock against other processes. */
#define GROUP_MAX 64

/* How long a leader continues after its own statement. */
#define LEAD_NS LK_NS_PER_MS

void lk_group_init(struct lk_group *group)
{
    (void)pthread_mutex_init(&group->mutex, NULL);
    group->first = NULL;
    group->last = NULL;
    group->is_led = false;
}

void lk_group_clear(struct lk_group *group)
{
    (void)pthread_mutex_destroy(&group->mutex);
}

/* Choose the waiting requests, GROUP_MAX at most, as the next group.  Return
 * their number, and in *deadline_ns the latest of their deadlines.  A request
 * may still leave until the transaction begins. */
static size_t gather(struct lk_group *group, int64_t *deadline_ns)
{
    int64_t sent_boot_ns = lk_boottime_ns();
    size_t count = 0;

    *deadline_ns = 0;
    pthread_mutex_lock(&group->mutex);
    for (struct lk_request *at = group->first; at != NULL && count < GROUP_MAX;
         at = at->next) {
        at->is_gathered = true;
        at->sent_boot_ns = sent_boot_ns;
        if (at->deadline_ns > *deadline_ns)
            *deadline_ns = at->deadline_ns;
        count++;
    }
    pthread_mutex_unlock(&group->mutex);
    return count;
}

/* Remove the group's requests that have not left from the queue.  Return the
 * first, or NULL if there are none. */
static struct lk_request *cut(struct lk_group *group)
{
    struct lk_request *head;
    struct lk_request **end = &head;

    pthread_mutex_lock(&group->mutex);
    head = group->first;
    while (*end != NULL && (*end)->is_gathered)
        end = &(*end)->next;
    group->first = *end;
    if (group->first == NULL)
        group->last = NULL;
    *end = NULL;
    pthread_mutex_unlock(&group->mutex);
    return head;
}

/* Leave the queue.  Return false if the request's statement is under way, or
 * the request is to lead: then `called` has been or will be posted. */
static bool leave(struct lk_group *group, const struct lk_request *request)
{
    struct lk_request *before = NULL;
    struct lk_request *at;

    pthread_mutex_lock(&group->mutex);
    at = request->is_leader ? NULL : group->first;
    while (at != NULL && at != request) {
        before = at;
        at = at->next;
    }
    if (at != NULL && before != NULL)
        before->next = at->next;
    else if (at != NULL)
        group->first = at->next;
    if (at != NULL && group->last == at)
        group->last = before;
    pthread_mutex_unlock(&group->mutex);
    return at != NULL;
}

/* Give each request of the list the result rc, and no rows. */
static void fail_all(struct lk_request *head, int rc, const sqlock_error *why)
{
    for (struct lk_request *at = head; at != NULL; at = at->next) {
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

/* Run the group's statements in one transaction; one that fails undoes only
 * itself.  All have deadline_ns, the latest of their deadlines: past its own, a
 * statement would be refused and would end the transaction, while its thread
 * waits for the group anyway.  *head becomes the first request once the
 * transaction has begun.  A failed begin is rolled back, too, for the next user
 * of the connection. */
static int run_together(struct lk_group *group, const struct lk_pool *pool,
                        struct lk_connection *connection, int64_t begin_by_ns,
                        int64_t deadline_ns, struct lk_request **head,
                        sqlock_error *err)
{
    int rc = pool->db->driver->begin(connection->state, begin_by_ns, err);

    if (rc == 0)
        *head = cut(group);
    for (struct lk_request *at = *head; rc == 0 && at != NULL; at = at->next) {
        at->rc = execute(pool, connection, at, deadline_ns);
        if (ends_transaction(at->rc))
            rc = lk_error(err, at->rc, "%s", sqlock_strerror(at->rc));
    }
    if (rc == 0)
        rc = pool->db->driver->commit(connection->state, deadline_ns, err);
    if (rc < 0) {
        (void)pool->db->driver->rollback(connection->state, deadline_ns, NULL);
        fail_all(*head, rc, err);
    }
    return rc;
}

static void call(struct lk_request *request)
{
    /* From now on the request may no longer exist. */
    (void)sem_post(&request->called);
}

/* Wake the threads of the requests, which are done, except the leader's. */
static void dismiss(struct lk_request *head, const struct lk_request *leader)
{
    while (head != NULL) {
        struct lk_request *next = head->next;

        if (head != leader) {
            atomic_store(&head->is_done, true);
            call(head);
        }
        head = next;
    }
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

/* A group that is to be run. */
struct turn {
    bool is_alone;       /* of one request, without a transaction */
    int64_t begin_by_ns; /* for the transaction */
    int64_t deadline_ns; /* the latest of its requests */
};

static int run_on(struct lk_group *group, const struct lk_pool *pool,
                  struct lk_connection *connection, const struct turn *turn,
                  struct lk_request **head, sqlock_error *why)
{
    int64_t deadline_ns = lk_after_ns(turn->deadline_ns, connection->late_ns);
    int rc;

    if (turn->is_alone) {
        if (*head == NULL)
            *head = cut(group);
        rc = execute(pool, connection, *head, deadline_ns);
        (*head)->rc = rc;
    } else {
        rc = run_together(group, pool, connection,
                          lk_after_ns(turn->begin_by_ns, connection->late_ns),
                          deadline_ns, head, why);
    }
    if (rc == 0)
        atomic_store(&connection->has_written, true);
    return rc;
}

/* Take a connection and run the group on it; *head becomes the first request
 * that has a result. */
static int run_turn(struct lk_group *group, struct lk_pool *pool,
                    const struct turn *turn, struct lk_request **head,
                    sqlock_error *why)
{
    const struct lk_wish wish = {
        .wait_until_ns = turn->begin_by_ns,
        .latest_ns =
            lk_after_ms(turn->begin_by_ns, pool->options.connect_timeout_ms),
    };
    struct lk_connection *connection;
    int rc = take(pool, &wish, &connection, why);

    if (rc < 0)
        return rc;
    rc = run_on(group, pool, connection, turn, head, why);
    if ((turn->is_alone || *head == NULL) &&
        lk_db_replace(pool->db, &wish, rc, &connection))
        rc = run_on(group, pool, connection, turn, head, why);
    if (rc < 0)
        lk_pool_return(connection->pool, connection);
    else
        lk_pool_give(connection->pool, connection);
    return rc;
}

/* Run the next group.  If its transaction cannot begin by begin_by_ns, nothing
 * is done.  With LK_NEVER it has until the latest deadline of its requests, and
 * a failure to begin becomes their result.  Return whether any request has a
 * result now. */
static bool run_group(struct lk_group *group, struct lk_pool *pool,
                      const struct lk_request *leader, int64_t begin_by_ns)
{
    bool is_patient = begin_by_ns == LK_NEVER;
    struct turn turn = {false, begin_by_ns, 0};
    size_t count = gather(group, &turn.deadline_ns);
    struct lk_request *head = NULL;
    sqlock_error why = {0};
    int rc;

    if (count == 0)
        return false;
    turn.is_alone = is_patient && count == 1;
    turn.begin_by_ns = lk_sooner(begin_by_ns, turn.deadline_ns);
    rc = run_turn(group, pool, &turn, &head, &why);
    if (is_patient && head == NULL) {
        head = cut(group);
        fail_all(head, rc, &why);
    }
    dismiss(head, leader);
    return head != NULL;
}

/* Make the first waiting request the next leader, and return it, or NULL if
 * there is none.  The caller holds the mutex. */
static struct lk_request *pass_on(struct lk_group *group)
{
    struct lk_request *next = group->first;

    group->is_led = next != NULL;
    if (next != NULL)
        next->is_leader = true;
    return next;
}

/* Run the first group, which has the leader's own request, however long that
 * takes; then begin further groups for LEAD_NS; then make a waiting request the
 * leader. */
static void lead(struct lk_group *group, struct lk_pool *pool,
                 const struct lk_request *leader)
{
    int64_t begin_by_ns = LK_NEVER;
    struct lk_request *next;

    while (run_group(group, pool, leader, begin_by_ns)) {
        if (begin_by_ns == LK_NEVER)
            begin_by_ns = sqlock_monotonic_ns() + LEAD_NS;
        else if (sqlock_monotonic_ns() >= begin_by_ns)
            break;
    }
    pthread_mutex_lock(&group->mutex);
    next = pass_on(group);
    pthread_mutex_unlock(&group->mutex);
    if (next != NULL)
        call(next);
}

/* Enter the queue.  Return true if there was no leader, so that the request is
 * to lead.  The caller holds the mutex. */
static bool enqueue(struct lk_group *group, struct lk_request *request)
{
    bool is_first = !group->is_led;

    if (group->last != NULL)
        group->last->next = request;
    else
        group->first = request;
    group->last = request;
    group->is_led = true;
    return is_first;
}

/* Wait until the request is done or is to lead.  The leader uses the request
 * until it posts `called`, so the request must exist until then.  Return 0, or
 * SQLOCK_ECANCELED if the request has left at its deadline, without being
 * carried out. */
static int await_call(struct lk_group *group, struct lk_request *request)
{
    struct timespec at = lk_timespec(request->deadline_ns);

    while (sem_clockwait(&request->called, CLOCK_MONOTONIC, &at) < 0) {
        if (errno == EINTR)
            continue;
        if (leave(group, request))
            return lk_error(request->err, SQLOCK_ECANCELED,
                            "the statement timed out before it was its turn "
                            "to be sent");
        at = lk_timespec(LK_NEVER);
    }
    return 0;
}

int lk_group_run(struct lk_group *group, struct lk_pool *pool,
                 struct lk_request *request)
{
    bool is_first;
    int rc = 0;

    request->next = NULL;
    request->is_gathered = false;
    request->is_leader = false;
    atomic_init(&request->is_done, false);
    (void)sem_init(&request->called, 0, 0);

    pthread_mutex_lock(&group->mutex);
    is_first = enqueue(group, request);
    pthread_mutex_unlock(&group->mutex);
    if (!is_first)
        rc = await_call(group, request);
    if (rc == 0 && !atomic_load(&request->is_done))
        lead(group, pool, request);
    if (rc == 0)
        rc = request->rc;
    (void)sem_destroy(&request->called);
    return rc;
}
