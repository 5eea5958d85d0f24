/*
 * holder.h - this program, run as a process that takes a lock and is killed
 */
#ifndef TESTS_SPRING_HOLDER_H
#define TESTS_SPRING_HOLDER_H

/* Main function of `spring --hold URL PREFIX NAME TTL_MS`: take the lock, print
 * its token, and keep it.  Returns only on an error. */
#define HOLDER_FACE "--hold"
int holder_main(char **arguments);

#endif
