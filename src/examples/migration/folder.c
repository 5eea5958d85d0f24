/*
 * folder.c - read a folder of migrations
 */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"

#define PATTERN "[0-9][0-9][0-9]_*.sql"

static int is_migration(const struct dirent *entry)
{
    return fnmatch(PATTERN, entry->d_name, 0) == 0;
}

/* Return the text of a file, which the caller frees; NULL after a message. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t length = -1;

    if (file != NULL)
        length = getdelim(&text, &size, '\0', file);
    if (length < 0 || feof(file) == 0) {
        (void)complain(path, errno != 0 ? strerror(errno)
                                        : "it is empty, or has a NUL");
        free(text);
        text = NULL;
    }
    if (file != NULL)
        (void)fclose(file);
    return text;
}

static bool begins_with(const char *text, const char *line)
{
    size_t length = strlen(line);

    return strncmp(text, line, length) == 0 &&
           (text[length] == '\n' || text[length] == '\0');
}

static int read_one(struct migration *migration, const char *folder,
                    const char *name)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return complain(folder, "out of memory");
    errno = 0;
    migration->version =
        (name[0] - '0') * 100 + (name[1] - '0') * 10 + (name[2] - '0');
    migration->name = strdup(name);
    migration->sql = read_text(path);
    free(path);
    if (migration->name == NULL || migration->sql == NULL)
        return -1;
    migration->is_inside = begins_with(migration->sql, "-- in a transaction");
    migration->is_outside =
        begins_with(migration->sql, "-- outside a transaction");
    return 0;
}

static int read_all(struct folder *folder, const char *path,
                    struct dirent **entries, int count)
{
    int rc = 0;

    folder->migrations = calloc((size_t)count, sizeof *folder->migrations);
    if (folder->migrations == NULL)
        return complain(path, "out of memory");
    for (int i = 0; rc == 0 && i < count; i++) {
        struct migration *migration = &folder->migrations[i];

        folder->count++;
        rc = read_one(migration, path, entries[i]->d_name);
        if (rc == 0 && i > 0 &&
            migration->version == folder->migrations[i - 1].version)
            rc = complain(entries[i]->d_name, "its number comes twice");
    }
    return rc;
}

int folder_read(struct folder *folder, const char *path)
{
    struct dirent **entries = NULL;
    int count;
    int rc;

    count = scandir(path, &entries, is_migration, alphasort);
    if (count < 0)
        return complain(path, strerror(errno));
    if (count == 0)
        rc = complain(path, "there is no file " PATTERN " in it");
    else
        rc = read_all(folder, path, entries, count);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return rc;
}

void folder_clear(struct folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) {
        free(folder->migrations[i].name);
        free(folder->migrations[i].sql);
    }
    free(folder->migrations);
    *folder = (struct folder){NULL, 0};
}
