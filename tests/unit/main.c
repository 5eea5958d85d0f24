/*
 * main.c - runs the unit tests; they need no database
 *
 * An argument is a pattern of test names (with * and ?).
 */
#include "unit.h"

static const struct suite *const suites[] = {
    &suite_key,         &suite_error,  &suite_text,      &suite_url,
    &suite_url_secrets, &suite_clock,  &suite_table,     &suite_options,
    &suite_statement,   &suite_driver, &suite_arguments, &suite_checks,
    &suite_pool,        &suite_json,   &suite_result,    &suite_epoch,
    &suite_golden,      &suite_outage, &suite_retry,
};

int main(int argc, char **argv)
{
    int failed = 0;
    size_t i;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    for (i = 0; i < sizeof suites / sizeof *suites; i++)
        failed += _cmocka_run_group_tests(suites[i]->name, suites[i]->tests,
                                          suites[i]->count, NULL, NULL);
    return failed == 0 ? 0 : 1;
}
