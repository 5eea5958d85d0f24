/*
 * suggest.c - find the known word that is most similar to an unknown one, for
 * "did you mean"
 */
#include "cli.h"

#include <string.h>

#define LONGEST 32

static size_t least_of(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* Return how many edits turn one word into the other (optimal string
 * alignment), SIZE_MAX if one is too long.  rows[i][j] is the number for the
 * first i letters of `word` and the first j of `other`. */
static size_t distance_of(const char *word, const char *other)
{
    size_t rows[LONGEST + 1][LONGEST + 1];
    size_t height = strlen(word);
    size_t width = strlen(other);
    size_t i;
    size_t j;

    if (height > LONGEST || width > LONGEST)
        return SIZE_MAX;
    for (j = 0; j <= width; j++)
        rows[0][j] = j;
    for (i = 1; i <= height; i++) {
        rows[i][0] = i;
        for (j = 1; j <= width; j++) {
            rows[i][j] = rows[i - 1][j - 1] + (word[i - 1] != other[j - 1]);
            rows[i][j] = least_of(rows[i][j], rows[i - 1][j] + 1);
            rows[i][j] = least_of(rows[i][j], rows[i][j - 1] + 1);
            if (i > 1 && j > 1 && word[i - 1] == other[j - 2] &&
                word[i - 2] == other[j - 1])
                rows[i][j] = least_of(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[height][width];
}

void cli_guess_try(cli_guess *guess, const char *other)
{
    size_t limit = strlen(guess->word) < 4 ? 2 : 3;
    size_t distance = distance_of(guess->word, other);

    if (guess->nearest != NULL)
        limit = guess->distance;
    if (distance >= limit)
        return;
    guess->nearest = other;
    guess->distance = distance;
}

int cli_refuse_word(const char *what, const char *left, const cli_guess *guess,
                    const char *right, const char *command)
{
    const char *shown = cli_shown(guess->word);

    if (guess->nearest != NULL)
        cli_error("%s%s%s%s: did you mean %s%s%s?", what, left, shown, right,
                  left, guess->nearest, right);
    else
        cli_error("%s%s%s%s; see `sqlock%s%s --help`", what, left, shown, right,
                  command != NULL ? " " : "", command != NULL ? command : "");
    return CLI_USAGE;
}
