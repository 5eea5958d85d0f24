/*
 * test_classify.c - of which statements of the application it is certain that
 * they leave nothing behind on the connection
 */
#include "support/test.h"

#include "tx/tx.h"

TEST(test_statements_that_keep_locks_are_found)
{
    static const char *const texts[] = {
        "SELECT 1",
        "select 1",
        " \t\r\n\fUPDATE a SET b = 1",
        "/* x */INSERT INTO a VALUES (1)",
        "/* x *//* y */ -- z\n# w\n DELETE FROM a",
        "-- x\r\nREPLACE INTO a VALUES (1)",
        "((SELECT 1))",
        "(/**/(\n-- x\nSELECT 1))",
        "/* SET x = 1 */ MERGE INTO a USING b ON true",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "VALUES (1)",
        "TABLE a",
        "SHOW TABLES",
        "EXPLAIN SELECT 1",
        "DESC a",
        "DESCRIBE a",
        "/***/ SELECT 1",
        "SELECT set_config('a', 'b', true)",
        "SELECT set_config('a', ?, TRUE ), set_config('c', 'd', true)",
        "SELECT pg_advisory_xact_lock(1)",
        "/* x */ SAVEPOINT a",
        "-- x\nRELEASE a",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_row(texts[i]);
        assert_true(lk_keeps_locks(texts[i]));
        assert_false(lk_rolls_back(texts[i]));
    }
    check_row(NULL);
}

TEST(test_what_is_not_certain_may_release_locks)
{
    static const char *const texts[] = {
        "",
        "(",
        "/* SELECT 1",
        "/*",
        "-- SELECT 1",
        "SET x = 1",
        "SELECTED",
        "/* SELECT */ SET x = 1",
        "-- SELECT\nSET x = 1",
        "/*! SET x = 1 */ SELECT 1",
        "/*!80000 SET x = 1 */",
        "/*M!100100 SET x = 1 */ SELECT 1",
        /* PostgreSQL nests them, MySQL does not. */
        "/* /* */ SET x = 1; -- */ SELECT 1",
        "/* /* */ SELECT 1 */ SET x = 1",
        /* For PostgreSQL the line ends at the carriage return. */
        "-- x\rSET x = y,\nSELECT 1",
        "CALL p()",
        "BEGIN",
        "ROLLBACK TO a",
        "PRAGMA query_only = 1",
        "SELECT set_config('a', 'b', false)",
        "SELECT set_config('a', 'b', true), SET_CONFIG('a', 'b', 'f')",
        "SELECT set_config('a', 'b', is_true)",
        "SELECT set_config('a', f(true), false)",
        "SELECT set_config('a,true)', 'b', false)",
        "SELECT set_config()",
        "SELECT set_config",
        "SELECT pg_try_advisory_lock_shared(1)",
        "SELECT GET_LOCK('a', 0)",
        "UPDATE pg_settings SET setting = 'off' WHERE name = 'x'",
        "WITH a AS (UPDATE PG_SETTINGS SET setting = 1 RETURNING 1) TABLE a",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_row(texts[i]);
        assert_false(lk_keeps_locks(texts[i]));
    }
    check_row(NULL);
}

TEST(test_rollbacks_are_found_behind_comments)
{
    assert_true(lk_rolls_back("/* x */ ROLLBACK"));
    assert_true(lk_rolls_back("-- x\nrollback to a"));
    assert_false(lk_rolls_back("/*! SET x = 1 */ ROLLBACK"));
    assert_false(lk_rolls_back("COMMIT"));
}
