CREATE INDEX migrated_customer_by_name ON migrated_customer (name);
