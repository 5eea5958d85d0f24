/*
 * info.c - turn rows of the lock table, in any layout, into sqlock_info, and
 * read from them what no column says: whether a lease is free, over or broken,
 * and whether its holder runs sqlock
 */
#include "admin/info.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "admin/sharers.h"
#include "admin/waiters.h"
#include "base/error.h"
#include "lease/leader_text.h"
#include "lease/row.h"

#define TEXTS_SIZE 65536

/* A block of names and holders: two allocations for each of a million rows
 * would take as long as reading the rows. */
struct texts {
    struct texts *next;
    size_t used, size;
    char bytes[];
};

/* A list of rows.  The application only sees `rows`. */
struct lk_info_list {
    struct texts *texts;
    bool tells; /* of the last row: its leader does */
    sqlock_info rows[];
};

/* Return the holder of the lease, or NULL if that is unknown.  A HOLDER that
 * does not begin with the row's CLIENT_ID was left by an earlier holder: the
 * present holder is a Spring peer, which does not know the column.  Spring's
 * layouts have no HOLDER.  For a free row, return "broken by ..." if the lease
 * was broken; otherwise return NULL and set *last to the last holder. */
static const char *holder_of(const sqlock_info *info, const sqlock_value *cell,
                             sqlock_layout layout, const char **last)
{
    size_t length = strlen(info->client_id);
    const char *text;

    *last = NULL;
    if (layout != SQLOCK_LAYOUT_SQLOCK)
        return NULL;
    if (length == 0) {
        if (cell->type != SQLOCK_TEXT || cell->length < SQLOCK_KEY_SIZE)
            return NULL;
        text = cell->text + SQLOCK_KEY_SIZE;
        if (lk_holder_is_break(text))
            return text;
        *last = text;
        return NULL;
    }
    if (cell->type == SQLOCK_TEXT &&
        strncmp(cell->text, info->client_id, length) == 0 &&
        cell->text[length] == ' ')
        return cell->text + length + 1;
    return LK_INFO_PEER;
}

static struct texts *texts_new(struct texts *next, size_t least)
{
    size_t size = next == NULL ? 256 : TEXTS_SIZE;
    struct texts *texts;

    if (size < least)
        size = least;
    texts = malloc(sizeof *texts + size);
    if (texts == NULL)
        return NULL;
    texts->next = next;
    texts->used = 0;
    texts->size = size;
    return texts;
}

static int copy_text(struct lk_info_list *list, char **out, const char *text)
{
    struct texts *texts = list->texts;
    size_t size;

    if (text == NULL)
        return 0;
    size = strlen(text) + 1;
    if (texts == NULL || texts->size - texts->used < size) {
        texts = texts_new(texts, size);
        if (texts == NULL)
            return SQLOCK_ENOMEM;
        list->texts = texts;
    }
    *out = memcpy(texts->bytes + texts->used, text, size);
    texts->used += size;
    return 0;
}

/* Return whether a Spring service has taken over a row that sqlock had used.
 * Spring 7 leaves CREATED_DATE as it is then: when the earlier holder acquired
 * the lock. */
static bool has_others_date(const sqlock_info *info, const char *holder)
{
    return holder != NULL && strcmp(holder, LK_INFO_PEER) == 0 &&
           info->token != 0;
}

/* Add the waiters, if the layout tells of them. */
static int add_waiters(struct lk_info_list *list, sqlock_info *out,
                       const sqlock_value *cell, int64_t now_us,
                       const struct lk_store *store)
{
    struct lk_waiters waiters;
    int rc;

    out->waiters = -1;
    if (store->layout != SQLOCK_LAYOUT_SQLOCK)
        return 0;
    rc = lk_waiters_read(lk_cell_text(cell), store->number, now_us, &waiters);
    if (rc == 0)
        rc = copy_text(list, &out->waiter_names, waiters.text);
    out->waiters = waiters.count;
    out->place = waiters.place;
    free(waiters.text);
    return rc;
}

/* Add who shares the lock.  A lease of a group is held since the sharer came
 * who has it for longest; CREATED_DATE says other things of a group. */
static int add_sharers(struct lk_info_list *list, sqlock_info *out,
                       const sqlock_value *cell, int64_t now_us)
{
    struct lk_sharing sharing;
    int rc;

    rc = lk_sharing_read(&sharing, lk_cell_text(cell), out->client_id,
                         out->state, now_us);
    if (rc < 0)
        return rc;
    out->mode = sharing.is_shared ? SQLOCK_SHARED : SQLOCK_EXCLUSIVE;
    out->permits = sharing.permits;
    out->taken = sharing.taken;
    out->sharers = sharing.count;
    if (sharing.since_us != 0)
        out->acquired_at_us = sharing.since_us;
    if (sharing.holder != NULL)
        rc = copy_text(list, &out->holder, sharing.holder);
    if (rc == 0)
        rc = copy_text(list, &out->sharer_names, sharing.names);
    lk_sharing_clear(&sharing);
    return rc;
}

/* Add what the leader has published, who has the lock alone. */
static int add_text(struct lk_info_list *list, sqlock_info *out,
                    const sqlock_value *cell)
{
    struct lk_leader leader;

    if (out->state != SQLOCK_HELD ||
        !lk_leader_read(&leader, lk_cell_text(cell), out->client_id))
        return 0;
    list->tells = leader.tells;
    return copy_text(list, &out->text, leader.text);
}

/* Set for how long the lease has been held; one that has expired was held until
 * it did. */
static void set_held(sqlock_info *out, int64_t now_us)
{
    int64_t until_us =
        out->state == SQLOCK_EXPIRED ? out->expires_at_us : now_us;

    if (out->state != SQLOCK_FREE && until_us > out->acquired_at_us)
        out->held_ms = (until_us - out->acquired_at_us) / 1000;
}

static int info_from_cells(struct lk_info_list *list, sqlock_info *out,
                           const sqlock_value *cells, size_t columns,
                           struct lk_store *store)
{
    int64_t remaining_us = lk_cell_integer(&cells[LK_INFO_REMAINING]);
    /* by the database's clock */
    int64_t now_us = lk_cell_integer(&cells[LK_INFO_EXPIRES]) - remaining_us;
    const char *holder;
    const char *last;
    int rc;

    memset(out, 0, sizeof *out);
    lk_cell_id(out->key, &cells[LK_INFO_KEY]);
    lk_cell_id(out->client_id, &cells[LK_INFO_CLIENT]);
    out->token = lk_cell_integer(&cells[LK_INFO_TOKEN]);
    out->acquired_at_us = lk_cell_integer(&cells[LK_INFO_ACQUIRED]);
    out->expires_at_us = lk_cell_integer(&cells[LK_INFO_EXPIRES]);
    if (out->client_id[0] == '\0') {
        out->state = SQLOCK_FREE;
    } else if (remaining_us < 0) {
        out->state = SQLOCK_EXPIRED;
    } else {
        out->state = SQLOCK_HELD;
        out->remaining_ms = remaining_us / 1000;
    }
    rc = copy_text(list, &out->name, lk_cell_text(&cells[LK_INFO_NAME]));
    holder = holder_of(out, &cells[LK_INFO_HOLDER], store->layout, &last);
    if (rc == 0)
        rc = copy_text(list, &out->holder, holder);
    if (rc == 0)
        rc = add_sharers(list, out, &cells[LK_INFO_SHARERS], now_us);
    if (rc == 0)
        rc = add_text(list, out, &cells[LK_INFO_LEADER]);
    set_held(out, now_us);
    if (has_others_date(out, holder)) {
        out->acquired_at_us = 0;
        out->held_ms = -1;
    }
    if (rc == 0)
        rc = copy_text(list, &out->last_holder, last);
    if (rc == 0)
        rc = add_waiters(list, out, &cells[LK_INFO_QUEUE], now_us, store);
    if (rc == 0 && columns > LK_INFO_REGION)
        rc =
            copy_text(list, &out->region, lk_cell_text(&cells[LK_INFO_REGION]));
    return rc;
}

static struct lk_info_list *list_of(sqlock_info *rows)
{
    return rows == NULL
               ? NULL
               : (void *)((char *)rows - offsetof(struct lk_info_list, rows));
}

void sqlock_info_free(sqlock_info *rows, size_t count)
{
    struct lk_info_list *list = list_of(rows);

    (void)count;
    while (list != NULL && list->texts != NULL) {
        struct texts *next = list->texts->next;

        free(list->texts);
        list->texts = next;
    }
    free(list);
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

int lk_info_append(struct lk_store *store, sqlock_info **rows, size_t *count,
                   const sqlock_result *page, sqlock_error *err)
{
    struct lk_info_list *grown;

    if (page->rows == 0)
        return 0;
    if (page->columns < LK_INFO_COLUMNS)
        return lk_error(err, SQLOCK_EDATABASE, "a row has too few columns");
    grown = realloc(list_of(*rows),
                    sizeof *grown + (*count + page->rows) * sizeof **rows);
    if (grown == NULL)
        return lk_error_nomem(err);
    if (*rows == NULL)
        *grown = (struct lk_info_list){.texts = NULL};
    *rows = grown->rows;
    for (size_t row = 0; row < page->rows; row++) {
        int rc = info_from_cells(grown, &grown->rows[*count],
                                 &page->cells[row * page->columns],
                                 page->columns, store);

        (*count)++;
        if (rc < 0)
            return lk_error_nomem(err);
    }
    return 0;
}

int lk_info_of_key(struct lk_store *store, const char *key, sqlock_info **out,
                   sqlock_error *err)
{
    struct lk_arguments arguments;
    sqlock_result result = {0};
    sqlock_info *row = NULL;
    size_t count = 0;
    int rc;

    lk_store_arguments(store, key, &arguments);
    rc = lk_info_read(store, SQLOCK_SQL_READ, &arguments, &result, err);
    if (rc == 0)
        rc = lk_info_append(store, &row, &count, &result, err);
    sqlock_result_clear(&result);
    if (rc == 0 && count > 1)
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "%s has two rows for one key: its primary key is missing",
                      store->table.plain);
    if (rc == 0 && row == NULL)
        rc = lk_error(err, SQLOCK_ENOTFOUND, "%s has no row for %s",
                      store->table.plain, key);
    if (rc < 0) {
        sqlock_info_free(row, count);
        return rc;
    }
    *out = row;
    return 0;
}

bool lk_info_tells(sqlock_info *row)
{
    return list_of(row)->tells;
}

/* --- sorting --- */

/* A row with its sort keys: a number, then a text.  `first` holds the first
 * bytes after the prefix that all texts share; nearly always these decide which
 * of two texts is less. */
struct place {
    int64_t number;
    uint64_t first;
    const char *text;
    const sqlock_info *row;
};

static int64_t number_of(const sqlock_info *row, sqlock_sort order)
{
    switch (order) {
    case SQLOCK_SORT_HELD: /* nobody holds what has expired: at the end */
        if (row->held_ms < 0)
            return INT64_MAX;
        return row->state == SQLOCK_HELD ? row->acquired_at_us
                                         : INT64_MAX - row->held_ms;
    case SQLOCK_SORT_REMAINING:
        return row->expires_at_us;
    case SQLOCK_SORT_TOKEN:
        return INT64_MAX - (row->token > 0 ? row->token : 0);
    default:
        return 0;
    }
}

static uint64_t first_of(const char *text)
{
    uint64_t first = 0;

    for (size_t i = 0; i < sizeof first; i++) {
        first = (first << 8) | (unsigned char)*text;
        text += *text != '\0';
    }
    return first;
}

static size_t shared_by(const struct place *places, size_t count)
{
    size_t shared = strlen(places[0].text);

    for (size_t i = 1; i < count && shared > 0; i++) {
        size_t same = 0;

        while (same < shared && places[i].text[same] == places[0].text[same])
            same++;
        shared = same;
    }
    return shared;
}

static const char *region_of(const sqlock_info *row)
{
    return row->region != NULL ? row->region : "";
}

static int compare(const void *one, const void *other)
{
    const struct place *a = one;
    const struct place *b = other;
    int difference;

    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    difference = strcmp(a->text, b->text);
    return difference != 0 ? difference
                           : strcmp(region_of(a->row), region_of(b->row));
}

static void put_in_order(struct place *places, const sqlock_info *rows,
                         size_t count, sqlock_sort order)
{
    size_t shared;

    for (size_t i = 0; i < count; i++) {
        const sqlock_info *row = &rows[i];

        places[i] =
            (struct place){.number = number_of(row, order),
                           .text = row->name != NULL ? row->name : row->key,
                           .row = row};
    }
    shared = shared_by(places, count);
    for (size_t i = 0; i < count; i++)
        places[i].first = first_of(places[i].text + shared);
    qsort(places, count, sizeof *places, compare);
}

int lk_info_sort(sqlock_info **rows, size_t count, sqlock_sort order,
                 sqlock_error *err)
{
    struct lk_info_list *list = list_of(*rows);
    struct lk_info_list *sorted;
    struct place *places;

    if (list == NULL || count == 0)
        return 0;
    places = calloc(count, sizeof *places);
    sorted = malloc(sizeof *sorted + count * sizeof **rows);
    if (places == NULL || sorted == NULL) {
        free(places);
        free(sorted);
        return lk_error_nomem(err);
    }
    put_in_order(places, list->rows, count, order);
    sorted->texts = list->texts;
    for (size_t i = 0; i < count; i++)
        sorted->rows[i] = *places[i].row;
    free(places);
    free(list);
    *rows = sorted->rows;
    return 0;
}
