/*
 * nemesis.c - what happens to the processes, drawn from the seed: they are
 * killed, stopped and interrupted by signals, their connections are cut, silent
 * or refused, and the disk of SQLite's file is full; the server crashes, ends
 * sessions, takes no more of them, has its clock set, or is followed by another
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "chaos.h"
#include "support/cluster.h"
#include "support/server.h"

#define PAUSE_MS 250 /* between two harms, on average */
#define LONGEST_MS 900
#define UNWRITTEN_MS 600 /* three times wal_writer_delay */
#define STEP_MS 40       /* of a clock; twice that is within the margin */

struct nemesis {
    struct chaos *chaos;
    struct proxy *const *proxies;
    struct dice dice;
    pid_t pids[PROCESSES];
    unsigned lives[PROCESSES];
    pid_t leaders[LEADERS]; /* `sqlock lead`; 0: none */
};

/* Fork; return whether this is the child, which ends by a fatal signal: cmocka
 * takes these for the end of its test. */
static bool is_child(pid_t *pid)
{
    static const int fatal[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
    pid_t parent = getpid();

    (void)fflush(NULL);
    *pid = fork();
    assert_true(*pid >= 0);
    if (*pid != 0)
        return false;
    check_end_with(parent);
    for (size_t k = 0; k < sizeof fatal / sizeof *fatal; k++)
        (void)signal(fatal[k], SIG_DFL);
    return true;
}

static void begin_process(struct nemesis *nemesis, unsigned i)
{
    if (is_child(&nemesis->pids[i]))
        _exit(work(nemesis->chaos, i, nemesis->lives[i]));
}

/* Start each service that does not run, or has ended. */
static void begin_leaders(struct nemesis *nemesis)
{
    for (unsigned i = 0; i < LEADERS; i++) {
        int status = 0;

        if (nemesis->leaders[i] != 0 &&
            waitpid(nemesis->leaders[i], &status, WNOHANG) == 0)
            continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == LEAD_NOT_RUN)
            fail_msg("`sqlock lead` cannot be run");
        if (is_child(&nemesis->leaders[i]))
            lead_become(nemesis->chaos, i);
    }
}

/* Fail unless a process ended by itself, and by nothing that is wrong. */
static void check_end(unsigned i, int status)
{
    if (WIFSIGNALED(status))
        fail_msg("process %u ended by signal %d", i, WTERMSIG(status));
    if (status != 0)
        fail_msg("process %u ended with status %d", i, WEXITSTATUS(status));
}

static void kill_process(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    int status = 0;
    int64_t from_ns;

    (void)ms;
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

/* Return the process of the service that began last. */
static pid_t *leader(struct nemesis *nemesis)
{
    struct chaos *chaos = nemesis->chaos;
    unsigned i = atomic_load(&chaos->count);

    while (i-- > 0)
        if (atomic_load(&chaos->lines[i].is_whole) &&
            strcmp(chaos->lines[i].lock, "lead") == 0)
            return &nemesis->leaders[chaos->lines[i].process - PROCESSES - 1];
    return &nemesis->leaders[0];
}

static void kill_leader(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    pid_t *pid = leader(nemesis);

    (void)i;
    (void)ms;
    (void)kill(*pid, SIGKILL);
    (void)waitpid(*pid, NULL, 0);
    *pid = 0;
}

/* For longer than its lease lasts. */
static void stop_leader(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    pid_t pid = *leader(nemesis);

    (void)i;
    (void)kill(pid, SIGSTOP);
    check_sleep(TTL_MS + ms);
    (void)kill(pid, SIGCONT);
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
static void storm(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    int64_t until = check_deadline_ns(ms);

    do
        (void)kill(nemesis->pids[i], SIGUSR2);
    while (check_pause(until));
}

/* Let no file of the process grow for so long, nor be written behind a few
 * pages, as on a full disk.  Meanwhile it cannot take what it is called for. */
static void fill_disk(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    struct rlimit before, full;
    int64_t from_ns = lk_boottime_ns();

    if (prlimit(nemesis->pids[i], RLIMIT_FSIZE, NULL, &before) != 0)
        return; /* the round is over */
    full = before;
    full.rlim_cur = 4096;
    (void)prlimit(nemesis->pids[i], RLIMIT_FSIZE, &full, NULL);
    check_sleep(ms);
    (void)prlimit(nemesis->pids[i], RLIMIT_FSIZE, &before, NULL);
    chaos_note(nemesis->chaos, "away", i, nemesis->lives[i], from_ns,
               lk_after_ms(lk_boottime_ns(), STATEMENT_MS));
}

/* --- the network --- */

/* Have the victim's proxy do that for so long. */
static void disturb(const struct nemesis *nemesis, unsigned i, int64_t ms,
                    void (*what)(struct proxy *proxy))
{
    struct proxy *proxy = nemesis->proxies[i % PROXIES];
    int64_t from_ns = lk_boottime_ns();

    what(proxy);
    check_sleep(ms);
    proxy_heal(proxy);
    note_away(nemesis, i % PROXIES, from_ns);
}

static void cut(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    (void)ms;
    disturb(nemesis, i, 0, proxy_down);
}

static void silence(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    disturb(nemesis, i, ms, proxy_blackhole);
}

static void refuse(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    disturb(nemesis, i, ms, proxy_down);
}

/* --- the server --- */

/* Open a session, once there is a server. */
static void open_session(const struct nemesis *nemesis, struct sql *sql)
{
    const struct fixture *fixture = &nemesis->chaos->fixture;
    int64_t end_ns = check_deadline_ns(8 * (int64_t)PATIENCE_MS);

    while (sql_open(sql, fixture->database, fixture->url) != 0) {
        sql_close(sql);
        if (!check_pause(end_ns))
            fail_msg("no server answers: %s", sql->err.message);
    }
}

/* Note that no lease of before counts any more, and that none is granted until
 * the longest is over, from when the first session finds the server. */
static void note_forgotten(const struct nemesis *nemesis, int64_t from_ns)
{
    for (size_t i = 0; i < LOCKS; i++) {
        struct line *line = chaos_line(nemesis->chaos, "break", PROCESSES, 0, 1,
                                       chaos_locks[i]);

        line->from_ns = from_ns;
        atomic_store(&line->to_ns,
                     lk_after_ms(lk_boottime_ns(), TTL_MS + 2 * STATEMENT_MS));
        atomic_store(&line->is_whole, true);
    }
}

/* End the server at once, and wait until it is back.  PostgreSQL may forget the
 * releases that it has confirmed last, for they do not wait for the disk. */
static void crash(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    const struct fixture *fixture = &nemesis->chaos->fixture;
    bool is_postgres = fixture->database->bit == ON_POSTGRES;
    int64_t from_ns = lk_boottime_ns();
    struct sql sql;

    (void)i;
    (void)ms;
    open_session(nemesis, &sql);
    server_restart(&sql, fixture->url, is_postgres ? SIGQUIT : SIGKILL);
    sql_close(&sql);
    if (is_postgres)
        chaos_note(nemesis->chaos, "crashed", PROCESSES, 0,
                   lk_after_ms(from_ns, -UNWRITTEN_MS), lk_boottime_ns());
    note_away(nemesis, PROXIES, from_ns);
}

/* Lead to another server, which has lost all rows: as a failover does to a
 * standby that had not got the last commits.  A holder may rely on its lease as
 * before, but does not have it by the table. */
static void forget(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    const struct fixture *fixture = &nemesis->chaos->fixture;
    struct sql sql;

    (void)i;
    (void)ms;
    for (size_t k = 0; k < PROXIES; k++)
        proxy_down(nemesis->proxies[k]);
    open_session(nemesis, &sql);
    (void)sql_run(&sql, "UPDATE %sLOCK_SERVER SET EPOCH = 'server %u'",
                  fixture->prefix, nemesis->chaos->done[FORGET]);
    (void)sql_run(&sql, "DELETE FROM %sLOCK", fixture->prefix);
    sql_close(&sql);
    note_forgotten(nemesis, lk_boottime_ns());
    for (size_t k = 0; k < PROXIES; k++)
        proxy_heal(nemesis->proxies[k]);
}

/* Have another server of the cluster promoted, which lacks the commits of the
 * last moments where commits do not wait for it. */
static void promote(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    int64_t from_ns = lk_boottime_ns();
    struct sql sql;
    char answer[64];

    (void)i;
    cluster_act("lag", answer, sizeof answer);
    check_sleep(ms);
    cluster_act("fail", answer, sizeof answer);
    open_session(nemesis, &sql);
    sql_close(&sql);
    if (chaos_loses_commits())
        note_forgotten(nemesis, from_ns);
    note_away(nemesis, PROXIES, from_ns);
}

/* End every second session of the processes, which have this one's login. */
static int end_half(const struct nemesis *nemesis, struct sql *sql, unsigned i)
{
    static const char *const texts[] = {
        "SELECT pid FROM pg_stat_activity WHERE usename = current_user"
        " AND pid <> pg_backend_pid()",
        "SELECT id FROM information_schema.processlist"
        " WHERE id <> CONNECTION_ID()"};
    const sqlock_statement all = {
        .text = texts[sql->database->bit == ON_POSTGRES ? 0 : 1]};
    int64_t from_ns = lk_boottime_ns();
    sqlock_result rows = {0};
    int rc =
        sql->driver->execute(sql->connection, &all, NULL, 0,
                             check_deadline_ns(PATIENCE_MS), &rows, &sql->err);

    for (size_t k = i % 2; k < rows.rows; k += 2)
        (void)server_end_some(sql, &rows.cells[k * rows.columns].integer, 1);
    sqlock_result_clear(&rows);
    note_away(nemesis, PROXIES, from_ns);
    return rc;
}

static void end_sessions(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    struct sql sql;

    (void)ms;
    open_session(nemesis, &sql);
    assert_lock_ok(end_half(nemesis, &sql, i), &sql.err);
    sql_close(&sql);
}

/* Let the server take no more connections for so long, when it has just ended
 * some: only its administrator's. */
static void exhaust(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    const struct database *database = nemesis->chaos->fixture.database;
    bool is_postgres = database->bit == ON_POSTGRES;
    int64_t from_ns = lk_boottime_ns();
    int64_t most = -1;
    struct sql sql, theirs;
    int rc;

    open_session(nemesis, &theirs);
    assert_lock_ok(sql_open(&sql, database, database_admin_url(database)),
                   &sql.err);
    if (is_postgres) {
        (void)sql_run(&sql, "ALTER DATABASE sqlock CONNECTION LIMIT 0");
    } else {
        most = sql_integer(&sql, "SELECT @@max_connections");
        (void)sql_run(&sql, "SET GLOBAL max_connections = 10");
    }
    rc = end_half(nemesis, &theirs, i);
    check_sleep(ms);
    (void)sql_run(&sql,
                  is_postgres ? "ALTER DATABASE sqlock CONNECTION LIMIT %lld"
                              : "SET GLOBAL max_connections = %lld",
                  (long long)most);
    sql_close(&sql);
    assert_lock_ok(rc, &theirs.err); /* once the limit is as before */
    sql_close(&theirs);
    note_away(nemesis, PROXIES, from_ns);
}

/* Set the server's clock, never by more than the margin allows for. */
static void step(struct nemesis *nemesis, unsigned i, int64_t ms)
{
    (void)nemesis;
    (void)i;
    server_set_clock(getenv("SQLOCK_TEST_CLOCK"),
                     (int)(ms % (2 * STEP_MS + 1)) - STEP_MS);
}

/* --- which of them --- */

static bool can_always(const struct nemesis *nemesis)
{
    (void)nemesis;
    return true;
}

static bool has_leaders(const struct nemesis *nemesis)
{
    return nemesis->leaders[0] != 0;
}

static bool is_file(const struct nemesis *nemesis)
{
    return nemesis->chaos->fixture.database->bit == ON_SQLITE;
}

static bool has_proxies(const struct nemesis *nemesis)
{
    return nemesis->proxies[0] != NULL;
}

static bool can_forget(const struct nemesis *nemesis)
{
    return has_proxies(nemesis) &&
           nemesis->chaos->fixture.database->bit == ON_POSTGRES;
}

static bool can_restart(const struct nemesis *nemesis)
{
    return has_proxies(nemesis) &&
           server_can_restart(nemesis->chaos->fixture.database);
}

static bool has_sessions(const struct nemesis *nemesis)
{
    return !is_file(nemesis);
}

static bool can_step(const struct nemesis *nemesis)
{
    return !is_file(nemesis) && getenv("SQLOCK_TEST_CLOCK") != NULL;
}

/* Once a round: then the cluster is repaired. */
static bool can_promote(const struct nemesis *nemesis)
{
    return chaos_cluster() != NULL && nemesis->chaos->done[PROMOTE] == 0;
}

static const struct harm {
    enum chaos_word word;
    unsigned share; /* how often it is drawn, beside the others */
    bool (*can)(const struct nemesis *nemesis);
    void (*harm)(struct nemesis *nemesis, unsigned i, int64_t ms);
} harms[] = {
    {KILL, 14, can_always, kill_process},
    {STOP, 14, can_always, stop_process},
    {KILL, 3, has_leaders, kill_leader},
    {STOP, 3, has_leaders, stop_leader},
    {STORM, 5, can_always, storm},
    {FULL, 16, is_file, fill_disk},
    {CUT, 8, has_proxies, cut},
    {SILENCE, 4, has_proxies, silence},
    {AWAY, 4, has_proxies, refuse},
    {CRASH, 2, can_restart, crash},
    {FORGET, 10, can_forget, forget},
    {SESSIONS, 4, has_sessions, end_sessions},
    {EXHAUST, 3, has_proxies, exhaust},
    {STEP, 6, can_step, step},
    {PROMOTE, 12, can_promote, promote},
};
#define HARMS (sizeof harms / sizeof *harms)

/* Draw the next harm of those that can be done here.  One that is left out is
 * not drawn anew, so that each seed has one sequence of them. */
static void harm(struct nemesis *nemesis)
{
    unsigned victim =
        dice_below(&nemesis->dice, PROCESSES) % nemesis->chaos->scope.processes;
    int64_t ms = 20 + dice_below(&nemesis->dice, LONGEST_MS);
    const struct harm *what = harms;
    unsigned shares = 0, drawn;

    for (size_t i = 0; i < HARMS; i++)
        shares += harms[i].can(nemesis) ? harms[i].share : 0;
    drawn = dice_below(&nemesis->dice, shares);
    while (!what->can(nemesis) || drawn >= what->share) {
        drawn -= what->can(nemesis) ? what->share : 0;
        what++;
    }
    if (chaos_leaves_out(nemesis->chaos, what->word))
        return;
    nemesis->chaos->done[what->word]++;
    what->harm(nemesis, victim, ms);
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

static void end_leaders(struct nemesis *nemesis)
{
    for (unsigned i = 0; i < LEADERS; i++)
        if (nemesis->leaders[i] != 0) {
            (void)kill(nemesis->leaders[i], SIGTERM);
            (void)waitpid(nemesis->leaders[i], NULL, 0);
        }
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
        if (!chaos_leaves_out(chaos, LEAD))
            begin_leaders(&nemesis);
        harm(&nemesis);
    }
    end_leaders(&nemesis);
    for (unsigned i = 0; i < chaos->scope.processes; i++)
        await_end(&nemesis, i);
}
