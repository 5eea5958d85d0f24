/*
 * test_charset.c - connections of the application whose texts are not UTF-8 are
 * refused: an order id that is sent over one could become another order's
 */
#include "suite.h"

#include <string.h>

struct setting {
    const char *sql;
    unsigned database;
};

static const struct setting others[] = {
    {"SET client_encoding = 'LATIN1'", ON_POSTGRES},
    {"SET client_encoding = 'SQL_ASCII'", ON_POSTGRES},
    {"SET NAMES latin1", ON_MYSQL},
    {"SET NAMES utf8mb3", ON_MYSQL},
    {"SET character_set_client = latin1", ON_MYSQL},
    {"SET character_set_connection = latin1", ON_MYSQL},
    {"SET character_set_results = latin1", ON_MYSQL},
};

static void assert_says_what_to_do(struct fixture *f)
{
    assert_contains(f->err.message, "UTF-8");
    assert_contains(f->err.message, f->database->bit == ON_POSTGRES
                                        ? "PQsetClientEncoding"
                                        : "mysql_set_character_set");
}

static void test_connection_of_another_character_set_is_refused(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct app app;
        sqlock_tx *tx;
        int rc;

        if (others[i].database != f->database->bit)
            continue;
        app_open(&app, f->database, f->url);
        app_run(&app, "%s", others[i].sql);
        rc = sqlock_tx_adopt(&tx, f->a, app.native, &f->err);
        if (rc == 0)
            print_error("adopted after %s\n", others[i].sql);
        assert_fails(SQLOCK_EINVAL, rc);
        assert_null(tx);
        assert_says_what_to_do(f);
        assert_false(app_in_transaction(&app));
        app_set_utf8(&app, true);
        assert_ok(sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
        assert_ok(sqlock_tx_commit(tx, &f->err));
        app_close(&app);
    }
}

/* After a change that the client library knows of, the next call is refused;
 * the transaction goes on when the character set is set back. */
static void test_character_set_changed_after_adoption_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_value id = sqlock_text("bestellung-\xc3\xbc-1");
    struct session s;

    session_open(f, &s, NULL);
    app_set_utf8(&s.app, false);
    assert_fails(SQLOCK_EINVAL, lock_one(&s, f->name, 0, &f->err));
    assert_says_what_to_do(f);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_execute(s.tx, "SELECT ?", &id, 1, NULL, &f->err));
    app_set_utf8(&s.app, true);
    assert_ok(lock_one(&s, f->name, 0, &f->err));
    session_commit(f, &s);
    session_close(&s);
}

static const struct test tests[] = {
    TEST_ON(test_connection_of_another_character_set_is_refused, ON_SERVERS,
            IN_SQLOCK),
    TEST_OF_ROWS(test_character_set_changed_after_adoption_is_refused,
                 ON_SERVERS, IN_SQLOCK),
};
const struct topic topic_charset = TOPIC(tests);
