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

#include "base/error.h"
#include "base/text.h"
#include "drivers/sqlite/connection.h"

static int refuse(const struct lk_url *url, sqlock_error *err)
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

static int check_parameters(const struct lk_url *url, sqlock_error *err)
{
    const char *value = lk_url_parameter(url, "synchronous");

    if (url->count > 1 || (url->count == 1 && value == NULL))
        return lk_error(err, SQLOCK_EINVAL,
                        "a sqlite URL has no parameters but one "
                        "synchronous=full; in a path write '?' as %%3F");
    if (value != NULL &&
        !lk_text_is_listed("normal|full", value, strlen(value)))
        return lk_error(err, SQLOCK_EINVAL,
                        "synchronous in the sqlite URL must be normal or full");
    return 0;
}

bool lk_sqlite_waits_for_disk(const struct lk_url *url)
{
    const char *value = lk_url_parameter(url, "synchronous");

    return value != NULL && strcmp(value, "full") == 0;
}

int lk_sqlite_check_url(struct lk_url *url, sqlock_error *err)
{
    char *directory;
    char *path = NULL;
    int rc = refuse(url, err);

    if (rc == 0)
        rc = check_parameters(url, err);
    if (rc < 0 || url->path[0] == '/')
        return rc;
    directory = getcwd(NULL, 0);
    if (directory == NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the working directory cannot be determined: give the "
                        "file's absolute path");
    if (asprintf(&path, "%s/%s", directory, url->path) < 0) {
        free(directory);
        return lk_error_nomem(err);
    }
    free(directory);
    free(url->path);
    url->path = path;
    return 0;
}

/* Return whether a file system, identified by f_type of statfs(2), is on a
 * network, or is a folder that a virtual machine shares with its host. FUSE
 * counts as a network because of sshfs, s3fs and such folders, which f_type
 * does not distinguish from other FUSE file systems. */
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
    case 0xaad7aaea: /* PanFS */
    case 0xbeefdead: /* StorNext */
    case 0x786f4256: /* VirtualBox */
    case 0xbacbacbc: /* VMware */
    case 0x7c7c6673: /* Parallels */
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
 * until somebody makes the directory or changes the URL.  A path that led to
 * the file before may do so again. */
static int code_of(int error, bool was_there)
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
        return was_there ? SQLOCK_EUNREACHABLE : SQLOCK_EINVAL;
    default:
        return SQLOCK_EUNREACHABLE;
    }
}

static int unreachable(const char *what, const char *path, int error,
                       bool was_there, sqlock_error *err)
{
    char text[128] = "";

    return sqlock_error_set(err, code_of(error, was_there), error, NULL,
                            "SQLite: %s %s: %s", what, path,
                            strerror_r(error, text, sizeof text));
}

/* Return the error of a file that does not exist: it is away, or a mistyped
 * name, which must not become an empty database. */
static int absent(const char *path, bool was_there, sqlock_error *err)
{
    if (was_there)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "SQLite: the file %s is not there any more", path);
    return lk_error(err, SQLOCK_ESCHEMA,
                    "SQLite: there is no file %s: create it, with the tables, "
                    "with `sqlock init`",
                    path);
}

int lk_sqlite_check_file(const char *path, const sqlock_connect *how,
                         sqlock_error *err)
{
    char *directory = directory_of(path);
    struct statfs system;
    struct stat status;
    int rc = 0;

    if (directory == NULL)
        return lk_error_nomem(err);
    if (statfs(directory, &system) != 0) {
        rc =
            unreachable("the directory", directory, errno, how->was_there, err);
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
            rc = unreachable("the file", path, errno, how->was_there, err);
    } else if (errno != ENOENT) {
        rc = unreachable("the file", path, errno, how->was_there, err);
    } else if (lstat(path, &status) == 0) {
        /* SQLite would create the file where the link leads, unchecked. */
        rc = lk_error(err, SQLOCK_EUNREACHABLE,
                      "SQLite: %s is a symbolic link to a file that is not "
                      "there",
                      path);
    } else if (!how->may_create) {
        rc = absent(path, how->was_there, err);
    } else if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) != 0) {
        /* SQLite's own error would be that the file does not exist. */
        rc = unreachable("no file can be created in", directory, errno,
                         how->was_there, err);
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
