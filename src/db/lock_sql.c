/*
 * lock_sql.c - the statements about locks as templates, shared by all layouts
 * and databases
 *
 * A dialect defines how its database writes `now`, `later`, `in_us` and so on
 * (see db/dialect.h), and has a statement of its own only where the
 * templates do not suffice. The rendered statements are in
 * sql/DATABASE/statements.sql.
 */
#include "db/lock_sql.h"

/* clang-format off */
const sqlock_template lk_lock_templates[SQLOCK_SQL_KINDS] = {
    [SQLOCK_SQL_CLAIM] = {.text = "{claim}"},
    [SQLOCK_SQL_CLAIM_MANY] = {.text =
        "INSERT INTO {table} AS L (LOCK_KEY, REGION, CLIENT_ID, "
        "{claim_columns}) SELECT J.k, {text {2}}, J.c, {claim_each} "
        "FROM {born_items} {take_over} RETURNING LOCK_KEY, {token}",
        .with = (const sqlock_fragment[]){
            {"key", "J.k"}, {"end", "{end_of_item}"}, {NULL, NULL}}},
    [SQLOCK_SQL_RENEW] = {.text =
        "UPDATE {table} SET {renew {4}} WHERE {row} AND CLIENT_ID = {3} AND "
        "{ends} >= {now}"},
    [SQLOCK_SQL_RELEASE] = {.text =
        "{release} WHERE {row} AND CLIENT_ID = {3}{released}"},
    [SQLOCK_SQL_READ] = {.text = "{info} FROM {table} WHERE {row}"},
    [SQLOCK_SQL_LIST] = {.text =
        "{info} FROM {table} WHERE {behind} ORDER BY LOCK_KEY LIMIT {4}"},
    [SQLOCK_SQL_BREAK] = {.text =
        "UPDATE {table} SET CLIENT_ID = {3}{broken} WHERE {row} AND "
        "{is_others}"},
    [SQLOCK_SQL_BREAK_NOW] = {.text =
        "{break_now} WHERE {row} AND {is_others}{broken_now}"},
    [SQLOCK_SQL_REAP_BOUND] = {.text =
        "SELECT max(LOCK_KEY) FROM (SELECT LOCK_KEY FROM {table} "
        "WHERE {behind} ORDER BY LOCK_KEY LIMIT {4}) AS B"},
    [SQLOCK_SQL_REAP] = {.text =
        "{delete_between {last_end} < {ago {4}}{has_old_token}}"},
    [SQLOCK_SQL_HAND_OFF] = {.text =
        "UPDATE {table} SET {grant} WHERE {row} AND {is_others}{in_turn}"
        "{returning {token}}"},
    [SQLOCK_SQL_AFTER_RESTORE] = {.text = "{restored}"},
    [SQLOCK_SQL_FIND] = {.text =
        "{found} ORDER BY CASE WHEN {text {9}} = 'held' "
        "THEN {held_since} END, "
        "CASE WHEN {text {9}} = 'ttl' THEN {in_us {last_end}} END, "
        "CASE WHEN {text {9}} = 'token' THEN -{token_read} END, "
        "{by_bytes {shown_name}}, {by_bytes REGION} LIMIT {4}",
        .is_planned_anew = true},
    [SQLOCK_SQL_FIND_PAGE] = {.text =
        "{found} AND LOCK_KEY >= {1} AND (LOCK_KEY > {1} OR REGION > {9}) "
        "ORDER BY LOCK_KEY, REGION LIMIT {4}", .is_planned_anew = true},
    /* {guard_failure}, an expression that fails, depends on the number of rows
     * found, so that no database evaluates it before. */
    [SQLOCK_SQL_GUARD] = {.text =
        "SELECT CASE count(*) WHEN 1 THEN 1 ELSE {guard_failure} END "
        "AS GUARDED FROM {guarded_row}"},
};

const char *const lk_tx_templates[SQLOCK_TX_KINDS] = {
    [SQLOCK_TX_SQL_SEED] =
        "INSERT INTO {table} (LOCK_KEY, REGION, CREATED_DATE{seed_columns}) "
        "VALUES ({1}, {2}, {now}{seed_values}) {unless_there}",
    [SQLOCK_TX_SQL_GUARD] =
        "SELECT {ends} >= {now} FROM {table} WHERE {row} AND CLIENT_ID = {3}"
        "{has_token}{share_free}",
    [SQLOCK_TX_SQL_REAP] =
        "{delete_unlocked CLIENT_ID IS NULL AND CREATED_DATE < {ago {4}}}",
};

const sqlock_fragment lk_lock_fragments[] = {
    {"row", "LOCK_KEY = {1} AND REGION = {2}"},
    {"behind", "REGION = {2} AND LOCK_KEY > {1}"},
    {"is_others", "CLIENT_ID = {9} AND {ends} >= {now}"},
    {"is_own", "L.CLIENT_ID = EXCLUDED.CLIENT_ID AND {ends L.} >= {now}"},

    /* The statement of a claim; `over`, `key` and `end` depend on its kind. */
    {"claim", "INSERT INTO {table} AS L (LOCK_KEY, REGION, CLIENT_ID, "
              "{claim_columns}) VALUES ({1}, {2}, {3}, {claim_values}) "
              "{take_over} RETURNING {token}{granted}"},
    {"take_over", "ON CONFLICT (LOCK_KEY, REGION) DO UPDATE SET "
                  "CLIENT_ID = EXCLUDED.CLIENT_ID, {claim_again} "
                  "WHERE L.CLIENT_ID IS NULL "
                  "OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR {over}"},
    {"over", "{ends L.} < {now}"},
    {"key", "{1}"},
    {"holder", "{7}"},
    {"at_turn", "{it}"}, /* around a new token's value in a claim */
    {"in_turn", ""},     /* a further condition of a hand-off */
    {"granted", ""},     /* further columns that a claim returns */
    {"answer", "{it}"},
    {"returning", " RETURNING {it}"},
    {"raised", "{greatest}({it} + 1, {now_us})"},

    {"info", "SELECT LOCK_KEY, {held CLIENT_ID}, {token_read}, "
             "CASE WHEN {held CLIENT_ID} IS NULL "
             "THEN {least}(-1, {us_until {last_end}}) "
             "ELSE {us_until {last_end}} END, {in_us {first_created}}, "
             "{in_us {last_end}}, {names}"},
    /* Compared with a constant, the region would keep MariaDB from reading in
     * the order of keys. */
    {"found", "{info}, REGION FROM {table} WHERE "
              "REGION = coalesce({text {2}}, REGION) AND "
              "({text {2}} IS NOT NULL OR REGION NOT LIKE '%#tx') AND "
              "({number {8}} <> 0 OR {held CLIENT_ID} IS NOT NULL) AND "
              "({text {6}} IS NULL OR "
              "{shown_name} LIKE {text {6}} ESCAPE '!')"},
    {"by_bytes", "{it}"},
    {"held", "{it}"}, /* or null after a release */
    {"first_created", "CREATED_DATE"},
    {"last_end", "{ends}"}, /* after a release: about its time */
    {"us_until", "{in_us {it} - {now}}"},

    {"is_guarded", "{row} AND CLIENT_ID = {3}{has_token} AND {ends} >= {now}"},

    {"renew", "{lease {it}}"},
    {"released", ""},
    {"broken_now", ""},
    {"last_holder", "HOLDER"}, /* after a release: as before */
    {"delete_between", "DELETE FROM {table} WHERE {behind} "
                       "AND LOCK_KEY <= {9} AND {it}"},

    {"now_us", "{in_us {now}}"},
    {"later", "{now} + {us {it}}"},
    {"ago", "{now} - {us {it}}"},
    {"greatest", "greatest"},
    {"least", "least"},
    {"text", "{it}"},
    {"number", "{it}"},
    {NULL, NULL},
};

/* The layout sqlock: FENCE keeps the token, and rows stay after a release.  The
 * table's CHECK wants CREATED_DATE before EXPIRED_AFTER: a statement that sets
 * the end of a lease anew also takes a CREATED_DATE back that lies in the
 * future, since the database's clock has been set back (F15). */
static const sqlock_fragment ours[] = {
    {"ends", "{it}EXPIRED_AFTER"},
    {"lease", "EXPIRED_AFTER = {later {it}}"},
    {"not_after_now", "{least}({it}, {now})"},
    {"renew", "CREATED_DATE = {not_after_now CREATED_DATE}, {lease {it}}"},
    {"token", "FENCE"},
    {"token_read", "FENCE"},
    /* A row that Spring has taken over keeps the date of its last holder. */
    {"held_since", "CASE WHEN CLIENT_ID IS NULL OR "
                   "SUBSTR(HOLDER, 1, 36) = CLIENT_ID OR "
                   "(HOLDER IS NULL AND FENCE = 0) THEN "
                   "{in_us {first_created}} ELSE 9000000000000000000 END"},
    {"names", "LOCK_NAME, HOLDER"},
    {"shown_name", "coalesce(LOCK_NAME, LOCK_KEY)"},
    {"raise", "FENCE = {raised FENCE}"},

    {"claim_columns", "CREATED_DATE, EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER"},
    {"claim_values", "{now}, {later {4}}, {at_turn {now_us}}, {6}, {7}"},
    {"claim_each", "J.born, J.born + {us J.t}, {at_turn {now_us}}, J.n, J.h"},
    {"born", "{now}"},
    {"claim_again",
     "CREATED_DATE = CASE WHEN {is_own} THEN {not_after_now L.CREATED_DATE} "
     "ELSE {now} END, EXPIRED_AFTER = {end}, "
     "FENCE = CASE WHEN {is_own} THEN L.FENCE ELSE {raised L.FENCE} END, "
     "LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = EXCLUDED.HOLDER"},
    {"end", "{later {4}}"},
    /* The difference is the TTL: both columns of EXCLUDED are computed from one
     * reading of the clock. */
    {"end_of_item", "{now} + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)"},
    {"grant", "CLIENT_ID = {3}, CREATED_DATE = {now}, {lease {4}}, "
              "FENCE = {answer {raised FENCE}}, LOCK_NAME = {6}, "
              "HOLDER = {holder}"},

    {"release", "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = {last_holder}, "
                "{freed}"},
    {"broken", ", HOLDER = {7}, {raise}"},
    {"break_now", "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = {7}, {freed}, "
                  "{raise}"},
    {"restored", "UPDATE {table} SET CLIENT_ID = NULL, HOLDER = NULL, {freed}, "
                 "{raise}"},
    {"has_old_token", " AND FENCE < {now_us} - {4}"},
    {"has_token", " AND FENCE = {8}"},
    {"seed_columns", ", EXPIRED_AFTER, LOCK_NAME"},
    {"seed_values", ", {now}, {6}"},
    {NULL, NULL},
};

/* The layout of Spring 7: CREATED_DATE is the token. */
static const sqlock_fragment spring7[] = {
    {"ends", "{it}EXPIRED_AFTER"},
    {"lease", "EXPIRED_AFTER = {later {it}}"},
    {"token", "{in_us CREATED_DATE}"},
    {"token_read", "{in_us CREATED_DATE}"},
    {"held_since", "{in_us {first_created}}"},
    {"names", "NULL, NULL"},
    {"shown_name", "LOCK_KEY"},
    {"raised_date", "{greatest}(CREATED_DATE + {us 1}, {now})"},

    {"claim_columns", "CREATED_DATE, EXPIRED_AFTER"},
    {"claim_values", "{at_turn {now}}, {later {4}}"},
    {"claim_each", "J.born, J.born + {us J.t}"},
    {"born", "{at_turn {now}}"},
    {"claim_again",
     "CREATED_DATE = CASE WHEN {is_own} THEN L.CREATED_DATE ELSE {now} END, "
     "EXPIRED_AFTER = {end}"},
    {"end", "{later {4}}"},
    {"end_of_item", "{now} + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)"},
    {"grant", "CLIENT_ID = {3}, CREATED_DATE = {raised_date}, {lease {4}}"},

    {"release", "DELETE FROM {table}"},
    {"broken", ", CREATED_DATE = {raised_date}"},
    {"break_now", "DELETE FROM {table}"},
    {"restored", "DELETE FROM {table}"},
    {"has_old_token", " AND CREATED_DATE < {ago {4}}"},
    {"has_token", ""},
    {"seed_columns", ", EXPIRED_AFTER"},
    {"seed_values", ", {now}"},
    {NULL, NULL},
};

/* The layout of Spring 6.  A lease has no end: it is over for a contender whose
 * own TTL ({5}) has passed since CREATED_DATE.  So a lease of another length is
 * written with another CREATED_DATE.  A contender with another TTL would be
 * wrong about its end; so sqlock's CLIENT_ID names its holder's TTL (see
 * lk_store_client_id), and {peer_ttl} is that one, or {5} in a row of Spring's.
 *  CLAIM_MANY computes that time before a
 * wait for the row, but after it was sent, so the holder does not rely on a
 * lease for longer than the row says. */
static const sqlock_fragment spring6[] = {
    {"ends", "({it}CREATED_DATE + {us {peer_ttl {it}}})"},
    {"lease", "CREATED_DATE = {later {it} - {peer_ttl}}"},
    {"token", "{now_us}"}, /* kept nowhere */
    {"token_read", "NULL"},
    {"held_since", "{in_us {first_created}}"},
    {"names", "NULL, NULL"},
    {"shown_name", "LOCK_KEY"},

    {"claim_columns", "CREATED_DATE"},
    {"claim_values", "{later {4} - {5}}"},
    {"claim_each", "J.born + {us J.t - {5}}"},
    {"born", "{now}"},
    {"claim_again", "CREATED_DATE = {end}"},
    {"end", "{later {4} - {5}}"},
    {"end_of_item", "EXCLUDED.CREATED_DATE"},
    {"grant", "CLIENT_ID = {3}, {lease {4}}"},

    {"release", "DELETE FROM {table}"},
    {"broken", ""},
    {"break_now", "DELETE FROM {table}"},
    {"restored", "DELETE FROM {table}"},
    {"has_old_token", ""},
    {"has_token", ""},
    {"seed_columns", ""},
    {"seed_values", ""},
    {NULL, NULL},
};
/* clang-format on */

const sqlock_fragment *const lk_layout_fragments[SQLOCK_LAYOUTS] = {
    [SQLOCK_LAYOUT_SQLOCK] = ours,
    [SQLOCK_LAYOUT_SPRING7] = spring7,
    [SQLOCK_LAYOUT_SPRING6] = spring6,
};
