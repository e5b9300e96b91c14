# Promise: readers that sleep hold no lock, so that reindexing and dropping go on beside them.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshTest;
use Test::More;

my $node = new_node('waiting_locks');
my $asleep = q{select count(*) from pg_stat_activity where pid in (%s) and wait_event_type = 'Extension'};

sql($node, q{select hotmesh_stream.create_stream('s')});
sql($node, q{select hotmesh_stream.create_group('s', 'g')});
sql($node, q{select hotmesh_stream.publish('s', '1')});
sql($node, q{select * from hotmesh_stream.read('s', 'g', 'c', ack_wait => '1h')});

my @sessions = map { session($node) } 1 .. 3;
my $pids = join(', ', map { pid_of($_) } @sessions);

run($sessions[1], 'begin');
start($sessions[0], q{select * from hotmesh_stream.read('s', 'g', 'c', wait => '30s')});
start($sessions[1], q{select * from hotmesh_stream.read('s', 'g', 'c', wait => '30s')});
start($sessions[2], q{call hotmesh_stream.wait('s', 'g', '30s')});
wait_for($node, sprintf($asleep, $pids), 'two readers and a wait() sleep', '3');
is(sql($node, "select count(*) from pg_locks where pid in ($pids) and relation is not null"),
	'0', 'they hold no lock on a relation');
succeeds($node, q{set lock_timeout = '10s'; reindex table hotmesh_stream.delivery}, 'REINDEX goes on beside them');
succeeds($node, q{set lock_timeout = '10s'; drop extension hotmesh_stream cascade}, 'and so does DROP EXTENSION');
foreach my $i (0 .. $#sessions)
{
	my (undef, $state) = finish($sessions[$i]);

	ok($state ne '', "session $i ends with an error");
	close_session($sessions[$i]);
}
$node->stop;
done_testing();
