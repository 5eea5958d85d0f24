/*
 * holder.h - this program as a process that takes a lock and is killed
 */
#ifndef TESTS_SPRING_HOLDER_H
#define TESTS_SPRING_HOLDER_H

/* `spring --hold URL PREFIX NAME TTL_MS`: prints the token, does not return. */
#define HOLDER_FACE "--hold"
int holder_main(char **arguments);

#endif
