# make · make run · make test [MODE=asan] · make fuzz T=60 · make bless · make format · make lint · make install PREFIX=
# MODE: release (default), asan, fuzz. Output goes to build/$(MODE)/.
MODE   ?= release
BUILD  ?= build
PREFIX ?= /usr/local
T      ?= 60
B      := $(BUILD)/$(MODE)

CC     ?= cc
BISON  ?= bison
FLEX   ?= flex

WARN   := -Wall -Wextra -Wpedantic -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wundef -Wswitch-enum
BASE   := -std=c11 -D_GNU_SOURCE $(WARN) -I. -I$(B) -g -fPIC -fvisibility=hidden
SAN    := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_release := -O2
FLAGS_asan    := -O1 $(SAN)
FLAGS_fuzz    := -O1 $(SAN) -fsanitize=fuzzer-no-link
CFLAGS_ALL    := $(BASE) $(FLAGS_$(MODE)) $(CFLAGS)
LDFLAGS_ALL   := $(if $(filter release,$(MODE)),,$(SAN)) $(LDFLAGS)
LIBS          := -lm -ldl -lpthread

# The floors, from the ground up. Everything but cli/ is the library.
FLOORS := util lexer parser check launch codegen reference emulator runtime lib
SRC    := $(foreach f,$(FLOORS),$(sort $(wildcard $(f)/*.c)))
GEN    := $(B)/pipe.tab.c $(B)/pipe.lex.c $(B)/pages.c
OBJ    := $(SRC:%.c=$(B)/%.o) $(GEN:%.c=%.o)
CLI    := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard cli/*.c)))
UNIT   := $(patsubst tests/unit/%.c,$(B)/unit/%,$(sort $(wildcard tests/unit/*.c)))

all: $(B)/pipec $(B)/libpipec.so $(B)/libpipec.a

$(B)/pipec: $(CLI) $(B)/libpipec.a
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)
$(B)/libpipec.a: $(OBJ)
	rm -f $@ && ar rcs $@ $^
$(B)/libpipec.so: $(OBJ)
	$(CC) -shared $(LDFLAGS_ALL) -Wl,-soname,libpipec.so.0 -o $@ $^ $(LIBS)

# flex and bison: `nodefault`, LAC and counterexamples are asked for in the files themselves
$(B)/pipe.tab.c $(B)/pipe.tab.h &: parser/pipe.y
	@mkdir -p $(B)
	$(BISON) -Wall -Wcounterexamples -Werror -d -o $(B)/pipe.tab.c $<
$(B)/pipe.lex.c: lexer/pipe.l $(B)/pipe.tab.h
	$(FLEX) -o $@ $<
$(B)/pages.c: $(wildcard docs/errors/*.md) tools/pages.sh
	@mkdir -p $(B)
	sh tools/pages.sh docs/errors > $@.new && mv $@.new $@

$(B)/%.o: %.c $(B)/pipe.tab.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
$(B)/%.o: $(B)/%.c
	$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

-include $(OBJ:.o=.d) $(CLI:.o=.d)
.PHONY: all
.DELETE_ON_ERROR:
