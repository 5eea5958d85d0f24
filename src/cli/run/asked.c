/*
 * asked.c - the options of taking a lock, which `sqlock run`, `lead` and
 * `acquire` have in common
 */
#include "run.h"

struct run_asked run_asked = {
    .wait_ms = SQLOCK_FOREVER,
    .ttl_ms = RUN_TTL_DEFAULT_MS,
};

static bool read_mode(const char *command, run_options *options)
{
    if (run_asked.is_shared && run_asked.has_slots) {
        cli_error("%s: give either --shared or --slots", command);
        return false;
    }
    if (run_asked.is_shared || run_asked.has_slots)
        options->mode = SQLOCK_SHARED;
    options->has_slots = run_asked.has_slots;
    options->permits = (uint32_t)run_asked.slots;
    return true;
}

bool run_asked_read(const char *command, run_options *options)
{
    if (run_asked.is_impatient && run_asked.wait_ms >= 0) {
        cli_error("%s: give either --wait or --no-wait", command);
        return false;
    }
    options->wait_ms = run_asked.is_impatient ? 0 : run_asked.wait_ms;
    options->is_fail_fast = run_asked.is_fail_fast;
    options->registry.ttl_ms = (uint32_t)run_asked.ttl_ms;
    options->registry.pool_size = 2; /* renewals wait for no other call */
    return read_mode(command, options);
}
