# Promise: pg_dump -Fc | pg_restore -e -1 keeps every message, position, lease, delay and dead
# letter, also where transaction ids are lower; then publish and read go on.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = proof_node('source');
my $low = proof_node('low_xid', no_extension => 1);
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';

# Transaction ids of the source are far ahead of those of the other cluster.
sql($node, $ledger_sql);
sql($node, q{do $$ begin for i in 1..3000 loop perform pg_current_xact_id(); commit; end loop; end $$});
sql($node, q{
	select hotmesh_stream.create_namespace('hourly', partition_interval => '1 hour', retention => '400 days');
	select hotmesh_stream.create_stream('s');
	select hotmesh_stream.create_stream('h', namespace => 'hourly');
	select hotmesh_stream.create_group('s', 'fresh');
	select hotmesh_stream.create_group('s', 'late');
	select hotmesh_stream.create_group('s', 'half', ack_wait => '1h', max_deliver => 2);
	select hotmesh_stream.create_group('h', 'g', ack_wait => '1h');
	insert into published select 's', hotmesh_stream.publish_many('s', (select array_agg(to_json(i)) from generate_series(1, 100) i));
	insert into published select 'h', hotmesh_stream.publish_many('h', (select array_agg(to_json(i)) from generate_series(1, 100) i));
	insert into published select 's', hotmesh_stream.publish('s', '"delayed"', delay => '3s');
});

# Open transactions at the moment of the dump: theirs is no part of it, but cursors wait for them.
my $open = wire($node, 'begin');

$open->values_of(q{select hotmesh_stream.publish('s', '"open"')});
sql($node, q{insert into published select 's', hotmesh_stream.publish_many('s', array['1', '2']::json[])});
my $prepared = wire($node, 'begin');

$prepared->values_of(q{select hotmesh_stream.publish('s', '"prepared"')});
$prepared->values_of(q{prepare transaction 'p'});
sql($node, q{insert into published select 's', hotmesh_stream.publish('s', '"behind"')});

# Group half: 40 leased, 10 of them acked, 5 nacked with a delay, 5 rejected; the cursor has passed everything.
sql($node, q{
	create table receipts as select row_number() over (order by id) n, id, receipt
	from hotmesh_stream.read('s', 'half', 'c', 40);
	insert into settled select 's', 'half', id from receipts where n <= 10 and hotmesh_stream.ack('s', 'half', receipt) = 1;
	select hotmesh_stream.nack('s', 'half', array_agg(receipt), delay => '4s') from receipts where n between 11 and 15;
	select hotmesh_stream.reject('s', 'half', array_agg(receipt), 'bad') from receipts where n between 16 and 20;
});
sql($node, q{select count(*) from hotmesh_stream.read('s', 'half', 'c', 1000, ack_wait => '2s')});
sql($node, ledger_statement('s', 'late', 'c', 1000));
sql($node, q{select hotmesh_stream.grant_stream('s', 'consume', 'pg_monitor'::regrole)});

# Everything that must be the same, with positions and leases but without times that change.
my %same = (
	streams => q{select s.stream_id, s.name, n.name, s.delay, s.max_message_bytes from hotmesh_stream.stream s join hotmesh_stream.namespace n using (namespace_id) order by 1},
	groups => q{select group_id, stream_id, name, incarnation, start_id, ack_wait, max_deliver, backoff from hotmesh_stream.consumer_group order by 1},
	cursors => q{select c.* from hotmesh_stream.cursor c order by incarnation},
	deliveries => q{select incarnation, id, due_at, attempts, lease_until, token, consumer from hotmesh_stream.delivery order by 1, 2},
	'dead letters' => q{select group_id, id, attempts, reason, payload::text from hotmesh_stream.dead_letter order by 1, 2},
	privileges => q{select * from hotmesh_stream.privilege order by 1, 2, 3},
	messages => q{select 's', id, payload::text from hotmesh_stream.messages('s', max_messages => 10000)
		union all select 'h', id, payload::text from hotmesh_stream.messages('h', max_messages => 10000) order by 1, 2});
my %expected = map { $_ => sql($node, $same{$_}) } keys %same;
my $last_id = sql($node, 'select last_value from hotmesh_stream.message_id_seq');

command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('postgres') ], 'pg_dump');

sub restored_is_whole
{
	my ($target, $db, $fact) = @_;

	$target->safe_psql('postgres', "create database $db");
	command_ok([ 'pg_restore', '-e', '-1', '-d', $target->connstr($db), $dump ], "$fact: pg_restore -e -1");
	foreach my $what (sort keys %same)
	{
		is(sql($target, $same{$what}, $db), $expected{$what}, "$fact: $what are the same");
	}

	# A lease taken before the dump settles in the copy; one acked before settles nothing.
	is(sql($target, q{select hotmesh_stream.ack('s', 'half', (select receipt from receipts where n = 21))}, $db),
		'1', "$fact: a receipt is still good");
	sql($target, q{insert into settled select 's', 'half', id from receipts where n = 21}, $db);
	is(sql($target, q{select hotmesh_stream.ack('s', 'half', (select receipt from receipts where n = 5))}, $db),
		'0', "$fact: a spent one is not");

	cmp_ok(sql($target, q{insert into published select 's', hotmesh_stream.publish('s', '"new"') returning id}, $db),
		'>', $last_id, "$fact: ids go on above all earlier ones");
	sql($target, q{insert into published select 'h', hotmesh_stream.publish_many('h', array['1', '2', '3']::json[])}, $db);

	# Open publishers there mean what they say, also where their xid was someone else's.
	my $late = wire($target, 'begin', $db);

	$late->values_of(q{insert into published select 's', hotmesh_stream.publish('s', '"late"')});
	sql($target, q{insert into published select 's', hotmesh_stream.publish('s', '"early"')}, $db);
	sql($target, ledger_statement('s', $_, 'c', 1000), $db) foreach ('fresh', 'late');
	$late->values_of('commit');
	$late->hang_up;

	sql($target, q{select hotmesh_stream.extend('s', 'half', (select array_agg(id::text) from hotmesh_stream.delivery d
		join hotmesh_stream.consumer_group g using (incarnation) where g.name = 'half'), '0')}, $db);
	is(sql($target, q{select hotmesh_stream.redrive('s', 'half', (select array_agg(id) from receipts where n between 16 and 20))}, $db),
		'5', "$fact: dead letters are redriven");
	foreach my $pair ([ 's', 'fresh' ], [ 's', 'late' ], [ 's', 'half' ], [ 'h', 'g' ])
	{
		drain($target, @$pair, $db);
		ledger_is_settled($target, @$pair, $db);
	}
	return;
}

restored_is_whole($node, 'copy', 'same cluster');
$low->safe_psql('postgres', 'select 1');
cmp_ok(sql($low, 'select pg_current_xact_id()'), '<', sql($node, 'select pg_current_xact_id()') - 1000,
	'the other cluster has lower transaction ids');
restored_is_whole($low, 'copy', 'lower next xid');

# The same cluster, same identifier, but its transaction ids are lower: a clone made before the load.
is(sql($node, q{select count(*) from hotmesh_stream.xid_offset}, 'copy'), '1', 'an offset is stored once');
cmp_ok(sql($low, q{select xid_offset from hotmesh_stream.xid_offset}, 'copy'), '>', '1000', 'and lifts lower transaction ids');

# A copy of the copy.
command_ok([ 'pg_dump', '-Fc', '-f', "$dump.2", $low->connstr('copy') ], 'pg_dump of the restored database');
$low->safe_psql('postgres', 'create database again');
command_ok([ 'pg_restore', '-e', '-1', '-d', $low->connstr('again'), "$dump.2" ], 'pg_restore of it');
sql($low, q{insert into published select 's', hotmesh_stream.publish('s', '"third life"')}, 'again');
foreach my $group ('fresh', 'late', 'half')
{
	drain($low, 's', $group, 'again');
	ledger_is_settled($low, 's', $group, 'again');
}

# Restored in parallel: no worker may touch the log before its index is attached.
$low->safe_psql('postgres', 'create database parallel');
command_ok([ 'pg_restore', '-e', '-j', '2', '-d', $low->connstr('parallel'), $dump ], 'pg_restore -j 2');
is(sql($low, q{select count(*) from pg_index where not indisvalid}, 'parallel'), '0', 'no index is left invalid');
drain($low, 's', 'fresh', 'parallel');
ledger_is_settled($low, 's', 'fresh', 'parallel');

# The source goes on as if nothing had been.
$open->values_of('commit');
sql($node, q{commit prepared 'p'});
is(sql($node, q{select string_agg(payload #>> '{}', ' ' order by id) from hotmesh_stream.read('s', 'late', 'c', 10)
		where payload #>> '{}' <> 'delayed'}),
	'open prepared', 'the source hands out what was open during the dump');

$open->hang_up;
$prepared->hang_up;
$node->stop;
$low->stop;
done_testing();
