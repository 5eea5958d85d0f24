/*
 * main.c - the unit tests, which need no database (see support/program.h)
 */
#include "support/group.h"
#include "support/program.h"

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "unit",
        .about = "functions of src that need no database",
    };

    program_read(&program, argc, argv);
    return group_run_tests() == 0 ? 0 : 1;
}
