/*
 * identity.c - find out whether the file that a connection has open is the one
 * that another process finds by the same name, with the same log beside it
 *
 * SQLite knows a database by one path: the log (-wal) and its index (-shm) are
 * looked for beside that path, and what was committed last is in the log alone.
 * So two connections share a database only if they have the same three files.
 * They do not if the file has two names (hard links), if it alone is mounted
 * into another directory, if a symbolic link or a directory on the way leads
 * elsewhere by now, or if one of the three was removed or replaced while it was
 * open: the kernel lets a process go on with a file that has no name any more.
 *
 * All that is checked when a file is opened and before each use of an idle
 * connection, so that a renewal notices it, too, and before each commit.
 */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "drivers/sqlite/connection.h"

static bool is_same(const struct lk_sqlite_place *one,
                    const struct lk_sqlite_place *other)
{
    return one->error == 0 && other->error == 0 &&
           one->device == other->device && one->number == other->number;
}

/* Refuse a file of which another process may have another log. */
static int check_place(const struct lk_sqlite_place *place, const char *path,
                       sqlock_error *err)
{
    if (!place->is_regular)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "SQLite: %s is no regular file any more", path);
    if (place->links > 1)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "SQLite: the file %s has %u names (hard links), and "
                        "locks taken by one exclude nobody who uses another: "
                        "remove the others, or replace them by symbolic links",
                        path, place->links);
    if (place->is_mounted)
        return lk_error(
            err, SQLOCK_ENOTSUP,
            "SQLite: the file %s is mounted on its own, so that its "
            "log (-wal) is not the one of the other processes: "
            "mount its directory",
            path);
    return 0;
}

static int replaced(const char *path, const char *suffix, sqlock_error *err)
{
    return lk_error(err, SQLOCK_EUNREACHABLE,
                    "SQLite: the file %s%s was removed or replaced while it "
                    "was open: others who open the database do not see what is "
                    "written here",
                    path, suffix);
}

/* Check that the path, and SQLite's own, lead to the file that is open: SQLite
 * says so at first, and the file is noted.  As long as it is open, no other one
 * has its number. */
static int check_database(struct lk_sqlite *c, const char *own_path,
                          sqlock_error *err)
{
    struct lk_sqlite_place own = lk_sqlite_place_of(own_path, 0);
    struct lk_sqlite_place found = own;
    int has_moved = 0;

    if (c->path != NULL && strcmp(c->path, own_path) != 0)
        found = lk_sqlite_place_of(c->path, 0);
    if (c->number == 0 &&
        sqlite3_file_control(c->db, "main", SQLITE_FCNTL_HAS_MOVED,
                             &has_moved) != SQLITE_OK)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "SQLite cannot tell whether %s was replaced", own_path);
    if (has_moved != 0 || !is_same(&found, &own))
        return replaced(c->path != NULL ? c->path : own_path, "", err);
    if (c->number == 0) {
        c->device = own.device;
        c->number = own.number;
    }
    if (c->device != own.device || c->number != own.number)
        return replaced(own_path, "", err);
    return check_place(&found, own_path, err);
}

/* Check that the file with that suffix is the one that this process has open.
 * Without a write-ahead log there is none. */
static int check_beside(struct lk_sqlite *c, const char *own_path,
                        enum lk_sqlite_beside which, sqlock_error *err)
{
    static const char *const suffixes[] = {"-wal", "-shm"};
    struct lk_sqlite_place found, noted;
    char path[PATH_MAX]; /* no file has a longer one */
    size_t length = strnlen(own_path, sizeof path - sizeof "-wal");

    memcpy(path, own_path, length);
    memcpy(path + length, suffixes[which], sizeof "-wal");
    noted = lk_sqlite_turn_note(c, which, path, &found);
    if (noted.links == 0)
        return 0;
    if (!is_same(&found, &noted) || !found.is_regular || found.links > 1 ||
        found.is_mounted)
        return replaced(own_path, suffixes[which], err);
    return 0;
}

int lk_sqlite_check_identity(struct lk_sqlite *c, sqlock_error *err)
{
    const char *own_path = sqlite3_db_filename(c->db, "main");
    int rc;

    if (own_path == NULL || own_path[0] == '\0')
        return lk_error(err, SQLOCK_EINVAL,
                        "the SQLite connection has no file: a database in "
                        "memory or in a private temporary file is shared with "
                        "nobody");
    rc = check_database(c, own_path, err);
    for (int i = 0; rc == 0 && i < LK_SQLITE_BESIDE_KINDS; i++)
        rc = check_beside(c, own_path, (enum lk_sqlite_beside)i, err);
    return rc;
}

/* Return whether a handle reaches its file by a VFS that takes no locks of the
 * kernel, or takes others than the processes that use SQLite's default. */
static bool has_other_locks(sqlite3 *db)
{
    static const char *const names[] = {"unix-none", "unix-dotfile",
                                        "unix-flock", "memdb"};
    const char *file = sqlite3_db_filename(db, "main");
    char *name = NULL;
    bool is_other = sqlite3_uri_boolean(file, "nolock", 0) != 0 ||
                    sqlite3_uri_boolean(file, "immutable", 0) != 0;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_VFSNAME, (void *)&name) !=
        SQLITE_OK)
        name = NULL;
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++)
        is_other = is_other || strstr(name, names[i]) != NULL;
    sqlite3_free(name);
    return is_other;
}

int lk_sqlite_check_locks(sqlite3 *db, sqlock_error *err)
{
    const char *file = sqlite3_db_filename(db, "main");

    if (file != NULL && file[0] != '\0' && has_other_locks(db))
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the SQLite connection was opened without the locks "
                        "that other processes take (nolock, immutable or "
                        "another vfs in its URI): open the file by its path");
    return 0;
}
