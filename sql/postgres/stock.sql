-- Stock for PostgreSQL 12 and later: items, the entries of orders, reservations.
-- Times are UTC, by the database's clock.
--
-- Each change of a quantity and its entry are written in one transaction, so the
-- entries always add up to the quantities:
--     quantity now = quantity at first + sum of DELTA
-- for an item whose every change has had an order id.
--
-- A hot row leaves a dead version with each change: room in its page and an
-- early vacuum keep the way to the living one short.  No index has QUANTITY.
CREATE TABLE IF NOT EXISTS INT_STOCK (
    ITEM     VARCHAR(190) NOT NULL PRIMARY KEY,
    QUANTITY BIGINT       NOT NULL CHECK (QUANTITY >= 0),
    VERSION  BIGINT       DEFAULT 0 NOT NULL
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

-- One row for each item of an order.  KIND: D deducted, A added, S set, R
-- reserved.  STATUS: D done, I insufficient, N nothing for another item's sake,
-- U undone.  BALANCE: what was left, or there; -1 where that was not known.
-- While the row is there, its order is not done again; `sqlock stock reap` removes
-- old ones, and reads them by CREATED_AT.  A table without that index gets it
-- by `sqlock stock init`, or
--     CREATE INDEX ON INT_STOCK_ENTRY (CREATED_AT, ORDER_ID, LINE);
CREATE TABLE IF NOT EXISTS INT_STOCK_ENTRY (
    ORDER_ID   VARCHAR(190) NOT NULL,
    LINE       INTEGER      NOT NULL,
    ITEM       VARCHAR(190) NOT NULL,
    KIND       VARCHAR(1)   NOT NULL,
    QUANTITY   BIGINT       NOT NULL,
    DELTA      BIGINT       NOT NULL,
    STATUS     VARCHAR(1)   NOT NULL,
    BALANCE    BIGINT       NOT NULL,
    CREATED_AT TIMESTAMP    NOT NULL,
    PRIMARY KEY (ORDER_ID, LINE),
    UNIQUE (CREATED_AT, ORDER_ID, LINE),
    CHECK (DELTA = 0 OR STATUS = 'D')
);

-- One row for each reservation.  STATE: R reserved, C claimed, X cancelled, E
-- expired.  EXPIRES_AT: until when; of one that has ended, when it ended.  STOCK:
-- the application's table that it is of; empty: ours.
CREATE TABLE IF NOT EXISTS INT_STOCK_RESERVATION (
    ORDER_ID   VARCHAR(190) NOT NULL PRIMARY KEY,
    STOCK      VARCHAR(190) NOT NULL,
    STATE      VARCHAR(1)   NOT NULL,
    EXPIRES_AT TIMESTAMP    NOT NULL,
    CREATED_AT TIMESTAMP    NOT NULL,
    UNIQUE (STOCK, STATE, EXPIRES_AT, ORDER_ID)
);
