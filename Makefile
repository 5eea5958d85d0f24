# provisional; see tests and README
B := build
SRC := $(wildcard src/base/*.c src/db/*.c src/locks/*.c src/drivers/*/*.c)
SQLS := $(wildcard sql/*/*.sql)
CFLAGS ?= -g -O1
ALL_CFLAGS := -std=gnu11 -Wall -Wextra -Wpedantic -Wshadow -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wvla -Wwrite-strings -Wundef -Wcast-qual -Wconversion -fno-common -fPIC -fvisibility=hidden -D_GNU_SOURCE -Iinclude -Isrc $(shell pkg-config --cflags libpq libmariadb sqlite3 uuid liburiparser) $(CFLAGS)
OBJ := $(SRC:%.c=$B/obj/%.o) $(SQLS:%.sql=$B/obj/%.o)
all: $B/lib/libsqlock.a
$B/obj/%.o: %.c ; @mkdir -p $(@D); $(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
$B/gen/%.c: %.sql ; @mkdir -p $(@D); { printf 'extern const char lk_sql_%s[];\nconst char lk_sql_%s[] =\n' $(subst -,_,$(subst /,_,$*)) $(subst -,_,$(subst /,_,$*)) | sed 's/sql_sql_/sql_/g'; sed 's/\\/\\\\/g; s/"/\\"/g; s/^/    "/; s/$$/\\n"/' $<; echo ';'; } > $@
$B/obj/%.o: $B/gen/%.c ; @mkdir -p $(@D); $(CC) $(ALL_CFLAGS) -c $< -o $@
$B/lib/libsqlock.a: $(OBJ) ; @mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $^
-include $(OBJ:.o=.d)
.PHONY: all
.SECONDARY:
