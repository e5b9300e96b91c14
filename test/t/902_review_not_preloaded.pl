# Promise: a server that no longer preloads the library says so, and the extension can be dropped
# there and created again later.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshTest;
use Test::More;

my $node = new_node('not_preloaded');

sql($node, q{select hotmesh_stream.create_stream('s')});
sql($node, q{select hotmesh_stream.create_group('s', 'g')});
sql($node, q{select hotmesh_stream.publish('s', '1')});

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
fails_with($node, q{select hotmesh_stream.publish('s', '2')}, '55000', 'publish() is refused');
fails_with($node, q{select * from hotmesh_stream.read('s', 'g', 'c')}, '55000', 'and read()');
fails_with($node, q{call hotmesh_stream.maintain()}, '55000', 'and maintain()');
is(sql($node, q{select check_name from hotmesh_stream.health() where not ok}), 'preload', 'health() says why');
succeeds($node, 'drop extension hotmesh_stream cascade', 'the extension can be dropped');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'hotmesh_stream'\n");
$node->restart;
sql($node, 'create extension hotmesh_stream');
is(sql($node, q{select hotmesh_stream.create_stream('s')}), 't', 'and created again');
sql($node, q{select hotmesh_stream.create_group('s', 'g')});
sql($node, q{select hotmesh_stream.publish('s', '"again"')});
is(sql($node, q{select payload from hotmesh_stream.read('s', 'g', 'c')}), '"again"', 'it works');
is(sql($node, q{select count(*) from part_config}), '1', 'pg_partman knows one log');

$node->stop;
done_testing();
