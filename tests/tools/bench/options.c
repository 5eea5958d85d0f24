/*
 * options.c - read the command line of the benchmark
 *
 * Values are checked by themselves.  Whether a server can be reached shows when
 * it is used.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_DEFAULT 0.25
#define REPEATS_DEFAULT 7
#define LIMIT_DEFAULT 10.0

static const struct {
    const char *name;
    const char *variable;
    const char *pid_variable;
} databases[BENCH_DATABASES] = {
    {"postgres", "SQLOCK_TEST_POSTGRES_URL", "SQLOCK_TEST_POSTGRES_PID"},
    {"mysql", "SQLOCK_TEST_MYSQL_URL", "SQLOCK_TEST_MYSQL_PID"},
    {"sqlite", "SQLOCK_TEST_SQLITE_URL", NULL},
};

enum {
    OPTION_SECONDS = 256,
    OPTION_REPEATS,
    OPTION_CLIENTS,
    OPTION_CASES,
    OPTION_HOLD,
    OPTION_LIMIT,
    OPTION_JSON,
    OPTION_SERVE,
    OPTION_HELP
};

static const struct option long_options[] = {
    {"postgres", required_argument, NULL, BENCH_POSTGRES},
    {"mysql", required_argument, NULL, BENCH_MYSQL},
    {"sqlite", required_argument, NULL, BENCH_SQLITE},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"repeats", required_argument, NULL, OPTION_REPEATS},
    {"clients", required_argument, NULL, OPTION_CLIENTS},
    {"cases", required_argument, NULL, OPTION_CASES},
    {"hold", required_argument, NULL, OPTION_HOLD},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"json", required_argument, NULL, OPTION_JSON},
    {"serve", no_argument, NULL, OPTION_SERVE}, /* see processes.c */
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

const char *bench_database_name(enum bench_database database)
{
    return databases[database].name;
}

static void print_help(void)
{
    const struct bench_group *group;
    const struct bench_case *at;

    printf(
        "usage: bench [--postgres URL] [--mysql URL] [--sqlite PATH]\n"
        "             [--clients N,Np,NxT...] [--cases NAME,NAME...|all]\n"
        "             [--seconds S] [--repeats N] [--limit S] [--hold MS,...]\n"
        "             [--json FILE] [--help]\n"
        "\n"
        "Measures sqlock against the bare statements of the same client\n"
        "library on the same server, in slices of time that alternate.\n"
        "Without a database in the arguments it takes those of\n"
        "SQLOCK_TEST_POSTGRES_URL, SQLOCK_TEST_MYSQL_URL and\n"
        "SQLOCK_TEST_SQLITE_URL, and tells the server's CPU time where\n"
        "SQLOCK_TEST_POSTGRES_PID or SQLOCK_TEST_MYSQL_PID is set.  Makes\n"
        "tables of its own in each database, and drops them.\n"
        "\n"
        "For each operation the table also has what clients send by TCP, in\n"
        "requests (sent) and in bytes both ways (wire), and the bytes that "
        "the\n"
        "server writes to its WAL or redo log (log) and to MariaDB's binary\n"
        "log, where it is on; for SQLite the bytes written to its files.\n"
        "\n"
        "  --clients   how many at a time, up to %d each: threads, with a "
        "\"p\"\n"
        "              behind the number processes, or 8x8, processes of\n"
        "              threads; 1,4,16,64,64p\n"
        "  --cases     what to measure, cases or groups; %s\n"
        "  --seconds   length of one slice; %.2f\n"
        "  --repeats   slices of each case, up to %d; %d\n"
        "  --limit     time for a case: no further slices are begun; %.0f s\n"
        "  --hold      for how long a lock is held that others wait for, each\n"
        "              a row; 0,0.1,5,100 ms\n"
        "  --json      write the results there as well\n",
        BENCH_CLIENTS_MAX, bench_groups[0].name, SECONDS_DEFAULT,
        BENCH_REPEATS_MAX, REPEATS_DEFAULT, LIMIT_DEFAULT);
    for (group = bench_groups; group->name != NULL; group++) {
        printf("\nGroup %s: %s (ratio to):\n", group->name, group->what);
        for (at = group->cases; at->name != NULL; at++)
            printf("  %-18s %s (%s)%s\n", at->name, at->what, at->baseline,
                   bench_case_is_there(at) ? "" : ": not installed");
    }
}

static int read_number(unsigned *out, const char *text, unsigned limit,
                       const char *what, struct bench_failure *failure)
{
    char *end = NULL;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' ||
        value < 1 || value > limit)
        return bench_fail(failure, "%s: a number from 1 to %u, not \"%s\"",
                          what, limit, text);
    *out = (unsigned)value;
    return 0;
}

static int read_fraction(double *out, const char *text, double least,
                         double most, const char *what,
                         struct bench_failure *failure)
{
    char *end = NULL;

    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !(*out >= least && *out <= most))
        return bench_fail(failure, "%s: %g to %g, not \"%s\"", what, least,
                          most, text);
    return 0;
}

/* Read "64", "64p" or "8x8", which is cut in place. */
static int read_count(struct bench_clients *out, char *word,
                      struct bench_failure *failure)
{
    size_t length = strlen(word);
    char *of_each = strchr(word, 'x');
    unsigned threads = 1;
    int rc;

    out->processes = 0;
    if (of_each != NULL) {
        *of_each++ = '\0';
        rc = read_number(&threads, of_each, BENCH_CLIENTS_MAX, "--clients",
                         failure);
        if (rc != 0)
            return rc;
    } else if (length > 1 && word[length - 1] == 'p') {
        word[length - 1] = '\0';
        of_each = word;
    }
    rc = read_number(&out->count, word, BENCH_CLIENTS_MAX / threads,
                     "--clients", failure);
    if (of_each != NULL)
        out->processes = out->count;
    out->count *= threads;
    return rc;
}

/* Read the list of --clients, which is cut into words in place. */
static int read_clients(struct bench_options *options, char *list,
                        struct bench_failure *failure)
{
    char *rest = NULL;
    char *word = strtok_r(list, ",", &rest);
    int rc;

    options->client_counts = 0;
    for (; word != NULL; word = strtok_r(NULL, ",", &rest)) {
        struct bench_clients *to = &options->clients[options->client_counts];

        if (options->client_counts == BENCH_COUNTS_MAX)
            return bench_fail(failure, "--clients: %d numbers at most",
                              BENCH_COUNTS_MAX);
        rc = read_count(to, word, failure);
        if (rc != 0)
            return rc;
        options->client_counts++;
    }
    if (options->client_counts == 0)
        return bench_fail(failure, "--clients: no number");
    return 0;
}

/* Read the list of --hold, which is cut into words in place. */
static int read_holds(struct bench_options *options, char *list,
                      struct bench_failure *failure)
{
    char *rest = NULL;
    char *word = strtok_r(list, ",", &rest);
    int rc = 0;

    options->hold_count = 0;
    for (; word != NULL && rc == 0; word = strtok_r(NULL, ",", &rest)) {
        if (options->hold_count == BENCH_HOLDS_MAX)
            return bench_fail(failure, "--hold: %d values at most",
                              BENCH_HOLDS_MAX);
        rc = read_fraction(&options->holds_ms[options->hold_count], word, 0,
                           1000, "--hold", failure);
        options->hold_count++;
    }
    if (rc == 0 && options->hold_count == 0)
        return bench_fail(failure, "--hold: no value");
    return rc;
}

static int add_case(struct bench_plan *plan, const struct bench_case *the_case,
                    struct bench_failure *failure)
{
    if (plan->count == BENCH_CASES_MAX)
        return bench_fail(failure, "--cases: %d at most", BENCH_CASES_MAX);
    plan->cases[plan->count] = the_case;
    plan->count++;
    return 0;
}

static int add_group(struct bench_plan *plan, const struct bench_group *group,
                     struct bench_failure *failure)
{
    const struct bench_case *at;
    int rc = 0;

    for (at = group->cases; at->name != NULL && rc == 0; at++) {
        if (bench_case_is_there(at))
            rc = add_case(plan, at, failure);
    }
    return rc;
}

/* Add the case or the group of that name, or all groups for "all". */
static int add_named(struct bench_plan *plan, const char *name,
                     struct bench_failure *failure)
{
    const struct bench_case *the_case = bench_case_find(name);
    const struct bench_group *group = bench_group_find(name);
    int rc = 0;

    if (the_case != NULL && !bench_case_is_there(the_case))
        return bench_fail(failure, "--cases: %s needs %s, which is not in PATH",
                          name, the_case->needs);
    if (the_case != NULL)
        return add_case(plan, the_case, failure);
    if (group != NULL)
        return add_group(plan, group, failure);
    if (strcmp(name, "all") != 0)
        return bench_fail(failure, "--cases: no case or group \"%s\"", name);
    for (group = bench_groups; group->name != NULL && rc == 0; group++)
        rc = add_group(plan, group, failure);
    return rc;
}

static int read_cases(struct bench_plan *plan, char *list,
                      struct bench_failure *failure)
{
    char *rest = NULL;
    char *word = strtok_r(list, ",", &rest);
    int rc = 0;

    plan->count = 0;
    for (; word != NULL && rc == 0; word = strtok_r(NULL, ",", &rest))
        rc = add_named(plan, word, failure);
    if (rc == 0 && plan->count == 0)
        rc = bench_fail(failure, "--cases: no name");
    return rc;
}

static int take_url(char **out, const char *prefix, const char *value,
                    struct bench_failure *failure)
{
    free(*out);
    *out = NULL;
    if (asprintf(out, "%s%s", prefix, value) < 0) {
        *out = NULL;
        return bench_fail(failure, "out of memory");
    }
    return 0;
}

static int read_option(struct bench_options *out, int option, char *value,
                       struct bench_failure *failure)
{
    switch (option) {
    case BENCH_POSTGRES:
    case BENCH_MYSQL:
        return take_url(&out->urls[option], "", value, failure);
    case BENCH_SQLITE:
        return take_url(
            &out->urls[option],
            strncmp(value, "sqlite:", 7) == 0 ? "" : "sqlite:", value, failure);
    case OPTION_SECONDS:
        return read_fraction(&out->plan.seconds, value, 0.01, 600, "--seconds",
                             failure);
    case OPTION_REPEATS:
        return read_number(&out->plan.repeats, value, BENCH_REPEATS_MAX,
                           "--repeats", failure);
    case OPTION_CLIENTS:
        return read_clients(out, value, failure);
    case OPTION_CASES:
        return read_cases(&out->plan, value, failure);
    case OPTION_HOLD:
        return read_holds(out, value, failure);
    case OPTION_LIMIT:
        return read_fraction(&out->plan.limit, value, 0, 3600, "--limit",
                             failure);
    case OPTION_JSON:
        out->json = value;
        return 0;
    case OPTION_SERVE:
        out->is_serving = true;
        return 0;
    case OPTION_HELP:
        out->is_help = true;
        print_help();
        return 0;
    default:
        return bench_fail(failure, "see --help"); /* getopt has said why */
    }
}

/* Return the process id of a server of the environment; 0: unknown, or no
   number.  A server of the command line may run on any machine. */
static pid_t read_pid(enum bench_database database)
{
    const char *variable = databases[database].pid_variable;
    const char *value = variable != NULL ? getenv(variable) : NULL;

    return value != NULL ? (pid_t)strtol(value, NULL, 10) : 0;
}

static int read_environment(struct bench_options *out,
                            struct bench_failure *failure)
{
    const char *value;
    enum bench_database i;
    int rc = 0;

    for (i = 0; i < BENCH_DATABASES && rc == 0; i++) {
        value = getenv(databases[i].variable);
        if (value == NULL || value[0] == '\0')
            continue;
        rc = take_url(&out->urls[i], "", value, failure);
        out->server_pids[i] = read_pid(i);
    }
    return rc;
}

static bool names_a_database(const struct bench_options *options)
{
    size_t i;

    for (i = 0; i < BENCH_DATABASES; i++) {
        if (options->urls[i] != NULL)
            return true;
    }
    return false;
}

int bench_options_read(struct bench_options *out, int argc, char **argv,
                       struct bench_failure *failure)
{
    static const struct bench_clients clients[] = {
        {1, 0}, {4, 0}, {16, 0}, {64, 0}, {64, 64}};
    static const double holds_ms[] = {0.0, 0.1, 5.0, 100.0};
    int option;
    int rc;

    memset(out, 0, sizeof *out);
    memcpy(out->clients, clients, sizeof clients);
    out->client_counts = sizeof clients / sizeof clients[0];
    out->plan.seconds = SECONDS_DEFAULT;
    out->plan.limit = LIMIT_DEFAULT;
    memcpy(out->holds_ms, holds_ms, sizeof holds_ms);
    out->hold_count = sizeof holds_ms / sizeof holds_ms[0];
    out->plan.repeats = REPEATS_DEFAULT;
    rc = add_group(&out->plan, &bench_groups[0], failure);
    while (rc == 0 && !out->is_help) {
        option = getopt_long(argc, argv, "", long_options, NULL);
        if (option == -1)
            break;
        rc = read_option(out, option, optarg, failure);
    }
    if (rc != 0 || out->is_help || out->is_serving)
        return rc;
    if (optind < argc)
        return bench_fail(failure, "\"%s\" is no option; see --help",
                          argv[optind]);
    if (!names_a_database(out))
        rc = read_environment(out, failure);
    if (rc == 0 && !names_a_database(out))
        rc = bench_fail(failure, "no database to measure; see --help");
    return rc;
}

void bench_options_clear(struct bench_options *options)
{
    size_t i;

    for (i = 0; i < BENCH_DATABASES; i++)
        free(options->urls[i]);
    memset(options, 0, sizeof *options);
}
