/*
 * writer.h - write a text of any length to memory, as a stream
 *
 * open_memstream() of glibc is not used: when an allocation fails while its
 * text grows, that part of the text is missing, and neither ferror() nor
 * fclose() reports an error.  A statement that is cut off in this way may be
 * valid, and mean something else.
 */
#ifndef LK_WRITER_H
#define LK_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct lk_writer {
    FILE *stream;
    char *text;
    size_t length; /* of the text, without its NUL */
    size_t size;   /* that is allocated */
    bool has_failed;
};

/* Begin a text, and return the stream to write to.  NULL: out of memory. */
FILE *lk_writer_open(struct lk_writer *writer);

/* End the text, and return it; the caller frees it.  NULL: memory ran out at
 * some time, or lk_writer_open() failed. */
char *lk_writer_close(struct lk_writer *writer);

#endif
