/*
 * scene.c - see scene.h
 */
#include "scene.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result.h"

#define TEXT_MAX 512 /* of a line */
#define ROWS_MAX 40

/* A scene that is being read: its lines, and the rows of words for which it is
 * played (none: once). */
struct draft {
    char title[160];
    unsigned line;
    unsigned databases;
    unsigned layouts;
    bool stops_server;
    bool locks_rows;
    bool of_oracle;
    bool of_mariadb;
    unsigned tries;
    char rows[ROWS_MAX][TEXT_MAX];
    size_t row_count;
    struct {
        char text[TEXT_MAX];
        unsigned line;
    } * lines;
    size_t count;
};

/* The file that is being read. */
struct reading {
    struct scenes *scenes;
    char file[256];
    unsigned line;
    unsigned databases; /* for the scenes to come */
    unsigned layouts;
    unsigned tries;
    bool is_begun; /* a scene of this file has begun */
    struct draft draft;
};

/* Print what is wrong; return false. */
static bool complain(const struct reading *in, unsigned line, const char *what)
{
    (void)fprintf(stderr, "%s:%u: %s\n", in->file, line, what);
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

/* ----------------------------------------------------------- on and in -- */

/* Return the bits of the words that a line names. */
static const char *read_set(unsigned *set, char *words)
{
    static const struct {
        const char *word;
        unsigned bits;
    } known[] = {
        {"postgres", ON_POSTGRES}, {"mysql", ON_MYSQL},   {"sqlite", ON_SQLITE},
        {"servers", ON_SERVERS},   {"mariadb", ON_MYSQL}, {"oracle", ON_MYSQL},
    };
    static const struct {
        const char *word;
        unsigned bits;
    } layouts[] = {
        {"sqlock", IN_SQLOCK}, {"spring7", IN_SPRING7}, {"spring6", IN_SPRING6},
        {"spring", IN_SPRING}, {"expiry", HAS_EXPIRY},  {"all", IN_ALL},
    };
    bool of_layouts = words[1] == 'n' && words[0] == 'i';
    size_t count = of_layouts ? sizeof layouts / sizeof *layouts
                              : sizeof known / sizeof *known;
    char *save = NULL;

    *set = 0;
    (void)strtok_r(words, " ", &save);
    for (char *word; (word = strtok_r(NULL, " ", &save)) != NULL;) {
        unsigned before = *set;

        for (size_t i = 0; i < count; i++)
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
    const char *wrong;

    in->draft.of_oracle |= strcmp(text, "on oracle") == 0;
    in->draft.of_mariadb |= strcmp(text, "on mariadb") == 0;
    wrong = read_set(&set, text);
    if (of_layouts)
        *(in->is_begun ? &in->draft.layouts : &in->layouts) = set;
    else
        *(in->is_begun ? &in->draft.databases : &in->databases) = set;
    return wrong;
}

/* --------------------------------------------------------------- a step -- */

/* Cut the statement out of "ACTOR VERB: STATEMENT -> RESULT", in place; return
 * what is behind it. */
static char *cut_statement(struct step *step, char *text)
{
    char *colon = strchr(text, ':');
    char *tail;

    if (colon == NULL || colon[1] != ' ' ||
        strcspn(text, " ") + 1 + strcspn(text + strcspn(text, " ") + 1, " ") !=
            (size_t)(colon + 1 - text))
        return NULL;
    *colon = '\0';
    step->statement = colon + 2;
    tail = strstr(colon + 2, " -> ");
    if (tail == NULL && strlen(colon + 2) > 2 &&
        strcmp(colon + 2 + strlen(colon + 2) - 2, " &") == 0)
        tail = colon + 2 + strlen(colon + 2) - 2;
    if (tail != NULL && tail[-2] == ' ' && tail[-1] == '&')
        tail -= 2;
    if (tail != NULL)
        *tail++ = '\0';
    return tail;
}

const char *step_parse(struct step *step, char *text)
{
    const char *words[WORDS_MAX + 6];
    size_t count = 0;
    char *save = NULL;
    char *tail;
    const char *word;

    *step = (struct step){.text = text, .expected = "ok"};
    tail = cut_statement(step, text);
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
        if (tail != NULL && count == 2) {
            save = tail;
            tail = NULL;
        }
    }
    if (count < 2)
        return "a step is: ACTOR VERB [NAME] [option=value]... [&] [-> RESULT]";
    step->actor = words[0];
    step->verb = words[1];
    for (size_t i = 2; i < count; i++)
        if (step->name == NULL && isupper((unsigned char)words[i][0]))
            step->name = words[i];
        else
            step->options[step->option_count++] = words[i];
    return NULL;
}

/* The options that some step has: a misspelt one would do nothing. */
static const char options[] =
    " a actor after again all alone answer any as at at_once attempts "
    "background batch begin by campaign cancelled circle claim cleanly code "
    "combined commit connect count counting_found deadline deadlocks done "
    "downgrade dry each every fd fds fenced forgotten from from_begin guard "
    "hand_off hasty held hold holder hours id in_vain key killed last lasts "
    "later least left lefts level line longer_than many margin member most "
    "most_rounds ms n new no_sharer no_text note now nth number of opening "
    "operations order other_token own owner patient peer_ttl perhaps_again "
    "period permits poll pool publishing queue reading release renewal "
    "record region renewed reservations retries rollback rotate rounds sale "
    "same_token "
    "says server servers services shaky share shared sharer sharers sharing "
    "short_claim skip soon state statement taken tapped text through times "
    "to token told tries ttl unpooled until_begin unusual version wait "
    "waiter waiters waiting weight when who within write wrong ";

/* Return what is wrong with the words of a step: each option is known, and each
 * result is one. */
static const char *check_words(const struct step *step)
{
    const char *const results[] = {step->expected, step_option(step, "code"),
                                   step_option(step, "each")};

    for (size_t i = 0; i < step->option_count; i++) {
        const char *option = step->options[i];
        char word[64];

        (void)snprintf(word, sizeof word, " %.*s ", (int)strcspn(option, "="),
                       option);
        if (strstr(options, word) == NULL)
            return "there is no such option";
    }
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i] != NULL && !result_is_known(results[i]))
            return "there is no such result";
    return NULL;
}

/* ------------------------------------------------------- a scene's rows -- */

/* Return the nth word of a row, from 1, and its length.  Where " |" stands
 * between them, words may have blanks. */
static const char *word_of(const char *row, int nth, int *length)
{
    const char *between = strstr(row, " |") != NULL ? " |" : " ";

    for (;; nth--) {
        const char *end = strstr(row, between);

        *length = (int)(end != NULL ? (size_t)(end - row) : strlen(row));
        if (nth == 1)
            return row;
        if (end == NULL) {
            *length = 0;
            return row;
        }
        row = end + strlen(between);
        row += strspn(row, " ");
    }
}

/* Write the text to out, with the words of a row for $1, $2, ... */
static const char *fill_in(char *out, size_t size, const char *text,
                           const char *row)
{
    size_t at = 0;

    for (; *text != '\0' && at + 1 < size; text++) {
        const char *word;
        int length;

        if (text[0] != '$' || !isdigit((unsigned char)text[1])) {
            out[at++] = *text;
            continue;
        }
        word = word_of(row, *++text - '0', &length);
        if (length == 0)
            return "the row has no such word";
        at += (size_t)snprintf(out + at, size - at, "%.*s", length, word);
    }
    out[at < size ? at : size - 1] = '\0';
    return at + 1 < size ? NULL : "too long";
}

static const char *add_step(struct scene *scene, unsigned line,
                            const char *text, const char *row)
{
    char *copy = malloc(512);
    struct step *step;
    const char *wrong;

    scene->steps =
        reallocarray(scene->steps, scene->count + 1, sizeof *scene->steps);
    if (scene->steps == NULL || copy == NULL)
        abort();
    step = &scene->steps[scene->count++];
    wrong = fill_in(copy, 512, text, row);
    if (wrong == NULL)
        wrong = step_parse(step, copy);
    if (wrong == NULL)
        wrong = check_words(step);
    step->line = line;
    return wrong;
}

/* Take "on DATABASE...:", for which a row is, from its beginning. */
static const char *read_databases(unsigned *bits, const char **row)
{
    size_t length = strcspn(*row, ":");
    char words[64];

    if (strncmp(*row, "on ", 3) != 0 || (*row)[length] == '\0')
        return NULL;
    (void)snprintf(words, sizeof words, "%.*s", (int)length, *row);
    *row += length + 1;
    *row += strspn(*row, " ");
    return read_set(bits, words);
}

/* Make a scene of the draft and a row. */
static bool add_scene(struct reading *in, const char *row)
{
    struct scenes *scenes = in->scenes;
    const struct draft *draft = &in->draft;
    unsigned bits = draft->databases;
    struct scene *scene;
    char title[160];
    const char *wrong = read_databases(&bits, &row);
    bool ok;

    if (wrong == NULL)
        wrong = fill_in(title, sizeof title, draft->title, row);
    ok = wrong == NULL || complain(in, draft->line, wrong);

    scenes->all =
        reallocarray(scenes->all, scenes->count + 1, sizeof *scenes->all);
    if (scenes->all == NULL)
        abort();
    scene = &scenes->all[scenes->count++];
    *scene = (struct scene){.line = draft->line,
                            .databases = bits,
                            .layouts = draft->layouts,
                            .stops_server = draft->stops_server,
                            .locks_rows = draft->locks_rows,
                            .of_oracle = draft->of_oracle,
                            .of_mariadb = draft->of_mariadb,
                            .tries = draft->tries};
    (void)snprintf(scene->file, sizeof scene->file, "%s", in->file);
    name_test(scene->test, in->file, title + strspn(title, " "));
    for (size_t i = 0; i + 1 < scenes->count; i++)
        if (strcmp(scenes->all[i].test, scene->test) == 0)
            ok = complain(in, draft->line, "another scene has this title");
    for (size_t i = 0; i < draft->count; i++) {
        wrong =
            add_step(scene, draft->lines[i].line, draft->lines[i].text, row);
        if (wrong != NULL)
            ok = complain(in, draft->lines[i].line, wrong);
    }
    return ok;
}

/* The draft is complete: make scenes of it, and begin with another one. */
static bool end_draft(struct reading *in)
{
    struct draft *draft = &in->draft;
    bool ok = true;

    if (in->is_begun && draft->row_count == 0)
        ok = add_scene(in, "");
    for (size_t i = 0; i < draft->row_count; i++)
        ok = add_scene(in, draft->rows[i]) && ok;
    free(draft->lines);
    *draft = (struct draft){
        .databases = in->databases, .layouts = in->layouts, .tries = in->tries};
    return ok;
}

/* -------------------------------------------------------------- the file -- */

static void keep_line(struct reading *in, const char *text)
{
    struct draft *draft = &in->draft;

    draft->lines =
        reallocarray(draft->lines, draft->count + 1, sizeof *draft->lines);
    if (draft->lines == NULL)
        abort();
    (void)snprintf(draft->lines[draft->count].text, sizeof draft->lines->text,
                   "%s", text);
    draft->lines[draft->count++].line = in->line;
}

static const char *keep_row(struct draft *draft, const char *words)
{
    if (draft->row_count == ROWS_MAX)
        return "too many rows";
    (void)snprintf(draft->rows[draft->row_count++], sizeof *draft->rows, "%s",
                   words + strspn(words, " "));
    return NULL;
}

/* Take a line in; return what is wrong with it. */
static const char *read_line(struct reading *in, char *text)
{
    text[strcspn(text, "\n")] = '\0';
    if (text[0] == '#' || text[strspn(text, " ")] == '\0')
        return NULL;
    if (text[0] == '=') {
        bool ok = end_draft(in);

        in->is_begun = true;
        in->draft.line = in->line;
        (void)snprintf(in->draft.title, sizeof in->draft.title, "%.150s",
                       text + 1);
        return ok ? NULL : "the scene before this one is wrong";
    }
    if (strncmp(text, "on ", 3) == 0 || strncmp(text, "in ", 3) == 0)
        return read_where(in, text);
    if (strncmp(text, "tries ", 6) == 0) {
        *(in->is_begun ? &in->draft.tries : &in->tries) =
            (unsigned)strtoul(text + 6, NULL, 10);
        return NULL;
    }
    if (!in->is_begun)
        return "a step before the first title, \"= TITLE\"";
    if (strncmp(text, "each ", 5) == 0)
        return keep_row(&in->draft, text + 5);
    if (strcmp(text, "alone") == 0)
        in->draft.stops_server = true;
    else if (strcmp(text, "rows") == 0)
        in->draft.locks_rows = true;
    else
        keep_line(in, text);
    return NULL;
}

static bool read_file(struct scenes *scenes, const char *path)
{
    struct reading in = {
        .scenes = scenes, .databases = ON_ALL, .layouts = IN_SQLOCK};
    FILE *file = fopen(path, "re");
    char text[TEXT_MAX];
    bool ok = true;

    (void)snprintf(in.file, sizeof in.file, "%s", path);
    if (file == NULL)
        return complain(&in, 0, "cannot be read");
    while (fgets(text, sizeof text, file) != NULL) {
        const char *wrong;

        in.line++;
        wrong = read_line(&in, text);
        if (wrong != NULL)
            ok = complain(&in, in.line, wrong);
    }
    (void)fclose(file);
    return end_draft(&in) && ok;
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
    int length = snprintf(out, 512, "%s %s%s%s%s%s", step->actor, step->verb,
                          step->statement != NULL ? ": " : "",
                          step->statement != NULL ? step->statement : "",
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
