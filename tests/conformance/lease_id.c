/*
 * lease_id.c - what is no id of a lease is refused
 */
#include "conformance.h"
#include "sqlock/lease.h"

static void test_what_is_no_id_is_refused(void **state)
{
    static const char *const ids[] = {
        "",          "key",         "a:1:30000:",   "a:1:30000",
        ":1:30000:", "a::30000:k",  "a:-1:30000:k", "a:1:0:k",
        "a:1:x:k",   "a:1:30000x:", "a:1: 30000:k", NULL,
    };
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    char *text = NULL;

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        check_row(ids[i] != NULL ? ids[i] : "NULL");
        assert_fails(SQLOCK_EINVAL,
                     sqlock_lease_release(registry, ids[i], &f->err));
        assert_fails(SQLOCK_EINVAL,
                     sqlock_lease_renew(registry, ids[i], 0, NULL, &f->err));
        assert_fails(SQLOCK_EINVAL,
                     sqlock_lease_guard_text(&text, registry, ids[i], &f->err));
        assert_null(text);
    }
    check_row(NULL);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST(test_what_is_no_id_is_refused),
};
const struct topic topic_lease_id = TOPIC(tests);
