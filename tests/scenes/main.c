/*
 * main.c - the suite `scenes`: what several owners of locks may expect from
 * each other, on each database and layout (README.md)
 */
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "play.h"
#include "support/shop.h"
#include "support/suite_main.h"

static void test_scene(struct fixture *f)
{
    play_scene(f, f->data);
}

/* Make a test of each scene. */
static void make_tests(const struct scenes *scenes)
{
    struct test *tests = calloc(scenes->count, sizeof *tests);

    if (tests == NULL)
        abort();
    for (size_t i = 0; i < scenes->count; i++) {
        const struct scene *scene = &scenes->all[i];

        tests[i] = (struct test){.name = scene->test,
                                 .body = test_scene,
                                 .file = "",
                                 .databases = scene->databases,
                                 .layouts = scene->layouts,
                                 .stops_server = scene->stops_server,
                                 .locks_rows = scene->locks_rows,
                                 .data = scene};
        tests_add(&tests[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct suite_main suite = {
        .name = "scenes",
        .about = "what several owners of locks may expect, a step a line",
        .lanes = 3,
        .stops_servers = true,
        .campaign_seconds = 5000,
        .open = shop_create,
        .close = shop_drop,
    };
    const char *folder = getenv("SQLOCK_TEST_SCENES");
    struct scenes scenes;

    if (argc == 2 && strcmp(argv[1], "--actor") == 0)
        return actor_main();
    if (!scenes_read(&scenes, folder != NULL ? folder : "tests/scenes"))
        return 2;
    make_tests(&scenes);
    return suite_main(&suite, argc, argv);
}
