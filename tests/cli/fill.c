/*
 * fill.c - fill PROGRAM [ARGUMENT...]: fill the pipe that is standard output,
 * and execute a program with that pipe as descriptor 7, too
 *
 * Writes to the pipe block until it is read.  Exit status 98: failed.
 */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char block[4096];
    int flags = fcntl(STDOUT_FILENO, F_GETFL);

    if (argc < 2 || dup2(STDOUT_FILENO, 7) != 7)
        return 98;
    (void)fcntl(7, F_SETFL, flags | O_NONBLOCK);
    while (write(7, block, sizeof block) > 0)
        continue;
    (void)fcntl(7, F_SETFL, flags);
    (void)execv(argv[1], argv + 1);
    return 98;
}
