/*
 * family.c - find, signal and collect all descendants of the calling
 * process
 *
 * The calling process is a subreaper: a descendant that loses its parent, in
 * whatever session or process group, becomes its child.  So when it has no
 * child, it has no descendant; and to kill all descendants, no complete list is
 * needed: the next pass finds the children of a killed process.  The process id
 * of a child is not reused before the child is collected.  The id of a deeper
 * descendant may be, so that process is signalled through a pidfd, after its
 * parent was checked once more.
 */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long to look for processes that were forked while others were killed.  A
 * process that forks and ends, whose child does the same, and so on, is caught
 * while one of them is our child. */
#define HUNT_NS (10 * LK_NS_PER_MS)
/* Pause between two passes of that search.  The supervisor has a real-time
 * priority, and a killed process has to run in order to end: without the pause,
 * several supervisors could keep killed processes from all processors. */
#define HUNT_PAUSE_NS 100000

/* A process that has not ended this long after KILL is not waited for any
 * longer. */
#define GIVE_UP_NS (10000 * LK_NS_PER_MS)

bool run_family_reap(run_child *child)
{
    pid_t pid;
    int status;

    for (;;) {
        pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid <= 0)
            return !(pid < 0 && errno == ECHILD);
        if (child != NULL && pid == child->pid) {
            child->wait_status = status;
            child->has_news = true;
        }
    }
}

/* ------------------------------------------------------------- processes -- */

typedef struct process {
    pid_t pid;
    pid_t parent;
    pid_t session;
    bool is_family;
} process;

typedef struct process_list {
    process *all;
    size_t count;
    size_t room;
} process_list;

/* Read /proc/PID/stat: "PID (any name) STATE PARENT GROUP SESSION ...".  Return
 * false if the process is gone, or a zombie. */
static bool read_process(pid_t pid, process *out)
{
    char text[512];
    const char *at;
    char state;
    int parent;
    int session;

    (void)cli_read_about(pid, "stat", text, sizeof text);
    at = strrchr(text, ')');
    if (at == NULL ||
        sscanf(at + 1, " %c %d %*d %d", &state, &parent, &session) != 3 ||
        state == 'Z' || state == 'X')
        return false;
    *out = (process){.pid = pid, .parent = parent, .session = session};
    return true;
}

static bool append(process_list *list, const process *one)
{
    process *grown;
    size_t room;

    if (list->count == list->room) {
        room = list->room == 0 ? 256 : 2 * list->room;
        grown = realloc(list->all, room * sizeof *grown);
        if (grown == NULL)
            return false;
        list->all = grown;
        list->room = room;
    }
    list->all[list->count++] = *one;
    return true;
}

/* Return whether the signal has reached our own child; 0 reaches also one that
 * we may not signal. */
static bool reaches(pid_t child, int number)
{
    return kill(child, number) == 0 || (number == 0 && errno == EPERM);
}

static bool is_meant(const process *one, pid_t session)
{
    return session == RUN_ANY_SESSION || one->session == session;
}

/* Send a signal to our own children in @p session, whose ids need no second
 * check, as the kernel lists them: much faster than reading all processes, and
 * also where /proc hides them.  Append them to the list, unless it is NULL, and
 * add to *reached how many got it.  Return false if the kernel does not list
 * them. */
static bool signal_children(process_list *list, int number, pid_t session,
                            size_t *reached)
{
    process one = {.parent = getpid(), .is_family = true};
    char path[64];
    FILE *children;
    int pid;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children",
                   (int)one.parent);
    children = fopen(path, "re");
    if (children == NULL)
        return false;
    while (fscanf(children, "%d", &pid) == 1) {
        one.pid = pid;
        one.session = getsid(pid);
        if (is_meant(&one, session) && reaches(pid, number))
            (*reached)++;
        if (list != NULL)
            (void)append(list, &one);
    }
    (void)fclose(children);
    return true;
}

static bool is_listed(const process_list *list, size_t count, pid_t pid)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (list->all[i].pid == pid)
            return true;
    }
    return false;
}

/* List all processes of the system, as far as /proc shows them.  On the way,
 * send the signal as signal_children() does to our own children that are not
 * among the first @p known of the list. */
static void scan(process_list *list, size_t known, int number, pid_t session,
                 size_t *reached)
{
    pid_t self = getpid();
    struct dirent *entry;
    process one;
    int64_t pid;
    DIR *directory = opendir("/proc");

    if (directory == NULL)
        return;
    for (;;) {
        entry = readdir(directory); /* only this thread uses the stream */
        if (entry == NULL)
            break;
        if (!lk_text_integer(entry->d_name, &pid) ||
            !read_process((pid_t)pid, &one))
            continue;
        one.is_family = one.parent == self;
        if (one.is_family && is_listed(list, known, one.pid))
            continue;
        if (one.is_family && is_meant(&one, session) &&
            reaches(one.pid, number))
            (*reached)++;
        if (!append(list, &one))
            break;
    }
    (void)closedir(directory);
}

/* Mark the children of marked processes, and their children, and so on. */
static void mark_family(const process_list *list)
{
    bool has_changed = true;
    size_t i;
    size_t j;

    while (has_changed) {
        has_changed = false;
        for (i = 0; i < list->count; i++) {
            if (!list->all[i].is_family)
                continue;
            for (j = 0; j < list->count; j++) {
                if (list->all[j].is_family ||
                    list->all[j].parent != list->all[i].pid)
                    continue;
                list->all[j].is_family = true;
                has_changed = true;
            }
        }
    }
}

static bool signal_deep(const process *one, int number)
{
    int fd = (int)syscall(SYS_pidfd_open, one->pid, 0);
    bool was_reached = false;
    process now;

    if (fd < 0)
        return false;
    if (read_process(one->pid, &now) && now.parent == one->parent)
        was_reached =
            syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0 ||
            (number == 0 && errno == EPERM);
    (void)close(fd);
    return was_reached;
}

size_t run_family_signal(int number, pid_t session)
{
    process_list list = {.all = NULL};
    pid_t self = getpid();
    size_t reached = 0;
    size_t i;

    (void)signal_children(&list, number, session, &reached);
    scan(&list, list.count, number, session, &reached);
    mark_family(&list);
    for (i = 0; i < list.count; i++) {
        if (list.all[i].is_family && list.all[i].parent != self &&
            is_meant(&list.all[i], session) &&
            signal_deep(&list.all[i], number))
            reached++;
    }
    free(list.all);
    return reached;
}

bool run_family_may_have(pid_t session)
{
    return run_family_signal(0, session) > 0 ||
           run_family_signal(0, RUN_ANY_SESSION) == 0;
}

/* ------------------------------------------------------------------ kill -- */

bool run_family_has_group(pid_t group)
{
    siginfo_t info;

    return waitid(P_PGID, (id_t)group, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void run_family_signal_group(int number, pid_t group)
{
    if (run_family_has_group(group))
        (void)kill(-group, number);
}

bool run_family_kill(pid_t session, run_child *child)
{
    int64_t end_ns = lk_boottime_ns() + HUNT_NS;
    size_t reached = 0;
    bool is_anyone_left;

    (void)run_family_signal(SIGKILL, session);
    do {
        if (!signal_children(NULL, SIGKILL, session, &reached))
            (void)run_family_signal(SIGKILL, session);
        is_anyone_left = run_family_reap(child);
        if (is_anyone_left)
            lk_sleep_until(sqlock_monotonic_ns() + HUNT_PAUSE_NS);
    } while (is_anyone_left && lk_boottime_ns() < end_ns);
    return is_anyone_left;
}

bool run_family_sweep(void)
{
    int64_t end_ns = lk_boottime_ns() + GIVE_UP_NS;
    run_cgroup cgroup;
    bool is_anyone_left;

    run_cgroup_find(&cgroup);
    do {
        run_cgroup_kill(&cgroup);
        is_anyone_left = run_family_kill(RUN_ANY_SESSION, NULL);
        if (is_anyone_left)
            lk_sleep_until(sqlock_monotonic_ns() + RUN_TICK_NS);
    } while (is_anyone_left && lk_boottime_ns() < end_ns);
    run_cgroup_clear(&cgroup);
    return is_anyone_left;
}
