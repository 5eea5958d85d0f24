/*
 * open.c - opening, closing, and what needs no registry
 */
#include "exhaust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sqlock/tx.h"

static void act_open(struct fixture *f, void *state)
{
    sqlock_options options = exhaust_options(f);
    sqlock_registry *registry = (sqlock_registry *)state; /* not NULL */
    sqlock_error err = {0};
    int rc;

    rc = sqlock_registry_open(&registry, f->url, &options, &err);
    if (exhaust_expect(rc, &err)) {
        rc = sqlock_registry_close(registry, &err);
        (void)exhaust_expect(rc, &err);
    } else {
        assert_null(registry);
        assert_true(rc == SQLOCK_ENOMEM || rc == SQLOCK_ERESOURCE ||
                    rc == SQLOCK_EUNREACHABLE);
    }
}

static void check_open(struct fixture *f, void *state)
{
    sqlock_options options = exhaust_options(f);

    (void)state;
    registry_end(fixture_registry(f, &options));
}

TEST(test_opening_a_registry)
{
    static const struct experiment experiment = {
        .act = act_open,
        .check = check_open,
    };

    exhaust_all(f, &experiment);
}

/* A server of another application: a socket in a folder that PGHOST names,
 * where libpq connects if it is given no host. */
struct elsewhere {
    char folder[32];
    char path[64];
    int fd;
};
static struct elsewhere elsewhere;

static void elsewhere_open(const char *url)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *port = strchr(strchr(url, '@'), ':') + 1;

    (void)snprintf(elsewhere.folder, sizeof elsewhere.folder,
                   "/tmp/sqlock-exhaust.XXXXXX");
    assert_non_null(mkdtemp(elsewhere.folder));
    (void)snprintf(elsewhere.path, sizeof elsewhere.path, "%s/.s.PGSQL.%d",
                   elsewhere.folder, atoi(port));
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s",
                   elsewhere.path);
    elsewhere.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(elsewhere.fd >= 0);
    assert_int_equal(
        bind(elsewhere.fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(elsewhere.fd, 16), 0);
    (void)setenv("PGHOST", elsewhere.folder, 1);
}

static void elsewhere_close(void)
{
    (void)unsetenv("PGHOST");
    (void)close(elsewhere.fd);
    (void)unlink(elsewhere.path);
    (void)rmdir(elsewhere.folder);
}

/* Write the URL with its host and port twice, as a list. */
static void list_hosts(char *out, size_t size, const char *url)
{
    const char *host = strchr(url, '@') + 1;
    int length = (int)strcspn(host, "/");

    (void)snprintf(out, size, "%.*s,%s", (int)(host - url) + length, url, host);
}

static void act_open_list(struct fixture *f, void *state)
{
    sqlock_options options = exhaust_options(f);
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    char url[1024];

    (void)state;
    options.connect_timeout_ms = 500;
    list_hosts(url, sizeof url, f->url);
    if (exhaust_expect(sqlock_registry_open(&registry, url, &options, &err),
                       &err))
        (void)exhaust_expect(sqlock_registry_close(registry, &err), &err);
}

static void check_nobody_came(struct fixture *f, void *state)
{
    (void)f;
    (void)state;
    assert_true(accept(elsewhere.fd, NULL, NULL) < 0);
    assert_int_equal(errno, EAGAIN);
}

/* A host that cannot be copied is not taken for none. */
TEST_ON(test_opening_one_of_a_list_of_hosts, ON_POSTGRES, IN_SQLOCK)
{
    static const struct experiment experiment = {
        .act = act_open_list,
        .check = check_nobody_came,
    };

    elsewhere_open(f->url);
    exhaust_all(f, &experiment);
    elsewhere_close();
}

static void act_schema(struct fixture *f, void *state)
{
    sqlock_options options = exhaust_options(f);
    char key[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};
    char *text = state; /* not NULL */
    int rc;

    rc = sqlock_key_of(key, "name", SQLOCK_KEY_CURRENT, &err);
    (void)exhaust_expect(rc, &err);
    rc =
        sqlock_schema_text(&text, f->url, &options, SQLOCK_LAYOUT_SQLOCK, &err);
    if (exhaust_expect(rc, &err))
        assert_non_null(text);
    else
        assert_null(text);
    sqlock_free(text);
    rc = sqlock_schema_create(f->url, &options, SQLOCK_LAYOUT_SQLOCK, &err);
    (void)exhaust_expect(rc, &err);
}

TEST(test_schemas)
{
    static const struct experiment experiment = {
        .act = act_schema,
        .check = check_open,
    };

    exhaust_all(f, &experiment);
}
