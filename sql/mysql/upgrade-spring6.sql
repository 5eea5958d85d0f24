-- From the four columns of Spring Integration 5.4 to 6.5 to sqlock's own, with
-- MySQL 8.0 and MariaDB 10.6 and later.  No Spring before 7 may use the table
-- from now on.
--
--     mysql --init-command='SET @ttl_ms = 10000' DATABASE < upgrade-spring6.sql
--
-- @ttl_ms is the TTL that all who share the table have agreed on.  Leases that
-- have not run out stay as long as they were meant to be.  A program that still
-- has the table open with four columns can release what it holds, but neither
-- take nor renew a lock: the triggers refuse it, because the others would not see
-- its lease.  They say so as an error of syntax: Spring takes that for final,
-- but tries 45000 again without end, which MariaDB's JDBC driver calls transient.
-- Drop them when every program has been started anew.  To create them takes the
-- privilege TRIGGER (with a binary log, log_bin_trust_function_creators or SUPER,
-- too).
--
-- MySQL commits each statement: the triggers come first, and nothing is taken or
-- renewed from then on until the table is complete.  A statement that does not
-- get its turn within 2 s ends with an error: go on from there.
SET SESSION lock_wait_timeout = 2;

ALTER TABLE INT_LOCK
    ADD COLUMN EXPIRED_AFTER DATETIME(6),
    ADD COLUMN FENCE BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN LOCK_NAME VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    ADD COLUMN HOLDER VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    ALGORITHM = INSTANT;

DELIMITER //
CREATE TRIGGER INT_LOCK_FOUR_COLUMNS_INSERT BEFORE INSERT ON INT_LOCK
FOR EACH ROW
    IF NEW.EXPIRED_AFTER IS NULL THEN
        SIGNAL SQLSTATE '42000' SET MESSAGE_TEXT =
            'INT_LOCK has a new layout: start this program anew';
    END IF//
CREATE TRIGGER INT_LOCK_FOUR_COLUMNS_UPDATE BEFORE UPDATE ON INT_LOCK
FOR EACH ROW
    IF NEW.CREATED_DATE <> OLD.CREATED_DATE
       AND NEW.EXPIRED_AFTER <=> OLD.EXPIRED_AFTER THEN
        SIGNAL SQLSTATE '42000' SET MESSAGE_TEXT =
            'INT_LOCK has a new layout: start this program anew';
    END IF//
DELIMITER ;

UPDATE INT_LOCK
    SET EXPIRED_AFTER = CREATED_DATE + INTERVAL @ttl_ms * 1000 MICROSECOND
    WHERE EXPIRED_AFTER IS NULL;
ALTER TABLE INT_LOCK
    MODIFY COLUMN EXPIRED_AFTER DATETIME(6) NOT NULL AFTER CREATED_DATE,
    ADD CHECK (CLIENT_ID IS NULL OR EXPIRED_AFTER > CREATED_DATE);
