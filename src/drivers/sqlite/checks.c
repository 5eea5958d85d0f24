/*
 * checks.c - the settings of a SQLite file that locks depend on, for doctor
 *
 * There is no check for network file systems, hard links and files that are
 * mounted on their own: opening them is refused (identity.c).
 */
#include "drivers/sqlite/sqlite.h"

static const char *const settings[] = {
    "SELECT 'journal_mode', journal_mode FROM pragma_journal_mode UNION ALL "
    "SELECT 'synchronous', CASE synchronous WHEN 0 THEN 'off' "
    "WHEN 1 THEN 'normal' WHEN 2 THEN 'full' ELSE 'extra' END "
    "FROM pragma_synchronous UNION ALL "
    "SELECT 'local', 'yes' UNION ALL "
    "SELECT 'file_system', sqlock_file_system()",
    NULL,
};

static const sqlock_rule rules[] = {
    {.setting = "journal_mode",
     .check = "durability",
     .good = "wal|delete|truncate|persist",
     .otherwise = SQLOCK_FAILURE,
     .advice = "set PRAGMA journal_mode = WAL: a crash damages the file"},
    {.setting = "journal_mode",
     .check = "isolation",
     .good = "wal",
     .otherwise = SQLOCK_WARNING,
     .advice = "set PRAGMA journal_mode = WAL: whoever reads the file keeps "
               "locks from being taken and renewed"},
    {.setting = "synchronous",
     .check = "durability",
     .good = "normal|full|extra",
     .otherwise = SQLOCK_FAILURE,
     .advice = "our sessions set it: something has undone it"},
    {.setting = "file_system",
     .check = "sharing",
     .good = "local",
     .otherwise = SQLOCK_WARNING,
     .advice = "the file is in a container's own layer (overlay), which no "
               "other container sees: put its directory on a volume"},
    {.setting = NULL},
};

const sqlock_checks lk_checks_sqlite = {
    .settings = settings,
    .rules = rules,
    .session = NULL,
    .compare_bytes = NULL, /* SQLite changes no column */
};
