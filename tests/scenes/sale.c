/*
 * sale.c - stock that never oversells: what a thread sells, reserves and reads,
 * in sqlock's table, and in the application's where the step names a row of it
 * by id=
 */
#include "actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlock/stock.h"

#define LINES_MAX 8

/* An answer that may be compared, in calls that write none, too. */
struct sale {
    struct player *player;
    sqlock_stock *stock;
    const char *order; /* NULL: none */
    sqlock_stock_line lines[LINES_MAX];
    char items[LINES_MAX][96];
    size_t count;
    sqlock_stock_answer answer;
    sqlock_error *err;
};

/* The stocks of the process: of sqlock's table and of the application's. */
static sqlock_stock *stocks[2][SQLOCK_STOCK_STRATEGIES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------- the stock -- */

/* Return the strategy by=, or the default; SQLOCK_STOCK_STRATEGIES: there is no
 * such strategy. */
static sqlock_stock_strategy strategy_of(const struct step *step)
{
    const char *by = step_option(step, "by");
    int at = 0;

    while (by != NULL && at < SQLOCK_STOCK_STRATEGIES &&
           strcmp(sqlock_stock_strategy_name((sqlock_stock_strategy)at), by) !=
               0)
        at++;
    return (sqlock_stock_strategy)at;
}

static int open_stock(struct player *player, sqlock_stock_strategy strategy,
                      sqlock_stock **out, sqlock_error *err)
{
    const struct step *step = &player->step;
    const char *version = step_option(step, "version");
    sqlock_stock_options options = SQLOCK_STOCK_INIT;

    options.strategy = strategy;
    options.batch = (uint32_t)actor_number(step, "batch", 0);
    options.attempts = (uint32_t)actor_number(step, "tries", 0);
    options.deadline_ms = (uint32_t)actor_ms(step, "deadline", 0);
    options.table = step_option(step, "table");
    if (options.table != NULL) {
        options.item_column = "id";
        options.quantity_column = "a";
        options.version_column = version;
    }
    return sqlock_stock_open(out, actor_registry(player), &options, err);
}

/* Return the stock of the step, which is opened when it is first used; NULL:
 * that failed.  "deals" opens it anew, with the options of its step. */
static sqlock_stock *stock_of(struct player *player, sqlock_error *err)
{
    sqlock_stock_strategy strategy = strategy_of(&player->step);
    sqlock_stock **stock;
    int rc = 0;

    if (strategy == SQLOCK_STOCK_STRATEGIES) {
        actor_refuse(&player->outcome, "no such strategy");
        return NULL;
    }
    stock = &stocks[step_option(&player->step, "table") != NULL][strategy];
    pthread_mutex_lock(&mutex);
    if (strcmp(player->step.verb, "deals") == 0) {
        sqlock_stock_close(*stock);
        *stock = NULL;
    }
    if (*stock == NULL)
        rc = open_stock(player, strategy, stock, err);
    pthread_mutex_unlock(&mutex);
    player->outcome.rc = rc;
    return *stock;
}

void actor_close_stocks(void)
{
    for (int i = 0; i < 2 * SQLOCK_STOCK_STRATEGIES; i++) {
        sqlock_stock **stock = &stocks[i % 2][i / 2];

        sqlock_stock_close(*stock);
        *stock = NULL;
    }
}

/* ------------------------------------------------------------- the lines -- */

/* Return the nth number of "4,3", from 0, or the last one; `otherwise` without
 * the option. */
static int64_t nth_of(const struct step *step, const char *option, size_t nth,
                      int64_t otherwise)
{
    const char *value = step_option(step, option);

    for (; value != NULL && nth > 0 && strchr(value, ',') != NULL; nth--)
        value = strchr(value, ',') + 1;
    return value == NULL ? otherwise : strtoll(value, NULL, 10);
}

static void add_line(void *context, const char *name)
{
    struct sale *sale = context;

    if (sale->count == LINES_MAX)
        return;
    (void)snprintf(sale->items[sale->count], 96, "%s", name);
    sale->lines[sale->count] = (sqlock_stock_line){
        .item = sale->items[sale->count],
        .quantity = nth_of(&sale->player->step, "n", sale->count, 1),
    };
    sale->count++;
}

/* The items are the step's names, or the row id= of the application. */
static void read_lines(struct sale *sale)
{
    const char *id = step_option(&sale->player->step, "id");

    sale->count = 0;
    if (id != NULL)
        add_line(sale, id);
    else
        actor_each_name(&sale->player->step, add_line, sale);
}

/* ------------------------------------------------------------- the verbs -- */

static int change(struct sale *sale)
{
    const struct step *step = &sale->player->step;
    sqlock_tx *tx = sale->player->session.tx;
    const sqlock_stock_line *line = sale->lines;
    bool is_one = sale->count == 1;

    if (strcmp(step->verb, "sets") == 0)
        return sqlock_stock_set(sale->stock, tx, sale->order, line->item,
                                line->quantity, &sale->answer, sale->err);
    if (strcmp(step->verb, "reserves") == 0)
        return sqlock_stock_reserve(
            sale->stock, tx, sale->order, sale->lines, sale->count,
            actor_ms(step, "lasts", 3600000), &sale->answer, sale->err);
    if (strcmp(step->verb, "restores") == 0)
        return is_one ? sqlock_stock_restore(sale->stock, tx, sale->order,
                                             line->item, line->quantity,
                                             &sale->answer, sale->err)
                      : sqlock_stock_restore_many(sale->stock, tx, sale->order,
                                                  sale->lines, sale->count,
                                                  &sale->answer, sale->err);
    return is_one && step_option(step, "many") == NULL
               ? sqlock_stock_deduct(sale->stock, tx, sale->order, line->item,
                                     line->quantity, &sale->answer, sale->err)
               : sqlock_stock_deduct_many(sale->stock, tx, sale->order,
                                          sale->lines, sale->count,
                                          &sale->answer, sale->err);
}

static int end_order(struct sale *sale)
{
    sqlock_tx *tx = sale->player->session.tx;

    return strcmp(sale->player->step.verb, "claims") == 0
               ? sqlock_stock_claim(sale->stock, tx, sale->order, &sale->answer,
                                    sale->err)
               : sqlock_stock_cancel(sale->stock, tx, sale->order,
                                     &sale->answer, sale->err);
}

/* A reservation that is over has no time left. */
static int tell_state(struct sale *sale)
{
    sqlock_stock_state state = SQLOCK_STOCK_RESERVED;
    int64_t left_ms = -1;
    int rc = sqlock_stock_status(sale->stock, sale->player->session.tx,
                                 sale->order, &state, &left_ms, sale->err);

    if (rc == 0 && (state != SQLOCK_STOCK_RESERVED) != (left_ms == 0))
        return NOT_PLAYED;
    return rc < 0 ? rc : (int)state;
}

static int expire(struct sale *sale)
{
    int64_t expired = -1;
    int rc = sqlock_stock_expire(sale->stock, &expired, sale->err);

    if (rc < 0 && nth_of(&sale->player->step, "done", 0, expired) != expired)
        return NOT_PLAYED;
    return rc < 0 ? rc : (int)expired;
}

/* Tell how many entries go, and with `dry` would go; reservations=, too. */
static int reap(struct sale *sale)
{
    sqlock_stock_reap_options options = SQLOCK_STOCK_REAP_INIT;
    sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;
    int rc;

    options.dry_run = step_option(&sale->player->step, "dry") != NULL;
    rc = sqlock_stock_reap(sale->stock, &options, &reaped, sale->err);
    if (rc == 0 &&
        reaped.reservations !=
            nth_of(&sale->player->step, "reservations", 0, reaped.reservations))
        return NOT_PLAYED;
    return rc < 0 ? rc : (int)reaped.entries;
}

/* With left=, a quantity that is too large for a result. */
static int read_quantity(struct sale *sale)
{
    int64_t there = -1;
    int rc = sqlock_stock_read(sale->stock, sale->player->session.tx,
                               sale->lines->item, &there, sale->err);

    sale->answer.left = there;
    return rc < 0                                             ? rc
           : step_option(&sale->player->step, "left") != NULL ? 0
                                                              : (int)there;
}

/* The statistics that the step names. */
static int count(struct sale *sale)
{
    const struct step *step = &sale->player->step;
    sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;
    int rc = sqlock_stock_statistics(sale->stock, &stats, sale->err);
    const struct {
        const char *option;
        uint64_t count;
    } counts[] = {
        {"operations", stats.operations},   {"retries", stats.retries},
        {"rounds", stats.rounds},           {"combined", stats.combined},
        {"most_rounds", stats.most_rounds},
    };

    for (size_t i = 0; rc == 0 && i < sizeof counts / sizeof *counts; i++) {
        const char *expected = step_option(step, counts[i].option);

        if (expected != NULL && !result_is(expected, (int)counts[i].count))
            rc = NOT_PLAYED;
    }
    return rc;
}

static int deal(struct sale *sale)
{
    (void)sale;
    return 0;
}

/* ---------------------------------------------------------- what is told -- */

/* Return whether the answer and the lines are as the step says. */
static bool is_as_said(const struct sale *sale)
{
    const struct step *step = &sale->player->step;
    const sqlock_stock_answer *answer = &sale->answer;
    const char *tries = step_option(step, "attempts");

    if (step_option(step, "perhaps_again") == NULL &&
        answer->is_duplicate != (step_option(step, "again") != NULL))
        return false;
    for (size_t i = 0; i < sale->count; i++)
        if (nth_of(step, "lefts", i, sale->lines[i].left) !=
            sale->lines[i].left)
            return false;
    return nth_of(step, "left", 0, answer->left) == answer->left &&
           nth_of(step, "line", 0, (int64_t)answer->line) ==
               (int64_t)answer->line &&
           (tries == NULL || result_is(tries, (int)answer->attempts));
}

/* Say what else was told, for whoever reads the failure. */
static void refuse_answer(const struct sale *sale, int rc)
{
    char text[200];

    (void)snprintf(text, sizeof text,
                   "it gave %d, left=%lld line=%zu attempts=%u%s, and a first "
                   "line with %d and left=%lld",
                   rc, (long long)sale->answer.left, sale->answer.line,
                   sale->answer.attempts,
                   sale->answer.is_duplicate ? " again" : "",
                   sale->lines->result, (long long)sale->lines->left);
    actor_refuse(&sale->player->outcome, text);
}

static void check_each(const struct sale *sale)
{
    int results[LINES_MAX];

    for (size_t i = 0; i < sale->count; i++)
        results[i] = sale->lines[i].result;
    actor_check_each(sale->player, results, sale->count);
}

/* Perform it count= times, with an order id of its own each time. */
static void perform(struct sale *sale, int (*call)(struct sale *sale))
{
    const struct step *step = &sale->player->step;
    struct outcome *outcome = &sale->player->outcome;
    const char *order = step_option(step, "order");
    int64_t times = step_option(step, "count") == NULL ? 1 : actor_times(step);
    char id[160];

    if (order == NULL)
        order = call == end_order || call == tell_state ? step->name : NULL;
    for (int64_t i = 1; i <= times && outcome->rc == 0; i++) {
        sale->answer = (sqlock_stock_answer)SQLOCK_STOCK_ANSWER_INIT;
        (void)snprintf(id, sizeof id, times > 1 ? "%s/%lld" : "%s",
                       order != NULL ? order : "", (long long)i);
        sale->order = order != NULL ? id : NULL;
        read_lines(sale);
        outcome->rc = call(sale);
        if (call == change || call == end_order || call == read_quantity) {
            if (!is_as_said(sale))
                refuse_answer(sale, outcome->rc);
            check_each(sale);
        }
    }
}

bool actor_use_stock(struct player *player)
{
    static const struct {
        const char *verb;
        int (*call)(struct sale *sale);
    } verbs[] = {
        {"sells", change},        {"restores", change},
        {"sets", change},         {"reserves", change},
        {"claims", end_order},    {"undoes", end_order},
        {"order_is", tell_state}, {"expires_orders", expire},
        {"forgets_orders", reap}, {"stocks", read_quantity},
        {"counts_sales", count},  {"deals", deal},
    };

    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct sale sale = {.player = player, .err = &player->outcome.err};

        if (strcmp(player->step.verb, verbs[i].verb) != 0)
            continue;
        sale.stock = stock_of(player, sale.err);
        if (sale.stock != NULL)
            perform(&sale, verbs[i].call);
        return true;
    }
    return false;
}
