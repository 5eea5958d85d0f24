ALTER TABLE migrated_customer ADD COLUMN mail VARCHAR(200);
UPDATE migrated_customer SET mail = lower(name) || '@example.org';
