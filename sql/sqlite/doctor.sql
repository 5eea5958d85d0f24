-- The settings that `sqlock doctor` asks a SQLite file for, and what each should
-- be.  The library is built with this file.
--
-- Each statement returns names of settings and their values.  One whose table is
-- missing, or may not be read, is skipped.  `local` says whether client and server
-- are on one machine: always.
--
-- There is no check for network file systems, hard links and files that are mounted
-- on their own: opening them is refused.  sqlock_file_system() is the library's.

SELECT 'journal_mode', journal_mode FROM pragma_journal_mode
UNION ALL SELECT 'synchronous', CASE synchronous WHEN 0 THEN 'off'
  WHEN 1 THEN 'normal' WHEN 2 THEN 'full' ELSE 'extra' END FROM pragma_synchronous
UNION ALL SELECT 'local', 'yes'
UNION ALL SELECT 'file_system', sqlock_file_system();

-- A rule gives a setting's good values, which are patterns as of a shell with `|`
-- between them, or the least one besides 0, which stands for no limit; and below it,
-- what to do otherwise.  An `if` is for the next rule only.  A rule is skipped where
-- the server lacks the setting.

-- durability: journal_mode = wal|delete|truncate|persist, else failure
--     set PRAGMA journal_mode = WAL: a crash damages the file
-- isolation: journal_mode = wal, else warning
--     set PRAGMA journal_mode = WAL: whoever reads the file keeps locks from being
--     taken and renewed
-- durability: synchronous = normal|full|extra, else failure
--     our sessions set it: something has undone it
-- sharing: file_system = local, else warning
--     the file is in a container's own layer (overlay), which no other container
--     sees: put its directory on a volume
