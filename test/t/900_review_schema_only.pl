# Promise: a database made from a schema-only dump can be used at once.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('schema_only');
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';

sql($node, q{select hotmesh_stream.create_stream('s')});
sql($node, q{select hotmesh_stream.create_namespace('n', 'hourly')});
sql($node, q{select hotmesh_stream.publish('s', '1')});
command_ok([ 'pg_dump', '-s', '-f', $dump, $node->connstr('postgres') ], 'pg_dump -s');

sql($node, 'create database bare');
command_ok([ 'psql', '-X', '-1', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('bare'), '-f', $dump ], 'psql -1');
is(sql($node, q{select count(*) from hotmesh_stream.stream}, 'bare'), '0', 'streams are not carried');
is(sql($node, q{select hotmesh_stream.create_stream('s')}, 'bare'), 't', 'a stream can be created');
sql($node, q{select hotmesh_stream.create_group('s', 'g')}, 'bare');
sql($node, q{select hotmesh_stream.publish('s', '"fresh"')}, 'bare');
is(sql($node, q{select payload from hotmesh_stream.read('s', 'g', 'c')}, 'bare'), '"fresh"', 'and used');
sql($node, q{call hotmesh_stream.maintain()}, 'bare');

$node->stop;
done_testing();
