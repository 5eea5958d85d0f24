/*
 * turn.c - a queue of the connections of one process that write to one file,
 * and what these connections share
 *
 * SQLite has no queue for its write lock: a connection that meets another
 * writer sleeps briefly and tries again.  On a busy machine the thread then
 * waits for a processor, too, and often finds the file taken again, so that one
 * of hundreds of connections may fail to write for seconds.  Hence the
 * connections of a process queue up: the first one tries for the write lock,
 * the others sleep until they are woken.  Processes still compete with each
 * other, but each with one connection only.
 *
 * A "turn" in this file is the first place in that queue.  A connection has
 * that place for one statement that takes the write lock, not for the
 * transaction that the statement may begin.  Statements within a transaction do
 * not queue: so a connection that has the write lock never waits for a
 * connection that waits for that lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "drivers/sqlite/connection.h"

struct lk_sqlite_file {
    struct lk_sqlite_file *next;
    dev_t device;
    ino_t number;
    size_t users;   /* open connections */
    size_t readers; /* those of them that have opened the log */
    /* what the readers have open beside it; links == 0: nothing yet */
    struct lk_sqlite_place beside[LK_SQLITE_BESIDE_KINDS];
    struct lk_sqlite *first, *last; /* of the queue; the first has the turn */
};

/* Guards the list of files and all queues.  Held briefly, and locked before a
 * connection's guard. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lk_sqlite_file *files;

/* Find the file in the list, or add it.  The caller holds the mutex.  NULL: out
 * of memory. */
static struct lk_sqlite_file *find(const struct stat *status)
{
    struct lk_sqlite_file *file = files;

    while (file != NULL &&
           (file->device != status->st_dev || file->number != status->st_ino))
        file = file->next;
    if (file != NULL)
        return file;
    file = calloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->device = status->st_dev;
    file->number = status->st_ino;
    file->next = files;
    files = file;
    return file;
}

void lk_sqlite_turn_open(struct lk_sqlite *c)
{
    const char *path = sqlite3_db_filename(c->db, "main");
    struct stat status;

    if (path == NULL || stat(path, &status) < 0)
        return;
    (void)pthread_mutex_lock(&mutex);
    c->file = find(&status);
    if (c->file != NULL)
        c->file->users++;
    (void)pthread_mutex_unlock(&mutex);
}

void lk_sqlite_turn_close(struct lk_sqlite *c)
{
    struct lk_sqlite_file **at = &files;

    if (c->file == NULL)
        return;
    (void)pthread_mutex_lock(&mutex);
    if (c->is_reader && --c->file->readers == 0)
        memset(c->file->beside, 0, sizeof c->file->beside);
    c->is_reader = false;
    if (--c->file->users == 0) {
        while (*at != c->file)
            at = &(*at)->next;
        *at = c->file->next;
        free(c->file);
    }
    (void)pthread_mutex_unlock(&mutex);
    c->file = NULL;
}

/* SQLite opens the index of the log once for all connections of a process that
 * have read.  So the file that the first one found is that of all, until the
 * last of these is closed: then SQLite may remove the log, also while another
 * connection is being opened, which will make a new one.  Hence the mutex is
 * locked for the look at the file, too: what is known cannot become that of a
 * log that another connection has made after the look. */
struct lk_sqlite_place lk_sqlite_turn_note(struct lk_sqlite *c,
                                           enum lk_sqlite_beside which,
                                           const char *path,
                                           struct lk_sqlite_place *found)
{
    struct lk_sqlite_place noted = {.links = 0};

    if (c->file == NULL)
        return noted;
    (void)pthread_mutex_lock(&mutex);
    *found = lk_sqlite_place_of(path, AT_SYMLINK_NOFOLLOW);
    if (c->has_read && !c->is_reader) {
        c->is_reader = true;
        c->file->readers++;
    }
    if (c->has_read && c->file->beside[which].links == 0 && found->error == 0)
        c->file->beside[which] = *found;
    noted = c->file->beside[which];
    (void)pthread_mutex_unlock(&mutex);
    return noted;
}

/* Pass the turn to the next connection, if there is one, and wake its thread.
 * The caller holds the mutex. */
static void pass_on(struct lk_sqlite_file *file)
{
    struct lk_sqlite *next = file->first->behind;

    file->first = next;
    if (next == NULL) {
        file->last = NULL;
        return;
    }
    (void)pthread_mutex_lock(&next->guard);
    next->has_turn = true;
    (void)pthread_cond_signal(&next->changed);
    (void)pthread_mutex_unlock(&next->guard);
}

static void sleep_until_called(struct lk_sqlite *c)
{
    struct timespec at = lk_timespec(c->give_up_ns);
    int rc = 0;

    (void)pthread_mutex_lock(&c->guard);
    while (!c->has_turn && !atomic_load(&c->is_aborted) && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&c->changed, &c->guard, &at);
    (void)pthread_mutex_unlock(&c->guard);
}

void lk_sqlite_turn_take(struct lk_sqlite *c)
{
    struct lk_sqlite_file *file = c->file;
    bool is_first;

    if (file == NULL)
        return;
    c->behind = NULL;
    c->has_turn = false;
    (void)pthread_mutex_lock(&mutex);
    is_first = file->first == NULL;
    if (is_first)
        file->first = c;
    else
        file->last->behind = c;
    file->last = c;
    (void)pthread_mutex_unlock(&mutex);
    if (!is_first)
        sleep_until_called(c);
}

void lk_sqlite_turn_give(struct lk_sqlite *c)
{
    struct lk_sqlite_file *file = c->file;
    struct lk_sqlite *before;

    if (file == NULL)
        return;
    (void)pthread_mutex_lock(&mutex);
    if (file->first == c) {
        pass_on(file);
    } else { /* its turn did not come in time */
        before = file->first;
        while (before->behind != c)
            before = before->behind;
        before->behind = c->behind;
        if (file->last == c)
            file->last = before;
    }
    (void)pthread_mutex_unlock(&mutex);
}
