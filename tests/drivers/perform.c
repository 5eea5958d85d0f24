/*
 * perform.c - see perform.h
 */
#include "drivers/perform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/writer.h"
#include "drivers/hearing.h"

/* Open a session while a MySQL server has a setting, which is then the default
 * again. */
static int open_under(struct session *session, const char *setting)
{
    struct session admin;
    int rc = session_open_at(&admin, database_admin_url(subject.database),
                             LOCK_TIMEOUT_MS);

    session_ok(&admin, rc);
    session_run(&admin, "SET GLOBAL %s", setting);
    rc = session_open_at(session, subject.url, LOCK_TIMEOUT_MS);
    session_run(&admin, "SET GLOBAL %.*s = DEFAULT",
                (int)strcspn(setting, " ="), setting);
    session_close(&admin);
    return rc;
}

static int send_text(struct session *session, const char *text, uint32_t id)
{
    const sqlock_statement statement = {.text = text, .id = id};

    return session_send(session, &statement, NULL, 0,
                        check_deadline_ns(DEADLINE_MS));
}

/* ----------------------------------------------------------------- bells -- */

/* "listens NAME [MS]": for so long at most, where another session is waited
 * for. */
static int listen_at(struct session *session, const char *arguments)
{
    size_t length = strcspn(arguments, " ");
    char name[64];

    skip_behind_a_pooler();
    (void)snprintf(name, sizeof name, "%.*s", (int)length, arguments);
    return begin_hearing(session, name, strtoll(arguments + length, NULL, 10));
}

/* "rings NAME TEXT". */
static int ring_at(struct session *session, const char *arguments)
{
    size_t length = strcspn(arguments, " ");
    char name[64];
    char rings[160];

    (void)snprintf(name, sizeof name, "%.*s", (int)length, arguments);
    return session_try(
        session, "SELECT %s",
        ringing(rings, name, arguments + length + (arguments[length] != 0)));
}

/* "hears TEXT", alone; "hears nothing"; or "hears", with the driver's code. */
static int hear_text(struct session *session, const char *expected)
{
    static struct heard heard;
    bool is_nothing = strcmp(expected, "nothing") == 0;
    int rc = is_nothing ? hear(session, &heard) : await_ring(session, &heard);

    if (*expected == '\0')
        return sqlock_error_set(&session->err, rc, 0, NULL, "it hears %d", rc);
    if (is_nothing
            ? rc == SQLOCK_EBUSY && heard.count == 0
            : rc == 0 && heard.count == 1 && strcmp(heard.last, expected) == 0)
        return 0;
    return sqlock_error_set(&session->err, SQLOCK_ECONFLICT, 0, NULL,
                            "it hears %u texts, the last one \"%s\": %d",
                            heard.count, heard.last, rc);
}

/* ----------------------------------------------------------------- lines -- */

/* Return what stands behind a verb, or NULL if the line begins with another
 * word. */
static const char *behind(const char *line, const char *verb)
{
    size_t length = strlen(verb);

    if (strncmp(line, verb, length) != 0 ||
        (line[length] != ' ' && line[length] != '\0'))
        return NULL;
    return line + length + strspn(line + length, " ");
}

static int open_session(struct session *session, const char *arguments)
{
    const char *setting = behind(arguments, "under");

    if (setting != NULL)
        return open_under(session, setting);
    return session_open_at(session, subject.url,
                           *arguments == '\0'
                               ? LOCK_TIMEOUT_MS
                               : (uint32_t)strtoul(arguments, NULL, 10));
}

static int perform(struct session *session, const char *line)
{
    const char *rest;

    if (strcmp(line, "closes") == 0) {
        session_close(session);
        return 0;
    }
    if ((rest = behind(line, "opens")) != NULL)
        return open_session(session, rest);
    if (session->connection == NULL)
        session_open(session);
    if (strcmp(line, "begin") == 0)
        return session_begin(session);
    if (strcmp(line, "commit") == 0)
        return session_commit(session);
    if (strcmp(line, "rollback") == 0)
        return session_rollback(session);
    if ((rest = behind(line, "prepared")) != NULL)
        return send_text(session, rest, SQLOCK_STATEMENT_IDS);
    if ((rest = behind(line, "listens")) != NULL)
        return listen_at(session, rest);
    if (strcmp(line, "aborts") == 0) {
        subject.driver->abort(session->connection);
        return 0;
    }
    if (strcmp(line, "stops") == 0)
        return end_hearing(session);
    if ((rest = behind(line, "rings")) != NULL)
        return ring_at(session, rest);
    if ((rest = behind(line, "hears")) != NULL)
        return hear_text(session, rest);
    return send_text(session, line, 0);
}

int session_perform(struct session *session, const char *line,
                    const struct lk_name *names)
{
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);
    char *named;
    int rc;

    assert_non_null(out);
    lk_names_write(out, line, names);
    named = lk_writer_close(&writer);
    assert_non_null(named);
    rc = perform(session, named);
    free(named);
    return rc;
}

int64_t session_number(struct session *session)
{
    sqlock_description description = {.connection_id = 0};

    if (session->is_open)
        subject.driver->describe(session->connection, &description);
    return description.connection_id;
}
