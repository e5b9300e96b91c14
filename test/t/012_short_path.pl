# Promise: however a client reads, and even if it stops reading, other readers of the group go on
# within advance_wait and no message is lost.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use Test::More;
use Time::HiRes qw(time);

my $slack = 2;		# seconds above advance_wait: a busy machine, not a bound of ours
my $node = proof_node('short_path', conf => "hotmesh_stream.advance_wait = '1s'\n");
my $other = wire($node);

sql($node, $ledger_sql);

sub fresh
{
	my ($stream, $messages, $bytes) = @_;

	$other->values_of("select hotmesh_stream.create_stream('$stream')");
	$other->values_of("select hotmesh_stream.create_group('$stream', 'g', ack_wait => '1s')");

	# An advancer that has just started answers nobody yet, and readers help themselves.
	wait_for($node, q{select ok from hotmesh_stream.health() where check_name = 'workers'},
		'the advancer runs');
	$other->values_of(qq{
		insert into published select '$stream', hotmesh_stream.publish('$stream', to_json(repeat('x', $bytes)))
		from generate_series(1, $messages)});
	return $stream;
}

# While somebody is in the middle of a read: a message published now reaches another reader in time.
sub others_go_on
{
	my ($stream, $fact) = @_;
	my $id = $other->value_of(
		"insert into published select '$stream', hotmesh_stream.publish('$stream', '0') returning id");
	my $started = time();
	my %got;

	# What the stuck reader left may come first; a long lease, or it comes again and again.
	until ($got{$id} || time() - $started > 1 + $slack)
	{
		$got{$_} = 1 foreach $other->values_of(
			"select id from hotmesh_stream.read('$stream', 'g', 'other', 100, ack_wait => '1h')");
	}
	$other->values_of("select hotmesh_stream.drop_consumer('$stream', 'g', 'other')");
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($got{$id}, $fact);
}

sub nothing_lost
{
	my ($stream) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	drain($node, $stream, 'g');
	return ledger_is_settled($node, $stream, 'g');
}

# A client that stops reading, with 10 MB on the way to it.
{
	my $s = fresh('stopped', 20, 500_000);
	my $stopped = wire($node);

	$stopped->send_query("select * from hotmesh_stream.read('$s', 'g', 'stopped', 20, ack_wait => '1h')");
	wait_for($node, q{select wait_event = 'ClientWrite' from pg_stat_activity where pid = } . $stopped->pid,
		'a client stopped in the middle of 10 MB');
	others_go_on($s, 'stopped client: others go on');

	my @rows = $stopped->rows_until(qr/Z/);

	cmp_ok(scalar @rows, '<=', 20, 'it gets no more than it asked for');
	cmp_ok(scalar @rows, '>=', 1, 'it gets its rows when it reads on');
	is($stopped->value_of("select count(*) from hotmesh_stream.delivery where consumer = 'stopped'"),
		scalar @rows, 'and holds a lease on those only');
	my $receipts = join ',', map { "'$_->[1]'" } @rows;

	is(scalar $stopped->values_of(qq{
			insert into settled select '$s', 'g', split_part(r, ':', 1)::bigint
			from unnest(array[$receipts]) r where hotmesh_stream.ack('$s', 'g', r) = 1 returning id}),
		scalar @rows, 'its receipts are good');
	$stopped->hang_up;
	nothing_lost($s);
}

# The same client dies instead.
{
	my $s = fresh('stopped_dead', 20, 500_000);
	my $stopped = wire($node);

	$stopped->send_query("select * from hotmesh_stream.read('$s', 'g', 'stopped', 20)");
	wait_for($node, q{select wait_event = 'ClientWrite' from pg_stat_activity where pid = } . $stopped->pid,
		'a client stopped in the middle of 10 MB');
	$stopped->hang_up;
	nothing_lost($s);
}

# Executes one after the other, with the Sync far away.
{
	my $s = fresh('pipeline', 30, 10);
	my $pipeline = wire($node);
	my @rows;

	$pipeline->parse('read', "select id from hotmesh_stream.read('$s', 'g', 'pipeline', 3)");
	for (1 .. 3)
	{
		$pipeline->bind('', 'read');
		$pipeline->execute('');
		$pipeline->flush;
		push @rows, $pipeline->rows_until(qr/C/);
		others_go_on($s, "pipeline without Sync, Execute $_: others go on");
	}
	cmp_ok(scalar @rows, '>', 0, 'the pipeline gets messages');
	$pipeline->sync;
	$pipeline->rows_until(qr/Z/);
	is($pipeline->error, '', 'and ends well');
	nothing_lost($s);

	# And with an error that undoes it.
	$s = fresh('pipeline_error', 30, 10);
	$pipeline->parse('', "select id from hotmesh_stream.read('$s', 'g', 'pipeline', 3)");
	$pipeline->bind('', '');
	$pipeline->execute('');
	$pipeline->execute('');
	$pipeline->parse('', 'select 1/0');
	$pipeline->bind('', '');
	$pipeline->execute('');
	$pipeline->sync;
	$pipeline->rows_until(qr/Z/);
	others_go_on($s, 'a failed pipeline: others go on');
	nothing_lost($s);
	$pipeline->hang_up;
}

# A portal that is suspended in the middle of its rows.
{
	my $s = fresh('suspended', 30, 10);
	my $portal = wire($node);

	$portal->parse('', "select id from hotmesh_stream.read('$s', 'g', 'portal', 10)");
	$portal->bind('p', '');
	$portal->execute('p', 3);
	$portal->flush;
	is(scalar $portal->rows_until(qr/s/), 3, 'a portal suspended after three rows');
	others_go_on($s, 'suspended portal: others go on');
	$portal->execute('p', 0);
	$portal->sync;
	is(scalar $portal->rows_until(qr/Z/), 7, 'and the rest when it goes on');
	nothing_lost($s);

	# It hangs up instead.
	$s = fresh('suspended_dead', 30, 10);
	$portal->parse('', "select id from hotmesh_stream.read('$s', 'g', 'portal', 10)");
	$portal->bind('p', '');
	$portal->execute('p', 3);
	$portal->flush;
	$portal->rows_until(qr/s/);
	$portal->hang_up;
	nothing_lost($s);
}

# LIMIT above read, and rows that are thrown away.
{
	my $s = fresh('limit', 30, 10);
	my $client = wire($node);

	is(scalar $client->values_of("select id from hotmesh_stream.read('$s', 'g', 'limit', 10) limit 3"),
		3, 'LIMIT above read');
	others_go_on($s, 'LIMIT: others go on');
	is(scalar $client->values_of("select id from hotmesh_stream.read('$s', 'g', 'limit', 10) where false"),
		0, 'a false condition above read');
	nothing_lost($s);

	$s = fresh('explain', 30, 10);
	like(join("\n", $client->values_of("explain analyze select * from hotmesh_stream.read('$s', 'g', 'explain', 10)")),
		qr/Function Scan/, 'EXPLAIN ANALYZE');
	others_go_on($s, 'EXPLAIN ANALYZE: others go on');
	nothing_lost($s);
	$client->hang_up;
}

# Cursors: WITH HOLD, and one that stays open in its transaction.
{
	my $s = fresh('hold', 30, 10);
	my $client = wire($node);

	$client->values_of("declare held cursor with hold for select id from hotmesh_stream.read('$s', 'g', 'hold', 10)");
	others_go_on($s, 'cursor WITH HOLD: others go on');
	is(scalar $client->values_of('fetch 4 from held'), 4, 'the cursor returns rows');
	others_go_on($s, 'and still do');
	$client->values_of('close held');
	nothing_lost($s);

	$s = fresh('cursor', 30, 10);
	$client->values_of("begin; declare c cursor for select id from hotmesh_stream.read('$s', 'g', 'cursor', 10)");
	is(scalar $client->values_of('fetch 4 from c'), 4, 'an open cursor returns rows');
	others_go_on($s, 'open cursor: others go on');
	$client->values_of('rollback');
	nothing_lost($s);
	$client->hang_up;
}

# read in loops of PL/pgSQL, in functions, CTEs, joins and INSERT ... SELECT, in a transaction that stays open.
{
	my $client = wire($node);
	my %statement = (
		loop => q{do $$ declare r record; begin
			for i in 1..3 loop
			    for r in select * from hotmesh_stream.read('%1$s', 'g', 'c', 2) loop perform r.id; end loop;
			end loop; end $$},
		perform => q{do $$ begin perform hotmesh_stream.read('%1$s', 'g', 'c', 5); end $$},
		projectset => q{select hotmesh_stream.read('%1$s', 'g', 'c', 5)},
		cte => q{with r as materialized (select * from hotmesh_stream.read('%1$s', 'g', 'c', 5)) select count(*) from r},
		join => q{select * from hotmesh_stream.read('%1$s', 'g', 'c', 5) join pg_class on relname = 'pg_class'},
		insert => q{insert into bucket select id from hotmesh_stream.read('%1$s', 'g', 'c', 5)},
		bare => q{select id from hotmesh_stream.read('%1$s', 'g', 'c', 5)});

	$client->values_of('create table bucket (id bigint)');
	foreach my $name (sort keys %statement)
	{
		my $s = fresh("in_$name", 30, 10);

		$client->values_of('begin');
		$client->values_of(sprintf $statement{$name}, $s);
		others_go_on($s, "$name in an open transaction: others go on");
		$client->values_of($name lt 'i' ? 'rollback' : 'commit');
		nothing_lost($s);
	}

	# Slow work per row in one statement holds no cursor either.
	my $s = fresh('slow', 30, 10);

	$client->send_query("select id, pg_sleep(2) from hotmesh_stream.read('$s', 'g', 'slow', 3)");
	others_go_on($s, 'pg_sleep beside read: others go on');
	$client->finish;
	nothing_lost($s);
	$client->hang_up;
}

$other->hang_up;
$node->stop;
done_testing();
