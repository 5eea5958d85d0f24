/*
 * queue.c - the wait queue of SQLite, for processes of one machine: a queue
 * lock is the kernel's lock on one byte of a file beside the database
 *
 * The kernel's lock belongs to an open file description (OFD) and ends with it,
 * however the process dies.  The kernel can wait for a byte only without a time
 * limit, so a helper thread waits, and is cancelled when the wait is to end; a
 * byte that the thread got too late is released.
 *
 * A process that releases a byte would be the quickest to take it again.  So
 * the byte behind the queue lock's belongs to the next waiter: a waiter first
 * takes the second byte, then waits for the queue lock, and then releases the
 * second byte.  No other waiter can overtake the next one, and a claim sees by
 * the second byte that somebody waits.  A process that has stopped keeps the
 * queue lock even when its lease is broken, so the next waiter reads the row
 * every second, and keeps the second byte meanwhile.
 *
 * The file is not the database itself, because closing a descriptor of the
 * database would drop SQLite's locks (F70).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "drivers/sqlite/connection.h"

/* Create the queue file with the user, group and mode of the database, so that
 * all users of the database can open it, whatever the umask of the first
 * process.  Return a descriptor, or -1. */
static int make_file(const char *path, const struct stat *database)
{
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    database->st_mode & 0666);
    uid_t owner = geteuid() == 0 ? database->st_uid : (uid_t)-1;

    if (file < 0)
        return file;
    /* If the database's group is not one of ours, the file keeps the group that
     * it was created with. */
    (void)!fchown(file, owner, database->st_gid);
    (void)fchmod(file, database->st_mode & 0666);
    return file;
}

static int open_file(const char *path, const struct stat *database)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (file < 0 && errno == ENOENT)
        file = make_file(path, database);
    if (file < 0 && errno == EEXIST) /* another process was faster */
        file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return file;
}

/* Return whether the open queue file is still the one at that path: processes
 * that have different ones do not wait for each other. */
static bool is_current(const struct lk_sqlite *c, const char *path)
{
    struct stat open_one, named;

    return fstat(c->queue_file, &open_one) == 0 && lstat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Have the queue file open: the one that others find beside the database. */
static bool has_file(struct lk_sqlite *c)
{
    const char *database;
    struct stat status;
    char *path = NULL;

    c->queue_file_errno = ENOENT;
    database = c->db != NULL ? sqlite3_db_filename(c->db, "main") : NULL;
    if (database == NULL ||
        asprintf(&path, "%s" LK_SQLITE_QUEUE_SUFFIX, database) < 0)
        return false;
    if (c->has_queue_file && !is_current(c, path))
        lk_sqlite_queue_close(c);
    if (!c->has_queue_file && stat(database, &status) == 0) {
        c->queue_file = open_file(path, &status);
        c->queue_file_errno = errno;
        c->has_queue_file = c->queue_file >= 0;
    }
    free(path);
    return c->has_queue_file;
}

static int report_file(struct lk_sqlite *c, sqlock_error *err)
{
    const char *database =
        c->db != NULL ? sqlite3_db_filename(c->db, "main") : NULL;
    char text[128] = "";

    return sqlock_error_set(err, SQLOCK_EACCESS, c->queue_file_errno, NULL,
                            "the file %s" LK_SQLITE_QUEUE_SUFFIX
                            ", at which processes wait for each other, cannot "
                            "be opened: %s",
                            database != NULL ? database : "beside the database",
                            strerror_r(c->queue_file_errno, text, sizeof text));
}

void lk_sqlite_queue_close(struct lk_sqlite *c)
{
    if (c->has_queue_file)
        (void)close(c->queue_file);
    c->has_queue_file = false;
    c->next_byte = 0;
    free(c->taken);
    c->taken = NULL;
    c->taken_count = c->taken_size = 0;
}

static struct flock byte_of(int64_t queue, short type)
{
    struct flock lock;

    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)queue;
    lock.l_len = 1;
    return lock;
}

/* The next waiter's byte; odd, since numbers of queues are even. */
#define NEXT(queue) ((queue) + 1)
/* How long the next waiter waits before it reads the row again. */
#define NEXT_NS INT64_C(1000000000)

static bool try_byte(struct lk_sqlite *c, int64_t byte)
{
    struct flock lock = byte_of(byte, F_WRLCK);

    return fcntl(c->queue_file, F_OFD_SETLK, &lock) == 0;
}

static void let_go(struct lk_sqlite *c, int64_t byte)
{
    struct flock lock = byte_of(byte, F_UNLCK);

    (void)fcntl(c->queue_file, F_OFD_SETLK, &lock);
}

/* Note a queue lock until its statement is committed.  Without a note, for lack
 * of memory, the lock is kept if the statement is undone, which delays waiters.
 */
static void note_taken(struct lk_sqlite *c, int64_t queue)
{
    if (c->taken_count == c->taken_size) {
        size_t size = 2 * c->taken_size + 8;
        int64_t *taken = realloc(c->taken, size * sizeof *taken);

        if (taken == NULL)
            return;
        c->taken = taken;
        c->taken_size = size;
    }
    c->taken[c->taken_count++] = queue;
}

bool lk_sqlite_queue_take(struct lk_sqlite *c, int64_t queue)
{
    struct flock next = byte_of(NEXT(queue), F_WRLCK);

    if (!has_file(c) || !try_byte(c, queue))
        return false;
    note_taken(c, queue);
    return fcntl(c->queue_file, F_OFD_GETLK, &next) == 0 &&
           next.l_type == F_UNLCK;
}

void lk_sqlite_queue_settle(struct lk_sqlite *c, size_t from, bool is_undone)
{
    while (c->taken_count > from) {
        c->taken_count--;
        if (is_undone)
            let_go(c, c->taken[c->taken_count]);
    }
}

void lk_sqlite_queue_notify(struct lk_sqlite *c, int64_t queue)
{
    if (c->has_queue_file)
        let_go(c, queue);
}

/* Stop being the next waiter. */
static void stop_being_next(struct lk_sqlite *c)
{
    if (c->next_byte != 0)
        let_go(c, c->next_byte);
    c->next_byte = 0;
}

/* Become the next waiter if no other connection is, and then take the queue
 * lock if it is free.  Return whether this connection has the queue lock. */
static bool take_turn(struct lk_sqlite *c, int64_t queue)
{
    if (c->next_byte == 0 && try_byte(c, NEXT(queue)))
        c->next_byte = NEXT(queue);
    return c->next_byte != 0 && try_byte(c, queue);
}

/* Variables of the helper thread, on the stack of the thread that starts it: a
 * cancelled thread does not return from its functions, so AddressSanitizer
 * would go on guarding the variables on its stack. */
struct helper {
    struct lk_sqlite *c;
    struct flock next, lock;
    int cancel_state;
};

/* Wait for a byte, without a time limit.  Return 0 or errno. */
static int wait_for(struct lk_sqlite *c, struct flock *lock)
{
    int rc;

    do {
        rc = fcntl(c->queue_file, F_OFD_SETLKW, lock);
    } while (rc < 0 && errno == EINTR);
    return rc < 0 ? errno : 0;
}

/* Report to the starter of the helper: error 0 makes this connection the next
 * waiter, is_over ends the wait.  The helper cannot be cancelled from here
 * on. */
static void tell(struct helper *helper, bool is_over, int error)
{
    struct lk_sqlite *c = helper->c;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &helper->cancel_state);
    (void)pthread_mutex_lock(&c->guard);
    if (error == 0)
        c->next_byte = helper->next.l_start;
    c->is_wait_over = is_over;
    c->queue_errno = error;
    if (is_over)
        (void)pthread_cond_signal(&c->changed);
    (void)pthread_mutex_unlock(&c->guard);
}

/* Run the helper thread: wait for the next waiter's byte, then for the queue
 * lock's.  The thread can be cancelled only in these two waits. */
static void *wait_for_bytes(void *argument)
{
    struct helper *helper = argument;
    int error = wait_for(helper->c, &helper->next);

    if (error == 0) {
        tell(helper, false, 0);
        (void)pthread_setcancelstate(helper->cancel_state, NULL);
        error = wait_for(helper->c, &helper->lock);
    }
    tell(helper, true, error);
    return NULL;
}

/* Wait until the helper thread has ended its wait, until until_ns, or until
 * another thread calls the driver's abort().  The next waiter waits for NEXT_NS
 * at most.  Return whether the helper has ended its wait. */
static bool wait_for_helper(struct lk_sqlite *c, int64_t until_ns)
{
    bool is_over;
    int rc = 0;

    (void)pthread_mutex_lock(&c->guard);
    while (!c->is_wait_over && !atomic_load(&c->is_aborted) &&
           (rc != ETIMEDOUT ||
            (c->next_byte == 0 && sqlock_monotonic_ns() < until_ns))) {
        struct timespec at =
            lk_timespec(lk_sooner(until_ns, sqlock_monotonic_ns() + NEXT_NS));

        rc = pthread_cond_timedwait(&c->changed, &c->guard, &at);
    }
    is_over = c->is_wait_over;
    (void)pthread_mutex_unlock(&c->guard);
    return is_over;
}

static int wait_in_helper(struct lk_sqlite *c, int64_t queue, int64_t until_ns,
                          sqlock_error *err)
{
    struct helper helper = {
        .c = c,
        .next = byte_of(NEXT(queue), F_WRLCK),
        .lock = byte_of(queue, F_WRLCK),
    };
    pthread_t thread;
    bool is_over;
    int rc;

    c->is_wait_over = false;
    rc = lk_thread_start(&thread, wait_for_bytes, &helper, err);
    if (rc < 0)
        return rc;
    is_over = wait_for_helper(c, until_ns);
    if (!is_over)
        (void)pthread_cancel(thread);
    (void)pthread_join(thread, NULL);
    if (is_over && c->queue_errno == 0)
        return 0;
    /* A helper that was cancelled may have got a byte all the same. */
    let_go(c, queue);
    if (c->next_byte == 0)
        let_go(c, NEXT(queue));
    if (atomic_load(&c->is_aborted))
        return lk_error(err, SQLOCK_ECANCELED, "the wait was ended");
    if (is_over)
        return sqlock_error_set(err, SQLOCK_ERESOURCE, c->queue_errno, NULL,
                                "the file of the wait queue cannot be locked: "
                                "error %d",
                                c->queue_errno);
    return lk_error(err, SQLOCK_EBUSY, "another session has the queue lock");
}

/* Queue for the bytes in the kernel, within a call, so that abort() ends the
 * wait. */
static int queue_up(struct lk_sqlite *c, int64_t queue, int64_t until_ns,
                    sqlock_error *err)
{
    int rc = lk_sqlite_call_begin(c, LK_NEVER, err);

    if (rc == 0) {
        rc = wait_in_helper(c, queue, until_ns, err);
        lk_sqlite_call_end(c);
    }
    return rc;
}

static int sqlite_queue(void *connection, int64_t queue, int64_t until_ns,
                        sqlock_error *err)
{
    struct lk_sqlite *c = connection;
    int rc = 0;

    if (!has_file(c))
        return report_file(c, err);
    if (c->next_byte != NEXT(queue))
        stop_being_next(c);
    if (!take_turn(c, queue))
        rc = queue_up(c, queue, until_ns, err);
    if (rc != SQLOCK_EBUSY)
        stop_being_next(c);
    return rc;
}

static int sqlite_leave(void *connection, int64_t queue, int64_t deadline_ns,
                        sqlock_error *err)
{
    (void)deadline_ns;
    (void)err;
    lk_sqlite_queue_notify(connection, queue);
    stop_being_next(connection);
    return 0;
}

const sqlock_wait_queue lk_sqlite_wait_queue = {
    .layouts = 1u << SQLOCK_LAYOUT_SQLOCK,
    .holders_keep_it = true,
    .keeps_place = true,
    .enqueue = sqlite_queue,
    .leave = sqlite_leave,
};
