-- Statements that sqlock sends to PostgreSQL about its tables INT_LOCK and
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
-- "Now" is clock_timestamp(), which is read at the moment of its evaluation,
-- even after a wait for a row lock.  The values of now() and of columns of
-- EXCLUDED would then be too old.
--
-- No parameter is ever cast to text: a LOCK_KEY of type text does not use the
-- primary key, which is CHAR.

-- ---- parameters are $1

-- ---- define now
(clock_timestamp() AT TIME ZONE 'UTC')

-- ---- define now_us
(extract(epoch FROM clock_timestamp()) * 1000000)::bigint

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
(CREATED_DATE + ({ttl_of_row}) * interval '1 microsecond')
-- ---- define ttl_of_row (spring6)
CASE WHEN substr(CLIENT_ID, 15, 1) = '8' AND substr(CLIENT_ID, 28) ~ '^[0-9]+$'
  THEN substr(CLIENT_ID, 28)::bigint * 1000 ELSE :peer_ttl::bigint END

-- ---- define new_end (sqlock spring7)
-- The end of a lease that begins now, and of one that is renewed.
{now} + :ttl * interval '1 microsecond'
-- ---- define new_end (spring6)
{now} + (:ttl - :peer_ttl) * interval '1 microsecond'
-- ---- define renewed (sqlock spring7)
EXPIRED_AFTER = {new_end}
-- ---- define renewed (spring6)
CREATED_DATE = {now} + (:ttl - {ttl_of_row}) * interval '1 microsecond'

-- ---- define higher_token (sqlock)
-- A token that is higher than the row's last one, and not below the clock.
FENCE = greatest(FENCE + 1, {now_us})
-- ---- define higher_token (spring7)
CREATED_DATE = greatest(CREATED_DATE + interval '1 microsecond', {now})

-- ---- define turn (sqlock spring7 queue)
-- Tokens rise because this advisory lock lets only one claim of a key run at a
-- time, from before its token is computed until its commit.  The row lock does
-- not suffice, because the values to insert are computed before the wait for
-- it, and a Spring peer deletes the row.  Suppose claim A waits for such a
-- DELETE, claim B takes a later token, and a second DELETE removes B's row:
-- then A would insert its token, which is older.  With waiting=poll there is no
-- such lock, and only the row lock makes tokens rise, as long as the row
-- exists.
pg_advisory_xact_lock(hashtextextended(:region::varchar,
  hashbpchar(:key)::bigint))
-- ---- define token_at_turn (sqlock queue)
CASE WHEN {turn} IS NOT NULL THEN {now_us} END
-- ---- define token_at_turn (sqlock poll)
{now_us}
-- ---- define token_at_turn (spring7 queue)
CASE WHEN {turn} IS NOT NULL THEN {now} END
-- ---- define token_at_turn (spring7 poll)
{now}

-- ---- define is_waited_for (sqlock)
-- QUEUE says who waits, in order (src/lease/ticket.h); whether it is a queue.
-- No time counts: a clock that steps changes nobody's place.
QUEUE LIKE '{"e":________________,"q":[["%' AND
  strpos(QUEUE, '"],') BETWEEN 112 AND 330

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
CASE WHEN {others_wait} THEN {now} > {free_since} + interval '70 seconds'
  ELSE true END
-- ---- define may_take (spring7 spring6)
L.CLIENT_ID IS NULL OR L.CLIENT_ID = EXCLUDED.CLIENT_ID OR {is_over} < {now}
-- ---- define is_over (sqlock spring7)
L.EXPIRED_AFTER
-- ---- define is_over (spring6)
(L.CREATED_DATE + (CASE WHEN substr(L.CLIENT_ID, 15, 1) = '8' AND
  substr(L.CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(L.CLIENT_ID, 28)::bigint *
  1000 ELSE :peer_ttl::bigint END) * interval '1 microsecond')

-- ---- define claimed (sqlock)
-- The table's CHECK wants CREATED_DATE before EXPIRED_AFTER: a statement that
-- sets the end anew also takes back a CREATED_DATE that lies in the future,
-- since the server's clock has been set back.
CREATED_DATE = CASE WHEN {is_own} THEN least(L.CREATED_DATE, {now})
  ELSE {now} END
-- ---- define claimed (spring7)
CREATED_DATE = CASE WHEN {is_own} THEN L.CREATED_DATE ELSE {now} END
-- ---- define claimed_for (sqlock)
FENCE = CASE WHEN {is_own} THEN L.FENCE
  ELSE greatest(L.FENCE + 1, {now_us}) END,
LOCK_NAME = EXCLUDED.LOCK_NAME, HOLDER = EXCLUDED.HOLDER

-- ---- claim (sqlock) [may be lost]
-- Takes the lock in one statement, whether there is a row or not; a new one
-- gets :queue, the tickets that a Spring service has deleted with the row.  The
-- last columns of the answer: others wait; and the row was inserted.  A row
-- that existed was locked before its update, and the xmax of its new version
-- still shows that lock.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER, QUEUE)
  VALUES (:key, :region, :client, {now}, {new_end}, {token_at_turn}, :name,
    :holder, :queue)
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, {claimed}, EXPIRED_AFTER = {new_end},
    {claimed_for}
  WHERE {may_take}
  RETURNING FENCE, QUEUE IS NOT NULL, L.xmax = 0;

-- ---- claim unqueued (sqlock) [may be lost]
-- As claim, of a free lock whose row is there and has no tickets.  PostgreSQL
-- makes the expressions of a prepared statement anew for each execution, so the
-- text of claim is much of its cost.
UPDATE INT_LOCK
  SET CLIENT_ID = :client, CREATED_DATE = {now}, {renewed}, {higher_token},
    LOCK_NAME = :name, HOLDER = :holder
  WHERE {row} AND QUEUE IS NULL AND (CLIENT_ID IS NULL OR {ends} < {now})
    {in_turn}
  RETURNING FENCE;

-- ---- claim reserved (sqlock) [may be lost]
-- Takes the row that a release has reserved for the ticket of the claim, and
-- inserts none: the row may be gone although another's lease is not over.
UPDATE INT_LOCK
  SET CREATED_DATE = least(CREATED_DATE, {now}), {renewed}, LOCK_NAME = :name,
    HOLDER = :holder
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now}
  RETURNING FENCE;

-- ---- enqueue (sqlock) [may be lost]
-- Takes the lock if it is the claim's turn, or else puts a ticket into QUEUE,
-- or renews the claim's own.  It is the claim's turn if the row is reserved for
-- it; or if it is over, and nobody waits, or the claim's ticket is the first.
-- A row that has the claim's CLIENT_ID, and is over, is the next one's: it was
-- not taken in time.  A new row gets :queue, as by claim.  Behind
-- the columns of `claim`: how much longer the row is taken, whether its holder
-- is sqlock's, which rings, who has it and waits, and who shares it.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER, QUEUE)
  VALUES (:key, :region, :client, {now}, {new_end}, {token_at_turn}, :name,
    :holder, :queue)
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER,
      QUEUE) =
    (SELECT CASE WHEN T.takes THEN EXCLUDED.CLIENT_ID ELSE L.CLIENT_ID END,
      CASE WHEN NOT T.takes THEN L.CREATED_DATE
        WHEN {is_own} THEN least(L.CREATED_DATE, {now}) ELSE {now} END,
      CASE WHEN T.takes THEN {new_end} ELSE L.EXPIRED_AFTER END,
      CASE WHEN NOT T.takes OR {is_own} THEN L.FENCE
        ELSE greatest(L.FENCE + 1, {now_us}) END,
      CASE WHEN T.takes THEN EXCLUDED.LOCK_NAME ELSE L.LOCK_NAME END,
      CASE WHEN T.takes THEN EXCLUDED.HOLDER ELSE L.HOLDER END,
      CASE WHEN NOT T.takes THEN {queue_with}
        WHEN {others_wait} THEN {queue_left} END
    FROM (SELECT {is_own} OR (L.CLIENT_ID IS NULL OR {is_over} < {now}) AND
        CASE WHEN {others_wait} THEN {is_turn} ELSE true END AS takes) AS T)
  RETURNING CASE WHEN CLIENT_ID = :client AND {ends} >= {now} THEN FENCE END,
    QUEUE IS NOT NULL, L.xmax = 0,
    (extract(epoch FROM CASE WHEN CLIENT_ID IS NULL
      THEN CREATED_DATE ELSE EXPIRED_AFTER END - {now}) * 1000000)::bigint,
    coalesce(left(HOLDER, 36) = CLIENT_ID, CLIENT_ID IS NULL), CLIENT_ID, QUEUE,
    CASE WHEN CLIENT_ID = substring(SHARERS FROM 7 FOR 36) THEN SHARERS END;
-- ---- define others_wait
L.QUEUE LIKE '{"e":________________,"q":[["%' AND
strpos(L.QUEUE, '"],') BETWEEN 112 AND 330
-- ---- define at
strpos(L.QUEUE, '["' || EXCLUDED.CLIENT_ID)
-- ---- define is_turn
{at} = 28 AND {now} > {free_since}
-- ---- define free_since
CASE WHEN L.CLIENT_ID IS NULL THEN L.CREATED_DATE ELSE L.EXPIRED_AFTER END
-- ---- define queue_left
-- The queue without the claim's ticket.
CASE WHEN {at} = 0 THEN L.QUEUE
  WHEN strpos(L.QUEUE, '"],[') > 0 THEN left(L.QUEUE, {at} - 1) ||
    substr(L.QUEUE, {at} + strpos(substr(L.QUEUE, {at}), '"],') + 2) END
-- ---- define queue_with
-- A ticket that a crash loses is put into the row again: its commit need not
-- wait.
CASE WHEN {need_not_be_durable} <> 'off' THEN NULL
  WHEN coalesce({at} > 0 AND {others_wait}, false)
  THEN overlay(L.QUEUE PLACING {until}::text FROM {at} + 40 FOR 16)
  ELSE {queue_before} || {ticket} END
-- ---- define queue_before
-- The beginning of a queue with a new ticket: the tickets that are there.
CASE WHEN {others_wait} THEN left(L.QUEUE, -3)
  ELSE '{"e":1000000000000000,"q":[' END
-- ---- define ticket
'["' || EXCLUDED.CLIENT_ID || '",' || {until} || ',' || {now_us} ||
  ',"000000","' || :shown || '"],0]}'
-- ---- define until
({now_us} + 70000000)

-- ---- leave (sqlock) [may be lost]
-- Takes a ticket out of QUEUE.  Of a lock that is shared, those behind it may
-- have room now, and look.
UPDATE INT_LOCK AS L
  SET (HOLDER, QUEUE) =
    (SELECT CASE WHEN {ring_sharers} THEN NULL ELSE L.HOLDER END, R.queue
    FROM (SELECT strpos(L.QUEUE, '["' || :client::varchar) AS at) AS F,
      LATERAL (SELECT {queue_without} AS queue, CASE WHEN {is_shared}
        THEN coalesce(nullif({permits_of_row}, 0), 999999999) - {taken}
        ELSE 0 END AS room) AS R)
  WHERE {row} AND strpos(L.QUEUE, '["' || :client::varchar) > 0;

-- ---- claim (spring7) [may be lost]
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  VALUES (:key, :region, :client, {token_at_turn}, {new_end})
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, {claimed}, EXPIRED_AFTER = {new_end}
  WHERE {may_take}
  RETURNING {token};

-- ---- claim (spring6) [may be lost]
-- The token of this layout is kept nowhere.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  VALUES (:key, :region, :client, {new_end})
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {new_end}
  WHERE {may_take}
  RETURNING {now_us};

-- ---- renew (sqlock) [may be lost]
-- Moves the end of a lease that is not over.
UPDATE INT_LOCK
  SET CREATED_DATE = least(CREATED_DATE, {now}), {renewed}
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now};
-- ---- renew (spring7 spring6) [may be lost]
UPDATE INT_LOCK
  SET {renewed}
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now};

-- ---- define need_not_be_durable
-- A release that a crash loses leaves a lease that expires: so the commit of a
-- release need not wait for the disk or a standby.  The setting ends with the
-- transaction, which should be the statement's own: it would hold until the end
-- of a longer transaction.
set_config('synchronous_commit', 'off', true)

-- ---- define freed (sqlock)
-- A free row has no CLIENT_ID, and an end 50 years ago (of 365.25 days), so
-- that a peer whose clock is behind sees at once that the row is free.
EXPIRED_AFTER = {now} - interval '18262 days 12 hours'
-- ---- define last_end (sqlock)
(CASE WHEN EXPIRED_AFTER < '2000-01-01'
  THEN EXPIRED_AFTER + interval '18262 days 12 hours' ELSE EXPIRED_AFTER END)
-- ---- define last_end (spring7 spring6)
{ends}

-- ---- define passed_on (sqlock)
-- Passes the row on: reserves it for a second for the first who waits, and
-- rings its bell; or frees the row and keeps it, with its token and its last
-- holder.  The first who waits, then claims the row, finds its own CLIENT_ID in
-- it.
CLIENT_ID = CASE WHEN {is_waited_for} THEN substr(QUEUE, 30, 36) END,
CREATED_DATE = CASE WHEN {is_waited_for} THEN {now} ELSE CREATED_DATE END,
EXPIRED_AFTER = {now} + CASE WHEN {is_waited_for} THEN interval '1 second'
  ELSE - interval '18262 days 12 hours' END,
QUEUE = CASE WHEN {is_waited_for} AND strpos(QUEUE, '"],[') > 0
  THEN left(QUEUE, 27) || substr(QUEUE, strpos(QUEUE, '"],') + 3) END
-- ---- define token_passed_on (sqlock)
FENCE = CASE WHEN {is_waited_for} THEN greatest(FENCE + 1, {now_us})
  ELSE FENCE END
-- ---- define next_holder (sqlock)
substr(QUEUE, 30, 36) || ' ' || substr(QUEUE, 112, strpos(QUEUE, '"],') - 112)
-- ---- define ring (sqlock queue)
-- A process listens to a channel that is named by the digits which all its
-- CLIENT_IDs begin with.
pg_notify('sqlock_' || substr(QUEUE, 30, 8) || substr(QUEUE, 39, 4),
  substr(QUEUE, 30, 36)) IS NULL
-- ---- define ring (sqlock poll)
false

-- ---- release (sqlock) [may be lost]
-- Calls its functions in the expression for HOLDER, whose first condition is
-- never true: with RETURNING, the rows and their description would be much of
-- the cost.
UPDATE INT_LOCK
  SET HOLDER = CASE WHEN {need_not_be_durable} <> 'off' THEN NULL
      WHEN {is_waited_for} THEN
        CASE WHEN {ring} THEN NULL ELSE {next_holder} END
      ELSE HOLDER END, {passed_on}, {token_passed_on}
  WHERE {row} AND CLIENT_ID = :client;

-- ---- release unqueued (sqlock) [may be lost]
-- As release, of a row that has no tickets.
UPDATE INT_LOCK
  SET HOLDER = CASE WHEN {need_not_be_durable} = 'off' THEN HOLDER END,
    CLIENT_ID = NULL, {freed}
  WHERE {row} AND CLIENT_ID = :client AND QUEUE IS NULL;

-- ---- release to peers (sqlock) [may be lost]
-- Frees the row, and puts a ticket of its holder before the others: a Spring
-- service, which cannot see QUEUE, may take it, before they do after
-- CREATED_DATE.  The ticket has a CLIENT_ID of its own: a late copy of this
-- statement does not find the next lease of the holder.
UPDATE INT_LOCK
  SET CLIENT_ID = NULL, CREATED_DATE = {now} + interval '110 milliseconds',
    HOLDER = CASE WHEN {need_not_be_durable} = 'off' THEN HOLDER END, {freed},
    QUEUE = CASE WHEN {is_waited_for} THEN left(QUEUE, 27)
      ELSE '{"e":1000000000000000,"q":[' END || '["' || :ticket::varchar ||
      '",' || ({now_us} + 70000000) || ',' || {now_us} || ',"000000","' ||
      :shown::varchar || '"],' ||
      CASE WHEN {is_waited_for} THEN substr(QUEUE, 28) ELSE '0]}' END
  WHERE {row} AND CLIENT_ID = :client;

-- ---- ask to look (sqlock queue) [not prepared, may be lost]
-- Asks the first who wait for each item to look at its row in a second: whether
-- the one for whom it is reserved, or who may share it, has taken it.
SELECT count(pg_notify('sqlock_' || left(e ->> 0, 8) || substr(e ->> 0, 10, 4),
    (e ->> 0) || '?' || 980 + 20 * place))
  FROM json_array_elements_text(:items::json) AS I (k)
  JOIN INT_LOCK AS L ON LOCK_KEY = I.k::char(36) AND REGION = :region,
    LATERAL json_array_elements(CASE WHEN {others_wait}
      THEN L.QUEUE::json -> 'q' END) WITH ORDINALITY AS Q (e, place)
  WHERE place <= 16 AND e ->> 0 IS NOT NULL;

-- ---- pass on (sqlock) [not prepared, may be lost]
-- Passes a row on that is over and was not taken by the first who waits
-- (src/lease/pass_on.c): reserves it for :client, or frees it, if nobody is
-- left; and rings :rung.  A row that is shared stays as it is, but for QUEUE.
-- The clock is read once, or else a row might end while its columns are made.
UPDATE INT_LOCK AS L
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, FENCE, HOLDER, QUEUE) =
    (SELECT CASE WHEN T.has_ended THEN :client::varchar ELSE L.CLIENT_ID END,
      CASE WHEN T.has_ended THEN F.now ELSE L.CREATED_DATE END,
      CASE WHEN NOT T.has_ended THEN L.EXPIRED_AFTER WHEN :client::varchar
        IS NULL THEN F.now - interval '18262 days 12 hours'
        ELSE F.now + interval '1 second' END,
      CASE WHEN T.has_ended THEN greatest(L.FENCE + 1, {now_us})
        ELSE L.FENCE END,
      CASE WHEN {ring_all} THEN NULL
        WHEN T.has_ended THEN coalesce(:holder::varchar, L.HOLDER)
        ELSE L.HOLDER END, :queue::varchar
    FROM (SELECT {now} AS now) AS F, LATERAL (SELECT L.CLIENT_ID IS NULL OR
        L.EXPIRED_AFTER < F.now AS has_ended) AS T)
  WHERE {row} AND QUEUE = :old_queue::varchar AND FENCE = :token AND
    CASE WHEN CLIENT_ID IS NULL THEN CREATED_DATE < {now}
      ELSE EXPIRED_AFTER < {now} OR {is_shared} END;
-- ---- define ring_all (sqlock queue)
(SELECT count(pg_notify('sqlock_' || left(t, 8) || substr(t, 10, 4), t))
  FROM json_array_elements_text(:rung::json) AS J (t)) < 0
-- ---- define ring_all (sqlock poll)
false

-- ---- release (spring7 spring6) [may be lost]
-- Deletes the row, as Spring does.
DELETE FROM INT_LOCK
  WHERE {row} AND CLIENT_ID = :client
  RETURNING {need_not_be_durable};

-- ---- define in_turn (sqlock spring7 queue)
-- A condition without a column is evaluated once, before the row is locked.  A
-- claim takes the advisory lock before the row lock, too, so a hand-off and a
-- claim cannot deadlock.
AND (SELECT {turn}) IS NOT NULL
-- ---- define in_turn (sqlock spring7 poll)

-- ---- hand off (sqlock) [may be lost]
-- Gives the lease to another owner of this process, without freeing the row.
UPDATE INT_LOCK
  SET CLIENT_ID = :client, CREATED_DATE = {now}, {renewed}, {higher_token},
    LOCK_NAME = :name, HOLDER = :holder
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now} {in_turn}
  RETURNING FENCE;
-- ---- hand off (spring7) [may be lost]
UPDATE INT_LOCK
  SET CLIENT_ID = :client, {higher_token}, {renewed}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now} {in_turn}
  RETURNING {token};
-- ---- hand off (spring6) [may be lost]
UPDATE INT_LOCK
  SET CLIENT_ID = :client, {renewed}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now}
  RETURNING {now_us};

-- ======================================================== sharing a lock ====

-- A lock that is shared has those who share it in SHARERS (src/lease/sharer.h),
-- and a CLIENT_ID that is nobody's but theirs together, which SHARERS begins
-- with.  EXPIRED_AFTER is the latest end of a sharer.  So all other statements
-- take the row for held until the last one ends; and whoever then takes it need
-- not empty SHARERS, because a group is over that is not CLIENT_ID.

-- ---- define group (sqlock)
-- The CLIENT_ID of a group: of its first sharer, but for the digits by which a
-- process is called.
('00000000-0000' || substr(:client::varchar, 14))
-- ---- define is_shared (sqlock)
L.CLIENT_ID = substr(L.SHARERS, 7, 36) AND L.EXPIRED_AFTER >= {now}
-- ---- define permits_of_row (sqlock)
-- The limit that the row has; null: none is known.  That of a group without a
-- limit, 000000, lasts as long as the group.
CASE WHEN substr(L.SHARERS, 43, 14) ~ '^","n":"[0-9]+"$' AND
  ({is_shared} OR substr(L.SHARERS, 50, 6) <> '000000')
  THEN substr(L.SHARERS, 50, 6)::bigint END
-- ---- define limit (sqlock)
-- The limit that is to count: that of the row, or else that of the claim.
coalesce({permits_of_row}, :permits::bigint)
-- ---- define at_share (sqlock)
strpos(L.SHARERS, '["' || :client::varchar)
-- ---- define date_of (sqlock)
timestamp '1970-01-01' + interval '1 microsecond' *
-- ---- define sharers_with (sqlock)
-- The end of SHARERS, with the sharer of the claim.
'["' || :client::varchar || '",' || F.us + :ttl::bigint || ',' || F.us || ',"' ||
  lpad(:weight::bigint::text, 6, '0') || '","' ||
  lpad(F.token::text, 19, '0') || '","' || :shown::varchar || '"],0]}'
-- ---- define new_group (sqlock)
'{"g":"' || {group} || '","n":"' || lpad(F.permits::text, 6, '0') ||
  '","s":[' || {sharers_with}
-- ---- define weight_of_ticket (sqlock)
-- An exclusive ticket needs more than there can be.
CASE e ->> 3 WHEN '000000' THEN 1000000000 ELSE (e ->> 3)::bigint END
-- ---- define taken (sqlock)
-- Those who share the lock have so many of its permits.
coalesce((SELECT sum((e ->> 3)::bigint)
  FROM json_array_elements(CASE WHEN {is_shared}
    THEN L.SHARERS::json -> 's' END) AS J (e)
  WHERE e ->> 1 >= {now_us}::text), 0)
-- ---- define ring_sharers (sqlock queue)
-- Rings each of the first in the queue R.queue that R.room is enough for.
(SELECT count(pg_notify('sqlock_' || left(W.id, 8) || substr(W.id, 10, 4), W.id))
  FROM (SELECT e ->> 0 AS id,
      sum({weight_of_ticket}) OVER (ORDER BY place) AS upto
    FROM json_array_elements(CASE WHEN R.room > 0
        THEN R.queue::json -> 'q' END) WITH ORDINALITY AS Q (e, place)
    WHERE e ->> 0 IS NOT NULL) AS W
  WHERE W.upto <= R.room) < 0
-- ---- define ring_sharers (sqlock poll)
false
-- ---- define has_share (sqlock)
coalesce(L.CLIENT_ID = substr(L.SHARERS, 7, 36) AND {at_share} > 0 AND
  substr(L.SHARERS, {at_share} + 40, 16) >= {now_us}::text, false)

-- ---- share (sqlock) [may be lost]
-- Adds the claim to those who share the lock, or renews its share.  It may join
-- if all who have tickets before its own, and itself, have room beside the
-- sharers, an exclusive ticket having room beside nobody.
-- Otherwise, if :waits is not null, it gets a ticket.  One sharer whose lease is
-- over goes with each that joins: so they do not pile up, and no list is made
-- anew.
--
-- F: what the row says.  S: of the sharers, what they have taken, and the first
-- that is over.  B: what the tickets before need.  T: what becomes of the
-- claim.  R: the queue, and the room for those in it who should look.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER, SHARERS)
  SELECT :key::char(36), :region::varchar, {group}, {date_of} F.us,
    {date_of} (F.us + :ttl::bigint), F.token, :name::varchar,
    {group} || ' shared', {new_group}
  FROM (SELECT {token_at_turn} AS token) AS T,
    LATERAL (SELECT {now_us} AS us, T.token, :permits::bigint AS permits) AS F
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER, QUEUE,
      SHARERS) =
    (SELECT CASE WHEN T.begins THEN {group} ELSE L.CLIENT_ID END,
      CASE WHEN T.begins THEN {date_of} F.us ELSE L.CREATED_DATE END,
      CASE WHEN T.begins THEN {date_of} (F.us + :ttl::bigint) WHEN T.has
        THEN greatest({date_of} (F.us + :ttl::bigint), L.EXPIRED_AFTER)
        ELSE L.EXPIRED_AFTER END,
      CASE WHEN T.joins THEN F.token ELSE L.FENCE END,
      CASE WHEN T.has THEN EXCLUDED.LOCK_NAME ELSE L.LOCK_NAME END,
      CASE WHEN {ring_sharers} THEN NULL
        WHEN T.begins THEN EXCLUDED.HOLDER ELSE L.HOLDER END,
      R.queue,
      CASE WHEN T.begins THEN {new_group}
        WHEN T.joins AND S.over > 0
        THEN left(left(L.SHARERS, S.over - 1) || substr(L.SHARERS, S.over +
            strpos(substr(L.SHARERS, S.over), '"],') + 2), -3) || {sharers_with}
        WHEN T.joins THEN left(L.SHARERS, -3) || {sharers_with}
        WHEN T.has THEN overlay(L.SHARERS PLACING (F.us + :ttl::bigint)::text
          FROM {at_share} + 40 FOR 16)
        ELSE L.SHARERS END
    FROM (SELECT {now_us} AS us, coalesce({is_shared}, false) AS is_shared,
        coalesce(L.CLIENT_ID = :client::varchar AND L.EXPIRED_AFTER >= {now},
          false) AS is_reserved,
        L.CLIENT_ID IS NULL OR L.EXPIRED_AFTER < {now} AS is_over,
        coalesce({others_wait}, false) AS waits, coalesce(
          strpos(L.QUEUE, '["' || :client::varchar), 0) AS at,
        {has_share} AS renews, greatest(L.FENCE + 1, {now_us}) AS token,
        {limit} AS permits) AS F,
      LATERAL (SELECT CASE F.permits WHEN 0 THEN 999999999 ELSE F.permits END
        AS most) AS M,
      LATERAL (SELECT coalesce(sum((e ->> 3)::bigint)
            FILTER (WHERE e ->> 1 >= F.us::text), 0) AS taken,
          count(*) FILTER (WHERE e ->> 1 >= F.us::text) AS sharers,
          strpos(L.SHARERS, '["' || coalesce(
            min(e ->> 0) FILTER (WHERE e ->> 0 = :client::varchar),
            min(e ->> 0) FILTER (WHERE e ->> 1 < F.us::text))) AS over
        FROM json_array_elements(CASE WHEN F.is_shared
          THEN L.SHARERS::json -> 's' END) AS J (e)) AS S,
      LATERAL (SELECT coalesce(sum({weight_of_ticket}), 0) AS needed
        FROM json_array_elements(CASE WHEN F.waits AND F.at > 0
          THEN (left(L.QUEUE, F.at - 1) || '0]}')::json -> 'q'
          WHEN F.waits THEN L.QUEUE::json -> 'q' END) AS J (e)
        WHERE e ->> 0 IS NOT NULL) AS B,
      LATERAL (SELECT
          S.sharers < 200 AND :weight::bigint <= M.most AS may_come,
          F.is_reserved OR (F.is_shared OR F.is_over) AND
            S.taken + B.needed + :weight::bigint <= M.most AS has_room) AS C,
      LATERAL (SELECT F.renews OR C.may_come AND C.has_room AS has,
          NOT F.renews AND C.may_come AND C.has_room AS joins,
          NOT F.renews AND C.may_come AND C.has_room AND NOT F.is_shared
            AS begins) AS T,
      LATERAL (SELECT CASE WHEN T.has AND NOT F.waits THEN NULL
          WHEN T.has AND F.at = 0 THEN L.QUEUE
          WHEN T.has THEN {queue_without}
          WHEN C.may_come AND :waits::bigint IS NOT NULL THEN {queue_with_share}
          ELSE L.QUEUE END AS queue,
        CASE WHEN T.begins
          THEN M.most - S.taken - :weight::bigint ELSE 0 END AS room) AS R)
  RETURNING CASE WHEN {has_share} THEN
      substr(L.SHARERS, {at_share} + 84, 19)::bigint END,
    QUEUE IS NOT NULL, L.xmax = 0,
    (extract(epoch FROM CASE WHEN CLIENT_ID IS NULL
      THEN CREATED_DATE ELSE EXPIRED_AFTER END - {now}) * 1000000)::bigint,
    coalesce(left(HOLDER, 36) = CLIENT_ID, CLIENT_ID IS NULL), CLIENT_ID, QUEUE,
    CASE WHEN {has_share} THEN left(SHARERS, 56) ELSE SHARERS END;
-- ---- define queue_without
-- The queue without the ticket of the claim.
CASE WHEN strpos(L.QUEUE, '"],[') > 0 THEN left(L.QUEUE, F.at - 1) ||
    substr(L.QUEUE, F.at + strpos(substr(L.QUEUE, F.at), '"],') + 2) END
-- ---- define queue_with_share
CASE WHEN {need_not_be_durable} <> 'off' THEN NULL
  WHEN F.waits AND F.at > 0
  THEN overlay(L.QUEUE PLACING {until}::text FROM F.at + 40 FOR 16)
  ELSE {queue_before} || {ticket_of_share} END
-- ---- define ticket_of_share
'["' || :client::varchar || '",' || {until} || ',' || {now_us} || ',"' ||
  lpad(:weight::bigint::text, 6, '0') || '","' || :shown::varchar || '"],0]}'

-- ---- renew share (sqlock) [may be lost]
-- Moves the end of a share that is not over.  Other sharers count only where
-- the row's end is later than the new one.
UPDATE INT_LOCK AS L
  SET (CREATED_DATE, EXPIRED_AFTER, SHARERS) =
    (SELECT least(CREATED_DATE, {now}), CASE
        WHEN L.EXPIRED_AFTER <= {date_of} (F.us + :ttl::bigint)
        THEN {date_of} (F.us + :ttl::bigint)
        ELSE {date_of} greatest(F.us + :ttl::bigint, (SELECT
            max((e ->> 1)::bigint)
          FROM json_array_elements(L.SHARERS::json -> 's') AS J (e)
          WHERE e ->> 0 <> :client::varchar)) END,
      overlay(L.SHARERS PLACING (F.us + :ttl::bigint)::text
        FROM {at_share} + 40 FOR 16)
    FROM (SELECT {now_us} AS us) AS F)
  WHERE {row} AND {has_share};

-- ---- define rest (sqlock)
-- F: now, and whether somebody waits, and to share.  S: of the other sharers,
-- the latest end, null if there are none, and what they have taken.
(SELECT {now_us} AS us, coalesce({is_waited_for}, false) AS waits,
    substr(L.QUEUE, 103, 6) <> '000000' AS to_share,
    CASE substr(L.SHARERS, 50, 6) WHEN '000000' THEN 999999999
      ELSE substr(L.SHARERS, 50, 6)::bigint END AS most) AS F,
  LATERAL (SELECT max((e ->> 1)::bigint) AS latest,
      coalesce(sum((e ->> 3)::bigint), 0) AS taken
    FROM json_array_elements(L.SHARERS::json -> 's') AS J (e)
    WHERE e ->> 0 <> :client::varchar AND e ->> 1 > F.us::text) AS S

-- ---- release share (sqlock) [may be lost]
-- Takes a sharer out, over or not.  The last one frees the row, or reserves it
-- for a second: for the first who waits, as release does, or, if that one waits
-- to share, for all who can share it, as a group that is still empty.
-- CREATED_DATE says since when those who wait could have come.
UPDATE INT_LOCK AS L
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, FENCE, HOLDER, QUEUE, SHARERS) =
    (SELECT CASE WHEN T.stays THEN L.CLIENT_ID
        WHEN F.waits THEN substr(L.QUEUE, 30, 36) END,
      CASE WHEN F.waits THEN {date_of} F.us
        ELSE least(L.CREATED_DATE, {date_of} F.us) END,
      CASE WHEN S.latest IS NOT NULL THEN {date_of} S.latest
        WHEN F.waits THEN {now} + interval '1 second'
        ELSE {now} - interval '18262 days 12 hours' END,
      CASE WHEN F.waits AND NOT T.stays THEN greatest(L.FENCE + 1, F.us)
        ELSE L.FENCE END,
      CASE WHEN {need_not_be_durable} <> 'off' THEN NULL
        WHEN T.stays THEN CASE WHEN {ring_sharers} THEN NULL ELSE L.HOLDER END
        WHEN F.waits THEN CASE WHEN {ring} THEN NULL ELSE {next_holder} END
        ELSE :client::varchar || ' ' || substr(L.SHARERS, {at_share} + 106,
          strpos(substr(L.SHARERS, {at_share} + 106), '"],') - 1) END,
      CASE WHEN T.stays THEN L.QUEUE
        WHEN F.waits AND strpos(QUEUE, '"],[') > 0
        THEN left(QUEUE, 27) || substr(QUEUE, strpos(QUEUE, '"],') + 3) END,
      CASE WHEN S.latest IS NOT NULL
        THEN left(L.SHARERS, {at_share} - 1) || substr(L.SHARERS, {at_share} +
          strpos(substr(L.SHARERS, {at_share}), '"],') + 2)
        WHEN T.stays OR substr(L.SHARERS, 50, 6) <> '000000'
        THEN left(L.SHARERS, 62) || '0]}' END
    FROM {rest},
      LATERAL (SELECT S.latest IS NOT NULL OR F.waits AND F.to_share AS stays)
        AS T,
      LATERAL (SELECT CASE WHEN F.waits THEN L.QUEUE END AS queue,
        F.most - S.taken AS room) AS R)
  WHERE {row} AND L.CLIENT_ID = substr(L.SHARERS, 7, 36) AND {at_share} > 0;

-- ---- break share (sqlock)
-- Takes the share from its sharer, but leaves its end as it is.
UPDATE INT_LOCK AS L
  SET FENCE = greatest(L.FENCE + 1, {now_us}), SHARERS = (
    SELECT left(L.SHARERS, F.at + 1) || :client::varchar ||
      substr(L.SHARERS, F.at + 38, 68) || :shown::varchar ||
      substr(L.SHARERS, F.at + strpos(substr(L.SHARERS, F.at), '"],') - 1)
    FROM (SELECT strpos(L.SHARERS, '["' || :old_client::varchar) AS at) AS F)
  WHERE {row} AND L.CLIENT_ID = substr(L.SHARERS, 7, 36) AND
    L.EXPIRED_AFTER >= {now} AND
    substr(L.SHARERS, strpos(L.SHARERS, '["' || :old_client::varchar) + 40, 16)
      >= {now_us}::text AND
    strpos(L.SHARERS, '["' || :old_client::varchar) > 0;

-- ---- downgrade (sqlock) [may be lost]
-- Makes the first sharer of the holder, with its token, and lets those join who
-- are first in the queue and wait to share.
UPDATE INT_LOCK AS L
  SET (CLIENT_ID, CREATED_DATE, EXPIRED_AFTER, HOLDER, SHARERS) =
    (SELECT {group}, least(L.CREATED_DATE, {now}),
      {date_of} (F.us + :ttl::bigint),
      CASE WHEN {ring_sharers} THEN NULL ELSE {group} || ' shared' END,
      {new_group}
    FROM (SELECT {now_us} AS us, L.FENCE AS token, 0 AS permits) AS F,
      LATERAL (SELECT CASE WHEN {is_waited_for} THEN L.QUEUE END AS queue,
        999999998 AS room) AS R)
  WHERE {row} AND L.CLIENT_ID = :client::varchar AND L.EXPIRED_AFTER >= {now} AND
    {permits_of_row} IS NULL;

-- ---- permits (sqlock)
-- Changes the limit of a lock, and lets those look who wait and have room.  The
-- limit that it has changes nothing: the trigger of upgrade-spring6.sql takes a
-- new CREATED_DATE alone for that of an old program.  Nor does that of a row
-- which a Spring service has, and deletes when it releases the lock.  The clock
-- is read before it is asked whether the lock is shared, which may just end.
UPDATE INT_LOCK AS L
  SET (CREATED_DATE, HOLDER, SHARERS) =
    (SELECT CASE WHEN R.queue IS NULL THEN L.CREATED_DATE ELSE F.now END,
      CASE WHEN {ring_sharers} THEN NULL ELSE L.HOLDER END,
      CASE WHEN {permits_of_row} IS NULL
        THEN '{"g":"00000000-0000-0000-0000-000000000000","n":"' || F.permits ||
          '","s":[0]}'
        ELSE overlay(L.SHARERS PLACING F.permits FROM 50 FOR 6) END
    FROM (SELECT lpad(:permits::bigint::text, 6, '0') AS permits, {now} AS now,
        {is_shared} AS is_shared) AS F,
      LATERAL (SELECT CASE WHEN {is_waited_for} AND F.is_shared AND
            {permits_of_row} <> :permits::bigint
          THEN L.QUEUE END AS queue,
        CASE :permits::bigint WHEN 0 THEN 999999999 ELSE :permits::bigint END -
          {taken} AS room) AS R)
  WHERE {row} AND (L.CLIENT_ID IS NULL OR L.EXPIRED_AFTER < {now} OR
    left(L.HOLDER, 36) = L.CLIENT_ID);

-- ---- define tells (sqlock queue)
-- Tells those who observe any leader of the database; void, not null.  A text
-- says whether its leader's process does that.
pg_notify('sqlock_leaders', '!' || L.LOCK_KEY)
-- ---- define tells (sqlock poll)
NULL
-- ---- define is_newer (sqlock)
-- A text that the lease has published later stays.
coalesce(left(L.LEADER, 36) <> :client::varchar OR
  substr(L.LEADER, 38, 16) <= :serial::varchar, true)

-- ---- publish (sqlock) [may be lost]
-- Writes the text of a leader, who has the lock alone (src/lease/leader_text.h).
-- It counts only under its CLIENT_ID, so nobody need take it away.
UPDATE INT_LOCK AS L
  SET LEADER = :client::varchar || ' ' || :serial::varchar ||
    CASE WHEN {tells} IS NULL THEN ' kept ' ELSE ' told ' END || :shown::varchar
  WHERE {row} AND L.CLIENT_ID = :client::varchar AND L.EXPIRED_AFTER >= {now} AND
    {is_newer};

-- ---- tell (sqlock queue) [not prepared, may be lost]
-- Tells those who observe the leader of the key.
SELECT pg_notify('sqlock_leaders', '!' || :key::varchar);

-- =========================================== many leases in one statement ====

-- ---- define items
-- :items is JSON.  The items are sorted here, so that rows are locked in the
-- order of their keys.
json_to_recordset(:items::json) AS J (k char(36), c char(36), t bigint,
  n varchar, h varchar)

-- ---- define born_items
-- Reads the clock for each item after the sort.
(SELECT J.k, J.c, J.t, J.n, J.h, {born} AS born FROM {items} ORDER BY J.k) AS J
-- ---- define born (sqlock spring6)
{now}
-- ---- define born (spring7 queue)
CASE WHEN {turn_of_item} IS NOT NULL THEN {now} END
-- ---- define born (spring7 poll)
{now}
-- ---- define turn_of_item (sqlock spring7 queue)
pg_advisory_xact_lock(hashtextextended(:region::varchar,
  hashbpchar(J.k)::bigint))
-- ---- define token_of_item (sqlock queue)
CASE WHEN {turn_of_item} IS NOT NULL THEN {now_us} END
-- ---- define token_of_item (sqlock poll)
{now_us}

-- ---- define end_of_item (sqlock spring7)
-- The difference is the TTL: both columns of EXCLUDED are computed from one
-- reading of the clock.
{now} + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)

-- ---- claim many (sqlock) [may be lost]
-- As claim, for each item.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER, FENCE, LOCK_NAME, HOLDER)
  SELECT J.k, :region::varchar, J.c, J.born,
    J.born + J.t * interval '1 microsecond', {token_of_item}, J.n, J.h
  FROM {born_items}
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, {claimed}, EXPIRED_AFTER = {end_of_item},
    {claimed_for}
  WHERE {may_take}
  RETURNING LOCK_KEY, FENCE, CLIENT_ID;
-- ---- claim many (spring7) [may be lost]
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
    EXPIRED_AFTER)
  SELECT J.k, :region::varchar, J.c, J.born,
    J.born + J.t * interval '1 microsecond'
  FROM {born_items}
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, {claimed}, EXPIRED_AFTER = {end_of_item}
  WHERE {may_take}
  RETURNING LOCK_KEY, {token}, CLIENT_ID;

-- ---- claim many (spring6) [may be lost]
-- Computes the dates before a wait for the row, but after it was sent, so the
-- holder does not rely on a lease for longer than the row says.
INSERT INTO INT_LOCK AS L (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  SELECT J.k, :region::varchar, J.c,
    J.born + (J.t - :peer_ttl) * interval '1 microsecond'
  FROM {born_items}
  ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
  SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = EXCLUDED.CREATED_DATE
  WHERE {may_take}
  RETURNING LOCK_KEY, {now_us}, CLIENT_ID;

-- ---- define sorted_items
-- The rows whose lease is an item's, looked up one by one by the primary key,
-- and locked in the order of keys.  In a plain join the planner would assume
-- that a table without statistics has one matching row, and compare each of a
-- thousand items with each row.  For the same reason {is_own_item} takes the
-- region from the row that was found.
(SELECT * FROM {items} ORDER BY k) AS J
-- ---- define row_of_item
(SELECT T.REGION FROM INT_LOCK AS T WHERE T.LOCK_KEY = J.k
  AND T.REGION = :region AND T.CLIENT_ID = J.c
-- ---- define is_own_item
T.LOCK_KEY = J.k AND T.REGION = J.r AND T.CLIENT_ID = J.c
-- ---- define item_ends (sqlock spring7)
T.EXPIRED_AFTER
-- ---- define item_ends (spring6)
(T.CREATED_DATE + (CASE WHEN substr(T.CLIENT_ID, 15, 1) = '8' AND
  substr(T.CLIENT_ID, 28) ~ '^[0-9]+$' THEN substr(T.CLIENT_ID, 28)::bigint *
  1000 ELSE :peer_ttl::bigint END) * interval '1 microsecond')
-- ---- define renewed_item (sqlock)
CREATED_DATE = least(CREATED_DATE, {now}),
EXPIRED_AFTER = {now} + J.t * interval '1 microsecond'
-- ---- define renewed_item (spring7)
EXPIRED_AFTER = {now} + J.t * interval '1 microsecond'
-- ---- define renewed_item (spring6)
CREATED_DATE = {now} + (J.t - {ttl_of_row}) * interval '1 microsecond'

-- ---- renew many [not prepared, may be lost]
-- As renew, for each item.  Passes over rows that another session has locked.
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, T.REGION AS r
    FROM {sorted_items}, LATERAL {row_of_item} AND {item_ends} >= {now}
    FOR NO KEY UPDATE SKIP LOCKED) AS T)
  UPDATE INT_LOCK AS T
  SET {renewed_item}
  FROM J
  WHERE {is_own_item} AND {item_ends} >= {now}
  RETURNING J.k, {now_us};

-- ---- release many [not prepared, may be lost]
-- As release, for each item.
WITH J AS MATERIALIZED (SELECT J.k, J.c, J.t, T.REGION AS r
    FROM {sorted_items}, LATERAL {row_of_item} FOR NO KEY UPDATE) AS T)
  {release_items}
  WHERE {is_own_item}
  RETURNING CASE WHEN {need_not_be_durable} = 'off' THEN J.k END;
-- ---- define release_items (sqlock)
UPDATE INT_LOCK AS T
  SET HOLDER = CASE WHEN {is_waited_for}
    THEN CASE WHEN {ring} THEN NULL ELSE {next_holder} END ELSE HOLDER END,
    {passed_on}, {token_passed_on}
  FROM J
-- ---- define release_items (spring7 spring6)
DELETE FROM INT_LOCK AS T USING J

-- ---- claim unqueued many (sqlock) [may be lost]
-- As claim unqueued, for each item.  Rows that another session has locked, and
-- keys that it is claiming, are passed over, as is a row that has changed since
-- the statement began.  A ctid is that of one partition.
WITH R AS MATERIALIZED (SELECT T.at, T.part, J.c, J.t, J.n, J.h
    FROM {sorted_items}, LATERAL (SELECT L.ctid AS at, L.tableoid AS part
      FROM INT_LOCK AS L
      WHERE L.LOCK_KEY = J.k AND L.REGION = :region AND L.QUEUE IS NULL AND
        (L.CLIENT_ID IS NULL OR L.EXPIRED_AFTER < {now}) {if_in_turn}
      FOR NO KEY UPDATE SKIP LOCKED) AS T)
  UPDATE INT_LOCK AS L
  SET CLIENT_ID = R.c, CREATED_DATE = {now},
    EXPIRED_AFTER = {now} + R.t * interval '1 microsecond', {higher_token},
    LOCK_NAME = R.n, HOLDER = R.h
  FROM R
  WHERE L.ctid = R.at AND L.tableoid = R.part
  RETURNING L.LOCK_KEY, L.FENCE;
-- ---- define if_in_turn (sqlock queue)
AND pg_try_advisory_xact_lock(hashtextextended(:region::varchar,
  hashbpchar(J.k)::bigint))
-- ---- define if_in_turn (sqlock poll)

-- ---- release unqueued many (sqlock) [may be lost]
-- As release unqueued, for each item.
WITH R AS MATERIALIZED (SELECT T.at, T.part
    FROM {sorted_items}, LATERAL (SELECT L.ctid AS at, L.tableoid AS part
      FROM INT_LOCK AS L
      WHERE L.LOCK_KEY = J.k AND L.REGION = :region AND L.CLIENT_ID = J.c AND
        L.QUEUE IS NULL
      FOR NO KEY UPDATE SKIP LOCKED) AS T)
  UPDATE INT_LOCK AS L
  SET HOLDER = CASE WHEN {need_not_be_durable} = 'off' THEN HOLDER END,
    CLIENT_ID = NULL, {freed}
  FROM R
  WHERE L.ctid = R.at AND L.tableoid = R.part
  RETURNING L.LOCK_KEY;

-- ---- read many [not prepared, reads]
-- As read, for each item, with the key that it has, which may be another
-- spelling of the row's.  OFFSET keeps the planner from a plain join
-- ({sorted_items}).
SELECT J.k, T.*
  FROM {items}, LATERAL (SELECT {info_of_row} FROM INT_LOCK
    WHERE LOCK_KEY = J.k AND REGION = :region OFFSET 0) AS T;

-- ================================================================ reading ====

-- ---- define info
-- The columns tell all that is known of a row.  Lists spent much of their time
-- on arithmetic with the numerics of extract().  The doubles of date_part()
-- give the same microseconds until the year 2041; a token must be exact.
LOCK_KEY, {info_of_row}
-- ---- define info_of_row
CLIENT_ID, {token},
CASE WHEN CLIENT_ID IS NULL THEN least(-1, {remaining}) ELSE {remaining} END,
{created}, {expires}, {names}
-- ---- define remaining
(date_part('epoch', {last_end} - {now}) * 1000000)::bigint
-- ---- define created
(date_part('epoch', CREATED_DATE) * 1000000)::bigint
-- ---- define expires
(date_part('epoch', {last_end}) * 1000000)::bigint
-- ---- define token (sqlock)
FENCE
-- ---- define token (spring7)
(extract(epoch FROM CREATED_DATE) * 1000000)::bigint
-- ---- define token (spring6)
NULL::bigint
-- ---- define names (sqlock)
LOCK_NAME, HOLDER, QUEUE, SHARERS, LEADER
-- ---- define names (spring7 spring6)
NULL, NULL, NULL, NULL, NULL

-- ---- waits (sqlock) [not prepared, reads]
-- Reads who waits for whom, to find circles.
SELECT CLIENT_ID, QUEUE, SHARERS, {now_us}
  FROM INT_LOCK
  WHERE REGION = :region AND QUEUE IS NOT NULL AND CLIENT_ID IS NOT NULL AND
    {ends} > {now};

-- ---- read [reads]
-- Reads a row without locking it.
SELECT {info}
  FROM INT_LOCK
  WHERE {row};

-- ---- define is_sought
REGION = coalesce(:region::varchar, REGION) AND
(:region::varchar IS NOT NULL OR REGION NOT LIKE '%#tx') AND
(:with_free::bigint <> 0 OR CLIENT_ID IS NOT NULL) AND
(:pattern::varchar IS NULL OR {shown_name} LIKE :pattern::varchar ESCAPE '!')
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
  ORDER BY CASE WHEN :order::varchar = 'held' THEN {held_since} END,
    CASE WHEN :order::varchar = 'ttl' THEN {expires} END,
    CASE WHEN :order::varchar = 'token' THEN -{token} END,
    {shown_name} COLLATE "C", REGION COLLATE "C"
  LIMIT :limit;

-- ---- define held_since (sqlock)
-- A shared lock is held since the sharer came who has it for longest.  A row
-- that Spring has taken over keeps the date of its last holder.
CASE WHEN CLIENT_ID = substr(SHARERS, 7, 36) THEN coalesce((
    SELECT min((e ->> 2)::bigint)
    FROM json_array_elements(SHARERS::json -> 's') AS J (e)
    WHERE e ->> 1 >= {now_us}::text), {created})
  WHEN CLIENT_ID IS NULL OR SUBSTR(HOLDER, 1, 36) = CLIENT_ID OR
  (HOLDER IS NULL AND FENCE = 0)
  THEN {created} ELSE 9000000000000000000 END
-- ---- define held_since (spring7 spring6)
{created}

-- ---- find begin [not prepared]
-- Begins to read all that find would find, through a cursor and not by key: no
-- row that moves meanwhile is missed or returned twice.
DECLARE sqlock_find NO SCROLL CURSOR FOR
  SELECT {info}, REGION
  FROM INT_LOCK
  WHERE {is_sought};

-- ---- find page [not prepared, reads]
-- Reads all that find would find, page by page.
FETCH FORWARD 5000 FROM sqlock_find;

-- =========================================== breaking, reaping, restoring ====

-- ---- break (sqlock)
-- Takes the lease from its holder, but leaves its end as it is: nobody can
-- claim the lock before, so the holder has time to notice.
UPDATE INT_LOCK
  SET CLIENT_ID = :client, HOLDER = :holder, {higher_token}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- break (spring7)
UPDATE INT_LOCK
  SET CLIENT_ID = :client, {higher_token}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- break (spring6)
UPDATE INT_LOCK
  SET CLIENT_ID = :client
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};

-- ---- break now (sqlock)
-- Takes the lease from its holder, and frees the lock at once.
UPDATE INT_LOCK
  SET HOLDER = CASE WHEN {is_waited_for}
    THEN CASE WHEN {ring} THEN NULL ELSE {next_holder} END ELSE :holder END,
    {passed_on}, {higher_token}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- break now (spring7 spring6)
DELETE FROM INT_LOCK
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};

-- ---- reap bound [reads]
-- Finds the end of the next range to reap, so that no DELETE is a long one.
-- The reaper goes from page to page, and its bounds are page numbers: in the
-- order of keys, nearly each row would be on another page, to be read and
-- written for that row.  A page has about 32 rows.  The table may be
-- partitioned: then its largest partition counts.
SELECT CASE WHEN P.first < P.pages
    THEN least(P.first + :limit::bigint / 32 + 1, P.pages)::text END
  FROM (SELECT coalesce(nullif(:after::text, ''), '0')::bigint AS first,
    coalesce((SELECT max(pg_relation_size(T.relid) /
        current_setting('block_size')::bigint)
      FROM pg_partition_tree('INT_LOCK'::regclass) AS T),
      pg_relation_size('INT_LOCK'::regclass) /
        current_setting('block_size')::bigint) AS pages) AS P;

-- ---- reap
-- Deletes rows that were freed, or whose lease ended, long ago.  The row is
-- what keeps the token rising: so only rows go whose token lies below the
-- clock, where the next one will be.  Other statements lock rows in the order
-- of keys, so the reaper must not wait for a row lock.  The condition is
-- tested twice, since in a partitioned table a ctid alone does not identify a
-- row.
DELETE FROM INT_LOCK
  WHERE REGION = :region AND {is_old} AND ctid = ANY (ARRAY(SELECT ctid
    FROM INT_LOCK WHERE {is_in_range} AND {is_old} FOR UPDATE SKIP LOCKED));
-- ---- define is_in_range
ctid >= ('(' || coalesce(nullif(:after::text, ''), '0') || ',0)')::tid AND
ctid < ('(' || coalesce(nullif(:until::text, ''), '0') || ',0)')::tid AND
REGION = :region
-- ---- define ended_long_ago
{last_end} < {now} - :age * interval '1 microsecond'
-- ---- define is_old (sqlock)
-- A row with tickets stays a day longer: a clock may have stepped.
{ended_long_ago} AND FENCE < {now_us} - :age AND
(({is_waited_for}) IS NOT TRUE OR {last_end} < {now} - interval '1 day')
-- ---- define is_old (spring7)
{ended_long_ago} AND CREATED_DATE < {now} - :age * interval '1 microsecond'
-- ---- define is_old (spring6)
{ended_long_ago}

-- ---- after restore (sqlock) [not prepared]
-- Frees every row after the table was restored from a backup, with a token
-- above those that were given since.  Sent in a transaction of its own.
UPDATE INT_LOCK
  SET CLIENT_ID = NULL, HOLDER = NULL, {freed}, {higher_token}, QUEUE = NULL;
-- ---- after restore (spring7 spring6) [not prepared]
DELETE FROM INT_LOCK;

-- ======================================= in the application's transaction ====

-- ---- name seed (sqlock)
-- The row of a name that a transaction locks, in the region "<region>#tx".
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER, LOCK_NAME)
  VALUES (:key, :region, {now}, {now}, :name)
  ON CONFLICT (LOCK_KEY, REGION) DO NOTHING;
-- ---- name seed (spring7)
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER)
  VALUES (:key, :region, {now}, {now})
  ON CONFLICT (LOCK_KEY, REGION) DO NOTHING;
-- ---- name seed (spring6)
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE)
  VALUES (:key, :region, {now})
  ON CONFLICT (LOCK_KEY, REGION) DO NOTHING;

-- ---- name lock [never waits]
-- Locks the row of a name until the end of the transaction, if it is free.
SELECT LOCK_KEY FROM INT_LOCK WHERE {row} FOR UPDATE SKIP LOCKED;

-- ---- name wait
-- As name lock, but waits for the row.
SELECT LOCK_KEY FROM INT_LOCK WHERE {row} FOR UPDATE;

-- ---- name look
-- Finds out whether the row of a name is there, though it may be locked.
SELECT LOCK_KEY FROM INT_LOCK WHERE {row};

-- ---- name reap [not prepared]
-- Deletes rows of names, and accounts that ended, which are older than that, but
-- none that is locked.
DELETE FROM INT_LOCK
  WHERE REGION = :region AND {is_old_name} AND ctid = ANY (ARRAY(SELECT ctid
    FROM INT_LOCK WHERE {is_in_range} AND {is_old_name}
    FOR UPDATE SKIP LOCKED));
-- ---- define is_old_name (sqlock)
-- A row with a CLIENT_ID is an account of Spring services (src/lock/README.md).
CREATED_DATE < {now} - :age * interval '1 microsecond' AND
(CLIENT_ID IS NULL OR {ends} < {now} - :age * interval '1 microsecond')
-- ---- define is_old_name (spring7 spring6)
CLIENT_ID IS NULL AND CREATED_DATE < {now} - :age * interval '1 microsecond'

-- ---- define has_token (sqlock)
AND FENCE = :token
-- ---- define has_token (spring7 spring6)

-- ---- tx guard [never waits]
-- Locks the row of a lease until the end of the transaction, so that nobody can
-- take it over before, and says whether it is over.
SELECT {ends} >= {now}
  FROM INT_LOCK
  WHERE {row} AND CLIENT_ID = :client {has_token}
  FOR SHARE SKIP LOCKED;

-- ---- tx assert
-- Divides by 0 if there is no such row.
SELECT 1 / count(*)
  FROM (SELECT 1 FROM INT_LOCK WHERE {row} AND CLIENT_ID = :client {has_token}
    FOR SHARE SKIP LOCKED) AS guarded;

-- ---- guard
-- For other programs: `sqlock guard-sql` prints it.  The cast fails, and its
-- error shows the text; it depends on the number of rows found, so that it is
-- not evaluated before.
SELECT CASE count(*) WHEN 1 THEN 1
    ELSE CAST('sqlock: the lease is over, rows: ' || count(*) AS integer) END
    AS GUARDED
  FROM (SELECT 1 FROM INT_LOCK
    WHERE {row} AND CLIENT_ID = :client {has_token} AND {ends} >= {now}
    FOR SHARE) AS LEASE;

-- ---- identity [not prepared]
-- Says which database this is: two sessions with the same answer find the same
-- table.  The oid distinguishes tables of one name in different schemas of the
-- search path.
SELECT concat_ws(' ', current_database(),
  (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
  to_regclass('INT_LOCK')::oid);

-- ---- isolation [not prepared]
-- Says whether a statement sees what others have committed, or the transaction
-- has a snapshot.
SHOW transaction_isolation;

-- ======================================================= run-once records ====

-- ---- once read [not prepared]
-- Reads who has done it.
SELECT CLIENT_ID FROM INT_DONE WHERE {row};

-- ---- once record [not prepared]
-- Records that it is done, under a guarded lease.
INSERT INTO INT_DONE (LOCK_KEY, REGION, CLIENT_ID, FENCE, LOCK_NAME)
  VALUES (:key, :region, :client, :token, :name);

-- ---- once list [not prepared]
-- Reads one record, or all of a region.
SELECT LOCK_KEY, CLIENT_ID, FENCE,
    (extract(epoch FROM DONE_DATE) * 1000000)::bigint, LOCK_NAME
  FROM INT_DONE
  WHERE REGION = :region::varchar AND
    (:key::varchar IS NULL OR LOCK_KEY = :key::varchar)
  ORDER BY coalesce(LOCK_NAME, LOCK_KEY);

-- ---- once forget [not prepared]
-- Deletes a record, so that it is done again.
DELETE FROM INT_DONE WHERE {row};

-- ============================================================= the server ====

-- ---- server
-- Says whether the server takes writes, its clock, and its version.
SELECT {read_only}, {now_us},
  'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1);
-- ---- define read_only
CASE WHEN pg_is_in_recovery() OR
  current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 END

-- ---- define epoch (sqlock)
-- As the driver reads it: another one after a promotion, and on another server.
((SELECT system_identifier FROM pg_control_system()) || '/' ||
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))

-- ---- define here (sqlock)
-- Where a mark was made: a dump and a copy of the data take it along.
({epoch} || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
  || '/' || 'INT_LOCK_MARK'::regclass::oid)

-- ---- mark (sqlock) [not prepared]
-- Notes, in a table that a crash empties, that leases may be forgotten in one.
INSERT INTO INT_LOCK_MARK AS M (ID, EPOCH, MARK) VALUES (1, {here}, {now_us})
  ON CONFLICT (ID) DO UPDATE SET EPOCH = EXCLUDED.EPOCH, MARK = EXCLUDED.MARK
  WHERE M.EPOCH <> EXCLUDED.EPOCH;

-- ---- grace (sqlock) [not prepared]
-- Reads whether the server may grant leases.  The epoch ends with the mark, if one
-- was made since the last crash.
SELECT {epoch} || coalesce(' ' ||
      (SELECT M.MARK FROM INT_LOCK_MARK AS M WHERE M.EPOCH = {here}), ''), EPOCH,
    (extract(epoch FROM GRANTS_FROM - {now}) * 1000000)::bigint, LONGEST_MS,
    least(LONGEST_MS, ALLOWED_MS), (extract(epoch FROM SINCE) * 1000000)::bigint
  FROM INT_LOCK_SERVER;

-- ---- begin grace (sqlock) [not prepared]
-- Notes that the data have another history.  The row that nobody has written yet is
-- as old as the table, which is empty then.  Before the first mark nothing can have
-- been forgotten.  The leases of the grace before are over by then, too: LONGEST_MS
-- is not lowered in one; and the clock by which it was to end may have been ahead.  A
-- row that says something else by now stays: it may have a mark that was not there
-- when it was read.  SINCE rises with each but a first mark, whatever the clocks say.
UPDATE INT_LOCK_SERVER AS S
  SET GRANTS_FROM = CASE
      WHEN coalesce(S.EPOCH = split_part(:name::varchar, ' ', 1), true)
      THEN GRANTS_FROM ELSE {now} + LONGEST_MS * interval '1 millisecond' END,
    SINCE = CASE WHEN S.EPOCH = split_part(:name::varchar, ' ', 1) THEN SINCE
      ELSE greatest({now}, SINCE + interval '1 microsecond') END,
    EPOCH = :name, NOTE = NULL
  WHERE S.EPOCH IS NOT DISTINCT FROM :old_epoch::varchar;

-- ---- lengthen grace (sqlock) [not prepared]
-- Lets a grace last for a lease of that length from now on.
UPDATE INT_LOCK_SERVER
  SET LONGEST_MS = greatest(LONGEST_MS, (:ttl::bigint + 999) / 1000),
    CHANGED = {now};

-- ---- allow grace (sqlock) [not prepared]
-- Lets leases be as long: the standbys know of it.
UPDATE INT_LOCK_SERVER
  SET ALLOWED_MS = greatest(ALLOWED_MS, (:ttl::bigint + 999) / 1000),
    CHANGED = {now}
  WHERE LONGEST_MS >= (:ttl::bigint + 999) / 1000;

-- ---- define flushed (sqlock)
-- The position up to which the server has its log on disk; null on a standby, where
-- the function is an error.
(CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn() END)

-- ---- standbys (sqlock) [not prepared, reads]
-- Reads how many connected standbys lack what the server had written to its disk
-- at the position :name, or at the present one, and of how many this login may not
-- see that.  A subscriber is no standby, nor is what only receives the log, which
-- replays nothing.  On a standby it is the next statement that fails.
SELECT least(LONGEST_MS, ALLOWED_MS), {flushed}::text,
    (SELECT count(*) FROM pg_stat_replication WHERE state IS NULL),
    (SELECT count(*) FROM pg_stat_replication AS R
      WHERE coalesce(R.state, 'backup') <> 'backup' AND
        coalesce(R.flush_lsn < coalesce(:name::pg_lsn, {flushed}), true) AND
        NOT (R.state = 'streaming' AND R.replay_lsn IS NULL AND
          R.backend_start < clock_timestamp() - interval '10 s') AND
        NOT EXISTS (SELECT FROM pg_replication_slots AS L
          WHERE L.active_pid = R.pid AND L.slot_type = 'logical'))
  FROM INT_LOCK_SERVER;

-- ---- least grace (sqlock) [not prepared]
-- Notes how short a grace may become again.
UPDATE INT_LOCK_SERVER
  SET LEAST_MS = (:ttl::bigint + 999) / 1000;

-- ---- longer (sqlock) [not prepared, reads]
-- Returns a row if there is a lease that may last longer than the shortest grace.
-- A row tells what is left of its lease, which is renewed when a quarter is over, or
-- somewhat later.
SELECT 1
  FROM INT_LOCK_SERVER AS S
  WHERE EXISTS (SELECT FROM INT_LOCK AS L WHERE L.CLIENT_ID IS NOT NULL AND
    L.EXPIRED_AFTER > {now} + S.LEAST_MS * interval '0.7 milliseconds');

-- ---- shorten grace (sqlock) [not prepared]
-- Lets no lease be as long any more; and, once each process must have noticed that,
-- no grace, but not while there is one.
UPDATE INT_LOCK_SERVER
  SET LONGEST_MS = CASE WHEN ALLOWED_MS > LEAST_MS THEN LONGEST_MS
      ELSE LEAST_MS END,
    ALLOWED_MS = least(ALLOWED_MS, LEAST_MS), CHANGED = {now}
  WHERE GRANTS_FROM <= {now} AND (ALLOWED_MS > LEAST_MS OR
    (LONGEST_MS > LEAST_MS AND CHANGED < {now} - interval '5 minutes'));

-- ---- end grace (sqlock) [not prepared]
-- Ends it at once, and keeps who has done so, and why.
UPDATE INT_LOCK_SERVER
  SET GRANTS_FROM = {now}, NOTE = :holder
  WHERE GRANTS_FROM > {now};

-- ---- describe
-- Reads the columns of a table, and what makes it unfit for locks.  A name
-- without a schema means the first table of that name in the search path, as in
-- every statement.  A primary key counts only as far as ON CONFLICT can use
-- it.  INSERT cannot return xmax, as a claim in sqlock's layout does, of a
-- partitioned table.  With
-- quote_all_identifiers, some names of types are quoted.  The last cells are of
-- the server and the login: who opens a table asks only this.
SELECT upper(A.attname),
    replace(format_type(A.atttypid, A.atttypmod), '"', ''),
    CASE WHEN A.attnotnull THEN 0 ELSE 1 END,
    coalesce((SELECT K.place
      FROM pg_index AS I,
        unnest(I.indkey::int2[]) WITH ORDINALITY AS K (attnum, place)
      WHERE I.indrelid = C.oid AND I.indisprimary AND I.indimmediate AND
        I.indisvalid AND K.attnum = A.attnum AND K.place <= I.indnkeyatts), 0),
    CASE WHEN C.relkind = 'v' THEN 'a view'
      WHEN C.relkind = 'm' THEN 'a materialized view'
      WHEN C.relkind = 'f' THEN 'a foreign table'
      WHEN C.relkind NOT IN ('r', 'p') THEN 'no table'
      WHEN C.relpersistence = 'u' THEN 'an unlogged table'
      WHEN C.relpersistence = 't' THEN 'a temporary table'
      WHEN C.relispartition THEN 'a partition of another table'
      WHEN EXISTS (SELECT FROM pg_rewrite AS W WHERE W.ev_class = C.oid)
        THEN 'a table with rules'
      WHEN C.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits AS H
          WHERE H.inhparent = C.oid)
        THEN 'a table from which another one inherits'
      WHEN C.relkind = 'p' AND EXISTS (SELECT FROM pg_attribute AS F
          WHERE F.attrelid = C.oid AND F.attname = 'fence')
        THEN 'a partitioned table' END,
    CASE WHEN format_type(A.atttypid, NULL) LIKE '%citext%' THEN 'citext'
      ELSE (SELECT O.collname::text FROM pg_collation AS O
        WHERE O.oid = A.attcollation AND NOT O.collisdeterministic) END,
    N.nspname::text, {read_only},
    CASE WHEN NOT has_schema_privilege(N.oid, 'USAGE') OR
        NOT has_column_privilege(C.oid, A.attnum, 'SELECT') THEN 0
      WHEN has_column_privilege(C.oid, A.attnum, 'UPDATE') THEN 2 ELSE 1 END,
    (SELECT CASE WHEN NOT has_table_privilege(S.oid, 'SELECT') THEN 0
        WHEN has_table_privilege(S.oid, 'UPDATE') THEN 2 ELSE 1 END
      FROM pg_class AS S
      WHERE S.relname = left(C.relname, 56) || '_server' AND
        S.relnamespace = C.relnamespace AND S.relkind = 'r' AND
        has_schema_privilege(N.oid, 'USAGE'))
  FROM pg_class AS C
  JOIN pg_namespace AS N ON N.oid = C.relnamespace
  JOIN pg_attribute AS A ON A.attrelid = C.oid
  WHERE C.relname = :table::name AND A.attnum > 0 AND NOT A.attisdropped AND
    CASE WHEN :schema::name IS NULL THEN pg_table_is_visible(C.oid)
      ELSE N.nspname = :schema::name END
  ORDER BY A.attnum;

-- ---- place [not prepared]
-- Tells the database, and which tables of the name this session does not find,
-- since they are not the first in its search path; other roles, and sessions with
-- other settings, may.
SELECT 'the database ' || current_database(),
    (SELECT string_agg(N.nspname || '.' || C.relname, ', ' ORDER BY N.nspname)
      FROM pg_catalog.pg_class AS C
      JOIN pg_catalog.pg_namespace AS N ON N.oid = C.relnamespace
      WHERE C.relname = :table::name AND C.relkind IN ('r', 'p') AND
        :schema::name IS NULL AND NOT pg_catalog.pg_table_is_visible(C.oid) AND
        has_schema_privilege(N.oid, 'USAGE') AND
        has_table_privilege(C.oid, 'SELECT'));

-- ---- has age index [not prepared]
-- Old orders of stock are read by it; tables of earlier versions have none.
SELECT 1
  FROM pg_catalog.pg_index I
  JOIN pg_catalog.pg_class C ON C.oid = I.indrelid
  JOIN pg_catalog.pg_attribute A ON A.attrelid = C.oid AND
    A.attnum = I.indkey[0] AND A.attname = 'created_at'
  WHERE I.indisvalid AND C.relname = :table::varchar AND
    CASE WHEN :schema::varchar IS NULL THEN
      pg_catalog.pg_table_is_visible(C.oid)
      ELSE C.relnamespace = (SELECT N.oid FROM pg_catalog.pg_namespace N
        WHERE N.nspname = :schema::varchar) END
  LIMIT 1;

-- ---- define is_of_sharer (sqlock)
-- A session of a lease that shares the lock now, by its token.
EXISTS (SELECT FROM INT_LOCK L, json_array_elements(CASE WHEN {is_shared}
      THEN L.SHARERS::json -> 's' END) AS J (e)
    WHERE {row} AND
      e ->> 4 = lpad(split_part(a.application_name, ':', 3), 19, '0') AND
      e ->> 1 >= {now_us}::text)
-- ---- define is_of_sharer (spring7 spring6)
false

-- ---- stale sessions [not prepared]
-- Sessions with a name that begins so, which are in a transaction or a
-- statement, and are not of those who share the lock with the caller: the
-- state of other roles' sessions is hidden, but the locks show which of them
-- are in a transaction.
SELECT count(*) FILTER (WHERE
      a.datid = (SELECT oid FROM pg_database
        WHERE datname = current_database()) AND
      EXISTS (SELECT FROM pg_lock_status() l WHERE l.pid = a.pid AND
        l.locktype = 'virtualxid' AND l.granted AND l.mode = 'ExclusiveLock')
      AND NOT {is_of_sharer})
  FROM pg_stat_get_activity(NULL) a
  WHERE starts_with(a.application_name, :tag_prefix) AND
    a.application_name <> :tag;

-- ---- tagged sessions [not prepared]
-- A command that starts waits for the answer, which hardly ever is another than
-- none.  To plan what `stale sessions` looks at takes a new session four times
-- as long, and the view pg_stat_activity longer still.
SELECT count(*)
  FROM pg_stat_get_activity(NULL) a
  WHERE starts_with(a.application_name, :tag_prefix) AND
    a.application_name <> :tag;
