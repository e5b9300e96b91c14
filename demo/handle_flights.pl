#!/usr/bin/perl
#
# handle_flights NAME [stall]: a consumer in lease mode
#
# Takes up to 10 flights under a lease, handles each in a transaction of its own
# step, and acks them together.  A flight to Washington (DCA) cannot be handled until
# table repaired has a row: it is nacked with the reason.  With "stall" it stops
# for ever while it holds its third batch, and says so in table stalled.  Ends when
# the publisher has finished and the group owes nothing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Psql;

my ($name, $stall) = @ARGV;
die "usage: handle_flights NAME [stall]\n" unless defined $name;
my $consumer = Psql::literal($name);
my $session = Psql->new;
my $repaired = $session->value('select exists (select from repaired)') eq 't';
my ($handled, $refused, $again, $batches) = (0, 0, 0, 0);

while (1)
{
	my @flights = $session->query(<<"END");
select id, receipt, delivery_count, payload ->> 'destination', payload ->> 'delay'
from hotmesh_stream.read('flights', 'handling', $consumer, max_messages => 10, wait => '500ms')
END

	if (!@flights)
	{
		last if $session->value(<<'END') eq 't';
select exists (select from finished) and lag + ready + leased + delayed = 0
from hotmesh_stream.group_info('flights', 'handling')
END
		next;
	}
	if (defined $stall && ++$batches == 3)
	{
		$session->query(
			"insert into stalled values ($$, " . scalar(@flights) . ')');
		sleep 3600;
	}
	handle(@flights);
}
$session->close;
print "  consumer $name of group handling: $handled handled, $again of them delivered before,",
  " $refused attempts refused\n";

sub handle
{
	my (@flights) = @_;
	my (@done, @bad);

	foreach my $flight (@flights)
	{
		my ($id, $receipt, $delivery_count, $destination, $delay) = @$flight;

		if ($destination eq 'DCA' && !$repaired)
		{
			push @bad, Psql::literal($receipt);
			next;
		}
		# At least once: a flight that a dead consumer has handled already stays as it is.
		$session->query("insert into handled values ($id, $delay) on conflict (id) do nothing");
		push @done, Psql::literal($receipt);
		$again++ if $delivery_count > 1;
	}
	$handled += $session->value(
		"select hotmesh_stream.ack('flights', 'handling', " . join(', ', @done) . ')')
	  if @done;
	$refused += $session->value(
		"select hotmesh_stream.nack('flights', 'handling', array["
		  . join(', ', @bad)
		  . q{], error => '{"reason": "no gate at DCA"}')})
	  if @bad;
	return;
}
