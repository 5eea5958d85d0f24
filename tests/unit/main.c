/*
 * main.c - the unit tests, which need no database (see support/program.h)
 */
#include "unit.h"

#include "support/group.h"
#include "support/program.h"

static const struct suite *const suites[] = {
    &suite_key,         &suite_error,        &suite_text,      &suite_url,
    &suite_url_secrets, &suite_clock,        &suite_table,     &suite_options,
    &suite_statement,   &suite_driver,       &suite_arguments, &suite_checks,
    &suite_pool,        &suite_json,         &suite_result,    &suite_epoch,
    &suite_outage,      &suite_group,        &suite_retry,     &suite_service,
    &suite_stats,       &suite_command_line, &suite_writer,    &suite_row,
    &suite_batch,       &suite_combine,      &suite_peers,     &suite_waits,
    &suite_watchdog,    &suite_renewal,      &suite_classify,  &suite_library,
    &suite_executor,    &suite_together,     &suite_sharer,    &suite_ticket,
    &suite_patience,    &suite_crew,         &suite_codes,     &suite_hosts,
    &suite_target,
};

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "unit",
        .about = "functions of src that need no database",
    };

    program_read(&program, argc, argv);
    return group_run_suites(suites, sizeof suites / sizeof *suites) == 0 ? 0
                                                                         : 1;
}
