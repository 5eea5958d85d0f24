/*
 * writer.c - write a text of any length to memory (see writer.h)
 */
#include "base/writer.h"

#include <stdlib.h>
#include <string.h>

/* Make room for `more` bytes and a NUL.  Return false when out of memory. */
static bool grow(struct lk_writer *writer, size_t more)
{
    size_t needed = writer->length + more + 1;
    size_t size = 2 * writer->size;
    char *text;

    if (needed <= writer->size)
        return true;
    if (size < needed)
        size = needed;
    text = realloc(writer->text, size);
    if (text == NULL)
        return false;
    writer->text = text;
    writer->size = size;
    return true;
}

static ssize_t append(void *cookie, const char *bytes, size_t count)
{
    struct lk_writer *writer = cookie;

    /* After a failure nothing more is appended: the text would have a gap. */
    if (writer->has_failed || !grow(writer, count)) {
        writer->has_failed = true;
        return 0;
    }
    memcpy(writer->text + writer->length, bytes, count);
    writer->length += count;
    writer->text[writer->length] = '\0';
    return (ssize_t)count;
}

FILE *lk_writer_open(struct lk_writer *writer)
{
    static const cookie_io_functions_t functions = {.write = append};

    memset(writer, 0, sizeof *writer);
    writer->stream = fopencookie(writer, "w", functions);
    return writer->stream;
}

char *lk_writer_close(struct lk_writer *writer)
{
    if (writer->stream == NULL)
        return NULL;
    if (fclose(writer->stream) != 0 || !grow(writer, 0) || writer->has_failed) {
        free(writer->text);
        return NULL;
    }
    writer->text[writer->length] = '\0'; /* an empty text has none yet */
    return writer->text;
}
