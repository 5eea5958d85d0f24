/*
 * dialect.h - a database's SQL: the statements that a driver sends
 * The statements stand in sql/DATABASE/statements.sql and stock-statements.sql,
 * of which the build makes a list for each database (.make/statements.pl).
 * Each gives the same result on every database, which this header describes.
 */
#ifndef LK_DIALECT_H
#define LK_DIALECT_H

#include "db/info_row.h"
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
    /* the same of the id's complement; null if the server has told no id */
    SQLOCK_INSERT_ID_COMPLEMENT,
    SQLOCK_INSERT_ID_UPSERT /* one row: the id without its bit 62, that bit
                                    in a second column, and in a third one 1 if
                                    exactly one row was affected, which was then
                                    inserted, or else 0 */
} sqlock_insert_id;

/* A statement, ready to send. */
typedef struct sqlock_statement {
    const char *text; /* SQL in the dialect of the database */
    uint32_t id; /* > 0: prepare it once per connection; an id always has the
                    same text; at most SQLOCK_STATEMENT_IDS.  0: run once;
                    without parameters it need not be prepared */
    sqlock_insert_id insert_id; /* meaning of its insert id */
    bool is_nowait;   /* it does not wait for a row lock.  EBUSY must leave the
                       transaction as it was; if the database rolls that back,
                       return ERETRY */
    bool may_be_lost; /* it is about leases, or only reads: with durability=fast
                         a crash may take back what it has committed */
} sqlock_statement;
/* The greatest id of a statement. */
#define SQLOCK_STATEMENT_IDS 192

/* Parameters that a statement can send. */
#define LK_PLACES_MAX 96

/* A statement as the build has read it.  A list of them ends with a NULL text.
 * It lacks statements that the database does not have. */
struct lk_sql {
    unsigned kind;     /* sqlock_statement_kind, or sqlock_stock_kind */
    uint32_t variants; /* those for which it is: LK_SQLOCK_QUEUE and so on */
    const char *text;  /* without what the program gives: {INT_LOCK} */
    sqlock_insert_id insert_id;
    /* is_unprepared: its id is 0, since it is rare, or its plan for a small
     * table must not be kept when the table has grown; is_read: it only reads,
     * and so may be lost, too */
    bool is_unprepared, is_nowait, is_read, may_be_lost;
    unsigned char count;                /* of parameters sent */
    unsigned char order[LK_PLACES_MAX]; /* the parameter of each place */
};

/* Variants of the statements about locks: by the table's layout, and whether
 * waiters queue in the database or poll (waiting=poll in the URL). */
enum {
    LK_SQLOCK_QUEUE = 1 << (2 * SQLOCK_LAYOUT_SQLOCK),
    LK_SQLOCK_POLL = LK_SQLOCK_QUEUE << 1,
    LK_SPRING7_QUEUE = 1 << (2 * SQLOCK_LAYOUT_SPRING7),
    LK_SPRING7_POLL = LK_SPRING7_QUEUE << 1,
    LK_SPRING6_QUEUE = 1 << (2 * SQLOCK_LAYOUT_SPRING6),
    LK_SPRING6_POLL = LK_SPRING6_QUEUE << 1
};

/* The parameters of statements about locks; SQLOCK_P_KEY is :key in the SQL.
 * Two share a number if no statement has both. */
typedef enum sqlock_parameter {
    SQLOCK_P_KEY,        /* text */
    SQLOCK_P_REGION,     /* text */
    SQLOCK_P_CLIENT,     /* text, CLIENT_ID of this acquisition */
    SQLOCK_P_TTL,        /* integer, us */
    SQLOCK_P_PEER_TTL,   /* integer, us; four-column layout only */
    SQLOCK_P_NAME,       /* text or null */
    SQLOCK_P_HOLDER,     /* text or null */
    SQLOCK_P_TOKEN,      /* integer: the expected token */
    SQLOCK_P_OLD_CLIENT, /* text: the expected CLIENT_ID */
    SQLOCK_P_SHOWN,      /* text: the waiter, as a ticket has it */
    SQLOCK_P_BELL,       /* text: the session's own bell, or null */
    SQLOCK_P_WAITS,      /* integer: who shares may wait; null: it does not */
    SQLOCK_P_WEIGHT,     /* integer, 1 to 999999: what a sharer takes */
    SQLOCK_P_PERMITS,    /* integer: of a lock; 0: no limit */
    SQLOCK_PARAMETERS,   /* number of parameters */

    SQLOCK_P_ITEMS = SQLOCK_P_KEY,     /* JSON, see CLAIM_MANY */
    SQLOCK_P_AFTER = SQLOCK_P_KEY,     /* text: keys up to this one were read */
    SQLOCK_P_TABLE = SQLOCK_P_KEY,     /* text: a table's name */
    SQLOCK_P_SCHEMA = SQLOCK_P_REGION, /* text, or null: the current one */
    SQLOCK_P_LIMIT = SQLOCK_P_TTL,     /* integer: the most rows */
    SQLOCK_P_AGE = SQLOCK_P_TTL,       /* integer, us: the reaper's retention */
    SQLOCK_P_PATTERN = SQLOCK_P_NAME,  /* text of LIKE with the escape '!' */
    SQLOCK_P_WITH_FREE = SQLOCK_P_TOKEN,         /* integer: 0 or not */
    SQLOCK_P_UNTIL = SQLOCK_P_OLD_CLIENT,        /* text: the last of a range */
    SQLOCK_P_AFTER_REGION = SQLOCK_P_OLD_CLIENT, /* text: goes with :after */
    SQLOCK_P_ORDER = SQLOCK_P_OLD_CLIENT,        /* "name" and so on */
    SQLOCK_P_TICKET = SQLOCK_P_OLD_CLIENT,       /* text: CLIENT_ID of one */
    SQLOCK_P_OLD_EPOCH = SQLOCK_P_OLD_CLIENT,    /* text, or null */
    SQLOCK_P_QUEUE = SQLOCK_P_OLD_CLIENT,        /* text: QUEUE of a new row */
    SQLOCK_P_TAG_PREFIX = SQLOCK_P_NAME,         /* text: of a session's name */
    SQLOCK_P_TAG = SQLOCK_P_HOLDER,              /* text: a session's name */
    SQLOCK_P_SERIAL = SQLOCK_P_NAME,             /* text, 16 hex digits */
    SQLOCK_P_OLD_QUEUE = SQLOCK_P_NAME,          /* text: the expected QUEUE */
    SQLOCK_P_RUNG = SQLOCK_P_SHOWN,              /* JSON: texts of rings */
    SQLOCK_P_DROPPED = SQLOCK_P_BELL             /* JSON: CLIENT_IDs */
} sqlock_parameter;

/*
 * The statements about locks.  "The row" is that of :key and :region, "the
 * lease" that row if its CLIENT_ID is :client.  "Now" is the database's clock,
 * read when the statement runs, in UTC; "over" means CLIENT_ID is null, or the
 * lease's end lies before now.  The lease's end is EXPIRED_AFTER, on the
 * four-column layout CREATED_DATE + :peer_ttl; a statement that grants or
 * renews a lease writes it so that it is now + :ttl.  A token is max(FENCE + 1,
 * now in us); on Spring's layouts now in us, which the five-column layout keeps
 * in CREATED_DATE.
 *
 * A driver may keep a released row in any way, but in its info row CLIENT_ID is
 * null, the time at which it expires is about that of the release, and HOLDER
 * may still have the last holder.
 */
typedef enum sqlock_statement_kind {
    /* Take the lock for :client if there is no row, or it is over, or it is
     * :client's already and not over (then token and acquisition time stay, and
     * the lease is renewed); but not before others who wait for it.  One row:
     * the token, as integer; a second integer, if there is one, is not 0 when
     * others wait; a third one is not 0 when there was no row before.  No row:
     * another owner has the lock, or is before. */
    SQLOCK_SQL_CLAIM,
    /* CLAIM; but otherwise put a ticket of :client and :shown into QUEUE,
     * behind the others, or renew the one that is there; and with a ticket,
     * take the lock in its turn: it is reserved for the ticket, or is over, and
     * the ticket is the first in QUEUE.  One row: as CLAIM, but null for a
     * token that is not granted; and the us that the lease of the holder
     * remains; not 0 if the holder is sqlock's; its CLIENT_ID; QUEUE; SHARERS
     * where the bell is not of one.  Or, if not granted, none or fewer columns:
     * the row is read.  :bell is taken for the session, where the driver's bell
     * is of one.  Missing: the layout has no QUEUE. */
    SQLOCK_SQL_ENQUEUE,
    /* Take :client's ticket out.  affected: 1 or 0.  Missing as ENQUEUE. */
    SQLOCK_SQL_LEAVE,
    /* Renew the lease unless it is over.  affected: 1, or 0; it may be 0 for a
     * renewed lease if no value changed. */
    SQLOCK_SQL_RENEW,
    /* Free the lease, over or not; deletes the row on Spring's layouts.  If
     * others wait, the row is not free but the first one's for a second, and
     * its bell is rung, with its CLIENT_ID.  affected: 1 or 0.  Need not be
     * durable. */
    SQLOCK_SQL_RELEASE,
    /* CLAIM, but of a free lock whose row is there and has no QUEUE.  One row:
     * the token.  No row: nothing was changed, and CLAIM may yet be granted.
     * Missing as ENQUEUE. */
    SQLOCK_SQL_CLAIM_UNQUEUED,
    /* CLAIM of a row that :client has and is not over.  As the one above. */
    SQLOCK_SQL_CLAIM_RESERVED,
    /* RELEASE of a row that has no QUEUE.  affected: 1; or 0, and nothing was
     * changed, though the lease may be there.  Missing as ENQUEUE. */
    SQLOCK_SQL_RELEASE_UNQUEUED,
    /* The info row, if there is a row.  Locks nothing. */
    SQLOCK_SQL_READ,
    /* End the lease of :old_client if it is not over: CLIENT_ID becomes
     * :client, HOLDER :holder, the token rises, the lease's end stays.
     * affected: 1 or 0. */
    SQLOCK_SQL_BREAK,
    /* As BREAK, but the lock is free at once. */
    SQLOCK_SQL_BREAK_NOW,
    /* Find the end of the next range of rows to reap.  A bound of a range is a
     * text that only the dialect understands.  One row: the end of the range
     * that begins at :after (the end of the previous range, or "") and has
     * about :limit rows; null when nothing is left. */
    SQLOCK_SQL_REAP_BOUND,
    /* Delete the rows of :region between the bounds :after and :until whose
     * lease ended more than :age ago and whose token, if there is one, lies
     * more than :age before now, except locked rows.  affected: how many. */
    SQLOCK_SQL_REAP,
    /* Describe the server; no parameters.  One row: 1 when the server is
     * read-only or else 0, now in us, the server's name and version as text. */
    SQLOCK_SQL_SERVER,
    /* The columns of :table in :schema.  Rows:
     * column name in upper case, its type in lower case, 1 when it may be null
     * or else 0, its position in the primary key or 0, and what makes the table
     * unfit for locks ("an unlogged table", "a view", "a MEMORY table") or
     * null; the collation or type by which texts of other bytes may be equal,
     * or null; the schema in which the table was found; as SERVER's first
     * cell; 2 when this login may read and change the column, 1 when it may
     * read it, or else 0; maybe one more (LK_COLUMN_BESIDE).  No row: no such
     * table. */
    SQLOCK_SQL_DESCRIBE,

    /*
     * Many leases in one statement.  :items is a JSON array of objects, sorted
     * by key, each key once: "k" LOCK_KEY, "c" CLIENT_ID, "t" the TTL in us,
     * and for a claim "n" LOCK_NAME and "h" HOLDER.  Rows of other regions are
     * never touched; keys are touched in order.
     */
    /* CLAIM for each object.  Rows: LOCK_KEY, token and present CLIENT_ID of
     * the row of each granted lease, or of every row; or, if the database
     * cannot return them in the same statement, no rows, and `affected` is 0 if
     * no lease was granted. */
    SQLOCK_SQL_CLAIM_MANY,
    /* RENEW for each object, with its own TTL.  A locked row is passed over.
     * Rows: "k" and now in us of each renewed lease, or LOCK_KEY, now
     * and CLIENT_ID; or one row with now in us, and `affected`: how many
     * changed. */
    SQLOCK_SQL_RENEW_MANY,
    /* RELEASE for each object.  Rows: "k" of each released lease, or LOCK_KEY
     * where the database returns columns of the row only; or no rows, and
     * `affected`: how many were released. */
    SQLOCK_SQL_RELEASE_MANY,
    /* The info row of each object's key, with "k" as its LOCK_KEY. */
    SQLOCK_SQL_READ_MANY,
    /* CLAIM_UNQUEUED and RELEASE_UNQUEUED for each object.  A locked row is
     * passed over.  Rows: LOCK_KEY of each row that was changed, and for a
     * claim its token.  Missing as ENQUEUE, or if the database cannot do so in
     * one statement; not sent to a server that returns no rows. */
    SQLOCK_SQL_CLAIM_UNQUEUED_MANY,
    SQLOCK_SQL_RELEASE_UNQUEUED_MANY,
    /* Give the lease of :old_client to :client, unless it is over; otherwise as
     * CLAIM.  One row: the token.  No row: nothing was changed.
     * Durable like a claim. */
    SQLOCK_SQL_HAND_OFF,
    /* RELEASE, but free the row even if others wait, who may take it 110 ms
     * later, after a Spring service had its chance.  Missing as ENQUEUE, or no
     * service can share the database. */
    SQLOCK_SQL_RELEASE_TO_PEERS,
    /* RELEASE on the session that has :bell, which it gives up.  Missing: the
     * driver's bell is not of one. */
    SQLOCK_SQL_RELEASE_WITH_BELL,
    /*
     * Locks that several share (lease/sharer.h).  A share is what CLIENT_ID
     * :client has in SHARERS while the lock is shared: CLIENT_ID of the row is
     * that of the group.  All are missing where ENQUEUE is.
     */
    /* Add a share of :weight and :shown; or renew the one that is there and not
     * over, whose token stays.  Not if :weight is more than the row's limit, or
     * the row has LK_SHARERS_MAX sharers; nor before its turn: exclusive
     * holders, the sharers and those with tickets before leave no room.  A
     * claim that is not granted gets a ticket as from ENQUEUE, with :weight,
     * unless :waits is null.  The limit becomes :permits where there is none.
     * A share that begins a group rings those who can share it.  One row: as
     * ENQUEUE with SHARERS, if granted only to the end of its limit; or none or
     * fewer columns, as there. */
    SQLOCK_SQL_SHARE,
    /* Renew the share unless it is over.  affected as of RENEW. */
    SQLOCK_SQL_RENEW_SHARE,
    /* Remove the share, over or not.  The last one frees the row; if others
     * wait, the row is the first one's for a second, as after RELEASE, or
     * that of all who can share it.  Those who now can are rung.  affected: 1
     * or 0.  Need not be durable. */
    SQLOCK_SQL_RELEASE_SHARE,
    /* Give the share of :old_client, if it is not over, to :client, with the
     * text :shown.  The lock's token rises; the share's end and token stay.
     * affected: 1 or 0. */
    SQLOCK_SQL_BREAK_SHARE,
    /* Make a share of :weight 1, with the lease's token, of the lease, unless
     * that is over or the row has permits.  Those who can share it are rung.
     * affected: 1 or 0. */
    SQLOCK_SQL_DOWNGRADE,
    /* Make :permits the limit of the row, and ring those who have room now.
     * affected: 1, or 0 if there is no row, a Spring service has it, or no
     * value changed. */
    SQLOCK_SQL_PERMITS,
    /* Write the text :shown of a leader into LEADER (lease/leader_text.h),
     * unless the lease is over, or a text of it is there with a later :serial.
     * TELL, if that is there.  affected: 1 or 0, also 0 if no value changed.
     * Missing as ENQUEUE. */
    SQLOCK_SQL_PUBLISH,
    /* Ring all bells of the database, with the text "!" and :key: the leader of
     * that lock has changed.  Missing as ENQUEUE, or if the driver has no bell
     * that hears for all. */
    SQLOCK_SQL_TELL,
    /* In a row that is over, or shared, and has :token and :old_queue, QUEUE
     * becomes :queue, and the bells are rung that :rung names (pass_on.h).  A
     * row that is over is reserved for :client, with :holder, for a second, or
     * free if that is null.  Not if a session has a bell of :dropped, where
     * bells are of one.  affected: 1 or 0.  Missing as ENQUEUE. */
    SQLOCK_SQL_PASS_ON,
    /* Ring the bells of the first who wait for the keys :items, with CLIENT_ID,
     * "?" and the ms after which to look at the row.  Missing as TELL. */
    SQLOCK_SQL_ASK_TO_LOOK,
    /* Read who waits for whom in :region.  Rows: CLIENT_ID, QUEUE and SHARERS
     * of each lock that is held and has tickets, and the time in us.  Missing
     * as ENQUEUE. */
    SQLOCK_SQL_WAITS,
    /* No parameters; sent in a transaction.  Free every row of INT_LOCK and
     * raise its token; delete all of them on Spring's layouts.  affected: how
     * many.  May be missing. */
    SQLOCK_SQL_AFTER_RESTORE,
    /* Guard a lease in a transaction of another program: the library does not
     * send this statement but prints it, with literals for parameters.  It is
     * an error unless the lease is :client's, has the token :token if the
     * layout keeps tokens, and is not over.  If it succeeds, no other session
     * can change the lease until the transaction ends.  It may wait for a row
     * lock.  Missing: leases cannot be guarded. */
    SQLOCK_SQL_GUARD,
    /* Info rows, with REGION as one more column, that meet three conditions.
     * The region is :region (null: any whose name does not end with "#tx").
     * The row is not free, or :with_free is not 0.  Its name, or LOCK_KEY where
     * it has none, is LIKE :pattern (null: any).  At most :limit rows, in the
     * :order "name", "held", "ttl" or "token". */
    SQLOCK_SQL_FIND,
    /* Sent in a transaction before FIND_PAGE, with the parameters of FIND
     * except :limit and :order; FIND_PAGE then returns the rows as they are
     * now.  Missing: FIND_PAGE reads by key. */
    SQLOCK_SQL_FIND_BEGIN,
    /* The rows of FIND after LOCK_KEY :after of :after_region, :limit at most,
     * by key and region; after FIND_BEGIN: the next rows, in any order. */
    SQLOCK_SQL_FIND_PAGE,

    /*
     * In transactions of the application, where nothing may be left changed in
     * the session.  The row of a name, in a region of its own, stands for that
     * name where sqlock_tx_lock() locks it.
     */
    /* Insert the row with :name, free, if it is missing.  Missing: the database
     * does not lock rows one by one. */
    SQLOCK_SQL_NAME_SEED,
    /* Lock the row until the transaction ends, without waiting.  If another
     * session has it locked: EBUSY, or no row.  Also no row if the
     * transaction's snapshot lacks it.  Missing as NAME_SEED. */
    SQLOCK_SQL_NAME_LOCK,
    /* Lock the row, and wait while another session has it locked. */
    SQLOCK_SQL_NAME_WAIT,
    /* Return the row, even if it is locked. */
    SQLOCK_SQL_NAME_LOOK,
    /* Delete the rows of :region between the bounds :after and :until of
     * REAP_BOUND that NAME_SEED inserted more than :age ago, or whose lease
     * ended then, except locked rows.  affected: how many.  Never waits for a
     * row lock.  Missing as NAME_SEED. */
    SQLOCK_SQL_NAME_REAP,
    /* For a database with one write lock: take the write lock, and change
     * nothing.  Else missing. */
    SQLOCK_SQL_WRITE_LOCK,
    /* Guard the lease if it has the token :token, where the layout keeps
     * tokens: no other session can change it until the transaction ends.  One
     * row: 1 if the lease is not over, otherwise 0.  No row: it is not
     * :client's, or another session has a row lock, for which this never
     * waits. */
    SQLOCK_SQL_TX_GUARD,
    /* For `commit_if`: as TX_GUARD, but an error instead of no row.  Missing if
     * there is no `commit_if`. */
    SQLOCK_SQL_TX_ASSERT,
    /* A query whose last cell of the first row, a text, identifies the server,
     * the database and INT_LOCK in :schema (null: none was named).  Two
     * connections with equal texts find the same table. */
    SQLOCK_SQL_IDENTITY,
    /* A query that takes no snapshot and returns one text: "read committed", in
     * upper or lower case, or another text if the transaction reads from a
     * snapshot that its first statement takes.  Missing: IDENTITY takes no
     * snapshot. */
    SQLOCK_SQL_ISOLATION,
    /* A query that returns a row if row locks exclude only the sessions of one
     * node of a cluster with several writable nodes.  It takes no snapshot.
     * Missing: the database has no such clusters. */
    SQLOCK_SQL_ONE_NODE,

    /* Run-once records, in INT_DONE: CLIENT_ID of that of :key and :region. */
    SQLOCK_SQL_ONCE_READ,
    /* Insert the record. */
    SQLOCK_SQL_ONCE_RECORD,
    /* LOCK_KEY, CLIENT_ID, FENCE, us at which it was written, and LOCK_NAME of
     * :key (null: of all), by name. */
    SQLOCK_SQL_ONCE_LIST,
    /* Delete the record.  affected: 1 or 0. */
    SQLOCK_SQL_ONCE_FORGET,

    /* One row: the number, as integer, of sessions of this database that are in
     * a transaction or a statement and have set a name that begins with
     * :tag_prefix and is not :tag.  Missing: sessions have no names. */
    SQLOCK_SQL_STALE_SESSIONS,
    /* One row: the number, as integer, of all sessions of such a name, which
     * takes the server less time.  Missing with that one. */
    SQLOCK_SQL_TAGGED_SESSIONS,
    /* One row: in what :table is, such as "the file /var/lib/locks.db"; tables
     * that other sessions may find in its place, or null. */
    SQLOCK_SQL_PLACE,
    /* One row if an index of :table in :schema begins with CREATED_AT, by which
     * old orders of stock are read; earlier versions made none. */
    SQLOCK_SQL_HAS_AGE_INDEX,
    /* INT_LOCK_SERVER (src/lease/grace.h): the server's own epoch, or null; the
     * row's, or null; for how many us it grants nothing; the longest TTL in ms;
     * that of a new lease. */
    SQLOCK_SQL_GRACE,
    /* Let the server's own epoch end with a mark, if it has none, which a crash
     * takes away.  Missing: an epoch tells crashes as it is. */
    SQLOCK_SQL_MARK,
    /* Note the epoch :name in place of :old_epoch, and that nothing is granted
     * for that TTL, if more is new than a mark. */
    SQLOCK_SQL_BEGIN_GRACE,
    /* Raise that TTL to :ttl; that of new leases; to what both are lowered. */
    SQLOCK_SQL_LENGTHEN_GRACE,
    SQLOCK_SQL_ALLOW_GRACE,
    SQLOCK_SQL_LEAST_GRACE,
    /* One row: the longest TTL of a new lease in ms; the position in the log;
     * how many standbys' are hidden, and are not yet there, or at :name. */
    SQLOCK_SQL_STANDBYS,
    /* A row: a lease may last longer than what LEAST_GRACE has set. */
    SQLOCK_SQL_LONGER,
    /* Lower the longest TTL of new leases; five minutes later the other. */
    SQLOCK_SQL_SHORTEN_GRACE,
    /* Let it grant; :holder says who, and why.  affected: 0: it does. */
    SQLOCK_SQL_END_GRACE,
    SQLOCK_SQL_KINDS /* their number */
} sqlock_statement_kind;

/* Number of layouts, see sqlock_layout. */
#define SQLOCK_LAYOUTS 3

/* The schemas of a dialect: one for each layout, and these. */
enum {
    SQLOCK_SCHEMA_DONE = SQLOCK_LAYOUTS,
    SQLOCK_SCHEMA_STOCK,
    SQLOCK_SCHEMAS
};

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
    char strict_quote;              /* what is in it is never a text */
    bool folds_to_lower;            /* unquoted identifiers are lower case */
    bool ignores_case;              /* of the names of columns, quoted or not */
    size_t identifier_max;          /* most bytes of an identifier */
    const sqlock_column *columns;   /* of all layouts; ends with a NULL name */
    /* Statements that create INT_LOCK, by layout, INT_DONE, or INT_STOCK and
     * the tables beside it, each ending with ";\n". */
    const char *schema[SQLOCK_SCHEMAS];
    /* Of SERVER and DESCRIBE, and those from IDENTITY on, each layout has the
     * same text. */
    const struct lk_sql *statements;
    bool polls; /* its statements are those for waiting=poll */
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
} sqlock_dialect;

/* ---------------------------------------------------------------- stock -- */

/* Variants of the statements about stock: INT_STOCK is sqlock's own table, or
 * one of the application's, whose item column compares texts by their bytes, or
 * by a collation that takes texts of other bytes for equal; and the table has a
 * version or not. */
enum {
    LK_OURS_VERSIONED = 1 << 0,
    LK_OURS_UNVERSIONED = 1 << 1,
    LK_EXACT_VERSIONED = 1 << 2,
    LK_EXACT_UNVERSIONED = 1 << 3,
    LK_LOOSE_VERSIONED = 1 << 4,
    LK_LOOSE_UNVERSIONED = 1 << 5
};

/* The parameters of statements about stock; SQLOCK_SP_ITEM is :item in the SQL.
 * Two share a number if no statement has both. */
typedef enum sqlock_stock_parameter {
    SQLOCK_SP_ITEM = 1, /* text, or integer where the column is one */
    SQLOCK_SP_QUANTITY, /* integer */
    SQLOCK_SP_ORDER,    /* text */
    SQLOCK_SP_ROWS,     /* JSON */
    SQLOCK_SP_STATE,    /* text: STATE of reservations */
    SQLOCK_SP_LINE,     /* integer: a line of an order */
    SQLOCK_SP_TTL,      /* integer, us */
    SQLOCK_SP_VERSION,  /* integer */
    SQLOCK_SP_STOCK,    /* text: STOCK of reservations; see stock.sql */

    SQLOCK_SP_NAME = SQLOCK_SP_STATE,     /* text: the item of an entry */
    SQLOCK_SP_LIMIT = SQLOCK_SP_QUANTITY, /* integer: the most rows */
    SQLOCK_SP_AGE = SQLOCK_SP_TTL,        /* integer, us */
    SQLOCK_SP_AFTER = SQLOCK_SP_VERSION   /* integer: a time of the database's
                                             clock, in us since 1970 */
} sqlock_stock_parameter;

/*
 * An entry is a row of an order in INT_STOCK_ENTRY.  Entries as a parameter
 * are a JSON array of objects: "o" ORDER_ID, "l" LINE, "i" ITEM, "k" KIND, "q"
 * QUANTITY, "d" DELTA, "s" STATUS, "b" BALANCE.
 */
typedef enum sqlock_stock_kind {
    /* --- on a quantity --- */
    /* The quantity of :item.  Locks nothing. */
    SQLOCK_STOCK_SQL_READ,
    /* READ, and lock the row: no other session can change it until the
     * transaction ends. */
    SQLOCK_STOCK_SQL_LOCK,
    /* Quantity and version of :item. */
    SQLOCK_STOCK_SQL_READ_VERSION,
    /* Deduct :quantity from :item.  One row: the quantity that is left, or null
     * where MariaDB does not tell it.  No row: less than :quantity is there, or
     * there is no such item. */
    SQLOCK_STOCK_SQL_DEDUCT,
    /* DEDUCT if the version is :version.  affected: 1 or 0. */
    SQLOCK_STOCK_SQL_SWAP,
    /* Add :quantity to :item.  One row: the quantity that is there now, or null
     * as of DEDUCT.  No row: it would be more than the column holds, or there
     * is no such item. */
    SQLOCK_STOCK_SQL_RESTORE,
    /* Set the quantity of :item, which exists, to :quantity. */
    SQLOCK_STOCK_SQL_ASSIGN,
    /* Insert the item :item with a quantity of 0 if it is missing. */
    SQLOCK_STOCK_SQL_MAKE,
    /* Items and quantities of all rows, by item. */
    SQLOCK_STOCK_SQL_LIST,

    /* --- orders --- */
    /* Insert the entries :rows that do not exist.  affected: how many. */
    SQLOCK_STOCK_SQL_RECORD,
    /* Deduct :quantity from :item and insert the entries :rows, adding the
     * quantity that is left to each BALANCE.  One row: the quantity that is
     * left.  No row: nothing was deducted, as in DEDUCT, and no entry inserted.
     * EBUSY: an entry exists, and nothing was done.  Missing: the database
     * cannot do this in one statement. */
    SQLOCK_STOCK_SQL_COMBINE,
    /* The entries of the orders in the JSON array of texts :rows, by order and
     * line: ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE.  Waits for
     * entries that are being inserted, where the database can. */
    SQLOCK_STOCK_SQL_ENTRIES,
    /* Mark the entries of order :order as undone: STATUS 'U' and DELTA 0. */
    SQLOCK_STOCK_SQL_UNDO,
    /* The next :limit entries that are older than :age, by CREATED_AT, ORDER_ID
     * and LINE, after the entry with the values :after, :order and :line.
     * Rows: ORDER_ID, CREATED_AT in us since 1970, LINE, and 1 if a reservation
     * keeps the entry, or else 0.  A reservation of its order keeps it if it is
     * open, or of another stock than :stock, or ended less than :age ago. */
    SQLOCK_STOCK_SQL_OLD,
    /* Remove the entries older than :age of the orders in the array :rows. */
    SQLOCK_STOCK_SQL_FORGET_ENTRIES,

    /* --- reservations, only those whose STOCK is :stock --- */
    /* Insert the reservation :order, which is over :ttl from now. */
    SQLOCK_STOCK_SQL_RESERVE,
    /* Claim :order if it is reserved and not over.  affected: 1 or 0.  CLAIM,
     * CANCEL and LAPSE set EXPIRES_AT to now. */
    SQLOCK_STOCK_SQL_CLAIM,
    /* Cancel :order if it is reserved.  affected: 1 or 0. */
    SQLOCK_STOCK_SQL_CANCEL,
    /* Let :order expire if it is reserved and over.  affected: 1 or 0. */
    SQLOCK_STOCK_SQL_LAPSE,
    /* STATE of :order and its remaining us. */
    SQLOCK_STOCK_SQL_STATUS,
    /* The next :limit reservations in the state :state whose EXPIRES_AT was
     * :age ago or more, by EXPIRES_AT and ORDER_ID, after the reservation with
     * the values :after and :order.  Rows: ORDER_ID, and EXPIRES_AT in us since
     * 1970. */
    SQLOCK_STOCK_SQL_DUE,
    /* At most :limit reservations of :name that are over, by EXPIRES_AT and
     * ORDER_ID.  Rows: ORDER_ID. */
    SQLOCK_STOCK_SQL_OVERDUE,
    /* Remove the reservations of the orders in the array :rows that ended :age
     * ago or more. */
    SQLOCK_STOCK_SQL_FORGET_RESERVATIONS,

    SQLOCK_STOCK_KINDS /* their number */
} sqlock_stock_kind;

/* Types of integer columns. */
typedef struct sqlock_integer_type {
    const char *patterns; /* of fnmatch(3), with '|' between */
    int64_t most;         /* the greatest that all of them hold */
} sqlock_integer_type;

/* A driver's part in stock. */
typedef struct sqlock_stock_dialect {
    /* A statement that adds the index of HAS_AGE_INDEX to INT_STOCK_ENTRY, as
     * `schema`. */
    const char *add_age_index;
    /* The first whose patterns fit a type counts; patterns NULL: the end. */
    const sqlock_integer_type *integers;
    const struct lk_sql *statements; /* their kinds: sqlock_stock_kind */
} sqlock_stock_dialect;

#endif
