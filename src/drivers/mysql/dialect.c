/*
 * dialect.c - the SQL of MySQL and MariaDB
 *
 * Only what both understand, but for comments that MariaDB alone reads: no
 * RETURNING elsewhere, no alias for the new row; and not VALUES(column), which
 * MySQL is about to drop, but the parameter again.
 *
 * Claims   MySQL runs assignments from left to right, each seeing the values
 *          assigned before it.  So all that asks whether the old lease is over
 *          comes first, then CLIENT_ID, and what follows asks only whether
 *          CLIENT_ID is ours by now; the column that decides expiry is last.
 *          The token travels in the insert id, set by LAST_INSERT_ID(token);
 *          a busy claim changes nothing, and then the id means nothing.
 * Batches  JSON_TABLE gives the leases in the order of the array, and comes
 *          first in each join, so rows are locked in the order of their keys.
 * Clock    UTC_TIMESTAMP(6), which is the statement's start whatever the
 *          session's time zone; the same for the token, so not UNIX_TIMESTAMP.
 */
#include "drivers/mysql/dialect.h"

/* The build makes these from sql/mysql/. */
extern const char lk_sql_mysql_schema[];
extern const char lk_sql_mysql_done[];
extern const char lk_sql_mysql_schema_spring7[];
extern const char lk_sql_mysql_schema_spring6[];

/* clang-format off */

#define NOW "UTC_TIMESTAMP(6)"
#define EPOCH "TIMESTAMP'1970-01-01 00:00:00'"
#define MICROSECONDS(date) "TIMESTAMPDIFF(MICROSECOND, " EPOCH ", " date ")"
#define DATE(microseconds) "TIMESTAMPADD(MICROSECOND, " microseconds ", " EPOCH ")"
#define LATER(microseconds) "TIMESTAMPADD(MICROSECOND, " microseconds ", " NOW ")"
#define NOW_US MICROSECONDS(NOW)

#define ROW "LOCK_KEY = {1} AND REGION = {2}"
#define TABLE_WHERE "{table} WHERE "
#define RANGE "REGION = {2} AND LOCK_KEY > {1}"

/* Over when the lease ended before now, or nobody has one. */
#define OVER(end) "(CLIENT_ID IS NULL OR " end " < " NOW ")"
#define NOT_OVER(end) end " >= " NOW
/* Nobody has it, or it is the one that was observed, and over. */
#define OBSERVED(nobody, end)                                                 \
    "(CLIENT_ID IS NULL OR " nobody " OR (" end " < " NOW                     \
    " AND CLIENT_ID = {9} AND " MICROSECONDS(end) " = {8}))"

/* A table of an old Spring keeps whole seconds.  A claim sent again within the
   same second would then change nothing and look busy; a second more makes it
   change something. */
#define CHANGED(column, date)                                                 \
    "IF(MICROSECOND(" column ") = 0 AND "                                     \
    "ABS(TIMESTAMPDIFF(MICROSECOND, " column ", " date ")) < 1000000, "       \
    column " + INTERVAL 1 SECOND, " date ")"

/* Where nobody has it, no lease is left even if its end lies ahead. */
#define REMAINING(client, end)                                                \
    "IF(" client " IS NULL, "                                                 \
    "LEAST(-1, TIMESTAMPDIFF(MICROSECOND, " NOW ", " end ")), "               \
    "TIMESTAMPDIFF(MICROSECOND, " NOW ", " end "))"

#define INFO(client, token, created, end, name, holder)                       \
    "SELECT LOCK_KEY, " client ", " token ", " REMAINING(client, end) ", "    \
    MICROSECONDS(created) ", " MICROSECONDS(end) ", "                         \
    name ", " holder " FROM "

#define PAGE " ORDER BY LOCK_KEY LIMIT {4}"

#define REAP_BOUND_TEXT                                                       \
    "SELECT MAX(LOCK_KEY) FROM (SELECT LOCK_KEY FROM {table} WHERE " RANGE    \
    PAGE ") AS batch"

#define REAP(is_over) LK_MYSQL_DELETE_FREE(is_over)

/* A doorbell is the user lock of its number, in this database (doorbell.c).  A
   claim that grants takes it for its session, once the row is locked, if it is
   free; the release gives it back.  What is written does not depend on it (TOLD
   is never 0), but the insert id says by its bit 62 that it was another's.  Not
   by "IS NULL": of what cannot be null, MySQL does not compute it.  Each function
   more costs the server in every execution. */
#define BELL "CONCAT('sqlock:', {0}, ':', CRC32(DATABASE()))"
#define TOLD "LAST_INSERT_ID(FENCE | 4611686018427387904)"
#define WITH_BELL(value)                                                      \
    "IF(GET_LOCK(" BELL ", 0) OR " TOLD ", " value ", NULL)"
#define WITHOUT_BELL(value) "IF(RELEASE_LOCK(" BELL "), " value ", " value ")"

/* ---------------------------------------------------- eight columns: ours -- */

#define OURS_END "EXPIRED_AFTER"

/* A release writes columns of fixed size alone: InnoDB then changes the row
   where it is, and does so again in the next claim, where a null would have it
   written anew both times.  CLIENT_ID and HOLDER stay, and the end goes back 400
   years, out of the reach of any clock; CREATED_DATE goes before it, as the
   table's CHECK demands, by 800 (400 years are 146097 days).  To all who read,
   such a row is what one with a null is: free, and nobody's. */
#define CENTURIES "292194"
#define LEFT "EXPIRED_AFTER < " EPOCH
#define NOT_LEFT "EXPIRED_AFTER >= " EPOCH
#define LEAVE(days)                                                           \
    "CREATED_DATE = CREATED_DATE - INTERVAL " days " DAY, "                   \
    "EXPIRED_AFTER = " NOW " - INTERVAL 146097 DAY"
#define OF_HOLDER(column) "IF(" LEFT ", NULL, " column ")"
#define TRUE_END                                                              \
    "IF(" LEFT ", EXPIRED_AFTER + INTERVAL 146097 DAY, EXPIRED_AFTER)"
/* By itself: a peer that takes the row leaves it as it is. */
#define TRUE_CREATED                                                          \
    "IF(CREATED_DATE < " EPOCH ", CREATED_DATE + INTERVAL " CENTURIES " DAY, "\
    "CREATED_DATE)"

#define OURS_INFO                                                             \
    INFO(OF_HOLDER("CLIENT_ID"), "FENCE", TRUE_CREATED, TRUE_END,             \
         "LOCK_NAME", OF_HOLDER("HOLDER"))
#define OURS_HELD ROW " AND CLIENT_ID = {9} AND " NOT_OVER(OURS_END)
#define OURS_RISE "FENCE = GREATEST(FENCE + 1, " NOW_US ")"

#define OURS_COLUMNS                                                          \
    "INSERT INTO {table} (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, "        \
    "EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER) "
#define OURS_VALUES(key, client, us, name, holder)                            \
    key ", {2}, " client ", " NOW ", " LATER(us) ", "                         \
    "LAST_INSERT_ID(" NOW_US "), " name ", " holder
#define OURS_TAKEOVER(over, client, us, name, held)                           \
    " ON DUPLICATE KEY UPDATE "                                               \
    "FENCE = CASE WHEN " over                                                 \
    " THEN LAST_INSERT_ID(GREATEST(FENCE + 1, " NOW_US ")) "                  \
    "WHEN CLIENT_ID = " client " THEN LAST_INSERT_ID(FENCE) ELSE FENCE END, " \
    "CREATED_DATE = IF(" over ", " NOW ", CREATED_DATE), "                    \
    "CLIENT_ID = IF(" over ", " client ", CLIENT_ID), "                       \
    "LOCK_NAME = IF(CLIENT_ID = " client ", " name ", LOCK_NAME), "           \
    "HOLDER = IF(CLIENT_ID = " client ", " held ", HOLDER), "                 \
    "EXPIRED_AFTER = IF(CLIENT_ID = " client ", " LATER(us)                   \
    ", EXPIRED_AFTER)"
#define OURS_CLAIM_OF(over)                                                   \
    OURS_COLUMNS "VALUES (" OURS_VALUES("{1}", "{3}", "{4}", "{6}", "{7}")    \
    ")" OURS_TAKEOVER(over, "{3}", "{4}", "{6}", WITH_BELL("{7}"))
#define OURS_CLAIM OURS_CLAIM_OF(OVER(OURS_END))

#define OURS_TAKE                                                             \
    "UPDATE {table} SET FENCE = LAST_INSERT_ID(GREATEST(FENCE + 1, " NOW_US   \
    ")), CLIENT_ID = {3}, CREATED_DATE = " NOW ", EXPIRED_AFTER = "           \
    LATER("{4}") ", LOCK_NAME = {6}, HOLDER = " WITH_BELL("{7}")              \
    " WHERE " ROW " AND " OURS_END " < " NOW /* of a free row, too */

#define OURS_HAND_OVER                                                        \
    "UPDATE {table} SET FENCE = LAST_INSERT_ID(GREATEST(FENCE + 1, " NOW_US   \
    ")), CLIENT_ID = {3}, CREATED_DATE = " NOW ", LOCK_NAME = {6}, "          \
    "HOLDER = {7}, EXPIRED_AFTER = " LATER("{4}") " WHERE " ROW               \
    " AND CLIENT_ID = {9} AND " NOT_OVER(OURS_END)

#define OURS_RENEW                                                            \
    "UPDATE {table} SET EXPIRED_AFTER = " LATER("{4}") " WHERE " ROW          \
    " AND CLIENT_ID = {3} AND " NOT_OVER(OURS_END)

/* The row stays: it is the token's high-water mark. */
#define OURS_RELEASE                                                          \
    "UPDATE {table} SET " LEAVE(WITHOUT_BELL(CENTURIES))                      \
    " WHERE " ROW " AND CLIENT_ID = {3} AND " NOT_LEFT

#define OURS_BREAK                                                            \
    "UPDATE {table} SET CLIENT_ID = {3}, HOLDER = {7}, " OURS_RISE            \
    " WHERE " OURS_HELD

#define OURS_BREAK_NOW                                                        \
    "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = {7}, " OURS_RISE           \
    ", EXPIRED_AFTER = " LATER("-1") " WHERE " OURS_HELD

#define OURS_AFTER_RESTORE                                                    \
    "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = NULL, " OURS_RISE          \
    ", EXPIRED_AFTER = " LATER("-1")
#define SPRING_AFTER_RESTORE "DELETE FROM {table}"

#define OURS_REAP                                                             \
    REAP(TRUE_END " < " LATER("-{4}") " AND FENCE < " NOW_US " - {4}")

/* --------------------------------------------------- five columns: Spring 7 -- */

#define SPRING7_END "EXPIRED_AFTER"
#define SPRING7_INFO                                                          \
    INFO("CLIENT_ID", MICROSECONDS("CREATED_DATE"), "CREATED_DATE",           \
         SPRING7_END, "NULL", "NULL")
#define SPRING7_HELD ROW " AND CLIENT_ID = {9} AND " NOT_OVER(SPRING7_END)

/* CREATED_DATE is the token as a date. */
#define SPRING7_COLUMNS                                                       \
    "INSERT INTO {table} (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, "        \
    "EXPIRED_AFTER) "
#define SPRING7_VALUES(key, client, us)                                       \
    key ", {2}, " client ", " DATE("LAST_INSERT_ID(" NOW_US ")") ", "         \
    LATER(us)
#define SPRING7_TAKEOVER(over, client, us)                                    \
    " ON DUPLICATE KEY UPDATE "                                               \
    "CREATED_DATE = CASE WHEN " over                                          \
    " THEN " DATE("LAST_INSERT_ID(" NOW_US ")")                               \
    " WHEN CLIENT_ID = " client " THEN "                                      \
    DATE("LAST_INSERT_ID(" MICROSECONDS("CREATED_DATE") ")")                  \
    " ELSE CREATED_DATE END, "                                                \
    "CLIENT_ID = IF(" over ", " client ", CLIENT_ID), "                       \
    "EXPIRED_AFTER = IF(CLIENT_ID = " client ", "                             \
    CHANGED("EXPIRED_AFTER", LATER(us)) ", EXPIRED_AFTER)"
#define SPRING7_CLAIM_OF(over)                                                \
    SPRING7_COLUMNS "VALUES (" SPRING7_VALUES("{1}", "{3}", "{4}") ")"        \
    SPRING7_TAKEOVER(over, "{3}", "{4}")
#define SPRING7_CLAIM SPRING7_CLAIM_OF(OVER(SPRING7_END))

#define SPRING7_HAND_OVER                                                     \
    "UPDATE {table} SET CREATED_DATE = " DATE("LAST_INSERT_ID(GREATEST("      \
    MICROSECONDS("CREATED_DATE") " + 1, " NOW_US "))") ", CLIENT_ID = {3}, "  \
    "EXPIRED_AFTER = " LATER("{4}") " WHERE " ROW " AND CLIENT_ID = {9} AND " \
    NOT_OVER(SPRING7_END)

#define SPRING7_RENEW OURS_RENEW

#define SPRING_RELEASE "DELETE FROM {table} WHERE " ROW " AND CLIENT_ID = {3}"

#define SPRING7_BREAK                                                         \
    "UPDATE {table} SET CLIENT_ID = {3}, CREATED_DATE = "                     \
    "GREATEST(CREATED_DATE + INTERVAL 1 MICROSECOND, " NOW ") WHERE "         \
    SPRING7_HELD

#define SPRING7_BREAK_NOW "DELETE FROM {table} WHERE " SPRING7_HELD

#define SPRING7_REAP                                                          \
    REAP(SPRING7_END " < " LATER("-{4}") " AND CREATED_DATE < " LATER("-{4}"))

/* ----------------------------------------- four columns: Spring 5.4 to 6.5 -- */

/* The contender's time to live decides: the end is CREATED_DATE + {5}. */
#define SPRING6_END "(CREATED_DATE + INTERVAL {5} MICROSECOND)"
#define SPRING6_DATE(us) LATER(us " - {5}")
#define SPRING6_INFO                                                          \
    INFO("CLIENT_ID", "NULL", "CREATED_DATE", SPRING6_END, "NULL", "NULL")
#define SPRING6_HELD ROW " AND CLIENT_ID = {9} AND " NOT_OVER(SPRING6_END)

/* The token is kept nowhere.  It is set beside CLIENT_ID, in a comparison that
   always holds, since CREATED_DATE has other uses. */
#define SPRING6_TOKEN "LAST_INSERT_ID(" NOW_US ") > 0"
#define SPRING6_COLUMNS                                                       \
    "INSERT INTO {table} (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE) "
#define SPRING6_VALUES(key, client, us)                                       \
    key ", {2}, IF(" SPRING6_TOKEN ", " client ", NULL), " SPRING6_DATE(us)
#define SPRING6_TAKEOVER(over, client, us)                                    \
    " ON DUPLICATE KEY UPDATE "                                               \
    "CLIENT_ID = IF((" over " OR CLIENT_ID = " client ") AND "                \
    SPRING6_TOKEN ", " client ", CLIENT_ID), "                                \
    "CREATED_DATE = IF(CLIENT_ID = " client ", "                              \
    CHANGED("CREATED_DATE", SPRING6_DATE(us)) ", CREATED_DATE)"
#define SPRING6_CLAIM_OF(over)                                                \
    SPRING6_COLUMNS "VALUES (" SPRING6_VALUES("{1}", "{3}", "{4}") ")"        \
    SPRING6_TAKEOVER(over, "{3}", "{4}")
#define SPRING6_CLAIM SPRING6_CLAIM_OF(OVER(SPRING6_END))

#define SPRING6_HAND_OVER                                                     \
    "UPDATE {table} SET CLIENT_ID = IF(" SPRING6_TOKEN ", {3}, NULL), "       \
    "CREATED_DATE = " SPRING6_DATE("{4}") " WHERE " ROW                       \
    " AND CLIENT_ID = {9} AND " NOT_OVER(SPRING6_END)

#define SPRING6_RENEW                                                         \
    "UPDATE {table} SET CREATED_DATE = " SPRING6_DATE("{4}") " WHERE " ROW           \
    " AND CLIENT_ID = {3} AND " NOT_OVER(SPRING6_END)

#define SPRING6_BREAK                                                         \
    "UPDATE {table} SET CLIENT_ID = {3} WHERE " SPRING6_HELD

#define SPRING6_BREAK_NOW "DELETE FROM {table} WHERE " SPRING6_HELD

#define SPRING6_REAP REAP("CREATED_DATE < " LATER("-{4} - {5}"))

/* ----------------------------------------------------------------- batches -- */

/* Compared with a column of another collation than the table's, a key would
   not be looked up in the index.  What JSON_UNQUOTE gives has, like a literal,
   no collation to insist on. */
#define KEY_OF_LEASE "JSON_UNQUOTE(JSON_QUOTE(j.k))"

#define BINARY "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
#define LEASES                                                                \
    "JSON_TABLE({1}, '$[*]' COLUMNS (k CHAR(36) " BINARY " PATH '$.k', "      \
    "c CHAR(36) " BINARY " PATH '$.c', t BIGINT PATH '$.t', "                 \
    "n VARCHAR(255) " BINARY " PATH '$.n', "                                  \
    "h VARCHAR(255) " BINARY " PATH '$.h')) j"

/* The leases first and each row by its key, whatever the optimizer thinks: it
   reads the whole of a small table, and would wait for anybody's row lock. */
#define JOINED                                                                \
    LEASES " STRAIGHT_JOIN {table} t FORCE INDEX (PRIMARY) "                  \
    "ON LOCK_KEY = " KEY_OF_LEASE " AND REGION = {2} "
#define OF_LEASE "CLIENT_ID = j.c"

/* The end counted from a now that travels in the insert id. */
#define ANSWERED(us) DATE("LAST_INSERT_ID(" NOW_US ") + " us)

/* MariaDB gives the rows as they are now, also those of others; on MySQL, which
   has no such clause, they are read afterwards. */
#define ROWS_NOW(token)                                                       \
    " /*M!100500 RETURNING LOCK_KEY, " token ", CLIENT_ID */"

#define OURS_CLAIM_MANY                                                       \
    OURS_COLUMNS "SELECT " OURS_VALUES("j.k", "j.c", "j.t", "j.n", "j.h")     \
    " FROM " LEASES                                                           \
    OURS_TAKEOVER(OVER(OURS_END), "j.c", "j.t", "j.n", "j.h")                 \
    ROWS_NOW("FENCE")
#define SPRING7_CLAIM_MANY                                                    \
    SPRING7_COLUMNS "SELECT " SPRING7_VALUES("j.k", "j.c", "j.t")             \
    " FROM " LEASES SPRING7_TAKEOVER(OVER(SPRING7_END), "j.c", "j.t")         \
    ROWS_NOW(MICROSECONDS("CREATED_DATE"))
#define SPRING6_CLAIM_MANY                                                    \
    SPRING6_COLUMNS "SELECT " SPRING6_VALUES("j.k", "j.c", "j.t")             \
    " FROM " LEASES SPRING6_TAKEOVER(OVER(SPRING6_END), "j.c", "j.t")         \
    ROWS_NOW(NOW_US)

/* MariaDB can be told for a statement that it waits for no row lock: then it is
   EBUSY at once.  MySQL waits for as long as the session does. */
#define AT_ONCE "/*M!100300 SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ "
#define RENEW_MANY                                                    \
    AT_ONCE "UPDATE " JOINED "SET EXPIRED_AFTER = " ANSWERED("j.t")           \
    " WHERE " OF_LEASE " AND " NOT_OVER("EXPIRED_AFTER")
#define SPRING6_RENEW_MANY                                                    \
    AT_ONCE "UPDATE " JOINED                                           \
    "SET CREATED_DATE = " ANSWERED("j.t - {5}")                               \
    " WHERE " OF_LEASE " AND " NOT_OVER(SPRING6_END)

#define OURS_RELEASE_MANY                                                     \
    "UPDATE " JOINED "SET " LEAVE(CENTURIES)                                  \
    " WHERE " OF_LEASE " AND " NOT_LEFT
#define SPRING_RELEASE_MANY                                                   \
    "DELETE t FROM " JOINED "WHERE " OF_LEASE

/* MySQL must be told not to lock `j`; MariaDB knows no such clause, and passes
   over comments for this version. */
#define LOCK_MANY                                                     \
    "SELECT LOCK_KEY FROM " JOINED "WHERE " OF_LEASE                  \
    " FOR UPDATE /*!80001 OF t */ SKIP LOCKED"

/* ------------------------------------------------------------- every table -- */

/* Newer servers give read_only as a word. */
#define SERVER_TEXT                                                           \
    "SELECT IF(CAST(@@global.read_only AS CHAR) IN ('0', 'OFF'), 0, 1), "     \
    NOW_US ", CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), "  \
    "SUBSTRING_INDEX(VERSION(), '-', 1))"

/* A key on a prefix of a column does not keep rows apart as it must.  Each table
   of the catalogue is given the name itself: what a join would compare, MariaDB
   does not look up, but reads the files of all tables of the server. */
#define THIS_TABLE(of)                                                        \
    of ".TABLE_SCHEMA = COALESCE({2}, DATABASE()) AND " of ".TABLE_NAME = {1}"
#define DESCRIBE_TEXT                                                         \
    "SELECT UPPER(c.COLUMN_NAME), LOWER(c.COLUMN_TYPE), "                     \
    "IF(c.IS_NULLABLE = 'NO', 0, 1), "                                        \
    "COALESCE((SELECT CAST(k.SEQ_IN_INDEX AS SIGNED) "                        \
    "FROM information_schema.STATISTICS k WHERE " THIS_TABLE("k") " "         \
    "AND k.COLUMN_NAME = c.COLUMN_NAME AND k.INDEX_NAME = 'PRIMARY' "         \
    "AND k.SUB_PART IS NULL), 0), "                                           \
    "CASE WHEN t.TABLE_TYPE LIKE '%VIEW' THEN 'a view' "                      \
    "WHEN t.ENGINE = 'InnoDB' THEN NULL ELSE CONCAT("                         \
    "IF(LEFT(t.ENGINE, 1) IN ('A', 'E', 'I', 'O'), 'an ', 'a '), "            \
    "t.ENGINE, ' table') END "                                                \
    "FROM information_schema.COLUMNS c "                                      \
    "JOIN information_schema.TABLES t ON " THIS_TABLE("t") " "                \
    "WHERE " THIS_TABLE("c") " ORDER BY c.ORDINAL_POSITION"

/* 36 characters or more; 100 or more; 255 or more. */
#define CLIENT_TYPES                                                          \
    "char(36)|varchar(3[6-9])|varchar([4-9][0-9])|varchar([1-9][0-9][0-9]*)"
#define REGION_TYPES "char(1[0-9][0-9])|char(2[0-9][0-9])|"                   \
    "varchar([1-9][0-9][0-9]*)"
#define TEXT_TYPES                                                            \
    "varchar(25[5-9])|varchar(2[6-9][0-9])|varchar([3-9][0-9][0-9])|"         \
    "varchar([1-9][0-9][0-9][0-9]*)|text|mediumtext|longtext"
/* clang-format on */

static const sqlock_column columns[] = {
    {"LOCK_KEY", CLIENT_TYPES},
    {"REGION", REGION_TYPES},
    {"CLIENT_ID", CLIENT_TYPES},
    {"CREATED_DATE", "datetime|datetime([1-6])"},
    {"EXPIRED_AFTER", "datetime|datetime([1-6])"},
    {"FENCE", "bigint|bigint([0-9]*[0-9])"},
    {"LOCK_NAME", TEXT_TYPES},
    {"HOLDER", TEXT_TYPES},
    {NULL, NULL},
};

/* clang-format off */
const sqlock_dialect lk_mysql_dialect = {
    .placeholder = SQLOCK_PLACEHOLDER_QUESTION,
    .quote = '`',
    .folds_to_lower = false,
    .identifier_max = 64,
    .columns = columns,
    .done = lk_sql_mysql_done,
    .schema = {
        [SQLOCK_LAYOUT_SQLOCK] = lk_sql_mysql_schema,
        [SQLOCK_LAYOUT_SPRING7] = lk_sql_mysql_schema_spring7,
        [SQLOCK_LAYOUT_SPRING6] = lk_sql_mysql_schema_spring6,
    },
    .statements = {
        [SQLOCK_LAYOUT_SQLOCK] = {
            [SQLOCK_SQL_CLAIM] = {.text = OURS_CLAIM, .insert_id = SQLOCK_INSERT_ID_UPSERT},
            [SQLOCK_SQL_CLAIM_OBSERVED] = {.text =
                OURS_CLAIM_OF(OBSERVED(LEFT, OURS_END)),
                .insert_id = SQLOCK_INSERT_ID_UPSERT},
            [SQLOCK_SQL_RENEW] = {.text = OURS_RENEW},
            [SQLOCK_SQL_RELEASE] = {.text = OURS_RELEASE},
            [SQLOCK_SQL_READ] = {.text = OURS_INFO TABLE_WHERE ROW},
            [SQLOCK_SQL_LIST] = {.text = OURS_INFO TABLE_WHERE RANGE PAGE},
            [SQLOCK_SQL_BREAK] = {.text = OURS_BREAK},
            [SQLOCK_SQL_BREAK_NOW] = {.text = OURS_BREAK_NOW},
            [SQLOCK_SQL_REAP_BOUND] = {.text = REAP_BOUND_TEXT},
            [SQLOCK_SQL_REAP] = {.text = OURS_REAP},
            [SQLOCK_SQL_SERVER] = {.text = SERVER_TEXT},
            [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE_TEXT},
            [SQLOCK_SQL_CLAIM_MANY] = {.text = OURS_CLAIM_MANY},
            [SQLOCK_SQL_RENEW_MANY] = {.text = RENEW_MANY, .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_RELEASE_MANY] = {.text = OURS_RELEASE_MANY},
            [SQLOCK_SQL_READ_MANY] = {.text = OURS_INFO JOINED},
            [SQLOCK_SQL_LOCK_MANY] = {.text = LOCK_MANY},
            [SQLOCK_SQL_TAKE] = {.text = OURS_TAKE, .insert_id = SQLOCK_INSERT_ID_MARKED},
            [SQLOCK_SQL_HAND_OVER] = {.text = OURS_HAND_OVER, .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_AFTER_RESTORE] = {.text = OURS_AFTER_RESTORE},
        },
        [SQLOCK_LAYOUT_SPRING7] = {
            [SQLOCK_SQL_CLAIM] = {.text = SPRING7_CLAIM, .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_CLAIM_OBSERVED] = {.text =
                SPRING7_CLAIM_OF(OBSERVED("FALSE", SPRING7_END)),
                .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_RENEW] = {.text = SPRING7_RENEW},
            [SQLOCK_SQL_RELEASE] = {.text = SPRING_RELEASE},
            [SQLOCK_SQL_READ] = {.text = SPRING7_INFO TABLE_WHERE ROW},
            [SQLOCK_SQL_LIST] = {.text = SPRING7_INFO TABLE_WHERE RANGE PAGE},
            [SQLOCK_SQL_BREAK] = {.text = SPRING7_BREAK},
            [SQLOCK_SQL_BREAK_NOW] = {.text = SPRING7_BREAK_NOW},
            [SQLOCK_SQL_REAP_BOUND] = {.text = REAP_BOUND_TEXT},
            [SQLOCK_SQL_REAP] = {.text = SPRING7_REAP},
            [SQLOCK_SQL_SERVER] = {.text = SERVER_TEXT},
            [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE_TEXT},
            [SQLOCK_SQL_CLAIM_MANY] = {.text = SPRING7_CLAIM_MANY},
            [SQLOCK_SQL_RENEW_MANY] = {.text = RENEW_MANY, .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_RELEASE_MANY] = {.text = SPRING_RELEASE_MANY},
            [SQLOCK_SQL_READ_MANY] = {.text = SPRING7_INFO JOINED},
            [SQLOCK_SQL_HAND_OVER] = {.text = SPRING7_HAND_OVER, .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_AFTER_RESTORE] = {.text = SPRING_AFTER_RESTORE},
            [SQLOCK_SQL_LOCK_MANY] = {.text = LOCK_MANY},
        },
        [SQLOCK_LAYOUT_SPRING6] = {
            [SQLOCK_SQL_CLAIM] = {.text = SPRING6_CLAIM, .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_CLAIM_OBSERVED] = {.text =
                SPRING6_CLAIM_OF(OBSERVED("FALSE", SPRING6_END)),
                .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_RENEW] = {.text = SPRING6_RENEW},
            [SQLOCK_SQL_RELEASE] = {.text = SPRING_RELEASE},
            [SQLOCK_SQL_READ] = {.text = SPRING6_INFO TABLE_WHERE ROW},
            [SQLOCK_SQL_LIST] = {.text = SPRING6_INFO TABLE_WHERE RANGE PAGE},
            [SQLOCK_SQL_BREAK] = {.text = SPRING6_BREAK},
            [SQLOCK_SQL_BREAK_NOW] = {.text = SPRING6_BREAK_NOW},
            [SQLOCK_SQL_REAP_BOUND] = {.text = REAP_BOUND_TEXT},
            [SQLOCK_SQL_REAP] = {.text = SPRING6_REAP},
            [SQLOCK_SQL_SERVER] = {.text = SERVER_TEXT},
            [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE_TEXT},
            [SQLOCK_SQL_CLAIM_MANY] = {.text = SPRING6_CLAIM_MANY},
            [SQLOCK_SQL_RENEW_MANY] = {.text = SPRING6_RENEW_MANY, .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_RELEASE_MANY] = {.text = SPRING_RELEASE_MANY},
            [SQLOCK_SQL_READ_MANY] = {.text = SPRING6_INFO JOINED},
            [SQLOCK_SQL_HAND_OVER] = {.text = SPRING6_HAND_OVER, .insert_id = SQLOCK_INSERT_ID_ROW},
            [SQLOCK_SQL_AFTER_RESTORE] = {.text = SPRING_AFTER_RESTORE},
            [SQLOCK_SQL_LOCK_MANY] = {.text = LOCK_MANY},
        },
    },
    .examination = &lk_mysql_examination,
};
/* clang-format on */
