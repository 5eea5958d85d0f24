/*
 * defaults.c - read user, password and address from an option file
 *
 * The client libraries can read such files themselves, but then obey every
 * option in them: local-infile, multi-statements, or return-found-rows, with
 * which a refused claim looks like a granted one.  So only five options are
 * read here, and !include lines are ignored.
 */
#include "drivers/mysql/defaults.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/secret.h"

static const char blanks[] = " \t\r\n\f\v";

/* Return the character that a backslash and `c` stand for, or 0 if the
 * backslash is an ordinary character, as in a Windows path. */
static char unescape(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 's':
        return ' ';
    case 't':
        return '\t';
    case '\\':
    case '\'':
    case '"':
        return c;
    default:
        return '\0';
    }
}

/* Undo quotes and escapes in place.  Without quotes, the value ends before a
 * comment and the blanks in front of the comment. */
static void unquote(char *value)
{
    char quote = *value == '\'' || *value == '"' ? *value : '\0';
    const char *from = quote == '\0' ? value : value + 1;
    char *to = value;
    char *end = value; /* behind the last character that counts */

    for (; *from != '\0' && *from != (quote == '\0' ? '#' : quote); from++) {
        char escaped = *from == '\\' ? unescape(from[1]) : '\0';

        if (escaped != '\0')
            from++;
        *to++ = escaped != '\0' ? escaped : *from;
        if (quote != '\0' || escaped != '\0' || strchr(blanks, *from) == NULL)
            end = to;
    }
    *end = '\0';
}

/* Return the member for an option, or NULL if that option is not read.  MySQL
 * does not distinguish '-' and '_' in names, but these names have neither. */
static char **option_named(struct lk_mysql_defaults *out, const char *name)
{
    if (strcmp(name, "user") == 0)
        return &out->user;
    if (strcmp(name, "password") == 0)
        return &out->password;
    if (strcmp(name, "host") == 0)
        return &out->host;
    if (strcmp(name, "port") == 0)
        return &out->port;
    if (strcmp(name, "socket") == 0)
        return &out->socket;
    return NULL;
}

static int take_option(struct lk_mysql_defaults *out, char *line,
                       sqlock_error *err)
{
    char *value = strchr(line, '=');
    char *copy;
    char **option;

    if (value == NULL)
        return 0;
    *value++ = '\0';
    line[strcspn(line, blanks)] = '\0';
    option = option_named(out, line);
    if (option == NULL)
        return 0;
    value += strspn(value, blanks);
    unquote(value);
    copy = strdup(value);
    if (copy == NULL)
        return lk_error_nomem(err);
    lk_wipe_free(*option);
    *option = copy;
    return 0;
}

static bool is_group(const char *line, const char *group)
{
    size_t length = strlen(group);

    return line[0] == '[' && strncmp(line + 1, group, length) == 0 &&
           line[1 + length] == ']';
}

static int read_group(struct lk_mysql_defaults *out, FILE *file,
                      const char *group, sqlock_error *err)
{
    char *line = NULL;
    size_t size = 0;
    bool inside = false;
    int rc = 0;

    rewind(file);
    while (rc == 0 && getline(&line, &size, file) > 0) {
        char *text = line + strspn(line, blanks);

        if (*text == '[')
            inside = is_group(text, group);
        else if (inside && *text != '#' && *text != ';')
            rc = take_option(out, text, err);
    }
    if (line != NULL)
        lk_wipe(line, size);
    free(line);
    return rc;
}

/* Return whether to trust an option file: no file of another user, since sudo
 * may keep HOME, and none that anybody can change. */
static bool is_trusted(const struct stat *status)
{
    return S_ISREG(status->st_mode) && (status->st_mode & S_IWOTH) == 0 &&
           (status->st_uid == geteuid() || status->st_uid == 0);
}

static FILE *open_file(void)
{
    const char *home = secure_getenv("HOME");
    struct stat status;
    FILE *file = NULL;
    char *path = NULL;

    if (home == NULL || asprintf(&path, "%s/.my.cnf", home) < 0)
        return NULL;
    file = fopen(path, "re");
    free(path);
    if (file == NULL)
        return NULL;
    if (fstat(fileno(file), &status) != 0 || !is_trusted(&status)) {
        (void)fclose(file);
        return NULL;
    }
    return file;
}

int lk_mysql_defaults_read(struct lk_mysql_defaults *out, const char *group,
                           sqlock_error *err)
{
    FILE *file;
    int rc;

    memset(out, 0, sizeof *out);
    file = open_file();
    if (file == NULL)
        return 0;
    rc = read_group(out, file, "client", err);
    if (rc == 0 && group != NULL)
        rc = read_group(out, file, group, err);
    (void)fclose(file);
    return rc;
}

void lk_mysql_defaults_clear(struct lk_mysql_defaults *defaults)
{
    free(defaults->user);
    lk_wipe_free(defaults->password);
    free(defaults->host);
    free(defaults->port);
    free(defaults->socket);
    memset(defaults, 0, sizeof *defaults);
}
