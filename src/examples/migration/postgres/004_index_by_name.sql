-- outside a transaction
DROP INDEX CONCURRENTLY IF EXISTS migrated_customer_by_name;
CREATE INDEX CONCURRENTLY migrated_customer_by_name ON migrated_customer (name);
