/*
 * defaults.c - MySQL's option file: whatever is in it, what is read came from
 * the groups that count
 */
#include "fuzz.h"

#include <stdio.h>
#include <unistd.h>

#include "drivers/mysql/defaults.h"

static char folder[] = "/tmp/sqlock-fuzz.XXXXXX";
static char path[sizeof folder + 16];

static void remove_folder(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    must(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/.my.cnf", folder);
    must(setenv("HOME", folder, 1) == 0);
    (void)atexit(remove_folder);
    return 0;
}

static bool has_any(const struct lk_mysql_defaults *read)
{
    return read->user != NULL || read->password != NULL || read->host != NULL ||
           read->port != NULL || read->socket != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lk_mysql_defaults read;
    sqlock_error err = {0};

    fuzz_file(path, data, size);
    must(lk_mysql_defaults_read(&read, "sqlock", &err) == 0);
    if (has_any(&read))
        must(memmem(data, size, "[client]", 8) != NULL ||
             memmem(data, size, "[sqlock]", 8) != NULL);
    lk_mysql_defaults_clear(&read);
    must(lk_mysql_defaults_read(&read, NULL, &err) == 0);
    if (has_any(&read))
        must(memmem(data, size, "[client]", 8) != NULL);
    lk_mysql_defaults_clear(&read);
    return 0;
}
