/*
 * main.c - the suite of TLS, on servers that present certificates of a test
 * authority (see support/suite_main.h, servers/ca.sh)
 *
 *     bash tests/cli/tls/with.sh build/tests/tls [-t PATTERN] [DATABASE]
 *
 * A connection is refused if the server does not meet the URL's demands for
 * TLS, whether sqlock checks them or the client library: F77.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/proxy.h"
#include "support/suite_main.h"

/* connect_timeout_ms.  A refused attempt is repeated for so long, because the
 * connection may just have broken.  Long enough for one attempt on a busy
 * machine. */
#define CONNECT_MS 1500

/* TLS that a URL demands: to a verified server, or to any. */
enum demand { VERIFY, REQUIRE };

static const char *authorities(void)
{
    const char *directory = getenv("SQLOCK_TEST_TLS");

    if (directory == NULL)
        fail_msg(
            "SQLOCK_TEST_TLS is not set: run this by tests/cli/tls/with.sh");
    return directory;
}

/* Write `url` with that demand to `out`, and return `out`.  `authority` is the
 * name of a file in the folder authorities(), or NULL. */
static const char *url_with(char out[1024], const struct fixture *f,
                            const char *url, enum demand demand,
                            const char *authority)
{
    bool postgres = f->database->bit == ON_POSTGRES;
    const char *mode = demand == VERIFY ? "verify" : "require";
    int length;

    if (postgres && demand == VERIFY)
        mode = "verify-full";
    length = snprintf(out, 1024, "%s?%s=%s", url, postgres ? "sslmode" : "tls",
                      mode);
    if (authority != NULL)
        (void)snprintf(out + length, 1024 - (size_t)length, "&%s=%s/%s",
                       postgres ? "sslrootcert" : "ca", authorities(),
                       authority);
    return out;
}

/* Return whether PostgreSQL has read its configuration since `before`, a time
 * in microseconds.  Then the next connection gets the new certificate. */
static bool has_reloaded(const struct fixture *f, int64_t before)
{
    struct sql sql;
    int64_t loaded;

    assert_lock_ok(sql_open(&sql, f->database, database_admin_url(f->database)),
                   &sql.err);
    loaded = sql_integer(&sql, "SELECT (extract(epoch FROM pg_conf_load_time())"
                               " * 1000000)::bigint");
    sql_close(&sql);
    return loaded > before;
}

/* Return whether the server runs again, as another process than `before`. */
static bool has_returned(const struct fixture *f, pid_t before)
{
    pid_t pid = database_pid(f->database);
    struct sql sql;

    if (pid == 0 || pid == before ||
        sql_open(&sql, f->database, database_admin_url(f->database)) < 0)
        return false;
    sql_close(&sql);
    return true;
}

/* End the server, and wait until it runs again.  Oracle's MySQL needs this:
 * told to read its certificate again, it refuses one that it does not trust
 * itself; when it starts, it only warns. */
static void restart(const struct fixture *f)
{
    pid_t before = database_pid(f->database);

    if (before == 0)
        skip_or_fail("the server's process is not known");
    assert_int_equal(kill(before, SIGTERM), 0);
    assert_becomes_true(has_returned(f, before), PATIENCE_MS);
}

/* Let the server read its certificate again. */
static void reload(struct fixture *f)
{
    bool is_over = true;
    struct sql sql;

    assert_lock_ok(sql_open(&sql, f->database, database_admin_url(f->database)),
                   &sql.err);
    if (f->database->bit == ON_POSTGRES) {
        int64_t before = sql_now_us(&sql);

        sql_run(&sql, "SELECT pg_reload_conf()");
        assert_becomes_true(has_reloaded(f, before), PATIENCE_MS);
    } else {
        is_over = sql_try(&sql, NULL, "FLUSH SSL") == 0; /* MariaDB */
    }
    sql_close(&sql);
    if (!is_over)
        restart(f);
}

/* Let the server present that certificate, a folder of authorities(). */
static void serve(struct fixture *f, const char *certificate)
{
    char served[512];
    char link[600];

    (void)snprintf(served, sizeof served, "%s/%s", authorities(),
                   f->database->name);
    (void)snprintf(link, sizeof link, "%s.new", served);
    (void)unlink(link);
    assert_int_equal(symlink(certificate, link), 0);
    assert_int_equal(rename(link, served), 0);
    reload(f);
}

/* Connect as an application does, and disconnect.  Return the result. */
static int open_at(struct fixture *f, const char *url)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = NULL;
    int rc;

    options.connect_timeout_ms = CONNECT_MS;
    rc = sqlock_registry_open(&registry, url, &options, &f->err);
    if (rc == 0)
        registry_end(registry);
    return rc;
}

static void assert_doctor_says(struct fixture *f, const char *url,
                               sqlock_severity expected)
{
    sqlock_options options = fixture_options(f);
    sqlock_check *checks = NULL;
    size_t count = 0;
    size_t told = 0;
    size_t i;

    assert_lock_ok(sqlock_diagnose(url, &options, &checks, &count, &f->err),
                   &f->err);
    for (i = 0; i < count; i++) {
        if (strcmp(checks[i].check, "tls") != 0)
            continue;
        told++;
        assert_int_equal(checks[i].severity, expected);
    }
    assert_int_equal(told, 1);
    sqlock_checks_free(checks, count);
}

/* Check that the connection is made, and that the driver reports how TLS
 * protects it.  The doctor finds it fine if the server's certificate is
 * checked, and warns otherwise. */
static void assert_protected(struct fixture *f, const char *url,
                             enum demand demand)
{
    sqlock_description description;
    struct sql sql;

    assert_lock_ok(open_at(f, url), &f->err);
    assert_lock_ok(sql_open(&sql, f->database, url), &sql.err);
    sql.driver->describe(sql.connection, &description);
    print_message("%s, %s: %s\n", description.client, description.server,
                  description.tls);
    sql_close(&sql);
    assert_string_not_equal(description.tls, "");
    assert_int_equal(description.tls_check, demand == VERIFY
                                                ? SQLOCK_TLS_CHECK_FULL
                                                : SQLOCK_TLS_CHECK_DEMANDED);
    assert_doctor_says(f, url, demand == VERIFY ? SQLOCK_FINE : SQLOCK_WARNING);
}

/* Check that the connection is refused, with a message that contains `reason`
 * and not the password.  The code is EUNREACHABLE if the client library refuses
 * it, as for a broken connection, or EACCESS if sqlock does. */
static void assert_refused(struct fixture *f, const char *url,
                           const char *reason)
{
    char password[64] = "";

    assert_code_of(SQLOCK_EUNREACHABLE, SQLOCK_EACCESS, open_at(f, url),
                   &f->err);
    print_message("%s\n", f->err.message);
    assert_contains(f->err.message, reason);
    assert_int_equal(sscanf(url, "%*[^:]://%*[^:]:%63[^@]@", password), 1);
    assert_lacks(f->err.message, password);
}

/* Check that a client that demands a verified server refuses that certificate,
 * and accepts the good one. */
static void check_certificate(struct fixture *f, const char *certificate,
                              const char *reason)
{
    char url[1024];

    serve(f, certificate);
    assert_refused(f, url_with(url, f, f->url, VERIFY, "ca.pem"), reason);
    serve(f, "good");
    assert_protected(f, url, VERIFY);
}

TEST_ON(test_F77_a_verified_server_is_connected_to, ON_SERVERS, 0)
{
    char url[1024];

    serve(f, "good");
    assert_protected(f, url_with(url, f, f->url, VERIFY, "ca.pem"), VERIFY);
}

TEST_ON(test_F77_a_certificate_of_another_name_is_refused, ON_SERVERS, 0)
{
    check_certificate(f, "wrong-name", "");
}

TEST_ON(test_F77_an_expired_certificate_is_refused, ON_SERVERS, 0)
{
    check_certificate(f, "expired", "certificate");
}

TEST_ON(test_F77_a_foreign_certificate_is_refused, ON_SERVERS, 0)
{
    check_certificate(f, "foreign", "certificate");
}

TEST_ON(test_F77_a_missing_authority_is_refused, ON_SERVERS, 0)
{
    char url[1024];

    serve(f, "good");
    assert_int_not_equal(
        open_at(f, url_with(url, f, f->url, VERIFY, "no-such.pem")), 0);
    print_message("%s\n", f->err.message);
    assert_true(check_one_line(f->err.message));
}

/* The connection is encrypted, and the server's name is not checked. */
TEST_ON(test_F77_required_tls_does_not_look_at_the_name, ON_SERVERS, 0)
{
    char url[1024];

    serve(f, "wrong-name");
    assert_protected(f, url_with(url, f, f->url, REQUIRE, NULL), REQUIRE);
    serve(f, "good");
}

TEST_ON(test_F77_a_server_without_tls_is_refused, ON_SERVERS, 0)
{
    char variable[64];
    const char *plain;
    char url[1024];

    (void)snprintf(variable, sizeof variable, "SQLOCK_TEST_PLAIN_%s_URL",
                   f->database->variable);
    plain = getenv(variable);
    if (plain == NULL || *plain == '\0')
        skip_or_fail("%s is not set", variable);
    assert_refused(f, url_with(url, f, plain, VERIFY, "ca.pem"), "");
    assert_refused(f, url_with(url, f, plain, REQUIRE, NULL), "");
}

/* The answer to the first packet of the handshake does not come in time, and
 * the server greets whoever asks again: it is slow, and refuses nothing. */
TEST_ON(test_F77_a_handshake_that_is_too_slow_is_no_refusal, ON_SERVERS, 0)
{
    const struct proxy_plan late = {.point = PROXY_SENT, .act = PROXY_SWALLOW};
    struct proxy *proxy = proxy_open(f->database, f->url);
    char through[1024];
    char url[1024];

    assert_non_null(proxy);
    (void)proxy_url(proxy, through, f->url);
    through[strcspn(through, "?")] = '\0'; /* a proxy asks for no TLS */
    proxy_arm(proxy, &late);
    assert_code(SQLOCK_EUNREACHABLE,
                open_at(f, url_with(url, f, through, REQUIRE, NULL)), &f->err);
    proxy_heal(proxy);
    proxy_close(proxy);
}

/* A Unix socket crosses no network, and the server has no TLS there: a URL that
 * demands a verified server connects all the same. */
TEST_ON(test_F77_a_unix_socket_needs_no_tls, ON_POSTGRES, 0)
{
    const char *directory = getenv("SQLOCK_TEST_POSTGRES_SOCKET");
    char user[64], password[64], port[8], database[64];
    char plain[512], url[1024];

    if (directory == NULL)
        skip_or_fail("SQLOCK_TEST_POSTGRES_SOCKET is not set");
    assert_int_equal(sscanf(f->url,
                            "%*[^:]://%63[^:]:%63[^@]@%*[^:]:%7[0-9]/%63s",
                            user, password, port, database),
                     4);
    (void)snprintf(plain, sizeof plain, "postgresql://%s:%s@:%s/%s?host=%s",
                   user, password, port, database, directory);
    (void)snprintf(url, sizeof url,
                   "%s&sslmode=verify-full&sslrootcert=%s/ca.pem", plain,
                   authorities());
    assert_lock_ok(open_at(f, url), &f->err);
}

static const struct suite_main suite = {
    .name = "tls",
    .about = "connections that are to be encrypted and verified",
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
