/*
 * stage.c - the services of a layout, and other helpers of the tests
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "spring.h"

static struct service services[CONTEST_SERVICES];

const struct service_kind *stage_kind(const struct fixture *fixture,
                                      unsigned number)
{
    static const struct service_kind before_7[CONTEST_SERVICES] = {
        {.line = "spring5"}, {.line = "spring6"}};
    static const struct service_kind since_7 = {.line = "spring7"};

    if (fixture->layout == SQLOCK_LAYOUT_SPRING6)
        return &before_7[number];
    return &since_7;
}

struct service *stage_service(struct fixture *fixture, unsigned number)
{
    if (services[number].pid == 0)
        service_start(&services[number], fixture, stage_kind(fixture, number));
    return &services[number];
}

void stage_close(struct fixture *fixture)
{
    (void)fixture;
    for (unsigned i = 0; i < CONTEST_SERVICES; i++)
        service_end(&services[i]);
}

void stage_open_peer(struct service *service, const struct fixture *fixture,
                     const char *peer, uint32_t ttl_ms,
                     char client[SQLOCK_KEY_SIZE])
{
    struct answer answer;

    service_tell(service, peer, "open %s %s DEFAULT %u", peer, fixture->prefix,
                 ttl_ms);
    service_hear(service, peer, &answer);
    if (strlen(answer.text) != SQLOCK_KEY_SIZE - 1)
        fail_msg("Spring %s: %s", service->version, answer.text);
    if (client != NULL)
        memcpy(client, answer.text, SQLOCK_KEY_SIZE);
}

sqlock_options stage_options(const struct fixture *fixture, uint32_t ttl_ms)
{
    sqlock_options options = fixture_options(fixture);

    options.ttl_ms = ttl_ms;
    options.peer_ttl_ms = ttl_ms;
    options.poll_ms = 0; /* the default */
    options.no_peers = false;
    options.statement_timeout_ms = 20000;
    options.connect_timeout_ms = 20000;
    return options;
}

sqlock_registry *stage_registry(struct fixture *fixture, uint32_t ttl_ms)
{
    sqlock_options options = stage_options(fixture, ttl_ms);

    return fixture_registry(fixture, &options);
}

void stage_each_service(struct fixture *fixture,
                        void (*check)(struct fixture *fixture, unsigned number))
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        fixture_next(fixture);
        check(fixture, i);
    }
}

int64_t stage_expiry_us(struct fixture *fixture, uint32_t ttl_ms)
{
    struct row row = fixture_row(fixture, fixture->name);

    assert_true(row.exists);
    if (fixture->layout == SQLOCK_LAYOUT_SPRING6)
        return row.created_us + INT64_C(1000) * ttl_ms;
    return row.expires_us;
}

int stage_command(const struct fixture *fixture, char *out, size_t size,
                  const char *format, ...)
{
    const char *sqlock = getenv("SQLOCK");
    char command[2048];
    size_t length;
    va_list arguments;
    FILE *shell;
    int status;

    (void)setenv("SQLOCK_URL", fixture->url, 1);
    length = (size_t)snprintf(command, sizeof command, "%s --table-prefix %s ",
                              sqlock != NULL ? sqlock : "build/bin/sqlock",
                              fixture->prefix);
    va_start(arguments, format);
    (void)vsnprintf(command + length, sizeof command - length - 8, format,
                    arguments);
    va_end(arguments);
    length = strlen(command);
    (void)snprintf(command + length, sizeof command - length, " 2>&1");
    shell = popen(command, "r"); /* NOLINT: of our own making */
    assert_non_null(shell);
    length = fread(out, 1, size - 1, shell);
    out[length] = '\0';
    status = pclose(shell);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
