/*
 * cgroup.c - a control group for the command, below sqlock's own
 *
 * KILL sent to a control group also reaches processes that run as another user
 * or fork without end.  The group needs a version 2 hierarchy with cgroup.kill
 * (Linux 5.14) and the right to make a directory there; otherwise only
 * family.c finds the descendants, by their parents.
 */
#include "run.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"

/* Return the first line of a file that has `mark` in it, without its newline;
 * NULL: there is none.  The caller frees it. */
static char *find_line(const char *path, const char *mark)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;

    while (file != NULL && !is_found && getline(&line, &room, file) > 0)
        is_found = strstr(line, mark) != NULL;
    if (file != NULL)
        (void)fclose(file);
    if (is_found) {
        line[strcspn(line, "\n")] = '\0';
        return line;
    }
    free(line);
    return NULL;
}

/* Open the mount point of the version 2 hierarchy, which the kernel lists as
 * "... MOUNT-POINT ... - cgroup2 ...".  Return a descriptor, or -1. */
static int open_mount(void)
{
    char *line = find_line("/proc/self/mountinfo", " - cgroup2 ");
    char point[PATH_MAX];
    int fd = -1;

    if (line != NULL && sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1)
        fd = open(point, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(line);
    return fd;
}

/* Open our own control group, which the kernel lists as "0::/path".  Return a
 * descriptor, or -1. */
static int open_own(int mount_fd)
{
    char *line = find_line("/proc/self/cgroup", "0::/");
    int fd = -1;

    if (line != NULL)
        fd = openat(mount_fd, line[4] != '\0' ? line + 4 : ".",
                    O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(line);
    return fd;
}

/* The name of the command's group: no other run has had it. */
static char own_name[32];

void run_cgroup_name(void)
{
    (void)snprintf(own_name, sizeof own_name, "sqlock-%d-%08x", (int)getpid(),
                   (unsigned)lk_random_between(0, UINT32_MAX));
}

/* Open our own group, and name the command's group below it.  Return false if
 * there is no version 2 hierarchy. */
static bool look_up(run_cgroup *group)
{
    int mount_fd = open_mount();

    *group = (run_cgroup){.dir_fd = -1, .parent_fd = -1};
    if (mount_fd < 0)
        return false;
    group->parent_fd = open_own(mount_fd);
    (void)close(mount_fd);
    memcpy(group->name, own_name, sizeof group->name);
    return group->parent_fd >= 0;
}

static void open_named(run_cgroup *group)
{
    group->dir_fd =
        openat(group->parent_fd, group->name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void run_cgroup_make(run_cgroup *group)
{
    if (!look_up(group))
        return;
    /* A group that exists already may have other members: it is not used. */
    if (mkdirat(group->parent_fd, group->name, 0755) == 0)
        open_named(group);
    else
        group->name[0] = '\0';
    if (group->dir_fd < 0 ||
        faccessat(group->dir_fd, "cgroup.kill", W_OK, 0) != 0)
        run_cgroup_clear(group);
}

void run_cgroup_find(run_cgroup *group)
{
    if (look_up(group))
        open_named(group);
}

/* Fork a child that begins in the group: a group that a running process joins
 * makes the kernel wait for all processors, for 10 ms.  The child is as after
 * vfork() for libc, which does not know of the fork: it may execute a program
 * or exit.  Return as fork(). */
static pid_t fork_in(const run_cgroup *group)
{
#ifdef CLONE_INTO_CGROUP /* Linux 5.7 */
    struct clone_args how = {.flags = CLONE_INTO_CGROUP,
                             .exit_signal = SIGCHLD,
                             .cgroup = (unsigned)group->dir_fd};

    return (pid_t)syscall(SYS_clone3, &how, sizeof how);
#else
    (void)group;
    return -1;
#endif
}

/* Let the calling process join the group. */
static void join(const run_cgroup *group)
{
    int fd = openat(group->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    (void)!write(fd, "0", 1); /* or family.c finds the descendants alone */
    (void)close(fd);
}

pid_t run_cgroup_fork(const run_cgroup *group)
{
    pid_t pid = group->dir_fd >= 0 ? fork_in(group) : -1;

    if (pid >= 0)
        return pid;
    /* The kernel is old, or a filter of system calls refuses that one. */
    pid = fork();
    if (pid == 0 && group->dir_fd >= 0)
        join(group);
    return pid;
}

void run_cgroup_kill(const run_cgroup *group)
{
    int fd;

    if (group->dir_fd < 0)
        return;
    fd = openat(group->dir_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!write(fd, "1", 1); /* they are killed one by one as well */
    (void)close(fd);
}

/* Move the daemons that the command has left behind, and that are to live on,
 * to our own group. */
static void move_out(const run_cgroup *group)
{
    int from = openat(group->dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    int to = openat(group->parent_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    FILE *members = from >= 0 ? fdopen(from, "r") : NULL;
    int pid;

    while (members != NULL && to >= 0 && fscanf(members, "%d", &pid) == 1)
        (void)dprintf(to, "%d", pid);
    if (members != NULL)
        (void)fclose(members);
    else if (from >= 0)
        (void)close(from);
    if (to >= 0)
        (void)close(to);
}

void run_cgroup_clear(run_cgroup *group)
{
    if (group->dir_fd >= 0) {
        move_out(group);
        (void)close(group->dir_fd);
    }
    if (group->name[0] != '\0' && group->parent_fd >= 0)
        (void)unlinkat(group->parent_fd, group->name, AT_REMOVEDIR);
    if (group->parent_fd >= 0)
        (void)close(group->parent_fd);
    *group = (run_cgroup){.dir_fd = -1, .parent_fd = -1};
}
