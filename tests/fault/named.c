#include "fault.h"
static const struct group_test tests[1];
const struct group group_named = {tests, 0};
