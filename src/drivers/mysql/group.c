/*
 * group.c - check that the server is an active member of its group
 *
 * A member of MySQL Group Replication that is not ONLINE, such as one whose
 * START GROUP_REPLICATION has failed, may be writable, but the group does not
 * know of the leases it grants.  So where a group is configured, a session is
 * used only while its server is ONLINE and sees a majority of the group.  The
 * server is asked when the session opens, and before a statement if the last
 * answer is a second old: a round trip per second, and none without a group.
 */
#include "drivers/mysql/connection.h"

#include <string.h>

#include "base/error.h"

#define NO_SUCH_RIGHT 1142
#define STATE_AGE_NS INT64_C(1000000000) /* of the answer, at most */

/* One row: the server's state in its group, whether it sees a majority, and the
 * number of members.  A server that has never joined lists one member, without
 * an id. */
#define STATE                                                                  \
    "SELECT COALESCE(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), " \
    "'OFFLINE'), IF(2 * SUM(MEMBER_STATE <> 'UNREACHABLE') > COUNT(*), "       \
    "'YES', 'NO'), COUNT(*) "                                                  \
    "FROM performance_schema.replication_group_members"

static int fail(struct lk_mysql_connection *connection, sqlock_error *err)
{
    unsigned int number = mysql_errno(connection->mysql);

    connection->is_broken = true;
    if (number == NO_SUCH_RIGHT)
        return sqlock_error_set(err, SQLOCK_EACCESS, (int)number,
                                mysql_sqlstate(connection->mysql),
                                "the server is a member of a group, but this "
                                "user may not read its state: GRANT SELECT ON "
                                "performance_schema.replication_group_members");
    return lk_mysql_fail(connection, LK_MYSQL_CONNECTING, err);
}

/* Judge the row returned by STATE. */
static int judge(MYSQL_ROW row, sqlock_error *err)
{
    if (row == NULL || row[0] == NULL || row[1] == NULL || row[2] == NULL)
        return lk_error(err, SQLOCK_EDATABASE,
                        "the server did not return the state of its group");
    if (strcmp(row[0], "ONLINE") != 0)
        return lk_error(err, SQLOCK_EREADONLY,
                        "the server is %s, not ONLINE, in its group (Group "
                        "Replication): let it join, or connect to the primary",
                        row[0]);
    if (strcmp(row[1], "YES") != 0)
        return lk_error(err, SQLOCK_EREADONLY,
                        "the server does not reach the majority of the %s "
                        "members of its group (Group Replication): connect to "
                        "one that does",
                        row[2]);
    return 0;
}

int lk_mysql_ask_group(struct lk_mysql_connection *connection,
                       sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;
    int64_t asked_ns = sqlock_monotonic_ns();
    MYSQL_RES *rows = NULL;
    int rc;

    if (mysql_real_query(mysql, STATE, sizeof STATE - 1) == 0)
        rows = mysql_store_result(mysql);
    if (rows == NULL)
        return fail(connection, err);
    rc = judge(mysql_fetch_row(rows), err);
    mysql_free_result(rows);
    connection->member_since_ns = asked_ns;
    if (rc < 0)
        connection->is_broken = true;
    return rc;
}

int lk_mysql_stay_in_group(struct lk_mysql_connection *connection,
                           sqlock_error *err)
{
    if (!connection->has_group || connection->in_transaction ||
        sqlock_monotonic_ns() - connection->member_since_ns < STATE_AGE_NS)
        return 0;
    return lk_mysql_ask_group(connection, err);
}
