/*
 * actor.c - threads that make the calls which the player asks for, a line each,
 * and say when a call begins and ends
 *
 * A line is written by one write(2), so that lines of several threads are not
 * mixed, and in the order in which things happened.
 */
#include "actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "company.h"

static struct actor actor = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct stage {
    struct player player;
    pthread_t thread;
    sem_t cue;
    bool is_there;
    char line[1024];
} stages[THREADS_MAX];

static void say(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(3);
}

/* Nobody is told before the time. */
void actor_say_lost(int code, sqlock_lock *lock)
{
    char line[160];

    (void)snprintf(line, sizeof line, "lost %d %s\n",
                   sqlock_remaining_ms(lock) > 0 ? NOT_PLAYED : code,
                   sqlock_name(lock));
    say(line);
}

static void say_end(const struct player *player)
{
    const struct outcome *outcome = &player->outcome;
    char line[700];

    (void)snprintf(line, sizeof line, "%d ended %d %lld %s\n", player->number,
                   outcome->rc, (long long)outcome->token,
                   outcome->err.message);
    say(line);
}

static void play(struct stage *stage)
{
    struct player *player = &stage->player;
    char line[64];

    memset(&player->outcome, 0, sizeof player->outcome);
    disturb_by_player();
    (void)snprintf(line, sizeof line, "%d begun %d\n", player->number,
                   (int)gettid());
    say(line);
    if (step_parse(&player->step, stage->line) != NULL)
        _exit(4);
    actor_perform(player);
    if (player->outcome.rc == 0 && player->outcome.err.code != 0)
        actor_refuse(&player->outcome, "a call has written an error, and "
                                       "succeeded");
    say_end(player);
}

static void *wait_for_cues(void *argument)
{
    struct stage *stage = argument;

    while (!stage->player.has_left) {
        while (sem_wait(&stage->cue) < 0)
            ;
        play(stage);
    }
    return NULL;
}

/* Let the thread that has left be another one from here on. */
static void renew_thread(struct stage *stage)
{
    if (stage->is_there)
        (void)pthread_join(stage->thread, NULL);
    stage->player.has_left = false;
    (void)sem_init(&stage->cue, 0, 0);
    if (pthread_create(&stage->thread, NULL, wait_for_cues, stage) != 0)
        _exit(5);
    stage->is_there = true;
}

/* Give a thread its step; thread 0, which opens and closes, is this one. */
static void cue(int number, const char *line)
{
    struct stage *stage = &stages[number];

    (void)snprintf(stage->line, sizeof stage->line, "%d %s", number, line);
    stage->player.actor = &actor;
    stage->player.number = number;
    if (number == 0) {
        play(stage);
        return;
    }
    if (!stage->is_there || stage->player.has_left)
        renew_thread(stage);
    (void)sem_post(&stage->cue);
}

int actor_main(void)
{
    char line[1024];

    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words = NULL;
        long number = strtol(line, &words, 10);

        line[strcspn(line, "\n")] = '\0';
        if (number < 0 || number >= THREADS_MAX)
            return 2;
        cue((int)number, words + 1);
    }
    /* The threads wait for cues; what they point to is theirs. */
    _exit(0);
}
