/*
 * test_retention.c - old orders are removed in pages, while other threads sell;
 * and the index by which they are found
 */
#include "suite.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "support/workers.h"

#define OLD_DAYS 100 /* older than the default */

/* Write SQL for a time so many days before that of a column; return `out`. */
static const char *earlier(const struct fixture *f, const char *column,
                           int days, char out[128])
{
    if (f->database->bit == ON_POSTGRES)
        (void)snprintf(out, 128, "%s - interval '%d days'", column, days);
    else if (f->database->bit == ON_MYSQL)
        (void)snprintf(out, 128, "TIMESTAMPADD(DAY, -%d, %s)", days, column);
    else
        (void)snprintf(out, 128, "%s - %" PRId64, column,
                       days * INT64_C(86400000000));
    return out;
}

static sqlock_stock_reaped reap(struct fixture *f, sqlock_stock *stock,
                                bool dry_run)
{
    sqlock_stock_reap_options options = SQLOCK_STOCK_REAP_INIT;
    sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;

    options.dry_run = dry_run;
    assert_ok(sqlock_stock_reap(stock, &options, &reaped, &f->err));
    return reaped;
}

/* --- many --- */

#define MANY 2300 /* orders of three rows: several pages */
#define REAPERS 3
#define SELLERS 3

struct crowd_of_old {
    sqlock_stock *stocks[2];
    const char *item;
    atomic_llong removed;
    atomic_int reaping;
    atomic_int sold;
};

/* Insert MANY old orders of three entries each, past the library.  PostgreSQL
 * believes that there are few, as it does until autovacuum has seen them. */
static void write_old_orders(struct fixture *f, const char *item)
{
    char entry[64];
    char time[128];
    const char *now = f->database->bit == ON_POSTGRES
                          ? "(clock_timestamp() AT TIME ZONE 'UTC')"
                      : f->database->bit == ON_MYSQL ? "UTC_TIMESTAMP(6)"
                                                     : "1700000000000000";

    (void)shop_table(f, "STOCK_ENTRY", entry);
    (void)earlier(f, now, OLD_DAYS, time);
    if (f->database->bit == ON_POSTGRES)
        (void)sql_run(&f->sql, "VACUUM ANALYZE %s", entry);
    for (int i = 0; i < MANY; i += 50) {
        char rows[50 * 3 * 220];
        int used = 0;

        for (int k = 0; k < 50 * 3; k++)
            used += snprintf(rows + used, sizeof rows - (size_t)used,
                             "%s('%s/%05d', %d, '%s', 'D', 1, 0, 'I', 0, %s)",
                             k == 0 ? "" : ", ", item, i + k / 3, k % 3, item,
                             time);
        (void)sql_run(&f->sql, "INSERT INTO %s VALUES %s", entry, rows);
    }
}

static int reap_or_sell(struct worker *worker)
{
    struct crowd_of_old *crowd = worker->context;
    sqlock_stock *stock = crowd->stocks[worker->index % 2];

    if (worker->index < REAPERS) {
        sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;

        int rc = sqlock_stock_reap(stock, NULL, &reaped, &worker->err);

        atomic_fetch_add(&crowd->removed, reaped.entries);
        atomic_fetch_sub(&crowd->reaping, 1);
        return rc == 0 ? 0
                       : worker_fail(worker, "a reap gave %d: %s", rc,
                                     worker->err.message);
    }
    for (int i = 0; i < 20 || atomic_load(&crowd->reaping) > 0; i++) {
        char order[96];

        (void)snprintf(order, sizeof order, "%s/new/%u/%d", crowd->item,
                       worker->index, i);
        for (int k = 0; k < 2; k++) {
            sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

            worker_expect(worker, 0,
                          sqlock_stock_deduct(stock, NULL, order, crowd->item,
                                              1, &answer, &worker->err));
            if (answer.is_duplicate != (k == 1))
                return worker_fail(worker, "order %s is forgotten", order);
        }
        atomic_fetch_add(&crowd->sold, 1);
    }
    return 0;
}

TEST(test_many_are_forgotten_while_others_sell)
{
    struct crowd_of_old crowd = {
        .stocks = {shop_open_at(f->a, SQLOCK_STOCK_CONDITIONAL),
                   shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL)},
        .item = shop_item(f, 1000000),
        .reaping = REAPERS,
    };
    sqlock_stock_reaped counted = SQLOCK_STOCK_REAPED_INIT;
    struct workers workers;

    write_old_orders(f, crowd.item);
    counted = reap(f, crowd.stocks[0], true);
    assert_int_equal(counted.entries, MANY * 3);
    workers_start(&workers, REAPERS + SELLERS, reap_or_sell, &crowd);
    workers_join(&workers);
    assert_int_equal(crowd.removed, MANY * 3);
    assert_stock(f, crowd.item, 1000000 - crowd.sold, -crowd.sold);
    sqlock_stock_close(crowd.stocks[0]);
    sqlock_stock_close(crowd.stocks[1]);
}

/* --- beside a transaction that has locked a row --- */

static uint64_t retries_of(sqlock_stock *stock)
{
    sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;

    (void)sqlock_stock_statistics(stock, &stats, NULL);
    return stats.retries;
}

static int reap_once(struct worker *worker)
{
    sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;

    worker_expect(
        worker, 0,
        sqlock_stock_reap(worker->context, NULL, &reaped, &worker->err));
    return reaped.entries >= 1 ? 0 : worker_fail(worker, "nothing was reaped");
}

TEST_OF_ROWS(test_a_reap_waits_for_who_has_locked_a_row, 0, 0)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 2);
    const char *order = shop_order(item, "o");
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    struct workers workers;
    uint64_t before;
    char entry[64];
    char time[128];

    (void)shop_table(f, "STOCK_ENTRY", entry);
    assert_ok(
        sqlock_stock_deduct(stock, NULL, order, item, 1, &answer, &f->err));
    (void)sql_run(&f->sql,
                  "UPDATE %s SET CREATED_AT = %s WHERE ORDER_ID = '%s'", entry,
                  earlier(f, "CREATED_AT", OLD_DAYS, time), order);
    assert_int_equal(sql_begin(&f->sql), 0);
    (void)sql_run(&f->sql, "UPDATE %s SET BALANCE = 7 WHERE ORDER_ID = '%s'",
                  entry, order);
    before = retries_of(stock);
    workers_start(&workers, 1, reap_once, stock);
    assert_becomes_true(retries_of(stock) > before, 20000);
    assert_int_equal(sql_commit(&f->sql), 0);
    workers_join(&workers);
    sqlock_stock_close(stock);
}

/* --- input --- */

/* The longest retention. */
#define TEN_YEARS_MS (INT64_C(3650) * 24 * 3600 * 1000)

static int stop(void *context, const sqlock_stock_reaped *so_far)
{
    *(sqlock_stock_reaped *)context = *so_far;
    return 1;
}

TEST(test_a_reap_can_be_stopped_and_is_checked)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 1000);
    sqlock_stock_reap_options options = SQLOCK_STOCK_REAP_INIT;
    sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;
    sqlock_stock_reaped seen = SQLOCK_STOCK_REAPED_INIT;

    options.retention_ms = SQLOCK_STOCK_RETENTION_MIN_MS - 1;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_reap(stock, &options, &reaped, &f->err));
    options.retention_ms = TEN_YEARS_MS + 1;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_reap(stock, &options, &reaped, &f->err));
    options.retention_ms = TEN_YEARS_MS;
    assert_ok(sqlock_stock_reap(stock, &options, &reaped, &f->err));
    options.retention_ms = SQLOCK_STOCK_RETENTION_MIN_MS;
    options.dry_run = true;
    assert_ok(sqlock_stock_reap(stock, &options, &reaped, &f->err));
    options.dry_run = false;
    options.retention_ms = 0;
    options.size = 1;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_reap(stock, &options, &reaped, &f->err));
    /* The struct of an older header, which ends after retention_ms. */
    options.size = offsetof(sqlock_stock_reap_options, dry_run);
    assert_ok(sqlock_stock_reap(stock, &options, &reaped, &f->err));
    write_old_orders(f, item);
    options = (sqlock_stock_reap_options)SQLOCK_STOCK_REAP_INIT;
    options.progress = stop;
    options.context = &seen;
    assert_fails(SQLOCK_ECANCELED,
                 sqlock_stock_reap(stock, &options, &reaped, &f->err));
    /* A page of 1000 rows, of which some may be kept for reservations, and the
     * other rows of the page's last order. */
    assert_in_range(reaped.entries, 900, 1002);
    assert_int_equal(seen.entries, reaped.entries);
    assert_int_equal(reap(f, stock, false).entries, MANY * 3 - reaped.entries);
    sqlock_stock_close(stock);
}

/* --- the index by age --- */

#define OLD_ENTRY                                                              \
    "CREATE TABLE %s (ORDER_ID VARCHAR(190) NOT NULL, LINE INTEGER NOT NULL, " \
    "ITEM VARCHAR(190) NOT NULL, KIND VARCHAR(1) NOT NULL, "                   \
    "QUANTITY BIGINT NOT NULL, DELTA BIGINT NOT NULL, "                        \
    "STATUS VARCHAR(1) NOT NULL, BALANCE BIGINT NOT NULL, "                    \
    "CREATED_AT %s NOT NULL, PRIMARY KEY (ORDER_ID, LINE))"

static int64_t count_age_indexes(struct fixture *f, const char *table)
{
    if (f->database->bit == ON_POSTGRES)
        return sql_integer(&f->sql,
                           "SELECT COUNT(*) FROM pg_indexes "
                           "WHERE tablename = lower('%s') AND indexdef LIKE "
                           "'%%(created_at, order_id, line)'",
                           table);
    if (f->database->bit == ON_MYSQL)
        return sql_integer(&f->sql,
                           "SELECT COUNT(*) FROM information_schema.STATISTICS "
                           "WHERE TABLE_SCHEMA = DATABASE() AND "
                           "TABLE_NAME = '%s' AND COLUMN_NAME = 'CREATED_AT' "
                           "AND SEQ_IN_INDEX = 1",
                           table);
    return sql_integer(&f->sql,
                       "SELECT COUNT(*) FROM sqlite_master "
                       "WHERE type = 'index' AND tbl_name = '%s' AND sql LIKE "
                       "'%%(CREATED_AT, ORDER_ID, LINE)'",
                       table);
}

/* Return the result of doctor's check "stock".  Set *tells_of_index if it names
 * the index. */
static sqlock_severity examine(struct fixture *f, const sqlock_options *options,
                               bool *tells_of_index)
{
    sqlock_severity found = SQLOCK_FAILURE;
    sqlock_check *checks = NULL;
    size_t count = 0;

    assert_ok(sqlock_diagnose(f->url, options, &checks, &count, &f->err));
    for (size_t i = 0; i < count; i++)
        if (strcmp(checks[i].check, "stock") == 0) {
            found = checks[i].severity;
            *tells_of_index = strstr(checks[i].found, "CREATED_AT") != NULL;
        }
    sqlock_checks_free(checks, count);
    return found;
}

static void create_stock(struct fixture *f, const sqlock_options *options)
{
    assert_ok(sqlock_stock_schema_create(f->url, options, &f->err));
}

TEST(test_init_gives_an_old_table_its_index)
{
    static const char *const names[] = {"STOCK", "STOCK_RESERVATION",
                                        "STOCK_ENTRY"};
    sqlock_options options = fixture_options(f);
    bool tells_of_index = false;
    char prefix[48];
    char entry[64];

    (void)snprintf(prefix, sizeof prefix, "%sOLD_", f->prefix);
    (void)snprintf(entry, sizeof entry, "%sSTOCK_ENTRY", prefix);
    options.table_prefix = prefix;
    assert_ok(
        sqlock_schema_create(f->url, &options, SQLOCK_LAYOUT_SQLOCK, &f->err));
    create_stock(f, &options);
    (void)sql_run(&f->sql, "DROP TABLE %s", entry);
    (void)sql_run(&f->sql, OLD_ENTRY, entry,
                  f->database->bit == ON_MYSQL      ? "DATETIME(6)"
                  : f->database->bit == ON_POSTGRES ? "TIMESTAMP"
                                                    : "INTEGER");
    assert_int_equal(count_age_indexes(f, entry), 0);
    assert_int_equal(examine(f, &options, &tells_of_index), SQLOCK_WARNING);
    assert_true(tells_of_index);
    for (int i = 0; i < 2; i++) { /* the second time changes nothing */
        create_stock(f, &options);
        assert_int_equal(count_age_indexes(f, entry), 1);
    }
    assert_int_equal(examine(f, &options, &tells_of_index), SQLOCK_FINE);
    assert_false(tells_of_index);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)sql_run(&f->sql, "DROP TABLE %s%s", prefix, names[i]);
    sql_drop_locks(&f->sql, prefix);
}
