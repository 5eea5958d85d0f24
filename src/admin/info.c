/*
 * info.c - info rows of the lock table: read, and told as the API does.
 */
#include "admin/info.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lease/skew.h"

#define INFO_COLUMNS 8

static int64_t integer_of(const sqlock_value *cell)
{
    return cell->type == SQLOCK_INT64 ? cell->integer : 0;
}

static void copy_id(char out[SQLOCK_KEY_SIZE], const sqlock_value *cell)
{
    size_t length = cell->type == SQLOCK_TEXT ? cell->length : 0;

    if (length >= SQLOCK_KEY_SIZE)
        length = SQLOCK_KEY_SIZE - 1;
    memcpy(out, length > 0 ? cell->text : "", length);
    out[length] = '\0';
}

/* HOLDER begins with its CLIENT_ID; where it does not, somebody took the lock
 * who does not know the column: a Spring peer.  Its own layouts have none.  A
 * release leaves it empty: what a free row says is who broke the lease. */
static const char *holder_of(const sqlock_info *info, const sqlock_value *cell,
                             sqlock_layout layout)
{
    size_t length = strlen(info->client_id);

    if (layout != SQLOCK_LAYOUT_SQLOCK)
        return NULL;
    if (length == 0)
        return cell->type == SQLOCK_TEXT && cell->length >= SQLOCK_KEY_SIZE
                   ? cell->text + SQLOCK_KEY_SIZE
                   : NULL;
    if (cell->type == SQLOCK_TEXT &&
        strncmp(cell->text, info->client_id, length) == 0 &&
        cell->text[length] == ' ')
        return cell->text + length + 1;
    return LK_INFO_PEER;
}

static int copy_text(char **out, const char *text)
{
    if (text == NULL)
        return 0;
    *out = strdup(text);
    return *out != NULL ? 0 : SQLOCK_ENOMEM;
}

static int info_from_cells(sqlock_info *out, const sqlock_value *cells,
                           const struct lk_store *store)
{
    int64_t remaining_us = integer_of(&cells[3]);
    int rc;

    memset(out, 0, sizeof *out);
    copy_id(out->key, &cells[0]);
    copy_id(out->client_id, &cells[1]);
    out->token = integer_of(&cells[2]);
    out->acquired_at_us = integer_of(&cells[4]);
    out->expires_at_us = integer_of(&cells[5]);
    if (out->client_id[0] == '\0') {
        out->state = SQLOCK_FREE;
    } else if (remaining_us < 0) {
        out->state = SQLOCK_EXPIRED;
    } else {
        out->state = SQLOCK_HELD;
        out->remaining_ms = remaining_us / 1000;
    }
    out->ahead_ms = (lk_skew_us(store, cells) + 999) / 1000;
    rc = copy_text(&out->name,
                   cells[6].type == SQLOCK_TEXT ? cells[6].text : NULL);
    if (rc == 0)
        rc = copy_text(&out->holder, holder_of(out, &cells[7], store->layout));
    return rc;
}

void sqlock_info_free(sqlock_info *rows, size_t count)
{
    if (rows == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        free(rows[i].name);
        free(rows[i].holder);
    }
    free(rows);
}

int lk_info_read(struct lk_store *store, sqlock_statement_kind kind,
                 const struct lk_arguments *arguments, sqlock_result *result,
                 sqlock_error *err)
{
    struct lk_run run = {
        .arguments = arguments,
        .deadline_ns = lk_store_deadline(store),
        .is_repeatable = true,
    };

    return lk_store_run(store, kind, &run, result, err);
}

int lk_info_append(const struct lk_store *store, sqlock_info **rows,
                   size_t *count, const sqlock_result *page, sqlock_error *err)
{
    sqlock_info *grown;

    if (page->rows == 0)
        return 0;
    if (page->columns < INFO_COLUMNS)
        return lk_error(err, SQLOCK_EDATABASE, "a row has too few columns");
    grown = realloc(*rows, (*count + page->rows) * sizeof *grown);
    if (grown == NULL)
        return lk_error_nomem(err);
    *rows = grown;
    for (size_t row = 0; row < page->rows; row++) {
        int rc = info_from_cells(&grown[*count],
                                 &page->cells[row * page->columns], store);

        (*count)++;
        if (rc < 0)
            return lk_error_nomem(err);
    }
    return 0;
}
