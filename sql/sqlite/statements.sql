-- Statements that sqlock sends to SQLite about its tables INT_LOCK and
-- INT_DONE.  The library is built from this file.  In the sources,
-- sql/README.md says how to change it, and src/db/dialect.h what each statement
-- must return.
--
-- How to read it.  "-- ---- NAME" begins a statement, and "-- ---- define NAME"
-- a fragment, which stands in statements as {NAME}.  (sqlock), (spring7) and
-- (spring6) are the layouts of the table, (queue) and (poll) the ways to wait,
-- poll being that of URLs with waiting=poll; without them it is for all.  :name
-- is a parameter, and INT_LOCK stands for the table that a registry has found.
--
-- All times are integers, microseconds UTC.  The functions sqlock_...() are the
-- library's own; sqlock_now() is the same throughout a statement.
--
-- Outside a transaction, an INSERT .. ON CONFLICT takes the file's write lock
-- before it reads anything; if the statement had to wait, SQLite starts it
-- again on the newest state.  So the statement never fails with
-- SQLITE_BUSY_SNAPSHOT.
--
-- SQLite locks the whole file, not rows: what is said of rows in other
-- databases has no statement here.

-- ---- parameters are ?

-- ---- define now
sqlock_now()

-- ---- define row
LOCK_KEY = :key AND REGION = :region

-- ======================================================= one lease's life ====

-- ---- define ends (sqlock spring7)
-- The end of a lease.  The layout of Spring 6 has none: a lease is over for a
-- contender whose own TTL has passed since CREATED_DATE, so a lease of another
-- length is written with another CREATED_DATE.  A contender with another TTL
-- would be wrong about its end; so sqlock's CLIENT_ID names its holder's TTL in
-- ms.
EXPIRED_AFTER
-- ---- define ends (spring6)
(CREATED_DATE + {ttl_of_row})
-- ---- define ttl_of_row (spring6)
CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND
  substr(CLIENT_ID, 28) NOT GLOB '*[^0-9]*'
  THEN substr(CLIENT_ID, 28) * 1000 ELSE :peer_ttl END

-- ---- define renewed (sqlock spring7)
-- The end of a lease that is renewed.
EXPIRED_AFTER = {now} + :ttl
-- ---- define renewed (spring6)
CREATED_DATE = {now} + :ttl - {ttl_of_row}

-- ---- define is_waited_for (sqlock)
-- QUEUE says who waits, in order (src/lease/ticket.h); whether it is a queue.
-- No time counts: a clock that steps changes nobody's place.
QUEUE IS NOT NULL AND QUEUE LIKE '{"e":________________,"q":[["%' AND
  instr(QUEUE, '"],') BETWEEN 112 AND 330

-- ---- define is_own (sqlock spring7)
-- The claim's row is there already.  Whether its lease is the claim's own,
-- which was sent twice; then the token and the time of acquisition stay.
L.CLIENT_ID = EXCLUDED.CLIENT_ID AND L.EXPIRED_AFTER >= {now}
-- ---- define may_take (sqlock)
-- Nobody overtakes those who wait: a row without a holder is for the first of
-- them; unless it has been over for as long as a ticket lasts: who is alive
-- would have looked at it.
L.CLIENT_ID = EXCLUDED.CLIENT_ID OR
(L.CLIENT_ID IS NULL OR {is_over} < {now}) AND
iif({others_wait}, {now} > {free_since} + 70000000, 1)
-- ---- define may_take (spring7 spring6)
L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR {is_over} < {now}
-- ---- define is_over (sqlock spring7)
L.EXPIRED_AFTER
-- ---- define is_over (spring6)
(L.CREATED_DATE + CASE WHEN substr(L.CLIENT_ID, 15, 1) = '8' AND
  substr(L.CLIENT_ID, 28) NOT GLOB '*[^0-9]*'
  THEN substr(L.CLIENT_ID, 28) * 1000 ELSE :peer_ttl END)

-- ---- define claimed (sqlock)
-- The table's CHECK wants CREATED_DATE before EXPIRED_AFTER: a statement that
-- sets the end anew also takes back a CREATED_DATE that lies in the future,
-- since the clock has been set back.
CREATED_DATE = CASE WHEN {is_own} THEN min(L.CREATED_DATE, {now}) ELSE {now} END
-- ---- define claimed (spring7)
CREATED_DATE = CASE WHEN {is_own} THEN L.CREATED_DATE ELSE {now} END
-- ---- define claimed_for (sqlock)
FENCE = CASE WHEN {is_own} THEN L.FENCE ELSE max(L.FENCE + 1, {now}) END,
LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = EXCLUDED.HOLDER

-- ---- claim (sqlock)
-- Takes the lock in one statement, whether there is a row or not; a new
-- one gets :queue, the tickets that a Spring service has deleted with the row.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER, QUEUE)
  VALUES (:key, :region, :client, {now}, {now} + :ttl, {now}, :name, :holder,
    :queue)
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, {claimed}, EXPIRED_AFTER = {now} + :ttl,
    {claimed_for}
  WHERE {may_take}
  RETURNING FENCE, length(QUEUE);

-- ---- claim unqueued (sqlock) [insert id]
-- As claim, of a free lock whose row is there and has no tickets.  An UPDATE is
-- half the work of an INSERT that meets a row, and the token as the insert id
-- spares the table in which SQLite gathers what RETURNING returns.
UPDATE INT_LOCK
  SET CLIENT_ID = :client, CREATED_DATE = {now}, {renewed},
    FENCE = sqlock_insert_id(max(FENCE + 1, {now})), LOCK_NAME = :name,
    HOLDER = :holder
  WHERE {row} AND QUEUE IS NULL AND (CLIENT_ID IS NULL OR {ends} < {now});

-- ---- claim reserved (sqlock) [insert id]
-- Takes the row that a release has reserved for the ticket of the claim, and
-- inserts none: the row may be gone although another's lease is not over.
UPDATE INT_LOCK
  SET CREATED_DATE = min(CREATED_DATE, {now}), {renewed},
    FENCE = sqlock_insert_id(FENCE), LOCK_NAME = :name, HOLDER = :holder
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now};

-- ---- enqueue (sqlock)
-- Takes the lock if it is the claim's turn, or else puts a ticket into QUEUE,
-- or renews the claim's own.  It is the claim's turn if the row is reserved for
-- it; or if it is over, and nobody waits, or the claim's ticket is the first.
-- A row that has the claim's CLIENT_ID, and is over, is the next one's: it was
-- not taken in time.  A new row gets :queue, as by claim.  Behind
-- the columns of `claim`: how much longer the row is taken, whether its holder
-- is sqlock's, which rings, who has it and waits, and who shares it.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER, QUEUE)
  VALUES (:key, :region, :client, {now}, {now} + :ttl, {now}, :name, :holder,
    :queue)
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER,
      QUEUE) =
    (SELECT iif(T.takes, EXCLUDED.CLIENT_ID, L.CLIENT_ID),
      CASE WHEN NOT T.takes THEN L.CREATED_DATE
        WHEN {is_own} THEN min(L.CREATED_DATE, {now}) ELSE {now} END,
      iif(T.takes, {now} + :ttl, L.EXPIRED_AFTER),
      CASE WHEN NOT T.takes OR {is_own} THEN L.FENCE
        ELSE max(L.FENCE + 1, {now}) END,
      iif(T.takes, EXCLUDED.LOCK_NAME, L.LOCK_NAME),
      iif(T.takes, EXCLUDED.HOLDER, L.HOLDER),
      CASE WHEN NOT T.takes THEN {queue_with}
        WHEN {others_wait} THEN {queue_left} END
    FROM (SELECT {is_own} OR (L.CLIENT_ID IS NULL OR {is_over} < {now}) AND
        iif({others_wait}, {is_turn}, 1) AS takes) AS T)
  RETURNING iif(CLIENT_ID = :client AND {ends} >= {now}, FENCE, NULL),
    length(QUEUE), 0,
    iif(CLIENT_ID IS NULL, CREATED_DATE, EXPIRED_AFTER) - {now},
    coalesce(substr(HOLDER, 1, 36) = CLIENT_ID, CLIENT_ID IS NULL), CLIENT_ID,
    QUEUE, iif(CLIENT_ID = substr(SHARERS, 7, 36), SHARERS, NULL);
-- ---- define others_wait
(L.QUEUE LIKE '{"e":________________,"q":[["%' AND
  instr(L.QUEUE, '"],') BETWEEN 112 AND 330)
-- ---- define at
instr(L.QUEUE, '["' || EXCLUDED.CLIENT_ID)
-- ---- define is_turn
{at} = 28 AND {now} > {free_since}
-- ---- define free_since
iif(L.CLIENT_ID IS NULL, L.CREATED_DATE, L.EXPIRED_AFTER)
-- ---- define queue_left
-- The queue without the claim's ticket.
CASE WHEN {at} = 0 THEN L.QUEUE
  WHEN instr(L.QUEUE, '"],[') > 0 THEN substr(L.QUEUE, 1, {at} - 1) ||
    substr(substr(L.QUEUE, {at}), instr(substr(L.QUEUE, {at}), '"],') + 3) END
-- ---- define queue_with
CASE WHEN {at} > 0 AND {others_wait} THEN substr(L.QUEUE, 1, {at} + 39) ||
    {until} || substr(L.QUEUE, {at} + 56)
  ELSE {queue_before} || {ticket} END
-- ---- define queue_before
-- The beginning of a queue with a new ticket: the tickets that are there.
iif({others_wait}, substr(L.QUEUE, 1, length(L.QUEUE) - 3),
  '{"e":1000000000000000,"q":[')
-- ---- define ticket
'["' || EXCLUDED.CLIENT_ID || '",' || {until} || ',' || {now} ||
  ',"000000","' || :shown || '"],0]}'
-- ---- define until
({now} + 70000000)

-- ---- leave (sqlock)
-- Takes a ticket out of QUEUE.  Of a lock that is shared, those behind it may
-- have room now, and look.
UPDATE INT_LOCK AS L
  SET (HOLDER, QUEUE) =
    (SELECT CASE WHEN {ring_sharers} THEN NULL ELSE L.HOLDER END, R.queue
    FROM (SELECT {queue_without} AS queue, iif({is_shared},
        coalesce(nullif({permits_of_row}, 0), 999999999) - {taken}, 0) AS room
      FROM (SELECT instr(L.QUEUE, '["' || :client) AS at)) AS R)
  WHERE {row} AND instr(L.QUEUE, '["' || :client) > 0;

-- ---- claim (spring7)
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  VALUES (:key, :region, :client, {now}, {now} + :ttl)
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, {claimed}, EXPIRED_AFTER = {now} + :ttl
  WHERE {may_take}
  RETURNING CREATED_DATE;

-- ---- claim (spring6)
-- The token of this layout is kept nowhere.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  VALUES (:key, :region, :client, {now} + :ttl - :peer_ttl)
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now} + :ttl - :peer_ttl
  WHERE {may_take}
  RETURNING {now};

-- ---- renew (sqlock)
-- Moves the end of a lease that is not over.
UPDATE INT_LOCK
  SET CREATED_DATE = min(CREATED_DATE, {now}), {renewed}
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now};
-- ---- renew (spring7 spring6)
UPDATE INT_LOCK
  SET {renewed}
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now};

-- ---- define passed_on (sqlock)
-- Passes the row on: reserves it for a second for the first who waits, and
-- rings its bell when the transaction has been committed; or frees the row and
-- keeps it, with its token and its last holder.  The first who waits, then
-- claims the row, finds its own CLIENT_ID in it.
CLIENT_ID = iif({is_waited_for}, substr(QUEUE, 30, 36), NULL),
CREATED_DATE = iif({is_waited_for}, {now}, CREATED_DATE),
EXPIRED_AFTER = {now} + iif({is_waited_for}, 1000000, -1),
QUEUE = iif({is_waited_for} AND instr(QUEUE, '"],[') > 0,
  substr(QUEUE, 1, 27) || substr(QUEUE, instr(QUEUE, '"],') + 3), NULL)
-- ---- define holder_passed_on (sqlock)
HOLDER = iif({is_waited_for}, coalesce({ring}, {next_holder}), HOLDER)
-- ---- define token_passed_on (sqlock)
FENCE = iif({is_waited_for}, max(FENCE + 1, {now}), FENCE)
-- ---- define next_holder (sqlock)
substr(QUEUE, 30, 36) || ' ' || substr(QUEUE, 112, instr(QUEUE, '"],') - 112)
-- ---- define ring (sqlock queue)
-- A bell is named by the digits which all CLIENT_IDs of its process begin with.
sqlock_ring(substr(QUEUE, 30, 8) || substr(QUEUE, 39, 4),
  substr(QUEUE, 30, 36))
-- ---- define ring (sqlock poll)
NULL

-- ---- release (sqlock)
-- Frees the row and keeps it, with its token and its last holder.
UPDATE INT_LOCK
  SET {holder_passed_on}, {token_passed_on}, {passed_on}
  WHERE {row} AND CLIENT_ID = :client;

-- ---- release unqueued (sqlock)
-- As release, of a row that has no tickets.
UPDATE INT_LOCK
  SET CLIENT_ID = NULL, EXPIRED_AFTER = {now} - 1
  WHERE {row} AND CLIENT_ID = :client AND QUEUE IS NULL;

-- ---- ask to look (sqlock queue) [not prepared]
-- Asks the first who wait for each item to look at its row in a second: whether
-- the one for whom it is reserved, or who may share it, has taken it.
SELECT count(sqlock_ring(substr(json_extract(Q.value, '$[0]'), 1, 8) ||
      substr(json_extract(Q.value, '$[0]'), 10, 4),
    json_extract(Q.value, '$[0]') || '?' || (1000 + 20 * Q.key)))
  FROM json_each(:items) AS I
  JOIN INT_LOCK AS L ON LOCK_KEY = I.value AND REGION = :region
  JOIN json_each(iif({others_wait}, L.QUEUE, '{"q":[]}'), '$.q') AS Q
  WHERE Q.key < 16 AND Q.type = 'array';

-- ---- pass on (sqlock) [not prepared]
-- Passes a row on that is over and was not taken by the first who waits
-- (src/lease/pass_on.c): reserves it for :client, or frees it, if nobody is
-- left; and rings :rung.  A row that is shared stays as it is, but for QUEUE.
UPDATE INT_LOCK AS L
  SET HOLDER = CASE WHEN {ring_all} THEN NULL
      WHEN {has_ended} THEN coalesce(:holder, HOLDER) ELSE HOLDER END,
    CLIENT_ID = iif({has_ended}, :client, CLIENT_ID),
    CREATED_DATE = iif({has_ended}, {now}, CREATED_DATE),
    EXPIRED_AFTER = CASE WHEN NOT {has_ended} THEN EXPIRED_AFTER
      WHEN :client IS NULL THEN {now} - 1 ELSE {now} + 1000000 END,
    FENCE = iif({has_ended}, max(FENCE + 1, {now}), FENCE), QUEUE = :queue
  WHERE {row} AND QUEUE = :old_queue AND FENCE = :token AND
    iif(CLIENT_ID IS NULL, CREATED_DATE < {now},
      EXPIRED_AFTER < {now} OR {is_shared});
-- ---- define has_ended (sqlock)
(CLIENT_ID IS NULL OR EXPIRED_AFTER < {now})
-- ---- define ring_all (sqlock queue)
(SELECT count(sqlock_ring(substr(value, 1, 8) || substr(value, 10, 4), value))
  FROM json_each(:rung)) < 0
-- ---- define ring_all (sqlock poll)
false

-- ---- release (spring7 spring6)
-- Deletes the row, as Spring does.
DELETE FROM INT_LOCK WHERE {row} AND CLIENT_ID = :client;

-- ---- hand off (sqlock)
-- Gives the lease to another owner of this process, without freeing the row.
UPDATE INT_LOCK
  SET CLIENT_ID = :client, CREATED_DATE = {now}, {renewed},
    FENCE = max(FENCE + 1, {now}), LOCK_NAME = :name, HOLDER = :holder
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now}
  RETURNING FENCE;
-- ---- hand off (spring7)
UPDATE INT_LOCK
  SET CLIENT_ID = :client, CREATED_DATE = max(CREATED_DATE + 1, {now}),
    {renewed}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now}
  RETURNING CREATED_DATE;
-- ---- hand off (spring6)
UPDATE INT_LOCK
  SET CLIENT_ID = :client, {renewed}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now}
  RETURNING {now};

-- ======================================================== sharing a lock ====

-- A lock that is shared has those who share it in SHARERS (src/lease/sharer.h),
-- and a CLIENT_ID that is nobody's but theirs together, which SHARERS begins
-- with.  EXPIRED_AFTER is the latest end of a sharer.  So all other statements
-- take the row for held until the last one ends; and whoever then takes it need
-- not empty SHARERS, because a group is over that is not CLIENT_ID.

-- ---- define group (sqlock)
-- The CLIENT_ID of a group: of its first sharer, but for the digits by which a
-- process is called.
('00000000-0000' || substr(:client, 14))
-- ---- define is_shared (sqlock)
(L.CLIENT_ID IS NOT NULL AND L.SHARERS IS NOT NULL AND
  L.CLIENT_ID = substr(L.SHARERS, 7, 36) AND L.EXPIRED_AFTER >= {now})
-- ---- define permits_of_row (sqlock)
-- The limit that the row has; null: none is known.  That of a group without a
-- limit, 000000, lasts as long as the group.
iif(substr(L.SHARERS, 43, 14) GLOB '","n":"[0-9][0-9][0-9][0-9][0-9][0-9]"' AND
  ({is_shared} OR substr(L.SHARERS, 50, 6) <> '000000'),
  CAST(substr(L.SHARERS, 50, 6) AS INTEGER), NULL)
-- ---- define limit (sqlock)
-- The limit that is to count: that of the row, or else that of the claim.
coalesce({permits_of_row}, :permits)
-- ---- define at_share (sqlock)
instr(L.SHARERS, '["' || :client)
-- ---- define has_share (sqlock)
(L.CLIENT_ID IS NOT NULL AND L.SHARERS IS NOT NULL AND
  L.CLIENT_ID = substr(L.SHARERS, 7, 36) AND {at_share} > 0 AND
  CAST(substr(L.SHARERS, {at_share} + 40, 16) AS INTEGER) >= {now})
-- ---- define sharers_with (sqlock)
-- The end of SHARERS, with the sharer of the claim.
'["' || :client || '",' || ({now} + :ttl) || ',' || {now} || ',"' ||
  printf('%06d', :weight) || '","' || printf('%019d', token) || '","' ||
  :shown || '"],0]}'
-- ---- define new_group (sqlock)
'{"g":"' || {group} || '","n":"' || printf('%06d', permits) || '","s":[' ||
  {sharers_with}
-- ---- define weight_of_ticket (sqlock)
-- An exclusive ticket needs more than there can be.
iif(json_extract(value, '$[3]') = '000000', 1000000000,
  CAST(json_extract(value, '$[3]') AS INTEGER))
-- ---- define taken (sqlock)
-- Those who share the lock have so many of its permits.
coalesce((SELECT sum(CAST(json_extract(value, '$[3]') AS INTEGER))
  FROM json_each(iif({is_shared}, L.SHARERS, '{"s":[]}'), '$.s')
  WHERE type = 'array' AND json_extract(value, '$[1]') >= {now}), 0)
-- ---- define ring_sharers (sqlock queue)
-- Rings each of the first in the queue R.queue that R.room is enough for.
(SELECT count(sqlock_ring(substr(id, 1, 8) || substr(id, 10, 4), id))
  FROM (SELECT json_extract(value, '$[0]') AS id,
      sum({weight_of_ticket}) OVER (ORDER BY key) AS upto
    FROM json_each(iif(R.room > 0, R.queue, NULL), '$.q')
    WHERE type = 'array')
  WHERE upto <= R.room) < 0
-- ---- define ring_sharers (sqlock poll)
false

-- ---- share (sqlock)
-- Adds the claim to those who share the lock, or renews its share.  It may join
-- if all who have tickets before its own, and itself, have room beside the
-- sharers, an exclusive ticket having room beside nobody.
-- Otherwise, if :waits is not null, it gets a ticket.  One sharer whose lease is
-- over goes with each that joins: so they do not pile up, and no list is made
-- anew.
--
-- F: what the row says.  S: of the sharers, what they have taken, and the first
-- that is over.  B: what the tickets before need.  R: what becomes of the
-- claim, the queue, and the room for those in it who should look.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER, SHARERS)
  SELECT :key, :region, {group}, {now}, {now} + :ttl, token, :name,
    {group} || ' shared', {new_group}
  FROM (SELECT {now} AS token, :permits AS permits) WHERE true
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER, QUEUE,
      SHARERS) =
    (SELECT iif(R.begins, {group}, L.CLIENT_ID),
      iif(R.begins, {now}, L.CREATED_DATE),
      CASE WHEN R.begins THEN {now} + :ttl
        WHEN R.has THEN max({now} + :ttl, L.EXPIRED_AFTER)
        ELSE L.EXPIRED_AFTER END,
      iif(R.joins, R.token, L.FENCE),
      iif(R.has, EXCLUDED.LOCK_NAME, L.LOCK_NAME),
      CASE WHEN {ring_sharers} THEN NULL
        WHEN R.begins THEN EXCLUDED.HOLDER ELSE L.HOLDER END,
      R.queue,
      CASE WHEN R.begins THEN {new_group}
        WHEN R.joins AND R.past_at > 0
        THEN substr(L.SHARERS, 1, R.past_at - 1) || substr({behind_over}, 1,
          length({behind_over}) - 3) || {sharers_with}
        WHEN R.joins
        THEN substr(L.SHARERS, 1, length(L.SHARERS) - 3) || {sharers_with}
        WHEN R.has THEN substr(L.SHARERS, 1, {at_share} + 39) ||
          ({now} + :ttl) || substr(L.SHARERS, {at_share} + 56)
        ELSE L.SHARERS END
    FROM (SELECT *, CASE WHEN has AND NOT waits THEN NULL
          WHEN has AND at = 0 THEN L.QUEUE
          WHEN has THEN {queue_without}
          WHEN may_come AND :waits IS NOT NULL THEN {queue_with_share}
          ELSE L.QUEUE END AS queue,
        iif(begins, most - taken - :weight, 0) AS room
      FROM (SELECT *, renews OR may_come AND has_room AS has,
          NOT renews AND may_come AND has_room AS joins,
          NOT renews AND may_come AND has_room AND NOT is_shared AS begins
        FROM (SELECT *, sharers < 200 AND :weight <= most AS may_come,
            instr(L.SHARERS, '["' || past) AS past_at,
            is_reserved OR (is_shared OR is_over) AND
              taken + needed + :weight <= most AS has_room
          FROM {facts_of_share}))) AS R)
  RETURNING iif({is_granted},
      CAST(substr(SHARERS, {at_granted} + 84, 19) AS INTEGER), NULL),
    length(QUEUE), 0,
    iif(CLIENT_ID IS NULL, CREATED_DATE, EXPIRED_AFTER) - {now},
    coalesce(substr(HOLDER, 1, 36) = CLIENT_ID, CLIENT_ID IS NULL), CLIENT_ID,
    QUEUE, iif({is_granted}, substr(SHARERS, 1, 56), SHARERS);
-- ---- define is_granted (sqlock)
-- As has_share, where the table's alias is not known.
(CLIENT_ID IS NOT NULL AND SHARERS IS NOT NULL AND
  CLIENT_ID = substr(SHARERS, 7, 36) AND {at_granted} > 0 AND
  CAST(substr(SHARERS, {at_granted} + 40, 16) AS INTEGER) >= {now})
-- ---- define at_granted (sqlock)
instr(SHARERS, '["' || :client)
-- ---- define facts_of_share (sqlock)
(SELECT {is_shared} AS is_shared,
    L.CLIENT_ID IS NOT NULL AND L.CLIENT_ID = :client AND
      L.EXPIRED_AFTER >= {now} AS is_reserved,
    L.CLIENT_ID IS NULL OR L.EXPIRED_AFTER < {now} AS is_over,
    L.QUEUE IS NOT NULL AND {others_wait} AS waits,
    coalesce(instr(L.QUEUE, '["' || :client), 0) AS at,
    {has_share} AS renews, max(L.FENCE + 1, {now}) AS token,
    {limit} AS permits, coalesce(nullif({limit}, 0), 999999999) AS most) AS F,
  (SELECT coalesce(sum(CAST(json_extract(value, '$[3]') AS INTEGER))
        FILTER (WHERE json_extract(value, '$[1]') >= {now}), 0) AS taken,
      coalesce(sum(json_extract(value, '$[1]') >= {now}), 0) AS sharers,
      coalesce(max(iif(json_extract(value, '$[0]') = :client, :client, NULL)),
        max(iif(json_extract(value, '$[1]') < {now},
          json_extract(value, '$[0]'), NULL))) AS past
    FROM json_each(iif({is_shared}, L.SHARERS, '{"s":[]}'), '$.s')
    WHERE type = 'array') AS S,
  (SELECT coalesce(sum({weight_of_ticket}), 0) AS needed
    FROM json_each(CASE WHEN L.QUEUE IS NULL OR NOT {others_wait}
      THEN '{"q":[]}' WHEN instr(L.QUEUE, '["' || :client) > 0
      THEN substr(L.QUEUE, 1, instr(L.QUEUE, '["' || :client) - 1) || '0]}'
      ELSE L.QUEUE END, '$.q')
    WHERE type = 'array') AS B
-- ---- define behind_over (sqlock)
substr(substr(L.SHARERS, R.past_at), instr(substr(L.SHARERS, R.past_at), '"],') + 3)
-- ---- define queue_without
-- The queue without the ticket of the claim.
CASE WHEN instr(L.QUEUE, '"],[') > 0 THEN substr(L.QUEUE, 1, at - 1) ||
    substr(substr(L.QUEUE, at), instr(substr(L.QUEUE, at), '"],') + 3) END
-- ---- define queue_with_share
CASE WHEN waits AND at > 0 THEN substr(L.QUEUE, 1, at + 39) || {until} ||
    substr(L.QUEUE, at + 56)
  ELSE {queue_before} || {ticket_of_share} END
-- ---- define ticket_of_share
'["' || :client || '",' || {until} || ',' || {now} || ',"' ||
  printf('%06d', :weight) || '","' || :shown || '"],0]}'

-- ---- renew share (sqlock)
-- Moves the end of a share that is not over.  Other sharers count only where
-- the row's end is later than the new one.
UPDATE INT_LOCK AS L
  SET CREATED_DATE = min(CREATED_DATE, {now}),
    EXPIRED_AFTER = iif(EXPIRED_AFTER <= {now} + :ttl, {now} + :ttl,
      (SELECT max({now} + :ttl, coalesce(max(json_extract(value, '$[1]')), 0))
        FROM json_each(SHARERS, '$.s')
        WHERE type = 'array' AND json_extract(value, '$[0]') <> :client)),
    SHARERS = substr(SHARERS, 1, {at_share} + 39) || ({now} + :ttl) ||
      substr(SHARERS, {at_share} + 56)
  WHERE {row} AND {has_share};

-- ---- release share (sqlock)
-- Takes a sharer out, over or not.  The last one frees the row, or reserves it
-- for a second: for the first who waits, as release does, or, if that one waits
-- to share, for all who can share it, as a group that is still empty.
-- CREATED_DATE says since when those who wait could have come.
UPDATE INT_LOCK AS L
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, FENCE, HOLDER, QUEUE, SHARERS) =
    (SELECT CASE WHEN R.stays THEN L.CLIENT_ID
        WHEN R.waits THEN substr(L.QUEUE, 30, 36) END,
      iif(R.waits, {now}, min(L.CREATED_DATE, {now})),
      CASE WHEN R.latest IS NOT NULL THEN R.latest
        WHEN R.waits THEN {now} + 1000000 ELSE {now} - 1 END,
      iif(R.waits AND NOT R.stays, max(L.FENCE + 1, {now}), L.FENCE),
      CASE WHEN R.stays THEN CASE WHEN {ring_sharers} THEN NULL
          ELSE L.HOLDER END
        WHEN R.waits THEN coalesce({ring}, {next_holder})
        ELSE :client || ' ' || substr(L.SHARERS, {at_share} + 106,
          instr(substr(L.SHARERS, {at_share} + 106), '"],') - 1) END,
      CASE WHEN R.stays THEN L.QUEUE
        WHEN R.waits AND instr(L.QUEUE, '"],[') > 0
        THEN substr(L.QUEUE, 1, 27) ||
          substr(L.QUEUE, instr(L.QUEUE, '"],') + 3) END,
      CASE WHEN R.latest IS NOT NULL
        THEN substr(L.SHARERS, 1, {at_share} - 1) ||
          substr(substr(L.SHARERS, {at_share}),
            instr(substr(L.SHARERS, {at_share}), '"],') + 3)
        WHEN R.stays OR substr(L.SHARERS, 50, 6) <> '000000'
        THEN substr(L.SHARERS, 1, 62) || '0]}' END
    FROM (SELECT *, latest IS NOT NULL OR waits AND to_share AS stays,
        iif(waits, L.QUEUE, NULL) AS queue, most - taken AS room
      FROM (SELECT {is_waited_for} AS waits,
          coalesce(substr(L.QUEUE, 103, 6) <> '000000', 0) AS to_share,
          iif(substr(L.SHARERS, 50, 6) = '000000', 999999999,
            CAST(substr(L.SHARERS, 50, 6) AS INTEGER)) AS most) AS F,
        (SELECT max(json_extract(value, '$[1]')) AS latest, coalesce(sum(
            CAST(json_extract(value, '$[3]') AS INTEGER)), 0) AS taken
          FROM json_each(L.SHARERS, '$.s')
          WHERE type = 'array' AND json_extract(value, '$[0]') <> :client AND
            json_extract(value, '$[1]') > {now}) AS S) AS R)
  WHERE {row} AND L.CLIENT_ID = substr(L.SHARERS, 7, 36) AND {at_share} > 0;

-- ---- break share (sqlock)
-- Takes the share from its sharer, but leaves its end as it is.
UPDATE INT_LOCK AS L
  SET FENCE = max(FENCE + 1, {now}),
    SHARERS = substr(SHARERS, 1, {at_old_share} + 1) || :client ||
      substr(SHARERS, {at_old_share} + 38, 68) || :shown ||
      substr(substr(SHARERS, {at_old_share}),
        instr(substr(SHARERS, {at_old_share}), '"],'))
  WHERE {row} AND {is_shared} AND {at_old_share} > 0 AND
    CAST(substr(SHARERS, {at_old_share} + 40, 16) AS INTEGER) >= {now};
-- ---- define at_old_share (sqlock)
instr(SHARERS, '["' || :old_client)

-- ---- downgrade (sqlock)
-- Makes the first sharer of the holder, with its token, and lets those join who
-- are first in the queue and wait to share.
UPDATE INT_LOCK AS L
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, HOLDER, SHARERS) =
    (SELECT {group}, min(L.CREATED_DATE, {now}), {now} + :ttl,
      CASE WHEN {ring_sharers} THEN NULL ELSE {group} || ' shared' END,
      {new_group}
    FROM (SELECT L.FENCE AS token, 0 AS permits, 999999998 AS room,
      iif({is_waited_for}, L.QUEUE, NULL) AS queue) AS R)
  WHERE {row} AND CLIENT_ID = :client AND EXPIRED_AFTER >= {now} AND
    {permits_of_row} IS NULL;

-- ---- permits (sqlock)
-- Changes the limit of a lock, and lets those look who wait and have room.  The
-- limit that it has changes nothing: the trigger of upgrade-spring6.sql takes a
-- new CREATED_DATE alone for that of an old program.  Nor does that of a row
-- which a Spring service has, and deletes when it releases the lock.
UPDATE INT_LOCK AS L
  SET (CREATED_DATE, HOLDER, SHARERS) =
    (SELECT iif(R.queue IS NULL, L.CREATED_DATE, {now}),
      CASE WHEN {ring_sharers} THEN NULL ELSE L.HOLDER END,
      iif({permits_of_row} IS NULL,
        '{"g":"00000000-0000-0000-0000-000000000000","n":"' ||
          printf('%06d', :permits) || '","s":[0]}',
        substr(L.SHARERS, 1, 49) || printf('%06d', :permits) ||
          substr(L.SHARERS, 56))
    FROM (SELECT iif({is_waited_for} AND {is_shared} AND
          {permits_of_row} <> :permits, L.QUEUE, NULL) AS queue,
        coalesce(nullif(:permits, 0), 999999999) - {taken} AS room) AS R)
  WHERE {row} AND (CLIENT_ID IS NULL OR EXPIRED_AFTER < {now} OR
    substr(HOLDER, 1, 36) = CLIENT_ID);

-- ---- define tells (sqlock queue)
-- Tells those who observe any leader of the database.  A text says whether its
-- leader's process does that.
sqlock_tell('!' || L.LOCK_KEY) IS NOT NULL
-- ---- define tells (sqlock poll)
false
-- ---- define is_newer (sqlock)
-- A text that the lease has published later stays.
coalesce(substr(LEADER, 1, 36) <> :client OR
  substr(LEADER, 38, 16) <= :serial, true)

-- ---- publish (sqlock)
-- Writes the text of a leader, who has the lock alone (src/lease/leader_text.h).
-- It counts only under its CLIENT_ID, so nobody need take it away.
UPDATE INT_LOCK AS L
  SET LEADER = :client || ' ' || :serial || iif({tells}, ' told ', ' kept ') ||
    :shown
  WHERE {row} AND CLIENT_ID = :client AND EXPIRED_AFTER >= {now} AND {is_newer};

-- ---- tell (sqlock queue) [not prepared]
-- Tells those who observe the leader of the key.
SELECT sqlock_tell('!' || :key);

-- =========================================== many leases in one statement ====

-- ---- define items
-- :items is a JSON array of objects.  "WHERE true": without it, ON CONFLICT
-- would be parsed as a join's ON.
json_each(:items) AS j
-- ---- define born_items
(SELECT json_extract(j.value, '$.k') AS k, json_extract(j.value, '$.c') AS c,
  json_extract(j.value, '$.t') AS t, json_extract(j.value, '$.n') AS n,
  json_extract(j.value, '$.h') AS h, {now} AS born FROM {items}) AS J WHERE true

-- ---- define end_of_item (sqlock spring7)
-- The difference is the TTL: both columns of EXCLUDED are computed from one
-- reading of the clock.
{now} + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)

-- ---- claim many (sqlock)
-- As claim, for each item.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER)
  SELECT J.k, :region, J.c, J.born, J.born + J.t, {now}, J.n, J.h
  FROM {born_items}
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, {claimed}, EXPIRED_AFTER = {end_of_item},
    {claimed_for}
  WHERE {may_take}
  RETURNING LOCK_KEY, FENCE, CLIENT_ID;
-- ---- claim many (spring7)
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  SELECT J.k, :region, J.c, J.born, J.born + J.t
  FROM {born_items}
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, {claimed}, EXPIRED_AFTER = {end_of_item}
  WHERE {may_take}
  RETURNING LOCK_KEY, CREATED_DATE, CLIENT_ID;
-- ---- claim many (spring6)
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  SELECT J.k, :region, J.c, J.born + J.t - :peer_ttl
  FROM {born_items}
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = EXCLUDED.CREATED_DATE
  WHERE {may_take}
  RETURNING LOCK_KEY, {now}, CLIENT_ID;

-- ---- define is_own_item
-- Each row is found by the primary key.
t.LOCK_KEY = json_extract(j.value, '$.k') AND t.REGION = :region AND
t.CLIENT_ID = json_extract(j.value, '$.c')

-- ---- renew many
-- As renew, for each item.
UPDATE INT_LOCK AS t
  SET {renewed_item}
  FROM {items}
  WHERE {is_own_item} AND {item_ends} >= {now}
  RETURNING LOCK_KEY, {now}, CLIENT_ID;
-- ---- define item_ends (sqlock spring7)
t.EXPIRED_AFTER
-- ---- define item_ends (spring6)
(t.CREATED_DATE + CASE WHEN substr(t.CLIENT_ID, 15, 1) = '8' AND
  substr(t.CLIENT_ID, 28) NOT GLOB '*[^0-9]*'
  THEN substr(t.CLIENT_ID, 28) * 1000 ELSE :peer_ttl END)
-- ---- define renewed_item (sqlock)
CREATED_DATE = min(CREATED_DATE, {now}),
EXPIRED_AFTER = {now} + json_extract(j.value, '$.t')
-- ---- define renewed_item (spring7)
EXPIRED_AFTER = {now} + json_extract(j.value, '$.t')
-- ---- define renewed_item (spring6)
CREATED_DATE = {now} + json_extract(j.value, '$.t') - {ttl_of_row}

-- ---- release many (sqlock)
-- As release, for each item.
UPDATE INT_LOCK AS t
  SET {holder_passed_on}, {token_passed_on}, {passed_on}
  FROM {items}
  WHERE {is_own_item}
  RETURNING LOCK_KEY;
-- ---- release many (spring7 spring6)
DELETE FROM INT_LOCK
  WHERE (LOCK_KEY, REGION, CLIENT_ID) IN
    (SELECT json_extract(j.value, '$.k'), :region, json_extract(j.value, '$.c')
    FROM {items})
  RETURNING LOCK_KEY;

-- ---- read many [reads]
-- As read, for each item, with the key that it has, which may be another
-- spelling of the row's.
SELECT json_extract(j.value, '$.k'), {info_of_row}
  FROM {items} CROSS JOIN INT_LOCK
    ON LOCK_KEY = json_extract(j.value, '$.k') AND REGION = :region;

-- ================================================================ reading ====

-- ---- define info
LOCK_KEY, {info_of_row}
-- ---- define info_of_row
CLIENT_ID, {token},
CASE WHEN CLIENT_ID IS NULL THEN min(-1, {ends} - {now})
  ELSE {ends} - {now} END,
CREATED_DATE, {ends}, {names}
-- ---- define token (sqlock)
FENCE
-- ---- define token (spring7)
CREATED_DATE
-- ---- define token (spring6)
NULL
-- ---- define names (sqlock)
LOCK_NAME, HOLDER, QUEUE, SHARERS, LEADER
-- ---- define names (spring7 spring6)
NULL, NULL, NULL, NULL, NULL

-- ---- waits (sqlock) [not prepared, reads]
-- Reads who waits for whom, to find circles.
SELECT CLIENT_ID, QUEUE, SHARERS, {now}
  FROM INT_LOCK
  WHERE REGION = :region AND QUEUE IS NOT NULL AND CLIENT_ID IS NOT NULL AND
    {ends} > {now};

-- ---- read [reads]
-- Reads a row without locking it.
SELECT {info} FROM INT_LOCK WHERE {row};

-- ---- define behind
REGION = :region AND LOCK_KEY > :after

-- ---- define is_sought
REGION = coalesce(:region, REGION) AND
(:region IS NOT NULL OR REGION NOT LIKE '%#tx') AND
(:with_free <> 0 OR CLIENT_ID IS NOT NULL) AND
(:pattern IS NULL OR {shown_name} LIKE :pattern ESCAPE '!')
-- ---- define shown_name (sqlock)
coalesce(LOCK_NAME, LOCK_KEY)
-- ---- define shown_name (spring7 spring6)
LOCK_KEY

-- ---- find [not prepared, reads]
-- Finds locks by region and name, at most so many, in the order that the caller
-- asks for.
SELECT {info}, REGION
  FROM INT_LOCK
  WHERE {is_sought}
  ORDER BY CASE WHEN :order = 'held' THEN {held_since} END,
    CASE WHEN :order = 'ttl' THEN {ends} END,
    CASE WHEN :order = 'token' THEN -{token} END, {shown_name}, REGION
  LIMIT :limit;

-- ---- define held_since (sqlock)
-- A shared lock is held since the sharer came who has it for longest.  A row
-- that Spring has taken over keeps the date of its last holder.
CASE WHEN CLIENT_ID = substr(SHARERS, 7, 36) THEN coalesce((
    SELECT min(json_extract(value, '$[2]'))
    FROM json_each(SHARERS, '$.s')
    WHERE type = 'array' AND json_extract(value, '$[1]') >= {now}), CREATED_DATE)
  WHEN CLIENT_ID IS NULL OR SUBSTR(HOLDER, 1, 36) = CLIENT_ID OR
  (HOLDER IS NULL AND FENCE = 0) THEN CREATED_DATE ELSE 9000000000000000000 END
-- ---- define held_since (spring7 spring6)
CREATED_DATE

-- ---- find page [reads]
-- Reads all that find would find, page by page.
SELECT {info}, REGION
  FROM INT_LOCK
  WHERE {is_sought} AND LOCK_KEY >= :after AND
    (LOCK_KEY > :after OR REGION > :after_region)
  ORDER BY LOCK_KEY, REGION
  LIMIT :limit;

-- =========================================== breaking, reaping, restoring ====

-- ---- break (sqlock)
-- Takes the lease from its holder, but leaves its end as it is: nobody can
-- claim the lock before, so the holder has time to notice.
UPDATE INT_LOCK
  SET CLIENT_ID = :client, HOLDER = :holder, FENCE = max(FENCE + 1, {now})
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- break (spring7)
UPDATE INT_LOCK
  SET CLIENT_ID = :client, CREATED_DATE = max(CREATED_DATE + 1, {now})
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- break (spring6)
UPDATE INT_LOCK
  SET CLIENT_ID = :client
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};

-- ---- break now (sqlock)
-- Takes the lease from its holder, and frees the lock at once.
UPDATE INT_LOCK
  SET HOLDER = iif({is_waited_for}, coalesce({ring}, {next_holder}), :holder),
    FENCE = max(FENCE + 1, {now}), {passed_on}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- break now (spring7 spring6)
DELETE FROM INT_LOCK
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};

-- ---- reap bound [reads]
-- Finds the end of the next range to reap, so that no DELETE is a long one.
SELECT max(LOCK_KEY)
  FROM (SELECT LOCK_KEY FROM INT_LOCK WHERE {behind}
    ORDER BY LOCK_KEY LIMIT :limit) AS B;

-- ---- reap
-- Deletes rows that were freed, or whose lease ended, long ago.  The row is
-- what keeps the token rising: so only rows go whose token lies below the
-- clock, where the next one will be.
DELETE FROM INT_LOCK
  WHERE {behind} AND LOCK_KEY <= :until AND {is_old};
-- ---- define is_old (sqlock)
-- A row with tickets stays a day longer: a clock may have stepped.
{ends} < {now} - :age AND FENCE < {now} - :age AND
(NOT ({is_waited_for}) OR {ends} < {now} - 86400000000)
-- ---- define is_old (spring7)
{ends} < {now} - :age AND CREATED_DATE < {now} - :age
-- ---- define is_old (spring6)
{ends} < {now} - :age

-- ---- after restore (sqlock) [not prepared]
-- Frees every row after the table was restored from a backup, with a token
-- above those that were given since.  Sent in a transaction of its own.
UPDATE INT_LOCK
  SET CLIENT_ID = NULL, HOLDER = NULL, EXPIRED_AFTER = {now} - 1,
    FENCE = max(FENCE + 1, {now}), QUEUE = NULL;
-- ---- after restore (spring7 spring6) [not prepared]
DELETE FROM INT_LOCK;

-- ======================================= in the application's transaction ====

-- ---- define plain_now
-- The present time, for connections that lack sqlock_now().  'now' is truncated
-- to ms.  One ms is added, so that no expired lease seems to be running.
(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000
  + 1000)

-- ---- define has_token (sqlock)
AND FENCE = :token
-- ---- define has_token (spring7 spring6)

-- ---- name look
-- Finds out whether the row of a name is there, though it may be locked.
SELECT LOCK_KEY FROM INT_LOCK WHERE {row};

-- ---- write lock [not prepared]
-- Takes the file's write lock, and changes nothing.
DELETE FROM INT_LOCK WHERE false;

-- ---- tx guard [never waits]
-- Locks the row of a lease until the end of the transaction, so that nobody can
-- take it over before, and says whether it is over.
UPDATE INT_LOCK
  SET CLIENT_ID = CLIENT_ID
  WHERE {row} AND CLIENT_ID = :client {has_token}
  RETURNING {ends} >= {plain_now};

-- ---- guard
-- For other programs: `sqlock guard-sql` prints it.  An INSERT has the file's
-- write lock from its start.  The text is no JSON path: json_extract() fails,
-- and its error shows it.
INSERT INTO INT_LOCK (LOCK_KEY)
  SELECT json_extract('[]', 'sqlock: the lease is over')
  WHERE NOT EXISTS (SELECT 1 FROM INT_LOCK
    WHERE {row} AND CLIENT_ID = :client {has_token} AND {ends} >= {plain_now});

-- ---- identity [not prepared]
-- Says which database this is: two sessions with the same answer find the same
-- table.
PRAGMA main.database_list;

-- ======================================================= run-once records ====

-- ---- once read [not prepared]
-- Reads who has done it.
SELECT CLIENT_ID FROM INT_DONE WHERE {row};

-- ---- once record [not prepared]
-- Records that it is done, under a guarded lease.  The clock is that of leases,
-- or else work might seem to be done before its lease began.
INSERT INTO INT_DONE (LOCK_KEY, REGION, DONE_DATE, CLIENT_ID, FENCE, LOCK_NAME)
  VALUES (:key, :region, {now}, :client, :token, :name);

-- ---- once list [not prepared]
-- Reads one record, or all of a region.
SELECT LOCK_KEY, CLIENT_ID, FENCE, DONE_DATE, LOCK_NAME
  FROM INT_DONE
  WHERE REGION = :region AND (:key IS NULL OR LOCK_KEY = :key)
  ORDER BY coalesce(LOCK_NAME, LOCK_KEY);

-- ---- once forget [not prepared]
-- Deletes a record, so that it is done again.
DELETE FROM INT_DONE WHERE {row};

-- ============================================================= the server ====

-- ---- server
-- Says whether the server takes writes, its clock, and its version.
SELECT sqlock_readonly(), {now}, 'SQLite ' || sqlite_version();

-- ---- describe
-- Reads the columns of a table, and what makes it unfit for locks.  Only the
-- schema "main" is searched: the driver attaches no other database.
-- A user who can read the schema can read and change all tables.
SELECT upper(c.name), lower(c.type), CASE WHEN c."notnull" THEN 0 ELSE 1 END,
    c.pk,
    CASE WHEN s.type = 'view' THEN 'a view'
      WHEN upper(s.sql) LIKE 'CREATE VIRTUAL %' THEN 'a virtual table' END,
    nullif(sqlock_collation(s.name, c.name), 'BINARY'), 'main',
    sqlock_readonly(), 2
  FROM main.sqlite_schema AS s
  JOIN pragma_table_xinfo(s.name, 'main') AS c
  WHERE s.type IN ('table', 'view') AND lower(s.name) = lower(:table) AND
    lower(coalesce(:schema, 'main')) = 'main'
  ORDER BY c.cid;

-- ---- place [not prepared]
-- Tells the file, with its whole path.
SELECT 'the file ' || file, NULL FROM pragma_database_list WHERE name = 'main';

-- ---- has age index [not prepared]
-- Old orders of stock are read by it; tables of earlier versions have none.
SELECT 1
  FROM pragma_index_list(:table) AS L, pragma_index_info(L.name) AS I
  WHERE I.seqno = 0 AND I.name = 'CREATED_AT'
  LIMIT 1;
