-- Records of `sqlock run --once`: a row for each key whose command succeeded.
-- It stays until `sqlock once forget` removes it, to run the command again.
-- DONE_DATE is microseconds since 1970-01-01 UTC.
CREATE TABLE IF NOT EXISTS INT_DONE (
    LOCK_KEY  TEXT    NOT NULL,
    REGION    TEXT    NOT NULL,
    DONE_DATE INTEGER NOT NULL DEFAULT (
        CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
        * 1000),
    CLIENT_ID TEXT    NOT NULL,
    FENCE     INTEGER NOT NULL,
    LOCK_NAME TEXT,
    PRIMARY KEY (LOCK_KEY, REGION)
) WITHOUT ROWID;
