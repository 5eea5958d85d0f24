/*
 * shop.h - the demo application's own tables, in its own client library
 *
 * A shop is one connection to one table of stock.  It knows nothing of locks:
 * read and write are two statements, and whatever happens between them is the
 * caller's business.
 */
#ifndef DEMO_SHOP_H
#define DEMO_SHOP_H

#include <stddef.h>
#include <stdint.h>

/* What the table says about one item. */
struct stock {
    int64_t quantity;
    int64_t sales; /* how many orders were deducted from it */
};

struct shop;

/* One client library.  Functions return 0, or -1 with shop->error filled. */
struct shop_library {
    const char *scheme; /* how its URLs begin */
    int (*open)(struct shop *shop, const char *url);
    void (*close)(struct shop *shop);
    /* One statement without parameters and without rows. */
    int (*run)(struct shop *shop, const char *sql);
    int (*read)(struct shop *shop, int64_t item, struct stock *out);
    int (*write)(struct shop *shop, int64_t item, const struct stock *stock);
};

struct shop {
    const struct shop_library *library;
    void *handle; /* the library's connection */
    char table[64];
    char server[96]; /* "SQLite 3.40.1" */
    char error[512];
};

extern const struct shop_library shop_sqlite;
extern const struct shop_library shop_postgres;
extern const struct shop_library shop_mysql;

/** Connect.  shop_close() must follow, also after a failure. */
int shop_open(struct shop *shop, const char *url, const char *table);
void shop_close(struct shop *shop);

/** Create the table with so many items, each with so much of it. */
int shop_create(struct shop *shop, int64_t items, int64_t quantity);

/** Drop @p table if it is there. */
int shop_drop(struct shop *shop, const char *table);

int shop_read(struct shop *shop, int64_t item, struct stock *out);
int shop_write(struct shop *shop, int64_t item, const struct stock *stock);

/** Fill shop->error.  @return -1 */
int shop_fail(struct shop *shop, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Read a whole number without a sign.
 *  @return -1 when @p text is none between @p least and @p most, which is at
 *          most INT64_MAX / 16 */
int shop_number(int64_t *to, const char *text, int64_t least, int64_t most);

/** Percent-decode @p length bytes of @p from.  @return -1: no room for them */
int shop_url_decode(char *to, size_t size, const char *from, size_t length);

/** Percent-encode a path; @p size is to be three times its length. */
void shop_url_encode(char *to, size_t size, const char *from);

/** Copy @p url without its query parameter @p name, whose value, as it stands
 *  there, goes to @p value (NULL: not given).  Both are to be freed.
 *  @return NULL when out of memory */
char *shop_url_take(const char *url, const char *name, char **value);

#endif /* DEMO_SHOP_H */
