-- Every statement as it is sent to the table INT_LOCK, by
-- layout, and to the tables of stock.  A parameter is $1, $2 and so on.
-- Written by `make statements` for readers and reviewers;
-- a test compares it.

-- ---- layout sqlock

-- claim
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER)
  VALUES ($1, $2, $3, (clock_timestamp() AT TIME ZONE 'UTC'),
    (clock_timestamp() AT TIME ZONE 'UTC') + ($4) * interval '1 microsecond',
    CASE WHEN pg_advisory_xact_lock(hashtextextended($2::varchar,
    hashbpchar($1)::bigint)) IS NOT NULL THEN (extract(epoch FROM
    clock_timestamp()) * 1000000)::bigint END, $5, $6)
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') THEN least(L.CREATED_DATE, (clock_timestamp() AT TIME ZONE 'UTC'))
    ELSE (clock_timestamp() AT TIME ZONE 'UTC') END, EXPIRED_AFTER =
    (clock_timestamp() AT TIME ZONE 'UTC') + ($4) * interval '1 microsecond',
    FENCE = CASE WHEN L.CLIENT_ID = EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC') THEN L.FENCE ELSE greatest(L.FENCE +
    1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) END,
    LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = EXCLUDED.HOLDER
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING FENCE, NOT pg_try_advisory_xact_lock($7), L.xmax = 0;

-- renew
UPDATE "int_lock"
  SET CREATED_DATE = least(CREATED_DATE, (clock_timestamp() AT TIME ZONE
    'UTC')), EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + ($1) *
    interval '1 microsecond'
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC');

-- release
UPDATE "int_lock"
  SET CLIENT_ID = NULL, HOLDER = CASE WHEN set_config('synchronous_commit',
    'off', true) <> 'off' OR CASE WHEN NOT pg_try_advisory_xact_lock($1 + 1)
    THEN pg_notify('sqlock_' || to_hex($1), '') IS NULL END THEN NULL ELSE
    HOLDER END, EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') -
    interval '18262 days 12 hours'
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4;

-- read
SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN least(-1,
    (extract(epoch FROM (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (extract(epoch FROM (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN EXPIRED_AFTER + interval
    '18262 days 12 hours' ELSE EXPIRED_AFTER END)) * 1000000)::bigint,
    LOCK_NAME, HOLDER
  FROM "int_lock"
  WHERE LOCK_KEY = $1 AND REGION = $2;

-- list
FETCH FORWARD 5000
  FROM sqlock_list;

-- break
UPDATE "int_lock"
  SET CLIENT_ID = $1, HOLDER = $2, FENCE = greatest(FENCE + 1, (extract(epoch
    FROM clock_timestamp()) * 1000000)::bigint)
  WHERE LOCK_KEY = $3 AND REGION = $4 AND CLIENT_ID = $5 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC');

-- break now
UPDATE "int_lock"
  SET CLIENT_ID = NULL, HOLDER = $1, EXPIRED_AFTER = (clock_timestamp() AT TIME
    ZONE 'UTC') - interval '18262 days 12 hours', FENCE = greatest(FENCE + 1,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING CASE WHEN NOT pg_try_advisory_xact_lock($5 + 1) THEN
    pg_notify('sqlock_' || to_hex($5), '') IS NULL END;

-- bound of a reap
SELECT CASE WHEN P.first < P.pages THEN least(P.first + $1::bigint / 32 + 1,
    P.pages)::text END
  FROM (SELECT coalesce(nullif($2::text, ''), '0')::bigint AS first,
    coalesce((SELECT max(pg_relation_size(T.relid) /
    current_setting('block_size')::bigint) FROM
    pg_partition_tree('"int_lock"'::regclass) AS T),
    pg_relation_size('"int_lock"'::regclass) /
    current_setting('block_size')::bigint) AS pages) AS P;

-- reap
DELETE
  FROM "int_lock"
  WHERE REGION = $1 AND (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) <
    (clock_timestamp() AT TIME ZONE 'UTC') - ($2) * interval '1 microsecond'
    AND FENCE < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $2
    AND ctid = ANY (ARRAY(SELECT ctid FROM "int_lock" WHERE ctid >= ('(' ||
    coalesce(nullif($3::text, ''), '0') || ',0)')::tid AND ctid < ('(' ||
    coalesce(nullif($4::text, ''), '0') || ',0)')::tid AND REGION = $1 AND
    (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN EXPIRED_AFTER + interval
    '18262 days 12 hours' ELSE EXPIRED_AFTER END) < (clock_timestamp() AT TIME
    ZONE 'UTC') - ($2) * interval '1 microsecond' AND FENCE < (extract(epoch
    FROM clock_timestamp()) * 1000000)::bigint - $2 FOR UPDATE SKIP LOCKED));

-- server
SELECT CASE WHEN pg_is_in_recovery() OR
    current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 END,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'PostgreSQL ' ||
    split_part(current_setting('server_version'), ' ', 1);

-- describe
SELECT upper(A.attname), format_type(A.atttypid, A.atttypmod), CASE WHEN
    A.attnotnull THEN 0 ELSE 1 END, coalesce((SELECT K.place FROM pg_index AS
    I, unnest(I.indkey::int2[]) WITH ORDINALITY AS K (attnum, place) WHERE
    I.indrelid = C.oid AND I.indisprimary AND I.indimmediate AND I.indisvalid
    AND K.attnum = A.attnum AND K.place <= I.indnkeyatts), 0), CASE WHEN
    C.relkind = 'v' THEN 'a view' WHEN C.relkind = 'm' THEN 'a materialized
    view' WHEN C.relkind = 'f' THEN 'a foreign table' WHEN C.relkind NOT IN
    ('r', 'p') THEN 'no table' WHEN C.relpersistence = 'u' THEN 'an unlogged
    table' WHEN C.relpersistence = 't' THEN 'a temporary table' END, CASE
    format_type(A.atttypid, NULL) WHEN 'citext' THEN 'citext' ELSE (SELECT
    O.collname::text FROM pg_collation AS O WHERE O.oid = A.attcollation AND
    NOT O.collisdeterministic) END, N.nspname::text
  FROM pg_class AS C
  JOIN pg_namespace AS N
  ON N.oid = C.relnamespace
  JOIN pg_attribute AS A
  ON A.attrelid = C.oid
  WHERE C.relname = $1::name AND A.attnum > 0 AND NOT A.attisdropped AND CASE
    WHEN $2::name IS NULL THEN pg_table_is_visible(C.oid) ELSE N.nspname =
    $2::name END
  ORDER BY A.attnum;

-- claim many
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER)
  SELECT J.k, $1::varchar, J.c, J.born, J.born + (J.t) * interval '1
    microsecond', CASE WHEN pg_advisory_xact_lock(hashtextextended($1::varchar,
    hashbpchar(J.k)::bigint)) IS NOT NULL THEN (extract(epoch FROM
    clock_timestamp()) * 1000000)::bigint END, J.n, J.h
  FROM (SELECT J.k, J.c, J.t, J.n, J.h, (clock_timestamp() AT TIME ZONE 'UTC')
    AS born FROM json_to_recordset($2::json) AS J (k char(36), c char(36), t
    bigint, n varchar, h varchar, b bigint) ORDER BY J.k) AS J
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') THEN least(L.CREATED_DATE, (clock_timestamp() AT TIME ZONE 'UTC'))
    ELSE (clock_timestamp() AT TIME ZONE 'UTC') END, EXPIRED_AFTER =
    (clock_timestamp() AT TIME ZONE 'UTC') + (EXCLUDED.EXPIRED_AFTER -
    EXCLUDED.CREATED_DATE), FENCE = CASE WHEN L.CLIENT_ID = EXCLUDED.CLIENT_ID
    AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') THEN L.FENCE
    ELSE greatest(L.FENCE + 1, (extract(epoch FROM clock_timestamp()) *
    1000000)::bigint) END, LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER =
    EXCLUDED.HOLDER
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING LOCK_KEY, FENCE;

-- renew many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c AND T.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') FOR NO KEY UPDATE SKIP LOCKED) AS T)
  UPDATE "int_lock" AS T
  SET CREATED_DATE = least(CREATED_DATE, (clock_timestamp() AT TIME ZONE
    'UTC')), EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + (J.t) *
    interval '1 microsecond'
  FROM J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c AND
    T.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING T.LOCK_KEY, (extract(epoch FROM clock_timestamp()) *
    1000000)::bigint;

-- release many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c FOR NO KEY UPDATE) AS T)
  UPDATE "int_lock" AS T
  SET CLIENT_ID = NULL, EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC')
    - interval '18262 days 12 hours'
  FROM J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c
  RETURNING CASE WHEN set_config('synchronous_commit', 'off', true) = 'off'
    THEN T.LOCK_KEY END, CASE WHEN NOT pg_try_advisory_xact_lock(J.b + 1) THEN
    pg_notify('sqlock_' || to_hex(J.b), '') IS NULL END;

-- read many
SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN least(-1,
    (extract(epoch FROM (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (extract(epoch FROM (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN EXPIRED_AFTER + interval
    '18262 days 12 hours' ELSE EXPIRED_AFTER END)) * 1000000)::bigint,
    LOCK_NAME, HOLDER
  FROM "int_lock"
  WHERE REGION = $1 AND LOCK_KEY = ANY (ARRAY(SELECT J.k FROM
    json_to_recordset($2::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint)));

-- hand over
UPDATE "int_lock"
  SET CLIENT_ID = $1, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC'),
    EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + ($2) * interval '1
    microsecond', FENCE = greatest(FENCE + 1, (extract(epoch FROM
    clock_timestamp()) * 1000000)::bigint), LOCK_NAME = $3, HOLDER = $4
  WHERE LOCK_KEY = $5 AND REGION = $6 AND CLIENT_ID = $7 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC') AND (SELECT
    pg_advisory_xact_lock(hashtextextended($6::varchar,
    hashbpchar($5)::bigint))) IS NOT NULL
  RETURNING FENCE;

-- release while others wait
UPDATE "int_lock"
  SET CLIENT_ID = NULL, HOLDER = CASE WHEN set_config('synchronous_commit',
    'off', true) <> 'off' OR CASE WHEN NOT pg_try_advisory_xact_lock($1 + 1)
    THEN pg_notify('sqlock_' || to_hex($1), '') IS NULL END THEN NULL ELSE
    HOLDER END, EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') -
    interval '18262 days 12 hours'
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4
  RETURNING pg_advisory_unlock_all() IS NULL;

-- after a restore
UPDATE "int_lock"
  SET CLIENT_ID = NULL, HOLDER = NULL, EXPIRED_AFTER = (clock_timestamp() AT
    TIME ZONE 'UTC') - interval '18262 days 12 hours', FENCE = greatest(FENCE +
    1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);

-- before list
DECLARE sqlock_list NO SCROLL CURSOR
  FOR
  SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN least(-1,
    (date_part('epoch', (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (date_part('epoch', (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (date_part('epoch', CREATED_DATE) * 1000000)::bigint, (date_part('epoch',
    (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN EXPIRED_AFTER + interval
    '18262 days 12 hours' ELSE EXPIRED_AFTER END)) * 1000000)::bigint,
    LOCK_NAME, HOLDER
  FROM "int_lock"
  WHERE REGION = $1;

-- guard in another program, parameters as literals
SELECT CASE count(*) WHEN 1 THEN 1 ELSE CAST('sqlock: the lease is over, rows:
    ' || count(*) AS integer) END AS GUARDED
  FROM (SELECT 1 FROM "int_lock" WHERE LOCK_KEY = $1 AND REGION = $2 AND
    CLIENT_ID = $3 AND FENCE = $4 AND EXPIRED_AFTER >= (clock_timestamp() AT
    TIME ZONE 'UTC') FOR SHARE) AS LEASE;

-- find
SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN least(-1,
    (extract(epoch FROM (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (extract(epoch FROM (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN EXPIRED_AFTER + interval
    '18262 days 12 hours' ELSE EXPIRED_AFTER END)) * 1000000)::bigint,
    LOCK_NAME, HOLDER, REGION
  FROM "int_lock"
  WHERE REGION = coalesce($1::varchar, REGION) AND ($1::varchar IS NOT NULL OR
    REGION NOT LIKE '%#tx') AND ($2::bigint <> 0 OR CLIENT_ID IS NOT NULL) AND
    ($3::varchar IS NULL OR coalesce(LOCK_NAME, LOCK_KEY) LIKE $3::varchar
    ESCAPE '!')
  ORDER BY CASE WHEN $4::varchar = 'held' THEN CASE WHEN CLIENT_ID IS NULL OR
    SUBSTR(HOLDER, 1, 36) = CLIENT_ID OR (HOLDER IS NULL AND FENCE = 0) THEN
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint ELSE
    9000000000000000000 END END, CASE WHEN $4::varchar = 'ttl' THEN
    (extract(epoch FROM (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END)) *
    1000000)::bigint END, CASE WHEN $4::varchar = 'token' THEN -FENCE END,
    coalesce(LOCK_NAME, LOCK_KEY) COLLATE "C", REGION COLLATE "C"
  LIMIT $5;

-- who waits
SELECT ((L.classid::bigint << 32) | L.objid::bigint) - L.objid::bigint % 2,
    concat_ws(' ', coalesce(host(A.client_addr), 'local'),
    nullif(A.application_name, ''), 'pid ' || L.pid)
  FROM pg_locks AS L
  LEFT
  JOIN pg_stat_activity AS A
  ON A.pid = L.pid
  WHERE L.locktype = 'advisory' AND L.objsubid = 1 AND L.database = (SELECT oid
    FROM pg_database WHERE datname = current_database()) AND CASE
    L.objid::bigint % 2 WHEN 0 THEN NOT L.granted ELSE L.granted AND L.mode =
    'ShareLock' END;

-- before find all
DECLARE sqlock_list NO SCROLL CURSOR
  FOR
  SELECT LOCK_KEY, CLIENT_ID, FENCE, CASE WHEN CLIENT_ID IS NULL THEN least(-1,
    (date_part('epoch', (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (date_part('epoch', (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN
    EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END) -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (date_part('epoch', CREATED_DATE) * 1000000)::bigint, (date_part('epoch',
    (CASE WHEN EXPIRED_AFTER < '2000-01-01' THEN EXPIRED_AFTER + interval
    '18262 days 12 hours' ELSE EXPIRED_AFTER END)) * 1000000)::bigint,
    LOCK_NAME, HOLDER, REGION
  FROM "int_lock"
  WHERE REGION = coalesce($1::varchar, REGION) AND ($1::varchar IS NOT NULL OR
    REGION NOT LIKE '%#tx') AND ($2::bigint <> 0 OR CLIENT_ID IS NOT NULL) AND
    ($3::varchar IS NULL OR coalesce(LOCK_NAME, LOCK_KEY) LIKE $3::varchar
    ESCAPE '!');

-- find all, in pages
FETCH FORWARD 5000
  FROM sqlock_list;

-- make a name's row
INSERT INTO "int_lock" (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER,
    LOCK_NAME)
  VALUES ($1, $2, (clock_timestamp() AT TIME ZONE 'UTC'), (clock_timestamp() AT
    TIME ZONE 'UTC'), $3)
  ON CONFLICT (LOCK_KEY, REGION) DO NOTHING;

-- guard
SELECT EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC')
  FROM "int_lock"
  WHERE LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3 AND FENCE = $4
  FOR SHARE SKIP LOCKED;

-- guard, or fail
SELECT 1 / count(*)
  FROM (SELECT 1 FROM "int_lock" WHERE LOCK_KEY = $1 AND REGION = $2 AND
    CLIENT_ID = $3 AND FENCE = $4 FOR SHARE SKIP LOCKED) AS guarded;

-- reap names
DELETE
  FROM "int_lock"
  WHERE REGION = $1 AND CLIENT_ID IS NULL AND CREATED_DATE < (clock_timestamp()
    AT TIME ZONE 'UTC') - ($2) * interval '1 microsecond' AND ctid = ANY
    (ARRAY(SELECT ctid FROM "int_lock" WHERE ctid >= ('(' ||
    coalesce(nullif($3::text, ''), '0') || ',0)')::tid AND ctid < ('(' ||
    coalesce(nullif($4::text, ''), '0') || ',0)')::tid AND REGION = $1 AND
    CLIENT_ID IS NULL AND CREATED_DATE < (clock_timestamp() AT TIME ZONE 'UTC')
    - ($2) * interval '1 microsecond' FOR UPDATE SKIP LOCKED));

-- ---- layout sqlock, otherwise with waiting=poll

-- claim
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER)
  VALUES ($1, $2, $3, (clock_timestamp() AT TIME ZONE 'UTC'),
    (clock_timestamp() AT TIME ZONE 'UTC') + ($4) * interval '1 microsecond',
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $5, $6)
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') THEN least(L.CREATED_DATE, (clock_timestamp() AT TIME ZONE 'UTC'))
    ELSE (clock_timestamp() AT TIME ZONE 'UTC') END, EXPIRED_AFTER =
    (clock_timestamp() AT TIME ZONE 'UTC') + ($4) * interval '1 microsecond',
    FENCE = CASE WHEN L.CLIENT_ID = EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC') THEN L.FENCE ELSE greatest(L.FENCE +
    1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) END,
    LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = EXCLUDED.HOLDER
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING FENCE;

-- release
UPDATE "int_lock"
  SET CLIENT_ID = NULL, HOLDER = CASE WHEN set_config('synchronous_commit',
    'off', true) <> 'off' OR NULL THEN NULL ELSE HOLDER END, EXPIRED_AFTER =
    (clock_timestamp() AT TIME ZONE 'UTC') - interval '18262 days 12 hours'
  WHERE LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3;

-- break now
UPDATE "int_lock"
  SET CLIENT_ID = NULL, HOLDER = $1, EXPIRED_AFTER = (clock_timestamp() AT TIME
    ZONE 'UTC') - interval '18262 days 12 hours', FENCE = greatest(FENCE + 1,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING NULL;

-- claim many
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER)
  SELECT J.k, $1::varchar, J.c, J.born, J.born + (J.t) * interval '1
    microsecond', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    J.n, J.h
  FROM (SELECT J.k, J.c, J.t, J.n, J.h, (clock_timestamp() AT TIME ZONE 'UTC')
    AS born FROM json_to_recordset($2::json) AS J (k char(36), c char(36), t
    bigint, n varchar, h varchar, b bigint) ORDER BY J.k) AS J
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') THEN least(L.CREATED_DATE, (clock_timestamp() AT TIME ZONE 'UTC'))
    ELSE (clock_timestamp() AT TIME ZONE 'UTC') END, EXPIRED_AFTER =
    (clock_timestamp() AT TIME ZONE 'UTC') + (EXCLUDED.EXPIRED_AFTER -
    EXCLUDED.CREATED_DATE), FENCE = CASE WHEN L.CLIENT_ID = EXCLUDED.CLIENT_ID
    AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') THEN L.FENCE
    ELSE greatest(L.FENCE + 1, (extract(epoch FROM clock_timestamp()) *
    1000000)::bigint) END, LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER =
    EXCLUDED.HOLDER
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING LOCK_KEY, FENCE;

-- release many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c FOR NO KEY UPDATE) AS T)
  UPDATE "int_lock" AS T
  SET CLIENT_ID = NULL, EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC')
    - interval '18262 days 12 hours'
  FROM J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c
  RETURNING CASE WHEN set_config('synchronous_commit', 'off', true) = 'off'
    THEN T.LOCK_KEY END, NULL;

-- hand over
UPDATE "int_lock"
  SET CLIENT_ID = $1, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC'),
    EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + ($2) * interval '1
    microsecond', FENCE = greatest(FENCE + 1, (extract(epoch FROM
    clock_timestamp()) * 1000000)::bigint), LOCK_NAME = $3, HOLDER = $4
  WHERE LOCK_KEY = $5 AND REGION = $6 AND CLIENT_ID = $7 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING FENCE;

-- ---- layout spring7

-- claim
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  VALUES ($1, $2, $3, CASE WHEN
    pg_advisory_xact_lock(hashtextextended($2::varchar,
    hashbpchar($1)::bigint)) IS NOT NULL THEN (clock_timestamp() AT TIME ZONE
    'UTC') END, (clock_timestamp() AT TIME ZONE 'UTC') + ($4) * interval '1
    microsecond')
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') THEN L.CREATED_DATE ELSE (clock_timestamp() AT TIME ZONE 'UTC') END,
    EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + ($4) * interval '1
    microsecond'
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING (extract(epoch FROM CREATED_DATE) * 1000000)::bigint;

-- renew
UPDATE "int_lock"
  SET EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + ($1) * interval
    '1 microsecond'
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC');

-- release
DELETE
  FROM "int_lock"
  WHERE LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3
  RETURNING set_config('synchronous_commit', 'off', true);

-- read
SELECT LOCK_KEY, CLIENT_ID, (extract(epoch FROM CREATED_DATE) *
    1000000)::bigint, CASE WHEN CLIENT_ID IS NULL THEN least(-1, (extract(epoch
    FROM EXPIRED_AFTER - (clock_timestamp() AT TIME ZONE 'UTC')) *
    1000000)::bigint) ELSE (extract(epoch FROM EXPIRED_AFTER -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    EXPIRED_AFTER) * 1000000)::bigint, NULL, NULL
  FROM "int_lock"
  WHERE LOCK_KEY = $1 AND REGION = $2;

-- list
FETCH FORWARD 5000
  FROM sqlock_list;

-- break
UPDATE "int_lock"
  SET CLIENT_ID = $1, CREATED_DATE = greatest(CREATED_DATE + (1) * interval '1
    microsecond', (clock_timestamp() AT TIME ZONE 'UTC'))
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC');

-- break now
DELETE
  FROM "int_lock"
  WHERE LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC');

-- bound of a reap
SELECT CASE WHEN P.first < P.pages THEN least(P.first + $1::bigint / 32 + 1,
    P.pages)::text END
  FROM (SELECT coalesce(nullif($2::text, ''), '0')::bigint AS first,
    coalesce((SELECT max(pg_relation_size(T.relid) /
    current_setting('block_size')::bigint) FROM
    pg_partition_tree('"int_lock"'::regclass) AS T),
    pg_relation_size('"int_lock"'::regclass) /
    current_setting('block_size')::bigint) AS pages) AS P;

-- reap
DELETE
  FROM "int_lock"
  WHERE REGION = $1 AND EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
    - ($2) * interval '1 microsecond' AND CREATED_DATE < (clock_timestamp() AT
    TIME ZONE 'UTC') - ($2) * interval '1 microsecond' AND ctid = ANY
    (ARRAY(SELECT ctid FROM "int_lock" WHERE ctid >= ('(' ||
    coalesce(nullif($3::text, ''), '0') || ',0)')::tid AND ctid < ('(' ||
    coalesce(nullif($4::text, ''), '0') || ',0)')::tid AND REGION = $1 AND
    EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC') - ($2) * interval '1
    microsecond' AND CREATED_DATE < (clock_timestamp() AT TIME ZONE 'UTC') -
    ($2) * interval '1 microsecond' FOR UPDATE SKIP LOCKED));

-- server
SELECT CASE WHEN pg_is_in_recovery() OR
    current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 END,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'PostgreSQL ' ||
    split_part(current_setting('server_version'), ' ', 1);

-- describe
SELECT upper(A.attname), format_type(A.atttypid, A.atttypmod), CASE WHEN
    A.attnotnull THEN 0 ELSE 1 END, coalesce((SELECT K.place FROM pg_index AS
    I, unnest(I.indkey::int2[]) WITH ORDINALITY AS K (attnum, place) WHERE
    I.indrelid = C.oid AND I.indisprimary AND I.indimmediate AND I.indisvalid
    AND K.attnum = A.attnum AND K.place <= I.indnkeyatts), 0), CASE WHEN
    C.relkind = 'v' THEN 'a view' WHEN C.relkind = 'm' THEN 'a materialized
    view' WHEN C.relkind = 'f' THEN 'a foreign table' WHEN C.relkind NOT IN
    ('r', 'p') THEN 'no table' WHEN C.relpersistence = 'u' THEN 'an unlogged
    table' WHEN C.relpersistence = 't' THEN 'a temporary table' END, CASE
    format_type(A.atttypid, NULL) WHEN 'citext' THEN 'citext' ELSE (SELECT
    O.collname::text FROM pg_collation AS O WHERE O.oid = A.attcollation AND
    NOT O.collisdeterministic) END, N.nspname::text
  FROM pg_class AS C
  JOIN pg_namespace AS N
  ON N.oid = C.relnamespace
  JOIN pg_attribute AS A
  ON A.attrelid = C.oid
  WHERE C.relname = $1::name AND A.attnum > 0 AND NOT A.attisdropped AND CASE
    WHEN $2::name IS NULL THEN pg_table_is_visible(C.oid) ELSE N.nspname =
    $2::name END
  ORDER BY A.attnum;

-- claim many
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  SELECT J.k, $1::varchar, J.c, J.born, J.born + (J.t) * interval '1
    microsecond'
  FROM (SELECT J.k, J.c, J.t, J.n, J.h, CASE WHEN
    pg_advisory_xact_lock(hashtextextended($1::varchar,
    hashbpchar(J.k)::bigint)) IS NOT NULL THEN (clock_timestamp() AT TIME ZONE
    'UTC') END AS born FROM json_to_recordset($2::json) AS J (k char(36), c
    char(36), t bigint, n varchar, h varchar, b bigint) ORDER BY J.k) AS J
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') THEN L.CREATED_DATE ELSE (clock_timestamp() AT TIME ZONE 'UTC') END,
    EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') +
    (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING LOCK_KEY, (extract(epoch FROM CREATED_DATE) * 1000000)::bigint;

-- renew many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c AND T.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') FOR NO KEY UPDATE SKIP LOCKED) AS T)
  UPDATE "int_lock" AS T
  SET EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + (J.t) * interval
    '1 microsecond'
  FROM J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c AND
    T.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING T.LOCK_KEY, (extract(epoch FROM clock_timestamp()) *
    1000000)::bigint;

-- release many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c FOR NO KEY UPDATE) AS T)
  DELETE
  FROM "int_lock" AS T USING J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c
  RETURNING CASE WHEN set_config('synchronous_commit', 'off', true) = 'off'
    THEN T.LOCK_KEY END, CASE WHEN NOT pg_try_advisory_xact_lock(J.b + 1) THEN
    pg_notify('sqlock_' || to_hex(J.b), '') IS NULL END;

-- read many
SELECT LOCK_KEY, CLIENT_ID, (extract(epoch FROM CREATED_DATE) *
    1000000)::bigint, CASE WHEN CLIENT_ID IS NULL THEN least(-1, (extract(epoch
    FROM EXPIRED_AFTER - (clock_timestamp() AT TIME ZONE 'UTC')) *
    1000000)::bigint) ELSE (extract(epoch FROM EXPIRED_AFTER -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    EXPIRED_AFTER) * 1000000)::bigint, NULL, NULL
  FROM "int_lock"
  WHERE REGION = $1 AND LOCK_KEY = ANY (ARRAY(SELECT J.k FROM
    json_to_recordset($2::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint)));

-- hand over
UPDATE "int_lock"
  SET CLIENT_ID = $1, CREATED_DATE = greatest(CREATED_DATE + (1) * interval '1
    microsecond', (clock_timestamp() AT TIME ZONE 'UTC')), EXPIRED_AFTER =
    (clock_timestamp() AT TIME ZONE 'UTC') + ($2) * interval '1 microsecond'
  WHERE LOCK_KEY = $3 AND REGION = $4 AND CLIENT_ID = $5 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC') AND (SELECT
    pg_advisory_xact_lock(hashtextextended($4::varchar,
    hashbpchar($3)::bigint))) IS NOT NULL
  RETURNING (extract(epoch FROM CREATED_DATE) * 1000000)::bigint;

-- after a restore
DELETE
  FROM "int_lock";

-- before list
DECLARE sqlock_list NO SCROLL CURSOR
  FOR
  SELECT LOCK_KEY, CLIENT_ID, (date_part('epoch', CREATED_DATE) *
    1000000)::bigint, CASE WHEN CLIENT_ID IS NULL THEN least(-1,
    (date_part('epoch', EXPIRED_AFTER - (clock_timestamp() AT TIME ZONE 'UTC'))
    * 1000000)::bigint) ELSE (date_part('epoch', EXPIRED_AFTER -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (date_part('epoch', CREATED_DATE) * 1000000)::bigint, (date_part('epoch',
    EXPIRED_AFTER) * 1000000)::bigint, NULL, NULL
  FROM "int_lock"
  WHERE REGION = $1;

-- guard in another program, parameters as literals
SELECT CASE count(*) WHEN 1 THEN 1 ELSE CAST('sqlock: the lease is over, rows:
    ' || count(*) AS integer) END AS GUARDED
  FROM (SELECT 1 FROM "int_lock" WHERE LOCK_KEY = $1 AND REGION = $2 AND
    CLIENT_ID = $3 AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC')
    FOR SHARE) AS LEASE;

-- find
SELECT LOCK_KEY, CLIENT_ID, (extract(epoch FROM CREATED_DATE) *
    1000000)::bigint, CASE WHEN CLIENT_ID IS NULL THEN least(-1, (extract(epoch
    FROM EXPIRED_AFTER - (clock_timestamp() AT TIME ZONE 'UTC')) *
    1000000)::bigint) ELSE (extract(epoch FROM EXPIRED_AFTER -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    EXPIRED_AFTER) * 1000000)::bigint, NULL, NULL, REGION
  FROM "int_lock"
  WHERE REGION = coalesce($1::varchar, REGION) AND ($1::varchar IS NOT NULL OR
    REGION NOT LIKE '%#tx') AND ($2::bigint <> 0 OR CLIENT_ID IS NOT NULL) AND
    ($3::varchar IS NULL OR LOCK_KEY LIKE $3::varchar ESCAPE '!')
  ORDER BY CASE WHEN $4::varchar = 'held' THEN (extract(epoch FROM
    CREATED_DATE) * 1000000)::bigint END, CASE WHEN $4::varchar = 'ttl' THEN
    (extract(epoch FROM EXPIRED_AFTER) * 1000000)::bigint END, CASE WHEN
    $4::varchar = 'token' THEN -(extract(epoch FROM CREATED_DATE) *
    1000000)::bigint END, LOCK_KEY COLLATE "C", REGION COLLATE "C"
  LIMIT $5;

-- before find all
DECLARE sqlock_list NO SCROLL CURSOR
  FOR
  SELECT LOCK_KEY, CLIENT_ID, (date_part('epoch', CREATED_DATE) *
    1000000)::bigint, CASE WHEN CLIENT_ID IS NULL THEN least(-1,
    (date_part('epoch', EXPIRED_AFTER - (clock_timestamp() AT TIME ZONE 'UTC'))
    * 1000000)::bigint) ELSE (date_part('epoch', EXPIRED_AFTER -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (date_part('epoch', CREATED_DATE) * 1000000)::bigint, (date_part('epoch',
    EXPIRED_AFTER) * 1000000)::bigint, NULL, NULL, REGION
  FROM "int_lock"
  WHERE REGION = coalesce($1::varchar, REGION) AND ($1::varchar IS NOT NULL OR
    REGION NOT LIKE '%#tx') AND ($2::bigint <> 0 OR CLIENT_ID IS NOT NULL) AND
    ($3::varchar IS NULL OR LOCK_KEY LIKE $3::varchar ESCAPE '!');

-- find all, in pages
FETCH FORWARD 5000
  FROM sqlock_list;

-- make a name's row
INSERT INTO "int_lock" (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER)
  VALUES ($1, $2, (clock_timestamp() AT TIME ZONE 'UTC'), (clock_timestamp() AT
    TIME ZONE 'UTC'))
  ON CONFLICT (LOCK_KEY, REGION) DO NOTHING;

-- guard
SELECT EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC')
  FROM "int_lock"
  WHERE LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3
  FOR SHARE SKIP LOCKED;

-- guard, or fail
SELECT 1 / count(*)
  FROM (SELECT 1 FROM "int_lock" WHERE LOCK_KEY = $1 AND REGION = $2 AND
    CLIENT_ID = $3 FOR SHARE SKIP LOCKED) AS guarded;

-- reap names
DELETE
  FROM "int_lock"
  WHERE REGION = $1 AND CLIENT_ID IS NULL AND CREATED_DATE < (clock_timestamp()
    AT TIME ZONE 'UTC') - ($2) * interval '1 microsecond' AND ctid = ANY
    (ARRAY(SELECT ctid FROM "int_lock" WHERE ctid >= ('(' ||
    coalesce(nullif($3::text, ''), '0') || ',0)')::tid AND ctid < ('(' ||
    coalesce(nullif($4::text, ''), '0') || ',0)')::tid AND REGION = $1 AND
    CLIENT_ID IS NULL AND CREATED_DATE < (clock_timestamp() AT TIME ZONE 'UTC')
    - ($2) * interval '1 microsecond' FOR UPDATE SKIP LOCKED));

-- ---- layout spring7, otherwise with waiting=poll

-- claim
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  VALUES ($1, $2, $3, (clock_timestamp() AT TIME ZONE 'UTC'),
    (clock_timestamp() AT TIME ZONE 'UTC') + ($4) * interval '1 microsecond')
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') THEN L.CREATED_DATE ELSE (clock_timestamp() AT TIME ZONE 'UTC') END,
    EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + ($4) * interval '1
    microsecond'
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING (extract(epoch FROM CREATED_DATE) * 1000000)::bigint;

-- claim many
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  SELECT J.k, $1::varchar, J.c, J.born, J.born + (J.t) * interval '1
    microsecond'
  FROM (SELECT J.k, J.c, J.t, J.n, J.h, (clock_timestamp() AT TIME ZONE 'UTC')
    AS born FROM json_to_recordset($2::json) AS J (k char(36), c char(36), t
    bigint, n varchar, h varchar, b bigint) ORDER BY J.k) AS J
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = CASE WHEN L.CLIENT_ID =
    EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE
    'UTC') THEN L.CREATED_DATE ELSE (clock_timestamp() AT TIME ZONE 'UTC') END,
    EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') +
    (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    L.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING LOCK_KEY, (extract(epoch FROM CREATED_DATE) * 1000000)::bigint;

-- release many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c FOR NO KEY UPDATE) AS T)
  DELETE
  FROM "int_lock" AS T USING J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c
  RETURNING CASE WHEN set_config('synchronous_commit', 'off', true) = 'off'
    THEN T.LOCK_KEY END, NULL;

-- hand over
UPDATE "int_lock"
  SET CLIENT_ID = $1, CREATED_DATE = greatest(CREATED_DATE + (1) * interval '1
    microsecond', (clock_timestamp() AT TIME ZONE 'UTC')), EXPIRED_AFTER =
    (clock_timestamp() AT TIME ZONE 'UTC') + ($2) * interval '1 microsecond'
  WHERE LOCK_KEY = $3 AND REGION = $4 AND CLIENT_ID = $5 AND EXPIRED_AFTER >=
    (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING (extract(epoch FROM CREATED_DATE) * 1000000)::bigint;

-- ---- layout spring6

-- claim
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  VALUES ($1, $2, $3, (clock_timestamp() AT TIME ZONE 'UTC') + ($4 - $5) *
    interval '1 microsecond')
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = (clock_timestamp() AT TIME
    ZONE 'UTC') + ($4 - $5) * interval '1 microsecond'
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    (L.CREATED_DATE + (CASE WHEN substr(L.CLIENT_ID, 15, 1) = '8' AND
    substr(L.CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(L.CLIENT_ID, 28)::bigint *
    1000 ELSE $5::bigint END) * interval '1 microsecond') < (clock_timestamp()
    AT TIME ZONE 'UTC')
  RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- renew
UPDATE "int_lock"
  SET CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC') + ($1 - CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN
    substr(CLIENT_ID, 28)::bigint * 1000 ELSE $2::bigint END) * interval '1
    microsecond'
  WHERE LOCK_KEY = $3 AND REGION = $4 AND CLIENT_ID = $5 AND (CREATED_DATE +
    (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) ~
    '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint * 1000 ELSE $2::bigint END) *
    interval '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC');

-- release
DELETE
  FROM "int_lock"
  WHERE LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3
  RETURNING set_config('synchronous_commit', 'off', true);

-- read
SELECT LOCK_KEY, CLIENT_ID, NULL::bigint, CASE WHEN CLIENT_ID IS NULL THEN
    least(-1, (extract(epoch FROM (CREATED_DATE + (CASE WHEN substr(CLIENT_ID,
    15, 1) = '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (extract(epoch FROM (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint *
    1000 ELSE $1::bigint END) * interval '1 microsecond')) * 1000000)::bigint,
    NULL, NULL
  FROM "int_lock"
  WHERE LOCK_KEY = $2 AND REGION = $3;

-- list
FETCH FORWARD 5000
  FROM sqlock_list;

-- break
UPDATE "int_lock"
  SET CLIENT_ID = $1
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4 AND (CREATED_DATE +
    (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) ~
    '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint * 1000 ELSE $5::bigint END) *
    interval '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC');

-- break now
DELETE
  FROM "int_lock"
  WHERE LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3 AND (CREATED_DATE +
    (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) ~
    '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint * 1000 ELSE $4::bigint END) *
    interval '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC');

-- bound of a reap
SELECT CASE WHEN P.first < P.pages THEN least(P.first + $1::bigint / 32 + 1,
    P.pages)::text END
  FROM (SELECT coalesce(nullif($2::text, ''), '0')::bigint AS first,
    coalesce((SELECT max(pg_relation_size(T.relid) /
    current_setting('block_size')::bigint) FROM
    pg_partition_tree('"int_lock"'::regclass) AS T),
    pg_relation_size('"int_lock"'::regclass) /
    current_setting('block_size')::bigint) AS pages) AS P;

-- reap
DELETE
  FROM "int_lock"
  WHERE REGION = $1 AND (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $2::bigint END) * interval '1 microsecond') <
    (clock_timestamp() AT TIME ZONE 'UTC') - ($3) * interval '1 microsecond'
    AND ctid = ANY (ARRAY(SELECT ctid FROM "int_lock" WHERE ctid >= ('(' ||
    coalesce(nullif($4::text, ''), '0') || ',0)')::tid AND ctid < ('(' ||
    coalesce(nullif($5::text, ''), '0') || ',0)')::tid AND REGION = $1 AND
    (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint *
    1000 ELSE $2::bigint END) * interval '1 microsecond') < (clock_timestamp()
    AT TIME ZONE 'UTC') - ($3) * interval '1 microsecond' FOR UPDATE SKIP
    LOCKED));

-- server
SELECT CASE WHEN pg_is_in_recovery() OR
    current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 END,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'PostgreSQL ' ||
    split_part(current_setting('server_version'), ' ', 1);

-- describe
SELECT upper(A.attname), format_type(A.atttypid, A.atttypmod), CASE WHEN
    A.attnotnull THEN 0 ELSE 1 END, coalesce((SELECT K.place FROM pg_index AS
    I, unnest(I.indkey::int2[]) WITH ORDINALITY AS K (attnum, place) WHERE
    I.indrelid = C.oid AND I.indisprimary AND I.indimmediate AND I.indisvalid
    AND K.attnum = A.attnum AND K.place <= I.indnkeyatts), 0), CASE WHEN
    C.relkind = 'v' THEN 'a view' WHEN C.relkind = 'm' THEN 'a materialized
    view' WHEN C.relkind = 'f' THEN 'a foreign table' WHEN C.relkind NOT IN
    ('r', 'p') THEN 'no table' WHEN C.relpersistence = 'u' THEN 'an unlogged
    table' WHEN C.relpersistence = 't' THEN 'a temporary table' END, CASE
    format_type(A.atttypid, NULL) WHEN 'citext' THEN 'citext' ELSE (SELECT
    O.collname::text FROM pg_collation AS O WHERE O.oid = A.attcollation AND
    NOT O.collisdeterministic) END, N.nspname::text
  FROM pg_class AS C
  JOIN pg_namespace AS N
  ON N.oid = C.relnamespace
  JOIN pg_attribute AS A
  ON A.attrelid = C.oid
  WHERE C.relname = $1::name AND A.attnum > 0 AND NOT A.attisdropped AND CASE
    WHEN $2::name IS NULL THEN pg_table_is_visible(C.oid) ELSE N.nspname =
    $2::name END
  ORDER BY A.attnum;

-- claim many
INSERT INTO "int_lock" AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  SELECT J.k, $1::varchar, J.c, J.born + (J.t - $2) * interval '1 microsecond'
  FROM (SELECT J.k, J.c, J.t, J.n, J.h, (clock_timestamp() AT TIME ZONE 'UTC')
    AS born FROM json_to_recordset($3::json) AS J (k char(36), c char(36), t
    bigint, n varchar, h varchar, b bigint) ORDER BY J.k) AS J
  ON CONFLICT (LOCK_KEY, REGION) DO
  UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = EXCLUDED.CREATED_DATE
  WHERE L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
    (L.CREATED_DATE + (CASE WHEN substr(L.CLIENT_ID, 15, 1) = '8' AND
    substr(L.CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(L.CLIENT_ID, 28)::bigint *
    1000 ELSE $2::bigint END) * interval '1 microsecond') < (clock_timestamp()
    AT TIME ZONE 'UTC')
  RETURNING LOCK_KEY, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- renew many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c AND (T.CREATED_DATE + (CASE WHEN substr(T.CLIENT_ID, 15,
    1) = '8' AND substr(T.CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(T.CLIENT_ID,
    28)::bigint * 1000 ELSE $3::bigint END) * interval '1 microsecond') >=
    (clock_timestamp() AT TIME ZONE 'UTC') FOR NO KEY UPDATE SKIP LOCKED) AS T)
  UPDATE "int_lock" AS T
  SET CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC') + (J.t - CASE WHEN
    substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN
    substr(CLIENT_ID, 28)::bigint * 1000 ELSE $3::bigint END) * interval '1
    microsecond'
  FROM J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c AND
    (T.CREATED_DATE + (CASE WHEN substr(T.CLIENT_ID, 15, 1) = '8' AND
    substr(T.CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(T.CLIENT_ID, 28)::bigint *
    1000 ELSE $3::bigint END) * interval '1 microsecond') >= (clock_timestamp()
    AT TIME ZONE 'UTC')
  RETURNING T.LOCK_KEY, (extract(epoch FROM clock_timestamp()) *
    1000000)::bigint;

-- release many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c FOR NO KEY UPDATE) AS T)
  DELETE
  FROM "int_lock" AS T USING J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c
  RETURNING CASE WHEN set_config('synchronous_commit', 'off', true) = 'off'
    THEN T.LOCK_KEY END, CASE WHEN NOT pg_try_advisory_xact_lock(J.b + 1) THEN
    pg_notify('sqlock_' || to_hex(J.b), '') IS NULL END;

-- read many
SELECT LOCK_KEY, CLIENT_ID, NULL::bigint, CASE WHEN CLIENT_ID IS NULL THEN
    least(-1, (extract(epoch FROM (CREATED_DATE + (CASE WHEN substr(CLIENT_ID,
    15, 1) = '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (extract(epoch FROM (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint *
    1000 ELSE $1::bigint END) * interval '1 microsecond')) * 1000000)::bigint,
    NULL, NULL
  FROM "int_lock"
  WHERE REGION = $2 AND LOCK_KEY = ANY (ARRAY(SELECT J.k FROM
    json_to_recordset($3::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint)));

-- hand over
UPDATE "int_lock"
  SET CLIENT_ID = $1, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC') +
    ($2 - CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) ~
    '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint * 1000 ELSE $3::bigint END) *
    interval '1 microsecond'
  WHERE LOCK_KEY = $4 AND REGION = $5 AND CLIENT_ID = $6 AND (CREATED_DATE +
    (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) ~
    '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint * 1000 ELSE $3::bigint END) *
    interval '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC')
  RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- after a restore
DELETE
  FROM "int_lock";

-- before list
DECLARE sqlock_list NO SCROLL CURSOR
  FOR
  SELECT LOCK_KEY, CLIENT_ID, NULL::bigint, CASE WHEN CLIENT_ID IS NULL THEN
    least(-1, (date_part('epoch', (CREATED_DATE + (CASE WHEN substr(CLIENT_ID,
    15, 1) = '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (date_part('epoch', (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (date_part('epoch', CREATED_DATE) * 1000000)::bigint, (date_part('epoch',
    (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint *
    1000 ELSE $1::bigint END) * interval '1 microsecond')) * 1000000)::bigint,
    NULL, NULL
  FROM "int_lock"
  WHERE REGION = $2;

-- guard in another program, parameters as literals
SELECT CASE count(*) WHEN 1 THEN 1 ELSE CAST('sqlock: the lease is over, rows:
    ' || count(*) AS integer) END AS GUARDED
  FROM (SELECT 1 FROM "int_lock" WHERE LOCK_KEY = $1 AND REGION = $2 AND
    CLIENT_ID = $3 AND (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $4::bigint END) * interval '1 microsecond') >=
    (clock_timestamp() AT TIME ZONE 'UTC') FOR SHARE) AS LEASE;

-- find
SELECT LOCK_KEY, CLIENT_ID, NULL::bigint, CASE WHEN CLIENT_ID IS NULL THEN
    least(-1, (extract(epoch FROM (CREATED_DATE + (CASE WHEN substr(CLIENT_ID,
    15, 1) = '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (extract(epoch FROM (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (extract(epoch FROM CREATED_DATE) * 1000000)::bigint, (extract(epoch FROM
    (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint *
    1000 ELSE $1::bigint END) * interval '1 microsecond')) * 1000000)::bigint,
    NULL, NULL, REGION
  FROM "int_lock"
  WHERE REGION = coalesce($2::varchar, REGION) AND ($2::varchar IS NOT NULL OR
    REGION NOT LIKE '%#tx') AND ($3::bigint <> 0 OR CLIENT_ID IS NOT NULL) AND
    ($4::varchar IS NULL OR LOCK_KEY LIKE $4::varchar ESCAPE '!')
  ORDER BY CASE WHEN $5::varchar = 'held' THEN (extract(epoch FROM
    CREATED_DATE) * 1000000)::bigint END, CASE WHEN $5::varchar = 'ttl' THEN
    (extract(epoch FROM (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond')) *
    1000000)::bigint END, CASE WHEN $5::varchar = 'token' THEN -NULL::bigint
    END, LOCK_KEY COLLATE "C", REGION COLLATE "C"
  LIMIT $6;

-- before find all
DECLARE sqlock_list NO SCROLL CURSOR
  FOR
  SELECT LOCK_KEY, CLIENT_ID, NULL::bigint, CASE WHEN CLIENT_ID IS NULL THEN
    least(-1, (date_part('epoch', (CREATED_DATE + (CASE WHEN substr(CLIENT_ID,
    15, 1) = '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint) ELSE
    (date_part('epoch', (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) =
    '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID,
    28)::bigint * 1000 ELSE $1::bigint END) * interval '1 microsecond') -
    (clock_timestamp() AT TIME ZONE 'UTC')) * 1000000)::bigint END,
    (date_part('epoch', CREATED_DATE) * 1000000)::bigint, (date_part('epoch',
    (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint *
    1000 ELSE $1::bigint END) * interval '1 microsecond')) * 1000000)::bigint,
    NULL, NULL, REGION
  FROM "int_lock"
  WHERE REGION = coalesce($2::varchar, REGION) AND ($2::varchar IS NOT NULL OR
    REGION NOT LIKE '%#tx') AND ($3::bigint <> 0 OR CLIENT_ID IS NOT NULL) AND
    ($4::varchar IS NULL OR LOCK_KEY LIKE $4::varchar ESCAPE '!');

-- find all, in pages
FETCH FORWARD 5000
  FROM sqlock_list;

-- make a name's row
INSERT INTO "int_lock" (LOCK_KEY, REGION, CREATED_DATE)
  VALUES ($1, $2, (clock_timestamp() AT TIME ZONE 'UTC'))
  ON CONFLICT (LOCK_KEY, REGION) DO NOTHING;

-- guard
SELECT (CREATED_DATE + (CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
    substr(CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(CLIENT_ID, 28)::bigint *
    1000 ELSE $1::bigint END) * interval '1 microsecond') >= (clock_timestamp()
    AT TIME ZONE 'UTC')
  FROM "int_lock"
  WHERE LOCK_KEY = $2 AND REGION = $3 AND CLIENT_ID = $4
  FOR SHARE SKIP LOCKED;

-- guard, or fail
SELECT 1 / count(*)
  FROM (SELECT 1 FROM "int_lock" WHERE LOCK_KEY = $1 AND REGION = $2 AND
    CLIENT_ID = $3 FOR SHARE SKIP LOCKED) AS guarded;

-- reap names
DELETE
  FROM "int_lock"
  WHERE REGION = $1 AND CLIENT_ID IS NULL AND CREATED_DATE < (clock_timestamp()
    AT TIME ZONE 'UTC') - ($2) * interval '1 microsecond' AND ctid = ANY
    (ARRAY(SELECT ctid FROM "int_lock" WHERE ctid >= ('(' ||
    coalesce(nullif($3::text, ''), '0') || ',0)')::tid AND ctid < ('(' ||
    coalesce(nullif($4::text, ''), '0') || ',0)')::tid AND REGION = $1 AND
    CLIENT_ID IS NULL AND CREATED_DATE < (clock_timestamp() AT TIME ZONE 'UTC')
    - ($2) * interval '1 microsecond' FOR UPDATE SKIP LOCKED));

-- ---- layout spring6, otherwise with waiting=poll

-- release many
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, J.b, T.REGION AS r FROM (SELECT *
    FROM json_to_recordset($1::json) AS J (k char(36), c char(36), t bigint, n
    varchar, h varchar, b bigint) ORDER BY k) AS J, LATERAL (SELECT T.REGION
    FROM "int_lock" AS T WHERE T.LOCK_KEY = J.k AND T.REGION = $2 AND
    T.CLIENT_ID = J.c FOR NO KEY UPDATE) AS T)
  DELETE
  FROM "int_lock" AS T USING J
  WHERE T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c
  RETURNING CASE WHEN set_config('synchronous_commit', 'off', true) = 'off'
    THEN T.LOCK_KEY END, NULL;

-- ---- stock, in our tables

-- read
SELECT QUANTITY
  FROM "int_stock"
  WHERE ITEM = $1;

-- lock
SELECT QUANTITY
  FROM "int_stock"
  WHERE ITEM = $1
  FOR NO KEY
  UPDATE;

-- read with version
SELECT QUANTITY, VERSION
  FROM "int_stock"
  WHERE ITEM = $1;

-- deduct
UPDATE "int_stock"
  SET QUANTITY = QUANTITY - $1, VERSION = VERSION + 1
  WHERE ITEM = $2 AND QUANTITY >= $1
  RETURNING QUANTITY;

-- deduct from a version
UPDATE "int_stock"
  SET QUANTITY = QUANTITY - $1, VERSION = VERSION + 1
  WHERE ITEM = $2 AND VERSION = $3 AND QUANTITY >= $1;

-- restore
UPDATE "int_stock"
  SET QUANTITY = QUANTITY + $1, VERSION = VERSION + 1
  WHERE ITEM = $2 AND QUANTITY <= 9223372036854775807 - $1 - coalesce((SELECT
    sum(C.QUANTITY) FROM "int_stock_bucket" AS C WHERE C.ITEM = $3), 0)::bigint
  RETURNING QUANTITY;

-- assign
UPDATE "int_stock"
  SET QUANTITY = $1, VERSION = VERSION + 1
  WHERE ITEM = $2;

-- make an item
INSERT INTO "int_stock" (ITEM, QUANTITY)
  VALUES ($1, 0)
  ON CONFLICT DO NOTHING;

-- total
SELECT T.QUANTITY + coalesce((SELECT sum(C.QUANTITY) FROM "int_stock_bucket" AS
    C WHERE C.ITEM = $1), 0)::bigint
  FROM "int_stock" AS T
  WHERE ITEM = $2;

-- list
SELECT ITEM, QUANTITY
  FROM "int_stock"
  ORDER BY ITEM;

-- list totals
SELECT T.ITEM, T.QUANTITY + coalesce((SELECT sum(C.QUANTITY) FROM
    "int_stock_bucket" AS C WHERE C.ITEM = T.ITEM), 0)::bigint
  FROM "int_stock" AS T
  ORDER BY T.ITEM;

-- record entries
INSERT INTO "int_stock_entry" (ORDER_ID, LINE, ITEM, KIND, QUANTITY, DELTA,
    STATUS, BALANCE, CREATED_AT)
  SELECT J.o, J.l, J.i, J.k, J.q, J.d, J.s, J.b, (SELECT (clock_timestamp() AT
    TIME ZONE 'UTC'))
  FROM json_to_recordset($1::json) AS J (o varchar, l int, i varchar, k
    varchar, q bigint, d bigint, s varchar, b bigint)
  ORDER BY J.o, J.l
  ON CONFLICT DO NOTHING;

-- deduct and record
WITH U AS (UPDATE "int_stock" SET QUANTITY = QUANTITY - $1, VERSION = VERSION +
    1 WHERE ITEM = $2 AND QUANTITY >= $1 RETURNING QUANTITY AS remains), E AS
    (INSERT INTO "int_stock_entry" (ORDER_ID, LINE, ITEM, KIND, QUANTITY,
    DELTA, STATUS, BALANCE, CREATED_AT) SELECT J.o, J.l, J.i, J.k, J.q, J.d,
    J.s, U.remains + J.b, (clock_timestamp() AT TIME ZONE 'UTC') FROM U,
    json_to_recordset($3::json) AS J (o varchar, l int, i varchar, k varchar, q
    bigint, d bigint, s varchar, b bigint))
  SELECT remains
  FROM U;

-- entries of orders
SELECT ORDER_ID, LINE, ITEM, KIND, QUANTITY, STATUS, BALANCE
  FROM "int_stock_entry"
  WHERE ORDER_ID IN (SELECT json_array_elements_text($1::json))
  ORDER BY ORDER_ID, LINE;

-- undo an order
UPDATE "int_stock_entry"
  SET STATUS = 'U', DELTA = 0
  WHERE ORDER_ID = $1;

-- old orders
SELECT E.ORDER_ID, (extract(epoch FROM E.CREATED_AT) * 1000000)::bigint,
    E.LINE, EXISTS (SELECT 1 FROM "int_stock_reservation" AS R WHERE R.ORDER_ID
    = E.ORDER_ID AND (R.STATE = 'R' OR R.STOCK <> $1 OR R.EXPIRES_AT > (SELECT
    (clock_timestamp() AT TIME ZONE 'UTC') - ($2) * interval '1
    microsecond')))::int
  FROM "int_stock_entry" AS E
  WHERE E.CREATED_AT <= (SELECT (clock_timestamp() AT TIME ZONE 'UTC') - ($2) *
    interval '1 microsecond') AND CREATED_AT >= timestamp 'epoch' + ($3) *
    interval '1 microsecond' AND (CREATED_AT > timestamp 'epoch' + ($3) *
    interval '1 microsecond' OR ORDER_ID > $4 OR (ORDER_ID = $4 AND LINE > $5))
  ORDER BY E.CREATED_AT, E.ORDER_ID, E.LINE
  LIMIT $6;

-- forget orders
DELETE
  FROM "int_stock_entry"
  WHERE ORDER_ID IN (SELECT json_array_elements_text($1::json)) AND CREATED_AT
    <= (SELECT (clock_timestamp() AT TIME ZONE 'UTC') - ($2) * interval '1
    microsecond');

-- reserve
INSERT INTO "int_stock_reservation" (ORDER_ID, STOCK, STATE, EXPIRES_AT,
    CREATED_AT)
  VALUES ($1, $2, 'R', (clock_timestamp() AT TIME ZONE 'UTC') + ($3) * interval
    '1 microsecond', (clock_timestamp() AT TIME ZONE 'UTC'));

-- claim a reservation
UPDATE "int_stock_reservation"
  SET STATE = 'C', EXPIRES_AT = (clock_timestamp() AT TIME ZONE 'UTC')
  WHERE ORDER_ID = $1 AND STOCK = $2 AND STATE = 'R' AND EXPIRES_AT >
    (clock_timestamp() AT TIME ZONE 'UTC');

-- cancel a reservation
UPDATE "int_stock_reservation"
  SET STATE = 'X', EXPIRES_AT = (clock_timestamp() AT TIME ZONE 'UTC')
  WHERE ORDER_ID = $1 AND STOCK = $2 AND STATE = 'R';

-- let a reservation expire
UPDATE "int_stock_reservation"
  SET STATE = 'E', EXPIRES_AT = (clock_timestamp() AT TIME ZONE 'UTC')
  WHERE ORDER_ID = $1 AND STOCK = $2 AND STATE = 'R' AND EXPIRES_AT <=
    (clock_timestamp() AT TIME ZONE 'UTC');

-- look at a reservation
SELECT STATE, (extract(epoch FROM EXPIRES_AT - (clock_timestamp() AT TIME ZONE
    'UTC')) * 1000000)::bigint
  FROM "int_stock_reservation"
  WHERE ORDER_ID = $1 AND STOCK = $2;

-- reservations that are over
SELECT ORDER_ID, (extract(epoch FROM EXPIRES_AT) * 1000000)::bigint
  FROM "int_stock_reservation"
  WHERE STOCK = $1 AND STATE = $2 AND EXPIRES_AT <= (SELECT (clock_timestamp()
    AT TIME ZONE 'UTC') - ($3) * interval '1 microsecond') AND EXPIRES_AT >=
    timestamp 'epoch' + ($4) * interval '1 microsecond' AND (EXPIRES_AT >
    timestamp 'epoch' + ($4) * interval '1 microsecond' OR ORDER_ID > $5)
  ORDER BY EXPIRES_AT, ORDER_ID
  LIMIT $6;

-- forget reservations
DELETE
  FROM "int_stock_reservation"
  WHERE ORDER_ID IN (SELECT json_array_elements_text($1::json)) AND STOCK = $2
    AND STATE <> 'R' AND EXPIRES_AT <= (SELECT (clock_timestamp() AT TIME ZONE
    'UTC') - ($3) * interval '1 microsecond');

-- deduct from a bucket
UPDATE "int_stock_bucket"
  SET QUANTITY = QUANTITY - $1
  WHERE ITEM = $2 AND BUCKET = $3 AND QUANTITY >= $1
  RETURNING (SELECT T.QUANTITY + coalesce((SELECT sum(C.QUANTITY) FROM
    "int_stock_bucket" AS C WHERE C.ITEM = $2), 0)::bigint FROM "int_stock" AS
    T WHERE ITEM = $4) - $1;

-- deduct from a bucket and record
WITH U AS (UPDATE "int_stock_bucket" SET QUANTITY = QUANTITY - $1 WHERE ITEM =
    $2 AND BUCKET = $3 AND QUANTITY >= $1 RETURNING (SELECT T.QUANTITY +
    coalesce((SELECT sum(C.QUANTITY) FROM "int_stock_bucket" AS C WHERE C.ITEM
    = $2), 0)::bigint FROM "int_stock" AS T WHERE ITEM = $4) - $1 AS remains),
    E AS (INSERT INTO "int_stock_entry" (ORDER_ID, LINE, ITEM, KIND, QUANTITY,
    DELTA, STATUS, BALANCE, CREATED_AT) SELECT J.o, J.l, J.i, J.k, J.q, J.d,
    J.s, U.remains + J.b, (clock_timestamp() AT TIME ZONE 'UTC') FROM U,
    json_to_recordset($5::json) AS J (o varchar, l int, i varchar, k varchar, q
    bigint, d bigint, s varchar, b bigint))
  SELECT remains
  FROM U;

-- lock buckets
SELECT BUCKET, QUANTITY
  FROM "int_stock_bucket"
  WHERE ITEM = $1
  ORDER BY BUCKET
  FOR NO KEY
  UPDATE;

-- spread over buckets
INSERT INTO "int_stock_bucket" (ITEM, BUCKET, QUANTITY)
  SELECT $1::varchar, J.b, J.q
  FROM json_to_recordset($2::json) AS J (b int, q bigint)
  ORDER BY J.b
  ON CONFLICT (ITEM, BUCKET) DO
  UPDATE
  SET QUANTITY = EXCLUDED.QUANTITY;
