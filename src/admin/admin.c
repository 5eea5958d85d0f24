/*
 * admin.c - an operator's calls: show one lock, and free all locks after a
 * restore
 */
#include "admin/info.h"
#include "base/error.h"
#include "lease/options.h"

/* --- one row --- */

int sqlock_show(sqlock_registry *registry, const char *name, sqlock_info **row,
                sqlock_error *err)
{
    struct lk_store *store;
    char key[SQLOCK_KEY_SIZE] = "";
    int rc;

    if (row == NULL)
        return lk_error_null(err, "row");
    *row = NULL;
    rc = lk_store_key(registry, name, &store, key, err);
    if (rc < 0)
        return rc;
    return lk_info_of_key(store, key, row, err);
}

/* --- after a restore --- */

int sqlock_after_restore(sqlock_registry *registry, int64_t *rows,
                         sqlock_error *err)
{
    struct lk_store *store;
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .is_repeatable = true, /* a second run only raises tokens again */
    };
    sqlock_result result = {0};
    int rc;

    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    if (store->statements[SQLOCK_SQL_AFTER_RESTORE].text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this driver cannot free all locks at once");
    lk_store_arguments(store, "", &arguments);
    run.deadline_ns = lk_store_deadline(store);
    rc = lk_store_run(store, SQLOCK_SQL_AFTER_RESTORE, &run, &result, err);
    if (rc == 0 && rows != NULL)
        *rows = result.affected;
    sqlock_result_clear(&result);
    return rc;
}
