/*
 * test_codes.c - what an error of a server says of its statement: that it was
 * not carried out, and why, or that nobody knows
 */
#include "support/test.h"

#ifdef SQLOCK_WITH_MYSQL
#include "drivers/mysql/errors.h"
#endif
#ifdef SQLOCK_WITH_POSTGRES
#include "drivers/postgres/session.h"
#endif

#ifdef SQLOCK_WITH_MYSQL

/* Numbers that end with 0, and their code while a statement runs. */
static const struct {
    int code;
    unsigned numbers[24];
} running[] = {
    {SQLOCK_ERETRY, {1213, 1020, 1412, 1180, 3101, 3781, 3797, 3798}},
    {SQLOCK_EBUSY, {1205, 3572, 1062, 1586}},
    {SQLOCK_ECANCELED, {1317, 1969, 3024, 1028, 3782}},
    {SQLOCK_EREADONLY, {1290, 1836, 1792, 1047, 3783, 3796, 3799}},
    {SQLOCK_ERESOURCE,
     {1021, 1037, 1038, 1040, 1041, 1114, 1129, 1135, 1203, 1206, 1226, 1461,
      1637}},
    {SQLOCK_EACCESS,
     {1044, 1045, 1130, 1142, 1143, 1227, 1251, 1370, 1524, 1698, 1820, 1862,
      3118, 3159, 4151, 2059, 2061}},
    {SQLOCK_ESCHEMA, {1049, 1054, 1146}},
    {SQLOCK_EUNREACHABLE, {4031, 3032, 9001}},
    {SQLOCK_EUNCERTAIN,
     {1053, 1152, 1158, 1159, 1160, 1161, 1927, 3169, 3100, 2000, 2006, 2013,
      2999, 5000, 5999}},
    {SQLOCK_EDATABASE, {1064, 1366, 1999, 3000, 4999, 6000}},
};

/* Numbers with which a COMMIT says that nothing is committed. */
static const unsigned denying[] = {1213, 1020, 1412, 3101, 3781, 3797, 3798,
                                   1290, 1836, 1792, 3783, 3796, 3799, 4031};

static bool denies_commit(unsigned number)
{
    for (size_t i = 0; i < sizeof denying / sizeof *denying; i++)
        if (denying[i] == number)
            return true;
    return false;
}

/* Return what an error says before any statement was sent. */
static int unsent(int code, bool connects)
{
    if (code == SQLOCK_EUNCERTAIN || (connects && code == SQLOCK_EDATABASE))
        return SQLOCK_EUNREACHABLE;
    return code;
}

static void check_number(unsigned number, int code)
{
    assert_int_equal(lk_mysql_classify(number, LK_MYSQL_RUNNING), code);
    assert_int_equal(lk_mysql_classify(number, LK_MYSQL_AUTOCOMMIT),
                     number == 1180 ? SQLOCK_EUNCERTAIN : code);
    assert_int_equal(lk_mysql_classify(number, LK_MYSQL_COMMITTING),
                     denies_commit(number) ? code : SQLOCK_EUNCERTAIN);
    assert_int_equal(lk_mysql_classify(number, LK_MYSQL_PREPARING),
                     unsent(code, false));
    assert_int_equal(lk_mysql_classify(number, LK_MYSQL_CONNECTING),
                     unsent(code, true));
    assert_int_equal(lk_mysql_breaks(number),
                     code == SQLOCK_EUNCERTAIN || code == SQLOCK_EUNREACHABLE);
}

TEST(test_what_an_error_of_mysql_says)
{
    for (size_t i = 0; i < sizeof running / sizeof *running; i++)
        for (const unsigned *number = running[i].numbers; *number != 0;
             number++)
            check_number(*number, running[i].code);
    check_number(0, SQLOCK_EUNCERTAIN); /* no number at all */
}

#endif
#ifdef SQLOCK_WITH_POSTGRES

TEST(test_what_an_error_of_postgres_says)
{
    static const struct {
        const char *sqlstate;
        int code;
    } cases[] = {
        {NULL, SQLOCK_EUNCERTAIN},    {"", SQLOCK_EUNCERTAIN},
        {"40001", SQLOCK_ERETRY},     {"40P01", SQLOCK_ERETRY},
        {"40002", SQLOCK_EDATABASE},  {"40003", SQLOCK_EUNCERTAIN},
        {"55P03", SQLOCK_EBUSY},      {"23505", SQLOCK_EBUSY},
        {"23514", SQLOCK_EDATABASE},  {"57014", SQLOCK_ECANCELED},
        {"25P04", SQLOCK_ECANCELED},  {"25006", SQLOCK_EREADONLY},
        {"53100", SQLOCK_ERESOURCE},  {"53300", SQLOCK_ERESOURCE},
        {"28000", SQLOCK_EACCESS},    {"28P01", SQLOCK_EACCESS},
        {"42501", SQLOCK_EACCESS},    {"42P01", SQLOCK_ESCHEMA},
        {"42703", SQLOCK_ESCHEMA},    {"42601", SQLOCK_EDATABASE},
        {"3D000", SQLOCK_ESCHEMA},    {"3F000", SQLOCK_ESCHEMA},
        {"57P01", SQLOCK_EUNCERTAIN}, {"57P02", SQLOCK_EUNCERTAIN},
        {"57P03", SQLOCK_EUNCERTAIN}, {"25P03", SQLOCK_EUNCERTAIN},
        {"08006", SQLOCK_EUNCERTAIN}, {"08P01", SQLOCK_EUNCERTAIN},
        {"XX000", SQLOCK_EDATABASE},  {"P0001", SQLOCK_EDATABASE},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(lk_pg_code_of(cases[i].sqlstate), cases[i].code);
}

#endif

#if defined(SQLOCK_WITH_MYSQL) || defined(SQLOCK_WITH_POSTGRES)

#endif
