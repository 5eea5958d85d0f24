-- Statements that sqlock sends to MySQL and MariaDB about its tables INT_LOCK
-- and INT_DONE.  The library is built from this file.  In the sources,
-- sql/README.md says how to change it, and src/db/dialect.h what each statement
-- must return.
--
-- How to read it.  "-- ---- NAME" begins a statement, and "-- ---- define NAME"
-- a fragment, which stands in statements as {NAME}.  (sqlock), (spring7) and
-- (spring6) are the layouts of the table, (queue) and (poll) the ways to wait,
-- poll being that of URLs with waiting=poll; without them it is for all.  :name
-- is a parameter, and INT_LOCK stands for the table that a registry has found.
--
-- The SQL is what both servers understand, except in comments that only one of
-- them executes.  So RETURNING is only in such comments; and an INSERT has no
-- alias for its new row, and repeats a parameter instead of VALUES(column),
-- which MySQL is about to drop.
--
-- "Now" is the start of the statement, whatever the time zone of the session.
-- The token is computed from the same value, not from UNIX_TIMESTAMP.

-- ---- parameters are ?

-- ---- define now
UTC_TIMESTAMP(6)
-- ---- define epoch
TIMESTAMP'1970-01-01 00:00:00'
-- ---- define now_us
TIMESTAMPDIFF(MICROSECOND, {epoch}, {now})

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
(CREATED_DATE + INTERVAL {ttl_of_row} MICROSECOND)
-- ---- define ttl_of_row (spring6)
CASE WHEN SUBSTR(CLIENT_ID, 15, 1) = '8' AND
  SUBSTR(CLIENT_ID, 28) REGEXP '^[0-9]+$'
  THEN CAST(SUBSTR(CLIENT_ID, 28) AS SIGNED) * 1000 ELSE :peer_ttl END

-- ---- define waited
-- For how long the statement has waited by now, in us.  A claim or a renewal that
-- was given up while it waited, at the gate or in Galera for a row that other nodes
-- write, may come after its own repetition: so the end of a lease is counted from
-- when it is written, or that of the repetition would become an earlier one.
TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))
-- ---- define new_end (sqlock spring7)
-- The end of a lease that begins now, and of one that is renewed.
TIMESTAMPADD(MICROSECOND, :ttl + {waited}, {now})
-- ---- define new_end (spring6)
TIMESTAMPADD(MICROSECOND, :ttl + {waited} - :peer_ttl, {now})
-- ---- define renewed (sqlock spring7)
EXPIRED_AFTER = {new_end}
-- ---- define renewed (spring6)
CREATED_DATE = TIMESTAMPADD(MICROSECOND, :ttl + {waited} - {ttl_of_row}, {now})

-- ---- define is_over (sqlock)
-- MySQL executes assignments from left to right, and each one sees the values
-- assigned before it.  So in a claim only the first one tests whether the old
-- lease is over: it sets LAST_INSERT_ID(token), which the later ones test, 0
-- where the claim finds the lock busy and changes nothing.  The token is
-- returned as the insert id.  The claims of Spring's layouts test it again in
-- each assignment but those after CLIENT_ID, which test only whether that is
-- ours now; the column that decides expiry is last.
--
-- QUEUE says who waits, in order (src/lease/ticket.h).  Nobody overtakes those
-- who wait: a row without a holder is for the first of them; unless it has been
-- over for as long as a ticket lasts: who is alive would have looked at it.
((CLIENT_ID IS NULL OR {ends} < {now}) AND (NOT {is_waited_for} OR
  {now} > {free_since} + INTERVAL 70 SECOND))
-- ---- define free_since (sqlock)
-- Since when a row that is over is anybody's: its end; or CREATED_DATE, where a
-- release has put the end far back.
IF(CLIENT_ID IS NULL, greatest(CREATED_DATE, {ends}), {ends})
-- ---- define is_over (spring7 spring6)
(CLIENT_ID IS NULL OR {ends} < {now})
-- ---- define is_waited_for (sqlock)
-- No time counts: a clock that steps changes nobody's place.  A text that is no
-- queue is nobody's.
(QUEUE IS NOT NULL AND QUEUE LIKE '{"e":________________,"q":[["%' AND
  LOCATE('"],', QUEUE) BETWEEN 112 AND 330)

-- ---- define token_is_now (spring7)
-- On the layout of Spring 7, CREATED_DATE is the token, as a date.  That of
-- Spring 6 keeps no token, and CREATED_DATE decides expiry: so the insert id is
-- set with CLIENT_ID, in a comparison that always holds.
TIMESTAMPADD(MICROSECOND, LAST_INSERT_ID({now_us}), {epoch})
-- ---- define token_stays (spring7)
TIMESTAMPADD(MICROSECOND,
  LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, {epoch}, CREATED_DATE)), {epoch})
-- ---- define token_is_set (spring6)
LAST_INSERT_ID({now_us}) > 0

-- ---- claim (sqlock) [insert id and flag]
-- Takes the lock in one statement, whether there is a row or not; a new
-- one gets :queue, the tickets that a Spring service has deleted with the row.
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER,
    FENCE, LOCK_NAME, HOLDER, QUEUE)
  VALUES (:key, :region, :client, {now}, {new_end}, LAST_INSERT_ID({now_us}),
    :name, :holder, :queue)
  ON DUPLICATE KEY UPDATE
    FENCE = CASE WHEN {is_over}
      THEN LAST_INSERT_ID(greatest(FENCE + 1, {now_us}))
      WHEN CLIENT_ID = :client
      THEN LAST_INSERT_ID(
        IF({ends} < {now}, greatest(FENCE + 1, {now_us}), FENCE))
      ELSE FENCE + LAST_INSERT_ID(0) END,
    CREATED_DATE = CASE WHEN LAST_INSERT_ID() = 0 THEN CREATED_DATE
      WHEN CLIENT_ID = :client AND {ends} >= {now}
      THEN least(CREATED_DATE, {now}) ELSE {now} END,
    CLIENT_ID = IF(LAST_INSERT_ID() = 0, CLIENT_ID, :client),
    LOCK_NAME = IF(LAST_INSERT_ID() = 0, LOCK_NAME, :name),
    HOLDER = IF(LAST_INSERT_ID() = 0, HOLDER, :holder),
    EXPIRED_AFTER = IF(LAST_INSERT_ID() = 0, EXPIRED_AFTER, {new_end});

-- ---- claim unqueued (sqlock) [insert id]
-- As claim, of a free lock whose row is there and has no tickets.  The server
-- resolves each item of a prepared statement anew for each execution, so the
-- text of claim is much of its cost; and it is written to the binary log.  It
-- changes no lease of its own, so it may come late.
UPDATE INT_LOCK
  SET FENCE = LAST_INSERT_ID(greatest(FENCE + 1, {now_us})),
    CREATED_DATE = {now}, CLIENT_ID = :client, LOCK_NAME = :name,
    HOLDER = :holder, EXPIRED_AFTER = TIMESTAMPADD(MICROSECOND, :ttl, {now})
  WHERE {row} AND QUEUE IS NULL AND (CLIENT_ID IS NULL OR {ends} < {now});

-- ---- claim reserved (sqlock) [insert id]
-- Takes the row that a release has reserved for the ticket of the claim, and
-- inserts none: the row may be gone although another's lease is not over.
UPDATE INT_LOCK
  SET FENCE = LAST_INSERT_ID(FENCE),
    CREATED_DATE = least(CREATED_DATE, {now}), LOCK_NAME = :name,
    HOLDER = :holder, {renewed}
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now};

-- ---- enqueue (sqlock) [insert id and flag]
-- Takes the lock if it is the claim's turn, or else puts a ticket into QUEUE,
-- or renews the claim's own.  It is the claim's turn if the row is reserved for
-- it; or if it is over, and nobody waits, or the claim's ticket is the first.
-- A new row gets :queue, as by claim.  The insert id is 0 if it is
-- not granted, and has bit 62 set if others wait.  LAST_INSERT_ID() returns, in
-- a later assignment, what an earlier one has set.  MariaDB returns also how
-- much longer the row is taken, whether its holder is sqlock's, and who has it
-- and waits; on MySQL the row is read for that; there a parameter in the
-- comment would be one too many.  Those who enqueue, or wait to share, come one
-- after another through a gate before they ask for the row: InnoDB gives a row
-- on to one of hundreds who wait for it in a time that grows with the square of
-- their number, so of 250 who came within half a second none was served.
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER,
    FENCE, LOCK_NAME, HOLDER, QUEUE)
  VALUES (:key, :region, :client, {now}, {new_end}, LAST_INSERT_ID({now_us}),
    :name, {holder_at_gate}, :queue)
  ON DUPLICATE KEY UPDATE
    QUEUE = IF({is_waited_for}, QUEUE, NULL),
    FENCE = CASE
      WHEN CLIENT_ID = :client AND {ends} >= {now} THEN LAST_INSERT_ID(FENCE)
      WHEN {is_turn} THEN LAST_INSERT_ID(greatest(FENCE + 1, {now_us}))
      ELSE FENCE + LAST_INSERT_ID(0) END,
    CREATED_DATE = CASE WHEN LAST_INSERT_ID() = 0 THEN CREATED_DATE
      WHEN CLIENT_ID = :client AND {ends} >= {now}
      THEN least(CREATED_DATE, {now}) ELSE {now} END,
    CLIENT_ID = IF(LAST_INSERT_ID() = 0, NULLIF(CLIENT_ID, :client), :client),
    LOCK_NAME = IF(LAST_INSERT_ID() = 0, LOCK_NAME, :name),
    HOLDER = IF(LAST_INSERT_ID() = 0, HOLDER, :holder),
    EXPIRED_AFTER = IF(LAST_INSERT_ID() = 0, EXPIRED_AFTER, {new_end}),
    QUEUE = IF(LAST_INSERT_ID() = 0, {queue_with}, {queue_left}),
    FENCE = IF(QUEUE IS NULL OR LAST_INSERT_ID() = 0, FENCE,
      FENCE + 0 * LAST_INSERT_ID(FENCE | 4611686018427387904)),
    LOCK_NAME = {name_past_gate}
  /*M!100500 RETURNING IF(LAST_INSERT_ID() = 0, NULL, FENCE),
    {is_waited_past_gate}, 0,
    TIMESTAMPDIFF(MICROSECOND, {now},
      IF(CLIENT_ID IS NULL, CREATED_DATE, EXPIRED_AFTER)),
    coalesce(LEFT(HOLDER, 36) = CLIENT_ID, CLIENT_ID IS NULL), CLIENT_ID,
    QUEUE */;
-- ---- define at
LOCATE(CONCAT('["', :client), QUEUE)
-- ---- define is_turn
(CLIENT_ID IS NULL OR {ends} < {now}) AND (QUEUE IS NULL OR {at} = 28 AND
  {free_since} < {now})
-- ---- define until
({now_us} + 70000000)
-- ---- define queue_left
-- The queue without the claim's ticket.
CASE WHEN QUEUE IS NULL OR {at} = 0 THEN QUEUE
  WHEN LOCATE('"],[', QUEUE) > 0 THEN CONCAT(LEFT(QUEUE, {at} - 1),
    SUBSTR(QUEUE, LOCATE('"],', QUEUE, {at}) + 3)) END
-- ---- define queue_with
IF({at} > 0, INSERT(QUEUE, {at} + 40, 16, {until}),
  CONCAT({queue_before}, {ticket}))
-- ---- define queue_before
-- The beginning of a queue with a new ticket: the tickets that are there.
coalesce(LEFT(QUEUE, CHAR_LENGTH(QUEUE) - 3), '{"e":1000000000000000,"q":[')
-- ---- define ticket
CONCAT('["', :client, '",', {until}, ',', {now_us}, ',"000000","', :shown,
  '"],0]}')

-- ---- define holder_at_gate
IF({has_gate}, IF({has_bell}, :holder, NULL), NULL)
-- ---- define group_at_gate (sqlock)
IF({has_gate}, IF({has_bell}, CONCAT({group}, ' shared'), NULL), NULL)
-- ---- define gate
CONCAT('sqlock:', :key)
-- ---- define has_gate (queue)
-- The gate is a user lock, too, of the key: a session takes it before the row,
-- and gives it up before the statement ends.  One that has no bell, or has
-- waited for half of what the session allows a statement, passes without it, and
-- so does everybody on MySQL, where one that inserts the row could not give it
-- up.  A statement that failed leaves it to its session, which gives up all that
-- it has.
:bell IS NULL OR VERSION() NOT LIKE '%MariaDB%' OR
  coalesce(IF(IS_USED_LOCK({gate}) <=> CONNECTION_ID(), 0, GET_LOCK({gate},
    /*M! @@max_statement_time / 2 *//*!80001 0 */)), 0) >= 0
-- ---- define has_gate (poll)
true
-- ---- define name_past_gate (queue)
IF(RELEASE_LOCK({gate}) = 2, NULL, LOCK_NAME)
-- ---- define name_past_gate (poll)
LOCK_NAME
-- ---- define is_waited_past_gate (queue)
-- Where the row was inserted, no assignment has given the gate up.
IF(RELEASE_LOCK(CONCAT('sqlock:', LOCK_KEY)) = 2, 0, QUEUE IS NOT NULL)
-- ---- define is_waited_past_gate (poll)
QUEUE IS NOT NULL
-- ---- define has_bell (queue)
-- A bell is a user lock, which a waiter has for as long as it waits, and then
-- until it has released the lease: the one behind it waits for that.  The
-- function is called for each row, since a sum is not known without it.  A
-- session could take its own bell twice.
:bell IS NULL OR coalesce(IF(IS_USED_LOCK(:bell) <=> CONNECTION_ID(), 0,
  GET_LOCK(:bell, 0)), 0) >= 0
-- ---- define has_bell (poll)
true

-- ---- leave (sqlock)
-- Takes a ticket out of QUEUE.
UPDATE INT_LOCK
  SET QUEUE = IF(
    CHAR_LENGTH(QUEUE) - CHAR_LENGTH(REPLACE(QUEUE, '["', '')) = 2, NULL,
    CONCAT(LEFT(QUEUE, {at} - 1),
      SUBSTR(QUEUE, LOCATE('"],', QUEUE, {at}) + 3)))
  WHERE {row} AND {at} > 0;

-- ---- claim (spring7) [insert id and flag]
-- A table of an old Spring keeps whole seconds.  A claim sent again within the
-- same second would not change the row, and so would look busy: the new end is
-- one second later, which changes the row.
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
  VALUES (:key, :region, :client, {token_is_now}, {new_end})
  ON DUPLICATE KEY UPDATE
    CREATED_DATE = CASE WHEN {is_over} THEN {token_is_now}
      WHEN CLIENT_ID = :client THEN {token_stays} ELSE CREATED_DATE END,
    CLIENT_ID = IF({is_over}, :client, CLIENT_ID),
    EXPIRED_AFTER = IF(CLIENT_ID = :client,
      IF(MICROSECOND(EXPIRED_AFTER) = 0 AND
          ABS(TIMESTAMPDIFF(MICROSECOND, EXPIRED_AFTER, {new_end})) < 1000000,
        EXPIRED_AFTER + INTERVAL 1 SECOND, {new_end}), EXPIRED_AFTER);

-- ---- claim (spring6) [insert id and flag]
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  VALUES (:key, :region, IF({token_is_set}, :client, NULL), {new_end})
  ON DUPLICATE KEY UPDATE
    CLIENT_ID = IF(({is_over} OR CLIENT_ID = :client) AND {token_is_set},
      :client, CLIENT_ID),
    CREATED_DATE = IF(CLIENT_ID = :client,
      IF(MICROSECOND(CREATED_DATE) = 0 AND
          ABS(TIMESTAMPDIFF(MICROSECOND, CREATED_DATE, {new_end})) < 1000000,
        CREATED_DATE + INTERVAL 1 SECOND, {new_end}), CREATED_DATE);

-- ---- renew (sqlock)
-- The table's CHECK wants CREATED_DATE before EXPIRED_AFTER: a statement that
-- sets the end anew also takes back a CREATED_DATE that lies in the future,
-- since the server's clock has been set back.
UPDATE INT_LOCK
  SET CREATED_DATE = least(CREATED_DATE, {now}), {renewed}
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now};
-- ---- renew (spring7 spring6)
UPDATE INT_LOCK
  SET {renewed}
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now};

-- ---- release (sqlock)
-- Frees the row and keeps it, with its token; or, if others wait, reserves it
-- for a second for the first of them, who then claims it and finds its own
-- CLIENT_ID in it.  A release that nobody waits for writes only columns of
-- fixed size: so InnoDB updates the row in place, in the release and in the
-- next claim, while a null in CLIENT_ID would make InnoDB write the whole row
-- anew both times.  CLIENT_ID and HOLDER keep their values; EXPIRED_AFTER
-- becomes now less 400 years (146097 days), earlier than any clock may show;
-- and CREATED_DATE is moved back by 800 years, since the table's CHECK wants
-- CREATED_DATE before EXPIRED_AFTER.  All statements treat such a row like one
-- whose CLIENT_ID is null: free, with no holder.
UPDATE INT_LOCK
  SET CREATED_DATE = {created_passed_on}, {passed_on}
  WHERE {row} AND CLIENT_ID = :client AND EXPIRED_AFTER >= {epoch};
-- ---- define freed (sqlock)
EXPIRED_AFTER = {now} - INTERVAL 146097 DAY
-- ---- define created_passed_on (sqlock)
IF({is_waited_for}, {now}, CREATED_DATE - INTERVAL 292194 DAY)
-- ---- define passed_on (sqlock)
EXPIRED_AFTER = IF({is_waited_for}, {now} + INTERVAL 1 SECOND,
  {now} - INTERVAL 146097 DAY),
FENCE = IF({is_waited_for}, greatest(FENCE + 1, {now_us}), FENCE),
CLIENT_ID = IF({is_waited_for}, SUBSTR(QUEUE, 30, 36), CLIENT_ID),
HOLDER = IF({is_waited_for}, {next_holder}, HOLDER),
{queue_passed_on}
-- ---- define next_holder (sqlock)
CONCAT(SUBSTR(QUEUE, 30, 36), ' ',
  SUBSTR(QUEUE, 112, LOCATE('"],', QUEUE) - 112))
-- ---- define queue_passed_on (sqlock)
QUEUE = IF({is_waited_for} AND LOCATE('"],[', QUEUE) > 0,
  CONCAT(LEFT(QUEUE, 27), SUBSTR(QUEUE, LOCATE('"],', QUEUE) + 3)), NULL)

-- ---- release unqueued (sqlock)
-- As release, of a row that has no tickets.
UPDATE INT_LOCK
  SET CREATED_DATE = CREATED_DATE - INTERVAL 292194 DAY, {freed}
  WHERE {row} AND CLIENT_ID = :client AND EXPIRED_AFTER >= {epoch} AND
    QUEUE IS NULL;

-- ---- release with bell (sqlock queue)
-- As release, on the session that has the lease's bell, which it gives back.
UPDATE INT_LOCK
  SET CREATED_DATE = {created_passed_on} +
      INTERVAL 0 * coalesce(RELEASE_LOCK(:bell), 0) SECOND,
    {passed_on}
  WHERE {row} AND CLIENT_ID = :client AND EXPIRED_AFTER >= {epoch};

-- ---- release to peers (sqlock)
-- Frees the row, and puts a ticket of its holder before the others: a Spring
-- service, which cannot see QUEUE, may take it, before they do after
-- CREATED_DATE.  The ticket has a CLIENT_ID of its own: a late copy of this
-- statement does not find the next lease of the holder.
UPDATE INT_LOCK
  SET CLIENT_ID = NULL, CREATED_DATE = {now} + INTERVAL 110000 MICROSECOND,
    EXPIRED_AFTER = {now} - INTERVAL 146097 DAY,
    QUEUE = CONCAT(IF({is_waited_for}, LEFT(QUEUE, 27),
        '{"e":1000000000000000,"q":['), '["', :ticket, '",',
      {now_us} + 70000000, ',', {now_us}, ',"000000","', :shown, '"],',
      IF({is_waited_for}, SUBSTR(QUEUE, 28), '0]}'))
  WHERE {row} AND CLIENT_ID = :client AND EXPIRED_AFTER >= {epoch};

-- ---- pass on (sqlock) [not prepared]
-- Passes a row on that is over and was not taken by the first who waits
-- (src/lease/pass_on.c): reserves it for :client, or frees it, if nobody is
-- left.  A row that is shared stays as it is, but for QUEUE.  None of the
-- waiters :dropped has its bell: a session that ends gives it back.
UPDATE INT_LOCK
  SET QUEUE = :queue, HOLDER = IF({has_ended}, coalesce(:holder, HOLDER), HOLDER),
    FENCE = IF({has_ended}, greatest(FENCE + 1, {now_us}), FENCE),
    CREATED_DATE = IF({has_ended}, {now}, CREATED_DATE),
    CLIENT_ID = IF({has_ended}, :client, CLIENT_ID),
    EXPIRED_AFTER = CASE WHEN NOT {has_ended} THEN EXPIRED_AFTER
      WHEN :client IS NULL THEN {now} - INTERVAL 146097 DAY
      ELSE {now} + INTERVAL 1 SECOND END
  WHERE {row} AND QUEUE = :old_queue AND FENCE = :token AND
    IF(CLIENT_ID IS NULL, CREATED_DATE < {now}, {ends} < {now} OR {is_shared}) AND
    {is_silent};
-- ---- define has_ended (sqlock)
-- EXPIRED_AFTER, by which it is told, is assigned last.
(EXPIRED_AFTER < {now})
-- ---- define is_silent (sqlock queue)
NOT EXISTS (SELECT 1
  FROM JSON_TABLE(:dropped, '$[*]' COLUMNS (id CHAR(36) {binary} PATH '$')) j
  WHERE IS_USED_LOCK(CONCAT('sqlock:', REPLACE(LEFT(id, 23), '-', '')))
    IS NOT NULL)
-- ---- define is_silent (sqlock poll)
true

-- ---- release (spring7 spring6)
-- Deletes the row, as Spring does.
DELETE FROM INT_LOCK WHERE {row} AND CLIENT_ID = :client;

-- ---- hand off (sqlock) [insert id]
-- Gives the lease to another owner of this process, without freeing the row.
UPDATE INT_LOCK
  SET CLIENT_ID = :client, CREATED_DATE = {now}, {renewed},
    FENCE = LAST_INSERT_ID(greatest(FENCE + 1, {now_us})), LOCK_NAME = :name,
    HOLDER = :holder
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- hand off (spring7) [insert id]
UPDATE INT_LOCK
  SET CREATED_DATE = TIMESTAMPADD(MICROSECOND,
      LAST_INSERT_ID(greatest({token} + 1, {now_us})), {epoch}),
    CLIENT_ID = :client, {renewed}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- hand off (spring6) [insert id]
UPDATE INT_LOCK
  SET CLIENT_ID = IF({token_is_set}, :client, NULL), {renewed}
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};

-- ======================================================== sharing a lock ====

-- A lock that is shared has those who share it in SHARERS (src/lease/sharer.h),
-- and a CLIENT_ID that is nobody's but theirs together, which SHARERS begins
-- with.  EXPIRED_AFTER is the latest end of a sharer.  So all other statements
-- take the row for held until the last one ends; and whoever then takes it need
-- not empty SHARERS, because a group is over that is not CLIENT_ID.

-- ---- define group (sqlock)
-- The CLIENT_ID of a group: of its first sharer, but for the digits by which a
-- process is called.
CONCAT('00000000-0000', SUBSTR(:client, 14))
-- ---- define is_shared (sqlock)
(SHARERS IS NOT NULL AND CLIENT_ID = SUBSTR(SHARERS, 7, 36) AND {ends} >= {now})
-- ---- define permits_of_row (sqlock)
-- The limit that the row has; null: none is known.  That of a group without a
-- limit, 000000, lasts as long as the group.
IF(SUBSTR(SHARERS, 43, 14) REGEXP '^","n":"[0-9]+"$' AND
  ({is_shared} OR SUBSTR(SHARERS, 50, 6) <> '000000'),
  CAST(SUBSTR(SHARERS, 50, 6) AS SIGNED), NULL)
-- ---- define limit (sqlock)
-- The limit that is to count: that of the row, or else that of the claim.
coalesce({permits_of_row}, :permits)
-- ---- define most (sqlock)
coalesce(NULLIF({limit}, 0), 999999999)
-- ---- define at_share (sqlock)
LOCATE(CONCAT('["', :client), SHARERS)
-- ---- define has_share (sqlock)
(SHARERS IS NOT NULL AND CLIENT_ID = SUBSTR(SHARERS, 7, 36) AND
  {at_share} > 0 AND
  SUBSTR(SHARERS, {at_share} + 40, 16) >= CAST({now_us} AS CHAR))
-- ---- define end_of_share (sqlock)
CAST({now_us} + :ttl + {waited} AS SIGNED)
-- ---- define new_share (sqlock)
-- The share of the claim, but for its token.
'["', :client, '",', {end_of_share}, ',', {now_us}, ',"',
LPAD(:weight, 6, '0'), '","'
-- ---- define new_group (sqlock)
-- But for its limit, which is followed by {its_first}.
'{"g":"', {group}, '","n":"'
-- ---- define its_first (sqlock)
'","s":[', {new_share}
-- ---- define lists (sqlock)
-- The sharers, and the tickets before the claim's own.
JSON_TABLE(CONCAT('[', IF({is_shared}, SHARERS, '0'), ',', CASE
    WHEN QUEUE IS NULL THEN '0' WHEN {at} = 0 THEN QUEUE
    ELSE CONCAT(LEFT(QUEUE, {at} - 1), '0]}') END, ']'), '$[*]'
  COLUMNS (NESTED PATH '$.s[*]' COLUMNS (s_end BIGINT PATH '$[1]',
      s_weight BIGINT PATH '$[3]'),
    NESTED PATH '$.q[*]' COLUMNS (q_weight BIGINT PATH '$[3]'))) j
-- ---- define past_share (sqlock)
-- The text of a share that is over: the claim's own, or one of another.
(SELECT coalesce(MAX(IF(s = :client, {text_of_share}, NULL)),
    MIN(IF(s_end < {now_us}, {text_of_share}, NULL)))
  FROM JSON_TABLE(SHARERS, '$.s[*]' COLUMNS (s CHAR(36) {binary} PATH '$[0]',
    s_end BIGINT PATH '$[1]', since BIGINT PATH '$[2]',
    weight CHAR(6) {binary} PATH '$[3]', token CHAR(19) {binary} PATH '$[4]',
    holder VARCHAR(255) {binary} PATH '$[5]')) j)
-- ---- define text_of_share (sqlock)
CONCAT('["', s, '",', s_end, ',', since, ',"', weight, '","', token, '","',
  holder, '"],')
-- ---- define room (sqlock)
-- The permits that the sharers and the claim leave.
({most} - :weight -
  coalesce(SUM(IF(s_end >= {now_us}, s_weight, 0)), 0))
-- ---- define needed (sqlock)
-- The permits for the tickets before: for an exclusive one more than there are.
coalesce(SUM(IF(q_weight = 0, 1000000000, q_weight)), 0)
-- ---- define may_come (sqlock)
-- So many sharers have more characters than that.
(:weight <= {most} AND NOT ({is_shared} AND
  CHAR_LENGTH(SHARERS) > 20000 AND (SELECT
    SUM(s_end >= {now_us}) >= 200 FROM {lists})))
-- ---- define may_join (sqlock)
{may_come} AND (CLIENT_ID = :client AND {ends} >= {now} OR
  ({is_shared} OR CLIENT_ID IS NULL OR {ends} < {now}) AND
  (SELECT {room} >= 0 AND {needed} <= {room} FROM {lists}))

-- ---- share (sqlock) [insert id and flag]
-- Adds the claim to those who share the lock, or renews its share.  It may join
-- if all who have tickets before its own, and itself, have room beside the
-- sharers, an exclusive ticket having room beside nobody.
-- Otherwise, if :waits is not null, it gets a ticket.  One sharer whose lease is
-- over goes with each that joins: so they do not pile up, and no list is made
-- anew.  The insert id is as that of enqueue.  SHARERS is assigned before
-- CLIENT_ID: a group that begins differs from CLIENT_ID until then.
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, FENCE,
    LOCK_NAME, HOLDER, SHARERS, EXPIRED_AFTER)
  VALUES (:key, :region, {group}, {now}, LAST_INSERT_ID({now_us}), :name,
    {group_at_gate}, CONCAT({new_group}, LPAD(:permits, 6, '0'),
    {its_first}, LPAD({now_us}, 19, '0'), '","', :shown, '"],0]}'), {new_end})
  ON DUPLICATE KEY UPDATE
    QUEUE = IF({is_waited_for}, QUEUE, NULL),
    FENCE = CASE WHEN {has_share} THEN FENCE + 0 * LAST_INSERT_ID(
        CAST(SUBSTR(SHARERS, {at_share} + 84, 19) AS SIGNED))
      WHEN {may_join} THEN LAST_INSERT_ID(greatest(FENCE + 1, {now_us}))
      ELSE FENCE + LAST_INSERT_ID(0) END,
    QUEUE = CASE WHEN LAST_INSERT_ID() = 0
      THEN IF(:waits IS NOT NULL AND {may_come}, {queue_with_share}, QUEUE)
      ELSE {queue_left} END,
    CREATED_DATE = IF(LAST_INSERT_ID() = 0 OR {is_shared}, CREATED_DATE, {now}),
    SHARERS = CASE WHEN LAST_INSERT_ID() = 0 THEN SHARERS
      WHEN {has_share} THEN INSERT(SHARERS, {at_share} + 40, 16, {end_of_share})
      WHEN NOT {is_shared} THEN CONCAT({new_group}, LPAD({limit}, 6, '0'),
        {its_first}, LPAD(FENCE, 19, '0'), '","', :shown, '"],0]}')
      ELSE CONCAT(TRIM(TRAILING '0]}' FROM
          REPLACE(SHARERS, coalesce({past_share}, ''), '')), {new_share},
        LPAD(FENCE, 19, '0'), '","', :shown, '"],0]}') END,
    HOLDER = IF(LAST_INSERT_ID() = 0 OR {is_shared}, HOLDER,
      CONCAT({group}, ' shared')),
    LOCK_NAME = IF(LAST_INSERT_ID() = 0, LOCK_NAME, :name),
    EXPIRED_AFTER = CASE WHEN LAST_INSERT_ID() = 0 THEN EXPIRED_AFTER
      WHEN {is_shared} THEN greatest({new_end}, EXPIRED_AFTER)
      ELSE {new_end} END,
    CLIENT_ID = IF(LAST_INSERT_ID() = 0, CLIENT_ID, SUBSTR(SHARERS, 7, 36)),
    FENCE = IF(QUEUE IS NULL OR LAST_INSERT_ID() = 0, FENCE,
      FENCE + 0 * LAST_INSERT_ID(LAST_INSERT_ID() | 4611686018427387904)),
    LOCK_NAME = {name_past_gate}
  /*M!100500 RETURNING IF(LAST_INSERT_ID() = 0, NULL,
      LAST_INSERT_ID() & 4611686018427387903),
    {is_waited_past_gate}, 0, TIMESTAMPDIFF(MICROSECOND, {now},
      IF(CLIENT_ID IS NULL, CREATED_DATE, EXPIRED_AFTER)),
    coalesce(LEFT(HOLDER, 36) = CLIENT_ID, CLIENT_ID IS NULL), CLIENT_ID,
    QUEUE, IF(LAST_INSERT_ID() = 0, SHARERS, LEFT(SHARERS, 56)) */;
-- ---- define queue_with_share
IF({at} > 0, INSERT(QUEUE, {at} + 40, 16, {until}),
  CONCAT({queue_before}, {ticket_of_share}))
-- ---- define ticket_of_share
CONCAT('["', :client, '",', {until}, ',', {now_us}, ',"',
  LPAD(:weight, 6, '0'), '","', :shown, '"],0]}')

-- ---- renew share (sqlock)
-- Moves the end of a share that is not over.  Other sharers count only where
-- the row's end is later than the new one.
UPDATE INT_LOCK
  SET CREATED_DATE = least(CREATED_DATE, {now}),
    SHARERS = INSERT(SHARERS, {at_share} + 40, 16, {end_of_share}),
    EXPIRED_AFTER = IF(EXPIRED_AFTER <= {new_end}, {new_end},
      greatest({new_end}, TIMESTAMPADD(MICROSECOND, {latest_of_others}, {epoch})))
  WHERE {row} AND {has_share};
-- ---- define latest_of_others (sqlock)
coalesce((SELECT MAX(s_end)
  FROM JSON_TABLE(SHARERS, '$.s[*]' COLUMNS (s CHAR(36) {binary} PATH '$[0]',
    s_end BIGINT PATH '$[1]')) j
  WHERE s <> :client AND s_end > {now_us}), 0)

-- ---- release share (sqlock)
-- Takes a sharer out, over or not.  The last one frees the row, or reserves it
-- for a second: for the first who waits, as release does, or, if that one waits
-- to share, for all who can share it, as a group that is still empty.
-- CREATED_DATE says since when those who wait could have come.
-- LAST_INSERT_ID() is the latest end of another sharer, and 0 without one.
UPDATE INT_LOCK
  SET QUEUE = IF({is_waited_for}, QUEUE, NULL),
    FENCE = FENCE + 0 * LAST_INSERT_ID({latest_of_others}),
    HOLDER = CASE WHEN {stays} THEN HOLDER
      WHEN QUEUE IS NOT NULL THEN {next_holder}
      ELSE CONCAT(:client, ' ', SUBSTR(SHARERS, {at_share} + 106,
        LOCATE('"],', SHARERS, {at_share}) - {at_share} - 106)) END,
    SHARERS = CASE WHEN LAST_INSERT_ID() > 0
      THEN CONCAT(LEFT(SHARERS, {at_share} - 1),
        SUBSTR(SHARERS, LOCATE('"],', SHARERS, {at_share}) + 3))
      WHEN {stays} OR SUBSTR(SHARERS, 50, 6) <> '000000'
      THEN CONCAT(LEFT(SHARERS, 62), '0]}') END,
    CREATED_DATE = CASE WHEN QUEUE IS NOT NULL THEN {now}
      WHEN {stays} THEN least(CREATED_DATE, {now})
      ELSE CREATED_DATE - INTERVAL 292194 DAY END,
    EXPIRED_AFTER = CASE WHEN LAST_INSERT_ID() > 0
      THEN TIMESTAMPADD(MICROSECOND, LAST_INSERT_ID(), {epoch})
      WHEN QUEUE IS NOT NULL THEN {now} + INTERVAL 1 SECOND
      ELSE {now} - INTERVAL 146097 DAY END,
    FENCE = IF({stays} OR QUEUE IS NULL, FENCE,
      greatest(FENCE + 1, {now_us})),
    CLIENT_ID = IF({stays} OR QUEUE IS NULL, CLIENT_ID, SUBSTR(QUEUE, 30, 36)),
    QUEUE = IF({stays}, QUEUE, IF(LOCATE('"],[', QUEUE) > 0,
      CONCAT(LEFT(QUEUE, 27), SUBSTR(QUEUE, LOCATE('"],', QUEUE) + 3)), NULL))
  WHERE {row} AND CLIENT_ID = SUBSTR(SHARERS, 7, 36) AND {at_share} > 0 AND
    EXPIRED_AFTER >= {epoch};
-- ---- define stays (sqlock)
-- The row goes on to be a group's.
(LAST_INSERT_ID() > 0 OR QUEUE IS NOT NULL AND
  SUBSTR(QUEUE, 103, 6) <> '000000')

-- ---- break share (sqlock)
-- Takes the share from its sharer, but leaves its end as it is.
UPDATE INT_LOCK
  SET FENCE = greatest(FENCE + 1, {now_us}),
    SHARERS = CONCAT(LEFT(SHARERS, {at_old_share} + 1), :client,
      SUBSTR(SHARERS, {at_old_share} + 38, 68), :shown,
      SUBSTR(SHARERS, LOCATE('"],', SHARERS, {at_old_share})))
  WHERE {row} AND {is_shared} AND {at_old_share} > 0 AND
    SUBSTR(SHARERS, {at_old_share} + 40, 16) >= CAST({now_us} AS CHAR);
-- ---- define at_old_share (sqlock)
LOCATE(CONCAT('["', :old_client), SHARERS)

-- ---- downgrade (sqlock)
-- Makes the first sharer of the holder, with its token, and lets those join who
-- are first in the queue and wait to share.
UPDATE INT_LOCK
  SET SHARERS = CONCAT({new_group}, '000000', {its_first},
      LPAD(FENCE, 19, '0'), '","', :shown, '"],0]}'), CREATED_DATE = least(CREATED_DATE, {now}),
    EXPIRED_AFTER = {new_end}, HOLDER = CONCAT({group}, ' shared'),
    CLIENT_ID = {group}
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now} AND
    {permits_of_row} IS NULL;

-- ---- permits (sqlock)
-- Changes the limit of a lock, and lets those look who wait and have room.  The
-- limit that it has changes nothing: the trigger of upgrade-spring6.sql takes a
-- new CREATED_DATE alone for that of an old program.  Nor does that of a row
-- which a Spring service has, and deletes when it releases the lock.
UPDATE INT_LOCK
  SET CREATED_DATE = IF({is_waited_for} AND {is_shared} AND
      {permits_of_row} <> :permits, {now}, CREATED_DATE),
    SHARERS = IF({permits_of_row} IS NULL,
      CONCAT('{"g":"00000000-0000-0000-0000-000000000000","n":"',
        LPAD(:permits, 6, '0'), '","s":[0]}'),
      INSERT(SHARERS, 50, 6, LPAD(:permits, 6, '0')))
  WHERE {row} AND (CLIENT_ID IS NULL OR {ends} < {now} OR
    LEFT(HOLDER, 36) = CLIENT_ID);

-- ---- publish (sqlock)
-- Writes the text of a leader, who has the lock alone (src/lease/leader_text.h).
-- It counts only under its CLIENT_ID, so nobody need take it away.  A text that
-- the lease has published later stays.
UPDATE INT_LOCK
  SET LEADER = CONCAT(:client, ' ', :serial, ' kept ', :shown)
  WHERE {row} AND CLIENT_ID = :client AND {ends} >= {now} AND
    COALESCE(LEFT(LEADER, 36) <> :client OR
      SUBSTR(LEADER, 38, 16) <= :serial, true);

-- =========================================== many leases in one statement ====

-- ---- define leases
-- JSON_TABLE returns the leases in the order of the array, which is sorted by
-- key, and comes first in each join: so rows are locked in the order of their
-- keys.
JSON_TABLE(:items, '$[*]' COLUMNS (k CHAR(36) {binary} PATH '$.k',
  c CHAR(36) {binary} PATH '$.c', t BIGINT PATH '$.t',
  n VARCHAR(255) {binary} PATH '$.n', h VARCHAR(255) {binary} PATH '$.h')) j
-- ---- define binary
CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- ---- define rows_of_leases
-- A key would not be looked up in the index if it were compared with a column
-- of another collation than the table's.  The result of JSON_UNQUOTE, like a
-- literal, takes the collation of the column that it is compared with.  The
-- index is forced, so that the server reads the leases first and looks each row
-- up by its key: the optimizer would read the whole of a small table, and so
-- wait for the lock of any row.
{leases} STRAIGHT_JOIN INT_LOCK t FORCE INDEX (PRIMARY)
  ON LOCK_KEY = JSON_UNQUOTE(JSON_QUOTE(j.k)) AND REGION = :region

-- ---- claim many (sqlock)
-- As claim, for each item.  MariaDB returns all rows as they are
-- now, also those that others hold.  MySQL has no RETURNING: there the library
-- reads the rows afterwards.
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER,
    FENCE, LOCK_NAME, HOLDER)
  SELECT j.k, :region, j.c, {now}, {end_of_item}, LAST_INSERT_ID({now_us}),
    j.n, j.h
  FROM {leases}
  ON DUPLICATE KEY UPDATE
    FENCE = CASE WHEN {is_over}
      THEN LAST_INSERT_ID(greatest(FENCE + 1, {now_us}))
      WHEN CLIENT_ID = j.c
      THEN LAST_INSERT_ID(
        IF({ends} < {now}, greatest(FENCE + 1, {now_us}), FENCE))
      ELSE FENCE + LAST_INSERT_ID(0) END,
    CREATED_DATE = CASE WHEN LAST_INSERT_ID() = 0 THEN CREATED_DATE
      WHEN CLIENT_ID = j.c AND {ends} >= {now} THEN least(CREATED_DATE, {now})
      ELSE {now} END,
    CLIENT_ID = IF(LAST_INSERT_ID() = 0, CLIENT_ID, j.c),
    LOCK_NAME = IF(LAST_INSERT_ID() = 0, LOCK_NAME, j.n),
    HOLDER = IF(LAST_INSERT_ID() = 0, HOLDER, j.h),
    EXPIRED_AFTER = IF(LAST_INSERT_ID() = 0, EXPIRED_AFTER, {end_of_item})
  /*M!100500 RETURNING LOCK_KEY, FENCE, CLIENT_ID */;
-- ---- claim many (spring7)
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
  SELECT j.k, :region, j.c, {token_is_now}, {end_of_item}
  FROM {leases}
  ON DUPLICATE KEY UPDATE
    CREATED_DATE = CASE WHEN {is_over} THEN {token_is_now}
      WHEN CLIENT_ID = j.c THEN {token_stays} ELSE CREATED_DATE END,
    CLIENT_ID = IF({is_over}, j.c, CLIENT_ID),
    EXPIRED_AFTER = IF(CLIENT_ID = j.c,
      IF(MICROSECOND(EXPIRED_AFTER) = 0 AND
          ABS(TIMESTAMPDIFF(MICROSECOND, EXPIRED_AFTER, {end_of_item}))
            < 1000000,
        EXPIRED_AFTER + INTERVAL 1 SECOND, {end_of_item}), EXPIRED_AFTER)
  /*M!100500 RETURNING LOCK_KEY,
    TIMESTAMPDIFF(MICROSECOND, {epoch}, CREATED_DATE), CLIENT_ID */;
-- ---- define end_of_item (sqlock spring7)
TIMESTAMPADD(MICROSECOND, j.t + {waited}, {now})
-- ---- define end_of_item (spring6)
TIMESTAMPADD(MICROSECOND, j.t + {waited} - :peer_ttl, {now})
-- ---- claim many (spring6)
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)
  SELECT j.k, :region, IF({token_is_set}, j.c, NULL), {end_of_item}
  FROM {leases}
  ON DUPLICATE KEY UPDATE
    CLIENT_ID = IF(({is_over} OR CLIENT_ID = j.c) AND {token_is_set}, j.c,
      CLIENT_ID),
    CREATED_DATE = IF(CLIENT_ID = j.c,
      IF(MICROSECOND(CREATED_DATE) = 0 AND
          ABS(TIMESTAMPDIFF(MICROSECOND, CREATED_DATE, {end_of_item}))
            < 1000000,
        CREATED_DATE + INTERVAL 1 SECOND, {end_of_item}), CREATED_DATE)
  /*M!100500 RETURNING LOCK_KEY, {now_us}, CLIENT_ID */;

-- ---- renew many [insert id]
-- As renew, for each item.  An UPDATE would wait for the lock of a row, so the
-- inner SELECT passes over those that another session has locked; the LIMIT
-- makes the server execute it first, as in reap.  With OF t, MySQL does not try
-- to lock the items; MariaDB has no such clause, and skips comments for this
-- version of MySQL.  The lease's end is computed from a "now" that is also the
-- insert id, by which the library tells the rows that were renewed: so {waited} is
-- none of it, which would not be the same for each row.  The statement waits for no
-- row.
UPDATE (SELECT t.LOCK_KEY AS k, j.t FROM {rows_of_leases}
    WHERE CLIENT_ID = j.c AND {ends} >= {now}
    LIMIT 1000000 FOR UPDATE /*!80001 OF t */ SKIP LOCKED) AS j
  STRAIGHT_JOIN INT_LOCK t FORCE INDEX (PRIMARY)
  ON t.LOCK_KEY = j.k AND t.REGION = :region
  SET {renewed_item};
-- ---- define renewed_item (sqlock)
CREATED_DATE = least(CREATED_DATE, {now}), EXPIRED_AFTER =
  TIMESTAMPADD(MICROSECOND, LAST_INSERT_ID({now_us}) + j.t, {epoch})
-- ---- define renewed_item (spring7)
EXPIRED_AFTER =
  TIMESTAMPADD(MICROSECOND, LAST_INSERT_ID({now_us}) + j.t, {epoch})
-- ---- define renewed_item (spring6)
CREATED_DATE = TIMESTAMPADD(MICROSECOND,
  LAST_INSERT_ID({now_us}) + j.t - {ttl_of_row}, {epoch})

-- ---- release many (sqlock)
-- As release, for each item.
UPDATE {rows_of_leases}
  SET CREATED_DATE = {created_passed_on}, {passed_on}
  WHERE CLIENT_ID = j.c AND EXPIRED_AFTER >= {epoch};
-- ---- release many (spring7 spring6)
DELETE t FROM {rows_of_leases} WHERE CLIENT_ID = j.c;

-- ---- claim unqueued many (sqlock)
-- As claim unqueued, for each item; MariaDB only, since MySQL returns no rows.
-- An UPDATE returns none.  Rows that another session has locked are passed over.
-- The rows that the SELECT has locked are there, so all are updated.
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER,
    FENCE, LOCK_NAME, HOLDER)
  SELECT t.LOCK_KEY, t.REGION, j.c, {now},
    TIMESTAMPADD(MICROSECOND, j.t, {now}), greatest(t.FENCE + 1, {now_us}),
    j.n, j.h
  FROM {rows_of_leases}
  WHERE t.QUEUE IS NULL AND (t.CLIENT_ID IS NULL OR t.EXPIRED_AFTER < {now})
  FOR UPDATE SKIP LOCKED
  ON DUPLICATE KEY UPDATE
    CLIENT_ID = VALUES(CLIENT_ID), CREATED_DATE = VALUES(CREATED_DATE),
    EXPIRED_AFTER = VALUES(EXPIRED_AFTER), FENCE = VALUES(FENCE),
    LOCK_NAME = VALUES(LOCK_NAME), HOLDER = VALUES(HOLDER)
  RETURNING LOCK_KEY, FENCE;

-- ---- release unqueued many (sqlock)
-- As release unqueued, for each item; MariaDB only.
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER)
  SELECT t.LOCK_KEY, t.REGION, t.CREATED_DATE - INTERVAL 292194 DAY,
    {now} - INTERVAL 146097 DAY
  FROM {rows_of_leases}
  WHERE t.QUEUE IS NULL AND t.CLIENT_ID = j.c AND t.EXPIRED_AFTER >= {epoch}
  FOR UPDATE SKIP LOCKED
  ON DUPLICATE KEY UPDATE
    CREATED_DATE = VALUES(CREATED_DATE), EXPIRED_AFTER = VALUES(EXPIRED_AFTER)
  RETURNING LOCK_KEY;

-- ---- read many [reads]
-- As read, for each item, with the key that it has, which may be another
-- spelling of the row's.
SELECT j.k, {info_of_row} FROM {rows_of_leases};

-- ================================================================ reading ====

-- ---- define info
LOCK_KEY, {info_of_row}
-- ---- define info_of_row
{held_by}, {token},
CASE WHEN {held_by} IS NULL
  THEN least(-1, TIMESTAMPDIFF(MICROSECOND, {now}, {last_end}))
  ELSE TIMESTAMPDIFF(MICROSECOND, {now}, {last_end}) END,
TIMESTAMPDIFF(MICROSECOND, {epoch}, {first_created}),
TIMESTAMPDIFF(MICROSECOND, {epoch}, {last_end}), {names}
-- ---- define held_by (sqlock)
IF(EXPIRED_AFTER < {epoch}, NULL, CLIENT_ID)
-- ---- define held_by (spring7 spring6)
CLIENT_ID
-- ---- define last_end (sqlock)
IF(EXPIRED_AFTER < {epoch}, EXPIRED_AFTER + INTERVAL 146097 DAY, EXPIRED_AFTER)
-- ---- define last_end (spring7 spring6)
{ends}

-- ---- define first_created (sqlock)
-- A peer that takes a row over does not change CREATED_DATE: so this tests it,
-- and not EXPIRED_AFTER.
IF(CREATED_DATE < {epoch}, CREATED_DATE + INTERVAL 292194 DAY, CREATED_DATE)
-- ---- define first_created (spring7 spring6)
CREATED_DATE
-- ---- define token (sqlock)
FENCE
-- ---- define token (spring7)
TIMESTAMPDIFF(MICROSECOND, {epoch}, CREATED_DATE)
-- ---- define token (spring6)
NULL
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
SELECT {info} FROM INT_LOCK WHERE {row};

-- ---- define behind
REGION = :region AND LOCK_KEY > :after

-- ---- define is_sought
-- Compared with a constant, the region would keep MariaDB from reading in the
-- order of keys.
REGION = coalesce(:region, REGION) AND
(:region IS NOT NULL OR REGION NOT LIKE '%#tx') AND
(:with_free <> 0 OR {held_by} IS NOT NULL) AND
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
    CASE WHEN :order = 'ttl'
      THEN TIMESTAMPDIFF(MICROSECOND, {epoch}, {last_end}) END,
    CASE WHEN :order = 'token' THEN -{token} END, {shown_name}, REGION
  LIMIT :limit;

-- ---- define held_since (sqlock)
-- A shared lock is held since the sharer came who has it for longest.  A row
-- that Spring has taken over keeps the date of its last holder.
CASE WHEN {is_shared} THEN coalesce((SELECT MIN(s_since)
    FROM JSON_TABLE(SHARERS, '$.s[*]' COLUMNS (s_end BIGINT PATH '$[1]',
      s_since BIGINT PATH '$[2]')) j
    WHERE s_end >= {now_us}),
    TIMESTAMPDIFF(MICROSECOND, {epoch}, {first_created}))
  WHEN CLIENT_ID IS NULL OR SUBSTR(HOLDER, 1, 36) = CLIENT_ID OR
  (HOLDER IS NULL AND FENCE = 0)
  THEN TIMESTAMPDIFF(MICROSECOND, {epoch}, {first_created})
  ELSE 9000000000000000000 END
-- ---- define held_since (spring7 spring6)
TIMESTAMPDIFF(MICROSECOND, {epoch}, CREATED_DATE)

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
  SET CLIENT_ID = :client, HOLDER = :holder,
    FENCE = greatest(FENCE + 1, {now_us})
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- break (spring7)
UPDATE INT_LOCK
  SET CLIENT_ID = :client,
    CREATED_DATE = greatest(CREATED_DATE + INTERVAL 1 MICROSECOND, {now})
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};
-- ---- break (spring6)
UPDATE INT_LOCK
  SET CLIENT_ID = :client
  WHERE {row} AND CLIENT_ID = :old_client AND {ends} >= {now};

-- ---- break now (sqlock)
-- Takes the lease from its holder, and frees the lock at once.
UPDATE INT_LOCK
  SET FENCE = greatest(FENCE + 1, {now_us}),
    CREATED_DATE = IF({is_waited_for}, {now}, CREATED_DATE),
    EXPIRED_AFTER = IF({is_waited_for}, {now} + INTERVAL 1 SECOND,
      {now} - INTERVAL 146097 DAY),
    CLIENT_ID = IF({is_waited_for}, SUBSTR(QUEUE, 30, 36), NULL),
    HOLDER = IF({is_waited_for}, {next_holder}, :holder), {queue_passed_on}
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
-- clock, where the next one will be.  A plain DELETE would wait for the lock
-- of each row that it reads, also of other regions.  The LIMIT, greater than a
-- range of the reaper, makes the server execute the inner SELECT first, as a
-- table of its own.
DELETE t
  FROM (SELECT LOCK_KEY AS free_key FROM INT_LOCK
    WHERE {behind} AND LOCK_KEY <= :until AND {is_old}
    ORDER BY LOCK_KEY LIMIT 1000000 FOR UPDATE SKIP LOCKED) AS free
  STRAIGHT_JOIN INT_LOCK t FORCE INDEX (PRIMARY)
  ON t.LOCK_KEY = free.free_key AND t.REGION = :region;
-- ---- define long_ago
TIMESTAMPADD(MICROSECOND, -:age, {now})
-- ---- define is_old (sqlock)
-- A row with tickets stays a day longer: a clock may have stepped.
{last_end} < {long_ago} AND FENCE < {now_us} - :age AND
(NOT {is_waited_for} OR {last_end} < {now} - INTERVAL 1 DAY)
-- ---- define is_old (spring7)
{last_end} < {long_ago} AND CREATED_DATE < {long_ago}
-- ---- define is_old (spring6)
{last_end} < {long_ago}

-- ---- after restore (sqlock) [not prepared]
-- Frees every row after the table was restored from a backup, with a token
-- above those that were given since.  Sent in a transaction of its own.
UPDATE INT_LOCK
  SET CLIENT_ID = NULL, HOLDER = NULL, {freed},
    FENCE = greatest(FENCE + 1, {now_us}), QUEUE = NULL;
-- ---- after restore (spring7 spring6) [not prepared]
DELETE FROM INT_LOCK;

-- ======================================= in the application's transaction ====

-- ---- name seed (sqlock)
-- The row of a name that a transaction locks, in the region "<region>#tx".
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER, LOCK_NAME)
  VALUES (:key, :region, {now}, {now}, :name)
  ON DUPLICATE KEY UPDATE LOCK_KEY = LOCK_KEY;
-- ---- name seed (spring7)
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER)
  VALUES (:key, :region, {now}, {now})
  ON DUPLICATE KEY UPDATE LOCK_KEY = LOCK_KEY;
-- ---- name seed (spring6)
INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE)
  VALUES (:key, :region, {now})
  ON DUPLICATE KEY UPDATE LOCK_KEY = LOCK_KEY;

-- ---- name lock [never waits]
-- Locks the row of a name until the end of the transaction, if it is free.
SELECT LOCK_KEY FROM INT_LOCK WHERE {row} FOR UPDATE NOWAIT;

-- ---- name wait
-- As name lock, but waits for the row.
SELECT LOCK_KEY FROM INT_LOCK WHERE {row} FOR UPDATE;

-- ---- name look
-- Finds out whether the row of a name is there, though it may be locked.
SELECT LOCK_KEY FROM INT_LOCK WHERE {row};

-- ---- name reap [not prepared]
-- Deletes rows of names, and accounts that ended, which are older than that, but
-- none that is locked.
DELETE t
  FROM (SELECT LOCK_KEY AS free_key FROM INT_LOCK
    WHERE {behind} AND LOCK_KEY <= :until AND {is_old_name}
    ORDER BY LOCK_KEY LIMIT 1000000 FOR UPDATE SKIP LOCKED) AS free
  STRAIGHT_JOIN INT_LOCK t FORCE INDEX (PRIMARY)
  ON t.LOCK_KEY = free.free_key AND t.REGION = :region;
-- ---- define is_old_name (sqlock)
-- A row with a CLIENT_ID is an account of Spring services (src/lock/README.md).
CREATED_DATE < {long_ago} AND (CLIENT_ID IS NULL OR {ends} < {long_ago})
-- ---- define is_old_name (spring7 spring6)
CLIENT_ID IS NULL AND CREATED_DATE < {long_ago}

-- ---- define has_token (sqlock)
AND FENCE = :token
-- ---- define has_token (spring7 spring6)

-- ---- tx guard [never waits]
-- Locks the row of a lease until the end of the transaction, so that nobody can
-- take it over before, and says whether it is over.  SKIP LOCKED is not used:
-- under REPEATABLE READ a search that skips its row locks the gap behind the
-- row, and then nobody can insert a row there.  NOWAIT would be the same on
-- MariaDB, but is not allowed in a block of statements.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0, lock_wait_timeout = 0 FOR */
SELECT {ends} >= {now}
  FROM INT_LOCK
  WHERE {row} AND CLIENT_ID = :client {has_token}
  /*M! LOCK IN SHARE MODE *//*!80001 FOR SHARE NOWAIT */;

-- ---- guard
-- For other programs: `sqlock guard-sql` prints it.  The result of exp() is out
-- of range: an error in any sql_mode, whose message shows the text.  It depends
-- on the number of rows found, so that it is not evaluated before.
SELECT CASE count(*) WHEN 1 THEN 1
    ELSE exp(1e9 * (2 - count(*)) * length('sqlock: the lease is over')) END
    AS GUARDED
  FROM INT_LOCK
  WHERE {row} AND CLIENT_ID = :client {has_token} AND {ends} >= {now}
  LOCK IN SHARE MODE;

-- ---- identity [not prepared]
-- Says which database this is: two sessions with the same answer find the same
-- table.
-- Servers in containers may differ in nothing but their ids; MariaDB has no uuid.
SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir, @@server_id,
  /*!80000 @@server_uuid, */ COALESCE(:schema, DATABASE()));

-- ---- one node [not prepared]
-- Galera detects conflicting writes at their commit, but its nodes do not see
-- each other's row locks.
SHOW VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON';

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
    TIMESTAMPDIFF(MICROSECOND, {epoch}, DONE_DATE), LOCK_NAME
  FROM INT_DONE
  WHERE REGION = :region AND (:key IS NULL OR LOCK_KEY = :key)
  ORDER BY coalesce(LOCK_NAME, LOCK_KEY);

-- ---- once forget [not prepared]
-- Deletes a record, so that it is done again.
DELETE FROM INT_DONE WHERE {row};

-- ============================================================= the server ====

-- ---- server
-- Says whether the server takes writes, its clock, and its version.  Newer
-- servers return read_only as a word.
SELECT {read_only}, {now_us},
  CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '),
    SUBSTRING_INDEX(VERSION(), '-', 1));
-- ---- define read_only
IF(CAST(@@global.read_only AS CHAR) IN ('0', 'OFF'), 0, 1)

-- ---- define server
-- Which server it is.  Replication requires server_id to differ, but a copy of the
-- data directory takes it along.
/*M! CONCAT(@@server_id, '@', LEFT(@@hostname, 30)) *//*!80001 @@server_uuid */
-- ---- define is_durable
-- Whether the server has all its commits after a crash.  The recovery rolls back
-- one that is missing in the binary log.
(@@innodb_flush_log_at_trx_commit = 1 AND NOT (@@log_bin AND @@sync_binlog <> 1))
-- ---- define started
-- When it was started, in seconds.  Uptime is cut to whole ones.
(TIMESTAMPDIFF(SECOND, {epoch}, UTC_TIMESTAMP()) - (SELECT
  CAST(VARIABLE_VALUE AS SIGNED) FROM
  /*M! information_schema.GLOBAL_STATUS *//*!80001 performance_schema.global_status */
  WHERE VARIABLE_NAME = 'UPTIME'))

-- ---- grace (sqlock) [not prepared]
-- Reads whether the server may grant leases.  The epoch of one that forgets commits
-- in a crash ends with when it was started; the row's fits if it is as old but for
-- two seconds: a server that ran for less has granted nothing in it.
SELECT CASE WHEN SUBSTRING_INDEX(EPOCH, ' ', 1) = {server} AND
      CASE WHEN LOCATE(' ', EPOCH) = 0 THEN {is_durable}
        ELSE ABS(SUBSTRING_INDEX(EPOCH, ' ', -1) - {started}) <= 2 END
      THEN EPOCH
    WHEN {is_durable} THEN {server} ELSE CONCAT({server}, ' ', {started}) END,
    EPOCH, TIMESTAMPDIFF(MICROSECOND, {now}, GRANTS_FROM), LONGEST_MS,
    LEAST(LONGEST_MS, ALLOWED_MS), TIMESTAMPDIFF(MICROSECOND, {epoch}, SINCE)
  FROM INT_LOCK_SERVER;

-- ---- begin grace (sqlock) [not prepared]
-- Notes that the data have another history.  The row that nobody has written yet is
-- as old as the table, which is empty then.  The epoch is a parameter, since a
-- replica would write its own.  The leases of the grace before are over by then,
-- too: LONGEST_MS is not lowered in one; and the clock by which it was to end may
-- have been ahead.  A row that says something else by now stays.  SINCE rises with each,
-- whatever the clocks say.
UPDATE INT_LOCK_SERVER
  SET GRANTS_FROM = CASE WHEN EPOCH IS NULL THEN GRANTS_FROM
      ELSE TIMESTAMPADD(MICROSECOND, LONGEST_MS * 1000, {now}) END,
    SINCE = GREATEST({now}, TIMESTAMPADD(MICROSECOND, 1, SINCE)), EPOCH = :name, NOTE = NULL
  WHERE EPOCH <=> :old_epoch;

-- ---- lengthen grace (sqlock) [not prepared]
-- Lets a grace last for a lease of that length from now on.
UPDATE INT_LOCK_SERVER
  SET LONGEST_MS = GREATEST(LONGEST_MS, (:ttl + 999) DIV 1000), CHANGED = {now};

-- ---- allow grace (sqlock) [not prepared]
-- Lets leases be as long.
UPDATE INT_LOCK_SERVER
  SET ALLOWED_MS = GREATEST(ALLOWED_MS, (:ttl + 999) DIV 1000), CHANGED = {now}
  WHERE LONGEST_MS >= (:ttl + 999) DIV 1000;

-- ---- standbys (sqlock) [not prepared, reads]
-- Says that no replica need be waited for: a source does not tell what those have,
-- but for who may see its processes.
SELECT LEAST(LONGEST_MS, ALLOWED_MS), '', 0, 0
  FROM INT_LOCK_SERVER;

-- ---- least grace (sqlock) [not prepared]
-- Notes how short a grace may become again.
UPDATE INT_LOCK_SERVER
  SET LEAST_MS = (:ttl + 999) DIV 1000;

-- ---- longer (sqlock) [not prepared, reads]
-- Returns a row if there is a lease that may last longer than the shortest grace.
-- A row tells what is left of its lease, which is renewed when a quarter is over, or
-- somewhat later.  In the UPDATE the rows of leases would be locked.
SELECT 1
  FROM INT_LOCK_SERVER S
  WHERE EXISTS (SELECT 1 FROM INT_LOCK L WHERE L.CLIENT_ID IS NOT NULL AND
    L.EXPIRED_AFTER > TIMESTAMPADD(MICROSECOND, S.LEAST_MS * 700, {now}));

-- ---- shorten grace (sqlock) [not prepared]
-- Lets no lease be as long any more; and, once each process must have noticed that,
-- no grace, but not while there is one.  MySQL sets ALLOWED_MS after it was read for LONGEST_MS.
UPDATE INT_LOCK_SERVER
  SET LONGEST_MS = CASE WHEN ALLOWED_MS > LEAST_MS THEN LONGEST_MS
      ELSE LEAST_MS END,
    ALLOWED_MS = LEAST(ALLOWED_MS, LEAST_MS), CHANGED = {now}
  WHERE GRANTS_FROM <= {now} AND (ALLOWED_MS > LEAST_MS OR
    (LONGEST_MS > LEAST_MS AND
      CHANGED < TIMESTAMPADD(MINUTE, -5, {now})));

-- ---- end grace (sqlock) [not prepared]
-- Ends it at once, and keeps who has done so, and why.
UPDATE INT_LOCK_SERVER
  SET GRANTS_FROM = {now}, NOTE = :holder
  WHERE GRANTS_FROM > {now};

-- ---- describe
-- Reads the columns of a table, and what makes it unfit for locks.  A column
-- of which the primary key has only a prefix (SUB_PART) counts as not in the
-- key: two keys with the same prefix could not both be inserted.  Each table
-- of the catalogue is searched for the name itself: for a join, MariaDB would
-- open the files of all tables of the server.  The last cells are of the
-- server and the login: who opens a table asks only this.
SELECT UPPER(c.COLUMN_NAME), LOWER(c.COLUMN_TYPE),
    IF(c.IS_NULLABLE = 'NO', 0, 1),
    COALESCE((SELECT CAST(k.SEQ_IN_INDEX AS SIGNED)
      FROM information_schema.STATISTICS k
      WHERE k.TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND
        k.TABLE_NAME = :table AND k.COLUMN_NAME = c.COLUMN_NAME AND
        k.INDEX_NAME = 'PRIMARY' AND k.SUB_PART IS NULL), 0),
    CASE WHEN t.TABLE_TYPE LIKE '%VIEW' THEN 'a view'
      WHEN t.TABLE_TYPE = 'SEQUENCE' THEN 'a sequence'
      WHEN t.TABLE_TYPE = 'SYSTEM VERSIONED' THEN
        'a system-versioned table, which keeps each change forever'
      WHEN t.TABLE_TYPE LIKE '%TEMPORARY%' THEN 'a temporary table'
      WHEN t.ENGINE = 'InnoDB' THEN NULL
      ELSE CONCAT(IF(LEFT(t.ENGINE, 1) IN ('A', 'E', 'I', 'O'), 'an ', 'a '),
        t.ENGINE, ' table') END,
    IF(c.COLLATION_NAME LIKE '%\_bin', NULL, c.COLLATION_NAME),
    c.TABLE_SCHEMA, {read_only},
    CASE WHEN c.PRIVILEGES NOT LIKE '%select%' THEN 0
      WHEN c.PRIVILEGES LIKE '%update%' THEN 2 ELSE 1 END,
    (SELECT CASE WHEN s.PRIVILEGES NOT LIKE '%select%' THEN 0
        WHEN s.PRIVILEGES LIKE '%update%' THEN 2 ELSE 1 END
      FROM information_schema.COLUMNS s
      WHERE s.TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND
        s.TABLE_NAME = CONCAT(:table, '_SERVER') AND s.COLUMN_NAME = 'EPOCH')
  FROM information_schema.COLUMNS c
  JOIN information_schema.TABLES t
  ON t.TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND t.TABLE_NAME = :table
  WHERE c.TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND c.TABLE_NAME = :table
  ORDER BY c.ORDINAL_POSITION;

-- ---- place [not prepared]
-- Tells the database, and the tables whose names have other capitals, where these
-- count.
SELECT CONCAT('the database ', COALESCE(:schema, DATABASE())),
  (SELECT GROUP_CONCAT(TABLE_NAME ORDER BY TABLE_NAME SEPARATOR ', ')
    FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND
      LOWER(TABLE_NAME) = LOWER(:table) AND
      CAST(TABLE_NAME AS BINARY) <> CAST(:table AS BINARY) AND
      @@lower_case_table_names = 0);

-- ---- has age index [not prepared]
-- Old orders of stock are read by it; tables of earlier versions have none.
SELECT 1
  FROM information_schema.STATISTICS
  WHERE TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND TABLE_NAME = :table AND
    COLUMN_NAME = 'CREATED_AT' AND SEQ_IN_INDEX = 1
  LIMIT 1;
