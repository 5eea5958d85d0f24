-- Statements that sqlock sends to SQLite about stock.  The library is built
-- from this file.  In the sources, sql/README.md says how to change it, and
-- src/db/dialect.h what each statement must return.
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
-- SQLite has one writer at a time, so rows that a writing transaction has read
-- do not change before its end, and need not be locked.  The entries of an
-- order are recorded by a statement of their own.

-- ---- parameters are ?

-- The present time, to the ms.  A transaction of the application is on a
-- connection that lacks sqlock_now().
-- ---- define now
(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)

-- ============================================================= quantities ====

-- ---- define this_item (ours exact)
{item} = :item
-- ---- define this_item (loose)
{item} = :item AND {item} COLLATE BINARY = :item

-- ---- read [reads]
-- Reads a quantity without locking it.
SELECT {quantity} FROM INT_STOCK WHERE {this_item};

-- ---- lock
-- Reads a quantity, and locks its row until the end of the transaction.
SELECT {quantity} FROM INT_STOCK WHERE {this_item};

-- ---- read version [reads]
-- Reads a quantity with its version, for swap.
SELECT {quantity}, {version} FROM INT_STOCK WHERE {this_item};

-- ---- define bump (versioned)
, {version} = {version} + 1
-- ---- define bump (unversioned)

-- A column of integers may hold a text, which is greater than any number.
-- ---- define countable (ours)
{this_item}
-- ---- define countable (exact loose)
{this_item} AND typeof({quantity}) = 'integer'

-- ---- deduct
-- Deducts if that much is there, in one statement, and returns what is left.
UPDATE INT_STOCK
  SET {quantity} = {quantity} - :quantity{bump}
  WHERE {countable} AND {quantity} >= :quantity
  RETURNING {quantity};

-- ---- swap
-- Deducts if nobody has changed the row since its version was read.  WHERE
-- sees the row as it was before SET.
UPDATE INT_STOCK
  SET {quantity} = {quantity} - :quantity{bump}
  WHERE {countable} AND {version} = :version AND {quantity} >= :quantity;

-- ---- restore
-- Adds, unless the column could not hold the sum, and returns what is there.
UPDATE INT_STOCK
  SET {quantity} = {quantity} + :quantity{bump}
  WHERE {countable} AND {quantity} <= {most} - :quantity
  RETURNING {quantity};

-- ---- assign
-- Sets a quantity.
UPDATE INT_STOCK SET {quantity} = :quantity{bump} WHERE {this_item};

-- ---- make
-- Inserts an item with nothing of it, if it is missing.
INSERT INTO INT_STOCK ({item}, {quantity})
  VALUES (:item, 0)
  ON CONFLICT DO NOTHING;

-- ---- list [reads]
-- Reads all items.
SELECT {item}, {quantity} FROM INT_STOCK ORDER BY {item};

-- ================================================================= orders ====

-- ---- record
-- Records the entries of orders, but none that is there already.  "WHERE
-- true": without it, ON CONFLICT would be parsed as a join's ON.
INSERT INTO INT_STOCK_ENTRY (ORDER_ID, LINE, ITEM, KIND, QUANTITY, DELTA,
    STATUS, BALANCE, CREATED_AT)
  SELECT J.o, J.l, J.i, J.k, J.q, J.d, J.s, J.b, {now}
  FROM (SELECT json_extract(J.value, '$.o') AS o,
    json_extract(J.value, '$.l') AS l, json_extract(J.value, '$.i') AS i,
    json_extract(J.value, '$.k') AS k, json_extract(J.value, '$.q') AS q,
    json_extract(J.value, '$.d') AS d, json_extract(J.value, '$.s') AS s,
    json_extract(J.value, '$.b') AS b
    FROM json_each(:rows) AS J) AS J
  WHERE true
  ON CONFLICT DO NOTHING;

-- ---- define orders
SELECT J.value FROM json_each(:rows) AS J

-- ---- entries [reads]
-- Reads what orders were answered.
SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE
  FROM INT_STOCK_ENTRY
  WHERE ORDER_ID IN ({orders})
  ORDER BY ORDER_ID, LINE;

-- ---- undo
-- Marks the entries of an order as undone, so that their quantities count no
-- more.
UPDATE INT_STOCK_ENTRY SET STATUS = 'U', DELTA = 0 WHERE ORDER_ID = :order;

-- ---- define long_ago
{now} - :age

-- ---- old [reads]
-- Reads old entries, page by page.  The last column is whether a reservation
-- keeps the entry: an open one, one of another stock, or one that ended no
-- longer than :age ago.
SELECT E.ORDER_ID, E.CREATED_AT, E.LINE,
    EXISTS (SELECT 1 FROM INT_STOCK_RESERVATION AS R
      WHERE R.ORDER_ID = E.ORDER_ID AND (R.STATE = 'R' OR R.STOCK <> :stock OR
        R.EXPIRES_AT > {long_ago}))
  FROM INT_STOCK_ENTRY AS E
  WHERE E.CREATED_AT <= {long_ago} AND CREATED_AT >= :after AND
    (CREATED_AT > :after OR ORDER_ID > :order OR
      (ORDER_ID = :order AND LINE > :line))
  ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE
  LIMIT :limit;

-- ---- forget entries
-- Deletes old entries of orders.
DELETE FROM INT_STOCK_ENTRY
  WHERE ORDER_ID IN ({orders}) AND CREATED_AT <= {long_ago};

-- =========================================================== reservations ====

-- ---- reserve
-- Records a reservation, which expires by itself.
INSERT INTO INT_STOCK_RESERVATION (ORDER_ID, STOCK, STATE, EXPIRES_AT,
    CREATED_AT)
  VALUES (:order, :stock, 'R', {now} + :ttl, {now});

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
SELECT STATE, EXPIRES_AT - {now}
  FROM INT_STOCK_RESERVATION
  WHERE {this};

-- ---- due [reads]
-- Reads reservations that are over, page by page.
SELECT ORDER_ID, EXPIRES_AT
  FROM INT_STOCK_RESERVATION
  WHERE STOCK = :stock AND STATE = :state AND EXPIRES_AT <= {long_ago} AND
    EXPIRES_AT >= :after AND (EXPIRES_AT > :after OR ORDER_ID > :order)
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
DELETE FROM INT_STOCK_RESERVATION
  WHERE ORDER_ID IN ({orders}) AND STOCK = :stock AND STATE <> 'R' AND
    EXPIRES_AT <= {long_ago};
