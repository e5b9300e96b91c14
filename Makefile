EXTENSION    = hotmesh_stream
EXTVERSION   = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(EXTENSION).control)
MODULE_big   = $(EXTENSION)
OBJS         = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))
SHLIB_EXPORTS = exports.txt
SHLIB_LINK   = -lcjson
DATA_built   = sql/$(EXTENSION)--$(EXTVERSION).sql
DATA         = $(filter-out $(DATA_built),$(wildcard sql/$(EXTENSION)--*.sql))
PG_CPPFLAGS  = -Isrc
REGRESS      = $(patsubst test/sql/%.sql,%,$(sort $(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test --temp-instance=tmp_check_regress --temp-config=test/postgresql.conf
ISOLATION    = $(patsubst test/specs/%.spec,%,$(sort $(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test --outputdir=. --temp-instance=tmp_check_iso --temp-config=test/postgresql.conf --load-extension=pg_partman --load-extension=$(EXTENSION)
TAP_TESTS    = 1
PROVE_TESTS  = test/t/*.pl
EXTRA_CLEAN  = tmp_check_regress

# With HMS_DEBUG_POINTS=1 tests can stop a process at a named point, move its
# clock and call into the library; without, the tests that do so are left out.
ifdef HMS_DEBUG_POINTS
PG_CPPFLAGS += -DHMS_DEBUG_POINTS
else
REGRESS     := $(patsubst test/sql/%.sql,%,$(sort $(shell grep -L 'hms_sql_debug\|debug_clock' test/sql/*.sql)))
ISOLATION   := $(patsubst test/specs/%.spec,%,$(sort $(shell grep -L debug test/specs/*.spec)))
endif

# These set up what they need by themselves, PostgreSQL included, so they must
# work before pg_config exists.
HOUSE_GOALS  = check check-all check-hotmesh demo bench lint

ifeq ($(filter $(HOUSE_GOALS),$(MAKECMDGOALS)),)
PG_CONFIG   ?= pg_config
PGXS        := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
$(OBJS): $(wildcard src/*.h src/*/*.h)
$(DATA_built): $(sort $(wildcard sql/[0-9][0-9]_*.sql)) $(EXTENSION).control
	cat $(filter %.sql,$^) > $@
PROVE_FLAGS += -I test/lib
installcheck: export LANG = C.UTF-8
else
check:     ; @.ci/enter check .ci/check
check-all: ; @.ci/enter check-all .ci/check-all
check-hotmesh: ; @.ci/enter check-hotmesh .ci/check-hotmesh
demo:      ; @.ci/enter demo demo/run.sh
bench:     ; @.ci/enter bench bench/run.sh $(BENCH)
lint:      ; @.ci/lint
.PHONY: $(HOUSE_GOALS)
endif
