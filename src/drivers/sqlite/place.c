/*
 * place.c - where a path leads
 *
 * stat() opens no descriptor, so it drops no lock of SQLite (F70).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "drivers/sqlite/connection.h"

struct lk_sqlite_place lk_sqlite_place_of(const char *path, int flags)
{
    struct lk_sqlite_place place = {.error = 0};
    struct statx status;

    if (statx(AT_FDCWD, path, flags | AT_STATX_SYNC_AS_STAT,
              STATX_TYPE | STATX_INO | STATX_NLINK, &status) != 0) {
        place.error = errno;
        return place;
    }
    place.device = makedev(status.stx_dev_major, status.stx_dev_minor);
    place.number = status.stx_ino;
    place.links = status.stx_nlink;
    place.is_regular = S_ISREG(status.stx_mode);
#ifdef STATX_ATTR_MOUNT_ROOT /* Linux 5.8 */
    place.is_mounted = (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#endif
    return place;
}
