/*
 * child_url.c - child_url URL: print what `sqlock run` makes of it for the
 * environment of its command, or NULL.  Compiled together with that source.
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
