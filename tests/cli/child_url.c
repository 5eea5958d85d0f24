/*
 * child_url.c - child_url URL: print the URL that `sqlock run` puts into the
 * environment of its command instead of URL, or NULL if it passes none on
 *
 * Compiled together with src/cli/url.c, which makes that URL.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char *url = argc == 2 ? cli_url_for_child(argv[1], false) : NULL;

    puts(url != NULL ? url : "NULL");
    free(url);
    return 0;
}
