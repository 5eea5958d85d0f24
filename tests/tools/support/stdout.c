/*
 * stdout.c - make the standard output of test programs line-buffered
 *
 * tests/run.sh counts the lines of cmocka.  Lines in a larger buffer would be
 * lost in a crash, so that nothing shows which test was running; and printed
 * twice after a fork().
 */
#include <stdio.h>

__attribute__((constructor)) static void print_line_by_line(void)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}
