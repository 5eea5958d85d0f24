INSERT INTO migrated_customer (id, name) VALUES (1, 'Ada');
INSERT INTO migrated_customer (id, name) VALUES (2, 'Grace');
