/*
 * folder.h - a folder of migrations: files NNN_name.sql, by number
 */
#ifndef MIGRATION_FOLDER_H
#define MIGRATION_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct migration {
    int version; /* NNN */
    char *name;  /* of the file */
    char *sql;
    bool is_inside;  /* its first line is "-- in a transaction", */
    bool is_outside; /* or "-- outside a transaction" */
};

struct folder {
    struct migration *migrations;
    size_t count;
};

/* Return 0; or -1 after a message if a file cannot be read, if two have the
 * same number, or if there is none.  folder_clear() follows in both cases. */
int folder_read(struct folder *folder, const char *path);
void folder_clear(struct folder *folder);

#endif
