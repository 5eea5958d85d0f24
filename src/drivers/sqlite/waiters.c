/*
 * waiters.c - list the requests that wait for bytes of queue.c's file, from
 * /proc/locks
 *
 * The kernel lists each lock and, behind "->", each request that waits for one:
 *
 *     1: OFDLCK ADVISORY  WRITE -1 fe:00:1234 100 100
 *     1: -> OFDLCK ADVISORY  WRITE -1 fe:00:1234 100 100
 *
 * A line has the file as device and inode, and the bytes; it has -1 for the
 * process, since these locks belong to open file descriptions.  On some file
 * systems stat() returns another device number than the kernel lists.  So
 * find_place() locks an unused byte of the file and reads from fdinfo how the
 * kernel lists the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/writer.h"
#include "drivers/sqlite/connection.h"

#define PLACE_MAX 64 /* size of "fe:00:1234", device and inode */
#define NO_PROCESS " -1 "

/* The byte of no queue: the numbers of queues are less than this. */
#define UNUSED_BYTE (INT64_C(1) << 62)

/* Copy device and inode of the file from a line about the lock of an open file
 * description, which has no process.  Return the rest of the line behind them;
 * NULL: the line is about another kind of lock. */
static const char *read_place(const char *line, char out[PLACE_MAX])
{
    const char *at = strstr(line, NO_PROCESS);
    size_t length;

    if (at == NULL)
        return NULL;
    at += strlen(NO_PROCESS);
    length = strcspn(at, " ");
    if (length == 0 || length >= PLACE_MAX)
        return NULL;
    memcpy(out, at, length);
    out[length] = '\0';
    return at + length;
}

/* Find out how /proc/locks lists the file, and return whether that is known. */
static bool find_place(int file, char out[PLACE_MAX])
{
    struct flock lock = {.l_type = F_RDLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)UNUSED_BYTE,
                         .l_len = 1};
    char line[256];
    bool is_found = false;
    FILE *list;

    if (fcntl(file, F_OFD_SETLK, &lock) < 0)
        return false;
    (void)snprintf(line, sizeof line, "/proc/self/fdinfo/%d", file);
    list = fopen(line, "re");
    if (list == NULL)
        return false;
    while (!is_found && fgets(line, sizeof line, list) != NULL)
        is_found =
            strncmp(line, "lock:", 5) == 0 && read_place(line, out) != NULL;
    (void)fclose(list);
    return is_found;
}

/* Write a JSON array with the byte that each waiting request is for.  False:
 * the list cannot be read. */
static bool write_waiters(const char *place, FILE *out)
{
    FILE *list = fopen("/proc/locks", "re");
    const char *before = "";
    char line[256];

    if (list == NULL)
        return false;
    (void)fputc('[', out);
    while (fgets(line, sizeof line, list) != NULL) {
        char found[PLACE_MAX];
        const char *rest =
            strstr(line, "-> OFDLCK ") == NULL ? NULL : read_place(line, found);

        if (rest == NULL || strcmp(found, place) != 0)
            continue;
        rest += strspn(rest, " ");
        (void)fprintf(out, "%s%.*s", before, (int)strspn(rest, "0123456789"),
                      rest);
        before = ",";
    }
    (void)fclose(list);
    (void)fputc(']', out);
    return true;
}

/* Return the JSON array, to be freed; NULL: the waiters cannot be found out. */
static char *list_waiters(const char *path)
{
    char place[PLACE_MAX];
    struct lk_writer writer;
    bool is_known;
    char *text;
    FILE *out;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (file < 0) /* nobody has waited yet */
        return errno == ENOENT ? strdup("[]") : NULL;
    out = lk_writer_open(&writer);
    is_known =
        out != NULL && find_place(file, place) && write_waiters(place, out);
    (void)close(file);
    text = lk_writer_close(&writer);
    if (!is_known) {
        free(text);
        return NULL;
    }
    return text;
}

void lk_sqlite_waiters(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const char *database =
        sqlite3_db_filename(sqlite3_context_db_handle(context), "main");
    char *path = NULL;
    char *text;

    (void)argc;
    (void)argv;
    if (database == NULL ||
        asprintf(&path, "%s" LK_SQLITE_QUEUE_SUFFIX, database) < 0) {
        sqlite3_result_error_nomem(context);
        return;
    }
    text = list_waiters(path);
    free(path);
    if (text != NULL)
        sqlite3_result_text(context, text, -1, free);
    else
        sqlite3_result_error(context,
                             "the kernel's list of locks cannot be "
                             "read",
                             -1);
}
