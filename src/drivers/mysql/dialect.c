/*
 * dialect.c - the SQL of MySQL and MariaDB, where it differs from that of all
 * databases (src/db/lock_sql.c)
 *
 * The SQL is what both servers understand, except in comments that only one of
 * them executes.  So RETURNING is only in such comments; and an INSERT has no
 * alias for its new row, and repeats a parameter instead of VALUES(column),
 * which MySQL is about to drop.
 *
 * Claims   MySQL executes assignments from left to right, and each one sees the
 *          values assigned before it.  So the assignments that test whether the
 *          old lease is over come first, then that of CLIENT_ID; the later ones
 *          test only whether CLIENT_ID is ours now, and the column that decides
 *          expiry is last.  The token is returned as the insert id, set by
 *          LAST_INSERT_ID(token); a claim that finds the lock busy changes
 *          nothing, and its insert id means nothing.
 * Batches  JSON_TABLE returns the leases in the order of the array, which is
 *          sorted by key, and comes first in each join: so rows are locked in
 *          the order of their keys.
 * Clock    UTC_TIMESTAMP(6) is the start of the statement, whatever the time
 *          zone of the session.  The token is computed from the same value, not
 *          from UNIX_TIMESTAMP.
 */
#include "drivers/mysql/dialect.h"

/* The build makes these from sql/mysql/. */
extern const char lk_sql_mysql_schema[];
extern const char lk_sql_mysql_doctor[];
extern const char lk_sql_mysql_once[];
extern const char lk_sql_mysql_stock[];
extern const char lk_sql_mysql_schema_spring7[];
extern const char lk_sql_mysql_schema_spring6[];

/* clang-format off */
#define BINARY "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
#define EPOCH "TIMESTAMP'1970-01-01 00:00:00'"

static const sqlock_fragment fragments[] = {
    {"now", "UTC_TIMESTAMP(6)"},
    {"peer_ttl", "CASE WHEN SUBSTR({it}CLIENT_ID, 15, 1) = '8' "
                 "AND SUBSTR({it}CLIENT_ID, 28) REGEXP '^[0-9]+$' "
                 "THEN CAST(SUBSTR({it}CLIENT_ID, 28) AS SIGNED) * 1000 "
                 "ELSE {5} END"},
    {"us", "INTERVAL {it} MICROSECOND"},
    {"in_us", "TIMESTAMPDIFF(MICROSECOND, " EPOCH ", {it})"},
    {"us_until", "TIMESTAMPDIFF(MICROSECOND, {now}, {it})"},
    {"date", "TIMESTAMPADD(MICROSECOND, {it}, " EPOCH ")"}, /* it: us */
    {"later", "TIMESTAMPADD(MICROSECOND, {it}, {now})"},
    {"ago", "{later -{it}}"},
    {"answer", "LAST_INSERT_ID({it})"},
    {"returning", ""},

    /* Delete the rows of region {2} with keys after {1} up to {9} for which the
     * condition {it} holds, except locked rows.  A plain DELETE would wait for
     * the lock of each row that it reads, also of other regions.  The LIMIT,
     * greater than a range of the reaper, makes the server execute the inner
     * SELECT first, as a table of its own. */
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
    /* The result is out of range: an error in any sql_mode, whose message shows
     * the text. */
    {"guard_failure", "exp(1e9 * (2 - count(*)) * "
                      "length('sqlock: the lease is over'))"},

    /* The lock is free, or its lease ended before now. */
    {"over", "(CLIENT_ID IS NULL OR {ends} < {now})"},
    {"client", "{3}"},
    {"ttl", "{4}"},
    {"name", "{6}"},
    {"claim",
     "INSERT INTO {table} (LOCK_KEY, REGION, CLIENT_ID, {claim_columns}) "
     "VALUES ({1}, {2}, {claim_values}) ON DUPLICATE KEY UPDATE {claim_again}"},

    /* A table of an old Spring keeps whole seconds.  A claim sent again within
       the same second would not change the row, and so would look busy: the new
       end is one second later, which changes the row. */
    {"change_end",
     "{end_column} = IF(CLIENT_ID = {client}, "
     "IF(MICROSECOND({end_column}) = 0 AND "
     "ABS(TIMESTAMPDIFF(MICROSECOND, {end_column}, {new_end})) < 1000000, "
     "{end_column} + INTERVAL 1 SECOND, {new_end}), {end_column})"},

    /* A key would not be looked up in the index if it were compared with a
       column of another collation than the table's.  The result of
       JSON_UNQUOTE, like a literal, takes the collation of the column that it
       is compared with. */
    {"leases",
     "JSON_TABLE({1}, '$[*]' COLUMNS (k CHAR(36) " BINARY " PATH '$.k', "
     "c CHAR(36) " BINARY " PATH '$.c', t BIGINT PATH '$.t', "
     "n VARCHAR(255) " BINARY " PATH '$.n', "
     "h VARCHAR(255) " BINARY " PATH '$.h')) j"},
    /* Force the server to read the leases first and to look each row up by its
     * key: the optimizer would read the whole of a small table, and so wait for
     * the lock of any row. */
    {"rows_of_leases",
     "{leases} STRAIGHT_JOIN {table} t FORCE INDEX (PRIMARY) "
     "ON LOCK_KEY = JSON_UNQUOTE(JSON_QUOTE(j.k)) AND REGION = {2}"},
    {"is_of_lease", "CLIENT_ID = j.c"},
    {"release_items", "DELETE t FROM {rows_of_leases}"},
    {NULL, NULL},
};

/* A release writes only columns of fixed size: so InnoDB updates the row in
 * place, in the release and in the next claim, while a null in CLIENT_ID would
 * make InnoDB write the whole row anew both times.  CLIENT_ID and HOLDER keep
 * their values; EXPIRED_AFTER becomes now less 400 years (146097 days), earlier
 * than any clock may show; and CREATED_DATE is moved back by 800 years, since
 * the table's CHECK wants CREATED_DATE before EXPIRED_AFTER.  All statements
 * treat such a row like one whose CLIENT_ID is null: free, with no holder. */
#define CENTURIES "292194"

static const sqlock_fragment ours[] = {
    {"was_left", "EXPIRED_AFTER < " EPOCH},
    {"held", "IF({was_left}, NULL, {it})"},
    {"last_end",
     "IF({was_left}, EXPIRED_AFTER + INTERVAL 146097 DAY, EXPIRED_AFTER)"},
    /* Tests CREATED_DATE, not was_left: a peer that takes the row does not
     * change CREATED_DATE. */
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
     "CREATED_DATE = CASE WHEN {over} THEN {now} WHEN CLIENT_ID = {client} "
     "THEN {not_after_now CREATED_DATE} ELSE CREATED_DATE END, "
     "CLIENT_ID = IF({over}, {client}, CLIENT_ID), "
     "LOCK_NAME = IF(CLIENT_ID = {client}, {name}, LOCK_NAME), "
     "HOLDER = IF(CLIENT_ID = {client}, {holder_again}, HOLDER), "
     "EXPIRED_AFTER = IF(CLIENT_ID = {client}, {later {ttl}}, EXPIRED_AFTER)"},

    /* A queue lock is a user lock that is named by the queue's number and this
     * database (queue.c).  A claim that grants takes the queue lock for its
     * session if it is free, after locking the row; the release gives it back.
     * The new row does not depend on the result of GET_LOCK, since the second
     * operand of OR is never 0; but if another session has the queue lock, that
     * operand sets bit 62 of the insert id.  A test with IS NULL would not call
     * the function: MySQL does not evaluate the operand if it cannot be null.
     * More functions would cost the server time in every execution. */
    {"queue", "CONCAT('sqlock:', {0}, ':', CRC32(DATABASE()))"},
    /* The text before the queue's number in the statement of a waiting session,
     * for SQLOCK_SQL_WAITERS. */
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

/* On this layout CREATED_DATE is the token, as a date. */
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

/* This layout keeps no token, and CREATED_DATE decides expiry.  So the insert
   id is set with CLIENT_ID, in a comparison that always holds. */
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

static const sqlock_fragment of_each[] = {
    {"client", "j.c"},
    {"ttl", "j.t"},
    {"name", "j.n"},
    {"holder", "j.h"},
    {"holder_again", "j.h"},
    {NULL, NULL},
};

/* The lease's end is computed from a "now" that is also the insert id. */
static const sqlock_fragment with_answer[] = {
    {"later", "{date LAST_INSERT_ID({now_us}) + {it}}"},
    {NULL, NULL},
};

/* For waiting=poll: no user lock is taken. */
const sqlock_fragment lk_mysql_polling[] = {
    {"with_queue", "{it}"},
    {"without_queue", "{it}"},
    {NULL, NULL},
};

/* ----------------------------------------------------------- every table -- */

/* Newer servers return read_only as a word. */
#define SERVER_TEXT                                                           \
    "SELECT IF(CAST(@@global.read_only AS CHAR) IN ('0', 'OFF'), 0, 1), "     \
    "{now_us}, CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), "  \
    "SUBSTRING_INDEX(VERSION(), '-', 1))"

/* A column of which the primary key has only a prefix (SUB_PART) counts as not
 * in the key: two keys with the same prefix could not both be inserted.  Each
 * table of the catalogue is searched for the name itself: for a join, MariaDB
 * would open the files of all tables of the server. */
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
    "t.ENGINE, ' table') END, "                                               \
    "IF(c.COLLATION_NAME LIKE '%\\_bin', NULL, c.COLLATION_NAME), "            \
    "c.TABLE_SCHEMA "                                                         \
    "FROM information_schema.COLUMNS c "                                      \
    "JOIN information_schema.TABLES t ON " THIS_TABLE("t") " "                \
    "WHERE " THIS_TABLE("c") " ORDER BY c.ORDINAL_POSITION"

/* Texts of at least 36, 100 and 255 characters. */
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
    .schema = {
        [SQLOCK_LAYOUT_SQLOCK] = lk_sql_mysql_schema,
        [SQLOCK_LAYOUT_SPRING7] = lk_sql_mysql_schema_spring7,
        [SQLOCK_LAYOUT_SPRING6] = lk_sql_mysql_schema_spring6,
        [SQLOCK_SCHEMA_DONE] = lk_sql_mysql_once,
        [SQLOCK_SCHEMA_STOCK] = lk_sql_mysql_stock,
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
        [SQLOCK_SQL_HAND_OFF] = {.insert_id = SQLOCK_INSERT_ID_ROW},
        /* The sessions on this server that wait for a queue lock (queue.c).  A
         * login without the privilege PROCESS sees only its own user's. */
        [SQLOCK_SQL_WAITERS] = {.text =
            "SELECT CAST(SUBSTRING_INDEX(INFO, {queue_text}, -1) AS SIGNED), "
            "CONCAT(TRIM(TRAILING CONCAT(':', SUBSTRING_INDEX(HOST, ':', -1)) "
            "FROM HOST), ' ', USER, ' connection ', ID) "
            "FROM information_schema.PROCESSLIST "
            "WHERE STATE = 'User lock' AND DB = DATABASE() "
            "AND INFO LIKE CONCAT('SELECT %GET_LOCK(', {queue_text}, '%')",
            .layouts = 1 << SQLOCK_LAYOUT_SQLOCK},
        /* MariaDB returns all rows as they are now, also those that others
         * hold.  MySQL has no RETURNING: there the library reads the rows
         * afterwards. */
        [SQLOCK_SQL_CLAIM_MANY] = {.text =
            "INSERT INTO {table} (LOCK_KEY, REGION, CLIENT_ID, {claim_columns})"
            " SELECT j.k, {2}, {claim_values} FROM {leases} "
            "ON DUPLICATE KEY UPDATE {claim_again} "
            "/*M!100500 RETURNING LOCK_KEY, {token}, CLIENT_ID */",
            .with = of_each},
        /* On MariaDB this statement waits for no row lock, but fails with EBUSY
         * at once.  MySQL has no such setting for a single statement: it waits
         * up to the session's limit. */
        [SQLOCK_SQL_RENEW_MANY] = {.text =
            "/*M!100300 SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ "
            "UPDATE {rows_of_leases} SET {renew j.t} WHERE {is_of_lease} "
            "AND {ends} >= {now}",
            .with = with_answer, .insert_id = SQLOCK_INSERT_ID_ROW},
        [SQLOCK_SQL_RELEASE_MANY] = {.text =
            "{release_items} WHERE {is_of_lease}{released}"},
        [SQLOCK_SQL_READ_MANY] = {.text = "{info} FROM {rows_of_leases}"},
        /* With OF t, MySQL does not try to lock `j`.  MariaDB has no such
           clause, and skips comments for this version of MySQL. */
        [SQLOCK_SQL_LOCK_MANY] = {.text =
            "SELECT LOCK_KEY FROM {rows_of_leases} WHERE {is_of_lease}"
            " FOR UPDATE /*!80001 OF t */ SKIP LOCKED"},
    },
    .doctor = lk_sql_mysql_doctor,
    .session = "SELECT CAST(CONNECTION_ID() AS SIGNED)",
    .compare_bytes = "MODIFY {column} {type} CHARACTER SET utf8mb4 COLLATE "
                     "utf8mb4_bin{null}",
};
/* clang-format on */
