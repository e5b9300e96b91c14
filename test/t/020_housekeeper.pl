# Promise: a housekeeper that is stopped or killed in the middle of dropping a partition disturbs
# nobody, and the next one finishes.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use Test::More;

my $node = proof_node('housekeeper', conf => q{
restart_after_crash = on
hotmesh_stream.maintenance_naptime = '1s'
hotmesh_stream.restart_delay_min = '100ms'
});
need_debug_points($node);

sql($node, $ledger_sql);
sql($node, q{
	select hotmesh_stream.create_namespace('n', partition_interval => '1 day', retention => '1 day', premake => 2);
	select hotmesh_stream.create_stream('s', namespace => 'n');
	select hotmesh_stream.create_group('s', 'g', ack_wait => '1s');
});

my $log = 'hotmesh_stream_data.log_' . sql($node, q{select namespace_id from hotmesh_stream.namespace where name = 'n'});
my $old_rows = qq{select count(*) from $log where published_at < now() + interval '12 hours'};

sub publish
{
	return sql($node, q{insert into published select 's', hotmesh_stream.publish('s', '1')});
}

publish() for 1 .. 3;
drain($node, 's', 'g');

# Five days later, and the housekeeper stops with the lock on the old partition.
my $holder = wire($node, q{select pg_advisory_lock(hashtext('hms:retention-locked'))});

sql($node, q{alter system set hotmesh_stream.debug_points = 'retention-locked'});
sql($node, q{alter system set hotmesh_stream.debug_clock_offset = '5d'});
sql($node, q{select pg_reload_conf()});
publish();
wait_debug_point($node, 'retention-locked', 'the housekeeper stops in the middle of a partition step');

publish() for 1 .. 3;
pass('publishers go on beside it');
drain($node, 's', 'g');
ledger_is_settled($node, 's', 'g');

my $pid = sql($node, q{select pid from pg_locks where locktype = 'advisory' and not granted});

is(sql($node, "select backend_type from pg_stat_activity where pid = $pid"), 'hotmesh_stream housekeeper', 'it is the housekeeper');
kill 'KILL', $pid;
eval { $holder->rows_until(qr/never/) };
$node->poll_query_until('postgres', 'select true');

# Now nobody holds the point: the next run goes through.
wait_for($node, $old_rows, 'after kill -9 the next housekeeper drops the partition', '0');
publish();
drain($node, 's', 'g');
ledger_is_settled($node, 's', 'g');
is(sql($node, qq{select count(*) from pg_class c where relname like 'log\\_%\\_p%' and relkind = 'r'
		and relnamespace = 'hotmesh_stream_data'::regnamespace and not relispartition}),
	'0', 'no detached partition is left');
is(sql($node, qq{select count(*) from hotmesh_stream.log_partition p where not exists (
		select from pg_class c where c.relispartition and pg_get_expr(relpartbound, oid) like '%' || to_char(lower_bound at time zone 'UTC', 'YYYY-MM-DD') || '%')}),
	'0', 'nor the seal of one that is gone');

$node->stop;
done_testing();
