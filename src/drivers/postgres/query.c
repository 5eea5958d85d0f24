/*
 * query.c - one statement on a session: send it, wait until the deadline, read
 * everything the server has to say, hand up rows and count
 *
 * It never blocks, and never sends anything twice, but for a prepared statement
 * that the server does not know any more: that one was not carried out.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "drivers/postgres/session.h"

/* Type numbers of the server's catalogue, fixed for good. */
enum {
    OID_UNKNOWN = 0,
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_BPCHAR = 1042
};

#define PARAMETERS_MAX 64
#define INTEGER_SIZE 24

/* Parameters as libpq takes them: text, with the type where we know better than
 * the server.  A LOCK_KEY that says it is text would not use the primary key,
 * which is CHAR; the server itself infers it right. */
struct arguments {
    int count;
    Oid types[PARAMETERS_MAX];
    const char *values[PARAMETERS_MAX];
    char integers[PARAMETERS_MAX][INTEGER_SIZE];
};

/* ------------------------------------------------------------ the socket -- */

bool lk_pg_is_alive(lk_pg *session)
{
    struct pollfd entry = {.events = POLLIN};

    /* What arrives at an idle session is the server's goodbye or news of a
     * setting: read on until there is nothing. */
    while (session->conn != NULL && !session->dead) {
        if (lk_pg_is_aborted(session) ||
            PQstatus(session->conn) != CONNECTION_OK) {
            session->dead = true;
            break;
        }
        entry.fd = PQsocket(session->conn);
        if (poll(&entry, 1, 0) <= 0)
            return true;
        if (PQconsumeInput(session->conn) == 0)
            session->dead = true;
        else
            (void)PQisBusy(session->conn); /* parses */
    }
    return false;
}

int lk_pg_check(lk_pg *session, int64_t deadline_ns, sqlock_error *err)
{
    bool was_looked_at;

    session->sqlstate[0] = '\0';
    if (session->conn != NULL && lk_pg_is_aborted(session))
        return lk_error(err, SQLOCK_ECANCELED,
                        "the connection was aborted, nothing was sent");
    was_looked_at = session->was_looked_at && !session->dead;
    session->was_looked_at = false;
    if (!was_looked_at && !lk_pg_is_alive(session))
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the connection to PostgreSQL is closed");
    if (sqlock_monotonic_ns() >= deadline_ns)
        return lk_error(err, SQLOCK_ECANCELED,
                        "no time is left, nothing was sent");
    return 0;
}

/* The connection ends with a statement in flight. */
static int lose(lk_pg *session, int code, const char *reason, sqlock_error *err)
{
    session->dead = true;
    return lk_error(err, code, "lost the connection to PostgreSQL: %.*s",
                    (int)strcspn(reason, "\n"), reason);
}

/* Wait until the next result can be read without blocking. */
static int await_result(lk_pg *session, int64_t deadline_ns, int lost,
                        sqlock_error *err)
{
    short ready = 0;
    int unsent;

    for (;;) {
        unsent = PQflush(session->conn);
        if (unsent < 0)
            return lose(session, lost, PQerrorMessage(session->conn), err);
        if (PQisBusy(session->conn) == 0)
            return 0;
        switch (lk_pg_wait(session, PQsocket(session->conn),
                           unsent > 0 ? POLLIN | POLLOUT : POLLIN, deadline_ns,
                           &ready)) {
        case LK_PG_READY:
            break;
        case LK_PG_TIME_IS_UP:
            /* No cancel request: it needs another connection to the same
             * silent server.  The limits set on the session end the ghost. */
            return lose(session, lost, "no answer in time", err);
        default:
            return lose(session, lost, "aborted", err);
        }
        if ((ready & ~POLLOUT) != 0 && PQconsumeInput(session->conn) == 0)
            return lose(session, lost, PQerrorMessage(session->conn), err);
    }
}

/* One of the results of a statement: 0 when it is a success. */
static int judge(lk_pg *session, const PGresult *result, int lost,
                 sqlock_error *err)
{
    switch (PQresultStatus(result)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
        return 0;
    case PGRES_FATAL_ERROR:
        return lk_pg_statement_error(session, result, lost, err);
    case PGRES_EMPTY_QUERY:
        return lk_error(err, SQLOCK_EDATABASE, "the statement is empty");
    default: /* COPY, or what a later libpq may have */
        return lose(session, lost, "the answer makes no sense", err);
    }
}

/*
 * Read all results.  The commit of a statement outside a transaction comes
 * after its result: success is only known when nothing is left to read.
 * The first error counts.  *out (may be NULL) gets the last result.
 */
static int read_results(lk_pg *session, int64_t deadline_ns, int lost,
                        PGresult **out, sqlock_error *err)
{
    PGresult *last = NULL;
    PGresult *next;
    bool complete = false;
    int rc = 0;
    int bad;

    while (!session->dead) {
        bad = await_result(session, deadline_ns, lost, rc < 0 ? NULL : err);
        if (bad < 0) {
            rc = rc < 0 ? rc : bad;
            break;
        }
        next = PQgetResult(session->conn);
        if (next == NULL) {
            complete = true;
            break;
        }
        bad = judge(session, next, lost, rc < 0 ? NULL : err);
        if (rc == 0)
            rc = bad;
        PQclear(last);
        last = next;
    }
    if (rc == 0 && !complete)
        rc = lose(session, lost, "it ended early", err);
    if (rc == 0 && out != NULL) {
        *out = last;
        return 0;
    }
    PQclear(last);
    return rc;
}

/* Outside a transaction a statement commits by itself (F58). */
static void begin_watching(lk_pg *session, bool commits)
{
    session->watches_commit = commits;
    session->unsafe_commit = false;
}

static int end_watching(lk_pg *session, int rc, sqlock_error *err)
{
    session->watches_commit = false;
    if (rc < 0 || !session->unsafe_commit)
        return rc;
    session->dead = true;
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "committed, but the wait for the synchronous standby was "
                    "cancelled");
}

/* libpq could not even queue it: without its end the server does nothing. */
static int not_sent(lk_pg *session, sqlock_error *err)
{
    const char *reason = PQerrorMessage(session->conn);

    session->dead = true;
    return lk_error(err, SQLOCK_EUNREACHABLE, "cannot send to PostgreSQL: %.*s",
                    (int)strcspn(reason, "\n"), reason);
}

static int run_simple(lk_pg *session, const char *text, int64_t deadline_ns,
                      PGresult **result, sqlock_error *err)
{
    int rc;

    rc = lk_pg_check(session, deadline_ns, err);
    if (rc < 0)
        return rc;
    if (PQsendQuery(session->conn, text) == 0)
        return not_sent(session, err);
    begin_watching(session, true);
    rc = read_results(session, deadline_ns, SQLOCK_EUNCERTAIN, result, err);
    return end_watching(session, rc, err);
}

int lk_pg_simple(lk_pg *session, const char *text, int64_t deadline_ns,
                 char tag[16], sqlock_error *err)
{
    PGresult *result = NULL;
    int rc = run_simple(session, text, deadline_ns, &result, err);

    if (rc == 0 && tag != NULL)
        (void)snprintf(tag, 16, "%s",
                       result == NULL ? "" : PQcmdStatus(result));
    PQclear(result);
    return rc;
}

int lk_pg_ask(lk_pg *session, const char *text, int64_t deadline_ns, char *cell,
              size_t size, sqlock_error *err)
{
    PGresult *result = NULL;
    int rc = run_simple(session, text, deadline_ns, &result, err);

    *cell = '\0';
    if (rc == 0 && PQntuples(result) > 0) /* PQgetvalue: "" for null */
        (void)snprintf(cell, size, "%s",
                       PQgetvalue(result, 0, PQnfields(result) - 1));
    PQclear(result);
    return rc;
}

/* ------------------------------------------------------------ parameters -- */

/* What "%lld" would write, in a fraction of the time. */
static const char *digits_of(char out[INTEGER_SIZE], int64_t integer)
{
    uint64_t rest = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    char *at = out + INTEGER_SIZE;

    *--at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (integer < 0)
        *--at = '-';
    return at;
}

static int fill_arguments(struct arguments *arguments,
                          const sqlock_value *parameters, size_t count,
                          sqlock_error *err)
{
    size_t i;

    if (count > PARAMETERS_MAX)
        return lk_error(err, SQLOCK_EINVAL, "more than %d parameters",
                        PARAMETERS_MAX);
    arguments->count = (int)count;
    for (i = 0; i < count; i++) {
        const sqlock_value *value = &parameters[i];

        arguments->types[i] = OID_UNKNOWN;
        switch (value->type) {
        case SQLOCK_INT64:
            arguments->types[i] = OID_INT8;
            arguments->values[i] =
                digits_of(arguments->integers[i], value->integer);
            break;
        case SQLOCK_TEXT:
            arguments->values[i] = value->text;
            break;
        default:
            arguments->values[i] = NULL;
            break;
        }
    }
    return 0;
}

/* --------------------------------------------------------------- results -- */

/* Digits as the server writes them; it never writes more than fit. */
static int64_t integer_of(const char *text)
{
    bool negative = *text == '-';
    uint64_t number = 0;

    if (*text == 't')
        return 1;
    for (text += negative ? 1 : 0; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return (int64_t)(negative ? 0 - number : number);
}

static void read_cell(sqlock_value *cell, const PGresult *source, int row,
                      int column)
{
    memset(cell, 0, sizeof *cell);
    if (PQgetisnull(source, row, column))
        return;
    cell->text = PQgetvalue(source, row, column);
    cell->length = (size_t)PQgetlength(source, row, column);
    switch (PQftype(source, column)) {
    case OID_BOOL:
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
        cell->type = SQLOCK_INT64;
        cell->integer = integer_of(cell->text);
        break;
    case OID_BPCHAR: /* CHAR(n) comes padded */
        while (cell->length > 0 && cell->text[cell->length - 1] == ' ')
            cell->length--;
        cell->type = SQLOCK_TEXT;
        break;
    default:
        cell->type = SQLOCK_TEXT;
        break;
    }
}

/* Rows of a SELECT are counted too by the server, but none was changed. */
static int64_t affected_by(PGresult *source)
{
    const char *tag = PQcmdStatus(source);

    if (strncmp(tag, "INSERT", 6) != 0 && strncmp(tag, "UPDATE", 6) != 0 &&
        strncmp(tag, "DELETE", 6) != 0 && strncmp(tag, "MERGE", 5) != 0)
        return 0;
    return integer_of(PQcmdTuples(source));
}

static int hand_up(sqlock_result *result, PGresult *source, sqlock_error *err)
{
    int rows = PQntuples(source);
    int columns = PQnfields(source);
    sqlock_value cell;
    int row, column, rc;

    rc = sqlock_result_start(result, (size_t)columns);
    for (row = 0; rc == 0 && row < rows; row++) {
        for (column = 0; rc == 0 && column < columns; column++) {
            read_cell(&cell, source, row, column);
            rc = sqlock_result_push(result, &cell);
        }
    }
    if (rc < 0) {
        /* It was carried out, but with what outcome is lost. */
        sqlock_result_clear(result);
        return lk_error(err, SQLOCK_EUNCERTAIN, "out of memory for the answer");
    }
    result->affected = affected_by(source);
    return 0;
}

/* --------------------------------------------------- prepared statements -- */

/* FNV-1a.  Part of the name, so that behind a pooler, where sessions share
 * backends, no other program's statement of that id can be meant. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static void name_it(char name[LK_PG_NAME_SIZE], const lk_pg *session,
                    const sqlock_statement *statement)
{
    (void)snprintf(name, LK_PG_NAME_SIZE, "sqlock_%u_%016llx_%u", statement->id,
                   (unsigned long long)hash_of(statement->text),
                   session->generation);
}

static int prepare(lk_pg *session, const sqlock_statement *statement,
                   const struct arguments *arguments, int64_t deadline_ns,
                   sqlock_error *err)
{
    char *name = session->prepared[statement->id - 1];
    int rc;

    name_it(name, session, statement);
    rc = PQsendPrepare(session->conn, name, statement->text, arguments->count,
                       arguments->types);
    if (rc == 0)
        return not_sent(session, err);
    /* If it is lost, the statement itself has not been sent. */
    rc = read_results(session, deadline_ns, SQLOCK_EUNREACHABLE, NULL, err);
    /* 42P05: the backend has it already, from before a pooler gave it to us. */
    if (rc < 0 && strcmp(session->sqlstate, "42P05") == 0 &&
        PQtransactionStatus(session->conn) == PQTRANS_IDLE)
        rc = 0;
    if (rc < 0)
        name[0] = '\0';
    return rc;
}

/* The server does not know the prepared statement, or its result has changed
 * shape by DDL: it was not carried out, and can be sent anew.  A statement that
 * is not known was prepared on another backend, and one that is there already
 * (42P05) on this one for somebody else: a pooler lends them, and would lend
 * another one again. */
static bool forget_stale(lk_pg *session)
{
    if (strcmp(session->sqlstate, "26000") == 0 ||
        strcmp(session->sqlstate, "42P05") == 0) {
        session->is_unprepared = true;
        return true;
    }
    if (strcmp(session->sqlstate, "0A000") == 0) {
        memset(session->prepared, 0, sizeof session->prepared);
        session->generation++;
        return true;
    }
    return false;
}

/* ------------------------------------------------------------- execution -- */

static bool is_prepared(const lk_pg *session, const sqlock_statement *statement)
{
    return statement->id > 0 && !session->is_unprepared;
}

static int send_statement(lk_pg *session, const sqlock_statement *statement,
                          const struct arguments *arguments)
{
    const char *const *values = arguments->values;

    if (is_prepared(session, statement))
        return PQsendQueryPrepared(session->conn,
                                   session->prepared[statement->id - 1],
                                   arguments->count, values, NULL, NULL, 0);
    if (arguments->count == 0)
        return PQsendQuery(session->conn, statement->text);
    return PQsendQueryParams(session->conn, statement->text, arguments->count,
                             arguments->types, values, NULL, NULL, 0);
}

static int run(lk_pg *session, const sqlock_statement *statement,
               const struct arguments *arguments, int64_t deadline_ns,
               PGresult **out, sqlock_error *err)
{
    bool commits = PQtransactionStatus(session->conn) == PQTRANS_IDLE;
    int rc;

    session->sqlstate[0] = '\0';
    if (is_prepared(session, statement) &&
        session->prepared[statement->id - 1][0] == '\0') {
        rc = prepare(session, statement, arguments, deadline_ns, err);
        if (rc < 0)
            return rc;
        session->sqlstate[0] = '\0';
    }
    if (send_statement(session, statement, arguments) == 0)
        return not_sent(session, err);
    begin_watching(session, commits);
    rc = read_results(session, deadline_ns, SQLOCK_EUNCERTAIN, out, err);
    rc = end_watching(session, rc, err);
    if (rc < 0) {
        PQclear(*out);
        *out = NULL;
    }
    return rc;
}

int lk_pg_execute(void *connection, const sqlock_statement *statement,
                  const sqlock_value *parameters, size_t count,
                  int64_t deadline_ns, sqlock_result *result, sqlock_error *err)
{
    lk_pg *session = connection;
    struct arguments arguments;
    PGresult *source = NULL;
    bool in_transaction;
    int rc;

    if (statement->id > SQLOCK_STATEMENT_IDS)
        return lk_error(err, SQLOCK_EINVAL, "statement id %u is too great",
                        statement->id);
    rc = fill_arguments(&arguments, parameters, count, err);
    if (rc < 0)
        return rc;
    rc = lk_pg_check(session, deadline_ns, err);
    if (rc < 0)
        return rc;

    in_transaction = PQtransactionStatus(session->conn) != PQTRANS_IDLE;
    rc = run(session, statement, &arguments, deadline_ns, &source, err);
    if (rc < 0 && !session->dead && is_prepared(session, statement) &&
        forget_stale(session)) {
        if (in_transaction) /* which it has spoilt */
            return lk_error(err, SQLOCK_ERETRY,
                            "a prepared statement went stale");
        rc = run(session, statement, &arguments, deadline_ns, &source, err);
    }
    if (rc < 0)
        return rc;
    if (source != NULL)
        rc = hand_up(result, source, err);
    PQclear(source);
    return rc;
}
