/*
 * result.c - store the rows that a driver returns
 *
 * The cells are one array, which may move as it grows.  Their texts are in a
 * chain of blocks, which do not move, so a pointer to a text stays valid while
 * more rows arrive.
 */
#include <stdlib.h>
#include <string.h>

#include "db/driver.h"

/* Bytes of a block; only a longer text gets a larger one. */
#define BLOCK 16384

struct block {
    struct block *next;
    size_t used, size;
    char bytes[];
};

struct memory {
    struct block *blocks;
    size_t filled;   /* cells pushed */
    size_t capacity; /* cells allocated */
};

void sqlock_result_clear(sqlock_result *result)
{
    struct memory *memory;

    if (result == NULL)
        return;
    memory = result->memory;
    while (memory != NULL && memory->blocks != NULL) {
        struct block *next = memory->blocks->next;

        free(memory->blocks);
        memory->blocks = next;
    }
    free(memory);
    free(result->cells);
    memset(result, 0, sizeof *result);
}

/* Empty a result, but keep its memory for the next rows: for a list of many
 * pages, fresh memory from the kernel is much of the cost. */
static void empty(struct memory *memory)
{
    struct block *last = memory->blocks;

    memory->filled = 0;
    if (last == NULL)
        return;
    while (last->next != NULL) {
        struct block *next = last->next;

        last->next = next->next;
        free(next);
    }
    last->used = 0;
}

int sqlock_result_start(sqlock_result *result, size_t columns)
{
    if (result->memory != NULL) {
        empty(result->memory);
        result->columns = columns;
        result->rows = 0;
        result->affected = 0;
        return 0;
    }
    sqlock_result_clear(result);
    result->memory = calloc(1, sizeof(struct memory));
    if (result->memory == NULL)
        return SQLOCK_ENOMEM;
    result->columns = columns;
    return 0;
}

/* Return room for `length` bytes of text, or NULL when out of memory. */
static char *reserve_text(struct memory *memory, size_t length)
{
    struct block *block = memory->blocks;
    char *place;

    if (block == NULL || block->size - block->used < length) {
        size_t size = length > BLOCK ? length : BLOCK;

        block = malloc(sizeof *block + size);
        if (block == NULL)
            return NULL;
        block->size = size;
        block->used = 0;
        block->next = memory->blocks;
        memory->blocks = block;
    }
    place = block->bytes + block->used;
    block->used += length;
    return place;
}

static int grow(sqlock_result *result, struct memory *memory)
{
    size_t capacity = memory->capacity * 2 + result->columns;
    sqlock_value *cells;

    cells = realloc(result->cells, capacity * sizeof *cells);
    if (cells == NULL)
        return SQLOCK_ENOMEM;
    result->cells = cells;
    memory->capacity = capacity;
    return 0;
}

int sqlock_result_push(sqlock_result *result, const sqlock_value *value)
{
    struct memory *memory = result->memory;
    sqlock_value *cell;

    if (memory == NULL || result->columns == 0)
        return SQLOCK_EINVAL;
    if (memory->filled == memory->capacity && grow(result, memory) < 0)
        return SQLOCK_ENOMEM;
    cell = &result->cells[memory->filled];
    *cell = *value;
    if (value->type == SQLOCK_TEXT) {
        char *text = reserve_text(memory, value->length + 1);

        if (text == NULL)
            return SQLOCK_ENOMEM;
        memcpy(text, value->text, value->length);
        text[value->length] = '\0';
        cell->text = text;
    }
    memory->filled++;
    result->rows = memory->filled / result->columns;
    return 0;
}

const char *lk_cell_text(const sqlock_value *cell)
{
    return cell->type == SQLOCK_TEXT ? cell->text : NULL;
}

int64_t lk_cell_integer(const sqlock_value *cell)
{
    return cell->type == SQLOCK_INT64 ? cell->integer : 0;
}

void lk_cell_id(char out[SQLOCK_KEY_SIZE], const sqlock_value *cell)
{
    size_t length = cell->type == SQLOCK_TEXT
                        ? strnlen(cell->text, SQLOCK_KEY_SIZE - 1)
                        : 0;

    memcpy(out, length > 0 ? cell->text : "", length);
    out[length] = '\0';
}
