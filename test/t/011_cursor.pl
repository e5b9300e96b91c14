# Promise: a cursor loses and repeats nothing in the interleavings that random load rarely meets, and
# passing what it cannot see yet costs a bounded number of index entries.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use Test::More;

# Without workers nobody but the test takes transaction ids or moves a cursor.
my $node = proof_node('cursor', conf => q{
hotmesh_stream.workers = off
hotmesh_stream.advance_wait = '20s'
max_prepared_transactions = 600
wal_level = replica
max_wal_senders = 2
});
need_debug_points($node);

my $reader = wire($node);
my $alice = wire($node);
my $bob = wire($node);

# A stream and a group of one name, with nothing in them.
sub fresh
{
	my ($name) = @_;

	$reader->value_of("select hotmesh_stream.create_stream('$name')");
	$reader->value_of("select hotmesh_stream.create_group('$name', 'g', ack_wait => '1h')");
	return $name;
}

sub publish
{
	my ($session, $stream, $text) = @_;

	return $session->value_of("select hotmesh_stream.publish('$stream', '\"$text\"')");
}

# Payloads that a read of the group hands out now.
sub read_all
{
	my ($stream, $session) = @_;

	return join ' ', ($session // $reader)->values_of(
		"select payload #>> '{}' from hotmesh_stream.read('$stream', 'g', 'c', 10000)");
}

# Id before xid: a publisher that has ids has an xid that later snapshots know.
{
	my $s = fresh('id_before_xid');

	# nextval assigns the xid by itself when it logs; it must not get the chance here.
	publish($bob, $s, 'prime') while $bob->value_of(
		'select log_cnt from hotmesh_stream.message_id_seq') < 10;
	read_all($s);

	my $holder = wire($node, q{select pg_advisory_lock(hashtext('hms:publish-after-ids'))});
	$alice->values_of("set hotmesh_stream.debug_points = 'publish-after-ids'");
	$alice->send_query("select hotmesh_stream.publish('$s', '\"early id\"')");
	wait_debug_point($node, 'publish-after-ids', 'a publisher has its id and has not inserted');
	is($bob->value_of(
			"select backend_xid is not null from pg_stat_activity where pid = " . $alice->pid),
		't', 'it has a transaction id');
	publish($bob, $s, 'late id');
	is(read_all($s), 'late id', 'the reader passes the early id');
	$holder->hang_up;
	$alice->finish;
	$alice->values_of('reset hotmesh_stream.debug_points');
	is(read_all($s), 'early id', 'id before xid: the early id is handed out when it commits');
	is(read_all($s), '', 'and once');
}

# [xmax, next): an xid above the latest completed one is in no snapshot's list.
{
	my $s = fresh('above_xmax');

	$bob->values_of('begin; select pg_current_xact_id()');
	$alice->values_of('begin; select pg_current_xact_id()');
	publish($alice, $s, 'a');
	publish($bob, $s, 'b');
	$bob->value_of('commit');
	is($reader->value_of('select pg_current_snapshot()') =~ /^(\d+):\1:$/ ? 'above' : 'listed',
		'above', 'the open publisher is above the snapshot');
	is(read_all($s), 'b', 'the reader passes an id whose xid its snapshot does not list');
	$alice->value_of('commit');
	is(read_all($s), 'a', '[xmax, next): it is handed out when it commits');
}

# Stale snapshot: what commits while a reader waits for the cursor is accounted once.
{
	my $s = fresh('stale');
	my $late = wire($node, 'begin');
	my $read = "select payload #>> '{}' from hotmesh_stream.read('$s', 'g', 'c', %d)";

	publish($late, $s, 'late');
	$alice->values_of('begin');
	publish($alice, $s, 'own');
	publish($bob, $s, 'seen');
	publish($bob, $s, 'left');
	is(join(' ', $alice->values_of(sprintf $read, 2)), 'own seen', 'a reader of its own messages holds the cursor');
	$bob->send_query(sprintf $read, 10);
	ok(!$bob->readable(0.3), 'another reader waits for the cursor');
	$late->value_of('commit');
	is(join(' ', $alice->values_of(sprintf $read, 1)), 'late', 'the holder gets what commits meanwhile');
	$alice->value_of('commit');

	# Whoever would go by what it saw before it waited takes both for undecided here.
	is(join(' ', $bob->finish), 'left', 'the waiting reader gets what is left');
	publish($alice, $s, 'next');
	is(read_all($s), 'next', 'and the read after it nothing again');
	$late->hang_up;
}

# The same with the snapshot delayed: a reader stops after it got the cursor.
{
	my $s = fresh('stopped');
	my $holder = wire($node, q{select pg_advisory_lock(hashtext('hms:advance-locked'))});
	my $late = wire($node, 'begin');

	publish($late, $s, 'late');
	publish($bob, $s, 'first');
	$alice->values_of("set hotmesh_stream.debug_points = 'advance-locked'");
	$alice->send_query("select payload #>> '{}' from hotmesh_stream.read('$s', 'g', 'c', 10)");
	wait_debug_point($node, 'advance-locked', 'a reader has the cursor and no snapshot');
	publish($bob, $s, 'second');
	$late->value_of('commit');
	$holder->hang_up;
	is(join(' ', grep { length } $alice->finish, read_all($s)), 'late first second',
		'what commits after the cursor is locked is handed out once');
	$alice->values_of('reset hotmesh_stream.debug_points');
	$late->hang_up;
}

# While PREPARE waits for a standby the transaction is listed twice in every snapshot.
{
	my $s = fresh('prepare');

	sql($node, q{alter system set synchronous_standby_names = 'nobody'});
	sql($node, 'select pg_reload_conf()');
	$_->values_of('set synchronous_commit = local') foreach ($reader, $bob);
	wait_for($node, q{select setting = 'nobody' from pg_settings where name = 'synchronous_standby_names'},
		'a synchronous standby is missing');
	$alice->values_of('begin');
	publish($alice, $s, 'prepared');
	$alice->send_query(q{prepare transaction 'twice'});
	wait_for($node, q{select count(*) = 1 from pg_stat_activity where wait_event = 'SyncRep'},
		'PREPARE waits for it');
	publish($bob, $s, 'other');
	is(read_all($s), 'other', 'the reader passes it');
	$bob->value_of('select pg_cancel_backend(' . $alice->pid . ')');
	$alice->rows_until(qr/Z/);
	$bob->values_of(q{commit prepared 'twice'});
	is(read_all($s), 'prepared', 'PREPARE under a missing standby: handed out after COMMIT PREPARED');
	is(read_all($s), '', 'and once');
	sql($node, q{alter system reset synchronous_standby_names});
	sql($node, 'select pg_reload_conf()');
	$_->values_of('reset synchronous_commit') foreach ($reader, $bob);
}

# Own writes: another reader passes them, the publisher reads them, publishes more, reads, commits.
{
	my $s = fresh('own');

	$alice->values_of('begin');
	publish($alice, $s, 'own1');
	publish($bob, $s, 'other');
	is(read_all($s), 'other', 'another reader passes an open publisher');
	is(read_all($s, $alice), 'own1', 'the publisher reads its own message');
	publish($alice, $s, 'own2');
	is(read_all($s, $alice), 'own2', 'and the next one');
	$alice->value_of('commit');
	is(read_all($s), '', 'nobody gets them again');
	$alice->values_of('begin');
	publish($alice, $s, 'own3');
	is(read_all($s, $alice), 'own3', 'a hand-out of own messages');
	my ($state) = map { $_->error } grep { $_->query(q{prepare transaction 'own'}); 1 } ($alice);
	like($state, qr/^0A000/, 'cannot be prepared');
	is(read_all($s), '', 'and leaves nothing');
}

# Read in a savepoint, rolled back, read again.
{
	my $s = fresh('savepoint');

	publish($bob, $s, 'one');
	$alice->values_of('begin; savepoint x');
	publish($alice, $s, 'two');
	is(read_all($s, $alice), 'one two', 'read in a savepoint');
	$alice->values_of('rollback to x');
	is(read_all($s, $alice), 'one', 'and again after it was rolled back');
	$alice->value_of('commit');
	is(read_all($s), '', 'once');
}

# A late transaction drained in pieces, with a delayed message above the position.
{
	my $s = fresh('pieces');

	$alice->values_of('begin');
	publish($alice, $s, 'late1');
	publish($alice, $s, 'late2');
	publish($bob, $s, 'other');
	is(read_all($s), 'other', 'a late publisher is passed');
	$alice->value_of("select hotmesh_stream.publish('$s', '\"delayed\"', delay => '1h')");
	$alice->value_of('commit');
	is($reader->value_of("select payload #>> '{}' from hotmesh_stream.read('$s', 'g', 'c', 1)"),
		'late1', 'the first of what it owes');
	is(read_all($s), 'late2', 'the rest');
	is(read_all($s), '', 'and each once');
	is($reader->value_of(qq{
			select count(*) from hotmesh_stream.delivery d join hotmesh_stream.consumer_group g using (incarnation)
			join hotmesh_stream.stream s using (stream_id) where s.name = '$s'}),
		'4', 'the delayed one, too');
}

# Many savepoints in one transaction, while a publisher with an older xid commits.
foreach my $savepoints (40, 200_000)
{
	my $s = fresh("savepoints_$savepoints");

	$alice->values_of('create table deep (x int)');
	$bob->values_of('begin; select pg_current_xact_id()');
	$alice->values_of(qq{begin;
		do \$\$ begin
		    for i in 1..$savepoints loop
		        begin insert into deep values (i); exception when division_by_zero then null; end;
		    end loop;
		end \$\$});
	publish($alice, $s, 'deep');
	publish($bob, $s, 'shallow');
	$bob->value_of('commit');
	is(read_all($s), 'shallow', "$savepoints savepoints do not break a reader");
	is($reader->value_of(qq{
			select count(*) from hotmesh_stream.cursor_spill c join hotmesh_stream.consumer_group g using (incarnation)
			join hotmesh_stream.stream s using (stream_id) where s.name = '$s'}),
		'0', 'nor do they make its list of pending transactions long');
	$alice->value_of('commit');
	is(read_all($s), 'deep', 'and what they published is handed out');
	$alice->values_of('drop table deep');
}

# 500 idle transactions with xids.  Prepared ones cost no connection.
{
	my $s = fresh('idle');
	my $batch = sub {
		my $log = $reader->value_of('select pg_current_wal_insert_lsn()');

		for (1 .. 100)
		{
			publish($bob, $s, 'x');
			read_all($s) eq 'x' or fail('one message');
		}
		return $reader->value_of("select pg_current_wal_insert_lsn() - '$log'");
	};
	my $bytes_alone = $batch->();

	for my $i (1 .. 500)
	{
		$alice->values_of('begin; select pg_current_xact_id()');
		publish($alice, $s, "idle$i") if $i % 50 == 0;
		$alice->values_of("prepare transaction 'idle$i'");
	}
	$batch->();
	my $bytes_among_idle = $batch->();

	cmp_ok($bytes_among_idle, '<', 1.3 * $bytes_alone, '500 idle xids do not swell the log of a read');
	cmp_ok($reader->value_of('select max(pg_column_size(c.*)) from hotmesh_stream.cursor c'),
		'<', 1000, 'nor the cursor');
	$alice->values_of("commit prepared 'idle$_'") foreach (1 .. 500);
	is(read_all($s), join(' ', map { 'idle' . 50 * $_ } 1 .. 10), 'those that published are handed out');
	publish($bob, $s, 'last');
	is(read_all($s), 'last', 'and then what comes next');
	is($reader->value_of(q{
			select count(*) from hotmesh_stream.cursor_spill c join hotmesh_stream.consumer_group g using (incarnation)
			join hotmesh_stream.stream s using (stream_id) where s.name = 'idle' and length(pending) > 100}),
		'0', 'the list of pending transactions is short again');
}

# 200,000 rows that nobody can see, in front of the position; then they commit late.
{
	my $s = fresh('invisible');
	my $visited = sub {
		my $before = $reader->value_of('select scan_entries()');

		$_[0]->();
		return $reader->value_of('select scan_entries()') - $before;
	};

	$alice->values_of('begin');
	for (1 .. 20)
	{
		$alice->values_of(qq{
			select count(*) from hotmesh_stream.publish_many('$s',
			    (select array_agg(to_json(i)) from generate_series(1, 10000) i))});
	}
	is(read_all($s), '', 'nothing to read in front of 200,000 invisible rows');
	cmp_ok($visited->(sub { read_all($s) for 1 .. 10 }), '<', 20_000,
		'later empty reads do not walk them again');
	publish($bob, $s, 'behind');
	is(read_all($s), 'behind', 'a message behind them is handed out');
	cmp_ok($visited->(sub { read_all($s) for 1 .. 10 }), '<', 20_000,
		'nor does a read that found something');
	$alice->value_of('commit');

	my (%seen, $worst);
	my $rows = 0;

	# A read may return fewer than asked, but not nothing.
	for my $call (1 .. 10_000)
	{
		my @ids;
		my $read = sub {
			@ids = $reader->values_of(
				"select id from hotmesh_stream.read('$s', 'g', 'c', 100, no_ack => true)");
		};

		if ($call % 100 == 0)
		{
			my $entries = $visited->($read);
			$worst = $entries if !defined $worst || $entries > $worst;
		}
		else
		{
			$read->();
		}
		last unless @ids;
		$rows += @ids;
		$seen{$_} = 1 foreach @ids;
	}
	is($rows, 200_000, 'a late transaction of 200,000 rows is handed out by 100');
	is(scalar keys %seen, 200_000, 'each row once');
	is(read_all($s), '', 'and then nothing');
	cmp_ok($worst, '<', 5_000, 'each read walks a bounded number of its rows');

	$alice->values_of('begin');
	for (1 .. 20)
	{
		$alice->values_of(qq{
			select count(*) from hotmesh_stream.publish_many('$s',
			    (select array_agg(to_json(i)) from generate_series(1, 10000) i))});
	}
	$alice->value_of('rollback');
	read_all($s);
	cmp_ok($visited->(sub { read_all($s) for 1 .. 10 }), '<', 20_000, 'aborted rows are passed for good');
	publish($bob, $s, 'after');
	is(read_all($s), 'after', 'and hide nothing');
}

$_->hang_up foreach ($reader, $alice, $bob);
$node->stop;
done_testing();
