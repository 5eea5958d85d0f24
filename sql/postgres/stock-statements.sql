-- Statements that sqlock sends to PostgreSQL about stock.  The library is built
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
-- A statement that has waited for a locked row reads the newest version of that
-- row, but all other rows as they were when the statement began.  So an order
-- that another session recorded meanwhile is found only by a conflict with the
-- primary key of the entries, never by a query within the statement.

-- ---- parameters are $1

-- ---- define now
(clock_timestamp() AT TIME ZONE 'UTC')

-- ============================================================= quantities ====

-- ---- define this_item (ours exact)
{item} = :item
-- ---- define this_item (loose)
{item} = :item AND {item}::text COLLATE "C" = :item

-- ---- read [reads]
-- Reads a quantity without locking it.
SELECT {quantity} FROM INT_STOCK WHERE {this_item};

-- ---- lock
-- Reads a quantity, and locks its row until the end of the transaction.  NO
-- KEY lets others insert rows whose foreign key refers to the item.
SELECT {quantity} FROM INT_STOCK WHERE {this_item} FOR NO KEY UPDATE;

-- ---- read version [reads]
-- Reads a quantity with its version, for swap.
SELECT {quantity}, {version} FROM INT_STOCK WHERE {this_item};

-- ---- define bump (versioned)
, {version} = {version} + 1
-- ---- define bump (unversioned)

-- ---- define deducted
UPDATE INT_STOCK SET {quantity} = {quantity} - :quantity{bump}
  WHERE {this_item} AND {quantity} >= :quantity RETURNING {quantity}

-- ---- deduct
-- Deducts if that much is there, in one statement, and returns what is left.
{deducted};

-- ---- swap
-- Deducts if nobody has changed the row since its version was read.  WHERE
-- sees the row as it was before SET.
UPDATE INT_STOCK
  SET {quantity} = {quantity} - :quantity{bump}
  WHERE {this_item} AND {version} = :version AND {quantity} >= :quantity;

-- ---- restore
-- Adds, unless the column could not hold the sum, and returns what is there.
UPDATE INT_STOCK
  SET {quantity} = {quantity} + :quantity{bump}
  WHERE {this_item} AND {quantity} <= {most} - :quantity
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

-- ---- define new_entries
INSERT INTO INT_STOCK_ENTRY (ORDER_ID, LINE, ITEM, KIND, QUANTITY, DELTA,
    STATUS, BALANCE, CREATED_AT)
  SELECT J.o, J.l, J.i, J.k, J.q, J.d, J.s,
-- ---- define entries
json_to_recordset(:rows::json) AS J (o varchar, l int, i varchar, k varchar,
  q bigint, d bigint, s varchar, b bigint)
-- ---- define of_orders
-- As an array, which is made once.  A subselect in IN is run again for each row
-- where the planner believes that the table is empty.
ORDER_ID = ANY (ARRAY(SELECT json_array_elements_text(:rows::json)))

-- ---- record
-- Records the entries of orders, but none that is there already.  A subquery
-- is evaluated once, so all rows get one time.
{new_entries} J.b, (SELECT {now})
  FROM {entries}
  ORDER BY J.o, J.l
  ON CONFLICT DO NOTHING;

-- ---- combine
-- A deduction, and the insertion of entries with what remains.
WITH U AS ({deducted} AS remains), E AS ({new_entries} U.remains + J.b, {now}
    FROM U, {entries})
  SELECT remains FROM U;

-- ---- entries [reads]
-- Reads what orders were answered.
SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE
  FROM INT_STOCK_ENTRY
  WHERE {of_orders}
  ORDER BY ORDER_ID, LINE;

-- ---- undo
-- Marks the entries of an order as undone, so that their quantities count no
-- more.
UPDATE INT_STOCK_ENTRY SET STATUS = 'U', DELTA = 0 WHERE ORDER_ID = :order;

-- ---- define long_ago
-- A subquery is evaluated once, so an index can be used.
(SELECT {now} - :age * interval '1 microsecond')
-- ---- define after
timestamp 'epoch' + :after * interval '1 microsecond'

-- ---- old [reads]
-- Reads old entries, page by page.  The last column is whether a reservation
-- keeps the entry: an open one, one of another stock, or one that ended no
-- longer than :age ago.
SELECT E.ORDER_ID, (extract(epoch FROM E.CREATED_AT) * 1000000)::bigint, E.LINE,
    EXISTS (SELECT 1 FROM INT_STOCK_RESERVATION AS R
      WHERE R.ORDER_ID = E.ORDER_ID AND (R.STATE = 'R' OR R.STOCK <> :stock OR
        R.EXPIRES_AT > {long_ago}))::int
  FROM INT_STOCK_ENTRY AS E
  WHERE E.CREATED_AT <= {long_ago} AND CREATED_AT >= {after} AND
    (CREATED_AT > {after} OR ORDER_ID > :order OR
      (ORDER_ID = :order AND LINE > :line))
  ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE
  LIMIT :limit;

-- ---- forget entries
-- Deletes old entries of orders.
DELETE FROM INT_STOCK_ENTRY
  WHERE {of_orders} AND CREATED_AT <= {long_ago};

-- =========================================================== reservations ====

-- ---- reserve
-- Records a reservation, which expires by itself.
INSERT INTO INT_STOCK_RESERVATION (ORDER_ID, STOCK, STATE, EXPIRES_AT,
    CREATED_AT)
  VALUES (:order, :stock, 'R', {now} + :ttl * interval '1 microsecond', {now});

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
SELECT STATE, (extract(epoch FROM EXPIRES_AT - {now}) * 1000000)::bigint
  FROM INT_STOCK_RESERVATION
  WHERE {this};

-- ---- due [reads]
-- Reads reservations that are over, page by page.
SELECT ORDER_ID, (extract(epoch FROM EXPIRES_AT) * 1000000)::bigint
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
DELETE FROM INT_STOCK_RESERVATION
  WHERE {of_orders} AND STOCK = :stock AND STATE <> 'R' AND
    EXPIRES_AT <= {long_ago};
