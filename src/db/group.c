/*
 * group.c - group commit.  Connections that fight for SQLite's one write lock
 * starve each other, and each commit costs as much as one for all; so the
 * statements of a process queue up here, and a leader runs those that have
 * gathered in one transaction.  It goes on for the others only for a moment and
 * only while nobody outside has the file, then another of them leads: waking a
 * thread for each group would cost as much as the group.
 */
#include "db/group.h"

#include <errno.h>

#include "base/clock.h"
#include "base/error.h"

/* Bounds the time a group holds the file's write lock against other
 * processes. */
#define GROUP_MAX 64

/* How long a leader whose own statement is done goes on. */
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

/* With the mutex held: the group, which has not been begun, is first again. */
static void put_back(struct lk_group *group, struct lk_request *head)
{
    struct lk_request *tail = head;

    while (tail->next != NULL)
        tail = tail->next;
    tail->next = group->first;
    group->first = head;
    if (group->last == NULL)
        group->last = tail;
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
                   struct lk_request *request, int64_t deadline_ns)
{
    return pool->driver->execute(connection->state, request->statement,
                                 request->values, request->count, deadline_ns,
                                 request->result, request->err);
}

/* An error that ends the whole transaction, not only its statement. */
static bool ends_transaction(int rc)
{
    return rc < 0 && rc != SQLOCK_EBUSY && rc != SQLOCK_EDATABASE &&
           rc != SQLOCK_ESCHEMA && rc != SQLOCK_EINVAL;
}

/* Several statements in one transaction; a statement that fails takes back only
 * itself.  All have the time of the last of them: one that is late by now would
 * be refused, and take the others with it, while its caller waits for the end
 * of the group in any case.  *has_begun: not merely waited for the file. */
static int run_together(const struct lk_pool *pool,
                        struct lk_connection *connection,
                        struct lk_request *head, int64_t begin_by_ns,
                        int64_t deadline_ns, bool *has_begun, sqlock_error *err)
{
    int rc;

    rc = pool->driver->begin(connection->state,
                             lk_sooner(begin_by_ns, deadline_ns), err);
    *has_begun = rc == 0;
    for (struct lk_request *at = head; rc == 0 && at != NULL; at = at->next) {
        at->rc = execute(pool, connection, at, deadline_ns);
        if (ends_transaction(at->rc))
            rc = lk_error(err, at->rc, "%s", sqlock_strerror(at->rc));
    }
    if (rc == 0)
        rc = pool->driver->commit(connection->state, deadline_ns, err);
    if (rc < 0)
        (void)pool->driver->rollback(connection->state, deadline_ns, NULL);
    return rc;
}

static int64_t note_sending(struct lk_request *head)
{
    int64_t sent_boot_ns = lk_boottime_ns();
    int64_t deadline_ns = head->deadline_ns;

    for (struct lk_request *at = head; at != NULL; at = at->next) {
        at->sent_boot_ns = sent_boot_ns;
        if (at->deadline_ns > deadline_ns)
            deadline_ns = at->deadline_ns;
    }
    return deadline_ns;
}

/* False: the file was not to be had by then, and nothing has been done. */
static bool run_group(struct lk_pool *pool, struct lk_request *head,
                      int64_t begin_by_ns)
{
    int64_t deadline_ns = note_sending(head);
    bool is_patient = begin_by_ns == LK_NEVER;
    struct lk_connection *connection;
    bool has_begun = true;
    sqlock_error why = {0};
    int rc;

    rc = lk_pool_take(pool, lk_sooner(begin_by_ns, deadline_ns), &connection,
                      &why);
    if (rc < 0) {
        if (is_patient)
            fail_all(head, rc, &why);
        return is_patient;
    }
    if (is_patient && head->next == NULL) {
        head->rc = execute(pool, connection, head, head->deadline_ns);
        rc = head->rc;
    } else {
        rc = run_together(pool, connection, head, begin_by_ns, deadline_ns,
                          &has_begun, &why);
        if (rc < 0 && (is_patient || has_begun))
            fail_all(head, rc, &why);
    }
    if (rc < 0 && !pool->driver->is_alive(connection->state))
        lk_pool_discard(pool, connection);
    else
        lk_pool_give(pool, connection);
    return is_patient || has_begun;
}

static void call(struct lk_request *request)
{
    (void)sem_post(&request->called); /* it may be gone at once */
}

/* Those who were served may go; the leader knows. */
static void dismiss(struct lk_request *head, const struct lk_request *leader)
{
    while (head != NULL) {
        struct lk_request *next = head->next;

        if (head != leader)
            call(head);
        head = next;
    }
}

/* With the mutex held: whoever is first runs the next group, if there is one. */
static struct lk_request *pass_on(struct lk_group *group)
{
    struct lk_request *next = group->first;

    group->is_led = next != NULL;
    if (next != NULL)
        next->is_leader = true;
    return next;
}

/* The leader's own statement is in the first group, for which it waits as long
 * as it takes. */
static void lead(struct lk_group *group, struct lk_pool *pool,
                 const struct lk_request *leader)
{
    int64_t begin_by_ns = LK_NEVER;
    struct lk_request *next;
    bool goes_on = true;

    pthread_mutex_lock(&group->mutex);
    while (goes_on) {
        struct lk_request *head = cut(group);

        pthread_mutex_unlock(&group->mutex);
        goes_on = run_group(pool, head, begin_by_ns);
        if (goes_on)
            dismiss(head, leader);
        pthread_mutex_lock(&group->mutex);
        if (!goes_on)
            put_back(group, head);
        if (begin_by_ns == LK_NEVER)
            begin_by_ns = sqlock_monotonic_ns() + LEAD_NS;
        goes_on = goes_on && group->first != NULL &&
                  sqlock_monotonic_ns() < begin_by_ns;
    }
    next = pass_on(group);
    pthread_mutex_unlock(&group->mutex);
    if (next != NULL)
        call(next);
}

/* With the mutex held: true when there is no leader yet. */
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

int lk_group_run(struct lk_group *group, struct lk_pool *pool,
                 struct lk_request *request)
{
    bool leads;

    request->next = NULL;
    request->rc = SQLOCK_ECANCELED;
    (void)sem_init(&request->called, 0, 0);

    request->is_leader = false;
    pthread_mutex_lock(&group->mutex);
    leads = enqueue(group, request);
    pthread_mutex_unlock(&group->mutex);
    /* Whoever calls it touches it for the last time then; until it is called
     * it must not go, nor look whether it leads. */
    if (!leads) {
        while (sem_wait(&request->called) < 0 && errno == EINTR)
            ;
        leads = request->is_leader;
    }
    if (leads)
        lead(group, pool, request);
    (void)sem_destroy(&request->called);
    return request->rc;
}
