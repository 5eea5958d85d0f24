/*
 * classify.c - say of the application's SQL, by its first word, what it may
 * leave behind
 *
 * Only the database parses the text.  A statement that is not known for certain
 * counts as one that may do anything, which costs a connection: otherwise it
 * could leave a setting on a connection that is used again.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "tx/tx.h"

#define BLANKS " \t\r\n\f"

/* Return the end of the block comment that begins at `at`, or NULL if databases
 * disagree about it: MySQL executes some comments, PostgreSQL nests them. */
static const char *skip_block(const char *at)
{
    const char *end = strstr(at + 2, "*/");
    const char *inner = strstr(at + 2, "/*");

    if (end == NULL || at[2] == '!' || strncmp(at + 2, "M!", 2) == 0 ||
        (inner != NULL && inner < end))
        return NULL;
    return end + 2;
}

/* Return the end of the comment that begins at `at` and goes to the end of its
 * line, or NULL: for PostgreSQL a lone carriage return ends it, too. */
static const char *skip_line(const char *at)
{
    const char *end = at + strcspn(at, "\r\n");

    if (*end == '\r' && end[1] != '\n')
        return NULL;
    return end;
}

/* Return the first word, after blanks, comments and parentheses, or NULL if it
 * is not certain which one that is. */
static const char *first_word(const char *sql)
{
    while (sql != NULL) {
        sql += strspn(sql, BLANKS "(");
        if (sql[0] == '/' && sql[1] == '*')
            sql = skip_block(sql);
        else if ((sql[0] == '-' && sql[1] == '-') || sql[0] == '#')
            sql = skip_line(sql);
        else
            break;
    }
    return sql;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool begins_with(const char *sql, const char *const *words)
{
    const char *word = first_word(sql);
    size_t length = 0;

    if (word == NULL)
        return false;
    while (is_word(word[length]))
        length++;
    for (; *words != NULL; words++)
        if (strlen(*words) == length && strncasecmp(word, *words, length) == 0)
            return true;
    return false;
}

/* Return whether a call of set_config(), which begins at `at`, certainly ends
 * with the argument `true`: then the setting ends with the transaction.  With
 * another parenthesis in its arguments it is not certain. */
static bool is_local(const char *at)
{
    const char *end = at + strcspn(at, "(");
    size_t quotes = 0;

    for (end += *end == '('; *end != '\0' && *end != '(' && *end != ')'; end++)
        quotes += *end == '\'';
    if (*end != ')' || quotes % 2 != 0)
        return false;
    while (strchr(BLANKS, end[-1]) != NULL)
        end--;
    end -= strlen("true");
    if (end < at || strncasecmp(end, "true", strlen("true")) != 0)
        return false;
    while (strchr(BLANKS, end[-1]) != NULL)
        end--;
    return end[-1] == ',';
}

/* Return whether the text names something whose effect may outlive the
 * transaction: a setting, also by an UPDATE of PostgreSQL's view, or a lock of
 * the session's. */
static bool changes_session(const char *sql)
{
    const char *at = sql;

    while ((at = strcasestr(at, "set_config")) != NULL) {
        if (!is_local(at))
            return true;
        at += strlen("set_config");
    }
    return strcasestr(sql, "pg_settings") != NULL ||
           strcasestr(sql, "advisory_lock") != NULL ||
           strcasestr(sql, "get_lock") != NULL;
}

bool lk_keeps_locks(const char *sql)
{
    static const char *const words[] = {
        "SELECT",   "INSERT",    "UPDATE",  "DELETE", "REPLACE", "MERGE",
        "WITH",     "VALUES",    "TABLE",   "SHOW",   "EXPLAIN", "DESC",
        "DESCRIBE", "SAVEPOINT", "RELEASE", NULL};

    return begins_with(sql, words) && !changes_session(sql);
}

bool lk_rolls_back(const char *sql)
{
    static const char *const words[] = {"ROLLBACK", NULL};

    return begins_with(sql, words);
}

bool lk_returns_nothing(const char *sql)
{
    static const char *const words[] = {"INSERT", "UPDATE", "DELETE", NULL};

    return begins_with(sql, words) && strcasestr(sql, "returning") == NULL;
}
