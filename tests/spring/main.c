/*
 * main.c - the suite of Spring's own JdbcLockRegistry beside us, on each layout
 * with the versions that may share it (see support/suite_main.h)
 *
 *     bash tests/spring/with.sh build/tests/spring postgres mysql
 */
#include <string.h>

#include "holder.h"
#include "spring.h"

static const struct topic *const topics[] = {
    &topic_keys,    &topic_exclusion, &topic_takeover,
    &topic_renewal, &topic_upkeep,    &topic_break,
    &topic_clocks,  &topic_upgrade,   NULL,
};

static const struct suite_main suite = {
    .name = "spring",
    .topics = topics,
    .layouts = IN_ALL,
    .lanes = 1,
    .test_seconds = 900,
    .campaign_seconds = 7200,
    .close = stage_close,
};

int main(int argc, char **argv)
{
    static char postgres[] = "postgres";
    static char mysql[] = "mysql";
    char *servers[] = {argv[0], postgres, mysql, NULL};

    if (argc > 5 && strcmp(argv[1], HOLDER_FACE) == 0)
        return holder_main(argv + 2);
    if (argc == 1) /* not SQLite, which no Spring service can share */
        return suite_main(&suite, 3, servers);
    return suite_main(&suite, argc, argv);
}
