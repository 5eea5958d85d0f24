/*
 * group.c - group commit.  Connections that fight for SQLite's one write lock
 * starve each other, and each commit costs as much as one for all; so the
 * statements of a process queue up here, and a leader runs those that have
 * gathered in one transaction.  Leadership passes on after each group, so that
 * nobody works for the others longer than once.
 */
#include "db/group.h"

#include "base/clock.h"
#include "base/error.h"

/* Bounds the time a group holds the file's write lock against other
 * processes. */
#define GROUP_MAX 64

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

/* With the mutex held: cut the next group off the queue. */
static struct lk_request *cut(struct lk_group *group)
{
    struct lk_request *head = group->first;
    struct lk_request *tail = head;

    for (size_t n = 1; n < GROUP_MAX && tail->next != NULL; n++)
        tail = tail->next;
    group->first = tail->next;
    if (group->first == NULL)
        group->last = NULL;
    tail->next = NULL;
    return head;
}

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
                   struct lk_request *request)
{
    return pool->driver->execute(
        connection->state, request->statement, request->values, request->count,
        request->deadline_ns, request->result, request->err);
}

/* An error that ends the whole transaction, not only its statement. */
static bool ends_transaction(int rc)
{
    return rc < 0 && rc != SQLOCK_EBUSY && rc != SQLOCK_EDATABASE &&
           rc != SQLOCK_ESCHEMA && rc != SQLOCK_EINVAL;
}

/* Several statements in one transaction; a statement that fails takes back only
 * itself. */
static int run_together(const struct lk_pool *pool,
                        struct lk_connection *connection,
                        struct lk_request *head, int64_t deadline_ns,
                        sqlock_error *err)
{
    int rc;

    rc = pool->driver->begin(connection->state, deadline_ns, err);
    for (struct lk_request *at = head; rc == 0 && at != NULL; at = at->next) {
        at->rc = execute(pool, connection, at);
        if (ends_transaction(at->rc))
            rc = lk_error(err, at->rc, "%s", sqlock_strerror(at->rc));
    }
    if (rc == 0)
        rc = pool->driver->commit(connection->state, deadline_ns, err);
    if (rc < 0)
        (void)pool->driver->rollback(connection->state, deadline_ns, NULL);
    return rc;
}

static void run_group(struct lk_pool *pool, struct lk_request *head)
{
    int64_t sent_boot_ns = lk_boottime_ns();
    int64_t deadline_ns = head->deadline_ns;
    struct lk_connection *connection;
    sqlock_error why = {0};
    int rc;

    for (struct lk_request *at = head; at != NULL; at = at->next) {
        at->sent_boot_ns = sent_boot_ns;
        if (at->deadline_ns > deadline_ns)
            deadline_ns = at->deadline_ns;
    }
    rc = lk_pool_take(pool, deadline_ns, &connection, &why);
    if (rc < 0) {
        fail_all(head, rc, &why);
        return;
    }
    if (head->next == NULL) {
        head->rc = execute(pool, connection, head);
        rc = head->rc;
    } else {
        rc = run_together(pool, connection, head, deadline_ns, &why);
        if (rc < 0)
            fail_all(head, rc, &why);
    }
    if (rc < 0 && !pool->driver->is_alive(connection->state))
        lk_pool_discard(pool, connection);
    else
        lk_pool_give(pool, connection);
}

/* With the mutex held: those who were served may go. */
static void dismiss(struct lk_request *head)
{
    while (head != NULL) {
        struct lk_request *next = head->next; /* gone once it is done */

        head->is_done = true;
        pthread_cond_signal(&head->changed);
        head = next;
    }
}

/* With the mutex held, which is let go meanwhile. */
static void lead(struct lk_group *group, struct lk_pool *pool)
{
    struct lk_request *head = cut(group);

    pthread_mutex_unlock(&group->mutex);
    run_group(pool, head);
    pthread_mutex_lock(&group->mutex);
    dismiss(head);
    group->is_led = group->first != NULL;
    if (group->is_led) {
        group->first->is_leader = true;
        pthread_cond_signal(&group->first->changed);
    }
}

int lk_group_run(struct lk_group *group, struct lk_pool *pool,
                 struct lk_request *request)
{
    request->next = NULL;
    request->is_done = false;
    request->is_leader = false;
    request->rc = SQLOCK_ECANCELED;
    (void)pthread_cond_init(&request->changed, NULL);

    pthread_mutex_lock(&group->mutex);
    if (group->last != NULL)
        group->last->next = request;
    else
        group->first = request;
    group->last = request;
    if (!group->is_led) {
        group->is_led = true;
        request->is_leader = true;
    }
    while (!request->is_done) {
        if (request->is_leader)
            lead(group, pool);
        else
            pthread_cond_wait(&request->changed, &group->mutex);
    }
    pthread_mutex_unlock(&group->mutex);
    (void)pthread_cond_destroy(&request->changed);
    return request->rc;
}
