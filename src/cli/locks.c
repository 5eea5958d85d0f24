/*
 * locks.c - print locks as a table, for `ls` and `top`
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME, STATE, HELD_FOR, TTL, WAITING, HOLDER, TOKEN, REGION, COLUMNS };

/* Fill in who waits, in order: a line each becomes one line in all. */
static bool fill_names(cli_row *row, const char *names)
{
    char *text = strdup(names);
    bool is_done;

    if (text == NULL)
        return false;
    for (char *end = text; (end = strchr(end, '\n')) != NULL;)
        *end = ';';
    is_done = cli_row_text(row, WAITING, text);
    if (row->escaped[WAITING] != NULL)
        free(text);
    else
        row->escaped[WAITING] = text; /* freed with the row */
    return is_done;
}

static bool fill_waiting(cli_row *row, const cli_locks *locks,
                         const sqlock_info *info)
{
    if (info->waiters < 0)
        return true;
    if (locks->has_names && info->waiter_names != NULL)
        return fill_names(row, info->waiter_names);
    row->cells[WAITING] = cli_number_text(row->numbers[WAITING], info->waiters);
    return true;
}

/* Find the parts of a HOLDER that sqlock has written, "user@host pid command
 * line (note)": set *command to the command line, and *note to the text between
 * the last parentheses; NULL: there is none.  Return false if it is another
 * text, such as "peer". */
static bool take_apart(const char *holder, const char **command,
                       const char **note)
{
    const char *pid = strchr(holder, ' ');
    size_t digits = pid != NULL ? strspn(pid + 1, "0123456789") : 0;
    size_t length = strlen(holder);

    if (digits == 0 || pid[1 + digits] != ' ' ||
        memchr(holder, '@', (size_t)(pid - holder)) == NULL)
        return false;
    *command = pid + digits + 2;
    *note =
        length > 0 && holder[length - 1] == ')' ? strrchr(holder, '(') : NULL;
    if (*note != NULL && (*note <= *command || (*note)[-1] != ' '))
        *note = NULL;
    return true;
}

/* Fill in a holder with what tells it from others first, since a narrow
 * terminal shows only the beginning: "note: command line, user@host pid". */
static bool fill_holder(cli_row *row, const char *holder)
{
    const char *command;
    const char *note;
    char *text = NULL;
    size_t end = strlen(holder);
    bool is_done;

    if (!take_apart(holder, &command, &note))
        return cli_row_text(row, HOLDER, holder);
    if (note != NULL)
        end = (size_t)(note - holder) - 1;
    if (asprintf(&text, "%.*s%s%.*s, %.*s",
                 note != NULL ? (int)(strlen(note) - 2) : 0,
                 note != NULL ? note + 1 : "", note != NULL ? ": " : "",
                 (int)(holder + end - command), command,
                 (int)(command - holder - 1), holder) < 0)
        return false;
    is_done = cli_row_text(row, HOLDER, text);
    if (row->escaped[HOLDER] != NULL)
        free(text);
    else
        row->escaped[HOLDER] = text; /* freed with the row */
    return is_done;
}

/* Fill in the state, of a shared lock "shared" and by how many, of how many. */
static void fill_state(cli_row *row, const sqlock_info *info)
{
    char *text = row->numbers[STATE];

    row->cells[STATE] = cli_state_name(info->state);
    row->colours[STATE] = cli_state_colour(info->state);
    if (info->state != SQLOCK_HELD || info->mode != SQLOCK_SHARED)
        return;
    if (info->permits > 0)
        (void)snprintf(text, CLI_NUMBER_SIZE, "shared %u/%u", info->taken,
                       info->permits);
    else
        (void)snprintf(text, CLI_NUMBER_SIZE, "shared %d", info->sharers);
    row->cells[STATE] = text;
}

static bool fill_row(cli_row *row, const void *context, size_t number)
{
    const cli_locks *locks = context;
    const sqlock_info *info = &locks->rows[number];

    fill_state(row, info);
    if (info->state != SQLOCK_FREE && info->held_ms >= 0)
        row->cells[HELD_FOR] =
            cli_duration_text(row->numbers[HELD_FOR], info->held_ms);
    if (info->state == SQLOCK_HELD)
        row->cells[TTL] =
            cli_duration_text(row->numbers[TTL], info->remaining_ms);
    if (cli_token(info) != 0)
        row->cells[TOKEN] =
            cli_number_text(row->numbers[TOKEN], cli_token(info));
    return cli_row_text(row, NAME,
                        info->name != NULL ? info->name : info->key) &&
           fill_waiting(row, locks, info) &&
           (info->holder == NULL || fill_holder(row, info->holder)) &&
           (info->region == NULL || cli_row_text(row, REGION, info->region));
}

/* Return the columns to omit on a narrow terminal, in that order.  If the
 * user asks for the names of waiters, they are kept for longer than the
 * holder. */
static const size_t *spare_of(const cli_locks *locks)
{
    static const size_t spare[] = {TOKEN,  WAITING, HELD_FOR,
                                   HOLDER, TTL,     COLUMNS};
    static const size_t named[] = {TOKEN, HOLDER,  HELD_FOR,
                                   TTL,   WAITING, COLUMNS};

    return locks->has_names ? named : spare;
}

int cli_locks_print(const cli_locks *locks)
{
    static const char *const heads[COLUMNS] = {"NAME",  "STATE",   "HELD FOR",
                                               "TTL",   "WAITING", "HOLDER",
                                               "TOKEN", "REGION"};
    const cli_table table = {
        .heads = heads,
        .columns = locks->has_regions ? COLUMNS : REGION,
        .flexible = 1U << NAME | 1U << HOLDER | 1U << REGION |
                    (locks->has_names ? 1U << WAITING : 0),
        .right = 1U << HELD_FOR | 1U << TTL | 1U << TOKEN |
                 (locks->has_names ? 0 : 1U << WAITING),
        .spare = spare_of(locks),
        .enough = locks->has_names ? 24 : 16,
        .rows = locks->count,
        .context = locks,
        .fill = fill_row,
    };

    return cli_table_print(&table);
}
