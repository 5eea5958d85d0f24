/*
 * test_sqlite_url.c - URLs of SQLite that are refused without opening a file
 */
#include "drivers/suite.h"

TEST_ON(test_url_that_excludes_nobody_is_refused, ON_SQLITE, 0)
{
    static const char *const urls[] = {
        "sqlite:",
        "sqlite::memory:",
        "sqlite://",
        "sqlite:///%00x",
        "sqlite://host/path",
        "sqlite:a?mode=memory",
        "sqlite:file:a",
        "sqlite:a#b",
        "sqlite:a?",
        "sqlite:%3Amemory:",
        "sqlite:file%3Aa?vfs=x",
        "sqlite:a?synchronous",
        "sqlite:a?synchronous=",
        "sqlite:a?synchronous=off",
        "sqlite:a?synchronous=FULL",
        "sqlite:a?synchronos=full",
        "sqlite:a?synchronous=full&mode=memory",
        "sqlite:a?synchronous=normal&synchronous=full",
        "sqlite:a?synchronous=full#b",
    };

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        sqlock_error err = {.code = 0};
        int rc = driver_check(subject.driver, urls[i], &err);

        if (rc != SQLOCK_EINVAL)
            print_error("%s\n", urls[i]);
        assert_code(SQLOCK_EINVAL, rc, &err);
    }
}
