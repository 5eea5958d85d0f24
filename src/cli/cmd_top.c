/*
 * cmd_top.c - `sqlock top`: show held locks again and again: a screen that is
 * redrawn on a terminal, blocks of lines elsewhere
 *
 * Changes are found by comparing each reading with the one before: a lock that
 * changes hands twice in between counts as one change.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"

#define LOOKED_AT_MAX 10000 /* rows of a reading, to limit its cost */
#define ROWS_DEFAULT 20     /* shown if there is no terminal */
#define HEAD_LINES 4        /* above the rows on a screen; one is free below */

static int64_t delay_ms = 1000;
static int64_t left; /* readings still to print; 0: no limit */
static bool has_regions;

static const cli_option options_table[] = {
    {"delay", 'd', .ms = &delay_ms, .least = 100, .most = 3600000},
    {"count", 'n', .number = &left, .least = 1, .most = UINT32_MAX},
    {"regions", .flag = &has_regions},
    {.name = NULL}};

/* One reading of the table, longest held first. */
typedef struct look {
    sqlock_info *rows;
    size_t count;
    const sqlock_info **by_key; /* the rows, sorted by region and key */
    int64_t at_ns;
    int64_t grace_ms; /* for which the server grants nothing */
} look;

/* Totals of a reading and of changes since the one before. */
typedef struct totals {
    size_t held;
    size_t expired;
    int64_t waiting; /* -1: unknown */
    double seconds;  /* since the last reading; 0: there was none */
    size_t changes;  /* of holder */
    size_t renewals;
    size_t losses; /* leases that ended without a release */
} totals;

typedef struct top_view {
    const cli *app;
    bool is_screen;
    bool may_read; /* keys of the terminal */
    struct termios before;
} top_view;

static volatile sig_atomic_t has_ended;

/* ------------------------------------------------------------- readings -- */

static int by_key(const void *one, const void *other)
{
    const sqlock_info *a = *(const sqlock_info *const *)one;
    const sqlock_info *b = *(const sqlock_info *const *)other;
    int order = strcmp(a->key, b->key);

    if (order == 0 && a->region != NULL && b->region != NULL)
        order = strcmp(a->region, b->region);
    return order;
}

static void clear(look *seen)
{
    sqlock_info_free(seen->rows, seen->count);
    free(seen->by_key);
    *seen = (look){.rows = NULL};
}

static int take_look(sqlock_registry *registry, look *seen, sqlock_error *err)
{
    sqlock_find_options options = SQLOCK_FIND_INIT;
    size_t i;
    int rc;

    *seen = (look){.at_ns = sqlock_monotonic_ns()};
    options.sort = SQLOCK_SORT_HELD;
    options.limit = LOOKED_AT_MAX;
    options.all_regions = has_regions;
    rc = sqlock_find(registry, &options, &seen->rows, &seen->count, err);
    if (rc < 0)
        return rc;
    seen->grace_ms = sqlock_registry_grace_ms(registry);
    seen->by_key = calloc(seen->count + 1, sizeof *seen->by_key);
    if (seen->by_key == NULL) {
        clear(seen);
        *err = (sqlock_error){.code = SQLOCK_ENOMEM};
        return SQLOCK_ENOMEM;
    }
    for (i = 0; i < seen->count; i++)
        seen->by_key[i] = &seen->rows[i];
    qsort(seen->by_key, seen->count, sizeof *seen->by_key, by_key);
    return 0;
}

/* Return whether another has joined those who share the lock. */
static bool is_joined(const sqlock_info *before, const sqlock_info *now)
{
    return now->mode == SQLOCK_SHARED && now->token > before->token;
}

/* Compare a row with the row of the same lock in the reading before.  A lease
 * that was broken is lost then, although its row is held until its end. */
static void compare(totals *sum, const sqlock_info *before,
                    const sqlock_info *now)
{
    if (strcmp(before->client_id, now->client_id) != 0) {
        if (!cli_is_broken(now))
            sum->changes++;
        else if (before->state == SQLOCK_HELD)
            sum->losses++;
    } else if (before->state == SQLOCK_HELD && now->state == SQLOCK_EXPIRED) {
        sum->losses += !cli_is_broken(now);
    } else if (is_joined(before, now)) {
        sum->changes++;
    } else if (now->expires_at_us > before->expires_at_us) {
        sum->renewals++;
    }
}

static totals sum_up(const look *before, const look *now)
{
    totals sum = {.waiting = -1};
    size_t at = 0;
    size_t i;
    int order;

    if (before->at_ns != 0) {
        int64_t passed_ms = (now->at_ns - before->at_ns) / 1000000;

        sum.seconds = (double)passed_ms / 1e3;
    }
    for (i = 0; i < now->count; i++) {
        const sqlock_info *row = now->by_key[i];

        sum.held += row->state == SQLOCK_HELD;
        sum.expired += row->state == SQLOCK_EXPIRED;
        if (row->waiters >= 0)
            sum.waiting = (sum.waiting < 0 ? 0 : sum.waiting) + row->waiters;
        order = 1;
        while (at < before->count && order > 0) {
            order = by_key(&row, &before->by_key[at]);
            if (order == 0)
                compare(&sum, before->by_key[at], row);
            at += order >= 0;
        }
        /* A lock that was free before has changed hands, too. */
        if (order != 0 && before->at_ns != 0)
            sum.changes++;
    }
    return sum;
}

/* ---------------------------------------------------------------- output -- */

static void print_totals(const top_view *view, const look *seen,
                         const totals *sum)
{
    char now[32] = "";
    struct timespec clock;
    struct tm utc;

    (void)clock_gettime(CLOCK_REALTIME, &clock);
    if (gmtime_r(&clock.tv_sec, &utc) != NULL)
        (void)strftime(now, sizeof now, "%H:%M:%SZ", &utc);
    printf("sqlock top  %s%s  %s  every %gs%s\n", has_regions ? "" : "region ",
           has_regions ? "all regions" : cli_region(view->app), now,
           (double)delay_ms / 1000, view->may_read ? "  q quits" : "");
    printf("held %zu  expired %zu  waiting ", sum->held, sum->expired);
    if (sum->waiting >= 0)
        printf("%lld", (long long)sum->waiting);
    else
        fputs("-", stdout);
    if (seen->grace_ms > 0)
        printf("  grants nothing for %" PRId64 " s",
               (seen->grace_ms + 999) / 1000);
    if (sum->seconds > 0)
        printf("  hand-overs %.1f/s  renewals %.1f/s  lost %zu\n\n",
               (double)sum->changes / sum->seconds,
               (double)sum->renewals / sum->seconds, sum->losses);
    else
        fputs("  hand-overs -  renewals -  lost -\n\n", stdout);
}

static int print_json(const cli *app, const look *seen, const totals *sum)
{
    json_t *locks = json_array();
    json_t *value;
    size_t i;

    for (i = 0; i < seen->count && i < ROWS_DEFAULT; i++)
        locks = cli_json_append(locks, cli_info_json(app, &seen->rows[i]));
    value = json_pack(
        "{s:I, s:I, s:o, s:f, s:I, s:I, s:I, s:f, s:o}", "held",
        (json_int_t)sum->held, "expired", (json_int_t)sum->expired, "waiting",
        cli_json_number(sum->waiting, sum->waiting >= 0), "seconds",
        sum->seconds, "handovers", (json_int_t)sum->changes, "renewals",
        (json_int_t)sum->renewals, "lost", (json_int_t)sum->losses, "grace",
        (double)seen->grace_ms / 1e3, "locks", locks);
    if (!cli_write_json(value, false))
        return CLI_SYSTEM;
    putchar('\n');
    return CLI_OK;
}

static int print_look(const top_view *view, const look *seen, const totals *sum)
{
    cli_locks locks = {
        .rows = seen->rows, .count = seen->count, .has_regions = has_regions};
    size_t columns;
    size_t lines;
    int status;

    if (view->app->json)
        return print_json(view->app, seen, sum);
    cli_terminal_size(&columns, &lines);
    if (!view->is_screen || lines <= HEAD_LINES + 1)
        lines = ROWS_DEFAULT + HEAD_LINES + 1;
    if (locks.count > lines - HEAD_LINES - 1)
        locks.count = lines - HEAD_LINES - 1;
    if (view->is_screen)
        fputs("\033[H\033[2J", stdout);
    print_totals(view, seen, sum);
    status = cli_locks_print(&locks);
    if (!view->is_screen)
        putchar('\n');
    return status;
}

/* -------------------------------------------------------------- terminal -- */

static void end(int number)
{
    (void)number;
    has_ended = 1;
}

static void begin_view(top_view *view)
{
    /* poll() ends in any case, but no write of a screen */
    struct sigaction ending = {.sa_handler = end, .sa_flags = SA_RESTART};
    struct termios quiet;

    (void)sigaction(SIGINT, &ending, NULL);
    (void)sigaction(SIGTERM, &ending, NULL);
    (void)sigaction(SIGHUP, &ending, NULL);
    view->is_screen = cli_has_screen() && !view->app->json;
    view->may_read = view->is_screen && isatty(STDIN_FILENO) &&
                     tcgetattr(STDIN_FILENO, &view->before) == 0;
    if (view->may_read) {
        quiet = view->before;
        quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        quiet.c_cc[VSUSP] = _POSIX_VDISABLE;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
    }
    /* Use the alternate screen: end_view() brings the normal one back. */
    if (view->is_screen)
        fputs("\033[?1049h\033[?25l", stdout);
}

static void end_view(const top_view *view)
{
    if (view->is_screen)
        fputs("\033[?25h\033[?1049l", stdout);
    if (view->may_read)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &view->before);
}

/* Sleep until the next reading is due.  A blank ends the sleep, "q" or a signal
 * the program. */
static void rest(const top_view *view)
{
    struct pollfd keys = {.fd = view->may_read ? STDIN_FILENO : -1,
                          .events = POLLIN};
    int64_t until_ns = sqlock_monotonic_ns() + delay_ms * 1000000;
    int64_t left_ms = delay_ms;
    char key;

    while (!has_ended && left_ms > 0) {
        if (poll(&keys, 1, (int)left_ms) > 0) {
            if (read(STDIN_FILENO, &key, 1) != 1)
                keys.fd = -1;
            else if (key == 'q' || key == 'Q')
                has_ended = 1;
            else if (key == ' ')
                return;
        }
        left_ms = (until_ns - sqlock_monotonic_ns() + 999999) / 1000000;
    }
}

/* ------------------------------------------------------------------ run -- */

/* Read and print until the end.  If a reading fails, report the error; the
 * first and the last one then end the program with a failure, one in between is
 * tried again after the delay.
 * Return the exit status. */
static int look_on(top_view *view, sqlock_registry *registry)
{
    look before = {.rows = NULL};
    sqlock_error err = {0};
    int status = CLI_OK;

    while (status == CLI_OK && !has_ended) {
        look now;
        totals sum;

        if (take_look(registry, &now, &err) < 0) {
            status = cli_fail(&err);
            if (before.at_ns != 0 && left != 1)
                status = CLI_OK;
        } else {
            sum = sum_up(&before, &now);
            status = print_look(view, &now, &sum);
            clear(&before);
            before = now;
        }
        if (status == CLI_OK)
            status = cli_flush();
        if (left != 0 && --left == 0)
            break;
        if (status == CLI_OK)
            rest(view);
    }
    clear(&before);
    return status;
}

static int run_top(cli *app)
{
    top_view view = {.app = app};
    int status;

    begin_view(&view);
    status = look_on(&view, app->registry);
    end_view(&view);
    return status;
}

const cli_command cli_top = {
    .name = "top",
    .summary = "show the locks that are held, again and again",
    .options = options_table,
    .opens = true,
    .run = run_top,
};
