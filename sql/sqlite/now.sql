-- The view INT_LOCK_NOW, for whoever looks with sqlite3: a row for each lock that
-- is held, reserved or waited for.
--
--     sqlite3 FILE < now.sql
--
-- `sqlock init` makes it together with the table; a table of an earlier version
-- gets it from this script.  Nothing in sqlock reads the view.  Drop it before the
-- table: ALTER TABLE refuses to rename any table beside a view of one that is
-- gone.
--
-- SINCE is local time; ENDS_IN is in seconds.  src/lease/ticket.h and sharer.h
-- have the forms of QUEUE and SHARERS; one that is no JSON, since somebody has
-- spoiled it, counts as empty.
CREATE VIEW IF NOT EXISTS INT_LOCK_NOW AS
SELECT R.REGION, R.NAME, R.STATE,
    CASE WHEN R.STATE = 'free' THEN NULL WHEN R.IS_SHARED THEN 'shared'
        ELSE 'exclusive' END AS MODE,
    CASE WHEN R.STATE = 'free' THEN NULL WHEN R.IS_SHARED THEN (
            SELECT json_extract(J.value, '$[5]')
            FROM json_each(R.SHARERS, '$.s') AS J WHERE J.type = 'array' AND
                json_extract(J.value, '$[1]') >= R.NOW_US
            ORDER BY J.key LIMIT 1)
        WHEN R.IS_OURS THEN substr(R.HOLDER, 38)
        ELSE 'peer' END AS HOLDER,
    strftime('%Y-%m-%d %H:%M:%f', CASE WHEN R.STATE = 'free' THEN NULL
        WHEN R.IS_SHARED THEN coalesce((
            SELECT min(json_extract(J.value, '$[2]'))
            FROM json_each(R.SHARERS, '$.s') AS J WHERE J.type = 'array' AND
                json_extract(J.value, '$[1]') >= R.NOW_US), R.CREATED_DATE)
        -- A Spring service leaves the date of the holder before it.
        WHEN R.IS_OURS OR R.HOLDER IS NULL AND R.FENCE = 0 THEN R.CREATED_DATE
        END / 1000000.0, 'unixepoch', 'localtime') AS SINCE,
    CASE WHEN R.STATE <> 'free' THEN
        round((R.EXPIRED_AFTER - R.NOW_US) / 1000000.0, 1) END AS ENDS_IN,
    iif(R.IS_SHARED, (
        SELECT count(*) FROM json_each(R.SHARERS, '$.s') AS J
        WHERE J.type = 'array' AND json_extract(J.value, '$[1]') >= R.NOW_US), 0)
        AS SHARERS,
    iif(R.IS_SHARED, (
        SELECT coalesce(sum(CAST(json_extract(J.value, '$[3]') AS INTEGER)), 0)
        FROM json_each(R.SHARERS, '$.s') AS J
        WHERE J.type = 'array' AND json_extract(J.value, '$[1]') >= R.NOW_US), 0)
        AS TAKEN,
    nullif(CAST(substr(R.SHARERS, 50, 6) AS INTEGER), 0) AS PERMITS,
    R.WAITERS,
    (SELECT json_extract(J.value, '$[4]') FROM json_each(R.QUEUE, '$.q') AS J
        WHERE J.type = 'array' AND json_extract(J.value, '$[1]') >= R.NOW_US
        ORDER BY J.key LIMIT 1) AS FIRST_WAITER
FROM (SELECT L.*, (SELECT count(*) FROM json_each(L.QUEUE, '$.q') AS J
        WHERE J.type = 'array' AND json_extract(J.value, '$[1]') >= L.NOW_US)
            AS WAITERS
    FROM (SELECT REGION, coalesce(LOCK_NAME, LOCK_KEY) AS NAME, HOLDER, FENCE,
            CREATED_DATE, EXPIRED_AFTER, U.NOW_US,
            iif(json_valid(QUEUE), QUEUE, '{}') AS QUEUE,
            iif(json_valid(SHARERS), SHARERS, '{}') AS SHARERS,
            CASE WHEN CLIENT_ID IS NULL THEN 'free'
                WHEN EXPIRED_AFTER < U.NOW_US THEN 'expired' ELSE 'held' END
                AS STATE,
            coalesce(CLIENT_ID = substr(SHARERS, 7, 36), 0) AS IS_SHARED,
            coalesce(substr(HOLDER, 1, 36) = CLIENT_ID, 0) AS IS_OURS
        FROM INT_LOCK, (SELECT CAST((julianday('now') - 2440587.5) *
            86400000000 AS INTEGER) AS NOW_US) AS U
        WHERE REGION NOT LIKE '%#tx') AS L) AS R
WHERE R.STATE = 'held' OR R.WAITERS > 0;
