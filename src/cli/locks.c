/*
 * locks.c - print locks as a table, for `ls` and `top`
 */
#include "cli.h"

enum { NAME, STATE, HELD_FOR, TTL, WAITING, HOLDER, TOKEN, REGION, COLUMNS };

static bool fill_waiting(cli_row *row, const cli_locks *locks,
                         const sqlock_info *info)
{
    if (info->waiters < 0)
        return true;
    if (locks->has_names && info->waiter_names != NULL)
        return cli_row_text(row, WAITING, info->waiter_names);
    row->cells[WAITING] = cli_number_text(row->numbers[WAITING], info->waiters);
    return true;
}

static bool fill_row(cli_row *row, const void *context, size_t number)
{
    const cli_locks *locks = context;
    const sqlock_info *info = &locks->rows[number];

    row->cells[STATE] = cli_state_name(info->state);
    row->colours[STATE] = cli_state_colour(info->state);
    if (info->state != SQLOCK_FREE)
        row->cells[HELD_FOR] =
            cli_duration_text(row->numbers[HELD_FOR], info->held_ms);
    if (info->state == SQLOCK_HELD)
        row->cells[TTL] =
            cli_duration_text(row->numbers[TTL], info->remaining_ms);
    if (info->token != 0)
        row->cells[TOKEN] = cli_number_text(row->numbers[TOKEN], info->token);
    return cli_row_text(row, NAME,
                        info->name != NULL ? info->name : info->key) &&
           fill_waiting(row, locks, info) &&
           (info->holder == NULL || cli_row_text(row, HOLDER, info->holder)) &&
           (info->region == NULL || cli_row_text(row, REGION, info->region));
}

/* Return the columns to omit on a narrow terminal, in that order.  If the
 * user asks for the names of waiters, they are kept for longer than the
 * holder. */
static const size_t *spare_of(const cli_locks *locks)
{
    static const size_t spare[] = {TOKEN,  WAITING, HELD_FOR,
                                   HOLDER, TTL,     COLUMNS};
    static const size_t spare_less[] = {TOKEN,  WAITING, HELD_FOR,
                                        HOLDER, TTL,     REGION};
    static const size_t spare_named[] = {TOKEN, HOLDER,  HELD_FOR,
                                         TTL,   WAITING, COLUMNS};
    static const size_t spare_named_less[] = {TOKEN, HOLDER,  HELD_FOR,
                                              TTL,   WAITING, REGION};

    if (locks->has_names)
        return locks->has_regions ? spare_named : spare_named_less;
    return locks->has_regions ? spare : spare_less;
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
