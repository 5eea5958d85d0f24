-- The view INT_LOCK_NOW, for whoever looks with psql: a row for each lock that is
-- held, reserved or waited for, with PostgreSQL 12 and later.
--
--     psql -v ON_ERROR_STOP=1 -f now.sql DATABASE
--
-- `sqlock init` makes it together with the table.  A table of an earlier version
-- gets it from this script, while it is in use; where roles have grants, run
-- grants-observer.sql and grants-operator.sql again then.  Nothing in sqlock
-- reads the view.  To change the type of a column of INT_LOCK, drop it before, and
-- make it anew.
--
-- SINCE is a time in the zone of the session; ENDS_IN is in seconds.  The texts of
-- QUEUE and SHARERS are cut at their fixed places (src/lease/ticket.h and
-- sharer.h), and not read as JSON: one that somebody has spoiled ends no query.
CREATE OR REPLACE VIEW INT_LOCK_NOW AS
SELECT L.REGION, coalesce(L.LOCK_NAME, L.LOCK_KEY::varchar) AS NAME,
    CASE WHEN L.CLIENT_ID IS NULL THEN 'free'
        WHEN L.EXPIRED_AFTER < T.NOW THEN 'expired' ELSE 'held' END AS STATE,
    CASE WHEN L.CLIENT_ID IS NULL THEN NULL
        WHEN S.GROUP_ID THEN 'shared' ELSE 'exclusive' END AS MODE,
    CASE WHEN L.CLIENT_ID IS NULL THEN NULL WHEN S.GROUP_ID THEN S.HOLDER
        WHEN left(L.HOLDER, 36) = L.CLIENT_ID THEN substr(L.HOLDER, 38)
        ELSE 'peer' END AS HOLDER,
    CASE WHEN L.CLIENT_ID IS NULL THEN NULL
        WHEN S.GROUP_ID AND S.SINCE IS NOT NULL
        THEN to_timestamp(S.SINCE::bigint / 1000000.0)
        -- A Spring service leaves the date of the holder before it.
        WHEN left(L.HOLDER, 36) = L.CLIENT_ID OR
            L.HOLDER IS NULL AND L.FENCE = 0
        THEN L.CREATED_DATE AT TIME ZONE 'UTC' END AS SINCE,
    CASE WHEN L.CLIENT_ID IS NOT NULL
        THEN round(extract(epoch FROM L.EXPIRED_AFTER - T.NOW)::numeric, 1)
        END AS ENDS_IN,
    S.SHARERS, S.TAKEN,
    nullif(substr(L.SHARERS, 50, 6), '000000')::integer AS PERMITS,
    Q.WAITERS, Q.FIRST_WAITER
FROM INT_LOCK AS L,
    LATERAL (SELECT C.NOW AT TIME ZONE 'UTC' AS NOW,
            (extract(epoch FROM C.NOW) * 1000000)::bigint::text AS US
        FROM (SELECT clock_timestamp() AS NOW) AS C) AS T,
    LATERAL (SELECT coalesce(L.CLIENT_ID = substr(L.SHARERS, 7, 36), false)
            AS GROUP_ID, count(*) AS SHARERS,
            coalesce(sum(substr(E.E, 76, 6)::integer), 0) AS TAKEN,
            min(substr(E.E, 58, 16)) AS SINCE,
            (array_agg(substr(E.E, 107) ORDER BY E.N))[1] AS HOLDER
        FROM unnest(string_to_array(substr(L.SHARERS, 63), '"],'))
            WITH ORDINALITY AS E (E, N)
        WHERE L.CLIENT_ID = substr(L.SHARERS, 7, 36) AND
            substr(E.E, 41, 16) >= T.US AND
            E.E ~ '^\["[^"]{36}",\d{16},\d{16},"\d{6}","\d{19}","') AS S,
    LATERAL (SELECT count(*) AS WAITERS,
            (array_agg(substr(E.E, 85) ORDER BY E.N))[1] AS FIRST_WAITER
        FROM unnest(string_to_array(substr(L.QUEUE, 28), '"],'))
            WITH ORDINALITY AS E (E, N)
        WHERE substr(E.E, 41, 16) >= T.US AND
            E.E ~ '^\["[^"]{36}",\d{16},\d{16},"\d{6}","') AS Q
WHERE L.REGION NOT LIKE '%#tx' AND (Q.WAITERS > 0 OR
    L.CLIENT_ID IS NOT NULL AND L.EXPIRED_AFTER >= T.NOW);
