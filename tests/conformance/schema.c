/*
 * schema.c - the lock table is created, and a table that cannot hold locks is
 * refused, with a message of one line that says what to do (F37, F61)
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/tap.h"

/* The name of a lock table beside the fixture's, and the options for it. */
struct place {
    struct fixture *f;
    char prefix[64];
    char table[72];
    sqlock_options options;
};

static void place_init(struct place *place, struct fixture *f)
{
    place->f = f;
    (void)snprintf(place->prefix, sizeof place->prefix, "%sN%u_", f->prefix,
                   f->serial);
    (void)snprintf(place->table, sizeof place->table, "%sLOCK", place->prefix);
    place->options = fixture_options(f);
    place->options.table_prefix = place->prefix;
}

static void place_drop(struct place *place)
{
    sql_drop_locks(&place->f->sql, place->prefix);
}

/* Create the table in the fixture's layout. */
static void place_create(struct place *place)
{
    struct fixture *f = place->f;

    assert_ok(
        sqlock_schema_create(f->url, &place->options, f->layout, &f->err));
}

static sqlock_layout layout_at(struct fixture *f, const sqlock_options *options)
{
    sqlock_registry *registry = fixture_registry(f, options);
    sqlock_layout layout = sqlock_registry_layout(registry);

    registry_end(registry);
    return layout;
}

/* Assert that the table is refused, in a message of one line that contains
 * `words`. */
static void expect_refused(struct place *place, const char *words)
{
    sqlock_registry *registry = (sqlock_registry *)1;
    int rc = sqlock_registry_open(&registry, place->f->url, &place->options,
                                  &place->f->err);

    assert_code(SQLOCK_ESCHEMA, rc, &place->f->err);
    assert_contains(place->f->err.message, words);
    assert_null(registry);
}

/* Column types of a database. */
struct types {
    const char *id;   /* 36 characters */
    const char *name; /* 100 characters */
    const char *time;
};

static struct types types_of(const struct fixture *f)
{
    static const struct types postgres = {"CHAR(36)", "VARCHAR(100)",
                                          "TIMESTAMP"};
    static const struct types mysql = {"CHAR(36)", "VARCHAR(100)",
                                       "DATETIME(6)"};
    static const struct types sqlite = {"TEXT", "TEXT", "INTEGER"};

    return f->database->bit == ON_POSTGRES ? postgres
           : f->database->bit == ON_MYSQL  ? mysql
                                           : sqlite;
}

/* How to create a Spring table; members that are NULL stand for Spring's
 * own. */
struct shape {
    const char *create;  /* "CREATE TABLE" */
    const char *key;     /* type of LOCK_KEY */
    const char *created; /* type of CREATED_DATE */
    bool has_expiry;     /* EXPIRED_AFTER, of the right type */
    const char *more;    /* ", FENCE ..." */
    const char *primary; /* ", PRIMARY KEY (...)" */
    const char *tail;    /* "ENGINE=..." */
};

static const char *either(const char *given, const char *usual)
{
    return given != NULL ? given : usual;
}

static void create(struct place *place, const struct shape *shape)
{
    struct types types = types_of(place->f);
    char expiry[80] = "";

    if (shape->has_expiry)
        (void)snprintf(expiry, sizeof expiry, ", EXPIRED_AFTER %s NOT NULL",
                       types.time);
    (void)sql_run(&place->f->sql,
                  "%s %s (LOCK_KEY %s NOT NULL, REGION %s NOT NULL,"
                  " CLIENT_ID %s, CREATED_DATE %s NOT NULL%s%s%s) %s",
                  either(shape->create, "CREATE TABLE"), place->table,
                  either(shape->key, types.id), types.name, types.id,
                  either(shape->created, types.time), expiry,
                  either(shape->more, ""),
                  either(shape->primary, ", PRIMARY KEY (LOCK_KEY, REGION)"),
                  either(shape->tail, ""));
}

/* The columns of the first sqlock, beside those of Spring 7. */
#define TEXTS ", LOCK_NAME VARCHAR(255), HOLDER VARCHAR(255)"
#define NAMES ", FENCE BIGINT NOT NULL" TEXTS

/* A table that is refused. */
struct misfit {
    const char *name;
    unsigned databases;
    const char *words; /* in the message */
    struct shape shape;
};
#define REFUSE(f, misfits)                                                     \
    refuse_all((f), (misfits), sizeof(misfits) / sizeof *(misfits))

static void refuse_all(struct fixture *f, const struct misfit *misfits,
                       size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        struct place place;

        if ((misfits[i].databases & f->database->bit) == 0)
            continue;
        check_row(misfits[i].name);
        fixture_next(f);
        place_init(&place, f);
        create(&place, &misfits[i].shape);
        expect_refused(&place, misfits[i].words);
        place_drop(&place);
    }
    check_row(NULL);
}

TEST_ON(test_a_missing_table_names_the_command_that_makes_it, ON_ALL, IN_SQLOCK)
{
    struct place place;

    place_init(&place, f);
    expect_refused(&place, place.table);
    expect_refused(&place, "sqlock init");
}

TEST(test_creating_makes_a_table_that_is_found)
{
    struct place place;

    place_init(&place, f);
    place_create(&place);
    assert_int_equal(layout_at(f, &place.options), f->layout);
    place_drop(&place);
}

TEST(test_creating_again_changes_nothing)
{
    sqlock_options options = fixture_options(f);
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, 0);
    assert_ok(sqlock_schema_create(f->url, &options, f->layout, &f->err));
    assert_true(fixture_row(f, f->name).exists);
    lock_renew(lock, 0);
    lock_give(lock);
    lock_drop(lock);
}

/* A failure of the CREATE TABLE of locks. */
struct creation {
    const char *name;
    int before; /* returned instead of sending it; 0: none */
    int after;  /* returned instead of its answer; 0: none */
    int expected;
    bool is_over; /* the statement was seen */
};

static bool is_hit(struct creation *creation, const struct tap_event *event)
{
    bool is_first = !creation->is_over && event->text != NULL &&
                    strstr(event->text, "LOCK (") != NULL;

    creation->is_over = creation->is_over || is_first;
    return is_first;
}

static int creation_before(void *context, const struct tap_event *event)
{
    struct creation *creation = context;

    return creation->before != 0 && is_hit(creation, event) ? creation->before
                                                            : 0;
}

static int creation_after(void *context, const struct tap_event *event, int rc)
{
    struct creation *creation = context;

    return creation->after != 0 && is_hit(creation, event) ? creation->after
                                                           : rc;
}

/* After a CREATE TABLE that failed, or got no answer, the library looks for the
 * table: if it exists, the call succeeds.  Otherwise the code says why it does
 * not, and the next call creates it. */
TEST_ON(test_a_failed_creation_says_why, ON_ALL, IN_SQLOCK)
{
    static struct creation rows[] = {
        {.name = "answer lost", .after = SQLOCK_EUNCERTAIN, .expected = 0},
        {.name = "lost on the way",
         .before = SQLOCK_EUNCERTAIN,
         .expected = SQLOCK_EUNREACHABLE},
        {.name = "time limit",
         .before = SQLOCK_ECANCELED,
         .expected = SQLOCK_EBUSY},
        {.name = "conflict", .before = SQLOCK_ERETRY, .expected = SQLOCK_EBUSY},
        {.name = "locked", .before = SQLOCK_EBUSY, .expected = SQLOCK_EBUSY},
        {.name = "refused",
         .before = SQLOCK_EDATABASE,
         .expected = SQLOCK_EDATABASE},
    };
    char url[1024];

    tap_install();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct place place;
        int rc;

        check_row(rows[i].name);
        fixture_next(f);
        place_init(&place, f);
        tap_reset();
        tap_hooks(creation_before, creation_after, &rows[i]);
        rc = sqlock_schema_create(tap_url(url, f->url), &place.options,
                                  f->layout, &f->err);
        assert_code(rows[i].expected, rc, &f->err);
        assert_true(rows[i].is_over);
        place_create(&place);
        place_drop(&place);
    }
    check_row(NULL);
}

/* Another session's open transaction has created the table, or has SQLite's
 * write lock: EBUSY.  After its rollback the table can be created. */
TEST_ON(test_creating_beside_an_unfinished_transaction, ON_POSTGRES | ON_SQLITE,
        IN_SQLOCK)
{
    struct place place;
    uint32_t usual_ms;

    place_init(&place, f);
    usual_ms = place.options.connect_timeout_ms;
    /* for the connection, and again for the statement */
    place.options.connect_timeout_ms = 3000 * SLOWNESS;
    assert_int_equal(sql_begin(&f->sql), 0);
    (void)sql_run(&f->sql, "CREATE TABLE %s (ID INTEGER)", place.table);
    assert_fails(SQLOCK_EBUSY, sqlock_schema_create(f->url, &place.options,
                                                    f->layout, &f->err));
    assert_int_equal(sql_rollback(&f->sql), 0);
    place.options.connect_timeout_ms = usual_ms;
    place_create(&place);
    place_drop(&place);
}

TEST(test_creating_over_another_layout_is_a_conflict)
{
    sqlock_options options = fixture_options(f);
    int layout;

    for (layout = 0; layout < SQLOCK_LAYOUTS; layout++) {
        if (layout == (int)f->layout)
            continue;
        assert_fails(SQLOCK_ECONFLICT,
                     sqlock_schema_create(f->url, &options,
                                          (sqlock_layout)layout, &f->err));
        assert_int_equal(layout_at(f, &options), f->layout);
    }
}

/* Run the statements of a text one by one. */
static void run_text(struct fixture *f, char *text)
{
    while (*text != '\0') {
        char *end = strstr(text, ";\n");

        if (end == NULL)
            break;
        *end = '\0';
        (void)sql_run(&f->sql, "%s", text);
        text = end + 2;
    }
}

TEST(test_the_schema_text_can_be_run_by_hand)
{
    struct place place;
    char *text;

    place_init(&place, f);
    assert_ok(
        sqlock_schema_text(&text, f->url, &place.options, f->layout, &f->err));
    run_text(f, text);
    sqlock_free(text);
    assert_int_equal(layout_at(f, &place.options), f->layout);
    place_drop(&place);
}

/* Tables with the columns of Spring's documentation and the database's default
 * collation can be used. */
TEST_ON(test_springs_own_tables_are_recognized, ON_ALL, IN_SPRING)
{
    struct shape shape = {.has_expiry = f->layout == SQLOCK_LAYOUT_SPRING7};
    struct place place;
    sqlock_registry *registry;
    sqlock_lock *lock;

    place_init(&place, f);
    create(&place, &shape);
    registry = fixture_registry(f, &place.options);
    assert_int_equal(sqlock_registry_layout(registry), f->layout);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    lock_renew(lock, 0);
    lock_give(lock);
    registry_end(registry);
    place_drop(&place);
}

TEST_ON(test_F37_a_table_without_its_primary_key_is_refused, ON_ALL, IN_SQLOCK)
{
    static const char words[] = "primary key";
    static const struct misfit misfits[] = {
        {"no key", ON_ALL, words, .shape.primary = ""},
        {"no region in the key", ON_ALL, words,
         .shape.primary = ", PRIMARY KEY (LOCK_KEY)"},
        {"the region only", ON_ALL, words,
         .shape.primary = ", PRIMARY KEY (REGION)"},
        {"one column too many", ON_ALL, words,
         .shape.primary = ", PRIMARY KEY (LOCK_KEY, REGION, CREATED_DATE)"},
        {"another unique one", ON_ALL, words,
         .shape.primary = ", UNIQUE (LOCK_KEY, CREATED_DATE)"},
    };

    REFUSE(f, misfits);
}

static void drop_primary_key(struct fixture *f, const char *table)
{
    char constraint[160];

    if (f->database->bit != ON_POSTGRES) {
        (void)sql_run(&f->sql, "ALTER TABLE %s DROP PRIMARY KEY", table);
        return;
    }
    assert_true(sql_text(&f->sql, constraint, sizeof constraint,
                         "SELECT conname FROM pg_constraint WHERE conrelid"
                         " = '%s'::regclass AND contype = 'p'",
                         table));
    (void)sql_run(&f->sql, "ALTER TABLE %s DROP CONSTRAINT %s", table,
                  constraint);
}

/* The primary key is dropped while a registry is open, and a key gets a second
 * row.  Opening a registry and reading the lock fail with ESCHEMA. */
TEST_ON(test_F37_two_rows_for_one_key_are_an_error, ON_SERVERS, IN_SQLOCK)
{
    sqlock_registry *late = (sqlock_registry *)1;
    sqlock_info *info = NULL;
    struct place place;
    sqlock_registry *registry;
    sqlock_lock *lock;

    place_init(&place, f);
    place_create(&place);
    registry = fixture_registry(f, &place.options);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    drop_primary_key(f, place.table);
    (void)sql_run(&f->sql, "INSERT INTO %s SELECT * FROM %s", place.table,
                  place.table);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_registry_open(&late, f->url, &place.options, &f->err));
    assert_null(late);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_show(registry, f->name, &info, &f->err));
    assert_null(info);
    (void)sqlock_registry_close(registry, NULL);
    place_drop(&place);
}

TEST_ON(test_missing_columns_are_named, ON_ALL, IN_SQLOCK)
{
    static const char *const columns[] = {"LOCK_KEY", "REGION", "CLIENT_ID",
                                          "CREATED_DATE"};
    struct types types = types_of(f);
    size_t i;
    size_t k;

    for (i = 0; i < 4; i++) {
        struct place place;
        char body[400] = "";
        size_t used = 0;

        fixture_next(f);
        place_init(&place, f);
        for (k = 0; k < 4; k++)
            if (k != i)
                used += (size_t)snprintf(body + used, sizeof body - used,
                                         "%s%s %s NOT NULL",
                                         used > 0 ? ", " : "", columns[k],
                                         k == 1   ? types.name
                                         : k == 3 ? types.time
                                                  : types.id);
        (void)sql_run(&f->sql, "CREATE TABLE %s (%s)", place.table, body);
        expect_refused(&place, columns[i]);
        place_drop(&place);
    }
}

TEST_ON(test_only_some_of_our_columns_are_refused, ON_ALL, IN_SQLOCK)
{
    static const struct misfit misfits[] = {
        {"FENCE without EXPIRED_AFTER", ON_ALL, "FENCE",
         .shape.more = ", FENCE BIGINT DEFAULT 0 NOT NULL"},
        {"no QUEUE", ON_ALL, "upgrade-queue.sql", .shape.has_expiry = true,
         .shape.more = NAMES},
        {"no LEADER", ON_ALL, "upgrade-leader.sql", .shape.has_expiry = true,
         .shape.more = NAMES ", QUEUE TEXT, SHARERS TEXT"},
        {"HOLDER without FENCE", ON_ALL, "HOLDER", .shape.has_expiry = true,
         .shape.more = ", HOLDER VARCHAR(255)"},
    };

    REFUSE(f, misfits);
}

TEST_ON(test_wrong_types_are_refused, ON_ALL, IN_SQLOCK)
{
    static const struct misfit misfits[] = {
        {"CREATED_DATE is a text", ON_ALL, "CREATED_DATE",
         .shape.created = "VARCHAR(40)"},
        {"LOCK_KEY is a number", ON_ALL, "LOCK_KEY", .shape.key = "INTEGER"},
        {"EXPIRED_AFTER is a text", ON_ALL, "EXPIRED_AFTER",
         .shape.more = ", EXPIRED_AFTER VARCHAR(40) NOT NULL"},
        {"QUEUE is short", ON_POSTGRES | ON_MYSQL, "QUEUE",
         .shape.has_expiry = true,
         .shape.more = NAMES ", QUEUE VARCHAR(9), SHARERS TEXT, LEADER TEXT"},
        {"FENCE is a text", ON_ALL, "FENCE", .shape.has_expiry = true,
         .shape.more = ", FENCE VARCHAR(20) NOT NULL" TEXTS
                       ", QUEUE TEXT, SHARERS TEXT, LEADER TEXT"},
    };

    REFUSE(f, misfits);
}

/* MySQL converts TIMESTAMP by the session's time zone; a DATE has no time;
 * SQLite's times are integers. */
TEST_ON(test_F13_types_that_lose_time_are_refused, ON_ALL, IN_SQLOCK)
{
    static const char words[] = "CREATED_DATE";
    static const struct misfit misfits[] = {
        {"a date", ON_ALL, words, .shape.created = "DATE"},
        {"through a zone", ON_MYSQL, words, .shape.created = "TIMESTAMP(6)"},
        {"no integer", ON_SQLITE, words, .shape.created = "TIMESTAMP"},
    };

    REFUSE(f, misfits);
}

TEST_ON(test_F61_tables_that_forget_are_refused, ON_SERVERS, IN_SQLOCK)
{
    static const struct misfit misfits[] = {
        {"unlogged", ON_POSTGRES, "unlogged",
         .shape.create = "CREATE UNLOGGED TABLE"},
        {"in memory", ON_MYSQL, "MEMORY", .shape.tail = "ENGINE=MEMORY"},
        {"MyISAM", ON_MYSQL, "MyISAM", .shape.tail = "ENGINE=MyISAM"},
    };

    REFUSE(f, misfits);
}

TEST_ON(test_a_view_is_refused, ON_ALL, IN_SQLOCK)
{
    struct place place;

    place_init(&place, f);
    (void)sql_run(&f->sql, "CREATE VIEW %s AS SELECT * FROM %s", place.table,
                  f->table);
    expect_refused(&place, "view");
    (void)sql_run(&f->sql, "DROP VIEW %s", place.table);
}

/* The prefix names the schema of the fixture's table, too: both registries use
 * one table.  A schema that does not exist is refused. */
TEST_ON(test_a_prefix_may_name_the_schema, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    char schema[64] = "main";
    char prefix[128];
    sqlock_registry *registry;
    sqlock_lock *lock;
    sqlock_lock *same = lock_obtain(f->a, f->name);

    if (f->database->bit != ON_SQLITE)
        assert_true(sql_text(&f->sql, schema, sizeof schema, "SELECT %s",
                             f->database->bit == ON_POSTGRES
                                 ? "current_schema()"
                                 : "DATABASE()"));
    (void)snprintf(prefix, sizeof prefix, "%s.%s", schema, f->prefix);
    options.table_prefix = prefix;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    assert_busy(same);
    lock_give(lock);
    lock_drop(same);
    registry_end(registry);
    (void)snprintf(prefix, sizeof prefix, "no_such_schema.%s", f->prefix);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_registry_open(&registry, f->url, &options, &f->err));
}

/* The table is dropped while a registry with a held lock is open. */
TEST_ON(test_a_table_that_goes_is_told, ON_ALL, IN_ALL)
{
    sqlock_registry *registry;
    sqlock_lock *lock;
    struct place place;

    place_init(&place, f);
    place_create(&place);
    registry = fixture_registry(f, &place.options);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    place_drop(&place);
    assert_fails(SQLOCK_ESCHEMA, sqlock_release(lock, &f->err));
    assert_int_equal(sqlock_hold_count(lock), 0);
    assert_fails(SQLOCK_ESCHEMA, lock_try(lock, 0, 0, &f->err));
    assert_false(sqlock_is_held(lock));
    (void)sqlock_registry_close(registry, NULL);
}
