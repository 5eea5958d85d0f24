/*
 * fuzz.h - what the fuzz targets share
 *
 * A target is a program of libFuzzer's, of one file.  It calls a parser with
 * what the fuzzer makes up, and checks what is true of each answer: a target
 * that only looked for crashes would miss a wrong one.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* End the program, with a stack, unless the condition holds. */
#define must(condition) ((condition) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The input as a text in memory of its own, so that a byte read behind it is
 * noticed.  It ends at the first NUL. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t length = nul != NULL ? (size_t)(nul - data) : size;
    char *text = malloc(length + 1);

    must(text != NULL);
    if (length > 0)
        memcpy(text, data, length);
    text[length] = '\0';
    return text;
}

/* Make the input a file that only its owner may read. */
static inline void fuzz_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "we");

    must(file != NULL);
    must(fchmod(fileno(file), 0600) == 0);
    must(fwrite(data, 1, size, file) == size);
    must(fclose(file) == 0);
}

/* Cut the text at *at behind its line, which is returned, and move *at on.
 * Return an empty text behind the last line. */
static inline char *fuzz_line(char **at)
{
    char *line = *at;
    size_t length = strcspn(line, "\n");

    *at = line + length + (line[length] == '\n');
    line[length] = '\0';
    return line;
}

#endif
