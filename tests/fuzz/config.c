/*
 * config.c - the command's configuration file: what it accepts are settings,
 * each from a line "name = value", the first of a name
 */
#include "fuzz.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

static char folder[] = "/tmp/sqlock-fuzz.XXXXXX";
static char path[sizeof folder + 16];

static void remove_folder(void)
{
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path);
    (void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    must(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/sqlock", folder);
    must(mkdir(path, 0700) == 0);
    (void)strncat(path, "/config", sizeof path - strlen(path) - 1);
    must(setenv("XDG_CONFIG_HOME", folder, 1) == 0);
    (void)atexit(remove_folder);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char blanks[] = " \t\r\n";
    char *text = fuzz_text(data, size);
    cli app = {0};
    int status;

    fuzz_file(path, data, size);
    status = cli_config(&app);
    must(status == CLI_OK || status == CLI_USAGE);
    /* a NUL is refused, so what was accepted is in the text as it stands */
    must(status != CLI_OK || strlen(text) == size);
    for (size_t i = 0; i < CLI_SETTINGS; i++) {
        const char *value = app.copies[i];

        must(app.settings[i] == value);
        if (value != NULL) {
            must(*value != '\0' && strchr(value, '\n') == NULL);
            must(strchr(blanks, value[0]) == NULL);
            must(strchr(blanks, value[strlen(value) - 1]) == NULL);
            must(strstr(text, value) != NULL);
        }
        free(app.copies[i]);
    }
    free(text);
    return 0;
}
