/*
 * hold_sqlite.c - hold_sqlite FILE [alone]: hold SQLite's write lock of a
 * database until stdin ends, or keep others from reading it, too; print "held"
 * once it is held
 *
 * Exit status 1: failed.
 */
#include <stdio.h>

#include <sqlite3.h>

int main(int argc, char **argv)
{
    sqlite3 *database = NULL;
    int rc = SQLITE_MISUSE;

    if (argc == 2 || argc == 3)
        rc = sqlite3_open(argv[1], &database);
    if (rc == SQLITE_OK)
        (void)sqlite3_busy_timeout(database, 10000);
    if (rc == SQLITE_OK && argc == 3)
        rc = sqlite3_exec(database, "PRAGMA locking_mode = exclusive", NULL,
                          NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(database,
                          argc == 3 ? "BEGIN EXCLUSIVE" : "BEGIN IMMEDIATE",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        puts("held");
        (void)fflush(stdout);
        while (getchar() != EOF)
            continue;
    }
    (void)sqlite3_close(database);
    return rc == SQLITE_OK ? 0 : 1;
}
