/*
 * counted.h - a driver around a driver, which counts the statements that are
 * sent through it
 */
#ifndef BENCH_COUNTED_H
#define BENCH_COUNTED_H

#include "bench.h"

#define COUNTED_URL_SIZE 1024

/** Write @p url, led through the counting driver, to @p out.  Until the next
 *  call, only the database of @p url can be used.  @return 0; -1 with the
 *  reason */
int bench_counted_url(char out[COUNTED_URL_SIZE], const char *url,
                      struct bench_failure *failure);

/** Return the number of statements that this process has sent so far, of all
 *  databases. */
uint64_t bench_counted(void);

#endif /* BENCH_COUNTED_H */
