/*
 * kinds.c - each kind of table that a database has holds locks, or is refused
 * by init, open and doctor in one sentence; so are tables of stock
 */
#include "diagnosis.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "sqlock/once.h"
#include "sqlock/stock.h"

#define STEPS 6

/* How to make a table of that kind of the one that init has made.  In each
 * statement % stands for the prefix of the tables, LOCK for its suffix. */
struct kind {
    const char *name;
    unsigned databases;
    const char *words; /* of the refusal; NULL: it holds locks */
    const char *make[STEPS];
    const char *drop[STEPS]; /* what DROP TABLE of the lock table leaves, or
                                cannot drop */
    /* what an administrator does before and after */
    const char *before[STEPS], *after[STEPS];
};

static const struct kind kinds[] = {
    {"ordinary", ON_ALL, NULL, .make = {NULL}},
    {"unlogged", ON_POSTGRES, "an unlogged table",
     .make = {"ALTER TABLE %LOCK SET UNLOGGED"}},
    {"view", ON_ALL, "a view",
     .make = {"ALTER TABLE %LOCK RENAME TO %BASE",
              "CREATE VIEW %LOCK AS SELECT * FROM %BASE"},
     .drop = {"DROP VIEW %LOCK", "ALTER TABLE %BASE RENAME TO %LOCK"}},
    {"materialized view", ON_POSTGRES, "a materialized view",
     .make = {"ALTER TABLE %LOCK RENAME TO %BASE",
              "CREATE MATERIALIZED VIEW %LOCK AS SELECT * FROM %BASE"},
     .drop = {"DROP MATERIALIZED VIEW %LOCK",
              "ALTER TABLE %BASE RENAME TO %LOCK"}},
    {"foreign table", ON_POSTGRES, "a foreign table",
     .before = {"CREATE FOREIGN DATA WRAPPER %wrapper",
                "CREATE SERVER %server FOREIGN DATA WRAPPER %wrapper",
                "GRANT USAGE ON FOREIGN SERVER %server TO PUBLIC"},
     .make = {"ALTER TABLE %LOCK RENAME TO %BASE",
              "CREATE FOREIGN TABLE %LOCK (lock_key char(36)) SERVER %server"},
     .drop = {"DROP FOREIGN TABLE %LOCK", "ALTER TABLE %BASE RENAME TO %LOCK"},
     .after = {"DROP FOREIGN DATA WRAPPER %wrapper CASCADE"}},
    {"parent of another", ON_POSTGRES, "from which another one inherits",
     .make = {"CREATE TABLE %CHILD () INHERITS (%LOCK)"},
     .drop = {"DROP TABLE %CHILD"}},
    {"heir of another", ON_POSTGRES, NULL,
     .make = {"ALTER TABLE %LOCK RENAME TO %BASE",
              "CREATE TABLE %LOCK (PRIMARY KEY (lock_key, region))"
              " INHERITS (%BASE)"},
     .drop = {"DROP TABLE %LOCK", "ALTER TABLE %BASE RENAME TO %LOCK"}},
    {"partitioned", ON_POSTGRES, "a partitioned table",
     .make = {"ALTER TABLE %LOCK RENAME TO %BASE",
              "CREATE TABLE %LOCK (LIKE %BASE INCLUDING DEFAULTS"
              " INCLUDING CONSTRAINTS INCLUDING INDEXES)"
              " PARTITION BY HASH (lock_key)",
              "CREATE TABLE %PART PARTITION OF %LOCK"
              " FOR VALUES WITH (MODULUS 1, REMAINDER 0)"},
     .drop = {"DROP TABLE %BASE"}},
    {"partition", ON_POSTGRES, "a partition of another table",
     .make = {"ALTER TABLE %LOCK RENAME TO %BASE",
              "CREATE TABLE %WHOLE (LIKE %BASE INCLUDING DEFAULTS"
              " INCLUDING CONSTRAINTS INCLUDING INDEXES)"
              " PARTITION BY HASH (lock_key)",
              "CREATE TABLE %LOCK PARTITION OF %WHOLE"
              " FOR VALUES WITH (MODULUS 2, REMAINDER 0)"},
     .drop = {"DROP TABLE %WHOLE", "ALTER TABLE %BASE RENAME TO %LOCK"}},
    {"with rules", ON_POSTGRES, "a table with rules",
     .make = {"CREATE RULE quiet AS ON INSERT TO %LOCK DO ALSO NOTHING"}},
    {"that had rules", ON_POSTGRES, NULL,
     .make = {"CREATE RULE quiet AS ON INSERT TO %LOCK DO ALSO NOTHING",
              "DROP RULE quiet ON %LOCK"}},
    {"sequence", ON_POSTGRES, "no table",
     .make = {"ALTER TABLE %LOCK RENAME TO %BASE", "CREATE SEQUENCE %LOCK"},
     .drop = {"DROP SEQUENCE %LOCK", "ALTER TABLE %BASE RENAME TO %LOCK"}},
    {"MEMORY", ON_MYSQL, "a MEMORY table",
     .make = {"ALTER TABLE %LOCK DROP COLUMN QUEUE, DROP COLUMN SHARERS,"
              " DROP COLUMN LEADER",
              "ALTER TABLE %LOCK ENGINE=MEMORY"}},
    {"MyISAM", ON_MYSQL, "a MyISAM table",
     .make = {"ALTER TABLE %LOCK ENGINE=MyISAM"}},
    {"Aria", ON_MYSQL, "an Aria table",
     .make = {"/*M! ALTER TABLE %LOCK ENGINE=Aria */"}},
    {"partitioned", ON_MYSQL, NULL,
     .make = {"ALTER TABLE %LOCK PARTITION BY KEY (LOCK_KEY) PARTITIONS 3"}},
    {"system-versioned", ON_MYSQL, "a system-versioned table",
     .make = {"/*M! ALTER TABLE %LOCK ADD SYSTEM VERSIONING */"}},
    {"sequence", ON_MYSQL, "a sequence",
     .make = {"/*M! RENAME TABLE %LOCK TO %BASE */",
              "/*M! CREATE SEQUENCE %LOCK */"},
     .drop = {"/*M! DROP SEQUENCE %LOCK */",
              "/*M! RENAME TABLE %BASE TO %LOCK */"}},
    {"virtual", ON_SQLITE, "a virtual table",
     .make = {"ALTER TABLE %LOCK RENAME TO %BASE",
              "CREATE VIRTUAL TABLE %LOCK USING fts5 (LOCK_KEY)"},
     .drop = {"DROP TABLE %LOCK", "ALTER TABLE %BASE RENAME TO %LOCK"}},
    {"with row ids", ON_SQLITE, NULL,
     .make =
         {"DROP TABLE %LOCK",
          "CREATE TABLE %LOCK (LOCK_KEY TEXT NOT NULL, REGION TEXT NOT NULL,"
          " CLIENT_ID TEXT, CREATED_DATE INTEGER NOT NULL,"
          " EXPIRED_AFTER INTEGER NOT NULL, FENCE INTEGER NOT NULL"
          " DEFAULT 0, LOCK_NAME TEXT, HOLDER TEXT, QUEUE TEXT,"
          " SHARERS TEXT, LEADER TEXT, PRIMARY KEY (LOCK_KEY, REGION))"}},
    {"strict", ON_SQLITE, NULL,
     .make =
         {"DROP TABLE %LOCK",
          "CREATE TABLE %LOCK (LOCK_KEY TEXT NOT NULL, REGION TEXT NOT NULL,"
          " CLIENT_ID TEXT, CREATED_DATE INTEGER NOT NULL,"
          " EXPIRED_AFTER INTEGER NOT NULL, FENCE INTEGER NOT NULL"
          " DEFAULT 0, LOCK_NAME TEXT, HOLDER TEXT, QUEUE TEXT,"
          " SHARERS TEXT, LEADER TEXT, PRIMARY KEY (LOCK_KEY, REGION)) "
          "STRICT"}},
};

/* The name of a lock table beside the fixture's, and the options for it. */
struct place {
    struct fixture *f;
    char prefix[48];
    sqlock_options options;
};

/* Make a lock table with a prefix of its own, in sqlock's layout. */
static void place_init(struct place *place, struct fixture *f)
{
    place->f = f;
    (void)snprintf(place->prefix, sizeof place->prefix, "K%ldN%u_",
                   (long)getpid(), f->serial);
    place->options = fixture_options(f);
    place->options.table_prefix = place->prefix;
    assert_ok(sqlock_schema_create(f->url, &place->options,
                                   SQLOCK_LAYOUT_SQLOCK, &f->err));
}

/* Run statements in which % stands for the prefix. */
static void run_all(const struct place *place, struct sql *sql,
                    const char *const *statements)
{
    for (int i = 0; i < STEPS && statements[i] != NULL; i++) {
        char text[1024];
        size_t length = 0;

        for (const char *at = statements[i]; *at != '\0'; at++)
            if (*at == '%')
                length += (size_t)snprintf(text + length, sizeof text - length,
                                           "%s", place->prefix);
            else
                text[length++] = *at;
        text[length] = '\0';
        (void)sql_run(sql, "%s", text);
    }
}

static void run_as_admin(const struct place *place,
                         const char *const *statements)
{
    struct sql admin;
    int rc = sql_open(&admin, place->f->database,
                      database_admin_url(place->f->database));

    assert_lock_ok(rc, &admin.err);
    run_all(place, &admin, statements);
    sql_close(&admin);
}

static void expect_locks(const struct place *place)
{
    struct fixture *f = place->f;
    sqlock_registry *a = fixture_registry(f, &place->options);
    sqlock_registry *b = fixture_registry(f, &place->options);
    sqlock_lock *lock = lock_obtain(a, f->name);
    sqlock_lock *same = lock_obtain(b, f->name);

    lock_take(lock, 0);
    assert_busy(same);
    lock_give(lock);
    lock_take(same, 0);
    lock_renew(same, 0);
    lock_give(same);
    lock_drop(lock);
    lock_drop(same);
    registry_end(a);
    registry_end(b);
}

static void expect_refused(const struct place *place, const char *words)
{
    struct fixture *f = place->f;
    sqlock_registry *registry = NULL;
    struct diagnosis found;

    assert_fails(
        SQLOCK_ESCHEMA,
        sqlock_registry_open(&registry, f->url, &place->options, &f->err));
    assert_contains(f->err.message, words);
    assert_contains(f->err.message, "`sqlock init`");
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_schema_create(f->url, &place->options,
                                      SQLOCK_LAYOUT_SQLOCK, &f->err));
    assert_contains(f->err.message, words);
    found = diagnosis_make(f, f->url, &place->options);
    assert_int_equal(diagnosis_worst(&found, "layout"), SQLOCK_FAILURE);
    assert_contains(diagnosis_find(&found, "layout")->found, words);
    diagnosis_clear(&found);
}

TEST_ON(test_each_kind_of_table_holds_locks_or_is_refused, ON_ALL, IN_SQLOCK)
{
    struct place place;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if ((kinds[i].databases & f->database->bit) == 0 ||
            (strncmp(kinds[i].make[0] != NULL ? kinds[i].make[0] : "", "/*M!",
                     4) == 0 &&
             fixture_is_oracles(f)))
            continue;
        check_row(kinds[i].name);
        fixture_next(f);
        place_init(&place, f);
        if (kinds[i].before[0] != NULL)
            run_as_admin(&place, kinds[i].before);
        (void)sql_run(&f->sql, "DROP VIEW IF EXISTS %sLOCK_NOW", place.prefix);
        run_all(&place, &f->sql, kinds[i].make);
        if (kinds[i].words != NULL)
            expect_refused(&place, kinds[i].words);
        else
            expect_locks(&place);
        run_all(&place, &f->sql, kinds[i].drop);
        if (kinds[i].after[0] != NULL)
            run_as_admin(&place, kinds[i].after);
        sql_drop_locks(&f->sql, place.prefix);
    }
    check_row(NULL);
}

/* A table of records, or of stock, that forgets after a crash. */
TEST_ON(test_tables_beside_the_locks_are_refused_alike, ON_SERVERS, IN_SQLOCK)
{
    static const char *const names[] = {"STOCK", "STOCK_ENTRY",
                                        "STOCK_RESERVATION"};
    bool is_postgres = f->database->bit == ON_POSTGRES;
    sqlock_registry *registry;
    sqlock_stock *stock = NULL;
    struct place place;

    place_init(&place, f);
    assert_ok(sqlock_stock_schema_create(f->url, &place.options, &f->err));
    registry = fixture_registry(f, &place.options);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_row(names[i]);
        (void)sql_run(&f->sql, "ALTER TABLE %s%s %s", place.prefix, names[i],
                      is_postgres ? "SET UNLOGGED" : "ENGINE=MyISAM");
        assert_fails(SQLOCK_ESCHEMA,
                     sqlock_stock_open(&stock, registry, NULL, &f->err));
        assert_contains(f->err.message,
                        is_postgres ? "an unlogged table" : "a MyISAM table");
        assert_fails(SQLOCK_ESCHEMA, sqlock_stock_schema_create(
                                         f->url, &place.options, &f->err));
        assert_contains(f->err.message, "`sqlock stock init`");
        (void)sql_run(&f->sql, "ALTER TABLE %s%s %s", place.prefix, names[i],
                      is_postgres ? "SET LOGGED" : "ENGINE=InnoDB");
    }
    check_row(NULL);
    registry_end(registry);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)sql_run(&f->sql, "DROP TABLE %s%s", place.prefix, names[i]);
    sql_drop_locks(&f->sql, place.prefix);
}

/* Its name is quoted in the prefix, whatever the database's quotes are. */
TEST_ON(test_a_schema_with_a_hyphen_can_be_named, ON_SERVERS, IN_SQLOCK)
{
    static const char *const make[][STEPS] = {
        {"CREATE SCHEMA \"%\"", "GRANT ALL ON SCHEMA \"%\" TO PUBLIC"},
        {"CREATE DATABASE `%`", "GRANT ALL ON `%`.* TO sqlock_test"}};
    static const char *const drop[][STEPS] = {{"DROP SCHEMA \"%\" CASCADE"},
                                              {"DROP DATABASE `%`"}};
    int which = f->database->bit == ON_POSTGRES ? 0 : 1;
    struct place place = {.f = f, .options = fixture_options(f)};
    char prefix[64];

    (void)snprintf(place.prefix, sizeof place.prefix, "My-app %ld",
                   (long)getpid());
    (void)snprintf(prefix, sizeof prefix, "\"%s\".int_", place.prefix);
    place.options.table_prefix = prefix;
    run_as_admin(&place, make[which]);
    assert_ok(sqlock_schema_create(f->url, &place.options, SQLOCK_LAYOUT_SQLOCK,
                                   &f->err));
    expect_locks(&place);
    assert_ok(sqlock_stock_schema_create(f->url, &place.options, &f->err));
    assert_ok(sqlock_once_schema_create(f->url, &place.options, &f->err));
    run_as_admin(&place, drop[which]);
}
