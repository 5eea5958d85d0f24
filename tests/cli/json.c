/*
 * json.c - json [PATH]: read one JSON value from stdin, and print the value at
 * PATH, such as "locks.0.state"; without PATH, the whole value
 *
 * Prints strings and integers as they are, true, false and null by name, any
 * other number as "real", the length of an array, and the members of an object
 * with their types.  Exit status 1: stdin is not JSON, or an object has a
 * member twice; 2: there is nothing at PATH.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {"object", "array", "string", "integer",
                                        "real",   "true",  "false",  "null"};

    return names[json_typeof(value)];
}

static void print_object(json_t *value)
{
    const char *separator = "";
    json_t *member;
    const char *key;

    json_object_foreach(value, key, member)
    {
        printf("%s%s:%s", separator, key, type_name(member));
        separator = " ";
    }
    putchar('\n');
}

static void print_value(json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        print_object(value);
        break;
    case JSON_ARRAY:
        printf("%zu\n", json_array_size(value));
        break;
    case JSON_STRING:
        printf("%s\n", json_string_value(value));
        break;
    case JSON_INTEGER:
        printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
        break;
    default:
        printf("%s\n", type_name(value));
    }
}

int main(int argc, char **argv)
{
    char *path = strdup(argc > 1 ? argv[1] : "");
    json_t *root = json_loadf(stdin, JSON_REJECT_DUPLICATES, NULL);
    json_t *value = root;
    char *rest = NULL;
    char *part;

    if (root == NULL || path == NULL) {
        free(path);
        return 1;
    }
    for (part = strtok_r(path, ".", &rest); part != NULL && value != NULL;
         part = strtok_r(NULL, ".", &rest)) {
        if (json_is_array(value))
            value = json_array_get(value, strtoul(part, NULL, 10));
        else
            value = json_object_get(value, part);
    }
    if (value != NULL)
        print_value(value);
    json_decref(root);
    free(path);
    return value != NULL ? 0 : 2;
}
