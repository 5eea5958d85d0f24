/*
 * file.c - find the database file that a URL names, and check that it can hold
 * locks
 *
 * A file in which locks would exclude nobody, or not reliably, is refused,
 * although SQLite itself would accept it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <uriparser/Uri.h>

#include "base/error.h"
#include "base/url.h"
#include "drivers/sqlite/connection.h"

/* The most bytes that uriUnixFilenameToUriStringA() writes: "file://", each
 * byte of the name as "%XX", and a NUL. */
#define URI_ROOM(length) (8 + 3 * (length))

/* Read the parameter "synchronous" of a URL that has a query or a fragment;
 * refuse a fragment and any other parameter. */
static int read_parameters(const struct lk_url *url, bool has_fragment,
                           bool *waits_for_disk, sqlock_error *err)
{
    const char *value = lk_url_parameter(url, "synchronous");

    *waits_for_disk = false;
    if (value == NULL || url->count > 1 || has_fragment)
        return lk_error(err, SQLOCK_EINVAL,
                        "a sqlite URL has no parameters but one "
                        "synchronous=full; in a path write '?' as %%3F and "
                        "'#' as %%23");
    *waits_for_disk = strcmp(value, "full") == 0;
    if (!*waits_for_disk && strcmp(value, "normal") != 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "synchronous in the sqlite URL must be normal or full");
    return 0;
}

static int refuse_url(const struct lk_url *url, sqlock_error *err)
{
    if (url->host != NULL || url->user != NULL || url->port != NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "a sqlite URL names a file, not a host: write "
                        "sqlite:relative/path or sqlite:/absolute/path");
    if (url->path[0] == '\0')
        return lk_error(err, SQLOCK_EINVAL,
                        "the sqlite URL names no file, and locks in a private "
                        "temporary database exclude nobody");
    if (strcmp(url->path, ":memory:") == 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "locks in a private in-memory database exclude nobody: "
                        "the URL must name a file");
    if (strncmp(url->path, "file:", 5) == 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "write sqlite:path, not sqlite:file:path");
    return 0;
}

int lk_sqlite_path(char **path, bool *waits_for_disk, const char *url,
                   sqlock_error *err)
{
    struct lk_url parts;
    int rc;

    *path = NULL;
    *waits_for_disk = false;
    rc = lk_url_parse(&parts, url, err);
    if (rc == 0)
        rc = refuse_url(&parts, err);
    if (rc == 0 && strpbrk(url, "#?") != NULL)
        rc = read_parameters(&parts, strchr(url, '#') != NULL, waits_for_disk,
                             err);
    if (rc < 0)
        goto out;
    /* "./" keeps SQLite from taking a relative path for a URI or for
     * ":memory:", whatever its process-wide settings are. */
    if (asprintf(path, "%s%s", parts.path[0] == '/' ? "" : "./", parts.path) <
        0) {
        *path = NULL;
        rc = lk_error_nomem(err);
    }
out:
    lk_url_clear(&parts);
    return rc;
}

int lk_sqlite_resolve(const char *url, char **out, sqlock_error *err)
{
    char *path = NULL;
    char *directory = NULL;
    char *file = NULL;
    char *uri = NULL;
    bool waits_for_disk;
    int rc;

    *out = NULL;
    rc = lk_sqlite_path(&path, &waits_for_disk, url, err);
    if (rc < 0 || path[0] == '/')
        goto out;
    directory = getcwd(NULL, 0);
    if (directory == NULL) {
        rc = lk_error(err, SQLOCK_EINVAL,
                      "the working directory cannot be determined: give the "
                      "file's absolute path");
        goto out;
    }
    rc = SQLOCK_ENOMEM;
    if (asprintf(&file, "%s/%s", directory, path + strlen("./")) < 0) {
        file = NULL;
        goto out;
    }
    uri = malloc(URI_ROOM(strlen(file)));
    if (uri == NULL || uriUnixFilenameToUriStringA(file, uri) != URI_SUCCESS ||
        asprintf(out, "sqlite:%s%s", uri + strlen("file://"),
                 waits_for_disk ? "?synchronous=full" : "") < 0) {
        *out = NULL;
        goto out;
    }
    rc = 0;
out:
    if (rc == SQLOCK_ENOMEM)
        (void)lk_error_nomem(err);
    free(path);
    free(directory);
    free(file);
    free(uri);
    return rc;
}

/* Return whether a file system, identified by f_type of statfs(2), is on a
 * network.  FUSE counts as a network because of sshfs, s3fs and shared folders
 * of virtual machines, which f_type does not distinguish from other FUSE file
 * systems. */
bool lk_sqlite_is_network(unsigned long file_system)
{
    switch (file_system) {
    case 0x00006969: /* NFS */
    case 0x0000517b: /* SMB */
    case 0xfe534d42: /* SMB 2 */
    case 0xff534d42: /* CIFS */
    case 0x65735546: /* FUSE */
    case 0x01021997: /* 9P */
    case 0x5346414f: /* AFS */
    case 0x6b414653: /* AFS, the kernel's */
    case 0x73757245: /* Coda */
    case 0x0000564c: /* NCP */
    case 0x00c36400: /* Ceph */
    case 0x0bd00bd0: /* Lustre */
    case 0x01161970: /* GFS2 */
    case 0x7461636f: /* OCFS2 */
    case 0x19830326: /* BeeGFS */
    case 0x47504653: /* GPFS */
        return true;
    default:
        return false;
    }
}

/* Return the directory of a file's path, to be freed.  NULL: out of memory. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Return the code for a path that cannot be reached: EINVAL if it never can be,
 * until somebody makes the directory or changes the URL. */
static int code_of(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return SQLOCK_EACCESS;
    case EROFS:
        return SQLOCK_EREADONLY;
    case ENOMEM:
        return SQLOCK_ERESOURCE;
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return SQLOCK_EINVAL;
    default:
        return SQLOCK_EUNREACHABLE;
    }
}

static int unreachable(const char *what, const char *path, int error,
                       sqlock_error *err)
{
    char text[128] = "";

    return sqlock_error_set(err, code_of(error), error, NULL,
                            "SQLite: %s %s: %s", what, path,
                            strerror_r(error, text, sizeof text));
}

int lk_sqlite_check_file(const char *path, bool may_create, sqlock_error *err)
{
    char *directory = directory_of(path);
    struct statfs system;
    struct stat status;
    int rc = 0;

    if (directory == NULL)
        return lk_error_nomem(err);
    if (statfs(directory, &system) != 0) {
        rc = unreachable("the directory", directory, errno, err);
        goto out;
    }
    if (stat(path, &status) == 0) {
        if (!S_ISREG(status.st_mode))
            rc = lk_error(err, SQLOCK_EDATABASE,
                          "SQLite: %s is not a database, it is %s", path,
                          S_ISDIR(status.st_mode) ? "a directory"
                                                  : "no regular file");
        /* The path may be a link to another file system. */
        else if (statfs(path, &system) != 0)
            rc = unreachable("the file", path, errno, err);
    } else if (errno != ENOENT) {
        rc = unreachable("the file", path, errno, err);
    } else if (lstat(path, &status) == 0) {
        /* SQLite would create the file where the link leads, unchecked. */
        rc = lk_error(err, SQLOCK_EUNREACHABLE,
                      "SQLite: %s is a symbolic link to a file that is not "
                      "there",
                      path);
    } else if (!may_create) {
        /* A mistyped name must not become an empty database. */
        rc =
            lk_error(err, SQLOCK_ESCHEMA,
                     "SQLite: there is no file %s: create it, with the tables, "
                     "with `sqlock init`",
                     path);
    } else if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) != 0) {
        /* SQLite's own error would be that the file does not exist. */
        rc = unreachable("no file can be created in", directory, errno, err);
    }
    if (rc == 0 && lk_sqlite_is_network((unsigned long)system.f_type))
        rc = lk_error(err, SQLOCK_ENOTSUP,
                      "SQLite: %s is on a network file system, where SQLite's "
                      "write-ahead log does not work and file locks cannot be "
                      "relied on",
                      path);
out:
    free(directory);
    return rc;
}

/* Create the file by mknod(), which opens no descriptor.  If another thread has
 * created and opened the same file in the meantime, closing a descriptor of it
 * here would drop the locks that SQLite has for that thread. */
void lk_sqlite_make_file(const char *path)
{
    (void)mknod(path, S_IFREG | 0666, 0);
}
