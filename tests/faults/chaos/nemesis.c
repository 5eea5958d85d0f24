/*
 * nemesis.c - what happens to the processes, drawn from the seed: they are
 * killed, stopped and interrupted by signals, their connections are cut, silent
 * or refused, the server crashes, and the disk of SQLite's file is full
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "chaos.h"
#include "support/server.h"

#define PAUSE_MS 250 /* between two harms, on average */
#define LONGEST_MS 900
#define UNWRITTEN_MS 600 /* three times wal_writer_delay */

struct nemesis {
    struct chaos *chaos;
    struct proxy *const *proxies;
    struct dice dice;
    pid_t pids[PROCESSES];
    unsigned lives[PROCESSES];
};

static void begin_process(struct nemesis *nemesis, unsigned i)
{
    /* cmocka takes these for the end of its test, also in a child. */
    static const int fatal[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
    pid_t parent = getpid();

    (void)fflush(NULL);
    nemesis->pids[i] = fork();
    assert_true(nemesis->pids[i] >= 0);
    if (nemesis->pids[i] != 0)
        return;
    if (getppid() != parent)
        _exit(1);
    for (size_t k = 0; k < sizeof fatal / sizeof *fatal; k++)
        (void)signal(fatal[k], SIG_DFL);
    _exit(work(nemesis->chaos, i, nemesis->lives[i]));
}

/* Fail unless a process ended by itself, and by nothing that is wrong. */
static void check_end(unsigned i, int status)
{
    if (WIFSIGNALED(status))
        fail_msg("process %u ended by signal %d", i, WTERMSIG(status));
    if (status != 0)
        fail_msg("process %u ended with status %d", i, WEXITSTATUS(status));
}

static void kill_process(struct nemesis *nemesis, unsigned i)
{
    int status = 0;
    int64_t from_ns;

    (void)kill(nemesis->pids[i], SIGKILL);
    assert_int_equal(waitpid(nemesis->pids[i], &status, 0), nemesis->pids[i]);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        check_end(i, status);
        assert_true(chaos_is_over(nemesis->chaos));
    }
    from_ns = lk_boottime_ns();
    chaos_note(nemesis->chaos, "died", i, nemesis->lives[i], from_ns, from_ns);
    nemesis->lives[i]++;
    begin_process(nemesis, i);
}

static void stop_process(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    int64_t from_ns = lk_boottime_ns();

    (void)kill(nemesis->pids[i], SIGSTOP);
    check_sleep(ms);
    (void)kill(nemesis->pids[i], SIGCONT);
    chaos_note(nemesis->chaos, "stopped", i, nemesis->lives[i], from_ns,
               lk_boottime_ns());
}

/* Note that a proxy's processes, or all, have had no server since then, and may
 * not yet have found it again. */
static void note_away(const struct nemesis *nemesis, unsigned proxy,
                      int64_t from_ns)
{
    for (unsigned i = 0; i < nemesis->chaos->scope.processes; i++)
        if (proxy == PROXIES || i % PROXIES == proxy)
            chaos_note(nemesis->chaos, "away", i, nemesis->lives[i], from_ns,
                       lk_after_ms(lk_boottime_ns(), 2 * STATEMENT_MS));
}

static void ignore(int number)
{
    (void)number;
}

/* Interrupt system calls of the process, again and again: a signal goes to any
 * of its threads. */
static void storm(const struct nemesis *nemesis, unsigned i, int64_t ms)
{
    int64_t until = check_deadline_ns(ms);

    do
        (void)kill(nemesis->pids[i], SIGUSR2);
    while (check_pause(until));
}

/* Let no file of the process grow for so long, nor be written behind a few
 * pages, as on a full disk. */
static void fill_disk(const struct nemesis *nemesis, unsigned i, int64_t ms)
{
    struct rlimit before, full;

    if (prlimit(nemesis->pids[i], RLIMIT_FSIZE, NULL, &before) != 0)
        return; /* the round is over */
    full = before;
    full.rlim_cur = 4096;
    (void)prlimit(nemesis->pids[i], RLIMIT_FSIZE, &full, NULL);
    check_sleep(ms);
    (void)prlimit(nemesis->pids[i], RLIMIT_FSIZE, &before, NULL);
}

/* End the server at once, and wait until it is back.  PostgreSQL may forget the
 * releases that it has confirmed last, for they do not wait for the disk. */
static void crash(const struct nemesis *nemesis)
{
    const struct fixture *fixture = &nemesis->chaos->fixture;
    const struct database *database = fixture->database;
    int64_t from_ns = lk_boottime_ns();
    struct sql sql;

    assert_int_equal(sql_open(&sql, database, fixture->url), 0);
    server_restart(&sql, fixture->url,
                   database->bit == ON_POSTGRES ? SIGQUIT : SIGKILL);
    sql_close(&sql);
    if (database->bit == ON_POSTGRES)
        chaos_note(nemesis->chaos, "crashed", PROCESSES, 0,
                   lk_after_ms(from_ns, -UNWRITTEN_MS), lk_boottime_ns());
    note_away(nemesis, PROXIES, from_ns);
}

/* Lead to another server, which has lost all rows: as a failover does to a
 * standby that had not got the last commits.  A holder may rely on its lease as
 * before, but does not have it by the table; and nobody is granted one until
 * the longest is over, from when the first session finds the server. */
static void forget(const struct nemesis *nemesis)
{
    const struct fixture *fixture = &nemesis->chaos->fixture;
    struct sql sql;

    for (size_t i = 0; i < PROXIES; i++)
        proxy_down(nemesis->proxies[i]);
    assert_int_equal(sql_open(&sql, fixture->database, fixture->url), 0);
    (void)sql_run(&sql, "UPDATE %sLOCK_SERVER SET EPOCH = 'server %u'",
                  fixture->prefix, nemesis->chaos->done[FORGET]);
    (void)sql_run(&sql, "DELETE FROM %sLOCK", fixture->prefix);
    sql_close(&sql);
    for (size_t i = 0; i < LOCKS; i++) {
        struct line *line = chaos_line(nemesis->chaos, "break", PROCESSES, 0, 1,
                                       chaos_locks[i]);

        atomic_store(&line->to_ns,
                     lk_after_ms(lk_boottime_ns(), TTL_MS + 2 * STATEMENT_MS));
        atomic_store(&line->is_whole, true);
    }
    for (size_t i = 0; i < PROXIES; i++)
        proxy_heal(nemesis->proxies[i]);
}

/* Draw the next harm.  One that cannot be done here is not drawn anew, so that
 * each seed has one sequence of them. */
static void harm(struct nemesis *nemesis)
{
    static const enum chaos_word drawn[] = {KILL, KILL, KILL, STOP,    STOP,
                                            STOP, CUT,  CUT,  SILENCE, AWAY};
    enum chaos_word what = drawn[dice_below(&nemesis->dice, 10)];
    unsigned victim =
        dice_below(&nemesis->dice, PROCESSES) % nemesis->chaos->scope.processes;
    struct proxy *proxy = nemesis->proxies[victim % PROXIES];
    int64_t ms = 20 + dice_below(&nemesis->dice, LONGEST_MS);
    const struct database *database = nemesis->chaos->fixture.database;
    int64_t from_ns = lk_boottime_ns();
    unsigned rarely = dice_below(&nemesis->dice, 25);

    if (rarely == 0 && server_can_restart(database))
        what = CRASH;
    else if (rarely <= 2 && database->bit == ON_POSTGRES)
        what = FORGET;
    else if (rarely <= 5)
        what = STORM;
    else if (what > STOP && database->bit == ON_SQLITE)
        what = FULL; /* in place of the network's */
    else if (what > STOP && proxy == NULL)
        return;
    if (chaos_leaves_out(nemesis->chaos, what))
        return;
    nemesis->chaos->done[what]++;
    switch (what) {
    case KILL:
        kill_process(nemesis, victim);
        return;
    case STOP:
        stop_process(nemesis, victim, ms);
        return;
    case CRASH:
        crash(nemesis);
        return;
    case FORGET:
        forget(nemesis);
        return;
    case FULL:
        fill_disk(nemesis, victim, ms);
        return;
    case STORM:
        storm(nemesis, victim, ms);
        return;
    case SILENCE:
        proxy_blackhole(proxy);
        break;
    default: /* CUT, AWAY */
        proxy_down(proxy);
        break;
    }
    if (what != CUT)
        check_sleep(ms);
    proxy_heal(proxy);
    note_away(nemesis, victim % PROXIES, from_ns);
}

static void await_end(const struct nemesis *nemesis, unsigned i)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(nemesis->pids[i], &status, WNOHANG)) == 0 &&
           check_pause(until))
        ;
    if (ended == 0) {
        (void)kill(nemesis->pids[i], SIGKILL);
        (void)waitpid(nemesis->pids[i], NULL, 0);
        fail_msg("process %u did not end", i);
    }
    check_end(i, status);
}

void nemesis_run(struct chaos *chaos, struct proxy *const proxies[PROXIES])
{
    /* without SA_RESTART, and before there is a process */
    const struct sigaction interrupts = {.sa_handler = ignore};
    struct nemesis nemesis = {.chaos = chaos, .proxies = proxies};

    (void)sigaction(SIGUSR2, &interrupts, NULL);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file too large is an error */
    dice_begin(&nemesis.dice, chaos->seed, 0);
    for (unsigned i = 0; i < chaos->scope.processes; i++)
        begin_process(&nemesis, i);
    while (!chaos_has_begun(chaos) && !chaos_is_over(chaos))
        check_sleep(1);
    while (!chaos_is_over(chaos)) {
        check_sleep(dice_below(&nemesis.dice, 2 * PAUSE_MS));
        harm(&nemesis);
    }
    for (unsigned i = 0; i < chaos->scope.processes; i++)
        await_end(&nemesis, i);
}
