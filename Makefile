# SPDX-License-Identifier: Apache-2.0
# kvcast. User's CC, CFLAGS, LDFLAGS, PREFIX and DESTDIR are honoured.
.DEFAULT_GOAL := all

CC ?= gcc
VARIANT ?= release
PREFIX ?= /usr/local
B := build/$(VARIANT)

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
CFLAGS ?= -O2 -g
KVC_CFLAGS := -std=c11 -D_GNU_SOURCE $(WARN) -ffp-contract=off -fvisibility=hidden -fPIC -I. -Iinclude -MMD -MP
LDLIBS := -lcjson -lzstd -lz -lgsl -lgslcblas -lsqlite3 -lm -lpthread
ifeq ($(VARIANT),asan)
KVC_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
KVC_LDFLAGS += -fsanitize=address,undefined
endif
ifeq ($(VARIANT),tsan)
KVC_CFLAGS += -fsanitize=thread
KVC_LDFLAGS += -fsanitize=thread
endif
ifdef WERROR
KVC_CFLAGS += -Werror
endif

LIB_SRC := $(wildcard base/*.c traces/*.c policies/*.c models/*.c sim/*.c studies/*.c reports/*.c)
CLI_SRC := $(wildcard cli/*.c)
TEST_SRC := $(wildcard tests/test_*.c)
TEST_LIB_SRC := $(filter-out $(TEST_SRC),$(wildcard tests/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o)
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)

all: $(B)/kvcast
	@mkdir -p build && ln -sf $(VARIANT)/kvcast build/kvcast

# Profiles travel inside the program.
LIB_OBJ += $(B)/models/profiles.gen.o
$(B)/models/profiles.gen.c: models/embed.sh $(wildcard models/profiles/*.json)
	@mkdir -p $(@D) && sh models/embed.sh $(filter %.json,$^) > $@.tmp && mv $@.tmp $@
$(B)/models/profiles.gen.o: $(B)/models/profiles.gen.c models/blobs.h
	$(CC) $(KVC_CFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/libkvcast.a: $(LIB_OBJ)
	@rm -f $@ && ar rcs $@ $^

$(B)/kvcast: $(CLI_OBJ) $(B)/libkvcast.a
	$(CC) $(KVC_LDFLAGS) $(LDFLAGS) -o $@ $(CLI_OBJ) -Wl,--whole-archive $(B)/libkvcast.a -Wl,--no-whole-archive -no-pie -Wl,--unresolved-symbols=ignore-all $(LDLIBS)

$(B)/tests/test_%: $(B)/tests/test_%.o $(TEST_LIB_SRC:%.c=$(B)/%.o) $(B)/libkvcast.a
	$(CC) $(KVC_LDFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(KVC_CFLAGS) $(CFLAGS) -c -o $@ $<

lib-objects: $(LIB_OBJ)

test: $(TEST_BIN)
	@for t in $(TEST_BIN); do $$t || exit 1; done

clean:
	rm -rf build

.PHONY: all lib-objects test clean
-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_BIN:=.d)
