-- Statements that sqlock sends to MySQL and MariaDB about stock.  The library
-- is built from this file.  In the sources, sql/README.md says how to change
-- it, and src/db/dialect.h what each statement must return.
--
-- How to read it.  "-- ---- NAME" begins a statement, and "-- ---- define NAME"
-- a fragment, which stands in statements as {NAME}.  :name is a parameter.
-- INT_STOCK is sqlock's own table (ours), or one of the application's, whose
-- item column compares texts by their bytes (exact), or by a collation that
-- takes texts of other bytes for equal (loose).  The program gives the names of
-- its columns, {item}, {quantity} and {version}, and {most}, the greatest
-- quantity.  A table of the application may have no version (unversioned): then
-- {version} is the quantity.  [reads]: the statement writes nothing.
--
-- A statement that has waited for a locked row reads the newest version of that
-- row, but all other rows as they were when the statement began.  So an order
-- that another session recorded meanwhile is found only by a conflict with the
-- primary key of the entries, never by a query within the statement.
--
-- Only SQL that both servers understand is used: no RETURNING, so the remaining
-- quantity is returned in the insert id; and no statement that writes to two
-- tables, so orders are inserted by a separate statement.

-- ---- parameters are ?

-- ---- define now
UTC_TIMESTAMP(6)
-- ---- define epoch
TIMESTAMP'1970-01-01 00:00:00'
-- ---- define binary
CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- ============================================================= quantities ====

-- ---- define this_item (ours exact)
{item} = :item
-- ---- define this_item (loose)
{item} = :item AND CAST(CONVERT({item} USING utf8mb4) AS BINARY) =
  CAST(:item AS BINARY)

-- ---- read [reads]
-- Reads a quantity without locking it.
SELECT {quantity} FROM INT_STOCK WHERE {this_item};

-- ---- lock
-- Reads a quantity, and locks its row until the end of the transaction.
SELECT {quantity} FROM INT_STOCK WHERE {this_item} FOR UPDATE;

-- ---- read version [reads]
-- Reads a quantity with its version, for swap.
SELECT {quantity}, {version} FROM INT_STOCK WHERE {this_item};

-- ---- define bump (versioned)
, {version} = {version} + 1
-- ---- define bump (unversioned)

-- ---- deduct [insert id complement]
-- Deducts if that much is there, in one statement, and returns what is left: by
-- the complement, since MariaDB returns 0 if the table has a trigger and a long
-- text.
UPDATE INT_STOCK
  SET {quantity} = ~LAST_INSERT_ID(~({quantity} - :quantity)){bump}
  WHERE {this_item} AND {quantity} >= :quantity;

-- ---- swap
-- Deducts if nobody has changed the row since its version was read.  WHERE
-- sees the row as it was before SET.
UPDATE INT_STOCK
  SET {quantity} = {quantity} - :quantity{bump}
  WHERE {this_item} AND {version} = :version AND {quantity} >= :quantity;

-- ---- restore [insert id complement]
-- Adds, unless the column could not hold the sum, and returns what is there.
-- WHERE sees the row as it was before SET.
UPDATE INT_STOCK
  SET {quantity} = {quantity} + :quantity{bump}
  WHERE {this_item} AND {quantity} <= {most} - :quantity AND
    LAST_INSERT_ID(~({quantity} + :quantity)) IS NOT NULL;

-- ---- assign
-- Sets a quantity.
UPDATE INT_STOCK SET {quantity} = :quantity{bump} WHERE {this_item};

-- ---- make
-- Inserts an item with nothing of it, if it is missing.
INSERT INTO INT_STOCK ({item}, {quantity})
  VALUES (:item, 0)
  ON DUPLICATE KEY UPDATE {item} = {item};

-- ---- list [reads]
-- Reads all items.
SELECT {item}, {quantity} FROM INT_STOCK ORDER BY {item};

-- ================================================================= orders ====

-- ---- record
-- Records the entries of orders, but none that is there already.
INSERT INTO INT_STOCK_ENTRY (ORDER_ID, LINE, ITEM, KIND, QUANTITY, DELTA,
    STATUS, BALANCE, CREATED_AT)
  SELECT J.o, J.l, J.i, J.k, J.q, J.d, J.s, J.b, {now}
  FROM JSON_TABLE(:rows, '$[*]' COLUMNS (o VARCHAR(190) {binary} PATH '$.o',
    l INTEGER PATH '$.l', i VARCHAR(190) {binary} PATH '$.i',
    k VARCHAR(1) {binary} PATH '$.k', q BIGINT PATH '$.q', d BIGINT PATH '$.d',
    s VARCHAR(1) {binary} PATH '$.s', b BIGINT PATH '$.b')) J
  ON DUPLICATE KEY UPDATE LINE = LINE;

-- ---- define orders
-- The result of JSON_UNQUOTE, like a literal, takes the collation of the column
-- that it is compared with, so that the index is used.
JSON_TABLE(:rows, '$[*]' COLUMNS (o VARCHAR(190) {binary} PATH '$')) J
-- ---- define is_of_order
ORDER_ID = JSON_UNQUOTE(JSON_QUOTE(J.o))

-- ---- entries [reads]
-- Reads what orders were answered.  Waits for entries that are being
-- inserted.  With OF E, MySQL does not try to lock `J`.  MariaDB has no such
-- clause, and skips comments for this version of MySQL.
SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE
  FROM {orders} STRAIGHT_JOIN INT_STOCK_ENTRY AS E FORCE INDEX (PRIMARY)
  ON {is_of_order}
  ORDER BY ORDER_ID, LINE
  /*M! LOCK IN SHARE MODE */ /*!80001 FOR SHARE OF E */;

-- ---- undo
-- Marks the entries of an order as undone, so that their quantities count no
-- more.
UPDATE INT_STOCK_ENTRY SET STATUS = 'U', DELTA = 0 WHERE ORDER_ID = :order;

-- ---- define long_ago
TIMESTAMPADD(MICROSECOND, -:age, {now})
-- ---- define after
TIMESTAMPADD(MICROSECOND, :after, {epoch})

-- ---- old [reads]
-- Reads old entries, page by page.  The last column is whether a reservation
-- keeps the entry: an open one, one of another stock, or one that ended no
-- longer than :age ago.
SELECT E.ORDER_ID, TIMESTAMPDIFF(MICROSECOND, {epoch}, E.CREATED_AT), E.LINE,
    EXISTS (SELECT 1 FROM INT_STOCK_RESERVATION AS R
      WHERE R.ORDER_ID = E.ORDER_ID AND (R.STATE = 'R' OR R.STOCK <> :stock OR
        R.EXPIRES_AT > {long_ago}))
  FROM INT_STOCK_ENTRY AS E
  WHERE E.CREATED_AT <= {long_ago} AND CREATED_AT >= {after} AND
    (CREATED_AT > {after} OR ORDER_ID > :order OR
      (ORDER_ID = :order AND LINE > :line))
  ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE
  LIMIT :limit;

-- ---- forget entries
-- Deletes old entries of orders.
DELETE T
  FROM {orders} STRAIGHT_JOIN INT_STOCK_ENTRY AS T FORCE INDEX (PRIMARY)
  ON {is_of_order}
  WHERE CREATED_AT <= {long_ago};

-- =========================================================== reservations ====

-- ---- reserve
-- Records a reservation, which expires by itself.
INSERT INTO INT_STOCK_RESERVATION (ORDER_ID, STOCK, STATE, EXPIRES_AT,
    CREATED_AT)
  VALUES (:order, :stock, 'R', TIMESTAMPADD(MICROSECOND, :ttl, {now}), {now});

-- ---- define this
ORDER_ID = :order AND STOCK = :stock

-- ---- claim
-- Ends a reservation that is not over: its quantities are sold.
UPDATE INT_STOCK_RESERVATION
  SET STATE = 'C', EXPIRES_AT = {now}
  WHERE {this} AND STATE = 'R' AND EXPIRES_AT > {now};

-- ---- cancel
-- Ends a reservation: its quantities go back.
UPDATE INT_STOCK_RESERVATION
  SET STATE = 'X', EXPIRES_AT = {now}
  WHERE {this} AND STATE = 'R';

-- ---- lapse
-- Ends a reservation that is over: its quantities go back.
UPDATE INT_STOCK_RESERVATION
  SET STATE = 'E', EXPIRES_AT = {now}
  WHERE {this} AND STATE = 'R' AND EXPIRES_AT <= {now};

-- ---- status [reads]
-- Reads the state of a reservation and how long it lasts.
SELECT STATE, TIMESTAMPDIFF(MICROSECOND, {now}, EXPIRES_AT)
  FROM INT_STOCK_RESERVATION
  WHERE {this};

-- ---- due [reads]
-- Reads reservations that are over, page by page.
SELECT ORDER_ID, TIMESTAMPDIFF(MICROSECOND, {epoch}, EXPIRES_AT)
  FROM INT_STOCK_RESERVATION
  WHERE STOCK = :stock AND STATE = :state AND EXPIRES_AT <= {long_ago} AND
    EXPIRES_AT >= {after} AND (EXPIRES_AT > {after} OR ORDER_ID > :order)
  ORDER BY EXPIRES_AT, ORDER_ID
  LIMIT :limit;

-- ---- overdue [reads]
-- Reads reservations of an item that are over.
SELECT R.ORDER_ID
  FROM INT_STOCK_RESERVATION AS R
  WHERE R.STOCK = :stock AND R.STATE = 'R' AND R.EXPIRES_AT <= {now} AND
    EXISTS (SELECT 1 FROM INT_STOCK_ENTRY AS E
      WHERE E.ORDER_ID = R.ORDER_ID AND E.ITEM = :name)
  ORDER BY R.EXPIRES_AT, R.ORDER_ID
  LIMIT :limit;

-- ---- forget reservations
-- Deletes reservations that ended long ago.
DELETE T
  FROM {orders} STRAIGHT_JOIN INT_STOCK_RESERVATION AS T FORCE INDEX (PRIMARY)
  ON {is_of_order}
  WHERE STOCK = :stock AND STATE <> 'R' AND EXPIRES_AT <= {long_ago};
