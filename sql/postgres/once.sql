-- Records of `sqlock run --once`: a row for each key whose command succeeded.
-- It stays until `sqlock once forget` removes it, to run the command again.
-- DONE_DATE is UTC, by the database's clock.
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
