/*
 * scene.c - see scene.h
 */
#include "scene.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file that is being read. */
struct reading {
    struct scenes *scenes;
    char file[256];
    unsigned line;
    unsigned databases; /* for the scenes to come */
    unsigned layouts;
    bool is_begun; /* a scene of this file has begun */
};

static struct scene *last(const struct reading *in)
{
    return &in->scenes->all[in->scenes->count - 1];
}

/* Print what is wrong; return false. */
static bool complain(const struct reading *in, const char *what)
{
    (void)fprintf(stderr, "%s:%u: %s\n", in->file, in->line, what);
    return false;
}

/* Write the file's name and the title to out, with '_' for whatever is not a
 * letter or digit. */
static void name_test(char out[120], const char *file, const char *title)
{
    const char *base = strrchr(file, '/');

    base = base != NULL ? base + 1 : file;
    (void)snprintf(out, 120, "%.*s_%s", (int)strcspn(base, "."), base, title);
    for (char *p = out; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
}

static const char *begin_scene(struct reading *in, const char *title)
{
    struct scenes *scenes = in->scenes;
    struct scene *scene;

    scenes->all =
        reallocarray(scenes->all, scenes->count + 1, sizeof *scenes->all);
    if (scenes->all == NULL)
        abort();
    scene = &scenes->all[scenes->count++];
    *scene = (struct scene){
        .line = in->line, .databases = in->databases, .layouts = in->layouts};
    (void)snprintf(scene->file, sizeof scene->file, "%s", in->file);
    name_test(scene->test, in->file, title + strspn(title, " "));
    in->is_begun = true;
    for (size_t i = 0; i + 1 < scenes->count; i++)
        if (strcmp(scenes->all[i].test, scene->test) == 0)
            return "another scene has this title";
    return NULL;
}

/* Return the bits of the words that a line names. */
static const char *read_set(unsigned *set, char *words)
{
    static const struct {
        const char *word;
        unsigned bits;
    } known[] = {
        {"postgres", ON_POSTGRES},
        {"mysql", ON_MYSQL},
        {"sqlite", ON_SQLITE},
        {"servers", ON_SERVERS},
    };
    static const struct {
        const char *word;
        unsigned bits;
    } layouts[] = {
        {"sqlock", IN_SQLOCK},
        {"spring7", IN_SPRING7},
        {"spring6", IN_SPRING6},
        {"all", IN_ALL},
    };
    bool of_layouts = words[1] == 'n' && words[0] == 'i';
    char *save = NULL;

    *set = 0;
    (void)strtok_r(words, " ", &save);
    for (char *word; (word = strtok_r(NULL, " ", &save)) != NULL;) {
        unsigned before = *set;

        for (size_t i = 0; i < 4; i++)
            if (strcmp(word, of_layouts ? layouts[i].word : known[i].word) == 0)
                *set |= of_layouts ? layouts[i].bits : known[i].bits;
        if (*set == before)
            return of_layouts ? "no such layout" : "no such database";
    }
    return *set == 0 ? "names none" : NULL;
}

/* "on DATABASE..." and "in LAYOUT...": before the first scene of a file for all
 * of them, else for the present one. */
static const char *read_where(struct reading *in, char *text)
{
    bool of_layouts = text[0] == 'i';
    unsigned set = 0;
    const char *wrong = read_set(&set, text);
    unsigned *of_file = of_layouts ? &in->layouts : &in->databases;

    if (!in->is_begun)
        *of_file = set;
    else if (of_layouts)
        last(in)->layouts = set;
    else
        last(in)->databases = set;
    return wrong;
}

const char *step_parse(struct step *step, char *text)
{
    const char *words[WORDS_MAX + 6];
    size_t count = 0;
    size_t i = 2;
    char *save = NULL;
    const char *word;

    *step = (struct step){.text = text, .expected = "ok"};
    for (word = strtok_r(text, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        if (count == WORDS_MAX)
            return "too many words";
        if (strcmp(word, "->") == 0) {
            step->expected = strtok_r(NULL, " ", &save);
            if (step->expected == NULL || strtok_r(NULL, " ", &save) != NULL)
                return "one result is expected behind \"->\"";
            break;
        }
        if (step->goes_on)
            return "only \"-> RESULT\" may follow \"&\"";
        if (strcmp(word, "&") == 0)
            step->goes_on = true;
        else
            words[count++] = word;
    }
    if (count < 2)
        return "a step is: ACTOR VERB [NAME] [option=value]... [&] [-> RESULT]";
    step->actor = words[0];
    step->verb = words[1];
    if (count > 2 && isupper((unsigned char)words[2][0]))
        step->name = words[i++];
    while (i < count)
        step->options[step->option_count++] = words[i++];
    return NULL;
}

static const char *add_step(struct reading *in, const char *text)
{
    const char *wrong;
    struct scene *scene;
    struct step *step;
    char *copy;

    if (!in->is_begun)
        return "a step before the first title, \"= TITLE\"";
    scene = last(in);
    scene->steps =
        reallocarray(scene->steps, scene->count + 1, sizeof *scene->steps);
    if (scene->steps == NULL)
        abort();
    step = &scene->steps[scene->count++];
    copy = strdup(text);
    if (copy == NULL)
        abort();
    wrong = step_parse(step, copy);
    step->line = in->line;
    return wrong;
}

static const char *read_line(struct reading *in, char *text)
{
    text[strcspn(text, "\n")] = '\0';
    if (text[0] == '#' || text[strspn(text, " ")] == '\0')
        return NULL;
    if (text[0] == '=')
        return begin_scene(in, text + 1);
    if (strncmp(text, "on ", 3) == 0 || strncmp(text, "in ", 3) == 0)
        return read_where(in, text);
    if (strcmp(text, "alone") == 0 && in->is_begun) {
        last(in)->stops_server = true;
        return NULL;
    }
    return add_step(in, text);
}

static bool read_file(struct scenes *scenes, const char *path)
{
    struct reading in = {
        .scenes = scenes, .databases = ON_ALL, .layouts = IN_SQLOCK};
    FILE *file = fopen(path, "re");
    char text[256];
    bool ok = true;

    (void)snprintf(in.file, sizeof in.file, "%s", path);
    if (file == NULL)
        return complain(&in, "cannot be read");
    while (fgets(text, sizeof text, file) != NULL) {
        const char *wrong;

        in.line++;
        wrong = read_line(&in, text);
        if (wrong != NULL)
            ok = complain(&in, wrong);
    }
    (void)fclose(file);
    return ok;
}

bool scenes_read(struct scenes *scenes, const char *folder)
{
    char pattern[300];
    glob_t found;
    bool ok = true;

    memset(scenes, 0, sizeof *scenes);
    (void)snprintf(pattern, sizeof pattern, "%s/*.scene", folder);
    if (glob(pattern, 0, NULL, &found) != 0) {
        (void)fprintf(stderr, "%s: no files *.scene\n", folder);
        return false;
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        ok = read_file(scenes, found.gl_pathv[i]) && ok;
    globfree(&found);
    return ok;
}

const char *step_option(const struct step *step, const char *option)
{
    size_t length = strlen(option);

    for (size_t i = 0; i < step->option_count; i++) {
        const char *has = step->options[i];

        if (strncmp(has, option, length) != 0)
            continue;
        if (has[length] == '=')
            return has + length + 1;
        if (has[length] == '\0')
            return has + length;
    }
    return NULL;
}

const char *step_print(char out[512], const struct step *step)
{
    int length = snprintf(out, 512, "%s %s%s%s", step->actor, step->verb,
                          step->name != NULL ? " " : "",
                          step->name != NULL ? step->name : "");

    for (size_t i = 0; i < step->option_count && length < 512; i++)
        length += snprintf(out + length, 512 - (size_t)length, " %s",
                           step->options[i]);
    if (length < 512)
        (void)snprintf(out + length, 512 - (size_t)length, "%s%s%s",
                       step->goes_on ? " &" : "",
                       strcmp(step->expected, "ok") == 0 ? "" : " -> ",
                       strcmp(step->expected, "ok") == 0 ? "" : step->expected);
    return out;
}
