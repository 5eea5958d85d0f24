/*
 * quorum.c - obtain and drop a quorum, release it, and what can be asked of it
 * without I/O
 */
#include "quorum/quorum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/callback.h"
#include "base/check.h"
#include "base/thread.h"

/* --- obtain and drop --- */

static int check_count(size_t count, bool all, sqlock_error *err)
{
    size_t least = all ? 2 : 3;

    if (count < least || count > SQLOCK_QUORUM_MAX)
        return lk_error(err, SQLOCK_EINVAL,
                        "%zu registries: a quorum has %zu to %d", count, least,
                        SQLOCK_QUORUM_MAX);
    if (!all && count % 2 == 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "%zu registries: an even number bears no more losses "
                        "than one registry less; use an odd number, or `all`",
                        count);
    return 0;
}

static int check_registries(sqlock_registry *const *registries, size_t count,
                            sqlock_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (registries[i] == NULL)
            return lk_error(err, SQLOCK_EINVAL, "registry %zu must not be NULL",
                            i);
        for (size_t j = 0; j < i; j++)
            if (registries[i] == registries[j])
                return lk_error(err, SQLOCK_EINVAL,
                                "registry %zu is registry %zu: a quorum needs "
                                "another server for each",
                                i, j);
    }
    return 0;
}

int lk_quorum_compare(const sqlock_quorum *quorum, sqlock_error *err)
{
    char epochs[SQLOCK_QUORUM_MAX][SQLOCK_EPOCH_SIZE];

    for (size_t i = 0; i < quorum->count; i++) {
        (void)sqlock_registry_epoch(quorum->members[i].registry, epochs[i]);
        for (size_t j = 0; *epochs[i] != '\0' && j < i; j++)
            if (strcmp(epochs[i], epochs[j]) == 0)
                return lk_error(err, SQLOCK_EINVAL,
                                "registries %zu and %zu lead to one server, "
                                "with the epoch %s: use independent servers "
                                "(on MariaDB, of another server_id each)",
                                j, i, epochs[i]);
    }
    return 0;
}

/* Obtain a handle that is an owner of its own.  Two calls give the same handle
 * where it is not. */
static int obtain(struct lk_member *member, const char *name, sqlock_error *err)
{
    sqlock_lock *other = NULL;
    int rc = sqlock_obtain(&member->lock, member->registry, name, err);

    if (rc == 0)
        rc = sqlock_obtain(&other, member->registry, name, err);
    if (rc < 0)
        return rc;
    rc = other != member->lock
             ? 0
             : lk_error(err, SQLOCK_EINVAL,
                        "registry %zu has another ownership: open the "
                        "registries of a quorum with SQLOCK_OWNED_BY_HANDLE",
                        (size_t)(member - member->quorum->members));
    (void)sqlock_drop(other, NULL);
    return rc;
}

static int open_ended_fd(sqlock_quorum *quorum, sqlock_error *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd == 0) { /* without a standard input; to a request that is none */
        fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
        (void)close(0);
    }
    quorum->ended_fd = fd;
    return fd >= 0 ? 0 : lk_error_limit(err, "cannot open an eventfd", errno);
}

static int fill(sqlock_quorum *quorum, sqlock_registry *const *registries,
                const char *name, sqlock_error *err)
{
    int rc = open_ended_fd(quorum, err);

    for (size_t i = 0; i < quorum->count && rc == 0; i++) {
        struct lk_member *member = &quorum->members[i];

        member->quorum = quorum;
        member->registry = registries[i];
        rc = obtain(member, name, err);
    }
    return rc == 0 ? lk_quorum_compare(quorum, err) : rc;
}

/* A request has ended of one that is late. */
static void note_late(void *owner, int fd)
{
    sqlock_quorum *quorum = owner;
    uint64_t ended;

    pthread_mutex_lock(&quorum->mutex);
    if (lk_quorum_is_held(quorum)) {
        (void)!read(fd, &ended, sizeof ended);
        (void)lk_quorum_left_ms(quorum);
        if (lk_quorum_count(quorum, LK_MEMBER_LATE) > 0)
            (void)lk_handler_watch(&quorum->late, fd, NULL);
    }
    pthread_mutex_unlock(&quorum->mutex);
}

void lk_quorum_await_late(sqlock_quorum *quorum)
{
    if (lk_handler_start(&quorum->late, NULL) == 0)
        (void)lk_handler_watch(&quorum->late, quorum->ended_fd, NULL);
}

static void free_quorum(sqlock_quorum *quorum)
{
    lk_service_stop(&quorum->service);
    for (size_t i = 0; i < quorum->count; i++)
        (void)sqlock_drop(quorum->members[i].lock, NULL);
    if (quorum->ended_fd >= 0)
        (void)close(quorum->ended_fd);
    (void)pthread_mutex_destroy(&quorum->mutex);
    free(quorum);
}

int sqlock_quorum_obtain(sqlock_quorum **out,
                         sqlock_registry *const *registries, size_t count,
                         const char *name, const sqlock_quorum_options *options,
                         sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_quorum_options",
                                          "SQLOCK_QUORUM_INIT",
                                          sizeof(sqlock_quorum_options)};
    sqlock_quorum_options read;
    sqlock_quorum *quorum;
    int rc;

    if (out == NULL)
        return lk_error_null(err, "quorum");
    *out = NULL;
    if (registries == NULL)
        return lk_error_null(err, "registries");
    rc = lk_sized_read(&read, &sized, options, err);
    if (rc == 0)
        rc = check_count(count, read.all, err);
    if (rc == 0)
        rc = check_registries(registries, count, err);
    if (rc < 0)
        return rc;
    quorum = calloc(1, sizeof *quorum);
    if (quorum == NULL)
        return lk_error_nomem(err);
    quorum->pid = getpid();
    quorum->count = count;
    quorum->need = read.all ? count : count / 2 + 1;
    (void)pthread_mutex_init(&quorum->mutex, NULL);
    lk_service_init(&quorum->service);
    lk_handler_init(&quorum->late, &quorum->service, NULL, note_late, quorum);
    rc = fill(quorum, registries, name, err);
    if (rc < 0)
        free_quorum(quorum);
    else
        *out = quorum;
    return rc;
}

/* Return whether this is the process of the quorum.  In a child the mutex may
 * be that of a thread that is not there. */
static bool is_ours(const sqlock_quorum *quorum)
{
    return quorum->pid == getpid();
}

/* Return EINUSE in on_event of a registry, where none of its locks can be
 * changed: so it is refused before any is. */
static int check_events(const sqlock_quorum *quorum, sqlock_error *err)
{
    for (size_t i = 0; i < quorum->count; i++)
        if (lk_callback_of_event(quorum->members[i].registry))
            return lk_error(err, SQLOCK_EINUSE,
                            "on_event of registry %zu runs in this thread: "
                            "use the quorum after it has returned",
                            i);
    return 0;
}

int lk_quorum_begin(sqlock_quorum *quorum, enum lk_quorum_state from,
                    sqlock_error *err)
{
    bool is_telling;
    enum lk_quorum_state state;
    int rc;

    if (quorum == NULL)
        return lk_error_null(err, "quorum");
    if (!is_ours(quorum))
        return lk_error(err, SQLOCK_EFORK,
                        "this quorum belongs to process %ld, which obtained "
                        "it: obtain another one in the child",
                        (long)quorum->pid);
    rc = check_events(quorum, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&quorum->mutex);
    state = quorum->state;
    is_telling = quorum->is_telling &&
                 pthread_equal(quorum->teller, pthread_self()) != 0;
    if (state == from && !is_telling)
        quorum->state = LK_QUORUM_CHANGING;
    pthread_mutex_unlock(&quorum->mutex);
    if (is_telling)
        return lk_error(err, SQLOCK_EINUSE, "on_lost must not call this");
    if (state == LK_QUORUM_CHANGING || state == LK_QUORUM_WON)
        return lk_error(err, SQLOCK_EINUSE,
                        "another call acquires or releases the quorum");
    if (state == from) {
        quorum->cancel_before = lk_cancel_defer();
        return 0;
    }
    return state == LK_QUORUM_FREE
               ? lk_error(err, SQLOCK_EOWNER, "the quorum is not held")
               : lk_error(err, SQLOCK_EINUSE,
                          "the quorum is held: release it first");
}

void lk_quorum_settle(sqlock_quorum *quorum, enum lk_quorum_state state)
{
    int before = quorum->cancel_before;

    pthread_mutex_lock(&quorum->mutex);
    quorum->state = state;
    pthread_mutex_unlock(&quorum->mutex);
    lk_cancel_allow(before);
}

/* Drop the locks, or those that are left: one that is refused, since its
 * on_lost waits for a callback that runs in this thread, is dropped by the next
 * call. */
static int drop_locks(sqlock_quorum *quorum, sqlock_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < quorum->count && rc == 0; i++) {
        struct lk_member *member = &quorum->members[i];

        rc = lk_member_leave(member, err);
        if (rc == 0)
            rc = sqlock_drop(member->lock, err);
        if (rc == 0)
            member->lock = NULL;
    }
    return rc;
}

int sqlock_quorum_drop(sqlock_quorum *quorum, sqlock_error *err)
{
    int before;
    int rc;

    if (quorum == NULL)
        return 0;
    rc = lk_quorum_begin(quorum, LK_QUORUM_FREE, err);
    if (rc < 0)
        return rc;
    before = quorum->cancel_before;
    rc = drop_locks(quorum, err);
    if (rc < 0) {
        lk_quorum_settle(quorum, LK_QUORUM_FREE);
    } else {
        free_quorum(quorum);
        lk_cancel_allow(before);
    }
    return rc;
}

/* --- release --- */

/* Return the result of a release: that of enough members, or of the worst. */
static int result_of(const sqlock_quorum *quorum, const int *results,
                     bool was_lost, sqlock_error *err)
{
    static const int first[] = {SQLOCK_EINUSE, SQLOCK_ELOST, SQLOCK_EEXPIRED};
    const struct lk_member *worst = NULL;
    size_t good = 0;
    int rc;

    for (size_t i = 0; i < quorum->count; i++)
        good += results[i] == 0;
    for (size_t k = 0; k < sizeof first / sizeof *first; k++)
        for (size_t i = 0; i < quorum->count && worst == NULL; i++)
            if (results[i] == first[k])
                worst = &quorum->members[i];
    for (size_t i = 0; i < quorum->count && worst == NULL; i++)
        if (results[i] < 0 && results[i] != SQLOCK_EOWNER)
            worst = &quorum->members[i];
    if (worst == NULL ||
        (good >= quorum->need && worst->state != LK_MEMBER_HELD))
        return 0;
    rc = results[worst - quorum->members];
    if (was_lost && rc != SQLOCK_EINUSE && rc != SQLOCK_ELOST)
        rc = SQLOCK_EEXPIRED; /* whether the servers could be asked or not */
    return sqlock_error_set(err, rc, worst->err.native, worst->err.sqlstate,
                            "%zu of %zu locks are needed, and %zu were held "
                            "until the release; registry %zu: %s",
                            quorum->need, quorum->count, good,
                            (size_t)(worst - quorum->members),
                            worst->err.message);
}

static int release(sqlock_quorum *quorum, int *results, sqlock_error *err)
{
    int all[SQLOCK_QUORUM_MAX];
    bool was_lost = lk_quorum_left_ms(quorum) == 0;
    sqlock_error ignored;

    lk_quorum_give_back(quorum);
    for (size_t i = 0; i < quorum->count; i++) {
        const struct lk_member *member = &quorum->members[i];

        all[i] = member->counts ? member->rc : SQLOCK_EOWNER;
    }
    if (results != NULL)
        memcpy(results, all, quorum->count * sizeof *all);
    return result_of(quorum, all, was_lost, err != NULL ? err : &ignored);
}

int sqlock_quorum_release(sqlock_quorum *quorum, int *results,
                          sqlock_error *err)
{
    int rc = lk_quorum_begin(quorum, LK_QUORUM_HELD, err);

    if (rc < 0)
        return rc;
    rc = release(quorum, results, err);
    lk_quorum_settle(quorum, lk_quorum_count(quorum, LK_MEMBER_HELD) > 0
                                 ? LK_QUORUM_HELD
                                 : LK_QUORUM_FREE);
    return rc;
}

/* --- what can be asked --- */

int64_t sqlock_quorum_remaining_ms(sqlock_quorum *quorum)
{
    int64_t left_ms = 0;

    if (quorum == NULL || !is_ours(quorum))
        return 0;
    pthread_mutex_lock(&quorum->mutex);
    if (lk_quorum_is_held(quorum))
        left_ms = lk_quorum_left_ms(quorum);
    pthread_mutex_unlock(&quorum->mutex);
    return left_ms;
}

sqlock_lock *sqlock_quorum_lock(sqlock_quorum *quorum, size_t place)
{
    return quorum != NULL && place < quorum->count ? quorum->members[place].lock
                                                   : NULL;
}
