# Promise: whatever is killed, committed acks never come back and unacked messages all do.
# With conformance cases 48 and 49.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = proof_node('crash', conf => q{
restart_after_crash = on
wal_writer_delay = '10s'
synchronous_commit = on
log_min_messages = warning
});

sql($node, $ledger_sql);
sql($node, q{
	create table work (id bigint);
	select hotmesh_stream.create_stream('s');
	select hotmesh_stream.create_group('s', 'g', ack_wait => '1s');
	select hotmesh_stream.create_stream('load');
	select hotmesh_stream.create_group('load', 'lease', ack_wait => '1s');
	select hotmesh_stream.create_group('load', 'tx', ack_wait => '1s');
});

sub worker_pid
{
	my ($kind) = @_;

	wait_for($node, qq{select count(*) = 1 from pg_stat_activity where backend_type like '%$kind%' and datname = 'postgres'},
		"the $kind runs");
	return sql($node, qq{select pid from pg_stat_activity where backend_type like '%$kind%' and datname = 'postgres'});
}

# SIGKILL to a server process; all sessions are gone, the server recovers.
sub crash_by_kill
{
	my ($pid) = @_;
	my $before = sql($node, 'select pg_postmaster_start_time()');
	my $witness = wire($node);

	kill 'KILL', $pid;
	eval { $witness->rows_until(qr/never/) };
	$node->poll_query_until('postgres', 'select true');
	return;
}

sub enter_published
{
	my ($n) = @_;

	return split /\n/, sql($node, qq{
		insert into published select 's', hotmesh_stream.publish('s', to_json(i)) from generate_series(1, $n) i returning id});
}

# --- 48: read, insert and ack in one transaction, killed before commit -------------------------

{
	my ($id) = enter_published(1);
	my $w = wire($node);

	$w->values_of(q{begin;
		with r as materialized (select * from hotmesh_stream.read('s', 'g', 'c')),
		i as (insert into work select id from r)
		select hotmesh_stream.ack('s', 'g', receipt) from r});
	$w->value_of('select hotmesh_stream.publish(\'s\', \'"never"\')');
	crash_by_kill($w->pid);
	is(sql($node, 'select count(*) from work'), '0', '48: the row does not exist');
	wait_until(sub {
			return sql($node, q{select id from hotmesh_stream.read('s', 'g', 'c', 10, ack_wait => '0.1s')}) eq $id;
	}, '48: nor does the ack, and the message is delivered again');
	drain($node, 's', 'g');
	ledger_is_settled($node, 's', 'g');
}

# --- 49: read committed, the worker killed, delivered again with delivery_count 2 ---------------

{
	my ($id) = enter_published(1);
	my $w = wire($node);

	is($w->value_of(q{select delivery_count from hotmesh_stream.read('s', 'g', 'c')}), '1', '49: first delivery');
	$w->hang_up;
	wait_until(sub {
			return sql($node, q{select id, delivery_count from hotmesh_stream.read('s', 'g', 'c', wait => '2s')}) eq "$id|2";
	}, '49: a killed worker\'s message comes back with delivery_count 2');
	drain($node, 's', 'g');
	ledger_is_settled($node, 's', 'g');

	# A terminated backend is no different.
	($id) = enter_published(1);
	$w = wire($node);
	is($w->value_of(q{select delivery_count from hotmesh_stream.read('s', 'g', 'c')}), '1', '49: first delivery');
	sql($node, 'select pg_terminate_backend(' . $w->pid . ')');
	is(sql($node, q{select id, delivery_count from hotmesh_stream.read('s', 'g', 'c', wait => '5s')}), "$id|2",
		'49: nor a terminated backend\'s');
	drain($node, 's', 'g');
}

# --- acks before a crash stay, everything else returns -----------------------------------------

sub read_some_ack_some
{
	my ($fact, $crash) = @_;
	my @ids = enter_published(30);
	my $w = wire($node);
	my @receipts = $w->values_of(q{select receipt from hotmesh_stream.read('s', 'g', 'c', 20)});
	my $acked = join ',', map { "'$_'" } @receipts[ 0 .. 9 ];
	my %open = map { $_ => 1 } @ids[ 10 .. 29 ];

	# In flight at the crash: an ack, a nack and a publish that never commit.
	my $open_ack = wire($node, "begin; select hotmesh_stream.ack('s', 'g', '$receipts[10]')");
	my $open_nack = wire($node, "begin; select hotmesh_stream.nack('s', 'g', array['$receipts[11]'])");
	my $open_publish = wire($node, q{begin; select hotmesh_stream.publish('s', '"never"')});

	# The last commit before the crash, so that no other one flushes it.
	is($w->value_of("select hotmesh_stream.ack('s', 'g', variadic array[$acked])"), '10', "$fact: ten acks are committed");
	$crash->();
	sql($node, "insert into settled select 's', 'g', split_part(r, ':', 1)::bigint from unnest(array[$acked]) r");
	$_->hang_up foreach ($w, $open_ack, $open_nack, $open_publish);

	my %back;

	wait_until(sub {
			my $r = wire($node);

			$back{$_}++ foreach $r->values_of(
				q{select id from hotmesh_stream.read('s', 'g', 'c', 100, ack_wait => '1h')});
			$r->hang_up;
			return keys %back >= 20;
	}, "$fact: twenty messages come back");
	is(join(' ', sort { $a <=> $b } keys %back), join(' ', sort { $a <=> $b } keys %open),
		"$fact: those that were not acked, and no acked one");
	is(join(' ', grep { $_ != 1 } values %back), '', "$fact: each once");
	sql($node, qq{select hotmesh_stream.extend('s', 'g', (select array_agg(id::text) from hotmesh_stream.delivery d
		join hotmesh_stream.consumer_group g using (incarnation) where g.name = 'g'), ack_wait => '0')});
	drain($node, 's', 'g');
	return ledger_is_settled($node, 's', 'g');
}

read_some_ack_some('kill -9 of a consumer backend', sub {
		my $w = wire($node, q{begin; select * from hotmesh_stream.read('s', 'g', 'c', 2)});

		crash_by_kill($w->pid);
});
read_some_ack_some('kill -9 of the advancer', sub { crash_by_kill(worker_pid('advancer')) });
read_some_ack_some('immediate stop', sub { $node->stop('immediate'); $node->start; });
read_some_ack_some('termination of the advancer',
	sub { sql($node, 'select pg_terminate_backend(' . worker_pid('advancer') . ')') });
read_some_ack_some('clean restart', sub { $node->restart; });

# --- the server dies under load ----------------------------------------------------------------

for my $round (1 .. scaled(3, 12))
{
	my @load = (
		start_pgbench($node, 4, 20, {
			publish => q{insert into published select 'load', hotmesh_stream.publish_many('load',
				(select array_agg(to_json(i)) from generate_series(1, 10) i));},
			slow => q{begin;
				insert into published select 'load', hotmesh_stream.publish('load', '1');
				\sleep 5 ms
				end;},
			prepare => q{\set n random(1, 1000000000)
				begin;
				insert into published select 'load', hotmesh_stream.publish('load', '1');
				prepare transaction 'p:n';
				commit prepared 'p:n';} }),
		start_pgbench($node, 3, 20, { tx => 'begin;' . ledger_statement('load', 'tx', 'c:client_id', 8) . ";\nend;" }),
		start_pgbench($node, 3, 20, {
			lease => q{select coalesce(array_agg(receipt), '{}') as receipts
				from hotmesh_stream.read('load', 'lease', 'c:client_id', 8) \gset
				insert into settled select 'load', 'lease', split_part(r, ':', 1)::bigint
				from unnest(':receipts'::text[]) r where hotmesh_stream.ack('load', 'lease', r) = 1;} }));

	sql($node, q{alter system set synchronous_commit = } . ($round % 2 ? 'on' : 'off'));
	sql($node, 'select pg_reload_conf()');
	select(undef, undef, undef, 2);
	$node->stop('immediate');
	finish_pgbench($_) foreach @load;
	$node->start;
	sql($node, "commit prepared '$_'") foreach split /\n/, sql($node, 'select gid from pg_prepared_xacts');
	unlike(join('', map { $_->{err} } @load), qr/ERROR:/, "immediate stop under load, round $round: no statement failed before it");
}
cmp_ok(sql($node, q{select count(*) from published where stream = 'load'}), '>', 500, 'the load was one');
foreach my $group ('lease', 'tx')
{
	drain($node, 'load', $group);
	ledger_is_settled($node, 'load', $group);
}

$node->stop;
done_testing();
