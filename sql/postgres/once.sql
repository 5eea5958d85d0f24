-- What was done once and for all (`sqlock run --once`): a row for each key, by
-- its last holder.  Nothing of sqlock removes one: delete a row to have the
-- command run again.  DONE_DATE is UTC, by the database's clock.
CREATE TABLE IF NOT EXISTS INT_DONE (
    LOCK_KEY  CHAR(36)     NOT NULL,
    REGION    VARCHAR(100) NOT NULL,
    DONE_DATE TIMESTAMP    DEFAULT (clock_timestamp() AT TIME ZONE 'UTC')
                           NOT NULL,
    CLIENT_ID CHAR(36)     NOT NULL,
    FENCE     BIGINT       NOT NULL,
    LOCK_NAME VARCHAR(255),
    PRIMARY KEY (LOCK_KEY, REGION)
);
