/*
 * cpu.h - read the processor time that a server has used
 */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdint.h>
#include <sys/types.h>

/**
 * Return the processor time, in ns, of all threads that exist now in process
 * @p server and in its children: PostgreSQL has a process for each connection,
 * MySQL a thread.
 *
 * @return -1 if it is not known (no process, no /proc)
 */
int64_t bench_cpu_of(pid_t server);

#endif /* BENCH_CPU_H */
