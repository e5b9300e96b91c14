# Promise: a publish never fails and never lands where it cannot be read, whatever the clock, the
# runway, sealing and retention do; and retention eats nothing that a group still owes.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use Test::More;
use Time::HiRes ();

# The test does the workers' duty itself, at the hours it likes.
my $node = proof_node('partitions', conf => q{
hotmesh_stream.workers = off
timezone = 'UTC'
});
need_debug_points($node);

my $hour = 'hotmesh_stream.debug_clock_offset';
my $pub = wire($node);
my $other = wire($node);
my $reader = wire($node);
my $keeper = wire($node);

sub fresh
{
	my ($name, $options) = @_;

	$options //= q{partition_interval => '1 hour'};
	at($keeper, 0);
	$keeper->values_of("select hotmesh_stream.create_namespace('$name', $options)");
	$keeper->values_of("select hotmesh_stream.create_stream('$name', namespace => '$name')");
	$keeper->values_of("select hotmesh_stream.create_group('$name', 'g', ack_wait => '1d')");
	return $name;
}

sub at
{
	my ($session, $offset) = @_;

	return $session->values_of("set $hour = '$offset'");
}

sub publish
{
	my ($session, $stream, $text) = @_;

	return $session->value_of("select hotmesh_stream.publish('$stream', '\"$text\"')");
}

sub read_all
{
	my ($stream) = @_;

	return join ' ', $reader->values_of("select payload #>> '{}' from hotmesh_stream.read('$stream', 'g', 'c', 10000)");
}

sub maintain
{
	my ($offset) = @_;

	at($keeper, $offset);
	return $keeper->values_of('call hotmesh_stream.maintain()');
}

# Names of the leaf and how many rows it holds, default partition included.
sub log_of
{
	my ($namespace) = @_;

	return 'hotmesh_stream_data.log_' . sql($node, "select namespace_id from hotmesh_stream.namespace where name = '$namespace'");
}

sub rows_in_default
{
	my ($namespace) = @_;
	my $log = log_of($namespace);

	return sql($node, "select count(*) from $log l join pg_class c on c.oid = l.tableoid where c.relname like '%default'");
}

sub sealed_partitions
{
	my ($namespace) = @_;

	return sql($node, qq{select count(*) from hotmesh_stream.log_partition p
		join hotmesh_stream.namespace n using (namespace_id) where n.name = '$namespace'});
}

sub partitions
{
	my ($namespace) = @_;

	return sql($node, "select count(*) from pg_inherits where inhparent = '" . log_of($namespace) . "'::regclass");
}

# --- sealing against a publisher that stalls ----------------------------------------------------

foreach my $point ('publish-after-ids', 'publish-before-insert')
{
	my $s = fresh($point =~ s/-/_/gr);
	my $holder = wire($node, "select pg_advisory_lock(hashtext('hms:$point'))");

	publish($other, $s, 'first');
	is(read_all($s), 'first', "$point: a first message");
	$pub->values_of("set hotmesh_stream.debug_points = '$point'");
	$pub->send_query("select hotmesh_stream.publish('$s', '\"stalled\"')");
	wait_debug_point($node, $point, "$point: a publisher stalls");

	# Three hours later the next one publishes, and the old partition's time is over.
	at($other, '3h');
	publish($other, $s, 'later');
	at($reader, '3h');
	maintain('3h') for 1 .. 2;
	is(read_all($s), 'later', "$point: the reader passes the stalled id");
	$holder->hang_up;
	$pub->finish;
	$pub->values_of('reset hotmesh_stream.debug_points');
	maintain('3h') for 1 .. 2;
	cmp_ok(sealed_partitions($s), '>=', 1, "$point: a partition is sealed");
	is(read_all($s), 'stalled', "$point: a publisher that stalled is read after its partition was sealed");
	is(read_all($s), '', "$point: once");
	is(sql($node, 'select count(*) from ' . log_of($s)), '3', "$point: and is in the log");
	at($_, 0) foreach ($other, $reader);
}

# --- the clock steps back -----------------------------------------------------------------------

{
	my $s = fresh('clock');
	my $log = log_of($s);

	publish($pub, $s, 'now');
	at($pub, '3h');
	publish($pub, $s, 'ahead');
	maintain('3h') for 1 .. 2;
	cmp_ok(sealed_partitions($s), '>=', 1, 'clock: a partition is sealed');
	at($pub, 0);
	publish($pub, $s, 'back');
	at($pub, '-400d');
	publish($pub, $s, 'far back');
	is($pub->value_of(qq{
			select count(*) from $log l where l.payload::text like '%back%' and l.published_at <
			(select max(upper_bound) from hotmesh_stream.log_partition p join hotmesh_stream.namespace n using (namespace_id) where n.name = '$s')}),
		'0', 'clock stepped back: nothing is added to a sealed partition');
	is(read_all($s), 'now ahead back far back', 'clock stepped back: every message is read, in order of id');
	maintain($_) for ('0', '-400d', '3h');
	at($pub, '400d');
	publish($pub, $s, 'year ahead');
	at($pub, 0);
	publish($pub, $s, 'today');
	is(read_all($s), 'year ahead today', 'clock a year ahead and back: read all the same');
	maintain('0');
	is(read_all($s), '', 'and never again');
	is(sql($node, "select count(*) from $log"), '6', 'retention dropped nothing for it');
}

# --- the runway is gone -------------------------------------------------------------------------

{
	my $s = fresh('runway', q{partition_interval => '1 day', premake => 2, retention => '1 year'});
	my $before = partitions($s);

	at($_, '30d') foreach ($pub, $reader);
	publish($pub, $s, $_) foreach ('a', 'b');
	is(rows_in_default($s), '2', 'runway gone: a publish lands in the default partition');
	is(read_all($s), 'a b', 'and is read');
	publish($pub, $s, 'c');
	ok((grep { /partition|default|runway/ } map { join '|', map { $_ // '' } @$_ }
			$reader->query('select * from hotmesh_stream.health() where not ok')),
		'health() says so');
	maintain('30d') for 1 .. 3;
	is(rows_in_default($s), '0', 'healed: the default partition is empty again');
	cmp_ok(partitions($s), '>', $before, 'healed: new partitions exist');
	publish($pub, $s, 'd');
	is(rows_in_default($s), '0', 'healed: the next publish has its partition');
	is(read_all($s), 'c d', 'healed: nothing is lost or read twice');
	is(sql($node, 'select count(*) from ' . log_of($s)), '4', 'healed: the log is whole');

	# Leased messages whose rows move are still found for redelivery.
	at($pub, '90d');
	publish($pub, $s, $_) foreach ('x', 'y');
	is(read_all($s), 'x y', 'messages in the default partition are leased');
	maintain('90d') for 1 .. 3;
	$reader->values_of("select hotmesh_stream.extend('$s', 'g', (select array_agg(d.id::text) from hotmesh_stream.delivery d
		join hotmesh_stream.consumer_group c using (incarnation) join hotmesh_stream.stream using (stream_id)
		where stream.name = '$s' and d.lease_until is not null), '0')");
	is(read_all($s), 'a b c d x y', 'redelivery finds the payload after its row was moved');
	at($_, 0) foreach ($pub, $reader);
}

# --- an open publisher in the default partition delays healing and nothing else -----------------

{
	my $s = fresh('heal_open', q{partition_interval => '1 day', premake => 1, retention => '1 year'});

	at($_, '30d') foreach ($pub, $other, $reader);
	$pub->values_of('begin');
	publish($pub, $s, 'open');
	publish($other, $s, 'closed');
	maintain('30d') for 1 .. 2;
	publish($other, $s, 'next');
	is(read_all($s), 'closed next', 'an open publisher in the default partition: others go on');
	$pub->values_of('commit');
	maintain('30d') for 1 .. 2;
	is(rows_in_default($s), '0', 'and its row is healed when it has committed');
	is(read_all($s), 'open', 'and read');
	at($_, 0) foreach ($pub, $other, $reader);
}

# --- time zones of sessions ---------------------------------------------------------------------

{
	my $s = fresh('zone', q{partition_interval => '1 day', premake => 2, retention => '1 year'});
	my @zones = ('Pacific/Kiritimati', 'Pacific/Pago_Pago', 'Asia/Kolkata', 'Europe/Berlin');

	foreach my $i (0 .. $#zones)
	{
		$_->values_of("set timezone = '$zones[$i]'") foreach ($pub, $keeper);
		at($pub, ($i * 2) . 'd');
		maintain(($i * 2) . 'd') for 1 .. 2;
		publish($pub, $s, $i);
	}
	is(rows_in_default($s), '0', 'time zone of the session: no row strays into the default partition');
	is(read_all($s), '0 1 2 3', 'and all are read');
	is(sql($node, qq{
			select count(*) from pg_inherits i join pg_class c on c.oid = inhrelid
			where inhparent = '@{[ log_of($s) ]}'::regclass
			  and pg_get_expr(relpartbound, c.oid) not like '%00:00:00+00%' and relname not like '%default'}),
		'0', 'partitions begin at midnight UTC');
	$_->values_of('reset timezone') foreach ($pub, $keeper);
	at($pub, 0);
}

# --- retention ----------------------------------------------------------------------------------

sub fill_days
{
	my ($stream, @days) = @_;

	foreach my $day (@days)
	{
		at($pub, "${day}d");
		maintain("${day}d") for 1 .. 2;
		publish($pub, $stream, "day$day");
	}
	at($pub, 0);
	return;
}

{
	my $s = fresh('retention', q{partition_interval => '1 day', premake => 2, retention => '3 days'});
	my $log = log_of($s);

	at($reader, '10d');
	fill_days($s, 0 .. 10);
	is(sql($node, "select count(*) from $log"), '11', 'retention: a partition with unread messages stays');
	is(join(' ', $reader->values_of("select payload #>> '{}' from hotmesh_stream.read('$s', 'g', 'c', 4)")),
		'day0 day1 day2 day3', 'four messages are leased');
	maintain('10d') for 1 .. 3;
	is(sql($node, "select count(*) from $log"), '11', 'retention: so does one with leased messages');
	is($reader->value_of(qq{select hotmesh_stream.ack('$s', 'g', variadic array_agg(id::text)) from $log where id <= (
			select min(id) + 1 from $log)}), '2', 'two are acked');
	for (1 .. 20) { maintain('10d') }
	is(sql($node, "select string_agg(payload #>> '{}', ' ' order by id) from $log"), join(' ', map { "day$_" } 2 .. 10),
		'retention: what is settled goes, and no more');
	my $open = wire($node);

	# An open publisher of unknown outcome may owe something anywhere below.
	$reader->values_of(qq{select hotmesh_stream.ack('$s', 'g', variadic array_agg(id::text)) from $log});
	$reader->values_of(qq{select hotmesh_stream.ack('$s', 'g', receipt) from hotmesh_stream.read('$s', 'g', 'c', 100)});
	for (1 .. 20) { maintain('10d') }
	my $left = sql($node, "select count(*) from $log");

	cmp_ok($left, '<=', 5, 'retention: all settled partitions older than it go');
	cmp_ok($left, '>=', 3, 'retention: younger ones stay');
	publish($pub, $s, 'end');
	is(read_all($s), 'end', 'and the stream goes on');
	$open->hang_up;
	at($_, 0) foreach ($pub, $reader);
}

{
	my $s = fresh('hard', q{partition_interval => '1 day', premake => 2, retention => '3 days', retention_hard => '6 days'});
	my $log = log_of($s);

	at($reader, '0');
	fill_days($s, 0);
	is(read_all($s), 'day0', 'a message is leased');
	fill_days($s, 1 .. 12);
	for (1 .. 30) { maintain('12d') }
	my $left = sql($node, "select min((payload #>> '{}')) || ' ' || count(*) from $log");

	cmp_ok(sql($node, "select count(*) from $log"), '<=', 8, 'retention_hard drops what is owed');
	cmp_ok(sql($node, "select count(*) from $log"), '>=', 6, 'and nothing younger');
	at($reader, '14d');
	my @read = split / /, read_all($s);

	is($read[-1], 'day12', 'the reader goes on behind what was dropped');
	is(scalar @read, sql($node, "select count(*) from $log"), 'and gets all that is left, once');
	is(read_all($s), '', 'a leased message that was dropped does not come');
	cmp_ok(sql($node, "select coalesce(sum(dropped_by_retention), 0) from hotmesh_stream.stat_stream where stream = '$s'"),
		'>=', 1, 'stat_stream counts what was dropped unread')
	  if sql($node, q{select count(*) from information_schema.columns where table_name = 'stat_stream' and column_name = 'dropped_by_retention'});
	at($_, 0) foreach ($pub, $reader);
}

# The clock a year ahead drops nothing: the newest message says what time it is.
{
	my $s = fresh('ahead', q{partition_interval => '1 day', premake => 2, retention => '3 days', retention_hard => '6 days'});

	publish($pub, $s, 'kept');
	for (1 .. 5) { maintain('365d') }
	is(read_all($s), 'kept', 'a clock a year ahead drops nothing');
}

# --- progress beside an endless chain of open transactions --------------------------------------

{
	my $s = fresh('chain', q{partition_interval => '1 day', premake => 2, retention => '2 days'});
	my $log = log_of($s);
	my @chain;

	fill_days($s, 0 .. 6);
	at($reader, '6d');
	read_all($s);
	$reader->values_of(qq{select hotmesh_stream.ack('$s', 'g', variadic array_agg(id::text)) from $log});
	my $rows = sql($node, "select count(*) from $log");

	# At any time one publisher and one reader of transaction mode are open, old ones end after new ones began.
	for my $i (1 .. 12)
	{
		my $open = wire($node, "set $hour = '6d'; begin");

		publish($open, $s, "chain$i");
		$open->values_of("select * from hotmesh_stream.read('$s', 'g', 'c$i', 1)");
		push @chain, $open;
		if (@chain > 2)
		{
			my $oldest = shift @chain;

			$oldest->values_of('commit');
			$oldest->hang_up;
		}
		maintain('6d');
		maintain('9d') if $i > 6;
	}
	cmp_ok(sql($node, "select count(*) from $log where payload #>> '{}' like 'day%'"), '<', $rows - 2,
		'retention makes progress beside a chain of open publishers and readers');
	at($keeper, 0);
	cmp_ok(sql($node, "select max(substring(pg_get_expr(relpartbound, oid) from 'TO \\(''(.*?)''')::timestamptz) from pg_class
			where oid in (select inhrelid from pg_inherits where inhparent = '$log'::regclass)") gt
			sql($node, "select (now() + interval '10 days')::text") ? 1 : 0, '==', 1, 'and so does the runway');
	$_->values_of('commit') foreach @chain;
	$_->hang_up foreach @chain;
}

# --- no publisher waits behind partition DDL ----------------------------------------------------

{
	my $s = fresh('no_queue', q{partition_interval => '1 day', premake => 2, retention => '1 day'});
	my $log = log_of($s);

	fill_days($s, 0 .. 5);
	read_all($s);
	at($reader, '6d');
	read_all($s);
	$reader->values_of(qq{select hotmesh_stream.ack('$s', 'g', variadic array_agg(id::text)) from $log});

	# Somebody reads the whole log for long: neither may DDL wait for it, nor a publisher behind the DDL.
	my $dump = wire($node, "begin; select count(*) from $log");

	at($keeper, '8d');
	at($pub, '8d');
	$keeper->send_query('call hotmesh_stream.maintain()');

	my $slowest = 0;

	for (1 .. 40)
	{
		my $started = Time::HiRes::time();

		publish($pub, $s, 'p');
		my $took = Time::HiRes::time() - $started;
		$slowest = $took if $took > $slowest;
		last if $keeper->readable(0.02);
	}
	cmp_ok($slowest, '<', 1.0, 'no publisher waits behind a DROP for more than the lock timeout');
	ok($keeper->readable(20), 'maintain() gives up on what is locked');
	$keeper->finish;
	$dump->values_of('commit');
	$dump->hang_up;
	at($_, 0) foreach ($pub, $reader, $keeper);
}

# --- the housekeeper is killed in the middle of a step ------------------------------------------

$_->hang_up foreach ($pub, $other, $reader, $keeper);
$node->stop;
done_testing();
