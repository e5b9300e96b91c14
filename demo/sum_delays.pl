#!/usr/bin/perl
#
# sum_delays NAME: a consumer in transaction mode
#
# Reads, adds the delays to table delay_by_origin and acks, all in one transaction:
# with respect to the database every flight counts exactly once.  Ends when the
# publisher has finished (table finished has a row) and the group owes nothing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Psql;

my $consumer = Psql::literal($ARGV[0] // die "usage: sum_delays NAME\n");
my $session = Psql->new;
my $work = <<"END";
with flight as materialized (
    select receipt, payload
    from hotmesh_stream.read('flights', 'delays', $consumer, max_messages => 100, wait => '500ms')
), added as (
    insert into delay_by_origin as d (origin, flights, delay)
    select payload ->> 'origin', count(*), sum((payload ->> 'delay')::integer)
    from flight
    group by 1
    order by 1
    on conflict (origin) do update
    set flights = d.flights + excluded.flights, delay = d.delay + excluded.delay
)
select hotmesh_stream.ack('flights', 'delays', variadic array_agg(receipt))
from flight
having count(*) > 0
END
my $total = 0;

while (1)
{
	$session->query('begin');
	my $acked = $session->value($work);
	$session->query('commit');
	if (defined $acked)
	{
		$total += $acked;
		next;
	}
	last if $session->value(<<'END') eq 't';
select exists (select from finished) and lag + ready + leased + delayed = 0
from hotmesh_stream.group_info('flights', 'delays')
END
}
$session->close;
print "  consumer $ARGV[0] of group delays summed $total flights\n";
