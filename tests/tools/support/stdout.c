/*
 * stdout.c - what a test program prints goes out line by line
 *
 * tests/run.sh counts those lines.  Left in a buffer they are lost in a crash,
 * which then does not show which test was running, and printed twice after a
 * fork().
 */
#include <stdio.h>

__attribute__((constructor)) static void print_line_by_line(void)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}
