/*
 * table.c - print rows of text on stdout: truncated to the width of a terminal,
 * whole otherwise
 *
 * The library libsmartcols is not used: it would keep a copy of every cell
 * until the table is printed, 600 MB for a million rows, and it truncates text
 * without a mark, and names to a few letters.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP 2
#define LEAST 8 /* width that a truncated column must keep */

bool cli_has_screen(void)
{
    const char *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && terminal != NULL &&
           strcmp(terminal, "dumb") != 0;
}

bool cli_has_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");

    return cli_has_screen() && (no_colour == NULL || *no_colour == '\0');
}

void cli_terminal_size(size_t *columns, size_t *lines)
{
    const char *wanted = getenv("COLUMNS");
    struct winsize size = {0};
    int64_t number;

    if (isatty(STDOUT_FILENO))
        (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *columns = size.ws_col;
    *lines = size.ws_row;
    /* As ls(1) and ps(1) read it. */
    if (wanted != NULL && lk_text_integer(wanted, &number) && number > 0 &&
        number <= UINT16_MAX)
        *columns = (size_t)number;
}

/* Return the width of the terminal; 0: no limit. */
static size_t terminal_width(void)
{
    size_t columns;
    size_t lines;

    cli_terminal_size(&columns, &lines);
    return columns;
}

/* Return the width of the table with its gaps.  Columns of width 0 are
 * omitted. */
static size_t total_width(const cli_table *table, const size_t *widths)
{
    size_t total = 0;
    size_t i;

    for (i = 0; i < table->columns; i++)
        total += widths[i] > 0 ? widths[i] + GAP : 0;
    return total > 0 ? total - GAP : 0;
}

/* Return the width that a flexible column keeps as long as another one can be
 * narrowed or omitted: the first has a name, and names that are cut look alike,
 * so it has half of the terminal. */
static size_t enough_of(const cli_table *table, size_t column, size_t limit)
{
    return column == 0 && limit / 2 > table->enough ? limit / 2 : table->enough;
}

/* Return the widest flexible column, from `first` on, that is wider than it
 * must be, in_need: than LEAST; table->columns: there is none. */
static size_t widest_of(const cli_table *table, const size_t *widths,
                        size_t limit, size_t first, bool in_need)
{
    size_t widest = table->columns;
    size_t i;

    for (i = first; i < table->columns; i++) {
        size_t least = in_need ? LEAST : enough_of(table, i, limit);

        if ((table->flexible & (1U << i)) != 0 && widths[i] > least &&
            (widest == table->columns || widths[i] > widths[widest]))
            widest = i;
    }
    return widest;
}

/* Return by how much the table can be narrowed while each flexible column keeps
 * enough. */
static size_t slack(const cli_table *table, const size_t *widths, size_t limit)
{
    size_t sum = 0;
    size_t i;

    for (i = 0; i < table->columns; i++) {
        size_t least = enough_of(table, i, limit);

        if ((table->flexible & (1U << i)) != 0 && widths[i] > least)
            sum += widths[i] - least;
    }
    return sum;
}

/* Make the table fit: omit spare columns until the flexible ones can keep
 * enough, then narrow the widest of these until the table fits, or no column is
 * wider than LEAST. */
static void shrink(const cli_table *table, size_t *widths, size_t limit)
{
    const size_t *spare = table->spare;
    size_t total = total_width(table, widths);
    size_t widest;

    while (spare != NULL && *spare < table->columns &&
           total > limit + slack(table, widths, limit)) {
        widths[*spare++] = 0;
        total = total_width(table, widths);
    }
    while (total > limit) {
        widest = widest_of(table, widths, limit, 1, false);
        if (widest == table->columns)
            widest = widest_of(table, widths, limit, 0, false);
        if (widest == table->columns)
            widest = widest_of(table, widths, limit, 0, true);
        if (widest == table->columns)
            return;
        widths[widest]--;
        total--;
    }
}

static void print_spaces(size_t count)
{
    while (count-- > 0)
        (void)putchar_unlocked(' ');
}

/* --- a row --- */

bool cli_row_text(cli_row *row, size_t column, const char *text)
{
    row->cells[column] = text;
    if (cli_is_plain(text))
        return true;
    row->escaped[column] = cli_escape(text);
    row->cells[column] = row->escaped[column];
    return row->cells[column] != NULL;
}

void cli_row_clear(cli_row *row)
{
    for (size_t i = 0; i < CLI_COLUMNS_MAX; i++) {
        free(row->escaped[i]);
        row->escaped[i] = NULL;
        row->cells[i] = NULL;
        row->colours[i] = NULL;
    }
}

/* --- the table --- */

static void print_cell(const cli_table *table, size_t column, const char *text,
                       const char *colour, size_t limit, bool is_last)
{
    bool is_right = (table->right & (1U << column)) != 0;
    size_t width = cli_width(text);
    char *cut = width > limit ? cli_cut(text, limit) : NULL;
    size_t pad = width < limit ? limit - width : 0;

    if (is_right)
        print_spaces(pad);
    if (colour != NULL)
        (void)fputs_unlocked(colour, stdout);
    (void)fputs_unlocked(cut != NULL ? cut : text, stdout);
    if (colour != NULL)
        (void)fputs_unlocked("\033[0m", stdout);
    if (!is_last)
        print_spaces(is_right ? GAP : pad + GAP);
    free(cut);
}

static void print_line(const cli_table *table, const char *const *cells,
                       const char *const *colours, const size_t *widths)
{
    size_t last = table->columns;
    size_t i;

    while (last > 0 && widths[last - 1] == 0)
        last--;
    for (i = 0; i < last; i++) {
        if (widths[i] > 0)
            print_cell(table, i, cells[i] != NULL ? cells[i] : "-",
                       colours != NULL ? colours[i] : NULL, widths[i],
                       i + 1 == last);
    }
}

static void print_heads(const cli_table *table, const size_t *widths)
{
    bool has_colour = cli_has_colour();

    fputs(has_colour ? "\033[1m" : "", stdout);
    print_line(table, table->heads, NULL, widths);
    fputs(has_colour ? "\033[0m\n" : "\n", stdout);
}

static void measure_line(const cli_table *table, const char *const *cells,
                         size_t *widths)
{
    size_t width;
    size_t i;

    for (i = 0; i < table->columns; i++) {
        width = cells[i] != NULL ? cli_width(cells[i]) : 1;
        if (width > widths[i])
            widths[i] = width;
    }
}

/* Measure all rows, or print them.  Return false if out of memory. */
static bool go_through(const cli_table *table, size_t *widths, bool is_printed)
{
    cli_row row = {.cells = {NULL}};
    bool has_colour = cli_has_colour();
    bool is_whole = true;
    size_t number;

    for (number = 0; is_whole && number < table->rows; number++) {
        is_whole = table->fill(&row, table->context, number);
        if (is_whole && is_printed) {
            print_line(table, row.cells, has_colour ? row.colours : NULL,
                       widths);
            (void)putchar_unlocked('\n');
        } else if (is_whole) {
            measure_line(table, row.cells, widths);
        }
        cli_row_clear(&row);
    }
    return is_whole;
}

int cli_table_print(const cli_table *table)
{
    size_t widths[CLI_COLUMNS_MAX] = {0};
    size_t limit = terminal_width();
    bool is_whole;

    measure_line(table, table->heads, widths);
    is_whole = go_through(table, widths, false);
    if (is_whole) {
        if (limit > 0)
            shrink(table, widths, limit);
        print_heads(table, widths);
        is_whole = go_through(table, widths, true);
    }
    if (!is_whole)
        cli_error("out of memory");
    return is_whole ? CLI_OK : CLI_SYSTEM;
}

void cli_print_wrapped(const char *text, size_t indent)
{
    size_t limit = terminal_width();
    size_t used = indent;
    size_t blanks;
    size_t width;
    char *part;

    while (*text != '\0') {
        blanks = strspn(text, " ");
        part = strndup(text, blanks + strcspn(text + blanks, " "));
        if (part == NULL)
            break;
        text += strlen(part);
        width = cli_width(part);
        if (limit > 0 && used > indent && used + width > limit) {
            printf("\n%*s%s", (int)indent, "", part + blanks);
            used = indent + width - blanks;
        } else {
            fputs(part, stdout);
            used += width;
        }
        free(part);
    }
    fputc('\n', stdout);
}
