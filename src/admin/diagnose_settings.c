/*
 * diagnose_settings.c - check the server's settings by the rules of
 * sql/DATABASE/doctor.sql, and whether the connection is encrypted and the
 * server's certificate verified: encryption alone does not keep another server
 * from posing as this one
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/diagnose.h"
#include "base/text.h"

/* --- rules --- */

static const char *setting(const sqlock_result *settings, const char *name)
{
    for (size_t row = 0; row < settings->rows; row++) {
        const sqlock_value *cells = &settings->cells[row * settings->columns];

        if (settings->columns >= 2 && cells[0].type == SQLOCK_TEXT &&
            cells[1].type == SQLOCK_TEXT &&
            strcasecmp(cells[0].text, name) == 0)
            return cells[1].text;
    }
    return NULL;
}

static bool is_good(const struct lk_rule *rule, const char *value)
{
    const char *least = rule->values;
    int64_t number;

    if (rule->sign[0] == '=')
        return lk_text_matches(value, rule->values);
    number = lk_text_digits(&value);
    return number == 0 || number >= lk_text_digits(&least);
}

/* Append the check of a rule. */
static void judge(struct lk_checks *checks, const struct lk_rule *rule,
                  const sqlock_result *settings)
{
    const char *value = setting(settings, rule->setting);
    const char *other = setting(settings, rule->where);
    bool is_met;

    if (value == NULL ||
        (rule->where[0] != '\0' &&
         (other == NULL || !lk_text_matches(other, rule->where_values))))
        return;
    is_met = is_good(rule, value);
    lk_check(checks, rule->check, is_met ? SQLOCK_FINE : rule->otherwise,
             is_met ? NULL : rule->advice, "%s = %s", rule->setting,
             *value != '\0' ? value : "\"\"");
}

static const char *next_line(const char *at)
{
    at += strcspn(at, "\n");
    return *at == '\n' ? at + 1 : at;
}

/* Read the lines of advice, each after this many characters, as one.  Return
 * the line behind them. */
static const char *read_advice(const char *at, struct lk_rule *rule)
{
    static const char indent[] = "--     ";
    size_t used = 0;

    rule->advice[0] = '\0';
    for (; strncmp(at, indent, strlen(indent)) == 0; at = next_line(at)) {
        const char *line = at + strlen(indent);
        int length = (int)strcspn(line, "\n");

        if (used < sizeof rule->advice)
            used += (size_t)snprintf(rule->advice + used,
                                     sizeof rule->advice - used, "%s%.*s",
                                     used > 0 ? " " : "", length, line);
    }
    return at;
}

const char *lk_rule_read(const char *at, struct lk_rule *rule)
{
    /* constants, since checks outlive the rule */
    static const char *const names[] = {"connection", "durability", "failover",
                                        "isolation",  "sharing",    "timeouts"};
    char check[16];
    char otherwise[8];

    rule->check = NULL;
    rule->where[0] = '\0';
    for (; *at != '\0'; at = next_line(at)) {
        (void)sscanf(at, "-- if %63[^ \n] = %127[^\n]", rule->where,
                     rule->where_values);
        if (sscanf(at, "-- %15[a-z]: %63[^ \n] %2[=>] %127[^,\n], else %7[a-z]",
                   check, rule->setting, rule->sign, rule->values,
                   otherwise) != 5)
            continue;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(names[i], check) == 0)
                rule->check = names[i];
        rule->otherwise = otherwise[1] == 'i'   ? SQLOCK_FINE
                          : otherwise[0] == 'w' ? SQLOCK_WARNING
                                                : SQLOCK_FAILURE;
        return read_advice(next_line(at), rule);
    }
    return NULL;
}

void lk_checks_of_rules(struct lk_checks *checks, const char *text,
                        const sqlock_result *settings)
{
    struct lk_rule rule;

    while ((text = lk_rule_read(text, &rule)) != NULL)
        judge(checks, &rule, settings);
}

/* --- TLS --- */

#define HOW_TO                                                                 \
    "have it checked: sslmode=verify-full&sslrootcert=FILE (PostgreSQL), "     \
    "tls=verify&ca=FILE (MySQL) in the URL"

void lk_diagnose_tls(struct lk_checks *checks,
                     const sqlock_description *description, bool is_local)
{
    enum { NONE, NONE_HERE, UNCHECKED, UNCHECKED_HERE, UNNAMED, FULL } i;
    static const struct {
        sqlock_severity severity;
        const char *advice, *found;
    } rows[] = {
        [NONE] = {SQLOCK_WARNING,
                  "require TLS in the URL: sslmode=verify-full (PostgreSQL), "
                  "tls=verify (MySQL)",
                  "the connection is not encrypted: password and locks can be "
                  "read and changed on the network"},
        [NONE_HERE] = {SQLOCK_FINE, NULL,
                       "none, and none needed: the server is on this machine"},
        [UNCHECKED] = {SQLOCK_WARNING, HOW_TO,
                       ", but the server's certificate is not checked: an "
                       "attacker on the network could pose as the server"},
        [UNCHECKED_HERE] = {SQLOCK_FINE, NULL,
                            ", not checked and not needed: the server is on "
                            "this machine"},
        [UNNAMED] = {SQLOCK_WARNING, HOW_TO,
                     ", but the server's name is not checked: a server with "
                     "any certificate of the same authority could pose as it"},
        [FULL] = {SQLOCK_FINE, NULL, ", the server's certificate is checked"},
    };

    if (description->tls[0] == '\0')
        i = is_local ? NONE_HERE : NONE;
    else if (description->tls_check == SQLOCK_TLS_CHECK_FULL)
        i = FULL;
    else if (description->tls_check == SQLOCK_TLS_CHECK_AUTHORITY)
        i = UNNAMED;
    else if (description->tls_check == SQLOCK_TLS_CHECK_NONE && is_local)
        i = UNCHECKED_HERE;
    else
        i = UNCHECKED;
    lk_check(checks, "tls", rows[i].severity, rows[i].advice, "%s%s",
             description->tls, rows[i].found);
}

/* --- asking --- */

/* Return a copy of the next statement of a text, which the caller frees, and
 * set *at behind it; NULL: there is none, or no memory. */
static char *next_statement(const char **at)
{
    const char *end;
    char *copy;

    while (**at == '\n' || strncmp(*at, "--", 2) == 0) /* a comment line */
        *at += strcspn(*at, "\n") + 1;
    end = strstr(*at, ";\n");
    if (end == NULL)
        return NULL;
    copy = strndup(*at, (size_t)(end - *at));
    *at = end + 2;
    return copy;
}

/* Append the rows of a statement of doctor.sql.  One whose table is missing, or
 * not readable, has none. */
static int ask_settings(struct lk_db *db, struct lk_connection *connection,
                        const char *text, int64_t deadline_ns,
                        sqlock_result *all, sqlock_error *err)
{
    sqlock_result some = {0};
    int rc = lk_db_ask(db, connection, text, deadline_ns, &some, err);

    for (size_t i = 0; rc == 0 && i < some.rows * some.columns; i++)
        rc = sqlock_result_push(all, &some.cells[i]);
    sqlock_result_clear(&some);
    return rc == SQLOCK_EACCESS || rc == SQLOCK_ESCHEMA ? 0 : rc;
}

int lk_diagnose_settings(struct lk_checks *checks, struct lk_db *db,
                         struct lk_connection *connection,
                         const sqlock_description *description, bool has_grace,
                         int64_t deadline_ns, sqlock_error *err)
{
    const sqlock_dialect *dialect = db->driver->dialect;
    const sqlock_value grace[] = {sqlock_text("grace"),
                                  sqlock_text(has_grace ? "yes" : "no")};
    const char *at = dialect->doctor;
    sqlock_result all = {0};
    char *text;
    int rc = sqlock_result_start(&all, 2);

    for (size_t i = 0; rc == 0 && i < 2; i++)
        rc = sqlock_result_push(&all, &grace[i]);
    while (rc == 0 && (text = next_statement(&at)) != NULL) {
        rc = ask_settings(db, connection, text, deadline_ns, &all, err);
        free(text);
    }
    if (rc == 0) {
        const char *local = setting(&all, "local");

        /* A database without sessions is not reached by a network. */
        if (dialect->session != NULL)
            lk_diagnose_tls(checks, description,
                            local != NULL && strcmp(local, "yes") == 0);
        lk_checks_of_rules(checks, dialect->doctor, &all);
    } else {
        lk_check(checks, "connection", SQLOCK_FAILURE, NULL,
                 "the server's settings cannot be read: %s", err->message);
    }
    sqlock_result_clear(&all);
    return rc;
}
