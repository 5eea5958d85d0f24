-- The view INT_LOCK_NOW, for whoever looks with mysql: a row for each lock that is
-- held, reserved or waited for, with MySQL 8.0 and MariaDB 10.6 and later.
--
--     mysql DATABASE < now.sql
--
-- `sqlock init` makes it together with the table, if it has the rights CREATE
-- VIEW and DROP.  A table of an earlier version gets it from this script, while it
-- is in use; where accounts have grants, run grants-observer.sql and
-- grants-operator.sql again then.  Nothing in sqlock reads the view.
--
-- SINCE is a time in the zone of the session; ENDS_IN is in seconds.
-- src/lease/ticket.h and sharer.h have the forms of QUEUE and SHARERS; one that is
-- no JSON, since somebody has spoiled it, counts as empty.  A reader of the view
-- needs SELECT on INT_LOCK, too.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW INT_LOCK_NOW AS
SELECT R.REGION, R.NAME, R.STATE,
    CASE WHEN R.STATE = 'free' THEN NULL WHEN R.IS_SHARED THEN 'shared'
        ELSE 'exclusive' END AS MODE,
    CASE WHEN R.STATE = 'free' THEN NULL WHEN R.IS_SHARED THEN (
            SELECT J.HOLDER FROM JSON_TABLE(R.SHARERS, '$.s[*]' COLUMNS (
                N FOR ORDINALITY, ENDS BIGINT PATH '$[1]',
                HOLDER VARCHAR(255) PATH '$[5]')) AS J
            WHERE J.ENDS >= R.NOW_US ORDER BY J.N LIMIT 1)
        WHEN R.IS_OURS THEN SUBSTR(R.HOLDER, 38)
        ELSE 'peer' END AS HOLDER,
    FROM_UNIXTIME(0.000001 * CASE WHEN R.STATE = 'free' THEN NULL
        WHEN R.IS_SHARED THEN COALESCE((
            SELECT MIN(J.SINCE) FROM JSON_TABLE(R.SHARERS, '$.s[*]' COLUMNS (
                ENDS BIGINT PATH '$[1]', SINCE BIGINT PATH '$[2]')) AS J
            WHERE J.ENDS >= R.NOW_US), R.CREATED_US)
        -- A Spring service leaves the date of the holder before it.
        WHEN R.IS_OURS OR R.HOLDER IS NULL AND R.FENCE = 0 THEN R.CREATED_US
        END) AS SINCE,
    CASE WHEN R.STATE = 'free' THEN NULL
        ELSE ROUND(R.LEFT_US / 1000000, 1) END AS ENDS_IN,
    IF(R.IS_SHARED, (
        SELECT COUNT(*) FROM JSON_TABLE(R.SHARERS, '$.s[*]' COLUMNS (
            ENDS BIGINT PATH '$[1]')) AS J
        WHERE J.ENDS >= R.NOW_US), 0) AS SHARERS,
    IF(R.IS_SHARED, (
        SELECT COALESCE(SUM(J.WEIGHT), 0)
        FROM JSON_TABLE(R.SHARERS, '$.s[*]' COLUMNS (
            ENDS BIGINT PATH '$[1]', WEIGHT INT PATH '$[3]')) AS J
        WHERE J.ENDS >= R.NOW_US), 0) AS TAKEN,
    CAST(NULLIF(NULLIF(SUBSTR(R.SHARERS, 50, 6), '000000'), '') AS UNSIGNED)
        AS PERMITS,
    R.WAITERS,
    (SELECT J.HOLDER FROM JSON_TABLE(R.QUEUE, '$.q[*]' COLUMNS (
            N FOR ORDINALITY, ENDS BIGINT PATH '$[1]',
            HOLDER VARCHAR(255) PATH '$[4]')) AS J
        WHERE J.ENDS >= R.NOW_US ORDER BY J.N LIMIT 1) AS FIRST_WAITER
FROM (SELECT L.REGION, COALESCE(L.LOCK_NAME, L.LOCK_KEY) AS NAME, L.HOLDER,
        L.FENCE, IF(JSON_VALID(L.QUEUE), L.QUEUE, '{}') AS QUEUE,
        IF(JSON_VALID(L.SHARERS), L.SHARERS, '{}') AS SHARERS,
        CASE WHEN L.CLIENT_ID IS NULL OR L.EXPIRED_AFTER < '1970-01-01'
            THEN 'free' WHEN L.EXPIRED_AFTER < UTC_TIMESTAMP(6) THEN 'expired'
            ELSE 'held' END AS STATE,
        COALESCE(L.CLIENT_ID = SUBSTR(L.SHARERS, 7, 36), 0) AS IS_SHARED,
        COALESCE(LEFT(L.HOLDER, 36) = L.CLIENT_ID, 0) AS IS_OURS,
        TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), L.EXPIRED_AFTER) AS LEFT_US,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS NOW_US,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', L.CREATED_DATE) AS CREATED_US,
        (SELECT COUNT(*) FROM JSON_TABLE(IF(JSON_VALID(L.QUEUE), L.QUEUE, '{}'),
            '$.q[*]' COLUMNS (ENDS BIGINT PATH '$[1]')) AS J
            WHERE J.ENDS >=
                TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
            ) AS WAITERS
    FROM INT_LOCK AS L WHERE L.REGION NOT LIKE '%#tx') AS R
WHERE R.STATE = 'held' OR R.WAITERS > 0;
