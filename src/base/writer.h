/*
 * writer.h - write a text of any length to memory, as a stream
 *
 * open_memstream() of glibc is not used: when an allocation fails while its
 * text grows, some of the text is missing, and neither ferror() nor fclose()
 * reports an error.  A statement with a gap may be valid, and mean something
 * else.
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

/* Begin a text, and return the stream to write to, or NULL when out of memory.
 * Only lk_writer_close() closes the stream. */
FILE *lk_writer_open(struct lk_writer *writer);

/* Close the stream, and return the text, which the caller frees.  Return NULL
 * if memory ran out at any time, also in lk_writer_open(). */
char *lk_writer_close(struct lk_writer *writer);

#endif
