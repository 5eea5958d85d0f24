/*
 * story.c - read the tables of statements (play.h)
 */
#include "drivers/play.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORIES_MAX 200

static struct story stories[STORIES_MAX];
static size_t story_count;

static unsigned read_set(const char *text)
{
    static const struct {
        const char *word;
        unsigned bits;
    } all[] = {
        {"postgres", ON_POSTGRES},
        {"mysql", ON_MYSQL},
        {"sqlite", ON_SQLITE},
        {"servers", ON_SERVERS},
        {"sqlock", 1 << SQLOCK_LAYOUT_SQLOCK},
        {"spring7", 1 << SQLOCK_LAYOUT_SPRING7},
        {"spring6", 1 << SQLOCK_LAYOUT_SPRING6},
    };
    unsigned set = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strstr(text, all[i].word) != NULL)
            set |= all[i].bits;
    return set;
}

/* Return the text behind a session's letter, up to the words, with each \n as a
 * new line. */
static char *sql_of(const char *text)
{
    const char *words = strstr(text, " -> ");
    char *sql;

    text += strspn(text, " ");
    sql = strndup(text, words != NULL ? (size_t)(words - text) : strlen(text));
    if (sql == NULL)
        abort();
    for (char *at = strstr(sql, "\\n"); at != NULL; at = strstr(at, "\\n")) {
        at[0] = '\n';
        at[1] = ' ';
    }
    return sql;
}

static void add_line(struct story *story, const char *text, unsigned number)
{
    struct line *line;
    char *save = NULL;
    bool is_told = false;

    story->lines =
        reallocarray(story->lines, story->count + 1, sizeof *story->lines);
    if (story->lines == NULL)
        abort();
    line = &story->lines[story->count++];
    *line = (struct line){
        .number = number, .text = strdup(text), .copy = strdup(text)};
    if (text[0] != '\0' && text[1] == ':')
        line->sql = sql_of(text + 2);
    for (char *word = strtok_r(line->copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        if (strcmp(word, "->") == 0)
            is_told = true;
        else if (is_told && line->told_count < WORDS_MAX)
            line->told[line->told_count++] = word;
        else if (!is_told && line->count < WORDS_MAX)
            line->words[line->count++] = word;
        line->is_soon = line->is_soon || strcmp(word, "soon") == 0;
    }
}

/* Read a line, and those that continue it, which begin with a blank; count them
 * in *number.  Return false at the end of the file. */
static bool read_line(FILE *file, char *text, size_t size, unsigned *number)
{
    bool is_line = false;
    size_t length = 0;
    int next = ' ';

    while (next == ' ' &&
           fgets(text + length, (int)(size - length), file) != NULL) {
        is_line = true;
        (*number)++;
        text[strcspn(text, "\n")] = '\0';
        length = strlen(text);
        next = getc(file);
        (void)ungetc(next, file);
    }
    return is_line;
}

static void read_file(const char *path)
{
    unsigned layouts = 1 << SQLOCK_LAYOUT_SQLOCK;
    unsigned number = 0;
    struct story *story = NULL;
    char text[1024];
    FILE *file = fopen(path, "re");

    if (file == NULL)
        abort();
    while (read_line(file, text, sizeof text, &number)) {
        if (text[0] == '#' || text[0] == '\0')
            continue;
        if (text[0] == '=') {
            if (story_count == STORIES_MAX)
                abort();
            story = &stories[story_count++];
            *story = (struct story){
                .file = strdup(path), .databases = ON_ALL, .layouts = layouts};
            (void)snprintf(story->title, sizeof story->title, "%.150s",
                           text + 2);
        } else if (strncmp(text, "in ", 3) == 0) {
            *(story != NULL ? &story->layouts : &layouts) = read_set(text);
        } else if (strncmp(text, "on ", 3) == 0 && story != NULL) {
            story->databases = read_set(text);
        } else if (story != NULL) {
            add_line(story, text, number);
        }
    }
    (void)fclose(file);
}

size_t stories_read(const struct story **out)
{
    glob_t found;

    *out = stories;
    if (story_count > 0)
        return story_count;
    if (glob("tests/drivers/*.statements", 0, NULL, &found) != 0) {
        (void)fprintf(stderr, "no files tests/drivers/*.statements\n");
        exit(2);
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_file(found.gl_pathv[i]);
    globfree(&found);
    return story_count;
}
