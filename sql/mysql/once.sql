-- Records of `sqlock run --once`: a row for each key whose command succeeded.
-- It stays until `sqlock once forget` removes it, to run the command again.
-- DONE_DATE is UTC, by the server's clock.

CREATE TABLE IF NOT EXISTS INT_DONE (
    LOCK_KEY CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    REGION VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    DONE_DATE DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CLIENT_ID CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    FENCE BIGINT NOT NULL,
    LOCK_NAME VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (LOCK_KEY, REGION)
) ENGINE=InnoDB;
