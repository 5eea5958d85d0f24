-- Stock for MySQL 8.0.16 and later and MariaDB 10.6 and later: items, the
-- entries of orders, reservations.  Names are compared byte by byte; times are
-- UTC by the server's clock.
--
-- Each change of a quantity and its entry are written in one transaction, so the
-- entries always add up to the quantities:
--     quantity now = quantity at first + sum of DELTA
-- for an item whose every change has had an order id.

CREATE TABLE IF NOT EXISTS INT_STOCK (
    ITEM VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    QUANTITY BIGINT NOT NULL,
    VERSION BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (ITEM),
    CHECK (QUANTITY >= 0)
) ENGINE=InnoDB;

-- One row for each item of an order.  KIND: D deducted, A added, S set, R
-- reserved.  STATUS: D done, I insufficient, N nothing for another item's sake,
-- U undone.  BALANCE: what was left, or there; -1 where that was not known.
-- While the row is there, its order is not done again; `sqlock stock reap` removes
-- old ones, and reads them by CREATED_AT.  A table without that index gets it
-- by `sqlock stock init`, or
--     ALTER TABLE INT_STOCK_ENTRY ADD KEY (CREATED_AT, ORDER_ID, LINE);

CREATE TABLE IF NOT EXISTS INT_STOCK_ENTRY (
    ORDER_ID VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    LINE INTEGER NOT NULL,
    ITEM VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    KIND CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    QUANTITY BIGINT NOT NULL,
    DELTA BIGINT NOT NULL,
    STATUS CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    BALANCE BIGINT NOT NULL,
    CREATED_AT DATETIME(6) NOT NULL,
    PRIMARY KEY (ORDER_ID, LINE),
    KEY (CREATED_AT, ORDER_ID, LINE),
    CHECK (DELTA = 0 OR STATUS = 'D')
) ENGINE=InnoDB;

-- One row for each reservation.  STATE: R reserved, C claimed, X cancelled, E
-- expired.  EXPIRES_AT: until when; of one that has ended, when it ended.  STOCK:
-- the application's table that it is of; empty: ours.

CREATE TABLE IF NOT EXISTS INT_STOCK_RESERVATION (
    ORDER_ID VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    STOCK VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    STATE CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    EXPIRES_AT DATETIME(6) NOT NULL,
    CREATED_AT DATETIME(6) NOT NULL,
    PRIMARY KEY (ORDER_ID),
    KEY (STOCK, STATE, EXPIRES_AT)
) ENGINE=InnoDB;
