/*
 * version.c - compare-and-set on the application's tables: the WHERE of an
 * UPDATE names the version from which the new values were computed (F33)
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/writer.h"
#include "tx/tx.h"

#define SET_MAX 32

/* Write the version column as it is compared: a point in time as microseconds,
 * which do not depend on the session's format. */
static void write_version(FILE *out, const sqlock_tx *tx,
                          const struct lk_tx_table *table)
{
    if (table->kind == SQLOCK_VERSION_TIMESTAMP)
        lk_tx_write_expression(out, tx->part->timestamp_us, table->version);
    else
        (void)fputs(table->version, out);
}

/* --- reading --- */

static int take_version(sqlock_row_version *out, const sqlock_value *cell,
                        sqlock_version_kind kind, sqlock_error *err)
{
    memset(out, 0, sizeof *out);
    if (cell->type == SQLOCK_NULL)
        return lk_error(err, SQLOCK_EINVAL, "the row's version is null");
    if (cell->type == SQLOCK_TEXT && kind != SQLOCK_VERSION_STATE)
        return lk_error(err, SQLOCK_EINVAL, "the version column is not %s",
                        kind == SQLOCK_VERSION_INTEGER ? "integer"
                                                       : "point in time");
    if (cell->type == SQLOCK_TEXT && cell->length >= sizeof out->text)
        return lk_error(err, SQLOCK_EINVAL, "the state has more than %zu bytes",
                        sizeof out->text - 1);
    out->type = cell->type;
    out->integer = cell->integer;
    if (cell->type == SQLOCK_TEXT)
        memcpy(out->text, cell->text, cell->length);
    return 0;
}

static int read_version(sqlock_tx *tx, const struct lk_tx_row *row,
                        const char *lock, sqlock_row_version *out,
                        sqlock_error *err)
{
    const struct lk_tx_table *table = &row->table;
    sqlock_result result = {0};
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);
    char *text;
    int rc;

    if (stream == NULL)
        return lk_error_nomem(err);
    (void)fputs("SELECT ", stream);
    write_version(stream, tx, table);
    (void)fprintf(stream, " FROM %s WHERE %s = ?%s", table->name, table->key,
                  lock != NULL ? lock : "");
    text = lk_writer_close(&writer);
    if (text == NULL)
        return lk_error_nomem(err);
    rc = lk_tx_query(tx, text, &row->key, 1, &result, err);
    free(text);
    if (rc == 0 && result.rows == 0)
        rc = lk_error(err, SQLOCK_ENOTFOUND, "there is no such row");
    else if (rc == 0 && result.rows > 1)
        rc = lk_error(err, SQLOCK_EINVAL,
                      "%zu rows have that key: the key column must be unique",
                      result.rows);
    else if (rc == 0)
        rc = take_version(out, &result.cells[0], table->kind, err);
    sqlock_result_clear(&result);
    return rc;
}

int sqlock_tx_version(sqlock_tx *tx, const sqlock_table *table,
                      const sqlock_value *key, sqlock_row_version *version,
                      sqlock_error *err)
{
    struct lk_tx_row row;
    int rc = lk_tx_row_read(&row, tx, table, LK_TX_VERSION, key, err);

    if (rc == 0 && version == NULL)
        rc = lk_error_null(err, "version");
    return rc < 0 ? rc : read_version(tx, &row, NULL, version, err);
}

/* --- updating --- */

struct update {
    sqlock_tx *tx;
    struct lk_tx_row row;
    const sqlock_row_version *expected;
    const sqlock_assignment *set;
    size_t count;
    /* among the assigned values; NULL: not there */
    const sqlock_value *next_state;
    const sqlock_value *next_key;
    sqlock_value values[SET_MAX + 2];
    size_t value_count;
};

static sqlock_value value_of(const sqlock_row_version *version)
{
    return version->type == SQLOCK_TEXT ? sqlock_text(version->text)
                                        : sqlock_integer(version->integer);
}

static int check_expected(const struct update *update, sqlock_error *err)
{
    const sqlock_row_version *expected = update->expected;
    bool is_state = update->row.table.kind == SQLOCK_VERSION_STATE;

    if (expected == NULL || expected->type == SQLOCK_NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the expected version is null, which equals nothing");
    if (expected->type != SQLOCK_INT64 && !is_state)
        return lk_error(err, SQLOCK_EINVAL,
                        "the expected version is not an integer");
    if (expected->type == SQLOCK_TEXT &&
        memchr(expected->text, '\0', sizeof expected->text) == NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the expected state is not NUL-terminated");
    if (update->row.table.kind == SQLOCK_VERSION_INTEGER &&
        expected->integer == INT64_MAX)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the version is the greatest integer, so there is no next one");
    return 0;
}

/* Write the assignments, "a = ?, b = ?", and that of the next version unless it
 * is a state; collect the values. */
static int write_assignments(FILE *out, struct update *update,
                             sqlock_error *err)
{
    const sqlock_dialect *dialect = update->tx->driver->dialect;
    sqlock_row_version next;
    char quoted[LK_QUOTED_SIZE];
    int rc;

    for (size_t i = 0; i < update->count; i++) {
        const sqlock_assignment *one = &update->set[i];

        rc = lk_tx_quote(quoted, "an assignment's column", one->column, dialect,
                         err);
        if (rc == 0)
            rc = lk_value_check("an assignment's value", &one->value, err);
        if (rc < 0)
            return rc;
        if (lk_tx_is_same(quoted, update->row.table.version, dialect)) {
            if (update->row.table.kind != SQLOCK_VERSION_STATE)
                return lk_error(
                    err, SQLOCK_EINVAL,
                    "the version column must not be among the assignments");
            update->next_state = &one->value;
        }
        if (lk_tx_is_same(quoted, update->row.table.key, dialect))
            update->next_key = &one->value;
        (void)fprintf(out, "%s%s = ?", i > 0 ? ", " : "", quoted);
        update->values[update->value_count++] = one->value;
    }
    if (update->row.table.kind != SQLOCK_VERSION_STATE) {
        (void)fprintf(out, "%s%s = ", update->count > 0 ? ", " : "",
                      update->row.table.version);
        if (update->row.table.kind == SQLOCK_VERSION_INTEGER)
            (void)fprintf(out, "%s + 1", update->row.table.version);
        else
            lk_tx_write_expression(out, update->tx->part->next_timestamp,
                                   update->row.table.version);
        return 0;
    }
    if (update->next_state == NULL || update->next_state->type == SQLOCK_NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "an update of a state must assign the next one, and it "
                        "must not be null");
    return take_version(&next, update->next_state, SQLOCK_VERSION_STATE, err);
}

/* Write the condition that the row has the expected version.  A text is
 * compared by its bytes, as the application compares what it has read. */
static void write_expected(FILE *out, const struct update *update)
{
    if (update->expected->type == SQLOCK_TEXT) {
        lk_tx_write_expression(out, update->tx->part->same_text,
                               update->row.table.version);
    } else {
        write_version(out, update->tx, &update->row.table);
        (void)fputs(" = ?", out);
    }
}

/* Write the UPDATE.  Return its text, which the caller frees; NULL on failure,
 * with the code in *rc. */
static char *write_update(struct update *update, int *rc, sqlock_error *err)
{
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);
    char *text;

    if (out == NULL) {
        *rc = lk_error_nomem(err);
        return NULL;
    }
    (void)fprintf(out, "UPDATE %s SET ", update->row.table.name);
    *rc = write_assignments(out, update, err);
    (void)fprintf(out, " WHERE %s = ? AND ", update->row.table.key);
    write_expected(out, update);
    update->values[update->value_count++] = update->row.key;
    update->values[update->value_count++] = value_of(update->expected);
    text = lk_writer_close(&writer);
    if (text == NULL && *rc == 0)
        *rc = lk_error_nomem(err);
    if (*rc < 0) {
        free(text);
        return NULL;
    }
    return text;
}

static bool is_same(const sqlock_row_version *version,
                    const sqlock_value *value)
{
    if (version->type != value->type)
        return false;
    return version->type == SQLOCK_TEXT
               ? strcmp(version->text, value->text) == 0
               : version->integer == value->integer;
}

static bool stays_in_state(const struct update *update)
{
    sqlock_value expected = value_of(update->expected);
    sqlock_row_version next;

    return update->row.table.kind == SQLOCK_VERSION_STATE &&
           take_version(&next, update->next_state, update->row.table.kind,
                        NULL) == 0 &&
           is_same(&next, &expected);
}

/* Find out why nothing was changed.  Return 1 if the row has the expected
 * state, which is also the next one, and is locked now; otherwise an error. */
static int examine(struct update *update, sqlock_error *err)
{
    sqlock_value expected = value_of(update->expected);
    sqlock_row_version found = {.type = SQLOCK_NULL};
    int rc;

    rc = read_version(update->tx, &update->row, NULL, &found, err);
    /* The version seems to be the expected one: read it with a lock, which
     * shows the newest row and not the snapshot's. */
    if (rc == 0 && is_same(&found, &expected))
        rc = read_version(update->tx, &update->row,
                          update->tx->part->update_wait, &found, err);
    if (rc < 0)
        return rc;
    if (is_same(&found, &expected) && stays_in_state(update))
        return 1;
    if (is_same(&found, &expected))
        return lk_error(err, SQLOCK_EINVAL,
                        "the version column cannot store a later version: its "
                        "type is too narrow or too coarse");
    return lk_error(err, SQLOCK_ECONFLICT,
                    "the row does not have the expected version");
}

/* Return whether a version is the greatest integer of a column narrower than 64
 * bits.  A server that is not strict leaves such a version unchanged. */
static bool may_be_at_limit(int64_t version)
{
    static const int64_t limits[] = {127,     255,      32767,     65535,
                                     8388607, 16777215, INT32_MAX, UINT32_MAX};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (version == limits[i])
            return true;
    return false;
}

/* Set *next to the version that the row has now: computed if that is safe,
 * otherwise read.  Return 0 or an error. */
static int take_next(struct update *update, sqlock_row_version *next,
                     sqlock_error *err)
{
    const sqlock_row_version *expected = update->expected;
    int rc;

    switch (update->row.table.kind) {
    case SQLOCK_VERSION_STATE:
        return take_version(next, update->next_state, update->row.table.kind,
                            err);
    case SQLOCK_VERSION_INTEGER:
        if (!may_be_at_limit(expected->integer)) {
            memset(next, 0, sizeof *next);
            next->type = SQLOCK_INT64;
            next->integer = expected->integer + 1;
            return 0;
        }
        break;
    case SQLOCK_VERSION_TIMESTAMP:
        break;
    }
    memset(next, 0, sizeof *next);
    if (update->next_key != NULL)
        update->row.key = *update->next_key;
    rc = read_version(update->tx, &update->row, NULL, next, err);
    if (rc == 0 && next->integer <= expected->integer)
        rc = lk_error(err, SQLOCK_EINVAL,
                      "the version column cannot store a later version: its "
                      "type is too narrow or too coarse");
    return rc;
}

/* Send the UPDATE.  Return 1 if a row was changed, 0 if none was, or an
 * error. */
static int send_update(struct update *update, const char *text,
                       sqlock_error *err)
{
    sqlock_result result = {0};
    int64_t affected;
    int rc;

    rc = lk_tx_query(update->tx, text, update->values, update->value_count,
                     &result, err);
    affected = result.affected;
    sqlock_result_clear(&result);
    if (rc < 0)
        return rc;
    if (affected > 1)
        return lk_tx_spoil(update->tx,
                           "several rows have that key: the key column must be "
                           "unique",
                           err);
    return affected == 1;
}

static int run_update(struct update *update, sqlock_row_version *next,
                      sqlock_error *err)
{
    sqlock_row_version unwanted;
    sqlock_error own = {0};
    char *text;
    int rc;

    text = write_update(update, &rc, err);
    if (text == NULL)
        return rc;
    rc = send_update(update, text, err);
    if (rc == 0) {
        rc = examine(update, err);
        /* Either MySQL has not counted a row that already had the new values,
         * or the row was different for a moment.  It is locked now, so send the
         * UPDATE again. */
        if (rc > 0)
            rc = send_update(update, text, err);
    }
    free(text);
    if (rc < 0)
        return rc;
    rc = take_next(update, next != NULL ? next : &unwanted, &own);
    /* The row is written, and must not be committed after a refusal. */
    return rc < 0 ? lk_tx_end(update->tx, lk_error_pass(err, &own, rc), &own)
                  : 0;
}

int sqlock_tx_update(sqlock_tx *tx, const sqlock_table *table,
                     const sqlock_value *key,
                     const sqlock_row_version *expected,
                     const sqlock_assignment *set, size_t count,
                     sqlock_row_version *next, sqlock_error *err)
{
    struct update update = {
        .tx = tx,
        .expected = expected,
        .set = set,
        .count = count,
    };
    int rc = lk_tx_row_read(&update.row, tx, table, LK_TX_VERSION, key, err);

    if (rc == 0 && set == NULL && count > 0)
        rc = lk_error_null(err, "set");
    if (rc == 0 && count > SET_MAX)
        rc = lk_error(err, SQLOCK_EINVAL, "at most %d columns can be assigned",
                      SET_MAX);
    if (rc == 0)
        rc = check_expected(&update, err);
    return rc < 0 ? rc : run_update(&update, next, err);
}
