CREATE TABLE migrated_customer (
    id BIGINT PRIMARY KEY,
    name VARCHAR(100) NOT NULL
);
