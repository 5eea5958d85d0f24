/*
 * schema.c - the SQL that creates the lock table: print it, run it, check the
 * table
 *
 * These calls take a URL, because a registry cannot be opened before the table
 * exists.
 */
#include <stdlib.h>

#include "base/error.h"
#include "db/drivers.h"
#include "lease/layout.h"
#include "lease/options.h"

/* The database and the table that these calls create or check. */
struct place {
    sqlock_options options;
    struct lk_table table;
    struct lk_db db;
};

static int check_layout(sqlock_layout layout, sqlock_error *err)
{
    if ((int)layout < 0 || (int)layout >= SQLOCK_LAYOUTS)
        return lk_error(err, SQLOCK_EINVAL, "unknown table layout %d",
                        (int)layout);
    return 0;
}

static int render(char **text, const sqlock_dialect *dialect,
                  const struct lk_table *table, sqlock_layout layout,
                  sqlock_error *err)
{
    if (dialect->schema[layout] == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this driver has no such table layout");
    *text = lk_schema_render(dialect->schema[layout], "INT_LOCK", table->plain);
    return *text != NULL ? 0 : lk_error_nomem(err);
}

int sqlock_schema_text(char **text, const char *url,
                       const sqlock_options *options, sqlock_layout layout,
                       sqlock_error *err)
{
    const sqlock_driver *driver;
    sqlock_options complete;
    struct lk_table table;
    int rc;

    if (text == NULL)
        return lk_error(err, SQLOCK_EINVAL, "the text argument is NULL");
    *text = NULL;
    rc = check_layout(layout, err);
    if (rc < 0)
        return rc;
    rc = lk_options_complete(&complete, options, err);
    if (rc < 0)
        return rc;
    rc = lk_driver_find(&driver, url, err);
    if (rc < 0)
        return rc;
    rc = lk_table_from_prefix(&table, complete.table_prefix, driver->dialect,
                              err);
    if (rc < 0)
        return rc;
    return render(text, driver->dialect, &table, layout, err);
}

static int open_place(struct place *place, const char *url,
                      const sqlock_options *options, bool may_create,
                      sqlock_error *err)
{
    int rc;

    rc = lk_options_complete(&place->options, options, err);
    if (rc < 0)
        return rc;
    rc = lk_db_init_for_schema(
        &place->db, url, place->options.connect_timeout_ms, may_create, err);
    if (rc < 0)
        return rc;
    rc = lk_table_from_prefix(&place->table, place->options.table_prefix,
                              place->db.driver->dialect, err);
    if (rc < 0) {
        lk_db_clear(&place->db);
        return rc;
    }
    return 0;
}

int sqlock_schema_check(const char *url, const sqlock_options *options,
                        sqlock_layout *layout, sqlock_error *err)
{
    sqlock_layout found;
    struct place place;
    int rc;

    rc = open_place(&place, url, options, false, err);
    if (rc < 0)
        return rc;
    rc = lk_layout_require(&place.db, &place.table,
                           lk_db_schema_deadline(&place.db), &found, err);
    if (rc == 0 && layout != NULL)
        *layout = found;
    lk_db_clear(&place.db);
    return rc;
}

/* Create the missing table, and detect its layout.  After EBUSY another session
 * may have created the table, and after EUNCERTAIN this session may have. */
static int create_missing(struct place *place, sqlock_layout layout,
                          sqlock_layout *found, sqlock_error *err)
{
    sqlock_error why = {0};
    char *script = NULL;
    int created;
    int rc;

    rc = render(&script, place->db.driver->dialect, &place->table, layout, err);
    if (rc < 0)
        return rc;
    created = lk_db_run_script(&place->db, script,
                               lk_db_schema_deadline(&place->db), &why);
    free(script);
    if (created == 0)
        return lk_layout_require(&place->db, &place->table,
                                 lk_db_schema_deadline(&place->db), found, err);
    if (created == SQLOCK_EBUSY || created == SQLOCK_EUNCERTAIN) {
        rc = lk_layout_detect(&place->db, &place->table,
                              lk_db_schema_deadline(&place->db), found, err);
        if (rc != SQLOCK_ENOTFOUND)
            return rc;
    }
    if (err != NULL)
        *err = why;
    return lk_db_of_reading(created, err); /* no table: nothing is in doubt */
}

static const char *name_of(sqlock_layout layout)
{
    switch (layout) {
    case SQLOCK_LAYOUT_SPRING7:
        return "spring7";
    case SQLOCK_LAYOUT_SPRING6:
        return "spring6";
    default:
        return "sqlock";
    }
}

static int create_in(struct place *place, sqlock_layout layout,
                     sqlock_error *err)
{
    sqlock_layout found;
    int rc;

    rc = lk_layout_detect(&place->db, &place->table,
                          lk_db_schema_deadline(&place->db), &found, err);
    if (rc == SQLOCK_ENOTFOUND)
        rc = create_missing(place, layout, &found, err);
    if (rc == 0 && found != layout)
        rc = lk_error(err, SQLOCK_ECONFLICT,
                      "the table %s exists with the layout %s, not %s",
                      place->table.plain, name_of(found), name_of(layout));
    return rc;
}

int sqlock_schema_create(const char *url, const sqlock_options *options,
                         sqlock_layout layout, sqlock_error *err)
{
    struct place place;
    int rc;

    rc = check_layout(layout, err);
    if (rc < 0)
        return rc;
    rc = open_place(&place, url, options, true, err);
    if (rc < 0)
        return rc;
    rc = create_in(&place, layout, err);
    lk_db_clear(&place.db);
    return rc;
}

void sqlock_free(void *memory)
{
    free(memory);
}
