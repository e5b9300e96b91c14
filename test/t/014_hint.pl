# Promise: a held snapshot does not make a claim walk more and more dead index entries, and a
# low-water hint that is too high delays a message but never hides it.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use Test::More;

my $node = proof_node('hint', conf => "autovacuum = on\n");

need_debug_points($node);
sql($node, q{
	select hotmesh_stream.create_stream('s');
	select hotmesh_stream.create_group('s', 'g', ack_wait => '1h');
});

my $incarnation = sql($node, q{select incarnation from hotmesh_stream.consumer_group where name = 'g'});
my $client = wire($node);

# Index entries that one round of publish, read and ack by ten visits.
sub rounds
{
	my ($rounds, $read) = @_;
	my $before = $client->value_of('select scan_entries()');

	for (1 .. $rounds)
	{
		$client->values_of(q{select hotmesh_stream.publish_many('s', array['1','2','3','4','5','6','7','8','9','0']::json[])});
		my $acked = $client->value_of($read);

		fail("$acked of ten acks") unless $acked eq '10';
	}
	return ($client->value_of('select scan_entries()') - $before) / $rounds;
}

my $read_and_ack = q{select hotmesh_stream.ack('s', 'g', variadic array_agg(receipt)) from hotmesh_stream.read('s', 'g', 'c', 10)};

# --- a held snapshot ----------------------------------------------------------------------------

my $held = wire($node, 'begin isolation level repeatable read; select count(*) from hotmesh_stream.delivery');
my $rounds = scaled(400, 4000);
my $early = rounds($rounds / 4, $read_and_ack);

rounds($rounds, $read_and_ack);

my $late = rounds($rounds / 4, $read_and_ack);

note("index entries per round: $early, then $late");
cmp_ok($late, '<', 1.5 * $early + 20, 'held snapshot: index entries visited per claim stay bounded');

# With messages that were nacked and so were due more than once.
sub nack_rounds
{
	my ($n) = @_;
	my $before = $client->value_of('select scan_entries()');

	for (1 .. $n)
	{
		$client->values_of(q{select hotmesh_stream.publish('s', '1')});
		$client->values_of(q{select hotmesh_stream.nack('s', 'g', array_agg(receipt)) from hotmesh_stream.read('s', 'g', 'c', 10)});
		$client->values_of($read_and_ack);
	}
	return ($client->value_of('select scan_entries()') - $before) / $n;
}

$early = nack_rounds($rounds / 4);
nack_rounds($rounds);
$late = nack_rounds($rounds / 4);
note("with nacks: $early, then $late");
cmp_ok($late, '<', 1.5 * $early + 20, 'held snapshot with redeliveries: so do they');
$held->hang_up;

# --- a hint that is too high --------------------------------------------------------------------

sub hidden_message_comes
{
	my ($fact) = @_;
	my $id = $client->value_of(q{select hotmesh_stream.publish('s', '"hidden"')});

	$client->values_of(q{select hotmesh_stream.nack('s', 'g', array_agg(receipt)) from hotmesh_stream.read('s', 'g', 'c', 10)});
	$client->values_of("select set_hint($incarnation, 0, clock_timestamp() + interval '1 year')");

	my $got = '';

	wait_until(sub {
			$got = join ' ', $client->values_of(
				q{select r.id from hotmesh_stream.read('s', 'g', 'c', 10) r where hotmesh_stream.ack('s', 'g', r.receipt) = 1});
			return $got ne '';
	}, "$fact: something comes");
	return is($got, $id, "$fact: it is the hidden message");
}

hidden_message_comes('hint too high, workers on');
sql($node, 'alter system set hotmesh_stream.workers = off');
sql($node, 'select pg_reload_conf()');
wait_for($node, q{select count(*) = 0 from pg_stat_activity where backend_type like 'hotmesh_stream advancer%'}, 'the advancer ends');
hidden_message_comes('hint too high, workers off');

$client->hang_up;
$node->stop;
done_testing();
