/*
 * place.c - a directory for the SQLite file of a demo that was given no URL
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

/* Percent-encoding makes at most three bytes of one. */
enum { PATH_SIZE = 256, ENCODED_SIZE = 3 * PATH_SIZE, BYTE_SIZE = 3 };

static char directory[PATH_SIZE];

/* Percent-encode the path of a URL. */
static void encode(char *to, size_t size, const char *from)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;

    for (; *from != '\0' && used + BYTE_SIZE < size; from++) {
        unsigned char byte = (unsigned char)*from;

        if (isalnum(byte) || strchr("-._~/", byte) != NULL) {
            to[used++] = (char)byte;
            continue;
        }
        to[used++] = '%';
        to[used++] = digits[byte >> 4];
        to[used++] = digits[byte & 15];
    }
    to[used] = '\0';
}

const char *place_make(void)
{
    static char url[ENCODED_SIZE + sizeof "sqlite:/shop.db"];
    char encoded[ENCODED_SIZE];
    const char *parent = getenv("TMPDIR");

    if (parent == NULL || parent[0] != '/')
        parent = "/tmp";
    if (snprintf(directory, sizeof directory, "%s/sqlock-demo-XXXXXX",
                 parent) >= (int)sizeof directory ||
        mkdtemp(directory) == NULL) {
        perror("mkdtemp");
        directory[0] = '\0';
        return NULL;
    }
    encode(encoded, sizeof encoded, directory);
    (void)snprintf(url, sizeof url, "sqlite:%s/shop.db", encoded);
    return url;
}

void place_remove(void)
{
    const struct dirent *entry;
    DIR *open;

    if (directory[0] == '\0')
        return;
    open = opendir(directory);
    if (open == NULL)
        return;
    for (entry = readdir(open); entry != NULL; entry = readdir(open))
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(open), entry->d_name, 0);
    (void)closedir(open);
    (void)rmdir(directory);
}
