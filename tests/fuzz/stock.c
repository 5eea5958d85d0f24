/*
 * stock.c - orders of several items: all lines are changed or none, the same
 * order sent again has the same answer, and the list has what is left
 *
 * The input has the order's id, then an item and its quantity a line, with a
 * blank between them.
 */
#include "fuzz.h"

#include <unistd.h>

#include "cli/cli.h"
#include "sqlock/stock.h"

#define LINES_MAX 8
#define THERE INT64_C(1000000)

static char folder[] = "/tmp/sqlock-fuzz.XXXXXX";
static sqlock_registry *registry;
static sqlock_stock *stock;

static void end(void)
{
    static const char *const names[] = {"db", "db-wal", "db-shm"};
    char path[64];

    sqlock_stock_close(stock);
    (void)sqlock_registry_close(registry, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) /* NOLINT: libFuzzer's */
{
    char url[64];

    (void)argc;
    (void)argv;
    must(mkdtemp(folder) != NULL);
    (void)snprintf(url, sizeof url, "sqlite:%s/db", folder);
    must(sqlock_schema_create(url, NULL, SQLOCK_LAYOUT_SQLOCK, NULL) == 0);
    must(sqlock_stock_schema_create(url, NULL, NULL) == 0);
    must(sqlock_registry_open(&registry, url, NULL, NULL) == 0);
    must(sqlock_stock_open(&stock, registry, NULL, NULL) == 0);
    (void)atexit(end);
    return 0;
}

/* Read the lines.  Return how many there are. */
static size_t read_lines(char **at, sqlock_stock_line *lines)
{
    size_t count = 0;

    while (**at != '\0' && count < LINES_MAX) {
        char *item = fuzz_line(at);
        char *blank = strrchr(item, ' ');
        sqlock_stock_line *line = &lines[count++];

        *line = (sqlock_stock_line){.item = item};
        if (blank == NULL)
            continue;
        *blank = '\0';
        if (!lk_text_integer(blank + 1, &line->quantity))
            line->quantity = 0;
    }
    return count;
}

static void check_told(int rc, const sqlock_error *err)
{
    must(rc == 0 || (rc < 0 && err->code == rc && err->message[0] != '\0'));
}

/* Check what is left of each item, of which the order has changed all or
 * none. */
static void check_left(sqlock_tx *tx, const sqlock_stock_line *lines,
                       size_t count, int64_t there, bool is_changed)
{
    for (size_t i = 0; i < count; i++) {
        int64_t left = -1;

        must(sqlock_stock_read(stock, tx, lines[i].item, &left, NULL) == 0);
        must(left == there - (is_changed ? lines[i].quantity : 0));
        must(left >= 0);
        must(!is_changed || (lines[i].result == 0 && lines[i].left == left));
    }
}

static void order(sqlock_tx *tx, const char *id, sqlock_stock_line *lines,
                  size_t count)
{
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_error err = {0};
    int64_t there = THERE;
    int first;

    for (size_t i = 0; i < count; i++)
        if (sqlock_stock_set(stock, tx, NULL, lines[i].item, THERE, NULL,
                             &err) != 0)
            return; /* a name that can be none */
    first =
        sqlock_stock_deduct_many(stock, tx, id, lines, count, &answer, &err);
    check_told(first, &err);
    must(!answer.is_duplicate);
    check_left(tx, lines, count, there, first == 0);
    if (first != 0 && first != SQLOCK_EINSUFFICIENT)
        return;
    must(sqlock_stock_deduct_many(stock, tx, id, lines, count, &answer, &err) ==
         first);
    must(answer.is_duplicate);
    check_left(tx, lines, count, there, first == 0);
    lines[0].quantity += lines[0].quantity > 1 ? -1 : 1;
    must(sqlock_stock_deduct_many(stock, tx, id, lines, count, &answer, &err) ==
         SQLOCK_EORDER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *at = text;
    const char *id = fuzz_line(&at);
    sqlock_stock_line lines[LINES_MAX];
    size_t count = read_lines(&at, lines);
    sqlock_tx *tx = NULL;

    must(sqlock_tx_begin(&tx, registry, NULL) == 0);
    order(tx, id, lines, count);
    (void)sqlock_tx_rollback(tx, NULL);
    free(text);
    return 0;
}
