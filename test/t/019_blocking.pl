# Promise: a blocked reader wakes when there is work, however it got there, and leaves nothing behind
# when it goes.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use Test::More;
use Time::HiRes qw(time);

my $node = proof_node('blocking', conf => "max_connections = @{[ scaled(60, 1200) ]}\nhotmesh_stream.max_wait = '30s'\n");
my $pub = wire($node);
my $blocked = q{select count(*) from pg_stat_activity where application_name = 'hotmesh_wire' and wait_event_type = 'Extension'};

sql($node, q{
	select hotmesh_stream.create_stream('s');
	select hotmesh_stream.create_group('s', 'g', ack_wait => '1h');
	select hotmesh_stream.create_group('s', 'short', ack_wait => '1s');
});

sub block
{
	my ($group, $wait) = @_;
	my $wire = wire($node);

	$wire->send_query(sprintf q{select id from hotmesh_stream.read('s', '%s', 'c', 1, wait => '%s')}, $group, $wait // '20s');
	return $wire;
}

sub publish
{
	return $pub->value_of(q{select hotmesh_stream.publish('s', '1')});
}

# Whoever holds what.
sub settle_all
{
	foreach my $group ('g', 'short')
	{
		sql($node, qq{
			select count(*) from hotmesh_stream.read('s', '$group', 'c', 1000);
			select hotmesh_stream.ack('s', '$group', variadic array_agg(d.id::text))
			from hotmesh_stream.delivery d join hotmesh_stream.consumer_group g using (incarnation)
			where g.name = '$group' having count(*) > 0});
	}
	return;
}

# Commit wakes; rollback does not.
{
	my $reader = wire($node);
	my $took = 0;

	# Six times, so that no tick can be taken for a wake-up.
	for my $i (1 .. 6)
	{
		$reader->send_query(q{select id from hotmesh_stream.read('s', 'g', 'c', 1, wait => '20s')});
		wait_for($node, $blocked, "a reader blocks, $i", '1');
		$pub->values_of('begin');
		publish();
		ok(!$reader->readable(0.1), "an open publisher wakes nobody, $i");
		my $started = time();

		$pub->values_of('commit');
		ok($reader->finish, "commit wakes it, $i");
		$took += time() - $started;
	}
	cmp_ok($took, '<', 0.9, 'six times within less than a tick');
	$reader->hang_up;
	settle_all();

	$reader = block('g', '1s');
	wait_for($node, $blocked, 'a reader blocks', '1');
	$pub->values_of('begin');
	publish();
	$pub->values_of('rollback');
	is(join(' ', $reader->finish), '', 'rollback brings nothing');
	$reader->hang_up;
}

# COMMIT PREPARED runs no callback of ours.
{
	my $reader = block('g', '6s');

	wait_for($node, $blocked, 'a reader blocks', '1');
	$pub->values_of('begin');
	publish();
	$pub->values_of(q{prepare transaction 'p'});
	ok(!$reader->readable(1.5), 'PREPARE wakes nobody');
	my $started = time();

	$pub->values_of(q{commit prepared 'p'});
	ok($reader->finish, 'COMMIT PREPARED: the fallback tick finds it');
	cmp_ok(time() - $started, '<', 5, 'in about a second');
	$reader->hang_up;
	settle_all();
}

# The same without an advancer.
{
	sql($node, 'alter system set hotmesh_stream.workers = off');
	sql($node, 'select pg_reload_conf()');
	wait_for($node, q{select count(*) = 0 from pg_stat_activity where backend_type like 'hotmesh_stream advancer%'}, 'no advancer');
	my $reader = block('g', '6s');

	wait_for($node, $blocked, 'a reader blocks', '1');
	$pub->values_of('begin');
	publish();
	$pub->values_of(q{prepare transaction 'p'});
	$pub->values_of(q{commit prepared 'p'});
	ok($reader->finish, 'COMMIT PREPARED without an advancer: the reader finds it itself');
	$reader->hang_up;
	settle_all();
	sql($node, 'alter system reset hotmesh_stream.workers');
	sql($node, 'select pg_reload_conf()');
}

# Due times: a lapsing lease, a nack, a release.
{
	my $id = publish();

	is($pub->value_of(q{select id from hotmesh_stream.read('s', 'short', 'c')}), $id, 'a message is leased for a second');
	my $reader = block('short');

	is(join(' ', $reader->finish), $id, 'a lapsing lease wakes a blocked reader');
	$reader->hang_up;
	settle_all();

	$id = publish();
	my $receipt = $pub->value_of(q{select receipt from hotmesh_stream.read('s', 'g', 'c')});

	$reader = block('g');
	wait_for($node, $blocked, 'a reader blocks', '1');
	my $started = time();

	$pub->values_of("select hotmesh_stream.nack('s', 'g', array['$receipt'])");
	is(join(' ', $reader->finish), $id, 'a nack wakes it');
	cmp_ok(time() - $started, '<', 0.9, 'before any tick');
	$reader->hang_up;

	# While it sleeps towards a far due time, a nearer one is written.
	$receipt = sql($node, q{select id from hotmesh_stream.delivery d join hotmesh_stream.consumer_group g using (incarnation) where g.name = 'g'});
	$reader = block('g');
	wait_for($node, $blocked, 'a reader blocks', '1');
	$pub->values_of("select hotmesh_stream.nack('s', 'g', array['$receipt'], delay => '0.3s')");
	is(join(' ', $reader->finish), $id, 'a nearer due time is noticed');
	$reader->hang_up;
	settle_all();
}

# A dropped group wakes whoever waits for it.
{
	my $took = 0;

	for my $i (1 .. 3)
	{
		sql($node, q{select hotmesh_stream.create_group('s', 'dropped', deliver_policy => 'new')});
		my @readers = map { block('dropped') } 1 .. 3;

		wait_for($node, $blocked, "three readers block, $i", '3');
		my $started = time();

		$pub->values_of(q{select hotmesh_stream.drop_group('s', 'dropped')});
		$_->rows_until(qr/Z/) foreach @readers;
		$took += time() - $started;
		is(join(' ', map { substr($_->error, 0, 5) } @readers), 'HM003 HM003 HM003', "dropping the group ends each read, $i");
		$_->hang_up foreach @readers;
	}
	cmp_ok($took, '<', 1.5, 'before any tick');
}

# As many readers as messages, first come first served.
{
	my @readers;

	for my $i (1 .. 5)
	{
		push @readers, block('g');
		wait_for($node, $blocked, "$i readers block", $i);
	}
	publish();
	ok($readers[0]->readable(3), 'one message goes to the first');
	ok(!$readers[$_]->readable(0.05), "and not to reader $_") foreach (1 .. 4);
	$pub->values_of(q{select hotmesh_stream.publish_many('s', array['1', '2', '3', '4']::json[])});
	is(scalar(grep { $_->finish } @readers), 5, 'four more wake the other four');
	$_->hang_up foreach @readers;
	settle_all();
}

# Whoever goes leaves no slot, and the signal it had goes to the next.
{
	my $usage = q{select substring(detail from 'waiters \d+') from hotmesh_stream.health() where check_name = 'shared_memory'};

	my $before = sql($node, $usage);

	for my $how ('cancel', 'terminate', 'timeout', 'hang up')
	{
		my @readers = map { wire($node) } 1 .. 4;

		foreach my $r (@readers)
		{
			$r->values_of(q{set statement_timeout = '300ms'; set client_connection_check_interval = '100ms'}) if $how eq 'timeout';
			$r->values_of(q{set client_connection_check_interval = '100ms'});
			$r->send_query(q{select id from hotmesh_stream.read('s', 'g', 'c', 1, wait => '25s')});
		}
		wait_for($node, $blocked, "$how: four readers block", '4') unless $how eq 'timeout';
		sql($node, "select pg_${how}_backend(pid) from pg_stat_activity where wait_event_type = 'Extension' and application_name = 'hotmesh_wire'")
		  if $how =~ /cancel|terminate/;
		$_->hang_up foreach ($how eq 'hang up' ? @readers : ());
		if ($how =~ /cancel|timeout/)
		{
			$_->rows_until(qr/Z/) foreach @readers;
			like($_->error, qr/^57014/, "$how ends a blocked read") foreach @readers;
			is(sql($node, $usage), $before, "$how: no waiter is left in shared memory");
		}
		wait_for($node, $blocked, "$how: nobody blocks", '0');

		# Cancelled sessions live on: whatever they left would stand in front of the next.
		my $survivor = block('g', '5s');

		wait_for($node, $blocked, "$how: another reader blocks", '1');
		my $started = time();
		my $id = publish();

		is(join(' ', $survivor->finish), $id, "$how: the next reader is woken");
		cmp_ok(time() - $started, '<', 0.9, "$how: at once, for no slot leaked");
		$_->hang_up foreach ($survivor, $how eq 'hang up' ? () : @readers);
		settle_all();
	}
	is(sql($node, $usage), $before, 'no waiter is left in shared memory');
}

# wait() holds no snapshot while it sleeps.
{
	my $waiter = wire($node);

	$waiter->send_query(q{call hotmesh_stream.wait('s', 'g', '20s')});
	wait_for($node, $blocked, 'wait() blocks', '1');
	is(sql($node, 'select backend_xmin is null and backend_xid is null from pg_stat_activity where pid = ' . $waiter->pid),
		't', 'wait() holds no snapshot');
	is(sql($node, q{select count(*) from pg_locks where relation is not null and pid = } . $waiter->pid), '0', 'and no lock on a relation');
	publish();
	$waiter->finish;
	pass('wait() returns when there is work');
	$waiter->hang_up;
	settle_all();
}

# A thousand blocked readers.
SKIP:
{
	skip 'set HMS_LONG=1', 3 unless long_run();
	my @readers = map { block('g', '30s') } 1 .. 1000;

	wait_for($node, $blocked, '1000 readers block', '1000');
	is(sql($node, q{select count(*) from pg_locks l join pg_stat_activity a using (pid)
		where relation is not null and a.wait_event_type = 'Extension'
		and relation in (select oid from pg_class where relnamespace = 'hotmesh_stream_data'::regnamespace)}),
		'0', 'none holds a lock on the log');
	$pub->values_of(q{select count(*) from hotmesh_stream.publish_many('s', (select array_agg(to_json(i)) from generate_series(1, 1000) i))});
	is(scalar(grep { $_->finish } @readers), 1000, 'each gets its message');
	$_->hang_up foreach @readers;
}

$pub->hang_up;
$node->stop;
done_testing();
