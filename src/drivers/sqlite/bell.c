/*
 * bell.c - the bell of SQLite, for processes of one machine: a datagram socket
 * in a file beside the database, <database>-sqlock-NAME.bell
 *
 * The address is a file, not one of the kernel's own: containers that share the
 * database share its directory, but not their network, to which such addresses
 * belong.  The file has the database's owner, group and mode, so whoever may
 * release a lock may ring.
 *
 * The path of a socket must be short.  So both sides reach the file by
 * /proc/self/fd, and its owner makes it under a short name and renames it.  A
 * file of the full name is a socket that somebody has bound; if nobody has, its
 * process has died, and the file is removed.
 *
 * sqlock_ring(NAME, TEXT), or sqlock_tell(TEXT) for all files beside the
 * database, is called within a statement.  It only remembers the ring; the
 * connection sends it after the commit, when others see what was written, and
 * without waiting: nobody waits for a process that does not hear.
 * The kernel keeps a few datagrams for each socket and then refuses more, so
 * whoever finds that many is told that some may be missing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "drivers/bell.h"
#include "drivers/sqlite/connection.h"

#define BETWEEN "-sqlock-"
#define UNNAMED ".sqlock-" /* of a socket that has no name of its own yet */
#define SUFFIX ".bell"
#define TEXT_MAX 64
#define ROOM 10       /* Linux's default */
#define HEARD_MAX 256 /* datagrams taken by one call */

struct lk_sqlite_bell {
    int socket;
    unsigned room; /* with more datagrams than that, others were refused */
    dev_t device;  /* with number: the file at `path` */
    ino_t number;
    char path[];
};

struct lk_sqlite_ring {
    char bell[SQLOCK_BELL_MAX + 1]; /* "": all */
    char text[TEXT_MAX];
};

static const char *database_of(const struct lk_sqlite *c)
{
    return c->db != NULL ? sqlite3_db_filename(c->db, "main") : NULL;
}

/* Write the address of an entry of an open directory, or of an open file if
 * `entry` is "". */
static struct sockaddr_un address_of(int file, const char *entry)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof address.sun_path,
                   "/proc/self/fd/%d%s%s", file, *entry != '\0' ? "/" : "",
                   entry);
    return address;
}

/* --------------------------------------------------------------- ringing -- */

/* Send a text to a socket file that is open as `file`, or only look whether
 * anybody hears there if `text` is NULL.  Return false if nobody does. */
static bool send_to(int file, const char *text)
{
    int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = address_of(file, "");
    bool is_dead = false;

    if (out < 0)
        return true;
    if (connect(out, (const struct sockaddr *)&address, sizeof address) < 0)
        is_dead = errno == ECONNREFUSED;
    else if (text != NULL)
        (void)send(out, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)close(out);
    return !is_dead;
}

/* Ring at the socket at that path; remove that of a process that has died. */
static void ring_at(const char *path, const char *text)
{
    int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    struct stat now; /* the process may have made another one meanwhile */

    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && S_ISSOCK(status.st_mode) &&
        !send_to(file, text) && lstat(path, &now) == 0 &&
        now.st_ino == status.st_ino)
        (void)unlink(path);
    (void)close(file);
}

/* Return whether the entry is a bell of the database with that base name. */
static bool is_bell_of(const char *entry, const char *base)
{
    size_t length = strlen(base);

    return strncmp(entry, base, length) == 0 &&
           strncmp(entry + length, BETWEEN, strlen(BETWEEN)) == 0;
}

/* Ring at all sockets beside the database, or only look whose processes have
 * died if `text` is NULL, which may have been before they gave theirs a
 * name. */
static void ring_all(const char *database, const char *text)
{
    const char *base = strrchr(database, '/') + 1;
    char *folder = strndup(database, (size_t)(base - database));
    DIR *entries = folder != NULL ? opendir(folder) : NULL;
    const struct dirent *entry;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        const char *name = entry->d_name;
        char *whole;

        if ((!is_bell_of(name, base) &&
             (text != NULL || strncmp(name, UNNAMED, strlen(UNNAMED)) != 0)) ||
            asprintf(&whole, "%s%s", folder, name) < 0)
            continue;
        ring_at(whole, text);
        free(whole);
    }
    if (entries != NULL)
        (void)closedir(entries);
    free(folder);
}

static void ring(const char *database, const struct lk_sqlite_ring *one)
{
    char *path;

    if (database == NULL)
        return;
    if (one->bell[0] == '\0') {
        ring_all(database, one->text);
    } else if (asprintf(&path, "%s" BETWEEN "%s" SUFFIX, database, one->bell) >=
               0) {
        ring_at(path, one->text);
        free(path);
    }
}

/* Remember a ring, once.  Without memory it is forgotten. */
static void remember(struct lk_sqlite *c, const char *bell, const char *text)
{
    struct lk_sqlite_ring one = {.bell = ""};

    (void)snprintf(one.bell, sizeof one.bell, "%s", bell);
    if (strlen(text) < sizeof one.text)
        (void)snprintf(one.text, sizeof one.text, "%s", text);
    for (size_t i = 0; i < c->ring_count; i++)
        if (strcmp(c->rings[i].bell, one.bell) == 0 &&
            strcmp(c->rings[i].text, one.text) == 0)
            return;
    if (c->ring_count == c->ring_size) {
        size_t size = 2 * c->ring_size + 8;
        struct lk_sqlite_ring *rings = realloc(c->rings, size * sizeof *rings);

        if (rings == NULL)
            return;
        c->rings = rings;
        c->ring_size = size;
    }
    c->rings[c->ring_count++] = one;
}

/* A name that is none, such as null, is not rung: nothing that a stranger has
 * written into a lock's row hinders its release. */
void lk_sqlite_ring(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const char *bell = (const char *)sqlite3_value_text(argv[0]);
    const char *text = (const char *)sqlite3_value_text(argv[1]);

    (void)argc;
    if (bell != NULL && lk_is_bell(bell))
        remember(sqlite3_user_data(context), bell, text != NULL ? text : "");
    sqlite3_result_null(context);
}

void lk_sqlite_tell(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const char *text = (const char *)sqlite3_value_text(argv[0]);

    (void)argc;
    remember(sqlite3_user_data(context), "", text != NULL ? text : "");
    sqlite3_result_int(context, 1);
}

void lk_sqlite_bell_settle(struct lk_sqlite *c, size_t from, bool is_undone)
{
    const char *database = database_of(c);

    for (size_t i = from; i < c->ring_count && !is_undone; i++)
        ring(database, &c->rings[i]);
    if (c->ring_count > from)
        c->ring_count = from;
}

/* --------------------------------------------------------------- hearing -- */

static int report(int error, const char *path, sqlock_error *err)
{
    char text[128] = "";
    int code;

    switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
        code = SQLOCK_EACCESS;
        break;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
    case EDQUOT:
        code = SQLOCK_ERESOURCE;
        break;
    default:
        code = SQLOCK_ENOTSUP;
        break;
    }
    return sqlock_error_set(err, code, error, NULL,
                            "the socket %s, at which other processes ring, "
                            "cannot be made: %s",
                            path, strerror_r(error, text, sizeof text));
}

/* Give the socket the database's owner, group and mode.  If the group is not
 * one of ours, it keeps the one that it was made with.  Another user of the
 * directory may have put something else in its place: that is left alone. */
static int dress(int directory, const char *entry, const struct stat *database,
                 struct stat *status)
{
    int file = openat(directory, entry, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    uid_t owner = geteuid() == 0 ? database->st_uid : (uid_t)-1;
    struct sockaddr_un itself = address_of(file, "");
    int error = 0;

    if (file < 0)
        return errno;
    if (fstat(file, status) < 0 || !S_ISSOCK(status->st_mode) ||
        status->st_uid != geteuid()) {
        error = EACCES;
    } else {
        (void)!fchownat(file, "", owner, database->st_gid, AT_EMPTY_PATH);
        if (chmod(itself.sun_path, database->st_mode & 0666) < 0)
            error = errno;
    }
    (void)close(file);
    return error;
}

/* Make the socket file, first under a short name.  Return 0 or errno. */
static int make_file(struct lk_sqlite_bell *bell, int directory,
                     const char *name, const struct stat *database)
{
    char entry[sizeof UNNAMED + SQLOCK_BELL_MAX];
    struct sockaddr_un address;
    struct stat status = {.st_dev = 0};
    int error;

    (void)snprintf(entry, sizeof entry, UNNAMED "%s", name);
    address = address_of(directory, entry);
    if (bind(bell->socket, (const struct sockaddr *)&address, sizeof address) <
        0)
        return errno;
    error = dress(directory, entry, database, &status);
    if (error == 0 && renameat(directory, entry, AT_FDCWD, bell->path) < 0)
        error = errno;
    if (error != 0) {
        (void)unlinkat(directory, entry, 0);
        return error;
    }
    bell->device = status.st_dev;
    bell->number = status.st_ino;
    return 0;
}

/* Return how many datagrams the kernel keeps for a socket made now. */
static unsigned room_now(void)
{
    FILE *file = fopen("/proc/sys/net/unix/max_dgram_qlen", "re");
    unsigned room = ROOM;

    if (file != NULL) {
        if (fscanf(file, "%u", &room) != 1)
            room = ROOM;
        (void)fclose(file);
    }
    return room;
}

/* Make the bell's socket and its file.  Return 0 or errno. */
static int make(struct lk_sqlite_bell *bell, const char *folder,
                const char *database, const char *name)
{
    struct stat status;
    int directory;
    int error;

    bell->room = room_now();
    bell->socket =
        socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bell->socket < 0 || stat(database, &status) < 0)
        return errno;
    directory = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return errno;
    error = make_file(bell, directory, name, &status);
    (void)close(directory);
    return error;
}

static struct lk_sqlite_bell *new_bell(const char *database, const char *name)
{
    size_t size =
        strlen(database) + sizeof BETWEEN + strlen(name) + sizeof SUFFIX;
    struct lk_sqlite_bell *bell = calloc(1, sizeof *bell + size);

    if (bell == NULL)
        return NULL;
    bell->socket = -1;
    (void)snprintf(bell->path, size, "%s" BETWEEN "%s" SUFFIX, database, name);
    return bell;
}

static void free_bell(struct lk_sqlite_bell *bell)
{
    if (bell != NULL && bell->socket >= 0)
        (void)close(bell->socket);
    free(bell);
}

/* Begin to hear at that name beside the database.  Return 0 or a code. */
static int hear_beside(struct lk_sqlite *c, const char *database,
                       const char *name, sqlock_error *err)
{
    struct lk_sqlite_bell *bell = new_bell(database, name);
    char *copy = strdup(database);
    const char *folder;
    int error;
    int rc = 0;

    if (bell == NULL || copy == NULL) {
        rc = lk_error_nomem(err);
        goto out;
    }
    folder = dirname(copy);
    error = make(bell, folder, database, name);
    if (error != 0) {
        rc = report(error, bell->path, err);
        goto out;
    }
    ring_all(database, NULL);
    c->bell = bell;
    bell = NULL;
out:
    free_bell(bell);
    free(copy);
    return rc;
}

static int sqlite_begin(void *connection, const char *name, int64_t until_ns,
                        int64_t deadline_ns, sqlock_error *err)
{
    struct lk_sqlite *c = connection;
    const char *database = database_of(c);
    int rc = lk_check_bell(name, err);

    (void)until_ns;
    (void)deadline_ns;
    if (rc < 0)
        return rc;
    if (c->bell != NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the connection has begun to hear already");
    if (database == NULL || c->is_broken)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the connection to the SQLite file is closed");
    return hear_beside(c, database, name, err);
}

static int sqlite_descriptor(void *connection)
{
    const struct lk_sqlite *c = connection;

    return c->bell != NULL ? c->bell->socket : -1;
}

/* Return whether those who ring still find the bell by its file. */
static bool is_there(const struct lk_sqlite_bell *bell)
{
    struct stat status;

    return lstat(bell->path, &status) == 0 && status.st_dev == bell->device &&
           status.st_ino == bell->number;
}

static int sqlite_hear(void *connection, void (*rung)(void *, const char *),
                       void *context)
{
    const struct lk_sqlite *c = connection;
    char text[TEXT_MAX];
    unsigned count = 0;
    ssize_t got;

    if (c->bell == NULL || !is_there(c->bell))
        return SQLOCK_EUNREACHABLE;
    while (count < HEARD_MAX) {
        got = recv(c->bell->socket, text, sizeof text - 1, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        text[got] = '\0';
        rung(context, text);
        count++;
    }
    if (count > c->bell->room || count == HEARD_MAX)
        rung(context, "");
    return count > 0 ? 0 : SQLOCK_EBUSY;
}

void lk_sqlite_bell_close(struct lk_sqlite *c)
{
    free(c->rings);
    c->rings = NULL;
    c->ring_count = c->ring_size = 0;
    if (c->bell == NULL)
        return;
    if (is_there(c->bell))
        (void)unlink(c->bell->path);
    free_bell(c->bell);
    c->bell = NULL;
}

static int sqlite_end(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    (void)deadline_ns;
    (void)err;
    lk_sqlite_bell_close(connection);
    return 0;
}

const sqlock_bell lk_sqlite_bell = {
    .begin = sqlite_begin,
    .descriptor = sqlite_descriptor,
    .hear = sqlite_hear,
    .end = sqlite_end,
};
