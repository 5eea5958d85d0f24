/*
 * dialect.c - the SQL of MySQL and MariaDB, where it is not that of all
 * databases (src/db/lock_sql.c)
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
extern const char lk_sql_mysql_once[];
extern const char lk_sql_mysql_schema_spring7[];
extern const char lk_sql_mysql_schema_spring6[];

/* clang-format off */
#define BINARY "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
#define EPOCH "TIMESTAMP'1970-01-01 00:00:00'"

static const sqlock_fragment fragments[] = {
    {"now", "UTC_TIMESTAMP(6)"},
    {"us", "INTERVAL {it} MICROSECOND"},
    {"in_us", "TIMESTAMPDIFF(MICROSECOND, " EPOCH ", {it})"},
    {"us_until", "TIMESTAMPDIFF(MICROSECOND, {now}, {it})"},
    {"date", "TIMESTAMPADD(MICROSECOND, {it}, " EPOCH ")"}, /* of us */
    {"later", "TIMESTAMPADD(MICROSECOND, {it}, {now})"},
    {"ago", "{later -{it}}"},
    {"answer", "LAST_INSERT_ID({it})"},
    {"returning", ""},

    /* Delete the rows of region {2} from behind {1} to {9} for which a
     *       condition holds, unless somebody has them locked: a DELETE alone
     *       would wait for any row that it passes, of other regions, too.  The
     *       limit, more than a page of the reaper's, keeps the inner SELECT a
     *       table of its own, which comes first. */
    {"delete_unlocked",
     "DELETE t FROM (SELECT LOCK_KEY AS free_key FROM {table} "
     "WHERE {behind} AND LOCK_KEY <= {9} AND {it} "
     "ORDER BY LOCK_KEY LIMIT 1000000 FOR UPDATE SKIP LOCKED) "
     "AS free STRAIGHT_JOIN {table} t FORCE INDEX (PRIMARY) "
     "ON t.LOCK_KEY = free.free_key AND t.REGION = {2}"},
    {"delete_between", "{delete_unlocked {it}}"},
    {"unless_there", "ON DUPLICATE KEY UPDATE LOCK_KEY = LOCK_KEY"},
    {"share_free", LK_MYSQL_SHARE_FREE},
    {"guarded_row", "{table} WHERE {is_guarded} LOCK IN SHARE MODE"},
    /* Out of range, which is an error in any mode and shows the text. */
    {"guard_failure", "exp(1e9 * (2 - count(*)) * "
                      "length('sqlock: the lease is over'))"},

    /* Nobody has it, or its lease ended before now. */
    {"over", "(CLIENT_ID IS NULL OR {ends} < {now})"},
    /* The lock is free, or expired and unchanged since it was observed. */
    {"over_as_observed",
     "(CLIENT_ID IS NULL OR {was_left} OR ({ends} < {now} "
     "AND CLIENT_ID = {9} AND {in_us {ends}} = {8}))"},
    {"was_left", "FALSE"},
    {"client", "{3}"},
    {"ttl", "{4}"},
    {"name", "{6}"},
    {"claim",
     "INSERT INTO {table} (LOCK_KEY, REGION, CLIENT_ID, {claim_columns}) "
     "VALUES ({1}, {2}, {claim_values}) ON DUPLICATE KEY UPDATE {claim_again}"},

    /* A table of an old Spring keeps whole seconds.  A claim sent again within
       the same second would then change nothing and look busy; a second more
       makes it change something. */
    {"change_end",
     "{end_column} = IF(CLIENT_ID = {client}, "
     "IF(MICROSECOND({end_column}) = 0 AND "
     "ABS(TIMESTAMPDIFF(MICROSECOND, {end_column}, {new_end})) < 1000000, "
     "{end_column} + INTERVAL 1 SECOND, {new_end}), {end_column})"},

    /* Compared with a column of another collation than the table's, a key would
       not be looked up in the index.  A result of JSON_UNQUOTE has, like a
       literal, no collation to insist on. */
    {"leases",
     "JSON_TABLE({1}, '$[*]' COLUMNS (k CHAR(36) " BINARY " PATH '$.k', "
     "c CHAR(36) " BINARY " PATH '$.c', t BIGINT PATH '$.t', "
     "n VARCHAR(255) " BINARY " PATH '$.n', "
     "h VARCHAR(255) " BINARY " PATH '$.h')) j"},
    /* The leases first and each row by its key, whatever the optimizer thinks:
     *       it reads the whole of a small table, and would wait for anybody's
     *       row lock. */
    {"rows_of_leases",
     "{leases} STRAIGHT_JOIN {table} t FORCE INDEX (PRIMARY) "
     "ON LOCK_KEY = JSON_UNQUOTE(JSON_QUOTE(j.k)) AND REGION = {2}"},
    {"is_of_lease", "CLIENT_ID = j.c"},
    {"release_items", "DELETE t FROM {rows_of_leases}"},
    {NULL, NULL},
};

/* A release writes columns of fixed size alone: InnoDB then changes the row
 *   where it is, and does so again in the next claim, where a null would have
 *   it written anew both times.  CLIENT_ID and HOLDER stay, and the end goes
 *   back 400 years, out of the reach of any clock; CREATED_DATE goes before it,
 *   as the table's CHECK demands, by 800 (400 years are 146097 days).  To all
 *   who read, such a row is what one with a null is: free, and nobody's. */
#define CENTURIES "292194"

static const sqlock_fragment ours[] = {
    {"was_left", "EXPIRED_AFTER < " EPOCH},
    {"held", "IF({was_left}, NULL, {it})"},
    {"last_end",
     "IF({was_left}, EXPIRED_AFTER + INTERVAL 146097 DAY, EXPIRED_AFTER)"},
    /* By itself: a peer that takes the row leaves it as it is. */
    {"first_created", "IF(CREATED_DATE < " EPOCH
                      ", CREATED_DATE + INTERVAL " CENTURIES " DAY, "
                      "CREATED_DATE)"},
    {"leave", "CREATED_DATE = CREATED_DATE - INTERVAL {it} DAY, "
              "EXPIRED_AFTER = {now} - INTERVAL 146097 DAY"},
    {"freed", "EXPIRED_AFTER = {later -1}"},

    {"claim_values", "{client}, {now}, {later {ttl}}, "
                     "LAST_INSERT_ID({now_us}), {name}, {holder}"},
    {"claim_again",
     "FENCE = CASE WHEN {over} THEN LAST_INSERT_ID({raised FENCE}) "
     "WHEN CLIENT_ID = {client} THEN LAST_INSERT_ID(FENCE) ELSE FENCE END, "
     "CREATED_DATE = IF({over}, {now}, CREATED_DATE), "
     "CLIENT_ID = IF({over}, {client}, CLIENT_ID), "
     "LOCK_NAME = IF(CLIENT_ID = {client}, {name}, LOCK_NAME), "
     "HOLDER = IF(CLIENT_ID = {client}, {holder_again}, HOLDER), "
     "EXPIRED_AFTER = IF(CLIENT_ID = {client}, {later {ttl}}, EXPIRED_AFTER)"},

    /* A queue lock is the user lock of its number, in this database (queue.c).
     *       A claim that grants takes it for its session, once the row is
     *       locked, if it is free; the release gives it back.  The row
     *       does not depend on it (both operands of OR are never 0 together),
     *       but bit 62 of the insert id says that it was another's.  IS NULL
     *       would not do: MySQL does not compute it of what cannot be null.
     *       Each further function costs the server in every execution. */
    {"queue", "CONCAT('sqlock:', {0}, ':', CRC32(DATABASE()))"},
    /* Text before the number in the statement of a session that waits. */
    {"queue_text", "'CONCAT(''sqlock:'', '"},
    {"with_queue", "IF(GET_LOCK({queue}, 0) OR "
                  "LAST_INSERT_ID(FENCE | 4611686018427387904), {it}, NULL)"},
    {"without_queue", "IF(RELEASE_LOCK({queue}), {it}, {it})"},
    {"holder_again", "{with_queue {7}}"},
    {"release", "UPDATE {table} SET {leave {without_queue " CENTURIES "}}"},
    {"released", " AND EXPIRED_AFTER >= " EPOCH},
    {"release_items",
     "UPDATE {rows_of_leases} SET {leave " CENTURIES "}"},
    {NULL, NULL},
};

/* CREATED_DATE is the token as a date. */
static const sqlock_fragment spring7[] = {
    {"claim_values", "{client}, {date LAST_INSERT_ID({now_us})}, "
                     "{later {ttl}}"},
    {"claim_again",
     "CREATED_DATE = CASE WHEN {over} THEN {date LAST_INSERT_ID({now_us})} "
     "WHEN CLIENT_ID = {client} THEN "
     "{date LAST_INSERT_ID({in_us CREATED_DATE})} ELSE CREATED_DATE END, "
     "CLIENT_ID = IF({over}, {client}, CLIENT_ID), {change_end}"},
    {"end_column", "EXPIRED_AFTER"},
    {"new_end", "{later {ttl}}"},
    {"grant", "CREATED_DATE = {date LAST_INSERT_ID({greatest}("
              "{in_us CREATED_DATE} + 1, {now_us}))}, CLIENT_ID = {3}, "
              "{lease {4}}"},
    {NULL, NULL},
};

/* The token is kept nowhere.  It is set beside CLIENT_ID, in a comparison that
   always holds, since CREATED_DATE has other uses. */
static const sqlock_fragment spring6[] = {
    {"set_token", "LAST_INSERT_ID({now_us}) > 0"},
    {"claim_values", "IF({set_token}, {client}, NULL), {later {ttl} - {5}}"},
    {"claim_again",
     "CLIENT_ID = IF(({over} OR CLIENT_ID = {client}) AND {set_token}, "
     "{client}, CLIENT_ID), {change_end}"},
    {"end_column", "CREATED_DATE"},
    {"new_end", "{later {ttl} - {5}}"},
    {"grant", "CLIENT_ID = IF({set_token}, {3}, NULL), {lease {4}}"},
    {NULL, NULL},
};

static const sqlock_fragment as_observed[] = {
    {"over", "{over_as_observed}"},
    {NULL, NULL},
};

static const sqlock_fragment of_each[] = {
    {"client", "j.c"},
    {"ttl", "j.t"},
    {"name", "j.n"},
    {"holder", "j.h"},
    {"holder_again", "j.h"},
    {NULL, NULL},
};

static const sqlock_fragment with_queue[] = {
    {"holder", "{with_queue {7}}"},
    {NULL, NULL},
};

/* The end is counted from a now that travels in the insert id. */
static const sqlock_fragment with_answer[] = {
    {"later", "{date LAST_INSERT_ID({now_us}) + {it}}"},
    {NULL, NULL},
};

/* No user lock. */
const sqlock_fragment lk_mysql_polling[] = {
    {"with_queue", "{it}"},
    {"without_queue", "{it}"},
    {NULL, NULL},
};

/* ----------------------------------------------------------- every table -- */

/* Newer servers give read_only as a word. */
#define SERVER_TEXT                                                           \
    "SELECT IF(CAST(@@global.read_only AS CHAR) IN ('0', 'OFF'), 0, 1), "     \
    "{now_us}, CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), "  \
    "SUBSTRING_INDEX(VERSION(), '-', 1))"

/* A key on a prefix of a column does not keep rows apart as it must.  Each
 *   table of the catalogue is given the name itself: what a join would compare,
 *   MariaDB does not look up, but reads the files of all tables of the
 *   server. */
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
    .done = lk_sql_mysql_once,
    .schema = {
        [SQLOCK_LAYOUT_SQLOCK] = lk_sql_mysql_schema,
        [SQLOCK_LAYOUT_SPRING7] = lk_sql_mysql_schema_spring7,
        [SQLOCK_LAYOUT_SPRING6] = lk_sql_mysql_schema_spring6,
    },
    .fragments = fragments,
    .layout_fragments = {
        [SQLOCK_LAYOUT_SQLOCK] = ours,
        [SQLOCK_LAYOUT_SPRING7] = spring7,
        [SQLOCK_LAYOUT_SPRING6] = spring6,
    },
    .statements = {
        [SQLOCK_SQL_SERVER] = {.text = SERVER_TEXT},
        [SQLOCK_SQL_DESCRIBE] = {.text = DESCRIBE_TEXT},
        [SQLOCK_SQL_CLAIM] = {.insert_id = SQLOCK_INSERT_ID_UPSERT},
        [SQLOCK_SQL_CLAIM_OBSERVED] = {.with = as_observed,
            .insert_id = SQLOCK_INSERT_ID_UPSERT},
        [SQLOCK_SQL_TAKE] = {.text =
            "UPDATE {table} SET {grant} WHERE {row} AND "
            "{ends} < {now}" /* of a free row, too */,
            .with = with_queue, .layouts = 1 << SQLOCK_LAYOUT_SQLOCK,
            .insert_id = SQLOCK_INSERT_ID_MARKED},
        [SQLOCK_SQL_HAND_OFF] = {.insert_id = SQLOCK_INSERT_ID_ROW},
        /* The sessions that wait in queue.c, on this server; to a login without
         * the privilege PROCESS, those of its user. */
        [SQLOCK_SQL_WAITERS] = {.text =
            "SELECT CAST(SUBSTRING_INDEX(INFO, {queue_text}, -1) AS SIGNED), "
            "CONCAT(TRIM(TRAILING CONCAT(':', SUBSTRING_INDEX(HOST, ':', -1)) "
            "FROM HOST), ' ', USER, ' connection ', ID) "
            "FROM information_schema.PROCESSLIST "
            "WHERE STATE = 'User lock' AND DB = DATABASE() "
            "AND INFO LIKE CONCAT('SELECT %GET_LOCK(', {queue_text}, '%')",
            .layouts = 1 << SQLOCK_LAYOUT_SQLOCK},
        /* MariaDB gives the rows as they are now, also those of others; on
         *           MySQL, which has no such clause, they are read
         *           afterwards. */
        [SQLOCK_SQL_CLAIM_MANY] = {.text =
            "INSERT INTO {table} (LOCK_KEY, REGION, CLIENT_ID, {claim_columns})"
            " SELECT j.k, {2}, {claim_values} FROM {leases} "
            "ON DUPLICATE KEY UPDATE {claim_again} "
            "/*M!100500 RETURNING LOCK_KEY, {token}, CLIENT_ID */",
            .with = of_each},
        /* MariaDB can be told for a statement that it waits for no row lock:
         *           then it is EBUSY at once.  MySQL waits for as long as the
         *           session does. */
        [SQLOCK_SQL_RENEW_MANY] = {.text =
            "/*M!100300 SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ "
            "UPDATE {rows_of_leases} SET {lease j.t} WHERE {is_of_lease} "
            "AND {ends} >= {now}",
            .with = with_answer, .insert_id = SQLOCK_INSERT_ID_ROW},
        [SQLOCK_SQL_RELEASE_MANY] = {.text =
            "{release_items} WHERE {is_of_lease}{released}"},
        [SQLOCK_SQL_READ_MANY] = {.text = "{info} FROM {rows_of_leases}"},
        /* MySQL must be told not to lock `j`; MariaDB knows no such clause, and
           passes over comments for this version. */
        [SQLOCK_SQL_LOCK_MANY] = {.text =
            "SELECT LOCK_KEY FROM {rows_of_leases} WHERE {is_of_lease}"
            " FOR UPDATE /*!80001 OF t */ SKIP LOCKED"},
    },
    .checks = &lk_mysql_checks,
};
/* clang-format on */
