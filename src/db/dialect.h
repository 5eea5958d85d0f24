/*
 * dialect.h - a database's SQL: the statements that a driver sends
 *
 * Each statement gives a result that is the same on every database; what this
 * header says of a statement is its contract.  Most are templates that the
 * library shares between all databases (src/db/lock_sql.c, src/stock/sql): a
 * dialect gives the fragments in which its database differs, and a text of its
 * own for a statement where fragments do not suffice.
 *
 * Calling sequence
 *     static const sqlock_fragment fragments[] = {
 *         {"now", "statement_timestamp()"},
 *         {NULL, NULL},
 *     };
 *     sqlock_dialect mine = {.placeholder = SQLOCK_PLACEHOLDER_DOLLAR,
 *                            .quote = '"',
 *                            .folds_to_lower = true,
 *                            .identifier_max = 63,
 *                            .fragments = fragments};
 *
 *     mine.statements[SQLOCK_SQL_WAITERS].text = ""; // "": statement missing
 */
#ifndef LK_DIALECT_H
#define LK_DIALECT_H

#include "sqlock/admin.h"
#include "sqlock/doctor.h"

/* ----------------------------------------------------------- statements -- */

/* Notation of a parameter in the database's SQL. */
typedef enum sqlock_placeholder {
    SQLOCK_PLACEHOLDER_DOLLAR,  /* $1 $2, may repeat */
    SQLOCK_PLACEHOLDER_QUESTION /* ? ?, by position */
} sqlock_placeholder;

/* Use of the insert id (LAST_INSERT_ID() in MySQL) of a statement that returns
 * no rows: the driver makes a row of the id, if the statement affected any
 * rows. */
typedef enum sqlock_insert_id {
    SQLOCK_INSERT_ID_UNUSED = 0, /* it is not read */
    SQLOCK_INSERT_ID_ROW,        /* one row of one SQLOCK_INT64: the id */
    SQLOCK_INSERT_ID_UPSERT      /* one row: the id without its bit 62, that bit
                                    in a second column, and in a third one 1 if
                                    exactly one row was affected, which was then
                                    inserted, or else 0 */
} sqlock_insert_id;

/* A statement, ready to send. */
typedef struct sqlock_statement {
    const char *text; /* SQL in the dialect of the database */
    uint32_t id; /* > 0: prepare it once per connection; an id always has the
                    same text; less than SQLOCK_STATEMENT_IDS.  0: run once;
                    without parameters it need not be prepared */
    sqlock_insert_id insert_id; /* meaning of its insert id */
    bool is_nowait; /* it does not wait for a row lock.  EBUSY must leave the
                       transaction as it was; if the database rolls that back,
                       return ERETRY */
} sqlock_statement;
/* The greatest id of a statement, plus 1. */
#define SQLOCK_STATEMENT_IDS 192

/*
 * A piece of SQL with a name.  In a template, and in a fragment's text, "{now}"
 * stands for the text of the fragment `now`; "{later {4}}" for that of `later`,
 * in which "{it}" is then "{4}".
 */
typedef struct sqlock_fragment {
    const char *name; /* letters and '_'; NULL: the end of a list */
    const char *text; /* its SQL, a template */
} sqlock_fragment;

/*
 * The statements of a dialect.  Texts are templates: {table} stands for the
 * quoted, qualified table, other names for fragments, and {0} to {9} for these
 * parameters.  Below, {1}{2} means the row with that key and region, {1}{2}{3}
 * its lease if CLIENT_ID is {3}.
 */
typedef enum sqlock_parameter {
    SQLOCK_P_QUEUE,       /* {0} integer: number of the queue lock of {1}{2} */
    SQLOCK_P_KEY = 1,     /* {1} text */
    SQLOCK_P_REGION,      /* {2} text */
    SQLOCK_P_CLIENT,      /* {3} text, CLIENT_ID of this acquisition */
    SQLOCK_P_DURATION_US, /* {4} integer: TTL, or the reaper's retention */
    SQLOCK_P_PEER_TTL_US, /* {5} integer: four-column layout only */
    SQLOCK_P_NAME,        /* {6} text or null */
    SQLOCK_P_HOLDER,      /* {7} text or null */
    SQLOCK_P_TOKEN,       /* {8} integer: the expected token */
    SQLOCK_P_OTHER        /* {9} text: another key, or the expected client id */
} sqlock_parameter;
/* The greatest number of a parameter. */
#define SQLOCK_PARAMETERS 9

/*
 * "now" is the database's clock, read when the statement runs, in UTC; "over"
 * means CLIENT_ID is null, or the lease's end lies before now.  The lease's end
 * is EXPIRED_AFTER, on the four-column layout CREATED_DATE + {5}; a statement
 * that grants or renews a lease writes it so that it is now + {4}.  A token is
 * max(FENCE + 1, now in us); on Spring's layouts now in us, which the
 * five-column layout keeps in CREATED_DATE.
 *
 * An "info" row has these columns:
 *     1  LOCK_KEY, text
 *     2  CLIENT_ID, text or null
 *     3  the token, integer or null
 *     4  us that remain, integer, negative when over
 *     5  us at which it was acquired, integer
 *     6  us at which it expires, integer
 *     7  LOCK_NAME, text or null
 *     8  HOLDER, text or null
 *
 * A driver may keep a released row in any way, but in its info row 2 is null, 6
 * is about the time of the release, and 8 may still have the last holder.
 */
typedef enum sqlock_statement_kind {
    /* Take the lock {1}{2} for {3} if there is no row, or it is over, or it is
     * {3}'s already and not over (then token and acquisition time stay, and the
     * lease is renewed).  One row: the token, as integer; a second integer, if
     * there is one, is not 0 when another session has the queue lock, which
     * means that others wait; a third one is not 0 when there was no row
     * before.  No row: another owner has the lock. */
    SQLOCK_SQL_CLAIM,
    /* Renew the lease {1}{2}{3} unless it is over.  affected: 1, or 0; it may
     * be 0 for a renewed lease if no value changed. */
    SQLOCK_SQL_RENEW,
    /* Free {1}{2} if CLIENT_ID is {3}, over or not; deletes the row on Spring's
     * layouts.  affected: 1 or 0.  Need not be durable.  Notifies the sessions
     * that are subscribed to the queue lock {0}. */
    SQLOCK_SQL_RELEASE,
    /* The info row of {1}{2}, if there is one.  Locks nothing. */
    SQLOCK_SQL_READ,
    /* Info rows of region {2} with LOCK_KEY > {1}, by key, {4} at most.  After
     * LIST_BEGIN: the next rows, in any order. */
    SQLOCK_SQL_LIST,
    /* End the lease of {1}{2} if CLIENT_ID is {9} and it is not over: CLIENT_ID
     * becomes {3}, HOLDER {7}, the token rises, the lease's end stays.
     * affected: 1 or 0. */
    SQLOCK_SQL_BREAK,
    /* As BREAK, but the lock is free at once. */
    SQLOCK_SQL_BREAK_NOW,
    /* Find the end of the next range of rows to reap.  A bound of a range is a
     * text that only the dialect understands.  One row: the end of the range
     * that begins at {1} (the end of the previous range, or "") and has about
     * {4} rows; null when nothing is left. */
    SQLOCK_SQL_REAP_BOUND,
    /* Delete the rows of region {2} between the bounds {1} and {9} whose lease
     * ended more than {4} us ago and whose token, if there is one, lies more
     * than {4} us before now, except locked rows.  affected: how many. */
    SQLOCK_SQL_REAP,
    /* Describe the server; no parameters.  One row: 1 when the server is
     * read-only or else 0, now in us, the server's name and version as text. */
    SQLOCK_SQL_SERVER,
    /* The columns of table {1} in schema {2} (null: the current one).  Rows:
     * column name in upper case, its type in lower case, 1 when it may be null
     * or else 0, its position in the primary key or 0, and what makes the table
     * unfit for locks ("an unlogged table", "a view", "a MEMORY table") or
     * null; the collation or type by which texts of other bytes may be equal,
     * or null; and the schema in which the table was found.  No row: no such
     * table. */
    SQLOCK_SQL_DESCRIBE,

    /*
     * Many leases in one statement.  {1} is a JSON array of objects, sorted by
     * key, each key once: "k" LOCK_KEY, "c" CLIENT_ID, "t" the TTL in us, and
     * for a claim "n" LOCK_NAME and "h" HOLDER, for a release "b" the number of
     * the queue lock.  Rows of other regions than {2} are never touched; keys
     * are touched in order.
     */
    /* CLAIM for each object.  Rows: LOCK_KEY and token of each granted lease;
     * or of every row, with its present CLIENT_ID as third column; or, if the
     * database cannot return them in the same statement, no rows, and
     * `affected` is 0 if no lease was granted. */
    SQLOCK_SQL_CLAIM_MANY,
    /* RENEW for each object, with its own TTL.  A locked row is passed over if
     * the database can do so in the statement; otherwise the statement returns
     * EBUSY.  Rows: LOCK_KEY and now in us of each renewed lease; or one row
     * with now in us, and `affected`: how many changed. */
    SQLOCK_SQL_RENEW_MANY,
    /* RELEASE for each object.  Rows: LOCK_KEY of each released lease; or no
     * rows, and `affected`: how many were released. */
    SQLOCK_SQL_RELEASE_MANY,
    /* The info row of each object's key. */
    SQLOCK_SQL_READ_MANY,
    /* Lock the rows that no other session has locked, until the transaction
     * ends, and pass over the others.  Rows: LOCK_KEY of those locked.  Missing
     * if RENEW_MANY itself passes over locked rows, or if the database does not
     * lock rows one by one. */
    SQLOCK_SQL_LOCK_MANY,

    /* Give the lease of {1}{2} from client id {9} to {3}, unless it is over;
     * otherwise as CLAIM.  One row: the token.  No row: nothing was changed.
     * Durable like a claim. */
    SQLOCK_SQL_HAND_OFF,
    /* RELEASE on a connection that has the queue lock of {1}{2}, and give the
     * queue lock up, too.  Missing: RELEASE gives it up itself. */
    SQLOCK_SQL_RELEASE_NOTIFY,

    /* No parameters.  Free every row of {table} and raise its token; delete all
     * of them on Spring's layouts.  affected: how many.  May be missing. */
    SQLOCK_SQL_AFTER_RESTORE,
    /* Sent in a transaction before LIST, which then returns the table as it is
     * now.  Missing: LIST reads by key. */
    SQLOCK_SQL_LIST_BEGIN,

    /* Guard a lease in a transaction of another program: the library does not
     * send this statement but prints it, with literals for parameters.  It is
     * an error unless the lease of {1}{2} is {3}'s, has the token {8} if the
     * layout keeps tokens, and is not over.  If it succeeds, no other session
     * can change the lease until the transaction ends.  It may wait for a row
     * lock.  Missing: leases cannot be guarded. */
    SQLOCK_SQL_GUARD,

    /* Info rows, with a ninth column REGION, that meet three conditions.  The
     * region is {2} (null: any whose name does not end with "#tx").  The row is
     * not free, or {8} is not 0.  Its name, or LOCK_KEY where it has none, is
     * LIKE {6} with the escape '!' (null: any).  At most {4} rows, in the order
     * {9}: "name", "held", "ttl" or "token". */
    SQLOCK_SQL_FIND,
    /* A row for each session that waits in a wait queue; no parameters: the
     * number of the queue lock, integer, and the session's name, text or null.
     * Missing: the database does not list such sessions. */
    SQLOCK_SQL_WAITERS,

    /* Sent in a transaction before FIND_PAGE, with the parameters of FIND
     * except {4} and {9}; FIND_PAGE then returns the rows as they are now.
     * Missing: FIND_PAGE reads by key. */
    SQLOCK_SQL_FIND_BEGIN,
    /* The rows of FIND after LOCK_KEY {1} of region {9}, {4} at most, by key
     * and region; after FIND_BEGIN: the next rows, in any order. */
    SQLOCK_SQL_FIND_PAGE,
    /* Number of statements. */
    SQLOCK_SQL_KINDS
} sqlock_statement_kind;

/* Number of layouts, see sqlock_layout. */
#define SQLOCK_LAYOUTS 3

/* The schemas of a dialect: one for each layout, and these. */
enum {
    SQLOCK_SCHEMA_DONE = SQLOCK_LAYOUTS,
    SQLOCK_SCHEMA_STOCK,
    SQLOCK_SCHEMAS
};

/* One template. */
typedef struct sqlock_template {
    /* NULL: the library's shared template, if it has one; "", or empty after
     * its fragments are put in: the statement is missing. */
    const char *text;
    sqlock_insert_id insert_id; /* as in sqlock_statement */
    bool is_planned_anew;       /* its id is 0, so that a plan for a small table
                                   is not kept when the table has grown */
    uint32_t layouts; /* the layouts that have the statement, 1 << sqlock_layout
                         for each; 0: all */
    /* Fragments of this statement alone; NULL: the library's, or none. */
    const sqlock_fragment *with;
} sqlock_template;

/* A column that a table must have. */
typedef struct sqlock_column {
    const char *name;  /* upper case */
    const char *types; /* fnmatch(3) patterns of fitting types, with '|' between
                          them: "char(36)|varchar(*)" */
} sqlock_column;

/* A database's SQL. */
typedef struct sqlock_dialect {
    sqlock_placeholder placeholder; /* how a parameter is written */
    char quote;                     /* of identifiers: " or ` */
    bool folds_to_lower;            /* unquoted identifiers are lower case */
    size_t identifier_max;          /* most bytes of an identifier */
    const sqlock_column *columns;   /* of all layouts; ends with a NULL name */
    /* Statements that create INT_LOCK, by layout, INT_DONE, or INT_STOCK and
     * the tables beside it, each ending with ";\n". */
    const char *schema[SQLOCK_SCHEMAS];
    /*
     * Fragments.  Those of a layout come first; for a name in neither list the
     * library's fragment is used (src/db/lock_sql.c).  The library's templates
     * need from every dialect
     *     now         the database's clock, as in the columns of time
     *     us          {it}, a number of us, to be added to a time
     *     in_us       {it}, a time or a difference of two, as integer of us
     *     freed       assignment to the lease's end when the row becomes free
     *     born_items  for CLAIM_MANY: J.k, J.c, J.t, J.n and J.h of {1}, by
     *                 key, and {born} AS born
     * and, if rows are locked one by one, `share_free`, `unless_there` and
     * `delete_unlocked` for transactions.
     */
    const sqlock_fragment *fragments;
    /* Fragments of one layout, before the others. */
    const sqlock_fragment *layout_fragments[SQLOCK_LAYOUTS];
    /* Fragments of a variation of the dialect, which come before all others,
     * also before those about stock; NULL: none. */
    const sqlock_fragment *overrides;
    /* SERVER and DESCRIBE are the same in every layout. */
    sqlock_template statements[SQLOCK_SQL_KINDS];
    /* The text of sql/DATABASE/doctor.sql: the settings of the server that a
     * promise of locks depends on, and what they should be. */
    const char *doctor;
    /* A statement.  One row: the server's own number of this session, as
     * integer.  NULL: there are no sessions. */
    const char *session;
    /* The action of an ALTER TABLE that makes {column}, of the type {type},
     * compare texts by their bytes; {null} is " NOT NULL" or "".  NULL: the
     * database has none, and the table must be made anew. */
    const char *compare_bytes;
    /* One row: the number, as integer, of sessions of this database that are in
     * a transaction or a statement and have set a name that begins with {6} and
     * is not {7}.  Missing: sessions have no names. */
    sqlock_template stale_sessions;
} sqlock_dialect;

/* ------------------------------------- transactions of the application -- */

/* Statements about the lock table that transactions send, for its three
 * layouts. */
typedef enum sqlock_tx_kind {
    /* Insert the row {1}{2} with the name {6}, free, if it is missing.  "": the
     * database does not lock rows one by one. */
    SQLOCK_TX_SQL_SEED,
    /* Guard the lease of {1}{2} if it is {3}'s and has the token {8}, where the
     * layout keeps tokens: no other session can change it until the transaction
     * ends.  One row: 1 if the lease is not over, otherwise 0.  No row: it is
     * not {3}'s, or another session has a row lock, for which this never
     * waits. */
    SQLOCK_TX_SQL_GUARD,
    /* For `commit_if`: as GUARD, but an error instead of no row.  Missing if
     * there is no `commit_if`. */
    SQLOCK_TX_SQL_ASSERT,
    /* Delete the rows of region {2} between the bounds {1} and {9} of
     * REAP_BOUND that SEED inserted more than {4} us ago, except locked rows.
     * affected: how many.  Never waits for a row lock.  "" if there is no
     * SEED. */
    SQLOCK_TX_SQL_REAP,
    /* Number of statements. */
    SQLOCK_TX_KINDS
} sqlock_tx_kind;

/* ---------------------------------------------------------------- stock -- */

/*
 * The statements about stock.  Besides these parameters, templates have
 * {stock}, {item}, {quantity} and {version} for the table and its columns;
 * where there is no version column, {version} is the quantity.  {bump} is the
 * assignment that raises the version, or nothing.  {most} is the greatest
 * integer that the quantity's column holds.  {this_item} is the condition that
 * the item is {1}.  {entry}, {reservation} and
 * {bucket} are sqlock's tables of sql/DATABASE/stock.sql; {in_buckets} is the
 * sum in the buckets of the item {5}, or 0 where the stock is a table of the
 * application.
 */
typedef enum sqlock_stock_parameter {
    SQLOCK_SP_ITEM = 1, /* {1} text, or integer where the column is one */
    SQLOCK_SP_QUANTITY, /* {2} integer */
    SQLOCK_SP_ORDER,    /* {3} text */
    SQLOCK_SP_ROWS,     /* {4} JSON */
    /* {5} text: the item, as sqlock's tables have it; or the STATE of
     * reservations */
    SQLOCK_SP_NAME,
    SQLOCK_SP_BUCKET,      /* {6} integer: a bucket, or a line of an order */
    SQLOCK_SP_DURATION_US, /* {7} integer */
    /* {8} integer: a version; or a time of the database's clock, in us since
     * 1970 */
    SQLOCK_SP_EXPECTED,
    SQLOCK_SP_STOCK /* {9} text: STOCK of reservations; see stock.sql */
} sqlock_stock_parameter;

/*
 * An entry is a row of an order in the table {entry}.  Entries as a parameter
 * are a JSON array of objects: "o" ORDER_ID, "l" LINE, "i" ITEM, "k" KIND, "q"
 * QUANTITY, "d" DELTA, "s" STATUS, "b" BALANCE.
 */
typedef enum sqlock_stock_kind {
    /* --- on a quantity --- */
    /* The quantity of {1}.  Locks nothing. */
    SQLOCK_STOCK_SQL_READ,
    /* READ, and lock the row: no other session can change it until the
     * transaction ends. */
    SQLOCK_STOCK_SQL_LOCK,
    /* Quantity and version of {1}. */
    SQLOCK_STOCK_SQL_READ_VERSION,
    /* Deduct {2} from {1}.  One row: the quantity that is left.  No row: less
     * than {2} is there, or there is no such item. */
    SQLOCK_STOCK_SQL_DEDUCT,
    /* DEDUCT if the version is {8}.  affected: 1 or 0. */
    SQLOCK_STOCK_SQL_SWAP,
    /* Add {2} to {1}.  One row: the quantity that is there now.  No row: it
     * would be more than {most}, or there is no such item. */
    SQLOCK_STOCK_SQL_RESTORE,
    /* Set the quantity of {1}, which exists, to {2}. */
    SQLOCK_STOCK_SQL_ASSIGN,
    /* Insert the item {1} with a quantity of 0 if it is missing. */
    SQLOCK_STOCK_SQL_MAKE,
    /* The quantity of the item {1}, also given as {5}, with its buckets. */
    SQLOCK_STOCK_SQL_TOTAL,
    /* Items and quantities of all rows, by item. */
    SQLOCK_STOCK_SQL_LIST,
    /* LIST, with the buckets of each item included in its quantity. */
    SQLOCK_STOCK_SQL_LIST_TOTAL,

    /* --- orders --- */
    /* Insert the entries {4} that do not exist.  affected: how many. */
    SQLOCK_STOCK_SQL_RECORD,
    /* Deduct {2} from {1} and insert the entries {4}, adding the quantity that
     * is left to each BALANCE.  One row: the quantity that is left.  No row:
     * nothing was deducted, as in DEDUCT, and no entry inserted.  EBUSY: an
     * entry exists, and nothing was done.  Missing: the database cannot do this
     * in one statement. */
    SQLOCK_STOCK_SQL_COMBINE,
    /* The entries of the orders in the JSON array of texts {4}, by order and
     * line: ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE.  Waits for
     * entries that are being inserted, where the database can. */
    SQLOCK_STOCK_SQL_ENTRIES,
    /* Mark the entries of order {3} as undone: STATUS 'U' and DELTA 0. */
    SQLOCK_STOCK_SQL_UNDO,
    /* The next {2} entries that are older than {7}, by CREATED_AT, ORDER_ID and
     * LINE, after the entry with the values {8}, {3} and {6}.  Rows: ORDER_ID,
     * CREATED_AT in us since 1970, LINE, and 1 if a reservation keeps the
     * entry, or else 0.  A reservation of its order keeps it if it is open, or
     * of another stock than {9}, or ended less than {7} ago. */
    SQLOCK_STOCK_SQL_OLD,
    /* Remove the entries older than {7} of the orders in the JSON array {4}. */
    SQLOCK_STOCK_SQL_FORGET_ENTRIES,

    /* --- reservations, only those whose STOCK is {9} --- */
    /* Insert the reservation {3}, which is over {7} from now. */
    SQLOCK_STOCK_SQL_RESERVE,
    /* Claim {3} if it is reserved and not over.  affected: 1 or 0.  CLAIM,
     * CANCEL and LAPSE set EXPIRES_AT to now. */
    SQLOCK_STOCK_SQL_CLAIM,
    /* Cancel {3} if it is reserved.  affected: 1 or 0. */
    SQLOCK_STOCK_SQL_CANCEL,
    /* Let {3} expire if it is reserved and over.  affected: 1 or 0. */
    SQLOCK_STOCK_SQL_LAPSE,
    /* STATE of {3} and its remaining us. */
    SQLOCK_STOCK_SQL_STATUS,
    /* The next {2} reservations in the state {5} whose EXPIRES_AT was {7} ago
     * or more, by EXPIRES_AT and ORDER_ID, after the reservation with the
     * values {8} and {3}.  Rows: ORDER_ID, and EXPIRES_AT in us since 1970. */
    SQLOCK_STOCK_SQL_DUE,
    /* Remove the reservations of the orders in the JSON array {4} that ended
     * {7} ago or more. */
    SQLOCK_STOCK_SQL_FORGET_RESERVATIONS,

    /* --- buckets --- */
    /* Deduct {2} from bucket {6} of {5}.  affected: 1 or 0; or one row, the
     * total that is left of the item, or no row. */
    SQLOCK_STOCK_SQL_BUCKET_DEDUCT,
    /* BUCKET_DEDUCT, and insert the entries {4}, adding the total that is left
     * to each BALANCE, as in COMBINE. */
    SQLOCK_STOCK_SQL_BUCKET_COMBINE,
    /* Lock the buckets of {5}.  Rows: number and quantity, by number. */
    SQLOCK_STOCK_SQL_BUCKETS,
    /* Set the quantities of buckets of {5} as in the JSON array {4} of objects:
     * "b" number, "q" quantity. */
    SQLOCK_STOCK_SQL_SPREAD,
    /* Number of statements. */
    SQLOCK_STOCK_KINDS
} sqlock_stock_kind;

/* Types of integer columns. */
typedef struct sqlock_integer_type {
    const char *patterns; /* of fnmatch(3), with '|' between */
    int64_t most;         /* the greatest that all of them hold */
} sqlock_integer_type;

/* A driver's part in stock. */
typedef struct sqlock_stock_dialect {
    /* A query whether there is an index by which old orders are read; tables of
     * earlier versions have none.  One row if an index of the table named {1},
     * in schema {2} (null: none was named), begins with CREATED_AT. */
    const char *has_age_index;
    /* A statement that adds such an index to INT_STOCK_ENTRY, as `schema`. */
    const char *add_age_index;
    /* Fragments, which come before those of the dialect and the library
     * (src/stock/sql/sql.c).  The library needs `time`, a point in time made of
     * us since 1970, and `orders` and `entries`, the rows of {4}. */
    const sqlock_fragment *fragments;
    /* The first whose patterns fit a type counts; patterns NULL: the end. */
    const sqlock_integer_type *integers;
    /* By sqlock_stock_kind. */
    sqlock_template statements[SQLOCK_STOCK_KINDS];
} sqlock_stock_dialect;

#endif
