/*
 * counted.h - a driver around a driver, which counts the statements that are
 * sent through it
 */
#ifndef BENCH_COUNTED_H
#define BENCH_COUNTED_H

#include "bench.h"

#define COUNTED_URL_SIZE 1024

/** The URL through the counting driver, in @p out.  One database at a time. */
int bench_counted_url(char out[COUNTED_URL_SIZE], const char *url,
                      struct bench_failure *failure);

/** Statements of this process so far, all databases. */
uint64_t bench_counted(void);

#endif /* BENCH_COUNTED_H */
