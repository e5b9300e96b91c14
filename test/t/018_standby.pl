# Promise: a standby can be looked at, refuses what writes with 25006, and after promotion hands out
# everything, what was prepared included.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $primary = proof_node('primary', init => { allows_streaming => 1 });

sql($primary, $ledger_sql);
sql($primary, q{
	select hotmesh_stream.create_stream('s');
	select hotmesh_stream.create_group('s', 'g', ack_wait => '1s');
	insert into published select 's', hotmesh_stream.publish_many('s', (select array_agg(to_json(i)) from generate_series(1, 50) i));
});
$primary->backup('backup');

my $standby = PostgreSQL::Test::Cluster->new('standby');

$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

sql($primary, ledger_statement('s', 'g', 'c', 10));

# What a standby remembers of the partitions must not outlive them: days pass after its first look.
is(sql($standby, q{select count(*) from hotmesh_stream.messages('s', max_messages => 1000)}), '50', 'messages() on a standby');
if (debug_points_available($primary))
{
	sql($primary, q{set hotmesh_stream.debug_clock_offset = '2d';
		insert into published select 's', hotmesh_stream.publish('s', '"in two days"')});
}
else
{
	sql($primary, q{insert into published select 's', hotmesh_stream.publish('s', '"today"')});
}
sql($primary, q{begin;
	insert into published select 's', hotmesh_stream.publish('s', '"prepared"');
	prepare transaction 'p'});
sql($primary, q{insert into published select 's', hotmesh_stream.publish('s', '"behind"')});
# The cursor passes most, the prepared transaction becomes pending.
sql($primary, q{select count(*) from hotmesh_stream.read('s', 'g', 'c', 1000)});
sql($primary, q{insert into published select 's', hotmesh_stream.publish('s', '"unread"')});
$primary->wait_for_catchup($standby);

is(sql($standby, q{select count(*) from hotmesh_stream.messages('s', max_messages => 1000)}), '53', 'messages() follows the primary');
foreach my $call (q{stream_info('s')}, q{group_info('s', 'g')}, q{consumer_info('s', 'g')}, 'health()')
{
	succeeds($standby, "select * from hotmesh_stream.$call", "$call on a standby");
}
succeeds($standby, "select * from hotmesh_stream.$_", "$_ on a standby") foreach ('stat_stream', 'stat_group');
is(sql($standby, q{select lag from hotmesh_stream.group_info('s', 'g')}),
	sql($primary, q{select lag from hotmesh_stream.group_info('s', 'g')}), 'lag is that of the primary');

foreach my $call (
	q{select hotmesh_stream.create_stream('t')}, q{select hotmesh_stream.drop_stream('s')},
	q{select hotmesh_stream.create_group('s', 'h')}, q{select hotmesh_stream.drop_group('s', 'g')},
	q{select hotmesh_stream.publish('s', '1')}, q{select hotmesh_stream.publish_many('s', array['1']::json[])},
	q{select * from hotmesh_stream.publish_batch('s', '[{"payload": 1}]')},
	q{select hotmesh_stream.read('s', 'g', 'c')}, q{select hotmesh_stream.read('s', 'g', 'c', wait => '1s')},
	q{select hotmesh_stream.ack('s', 'g', '1')}, q{select hotmesh_stream.nack('s', 'g', array['1'])},
	q{select hotmesh_stream.reject('s', 'g', array['1'], 'x')}, q{select hotmesh_stream.extend('s', 'g', array['1'], '1s')},
	q{select hotmesh_stream.claim('s', 'g', 'c', '0', array[1])}, q{select hotmesh_stream.redrive('s', 'g', array[1])},
	q{select hotmesh_stream.discard_dead_letters('s', 'g', array[1])}, q{select hotmesh_stream.delete_messages('s', array[1])},
	q{select hotmesh_stream.drop_consumer('s', 'g', 'c')}, q{call hotmesh_stream.maintain()},
	q{select hotmesh_stream.create_namespace('n')}, q{select hotmesh_stream.drop_namespace('default')},
	q{select hotmesh_stream.grant_stream('s', 'consume', 'pg_monitor'::regrole)})
{
	fails_with($standby, $call, '25006', "$call is refused on a standby");
}

is(sql($standby, q{select count(*) from pg_stat_activity where backend_type like 'hotmesh_stream advancer%'}), '0',
	'no advancer runs on a standby');

$primary->stop('immediate');
$standby->promote;
wait_for($standby, q{select count(*) = 1 from pg_stat_activity where backend_type like 'hotmesh_stream advancer%'},
	'promotion starts the advancer');
sql($standby, q{insert into published select 's', hotmesh_stream.publish('s', '"after"')});
drain($standby, 's', 'g');
is(sql($standby, q{select count(*) from published p left join settled s using (id) where s.id is null}), '0',
	'everything that was committed is settled');
sql($standby, q{commit prepared 'p'});
drain($standby, 's', 'g');
ledger_is_settled($standby, 's', 'g');

$standby->stop;
done_testing();
