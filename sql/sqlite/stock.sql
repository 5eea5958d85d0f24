-- Stock for SQLite 3.35 or later: items, the entries of orders, reservations.
-- Times are microseconds since 1970-01-01 UTC.
--
-- Each change of a quantity and its entry are written in one transaction, so the
-- entries always add up to the quantities:
--     quantity now = quantity at first + sum of DELTA
-- for an item whose every change has had an order id.
PRAGMA journal_mode=WAL;

CREATE TABLE IF NOT EXISTS INT_STOCK (
    ITEM     TEXT    NOT NULL PRIMARY KEY,
    QUANTITY INTEGER NOT NULL CHECK (typeof(QUANTITY) = 'integer'
                                     AND QUANTITY >= 0),
    VERSION  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- One row for each item of an order.  KIND: D deducted, A added, S set, R
-- reserved.  STATUS: D done, I insufficient, N nothing for another item's sake,
-- U undone.  BALANCE: what was left, or there; -1 where that was not known.
-- While the row is there, its order is not done again; `sqlock stock reap` removes
-- old ones, and reads them by CREATED_AT.  A table without that index gets it
-- by `sqlock stock init`, or
--     CREATE INDEX INT_STOCK_ENTRY_AGE
--         ON INT_STOCK_ENTRY (CREATED_AT, ORDER_ID, LINE);
CREATE TABLE IF NOT EXISTS INT_STOCK_ENTRY (
    ORDER_ID   TEXT    NOT NULL,
    LINE       INTEGER NOT NULL,
    ITEM       TEXT    NOT NULL,
    KIND       TEXT    NOT NULL,
    QUANTITY   INTEGER NOT NULL,
    DELTA      INTEGER NOT NULL,
    STATUS     TEXT    NOT NULL,
    BALANCE    INTEGER NOT NULL,
    CREATED_AT INTEGER NOT NULL,
    PRIMARY KEY (ORDER_ID, LINE),
    UNIQUE (CREATED_AT, ORDER_ID, LINE),
    CHECK (DELTA = 0 OR STATUS = 'D')
) WITHOUT ROWID;

-- One row for each reservation.  STATE: R reserved, C claimed, X cancelled, E
-- expired.  EXPIRES_AT: until when; of one that has ended, when it ended.  STOCK:
-- the application's table that it is of; empty: ours.
CREATE TABLE IF NOT EXISTS INT_STOCK_RESERVATION (
    ORDER_ID   TEXT    NOT NULL PRIMARY KEY,
    STOCK      TEXT    NOT NULL,
    STATE      TEXT    NOT NULL,
    EXPIRES_AT INTEGER NOT NULL,
    CREATED_AT INTEGER NOT NULL,
    UNIQUE (STOCK, STATE, EXPIRES_AT, ORDER_ID)
) WITHOUT ROWID;
