/*
 * shop.c - what the demo's tables have in common, whichever the database
 *
 * Chooses the client library by the URL and holds the SQL that all of them
 * understand.  Table names come from this program, never from its user.
 */
#include "shop.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct shop_library *const libraries[] = {
#ifdef SQLOCK_WITH_SQLITE
    &shop_sqlite,
#endif
#ifdef SQLOCK_WITH_POSTGRES
    &shop_postgres,
#endif
#ifdef SQLOCK_WITH_MYSQL
    &shop_mysql,
#endif
    NULL,
};

int shop_fail(struct shop *shop, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(shop->error, sizeof shop->error, format, arguments);
    va_end(arguments);
    shop->error[strcspn(shop->error, "\n")] = '\0';
    return -1;
}

int shop_open(struct shop *shop, const char *url, const char *table)
{
    memset(shop, 0, sizeof *shop);
    (void)snprintf(shop->table, sizeof shop->table, "%s", table);
    for (size_t i = 0; libraries[i] != NULL; i++) {
        const char *scheme = libraries[i]->scheme;

        if (strncmp(url, scheme, strlen(scheme)) == 0) {
            shop->library = libraries[i];
            return shop->library->open(shop, url);
        }
    }
    return shop_fail(shop, "no client library for this URL was built in");
}

void shop_close(struct shop *shop)
{
    if (shop->library != NULL)
        shop->library->close(shop);
    shop->library = NULL;
}

int shop_create(struct shop *shop, int64_t items, int64_t quantity)
{
    char sql[256];
    int rc;

    (void)snprintf(sql, sizeof sql,
                   "CREATE TABLE %s (item INTEGER PRIMARY KEY,"
                   " quantity BIGINT NOT NULL, sales BIGINT NOT NULL)",
                   shop->table);
    rc = shop->library->run(shop, sql);
    if (rc == 0)
        rc = shop->library->run(shop, "BEGIN");
    for (int64_t item = 0; rc == 0 && item < items; item++) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO %s (item, quantity, sales)"
                       " VALUES (%" PRId64 ", %" PRId64 ", 0)",
                       shop->table, item, quantity);
        rc = shop->library->run(shop, sql);
    }
    if (rc == 0)
        rc = shop->library->run(shop, "COMMIT");
    return rc;
}

int shop_drop(struct shop *shop, const char *table)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS %s", table);
    return shop->library->run(shop, sql);
}

int shop_read(struct shop *shop, int64_t item, struct stock *out)
{
    return shop->library->read(shop, item, out);
}

int shop_write(struct shop *shop, int64_t item, const struct stock *stock)
{
    return shop->library->write(shop, item, stock);
}

int shop_number(int64_t *to, const char *text, int64_t least, int64_t most)
{
    int64_t number = 0;

    if (*text == '\0')
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || number > most)
            return -1;
        number = number * 10 + (*text - '0');
    }
    if (number < least || number > most)
        return -1;
    *to = number;
    return 0;
}

static int hex(char digit)
{
    if (isdigit((unsigned char)digit))
        return digit - '0';
    return tolower((unsigned char)digit) - 'a' + 10;
}

int shop_url_decode(char *to, size_t size, const char *from, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        char byte = from[i];

        if (byte == '%' && i + 2 < length &&
            isxdigit((unsigned char)from[i + 1]) &&
            isxdigit((unsigned char)from[i + 2])) {
            byte = (char)(hex(from[i + 1]) * 16 + hex(from[i + 2]));
            i += 2;
        }
        if (used + 1 >= size)
            return -1;
        to[used++] = byte;
    }
    to[used] = '\0';
    return 0;
}

void shop_url_encode(char *to, size_t size, const char *from)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;

    for (; *from != '\0' && used + 3 < size; from++) {
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

char *shop_url_take(const char *url, const char *name, char **value)
{
    size_t length = strlen(name);
    const char *at = strchr(url, '?');
    char *rest = strdup(url);

    *value = NULL;
    if (rest == NULL)
        return NULL;
    for (; at != NULL; at = strchr(at + 1, '&')) {
        if (strncmp(at + 1, name, length) == 0 && at[length + 1] == '=') {
            const char *text = at + length + 2;
            size_t size = strcspn(text, "&");
            char *cut = rest + (at - url) + 1;

            *value = strndup(text, size);
            if (text[size] == '&')
                size++;
            else
                cut--; /* the last one: its '?' or '&' goes with it */
            memmove(cut, text + size, strlen(text + size) + 1);
            break;
        }
    }
    return rest;
}
