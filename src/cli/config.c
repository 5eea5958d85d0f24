/*
 * config.c - read the settings that are not on the command line
 *
 * Sources are environment variables, then the user's file, then the machine's
 * file; the first one that gives a setting wins.  Lines of a file are "name =
 * value" or comments; names are those of the long options.  A file that
 * contains a password and can be read by others is refused, as libpq refuses a
 * key file, because a warning would come too late.  So is one that others can
 * change or replace, since it decides in which database the locks are.  A file
 * of another user is passed over: sudo may have kept HOME.
 *
 * The parser inih is not used: it would end a value at " ;" or a NUL byte,
 * append an indented line to the value before, refuse lines of 200 bytes, and
 * not wipe passwords.
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secret.h"

#define SYSTEM_FILE "/etc/sqlock.conf"

static const struct {
    const char *name;
    const char *variable;
} settings[CLI_SETTINGS] = {
    [CLI_URL] = {"url", "SQLOCK_URL"},
    [CLI_REGION] = {"region", "SQLOCK_REGION"},
    [CLI_PREFIX] = {"table-prefix", "SQLOCK_TABLE_PREFIX"},
    [CLI_RULE] = {"rule", "SQLOCK_RULE"},
    [CLI_PEER_TTL] = {"peer-ttl", "SQLOCK_PEER_TTL"},
};

/* --- the environment --- */

static int keep(cli *app, size_t which, const char *value)
{
    if (app->settings[which] != NULL)
        return CLI_OK;
    app->copies[which] = strdup(value);
    app->settings[which] = app->copies[which];
    if (app->settings[which] != NULL)
        return CLI_OK;
    cli_error("out of memory");
    return CLI_SYSTEM;
}

/* An empty variable is none.  An empty option, but for the prefix of a table
 * that has none, is of one who forgot to set the variable in it. */
static int read_environment(cli *app)
{
    const char *value;
    int status = CLI_OK;
    size_t i;

    for (i = 0; i < CLI_SETTINGS && status == CLI_OK; i++) {
        if (i != CLI_PREFIX && app->settings[i] != NULL &&
            *app->settings[i] == '\0') {
            cli_error("--%s is empty; is a shell variable not set?",
                      settings[i].name);
            return CLI_USAGE;
        }
        value = getenv(settings[i].variable);
        if (value != NULL && *value != '\0')
            status = keep(app, i, value);
    }
    return status;
}

/* --- a file --- */

typedef struct config_file {
    const char *path;
    FILE *stream;
    unsigned line; /* number of the line read last */
} config_file;

static char *trim(char *text)
{
    static const char blanks[] = " \t\r\n";
    size_t length;

    text += strspn(text, blanks);
    length = strlen(text);
    while (length > 0 && strchr(blanks, text[length - 1]) != NULL)
        length--;
    text[length] = '\0';
    return text;
}

/* Return whether a file may contain a password: only its owner can read it or,
 * if root owns it, a group as well. */
static bool is_private(const struct stat *info)
{
    mode_t others =
        info->st_uid == 0 ? S_IRWXO | S_IWGRP | S_IXGRP : S_IRWXO | S_IRWXG;

    return (info->st_mode & others) == 0;
}

static int check_secret(const config_file *file, const char *url)
{
    struct stat info;

    if (!cli_has_password(url))
        return CLI_OK;
    if (fstat(fileno(file->stream), &info) != 0) {
        cli_error("%s: %s", file->path, strerror(errno));
        return CLI_USAGE;
    }
    if (is_private(&info))
        return CLI_OK;
    cli_error("%s:%u: contains a password, but other users can read the file: "
              "chmod 600 it, or keep the password in PGPASSFILE, ~/.my.cnf or "
              "the variable of password_env",
              file->path, file->line);
    return CLI_USAGE;
}

static int read_setting(cli *app, const config_file *file, const char *name,
                        const char *value)
{
    int status;
    size_t i;

    for (i = 0; i < CLI_SETTINGS && strcmp(settings[i].name, name) != 0; i++)
        continue;
    if (i == CLI_SETTINGS) {
        cli_error("%s:%u: there is no setting of that name; see sqlock(1)",
                  file->path, file->line);
        return CLI_USAGE;
    }
    if (*value == '\0') {
        cli_error("%s:%u: %s has no value", file->path, file->line, name);
        return CLI_USAGE;
    }
    if (i == CLI_URL) {
        status = check_secret(file, value);
        if (status != CLI_OK)
            return status;
        app->is_url_of_file =
            app->is_url_of_file || app->settings[CLI_URL] == NULL;
    }
    return keep(app, i, value);
}

/* Read one line, which is changed.  The message about a wrong line does not
 * show its text, which may be a password. */
static int read_line(cli *app, const config_file *file, char *line)
{
    char *name = trim(line);
    char *equals = strchr(name, '=');

    if (*name == '\0' || *name == '#')
        return CLI_OK;
    if (equals == NULL) {
        cli_error("%s:%u: is neither \"name = value\" nor a comment",
                  file->path, file->line);
        return CLI_USAGE;
    }
    *equals = '\0';
    return read_setting(app, file, trim(name), trim(equals + 1));
}

static int read_lines(cli *app, config_file *file)
{
    char buffer[4096];
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    int status = CLI_OK;

    (void)setvbuf(file->stream, buffer, _IOFBF, sizeof buffer);
    while (status == CLI_OK) {
        errno = 0;
        length = getline(&line, &size, file->stream);
        if (length < 0)
            break;
        file->line++;
        if (strlen(line) != (size_t)length) {
            cli_error("%s:%u: has a NUL byte", file->path, file->line);
            status = CLI_USAGE;
            break;
        }
        status = read_line(app, file, line);
    }
    if (status == CLI_OK && ferror(file->stream)) {
        cli_error("%s: %s", file->path, strerror(errno));
        status = CLI_USAGE;
    }
    if (line != NULL)
        lk_wipe(line, size);
    free(line);
    (void)fclose(file->stream);
    lk_wipe(buffer, sizeof buffer);
    return status;
}

typedef enum trust {
    TRUSTED,
    FOREIGN,  /* it belongs to another user */
    WRITABLE, /* another user can change or replace it */
    UNKNOWN   /* errno says why */
} trust;

/* Judge a file or directory.  Files in a directory with the sticky bit, such as
 * /tmp, can be replaced by their owner only. */
static trust judge(const struct stat *info)
{
    bool is_sticky = S_ISDIR(info->st_mode) && (info->st_mode & S_ISVTX) != 0;

    if (info->st_uid != geteuid() && info->st_uid != 0)
        return FOREIGN;
    return (info->st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_sticky ? WRITABLE
                                                                    : TRUSTED;
}

/* Judge the directories above a file.  Return the first one that is not
 * trusted, in @p path, which is shortened to it. */
static trust judge_above(char *path)
{
    char *slash = strrchr(path, '/');
    trust found = TRUSTED;
    struct stat info;

    while (found == TRUSTED && slash != NULL) {
        slash[slash == path ? 1 : 0] = '\0';
        found = stat(path, &info) == 0 ? judge(&info) : UNKNOWN;
        slash = path[1] != '\0' ? strrchr(path, '/') : NULL;
    }
    return found;
}

/* Judge an open file and all directories above it, by the given path and, where
 * that has symbolic links, by the path that they lead to.  @p where becomes the
 * file or directory that is not trusted. */
static trust judge_file(const config_file *file, char where[PATH_MAX])
{
    struct stat info;
    trust found = UNKNOWN;

    (void)snprintf(where, PATH_MAX, "%s", file->path);
    if (fstat(fileno(file->stream), &info) == 0)
        found = judge(&info);
    if (found == TRUSTED)
        found = judge_above(where);
    if (found != TRUSTED)
        return found;
    if (realpath(file->path, where) == NULL)
        return UNKNOWN;
    return judge_above(where);
}

/* Return whether to read an open file.  If not, set *status to CLI_OK, if the
 * file is passed over, or to an exit status; in both cases after a message. */
static bool may_read(const config_file *file, int *status)
{
    char where[PATH_MAX];

    switch (judge_file(file, where)) {
    case TRUSTED:
        return true;
    case FOREIGN:
        cli_note("%s is passed over: %s belongs to another user", file->path,
                 where);
        *status = CLI_OK;
        return false;
    case WRITABLE:
        cli_error("%s is not trusted: other users can change %s: chmod go-w it",
                  file->path, where);
        break;
    default:
        cli_error("%s: %s", file->path, strerror(errno));
        break;
    }
    *status = CLI_USAGE;
    return false;
}

/* Read a file.  A missing file is skipped; one that cannot be read is an error,
 * with two exceptions if access to it is denied.  The machine's file may be
 * meant for other users, and is skipped.  The user's file may be another
 * user's, since sudo can keep HOME: it is skipped if the URL is known. */
static int read_file(cli *app, const char *path, bool is_users)
{
    config_file file = {.path = path};
    int status;

    file.stream = fopen(path, "re");
    if (file.stream == NULL && (errno == ENOENT || errno == ENOTDIR))
        return CLI_OK;
    if (file.stream == NULL && errno == EACCES &&
        (!is_users || app->settings[CLI_URL] != NULL)) {
        (is_users ? cli_note
                  : cli_info)("%s may not be read: it is passed over", path);
        return CLI_OK;
    }
    if (file.stream == NULL) {
        cli_error("%s: %s", path, strerror(errno));
        return CLI_USAGE;
    }
    if (!may_read(&file, &status)) {
        (void)fclose(file.stream);
        return status;
    }
    cli_info("reading %s", path);
    return read_lines(app, &file);
}

static int read_users_file(cli *app)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;
    int status;
    int rc;

    /* The XDG specification says to ignore relative paths. */
    if (base != NULL && *base == '/')
        rc = asprintf(&path, "%s/sqlock/config", base);
    else if (home != NULL && *home == '/')
        rc = asprintf(&path, "%s/.config/sqlock/config", home);
    else
        return CLI_OK;
    if (rc < 0) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    status = read_file(app, path, true);
    free(path);
    return status;
}

int cli_config(cli *app)
{
    int status;

    status = read_environment(app);
    if (status == CLI_OK)
        status = read_users_file(app);
    if (status == CLI_OK)
        status = read_file(app, SYSTEM_FILE, false);
    return status;
}

bool cli_is_setting(const char *entry)
{
    size_t length;
    size_t i;

    for (i = 0; i < CLI_SETTINGS; i++) {
        length = strlen(settings[i].variable);
        if (strncmp(entry, settings[i].variable, length) == 0 &&
            entry[length] == '=')
            return true;
    }
    return false;
}

bool cli_settings_for_child(const cli *app, char *entries[CLI_SETTINGS + 1])
{
    bool is_whole = true;
    const char *value;
    char *url = NULL;
    size_t count = 0;
    size_t i;

    for (i = 0; i < CLI_SETTINGS; i++) {
        value = app->settings[i];
        if (i == CLI_URL && value != NULL) {
            url = cli_url_for_child(value, app->is_url_of_file);
            value = url;
        }
        if (value == NULL)
            continue;
        if (asprintf(&entries[count], "%s=%s", settings[i].variable, value) < 0)
            is_whole = false;
        else
            count++;
    }
    entries[count] = NULL;
    free(url);
    return is_whole;
}

const char *cli_region(const cli *app)
{
    const char *region = app->settings[CLI_REGION];

    return region != NULL ? region : "DEFAULT";
}
