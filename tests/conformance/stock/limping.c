/*
 * limping.c - a suite with tests that fail, hang or are killed, for limping.sh:
 * what such a test leaves open must not disturb the tests after it
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "suite.h"

TEST_WITH(test_fails_in_a_transaction, .set = SET_LIMPING)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    sqlock_tx *tx = NULL;

    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    assert_ok(sqlock_stock_deduct(stock, tx, NULL, item, 1, NULL, &f->err));
    fail_msg("%s", "as it is to");
}

/* Hang until the suite's alarm.  If LIMPING_FILE names a file, create it, and
 * hang without the alarm. */
TEST_WITH(test_hangs, .set = SET_LIMPING)
{
    const char *path = getenv("LIMPING_FILE");

    if (path != NULL) {
        int fd = creat(path, 0600);

        assert_true(fd >= 0);
        (void)close(fd);
        (void)alarm(0);
    }
    while (check_pause(INT64_MAX))
        continue;
}

TEST_WITH(test_is_killed, .set = SET_LIMPING)
{
    (void)raise(SIGKILL);
}

TEST_WITH(test_is_behind_them, .set = SET_LIMPING)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);

    assert_ok(sqlock_stock_deduct(stock, NULL, item, item, 1, NULL, &f->err));
    assert_int_equal(shop_there(f, item), 9);
    sqlock_stock_close(stock);
}
