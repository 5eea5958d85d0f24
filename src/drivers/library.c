/*
 * library.c - load client libraries by dlopen() (library.h)
 *
 * A library is never unloaded: it may have started threads, and its own
 * libraries may have registered functions that run at the exit.
 */
#include "drivers/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"

LK_STATIC_MUTEX(guard);

/* Find the functions.  Return NULL, or the name of the first that is missing.
 */
static const char *find_functions(const struct lk_library *library,
                                  void *handle)
{
    for (size_t i = 0; i < library->count; i++) {
        void *found = dlsym(handle, library->functions[i].name);

        if (found == NULL)
            return library->functions[i].name;
        /* C has no conversion from an object's address to a function's. */
        memcpy(library->functions[i].address, &found, sizeof found);
    }
    return NULL;
}

/* Load the library.  The caller holds the guard. */
static int load(const struct lk_library *library, sqlock_error *err)
{
    void *handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
    const char *missing;

    if (handle == NULL) {
        const char *why = dlerror();
        int limit = lk_error_descriptors_missing();

        if (limit == 0 && why != NULL &&
            (strstr(why, "map") != NULL || strstr(why, "alloc") != NULL))
            limit = lk_error_memory_missing();
        if (limit != 0)
            return lk_error_limit(err, "cannot load a client library", limit);
        return lk_error(err, SQLOCK_ENOTSUP,
                        "cannot load the client library %s: install %s (%s)",
                        library->soname, library->package,
                        why != NULL ? why : "unknown");
    }
    missing = find_functions(library, handle);
    if (missing != NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the client library %s has no %s: it is older than the "
                        "one that sqlock was built with; install a later %s",
                        library->soname, missing, library->package);
    return 0;
}

int lk_library_load(struct lk_library *library, sqlock_error *err)
{
    int rc = 0;

    if (atomic_load(&library->is_loaded))
        return 0;
    pthread_mutex_lock(&guard);
    if (!atomic_load(&library->is_loaded))
        rc = load(library, err);
    if (rc == 0)
        atomic_store(&library->is_loaded, true);
    pthread_mutex_unlock(&guard);
    return rc;
}

/* --- copies --- */

struct search {
    const struct lk_library *library;
    char first[256]; /* file names of two that were found, or "" */
    char second[256];
};

/* Look at one loaded object: dl_iterate_phdr(). */
static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash != NULL ? slash + 1 : info->dlpi_name;
    char *out = search->first[0] == '\0' ? search->first : search->second;

    (void)size;
    if (lk_text_matches(file, search->library->copies)) {
        size_t length = strnlen(info->dlpi_name, sizeof search->first - 1);

        memcpy(out, info->dlpi_name, length);
        out[length] = '\0';
    }
    return search->second[0] != '\0';
}

int lk_library_adopt(struct lk_library *library, sqlock_error *err)
{
    struct search search = {.library = library};
    int rc = lk_library_load(library, err);

    if (rc < 0)
        return rc;
    (void)dl_iterate_phdr(look, &search);
    if (search.second[0] != '\0')
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this process has two client libraries, and the "
                        "connection may be of the one that sqlock does not "
                        "use: %s and %s",
                        search.first, search.second);
    return 0;
}
