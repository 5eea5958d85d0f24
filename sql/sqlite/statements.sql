-- Every statement as it is sent to the table INT_LOCK, by
-- layout, and to the tables of stock.  A parameter is ?.
-- Written by `make statements` for readers and reviewers;
-- a test compares it.

-- ---- layout sqlock

-- claim
INSERT INTO "INT_LOCK" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER)
  VALUES (?, ?, ?, sqlock_now(), sqlock_now() + ?, sqlock_now(), ?, ?)
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= sqlock_now() THEN
    min(L.CREATED_DATE, sqlock_now()) ELSE sqlock_now() END, EXPIRED_AFTER =
    sqlock_now() + ?, FENCE = CASE WHEN L.CLIENT_ID = EXCLUDED.CLIENT_ID AND
    L.EXPIRED_AFTER >= sqlock_now() THEN L.FENCE ELSE max(L.FENCE + 1,
    sqlock_now()) END, LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = EXCLUDED.HOLDER
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < sqlock_now()
  RETURNING FENCE, sqlock_enqueue(?);

-- renew
UPDATE "INT_LOCK"
  SET CREATED_DATE = min(CREATED_DATE, sqlock_now()), EXPIRED_AFTER =
    sqlock_now() + ?
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND EXPIRED_AFTER >=
    sqlock_now();

-- release
UPDATE "INT_LOCK"
  SET CLIENT_ID = NULL, HOLDER = coalesce(sqlock_notify(?), HOLDER),
    EXPIRED_AFTER = sqlock_now() - 1
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ?;

-- read
SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now() END,
    CREATED_DATE, EXPIRED_AFTER, LOCK_NAME, HOLDER
  FROM "INT_LOCK"
  WHERE LOCK_KEY = ? AND REGION = ?;

-- list
SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now() END,
    CREATED_DATE, EXPIRED_AFTER, LOCK_NAME, HOLDER
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY > ?
  ORDER BY LOCK_KEY
  LIMIT ?;

-- break
UPDATE "INT_LOCK"
  SET CLIENT_ID = ?, HOLDER = ?, FENCE = max(FENCE + 1, sqlock_now())
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND EXPIRED_AFTER >=
    sqlock_now();

-- break now
UPDATE "INT_LOCK"
  SET CLIENT_ID = NULL, HOLDER = ?, EXPIRED_AFTER = sqlock_now() - 1, FENCE =
    max(FENCE + 1, sqlock_now())
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND EXPIRED_AFTER >=
    sqlock_now();

-- bound of a reap
SELECT max(LOCK_KEY)
  FROM (SELECT LOCK_KEY FROM "INT_LOCK" WHERE REGION = ? AND LOCK_KEY > ? ORDER
    BY LOCK_KEY LIMIT ?) AS B;

-- reap
DELETE
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY > ? AND LOCK_KEY <= ? AND EXPIRED_AFTER <
    sqlock_now() - ? AND FENCE < sqlock_now() - ?;

-- server
SELECT sqlock_readonly(), sqlock_now(), 'SQLite ' || sqlite_version();

-- describe
SELECT upper(c.name), lower(c.type), CASE WHEN c."notnull" THEN 0 ELSE 1 END,
    c.pk, CASE WHEN s.type = 'view' THEN 'a view' WHEN upper(s.sql) LIKE
    'CREATE VIRTUAL %' THEN 'a virtual table' END,
    nullif(sqlock_collation(s.name, c.name), 'BINARY'), 'main'
  FROM main.sqlite_schema AS s
  JOIN pragma_table_xinfo(s.name, 'main') AS c
  WHERE s.type IN ('table', 'view') AND lower(s.name) = lower(?) AND
    lower(coalesce(?, 'main')) = 'main'
  ORDER BY c.cid;

-- claim many
INSERT INTO "INT_LOCK" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER)
  SELECT J.k, ?, J.c, J.born, J.born + J.t, sqlock_now(), J.n, J.h
  FROM (SELECT json_extract(j.value, '$.k') AS k, json_extract(j.value, '$.c')
    AS c, json_extract(j.value, '$.t') AS t, json_extract(j.value, '$.n') AS n,
    json_extract(j.value, '$.h') AS h, sqlock_now() AS born FROM json_each(?)
    AS j) AS J
  WHERE true
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= sqlock_now() THEN
    min(L.CREATED_DATE, sqlock_now()) ELSE sqlock_now() END, EXPIRED_AFTER =
    sqlock_now() + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE), FENCE =
    CASE WHEN L.CLIENT_ID = EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >=
    sqlock_now() THEN L.FENCE ELSE max(L.FENCE + 1, sqlock_now()) END,
    LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = EXCLUDED.HOLDER
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < sqlock_now()
  RETURNING LOCK_KEY, FENCE;

-- renew many
UPDATE "INT_LOCK" AS t
  SET CREATED_DATE = min(CREATED_DATE, sqlock_now()), EXPIRED_AFTER =
    sqlock_now() + json_extract(j.value, '$.t')
  FROM json_each(?) AS j
  WHERE t.LOCK_KEY = json_extract(j.value, '$.k') AND t.REGION = ? AND
    t.CLIENT_ID = json_extract(j.value, '$.c') AND t.EXPIRED_AFTER >=
    sqlock_now()
  RETURNING LOCK_KEY, sqlock_now();

-- release many
UPDATE "INT_LOCK" AS t
  SET CLIENT_ID = NULL, EXPIRED_AFTER = sqlock_now() - 1
  FROM json_each(?) AS j
  WHERE t.LOCK_KEY = json_extract(j.value, '$.k') AND t.REGION = ? AND
    t.CLIENT_ID = json_extract(j.value, '$.c')
  RETURNING LOCK_KEY;

-- read many
SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now() END,
    CREATED_DATE, EXPIRED_AFTER, LOCK_NAME, HOLDER
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY IN (SELECT json_extract(j.value, '$.k') FROM
    json_each(?) AS j);

-- hand over
UPDATE "INT_LOCK"
  SET CLIENT_ID = ?, CREATED_DATE = sqlock_now(), EXPIRED_AFTER = sqlock_now()
    + ?, FENCE = max(FENCE + 1, sqlock_now()), LOCK_NAME = ?, HOLDER = ?
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND EXPIRED_AFTER >=
    sqlock_now()
  RETURNING FENCE;

-- after a restore
UPDATE "INT_LOCK"
  SET CLIENT_ID = NULL, HOLDER = NULL, EXPIRED_AFTER = sqlock_now() - 1, FENCE
    = max(FENCE + 1, sqlock_now());

-- guard in another program, parameters as literals
INSERT INTO "INT_LOCK" (LOCK_KEY)
  SELECT json_extract('[]', 'sqlock: the lease is over')
  WHERE NOT EXISTS (SELECT 1 FROM "INT_LOCK" WHERE LOCK_KEY = ? AND REGION = ?
    AND CLIENT_ID = ? AND FENCE = ? AND EXPIRED_AFTER >=
    (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000
    + 1000));

-- find
SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now() END,
    CREATED_DATE, EXPIRED_AFTER, LOCK_NAME, HOLDER, REGION
  FROM "INT_LOCK"
  WHERE REGION = coalesce(?, REGION) AND (? IS NOT NULL OR REGION NOT LIKE
    '%#tx') AND (? <> 0 OR CLIENT_ID IS NOT NULL) AND (? IS NULL OR
    coalesce(LOCK_NAME, LOCK_KEY) LIKE ? ESCAPE '!')
  ORDER BY CASE WHEN ? = 'held' THEN CASE WHEN CLIENT_ID IS NULL OR
    SUBSTR(HOLDER, 1, 36) = CLIENT_ID OR (HOLDER IS NULL AND FENCE = 0) THEN
    CREATED_DATE ELSE 9000000000000000000 END END, CASE WHEN ? = 'ttl' THEN
    EXPIRED_AFTER END, CASE WHEN ? = 'token' THEN -FENCE END,
    coalesce(LOCK_NAME, LOCK_KEY), REGION
  LIMIT ?;

-- who waits
SELECT value & ~1, NULL
  FROM json_each(sqlock_waiters());

-- find all, in pages
SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now() END,
    CREATED_DATE, EXPIRED_AFTER, LOCK_NAME, HOLDER, REGION
  FROM "INT_LOCK"
  WHERE REGION = coalesce(?, REGION) AND (? IS NOT NULL OR REGION NOT LIKE
    '%#tx') AND (? <> 0 OR CLIENT_ID IS NOT NULL) AND (? IS NULL OR
    coalesce(LOCK_NAME, LOCK_KEY) LIKE ? ESCAPE '!') AND LOCK_KEY >= ? AND
    (LOCK_KEY > ? OR REGION > ?)
  ORDER BY LOCK_KEY, REGION
  LIMIT ?;

-- guard
UPDATE "INT_LOCK"
  SET CLIENT_ID = CLIENT_ID
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND FENCE = ?
  RETURNING EXPIRED_AFTER >= (CAST(round((julianday('now') - 2440587.5) *
    86400000.0) AS INTEGER) * 1000 + 1000);

-- ---- layout spring7

-- claim
INSERT INTO "INT_LOCK" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  VALUES (?, ?, ?, sqlock_now(), sqlock_now() + ?)
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= sqlock_now() THEN L.CREATED_DATE
    ELSE sqlock_now() END, EXPIRED_AFTER = sqlock_now() + ?
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < sqlock_now()
  RETURNING CREATED_DATE;

-- renew
UPDATE "INT_LOCK"
  SET EXPIRED_AFTER = sqlock_now() + ?
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND EXPIRED_AFTER >=
    sqlock_now();

-- release
DELETE
  FROM "INT_LOCK"
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ?;

-- read
SELECT LOCK_KEY, CLIENT_ID, CREATED_DATE, CASE WHEN CLIENT_ID IS NULL THEN
    min(-1, EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now()
    END, CREATED_DATE, EXPIRED_AFTER, NULL, NULL
  FROM "INT_LOCK"
  WHERE LOCK_KEY = ? AND REGION = ?;

-- list
SELECT LOCK_KEY, CLIENT_ID, CREATED_DATE, CASE WHEN CLIENT_ID IS NULL THEN
    min(-1, EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now()
    END, CREATED_DATE, EXPIRED_AFTER, NULL, NULL
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY > ?
  ORDER BY LOCK_KEY
  LIMIT ?;

-- break
UPDATE "INT_LOCK"
  SET CLIENT_ID = ?, CREATED_DATE = max(CREATED_DATE + 1, sqlock_now())
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND EXPIRED_AFTER >=
    sqlock_now();

-- break now
DELETE
  FROM "INT_LOCK"
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND EXPIRED_AFTER >=
    sqlock_now();

-- bound of a reap
SELECT max(LOCK_KEY)
  FROM (SELECT LOCK_KEY FROM "INT_LOCK" WHERE REGION = ? AND LOCK_KEY > ? ORDER
    BY LOCK_KEY LIMIT ?) AS B;

-- reap
DELETE
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY > ? AND LOCK_KEY <= ? AND EXPIRED_AFTER <
    sqlock_now() - ? AND CREATED_DATE < sqlock_now() - ?;

-- server
SELECT sqlock_readonly(), sqlock_now(), 'SQLite ' || sqlite_version();

-- describe
SELECT upper(c.name), lower(c.type), CASE WHEN c."notnull" THEN 0 ELSE 1 END,
    c.pk, CASE WHEN s.type = 'view' THEN 'a view' WHEN upper(s.sql) LIKE
    'CREATE VIRTUAL %' THEN 'a virtual table' END,
    nullif(sqlock_collation(s.name, c.name), 'BINARY'), 'main'
  FROM main.sqlite_schema AS s
  JOIN pragma_table_xinfo(s.name, 'main') AS c
  WHERE s.type IN ('table', 'view') AND lower(s.name) = lower(?) AND
    lower(coalesce(?, 'main')) = 'main'
  ORDER BY c.cid;

-- claim many
INSERT INTO "INT_LOCK" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  SELECT J.k, ?, J.c, J.born, J.born + J.t
  FROM (SELECT json_extract(j.value, '$.k') AS k, json_extract(j.value, '$.c')
    AS c, json_extract(j.value, '$.t') AS t, json_extract(j.value, '$.n') AS n,
    json_extract(j.value, '$.h') AS h, sqlock_now() AS born FROM json_each(?)
    AS j) AS J
  WHERE true
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= sqlock_now() THEN L.CREATED_DATE
    ELSE sqlock_now() END, EXPIRED_AFTER = sqlock_now() +
    (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < sqlock_now()
  RETURNING LOCK_KEY, CREATED_DATE;

-- renew many
UPDATE "INT_LOCK" AS t
  SET EXPIRED_AFTER = sqlock_now() + json_extract(j.value, '$.t')
  FROM json_each(?) AS j
  WHERE t.LOCK_KEY = json_extract(j.value, '$.k') AND t.REGION = ? AND
    t.CLIENT_ID = json_extract(j.value, '$.c') AND t.EXPIRED_AFTER >=
    sqlock_now()
  RETURNING LOCK_KEY, sqlock_now();

-- release many
DELETE
  FROM "INT_LOCK"
  WHERE (LOCK_KEY, REGION, CLIENT_ID) IN (SELECT json_extract(j.value, '$.k'),
    ?, json_extract(j.value, '$.c') FROM json_each(?) AS j)
  RETURNING LOCK_KEY;

-- read many
SELECT LOCK_KEY, CLIENT_ID, CREATED_DATE, CASE WHEN CLIENT_ID IS NULL THEN
    min(-1, EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now()
    END, CREATED_DATE, EXPIRED_AFTER, NULL, NULL
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY IN (SELECT json_extract(j.value, '$.k') FROM
    json_each(?) AS j);

-- hand over
UPDATE "INT_LOCK"
  SET CLIENT_ID = ?, CREATED_DATE = max(CREATED_DATE + 1, sqlock_now()),
    EXPIRED_AFTER = sqlock_now() + ?
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND EXPIRED_AFTER >=
    sqlock_now()
  RETURNING CREATED_DATE;

-- after a restore
DELETE
  FROM "INT_LOCK";

-- guard in another program, parameters as literals
INSERT INTO "INT_LOCK" (LOCK_KEY)
  SELECT json_extract('[]', 'sqlock: the lease is over')
  WHERE NOT EXISTS (SELECT 1 FROM "INT_LOCK" WHERE LOCK_KEY = ? AND REGION = ?
    AND CLIENT_ID = ? AND EXPIRED_AFTER >= (CAST(round((julianday('now') -
    2440587.5) * 86400000.0) AS INTEGER) * 1000 + 1000));

-- find
SELECT LOCK_KEY, CLIENT_ID, CREATED_DATE, CASE WHEN CLIENT_ID IS NULL THEN
    min(-1, EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now()
    END, CREATED_DATE, EXPIRED_AFTER, NULL, NULL, REGION
  FROM "INT_LOCK"
  WHERE REGION = coalesce(?, REGION) AND (? IS NOT NULL OR REGION NOT LIKE
    '%#tx') AND (? <> 0 OR CLIENT_ID IS NOT NULL) AND (? IS NULL OR LOCK_KEY
    LIKE ? ESCAPE '!')
  ORDER BY CASE WHEN ? = 'held' THEN CREATED_DATE END, CASE WHEN ? = 'ttl' THEN
    EXPIRED_AFTER END, CASE WHEN ? = 'token' THEN -CREATED_DATE END, LOCK_KEY,
    REGION
  LIMIT ?;

-- find all, in pages
SELECT LOCK_KEY, CLIENT_ID, CREATED_DATE, CASE WHEN CLIENT_ID IS NULL THEN
    min(-1, EXPIRED_AFTER - sqlock_now()) ELSE EXPIRED_AFTER - sqlock_now()
    END, CREATED_DATE, EXPIRED_AFTER, NULL, NULL, REGION
  FROM "INT_LOCK"
  WHERE REGION = coalesce(?, REGION) AND (? IS NOT NULL OR REGION NOT LIKE
    '%#tx') AND (? <> 0 OR CLIENT_ID IS NOT NULL) AND (? IS NULL OR LOCK_KEY
    LIKE ? ESCAPE '!') AND LOCK_KEY >= ? AND (LOCK_KEY > ? OR REGION > ?)
  ORDER BY LOCK_KEY, REGION
  LIMIT ?;

-- guard
UPDATE "INT_LOCK"
  SET CLIENT_ID = CLIENT_ID
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ?
  RETURNING EXPIRED_AFTER >= (CAST(round((julianday('now') - 2440587.5) *
    86400000.0) AS INTEGER) * 1000 + 1000);

-- ---- layout spring6

-- claim
INSERT INTO "INT_LOCK" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  VALUES (?, ?, ?, sqlock_now() + ? - ?)
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = sqlock_now() + ? - ?
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    (L.CREATED_DATE + CASE WHEN substr(L.CLIENT_ID, 15, 1) = '8' AND
    substr(L.CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(L.CLIENT_ID, 28) *
    1000 ELSE ? END) < sqlock_now()
  RETURNING sqlock_now();

-- renew
UPDATE "INT_LOCK"
  SET CREATED_DATE = sqlock_now() + ? - CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID,
    28) * 1000 ELSE ? END
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND (CREATED_DATE + CASE
    WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) >= sqlock_now();

-- release
DELETE
  FROM "INT_LOCK"
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ?;

-- read
SELECT LOCK_KEY, CLIENT_ID, NULL, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000
    ELSE ? END) - sqlock_now()) ELSE (CREATED_DATE + CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) - sqlock_now()
    END, CREATED_DATE, (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8'
    AND substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) *
    1000 ELSE ? END), NULL, NULL
  FROM "INT_LOCK"
  WHERE LOCK_KEY = ? AND REGION = ?;

-- list
SELECT LOCK_KEY, CLIENT_ID, NULL, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000
    ELSE ? END) - sqlock_now()) ELSE (CREATED_DATE + CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) - sqlock_now()
    END, CREATED_DATE, (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8'
    AND substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) *
    1000 ELSE ? END), NULL, NULL
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY > ?
  ORDER BY LOCK_KEY
  LIMIT ?;

-- break
UPDATE "INT_LOCK"
  SET CLIENT_ID = ?
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND (CREATED_DATE + CASE
    WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) >= sqlock_now();

-- break now
DELETE
  FROM "INT_LOCK"
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND (CREATED_DATE + CASE
    WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) >= sqlock_now();

-- bound of a reap
SELECT max(LOCK_KEY)
  FROM (SELECT LOCK_KEY FROM "INT_LOCK" WHERE REGION = ? AND LOCK_KEY > ? ORDER
    BY LOCK_KEY LIMIT ?) AS B;

-- reap
DELETE
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY > ? AND LOCK_KEY <= ? AND (CREATED_DATE + CASE
    WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) < sqlock_now() - ?;

-- server
SELECT sqlock_readonly(), sqlock_now(), 'SQLite ' || sqlite_version();

-- describe
SELECT upper(c.name), lower(c.type), CASE WHEN c."notnull" THEN 0 ELSE 1 END,
    c.pk, CASE WHEN s.type = 'view' THEN 'a view' WHEN upper(s.sql) LIKE
    'CREATE VIRTUAL %' THEN 'a virtual table' END,
    nullif(sqlock_collation(s.name, c.name), 'BINARY'), 'main'
  FROM main.sqlite_schema AS s
  JOIN pragma_table_xinfo(s.name, 'main') AS c
  WHERE s.type IN ('table', 'view') AND lower(s.name) = lower(?) AND
    lower(coalesce(?, 'main')) = 'main'
  ORDER BY c.cid;

-- claim many
INSERT INTO "INT_LOCK" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  SELECT J.k, ?, J.c, J.born + J.t - ?
  FROM (SELECT json_extract(j.value, '$.k') AS k, json_extract(j.value, '$.c')
    AS c, json_extract(j.value, '$.t') AS t, json_extract(j.value, '$.n') AS n,
    json_extract(j.value, '$.h') AS h, sqlock_now() AS born FROM json_each(?)
    AS j) AS J
  WHERE true
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = EXCLUDED.CREATED_DATE
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    (L.CREATED_DATE + CASE WHEN substr(L.CLIENT_ID, 15, 1) = '8' AND
    substr(L.CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(L.CLIENT_ID, 28) *
    1000 ELSE ? END) < sqlock_now()
  RETURNING LOCK_KEY, sqlock_now();

-- renew many
UPDATE "INT_LOCK" AS t
  SET CREATED_DATE = sqlock_now() + json_extract(j.value, '$.t') - CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END
  FROM json_each(?) AS j
  WHERE t.LOCK_KEY = json_extract(j.value, '$.k') AND t.REGION = ? AND
    t.CLIENT_ID = json_extract(j.value, '$.c') AND (t.CREATED_DATE + CASE WHEN
    substr(t.CLIENT_ID, 15, 1) = '8' AND substr(t.CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(t.CLIENT_ID, 28) * 1000 ELSE ? END) >= sqlock_now()
  RETURNING LOCK_KEY, sqlock_now();

-- release many
DELETE
  FROM "INT_LOCK"
  WHERE (LOCK_KEY, REGION, CLIENT_ID) IN (SELECT json_extract(j.value, '$.k'),
    ?, json_extract(j.value, '$.c') FROM json_each(?) AS j)
  RETURNING LOCK_KEY;

-- read many
SELECT LOCK_KEY, CLIENT_ID, NULL, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000
    ELSE ? END) - sqlock_now()) ELSE (CREATED_DATE + CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) - sqlock_now()
    END, CREATED_DATE, (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8'
    AND substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) *
    1000 ELSE ? END), NULL, NULL
  FROM "INT_LOCK"
  WHERE REGION = ? AND LOCK_KEY IN (SELECT json_extract(j.value, '$.k') FROM
    json_each(?) AS j);

-- hand over
UPDATE "INT_LOCK"
  SET CLIENT_ID = ?, CREATED_DATE = sqlock_now() + ? - CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ? AND (CREATED_DATE + CASE
    WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) >= sqlock_now()
  RETURNING sqlock_now();

-- after a restore
DELETE
  FROM "INT_LOCK";

-- guard in another program, parameters as literals
INSERT INTO "INT_LOCK" (LOCK_KEY)
  SELECT json_extract('[]', 'sqlock: the lease is over')
  WHERE NOT EXISTS (SELECT 1 FROM "INT_LOCK" WHERE LOCK_KEY = ? AND REGION = ?
    AND CLIENT_ID = ? AND (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID,
    28) * 1000 ELSE ? END) >= (CAST(round((julianday('now') - 2440587.5) *
    86400000.0) AS INTEGER) * 1000 + 1000));

-- find
SELECT LOCK_KEY, CLIENT_ID, NULL, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000
    ELSE ? END) - sqlock_now()) ELSE (CREATED_DATE + CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) - sqlock_now()
    END, CREATED_DATE, (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8'
    AND substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) *
    1000 ELSE ? END), NULL, NULL, REGION
  FROM "INT_LOCK"
  WHERE REGION = coalesce(?, REGION) AND (? IS NOT NULL OR REGION NOT LIKE
    '%#tx') AND (? <> 0 OR CLIENT_ID IS NOT NULL) AND (? IS NULL OR LOCK_KEY
    LIKE ? ESCAPE '!')
  ORDER BY CASE WHEN ? = 'held' THEN CREATED_DATE END, CASE WHEN ? = 'ttl' THEN
    (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000
    ELSE ? END) END, CASE WHEN ? = 'token' THEN -NULL END, LOCK_KEY, REGION
  LIMIT ?;

-- find all, in pages
SELECT LOCK_KEY, CLIENT_ID, NULL, CASE WHEN CLIENT_ID IS NULL THEN min(-1,
    (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000
    ELSE ? END) - sqlock_now()) ELSE (CREATED_DATE + CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) NOT GLOB
    '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000 ELSE ? END) - sqlock_now()
    END, CREATED_DATE, (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8'
    AND substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) *
    1000 ELSE ? END), NULL, NULL, REGION
  FROM "INT_LOCK"
  WHERE REGION = coalesce(?, REGION) AND (? IS NOT NULL OR REGION NOT LIKE
    '%#tx') AND (? <> 0 OR CLIENT_ID IS NOT NULL) AND (? IS NULL OR LOCK_KEY
    LIKE ? ESCAPE '!') AND LOCK_KEY >= ? AND (LOCK_KEY > ? OR REGION > ?)
  ORDER BY LOCK_KEY, REGION
  LIMIT ?;

-- guard
UPDATE "INT_LOCK"
  SET CLIENT_ID = CLIENT_ID
  WHERE LOCK_KEY = ? AND REGION = ? AND CLIENT_ID = ?
  RETURNING (CREATED_DATE + CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*' THEN substr(CLIENT_ID, 28) * 1000
    ELSE ? END) >= (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS
    INTEGER) * 1000 + 1000);

-- ---- stock, in our tables

-- read
SELECT QUANTITY
  FROM "INT_STOCK"
  WHERE ITEM = ?;

-- lock
SELECT QUANTITY
  FROM "INT_STOCK"
  WHERE ITEM = ?;

-- read with version
SELECT QUANTITY, VERSION
  FROM "INT_STOCK"
  WHERE ITEM = ?;

-- deduct
UPDATE "INT_STOCK"
  SET QUANTITY = QUANTITY - ?, VERSION = VERSION + 1
  WHERE ITEM = ? AND QUANTITY >= ?
  RETURNING QUANTITY;

-- deduct from a version
UPDATE "INT_STOCK"
  SET QUANTITY = QUANTITY - ?, VERSION = VERSION + 1
  WHERE ITEM = ? AND VERSION = ? AND QUANTITY >= ?;

-- restore
UPDATE "INT_STOCK"
  SET QUANTITY = QUANTITY + ?, VERSION = VERSION + 1
  WHERE ITEM = ? AND QUANTITY <= 9223372036854775807 - ? - coalesce((SELECT
    sum(C.QUANTITY) FROM "INT_STOCK_BUCKET" AS C WHERE C.ITEM = ?), 0)
  RETURNING QUANTITY;

-- assign
UPDATE "INT_STOCK"
  SET QUANTITY = ?, VERSION = VERSION + 1
  WHERE ITEM = ?;

-- make an item
INSERT INTO "INT_STOCK" (ITEM, QUANTITY)
  VALUES (?, 0)
  ON CONFLICT DO NOTHING;

-- total
SELECT T.QUANTITY + coalesce((SELECT sum(C.QUANTITY) FROM "INT_STOCK_BUCKET" AS
    C WHERE C.ITEM = ?), 0)
  FROM "INT_STOCK" AS T
  WHERE ITEM = ?;

-- list
SELECT ITEM, QUANTITY
  FROM "INT_STOCK"
  ORDER BY ITEM;

-- list totals
SELECT T.ITEM, T.QUANTITY + coalesce((SELECT sum(C.QUANTITY) FROM
    "INT_STOCK_BUCKET" AS C WHERE C.ITEM = T.ITEM), 0)
  FROM "INT_STOCK" AS T
  ORDER BY T.ITEM;

-- record entries
INSERT INTO "INT_STOCK_ENTRY" (ORDER_ID, LINE, ITEM, KIND, QUANTITY, DELTA,
    STATUS, BALANCE, CREATED_AT)
  SELECT J.o, J.l, J.i, J.k, J.q, J.d, J.s, J.b, sqlock_now()
  FROM (SELECT json_extract(J.value, '$.o') AS o, json_extract(J.value, '$.l')
    AS l, json_extract(J.value, '$.i') AS i, json_extract(J.value, '$.k') AS k,
    json_extract(J.value, '$.q') AS q, json_extract(J.value, '$.d') AS d,
    json_extract(J.value, '$.s') AS s, json_extract(J.value, '$.b') AS b FROM
    json_each(?) AS J) AS J
  WHERE true
  ON CONFLICT DO NOTHING;

-- entries of orders
SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE
  FROM "INT_STOCK_ENTRY"
  WHERE ORDER_ID IN (SELECT J.value FROM json_each(?) AS J)
  ORDER BY ORDER_ID, LINE;

-- undo an order
UPDATE "INT_STOCK_ENTRY"
  SET STATUS = 'U', DELTA = 0
  WHERE ORDER_ID = ?;

-- old orders
SELECT E.ORDER_ID, E.CREATED_AT, E.LINE, EXISTS (SELECT 1 FROM
    "INT_STOCK_RESERVATION" AS R WHERE R.ORDER_ID = E.ORDER_ID AND (R.STATE =
    'R' OR R.STOCK <> ? OR R.EXPIRES_AT > sqlock_now() - ?))
  FROM "INT_STOCK_ENTRY" AS E
  WHERE E.CREATED_AT <= sqlock_now() - ? AND CREATED_AT >= ? AND (CREATED_AT >
    ? OR ORDER_ID > ? OR (ORDER_ID = ? AND LINE > ?))
  ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE
  LIMIT ?;

-- forget orders
DELETE
  FROM "INT_STOCK_ENTRY"
  WHERE ORDER_ID IN (SELECT J.value FROM json_each(?) AS J) AND CREATED_AT <=
    sqlock_now() - ?;

-- reserve
INSERT INTO "INT_STOCK_RESERVATION" (ORDER_ID, STOCK, STATE, EXPIRES_AT,
    CREATED_AT)
  VALUES (?, ?, 'R', sqlock_now() + ?, sqlock_now());

-- claim a reservation
UPDATE "INT_STOCK_RESERVATION"
  SET STATE = 'C', EXPIRES_AT = sqlock_now()
  WHERE ORDER_ID = ? AND STOCK = ? AND STATE = 'R' AND EXPIRES_AT >
    sqlock_now();

-- cancel a reservation
UPDATE "INT_STOCK_RESERVATION"
  SET STATE = 'X', EXPIRES_AT = sqlock_now()
  WHERE ORDER_ID = ? AND STOCK = ? AND STATE = 'R';

-- let a reservation expire
UPDATE "INT_STOCK_RESERVATION"
  SET STATE = 'E', EXPIRES_AT = sqlock_now()
  WHERE ORDER_ID = ? AND STOCK = ? AND STATE = 'R' AND EXPIRES_AT <=
    sqlock_now();

-- look at a reservation
SELECT STATE, EXPIRES_AT - sqlock_now()
  FROM "INT_STOCK_RESERVATION"
  WHERE ORDER_ID = ? AND STOCK = ?;

-- reservations that are over
SELECT ORDER_ID, EXPIRES_AT
  FROM "INT_STOCK_RESERVATION"
  WHERE STOCK = ? AND STATE = ? AND EXPIRES_AT <= sqlock_now() - ? AND
    EXPIRES_AT >= ? AND (EXPIRES_AT > ? OR ORDER_ID > ?)
  ORDER BY EXPIRES_AT, ORDER_ID
  LIMIT ?;

-- forget reservations
DELETE
  FROM "INT_STOCK_RESERVATION"
  WHERE ORDER_ID IN (SELECT J.value FROM json_each(?) AS J) AND STOCK = ? AND
    STATE <> 'R' AND EXPIRES_AT <= sqlock_now() - ?;

-- deduct from a bucket
UPDATE "INT_STOCK_BUCKET"
  SET QUANTITY = QUANTITY - ?
  WHERE ITEM = ? AND BUCKET = ? AND QUANTITY >= ?;

-- lock buckets
SELECT BUCKET, QUANTITY
  FROM "INT_STOCK_BUCKET"
  WHERE ITEM = ?
  ORDER BY BUCKET;

-- spread over buckets
INSERT INTO "INT_STOCK_BUCKET" (ITEM, BUCKET, QUANTITY)
  SELECT ?, json_extract(J.value, '$.b'), json_extract(J.value, '$.q')
  FROM json_each(?) AS J
  WHERE true
  ON CONFLICT (ITEM, BUCKET) DO
  UPDATE
  SET QUANTITY = excluded.QUANTITY;
