/*
 * tap.c - see tap.h
 *
 * A tapped connection is a small head, followed by the state of the real
 * driver's connection.  The head has a pointer to that driver, so one set of
 * functions serves all drivers.
 */
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "db/drivers.h"

#define PREFIX "tap+"
#define OPEN_MAX_ 128

struct head {
    const sqlock_driver *real;
    uint64_t session; /* the number of its TAP_OPEN */
    atomic_bool is_broken;
    _Alignas(max_align_t) unsigned char state[];
};

static const sqlock_driver *reals[DATABASES];
static sqlock_driver taps[DATABASES];
static char names[DATABASES][32];
static char schemes[DATABASES][128];

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t epoch_guard = PTHREAD_MUTEX_INITIALIZER;
static char epoch_told[SQLOCK_EPOCH_SIZE]; /* guarded by epoch_guard */
static uint64_t counts[TAP_CALLS];
static tap_before_fn hook_before;
static tap_after_fn hook_after;
static void *hook_context;
static struct head *open_heads[OPEN_MAX_];

const char *tap_url(char out[1024], const char *url)
{
    (void)snprintf(out, 1024, PREFIX "%s", url);
    return out;
}

int tap_lose_commit(void *context, const struct tap_event *event, int rc)
{
    (void)context;
    return event->call == TAP_COMMIT && rc == 0 ? SQLOCK_EUNCERTAIN : rc;
}

void tap_hooks(tap_before_fn before, tap_after_fn after, void *context)
{
    pthread_mutex_lock(&guard);
    hook_before = before;
    hook_after = after;
    hook_context = context;
    pthread_mutex_unlock(&guard);
}

void tap_reset(void)
{
    tap_hooks(NULL, NULL, NULL);
    pthread_mutex_lock(&guard);
    memset(counts, 0, sizeof counts);
    pthread_mutex_unlock(&guard);
}

uint64_t tap_count(enum tap_call call)
{
    uint64_t count;

    pthread_mutex_lock(&guard);
    count = counts[call];
    pthread_mutex_unlock(&guard);
    return count;
}

uint64_t tap_sent(void)
{
    return tap_count(TAP_EXECUTE) + tap_count(TAP_BEGIN) +
           tap_count(TAP_COMMIT) + tap_count(TAP_ROLLBACK);
}

/* Count the call and ask the hook.  Return 0 if the call is to be forwarded, or
 * the result instead. */
static int before(struct head *head, struct tap_event *event, sqlock_error *err)
{
    tap_before_fn hook;
    void *context;
    int rc;

    pthread_mutex_lock(&guard);
    event->number = ++counts[event->call];
    if (event->call == TAP_OPEN)
        head->session = event->number;
    event->session = head->session;
    hook = hook_before;
    context = hook_context;
    pthread_mutex_unlock(&guard);

    if (atomic_load(&head->is_broken))
        return sqlock_error_set(err, SQLOCK_EUNREACHABLE, 0, NULL,
                                "the connection broke before");
    rc = hook == NULL ? 0 : hook(context, event);
    if (rc == SQLOCK_EUNREACHABLE)
        atomic_store(&head->is_broken, true);
    if (rc < 0)
        return sqlock_error_set(err, rc, 0, NULL, "not sent, by the test");
    return 0;
}

static int after(struct head *head, const struct tap_event *event, int rc,
                 sqlock_error *err)
{
    tap_after_fn hook;
    void *context;
    int told;

    pthread_mutex_lock(&guard);
    hook = hook_after;
    context = hook_context;
    pthread_mutex_unlock(&guard);
    if (hook == NULL)
        return rc;
    told = hook(context, event, rc);
    if (told == rc)
        return rc;
    if (told == SQLOCK_EUNCERTAIN || told == SQLOCK_EUNREACHABLE)
        atomic_store(&head->is_broken, true);
    return sqlock_error_set(err, told, 0, NULL,
                            "the answer was lost, by the "
                            "test");
}

/* ------------------------------------------------ the driver's functions -- */

static const char *client_0(void)
{
    return reals[0]->client();
}

static const char *client_1(void)
{
    return reals[1]->client();
}

static const char *client_2(void)
{
    return reals[2]->client();
}

static const sqlock_driver *real_of(const struct lk_url *url)
{
    const char *scheme = url->scheme + strlen(PREFIX);
    size_t i = 0;

    while (!lk_text_is_listed(reals[i]->schemes, scheme, strlen(scheme)))
        i++;
    return reals[i];
}

static int tap_check_url(struct lk_url *url, sqlock_error *err)
{
    return real_of(url)->check_url(url, err);
}

/* Add a connection to the list of open ones, or remove it. */
static void enlist(struct head *head, bool is_open)
{
    size_t i;

    pthread_mutex_lock(&guard);
    for (i = 0; i < OPEN_MAX_; i++)
        if (open_heads[i] == (is_open ? NULL : head)) {
            open_heads[i] = is_open ? head : NULL;
            break;
        }
    pthread_mutex_unlock(&guard);
}

static int tap_open(void *connection, const struct lk_url *url,
                    const sqlock_connect *how, sqlock_error *err)
{
    struct head *head = connection;
    struct tap_event event = {.call = TAP_OPEN};
    int rc;

    pthread_mutex_lock(&guard); /* tap_abort() may run now, at a late open */
    head->real = real_of(url);
    pthread_mutex_unlock(&guard);
    rc = before(head, &event, err);
    if (rc < 0)
        return rc;
    rc = head->real->open(head->state, url, how, err);
    if (rc == 0)
        enlist(head, true);
    return after(head, &event, rc, err);
}

static void tap_close(void *connection)
{
    struct head *head = connection;

    enlist(head, false);
    if (head->real != NULL)
        head->real->close(head->state);
}

static bool tap_is_alive(void *connection)
{
    struct head *head = connection;

    return !atomic_load(&head->is_broken) && head->real->is_alive(head->state);
}

static int tap_execute(void *connection, const sqlock_statement *statement,
                       const sqlock_value *parameters, size_t count,
                       int64_t deadline_ns, sqlock_result *result,
                       sqlock_error *err)
{
    struct head *head = connection;
    struct tap_event event = {.call = TAP_EXECUTE,
                              .text = statement->text,
                              .parameters = parameters,
                              .count = count};
    int rc = before(head, &event, err);
    int told;

    if (rc < 0)
        return rc;
    rc = head->real->execute(head->state, statement, parameters, count,
                             deadline_ns, result, err);
    if (rc == 0)
        event.result = result;
    told = after(head, &event, rc, err);
    if (rc == 0 && told < 0)
        sqlock_result_clear(result);
    return told;
}

typedef int (*transaction_fn)(void *, int64_t, sqlock_error *);

static int pass(struct head *head, enum tap_call call, transaction_fn function,
                int64_t deadline_ns, sqlock_error *err)
{
    struct tap_event event = {.call = call};
    int rc = before(head, &event, err);

    if (rc < 0)
        return rc;
    rc = function(head->state, deadline_ns, err);
    return after(head, &event, rc, err);
}

static int tap_begin(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    struct head *head = connection;

    return pass(head, TAP_BEGIN, head->real->begin, deadline_ns, err);
}

static int tap_commit(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    struct head *head = connection;

    return pass(head, TAP_COMMIT, head->real->commit, deadline_ns, err);
}

static int tap_rollback(void *connection, int64_t deadline_ns,
                        sqlock_error *err)
{
    struct head *head = connection;

    return pass(head, TAP_ROLLBACK, head->real->rollback, deadline_ns, err);
}

static void tap_abort(void *connection)
{
    struct head *head = connection;
    const sqlock_driver *real;

    pthread_mutex_lock(&guard);
    counts[TAP_ABORT]++;
    real = head->real;
    pthread_mutex_unlock(&guard);
    if (real != NULL) /* tap_open() has begun */
        real->abort(head->state);
}

static void *tap_native(void *connection)
{
    struct head *head = connection;

    return head->real->native(head->state);
}

static void tap_describe(void *connection, sqlock_description *description)
{
    struct head *head = connection;

    head->real->describe(head->state, description);
    pthread_mutex_lock(&epoch_guard);
    if (epoch_told[0] != '\0')
        memcpy(description->epoch, epoch_told, sizeof epoch_told);
    pthread_mutex_unlock(&epoch_guard);
}

void tap_epoch(const char *epoch)
{
    pthread_mutex_lock(&epoch_guard);
    (void)snprintf(epoch_told, sizeof epoch_told, "%s", epoch);
    pthread_mutex_unlock(&epoch_guard);
}

/* Copies of the real drivers' sqlock_transactions.  They adopt no connection,
 * because its head would not say which driver it is of. */
static sqlock_transactions transactions[DATABASES];

static int tap_refuse_adopt(void *connection, void *native, sqlock_error *err)
{
    (void)connection;
    (void)native;
    return sqlock_error_set(err, SQLOCK_ENOTSUP, 0, NULL,
                            "the tap adopts no connection");
}

static sqlock_tx_state tap_state(void *connection)
{
    struct head *head = connection;

    if (atomic_load(&head->is_broken))
        return SQLOCK_TX_GONE;
    return head->real->transactions->state(head->state);
}

static int tap_limit(void *connection, int64_t wait_ms, int64_t deadline_ns,
                     sqlock_error *err)
{
    struct head *head = connection;

    return head->real->transactions->limit(head->state, wait_ms, deadline_ns,
                                           err);
}

static int tap_unlimit(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    struct head *head = connection;

    return head->real->transactions->unlimit(head->state, deadline_ns, err);
}

static int tap_commit_if(void *connection, const sqlock_statement *statement,
                         const sqlock_value *values, size_t count, size_t times,
                         int64_t deadline_ns, sqlock_error *err)
{
    struct head *head = connection;
    struct tap_event event = {.call = TAP_COMMIT};
    int rc = before(head, &event, err);

    if (rc < 0)
        return rc;
    rc = head->real->transactions->commit_if(head->state, statement, values,
                                             count, times, deadline_ns, err);
    return after(head, &event, rc, err);
}

/* ----------------------------------------------------------- registering -- */

/* Write the schemes "a|b" as "tap+a|tap+b" to out. */
static void prefix_schemes(char *out, size_t size, const char *real)
{
    size_t used = 0;

    while (*real != '\0' && used < size) {
        size_t length = strcspn(real, "|");

        used += (size_t)snprintf(out + used, size - used, "%s" PREFIX "%.*s",
                                 used > 0 ? "|" : "", (int)length, real);
        real += length;
        if (*real == '|')
            real++;
    }
}

static void install(size_t i, const sqlock_driver *real)
{
    static const char *(*const clients[DATABASES])(void) = {client_0, client_1,
                                                            client_2};

    reals[i] = real;
    transactions[i] = *real->transactions;
    transactions[i].adopt = tap_refuse_adopt;
    transactions[i].state = tap_state;
    transactions[i].limit = tap_limit;
    transactions[i].unlimit = tap_unlimit;
    if (real->transactions->commit_if != NULL)
        transactions[i].commit_if = tap_commit_if;
    (void)snprintf(names[i], sizeof names[i], PREFIX "%s", real->name);
    prefix_schemes(schemes[i], sizeof schemes[i], real->schemes);
    taps[i] = (sqlock_driver){
        .name = names[i],
        .schemes = schemes[i],
        .connection_bytes = sizeof(struct head) + real->connection_bytes,
        .has_one_writer = real->has_one_writer,
        .dialect = real->dialect,
        .client = clients[i],
        .check_url = tap_check_url,
        .open = tap_open,
        .close = tap_close,
        .is_alive = tap_is_alive,
        .execute = tap_execute,
        .begin = tap_begin,
        .commit = tap_commit,
        .rollback = tap_rollback,
        .abort = tap_abort,
        .native = tap_native,
        .describe = tap_describe,
        .transactions = &transactions[i],
        .stock = real->stock,
    };
    assert_true(lk_driver_add(&taps[i]));
}

void tap_install(void)
{
    size_t i;

    if (reals[0] != NULL)
        return;
    for (i = 0; i < DATABASES && lk_drivers[i] != NULL; i++)
        install(i, lk_drivers[i]);
}

size_t tap_leases(const struct tap_event *event)
{
    size_t leases = 0;

    for (size_t i = 0; i < event->count; i++) {
        const sqlock_value *value = &event->parameters[i];

        if (value->type != SQLOCK_TEXT || value->text[0] != '[')
            continue;
        for (const char *at = value->text; *at != '\0'; at++)
            leases += *at == '{';
    }
    return leases;
}

size_t tap_connections(int64_t *ids, size_t max)
{
    sqlock_description description;
    size_t count = 0;
    size_t i;

    pthread_mutex_lock(&guard);
    for (i = 0; i < OPEN_MAX_ && count < max; i++) {
        if (open_heads[i] == NULL)
            continue;
        memset(&description, 0, sizeof description);
        open_heads[i]->real->describe(open_heads[i]->state, &description);
        if (description.connection_id != 0)
            ids[count++] = description.connection_id;
    }
    pthread_mutex_unlock(&guard);
    return count;
}
