CREATE TABLE IF NOT EXISTS migrated_note (
    customer BIGINT NOT NULL,
    note VARCHAR(1000) NOT NULL,
    INDEX migrated_note_by_customer (customer)
);
