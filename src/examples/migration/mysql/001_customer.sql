-- DDL commits by itself: written so that it may run twice
CREATE TABLE IF NOT EXISTS migrated_customer (
    id BIGINT PRIMARY KEY,
    name VARCHAR(100) NOT NULL,
    mail VARCHAR(200)
);
