-- in a transaction
UPDATE migrated_customer SET mail = CONCAT(LOWER(name), '@example.org');
