-- Adds the tables INT_LOCK_SERVER and INT_LOCK_MARK to sqlock's tables of an earlier
-- version, or the columns that the first one lacked there, with PostgreSQL 12 and
-- later.
--
--     psql -v ON_ERROR_STOP=1 -f upgrade-server.sql DATABASE
--
-- Locks may be held and taken meanwhile.  From then on a registry that is opened
-- grants nothing on a server that was just promoted, until the longest lease that
-- it may have forgotten has run out.  Programs that were started before, and those
-- of an earlier version, grant at once: replace them.  Those
-- of the version that lacked the columns read the longest TTL once: let neither
-- `sqlock reap` nor `sqlock init --longest-ttl` lower it before all are replaced.  If
-- INT_LOCK has grants for roles, run the grants-*.sql scripts again, too.
DO $upgrade$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_attribute
            WHERE attrelid = to_regclass('INT_LOCK') AND attname = 'queue') THEN
        RAISE EXCEPTION 'nothing was changed: there is no table INT_LOCK of '
            'sqlock with the column QUEUE';
    END IF;

    CREATE TABLE IF NOT EXISTS INT_LOCK_SERVER (
        ID          INTEGER      DEFAULT 1 PRIMARY KEY CHECK (ID = 1),
        EPOCH       VARCHAR(64),
        SINCE       TIMESTAMP    DEFAULT (clock_timestamp() AT TIME ZONE 'UTC')
            NOT NULL,
        GRANTS_FROM TIMESTAMP    DEFAULT (clock_timestamp() AT TIME ZONE 'UTC')
            NOT NULL,
        LONGEST_MS  BIGINT       DEFAULT 30000 NOT NULL,
        NOTE        VARCHAR(255)
    );
    INSERT INTO INT_LOCK_SERVER (ID, LONGEST_MS)
        SELECT 1, greatest(30000, coalesce(max(ceil(extract(epoch FROM
            EXPIRED_AFTER - CREATED_DATE) * 1000)), 0)) FROM INT_LOCK
            WHERE CLIENT_ID IS NOT NULL
        ON CONFLICT DO NOTHING;
    CREATE UNLOGGED TABLE IF NOT EXISTS INT_LOCK_MARK (
        ID    INTEGER     DEFAULT 1 PRIMARY KEY CHECK (ID = 1),
        EPOCH VARCHAR(64) NOT NULL,
        MARK  BIGINT      NOT NULL
    );
    IF NOT EXISTS (SELECT 1 FROM pg_attribute
            WHERE attrelid = to_regclass('INT_LOCK_SERVER') AND
                attname = 'allowed_ms') THEN
        ALTER TABLE INT_LOCK_SERVER
            ADD COLUMN ALLOWED_MS BIGINT DEFAULT 30000 NOT NULL,
            ADD COLUMN LEAST_MS BIGINT DEFAULT 30000 NOT NULL,
            ADD COLUMN CHANGED TIMESTAMP
                DEFAULT (clock_timestamp() AT TIME ZONE 'UTC') NOT NULL;
        UPDATE INT_LOCK_SERVER
            SET ALLOWED_MS = LONGEST_MS, LEAST_MS = LONGEST_MS;
    END IF;
END
$upgrade$;
