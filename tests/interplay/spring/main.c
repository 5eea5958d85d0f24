/*
 * main.c - the suite `spring`: Spring's own JdbcLockRegistry beside ours, on
 * each layout with the versions of Spring that may share it (see
 * support/suite_main.h)
 *
 *     bash tests/interplay/spring/with.sh build/tests/spring postgres mysql
 */
#include <string.h>

#include "holder.h"
#include "spring.h"

static const struct suite_main suite = {
    .name = "spring",
    .about = "Spring's own JdbcLockRegistry beside ours",
    .databases = ON_SERVERS, /* no Spring service can share a SQLite file */
    .layouts = IN_ALL,
    .test_seconds = 900,
    .campaign_seconds = 7200,
    .close = stage_close,
};

int main(int argc, char **argv)
{
    if (argc > 5 && strcmp(argv[1], HOLDER_FACE) == 0)
        return holder_main(argv + 2);
    return suite_main(&suite, argc, argv);
}
