#!/usr/bin/perl
#
# latency COUNT: how long a blocking read takes to deliver a committed message
#
# One session blocks in read(wait => ...), another publishes one message at a time
# once the reader sleeps.  Prints p50 and p99 of the time from sending the publish
# and from its reply (the commit) to the message's arrival at the reader; the second
# is negative when the message arrives first.  Both pass through psql and this
# program, on one machine.

use strict;
use warnings;

use FindBin;
use IO::Select;
use Time::HiRes qw(time);
use lib "$FindBin::Bin/../demo/lib";
use Psql;

my $count = $ARGV[0] // 200;
my ($reader, $publisher, $watcher) = map { Psql->new } 1 .. 3;
my (@from_send, @from_reply);

$watcher->query("select hotmesh_stream.create_stream('latency')");
$watcher->query("select hotmesh_stream.create_group('latency', 'g')");
foreach my $round (1 .. $count)
{
	$reader->send("select hotmesh_stream.ack('latency', 'g', variadic array_agg(receipt))"
		  . " from hotmesh_stream.read('latency', 'g', 'c', wait => '20s')");
	1 until $watcher->value("select waiting from hotmesh_stream.group_info('latency', 'g')") > 0;

	my $sent_at = time;
	$publisher->send("select hotmesh_stream.publish('latency', '{}')");
	my %arrived_at = arrival_times($reader, $publisher);
	push @from_send, $arrived_at{$reader} - $sent_at;
	push @from_reply, $arrived_at{$reader} - $arrived_at{$publisher};
}
$watcher->query("select hotmesh_stream.drop_stream('latency')");
report('from sending the publish', @from_send);
report('from its reply', @from_reply);

sub arrival_times
{
	my (@sessions) = @_;
	my %session_of = map { $_->{from} => $_ } @sessions;
	my $select = IO::Select->new(map { $_->{from} } @sessions);
	my %arrived_at;

	while (my @ready = $select->can_read)
	{
		my $now = time;

		foreach my $handle (@ready)
		{
			$arrived_at{ $session_of{$handle} } = $now;
			$session_of{$handle}->receive;
			$select->remove($handle);
		}
		last if keys %arrived_at == @sessions;
	}
	return %arrived_at;
}

sub report
{
	my ($what, @seconds) = @_;

	@seconds = sort { $a <=> $b } @seconds;
	printf "%s: p50 %.2f ms, p99 %.2f ms (%d messages)\n",
	  $what, 1000 * $seconds[ int(0.5 * $#seconds) ], 1000 * $seconds[ int(0.99 * $#seconds) ],
	  scalar @seconds;
	return;
}
