/*
 * job.c - see command.h
 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 32

static void make_activity(struct job *job, const struct fixture *fixture)
{
    const char *dir = getenv("SQLOCK_TEST_DIR");
    int fd;

    (void)snprintf(job->file, sizeof job->file, "%s/family.%ld.%u.XXXXXX",
                   dir != NULL ? dir : "/tmp", (long)getpid(), fixture->serial);
    fd = mkstemp(job->file);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof *job->activity), 0);
    job->activity = mmap(NULL, sizeof *job->activity, PROT_READ | PROT_WRITE,
                         MAP_SHARED, fd, 0);
    assert_true(job->activity != MAP_FAILED);
    (void)close(fd);
}

static const char *own_path(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    assert_true(length > 0);
    path[length] = '\0';
    return path;
}

/* Execute sqlock in the child of job_start().  Does not return. */
static void become(const char *const *words, const char *url, int says)
{
    const char *sqlock = getenv("SQLOCK");
    const struct rlimit none = {0, 0};
    sigset_t empty;
    int number;

    /* The test program handles some signals; its caller may ignore some. */
    for (number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
    (void)sigemptyset(&empty);
    (void)sigprocmask(SIG_SETMASK, &empty, NULL);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setenv("SQLOCK_URL", url, 1);
    (void)alarm(0);
    if (dup2(says, STDERR_FILENO) < 0)
        _exit(98);
    (void)execv(sqlock != NULL ? sqlock : "build/bin/sqlock",
                (char *const *)(uintptr_t)words);
    _exit(98);
}

void job_start(struct job *job, const struct fixture *fixture, const char *url,
               const char *const *options, const char *kind)
{
    const char *words[ARGUMENTS_MAX] = {"sqlock", "--table-prefix",
                                        fixture->prefix, "-v", "run"};
    size_t count = 5;
    sigset_t all;
    sigset_t before;
    int says[2];

    memset(job, 0, sizeof *job);
    make_activity(job, fixture);
    for (; *options != NULL; options++)
        words[count++] = *options;
    words[count++] = fixture->name;
    words[count++] = "--";
    words[count++] = own_path();
    words[count++] = FAMILY_FACE;
    words[count++] = kind;
    words[count++] = job->file;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_int_equal(pipe2(says, O_CLOEXEC), 0);
    /* Only the test's end: sqlock's end blocks, as that of a shell's pipe. */
    assert_int_equal(fcntl(says[0], F_SETFL, O_NONBLOCK), 0);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    job->pid = fork();
    if (job->pid == 0)
        become(words, url != NULL ? url : fixture->url, says[1]);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    assert_true(job->pid >= 0);
    (void)close(says[1]);
    job->says = says[0];
    job->pidfd = (int)syscall(SYS_pidfd_open, job->pid, 0);
    assert_true(job->pidfd >= 0);
}

bool job_has_said(struct job *job, const char *text)
{
    ssize_t got;

    do {
        got = read(job->says, job->said + job->said_bytes,
                   sizeof job->said - 1 - job->said_bytes);
        if (got > 0)
            job->said_bytes += (size_t)got;
    } while (got > 0);
    job->said[job->said_bytes] = '\0';
    return strstr(job->said, text) != NULL;
}

void job_await(struct job *job, const char *text)
{
    (void)wait_until(job_has_said(job, text) || job_has_ended(job),
                     PATIENCE_MS);
    if (job_has_said(job, text))
        return;
    print_error("sqlock, %s, does not say \"%s\" but:\n%s",
                job_has_ended(job) ? "which has ended" : "which runs", text,
                job->said);
    fail();
}

void job_deafen(struct job *job)
{
    char filler[4096]; /* a whole page: no byte fits in after it */
    ssize_t filled;
    char path[64];
    int fd;

    (void)job_has_said(job, "");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", job->says);
    fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    memset(filler, '.', sizeof filler);
    do {
        filled = write(fd, filler, sizeof filler);
        job->filler_bytes += filled > 0 ? (size_t)filled : 0;
    } while (filled > 0);
    assert_int_equal(errno, EAGAIN);
    (void)close(fd);
}

void job_listen(struct job *job)
{
    char filler[4096];
    ssize_t got;

    while (job->filler_bytes > 0) {
        got = read(job->says, filler,
                   job->filler_bytes < sizeof filler ? job->filler_bytes
                                                     : sizeof filler);
        assert_true(got > 0);
        job->filler_bytes -= (size_t)got;
    }
}

static bool is_called(pid_t pid, const char *name)
{
    char path[64];
    char comm[32] = "";
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    (void)!fgets(comm, sizeof comm, file);
    (void)fclose(file);
    comm[strcspn(comm, "\n")] = '\0';
    return strcmp(comm, name) == 0;
}

/* Return the process of that name among the descendants of `parent`, down to
 * that depth; 0: none. */
static pid_t find_below(pid_t parent, const char *name, int depth)
{
    char path[64];
    FILE *children;
    pid_t found = 0;
    int pid;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent,
                   (int)parent);
    children = depth > 0 ? fopen(path, "re") : NULL;
    if (children == NULL)
        return 0;
    while (found == 0 && fscanf(children, "%d", &pid) == 1)
        found = is_called(pid, name) ? pid : find_below(pid, name, depth - 1);
    (void)fclose(children);
    return found;
}

pid_t job_process(const struct job *job, const char *name)
{
    pid_t pid = find_below(job->pid, name, 2);

    assert_true(pid > 0);
    return pid;
}

void job_terminate(struct job *job)
{
    assert_int_equal(kill(job->pid, SIGTERM), 0);
    assert_int_equal(job_end(job), 128 + SIGTERM);
}

void job_expect_start(struct job *job)
{
    assert_becomes_true(atomic_load(&job->activity->members) > 0, PATIENCE_MS);
    job_terminate(job);
}

bool job_is_anyone_left(void)
{
    siginfo_t info = {0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0)
        info.si_pid = 0;
    return !(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 &&
             errno == ECHILD);
}

int job_end(struct job *job)
{
    struct pollfd end = {.fd = job->pidfd, .events = POLLIN};
    int status = 0;

    if (poll(&end, 1, PATIENCE_MS) != 1) {
        (void)job_has_said(job, "");
        print_error("sqlock does not end; it has said:\n%s", job->said);
        (void)kill(job->pid, SIGKILL);
        fail();
    }
    assert_int_equal(waitpid(job->pid, &status, 0), job->pid);
    assert_becomes_true(!job_is_anyone_left(), PATIENCE_MS);
    (void)job_has_said(job, "");
    (void)close(job->says);
    (void)close(job->pidfd);
    (void)munmap(job->activity, sizeof *job->activity);
    (void)unlink(job->file);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool job_has_ended(const struct job *job)
{
    struct pollfd end = {.fd = job->pidfd, .events = POLLIN};

    return poll(&end, 1, 0) == 1;
}

void job_run(struct job *job, const struct fixture *fixture, const char *url,
             const char *const *options, const char *kind, int members)
{
    int64_t end_ns = check_deadline_ns(2 * PATIENCE_MS);
    bool is_there = false;
    int status = 0;

    while (!is_there) {
        job_start(job, fixture, url, options, kind);
        is_there = wait_until(atomic_load(&job->activity->members) >= members ||
                                  job_has_ended(job),
                              PATIENCE_MS) &&
                   !job_has_ended(job);
        /* A busy server may not answer the first claim or renewal in time. */
        if (!is_there)
            status = job_end(job);
        if (!is_there &&
            ((status != 69 && status != 76) || !check_pause(end_ns))) {
            print_error("the command does not run, sqlock says:\n%s",
                        job->said);
            fail();
        }
    }
}
