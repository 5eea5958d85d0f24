/*
 * unit.h - the suites of this program
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include "support/check.h"

extern const struct suite suite_codes;
extern const struct suite suite_key;
extern const struct suite suite_error;
extern const struct suite suite_text;
extern const struct suite suite_json;
extern const struct suite suite_result;
extern const struct suite suite_url;
extern const struct suite suite_url_secrets;
extern const struct suite suite_clock;
extern const struct suite suite_table;
extern const struct suite suite_statement;
extern const struct suite suite_options;
extern const struct suite suite_driver;
extern const struct suite suite_arguments;
extern const struct suite suite_checks;
extern const struct suite suite_pool;
extern const struct suite suite_outage;
extern const struct suite suite_group;
extern const struct suite suite_crew;
extern const struct suite suite_retry;
extern const struct suite suite_epoch;
extern const struct suite suite_hosts;
extern const struct suite suite_target;
extern const struct suite suite_service;
extern const struct suite suite_executor;
extern const struct suite suite_stats;
extern const struct suite suite_command_line;
extern const struct suite suite_writer;
extern const struct suite suite_row;
extern const struct suite suite_sharer;
extern const struct suite suite_ticket;
extern const struct suite suite_patience;
extern const struct suite suite_batch;
extern const struct suite suite_combine;
extern const struct suite suite_together;
extern const struct suite suite_peers;
extern const struct suite suite_waits;
extern const struct suite suite_watchdog;
extern const struct suite suite_renewal;
extern const struct suite suite_classify;
extern const struct suite suite_library;

#endif
