# Promise: workers follow databases and extensions as they come and go, and stand in nobody's way.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use PostgreSQL::Test::Utils;
use Test::More;

# --- not preloaded ------------------------------------------------------------------------------

my $bare = new_node('bare', no_start => 1, conf => "shared_preload_libraries = ''\n");

$bare->start;
my ($state, $stderr) = sqlstate($bare, 'create extension hotmesh_stream cascade');

is($state, '55000', 'without shared_preload_libraries CREATE EXTENSION is refused');
like($stderr, qr/HINT:.*shared_preload_libraries/s, 'with a hint');
$bare->stop;

# --- workers per database -----------------------------------------------------------------------

my $node = proof_node('databases', conf => q{
hotmesh_stream.restart_delay_min = '100ms'
hotmesh_stream.restart_delay_max = '2s'
hotmesh_stream.max_databases = 16
});

sub advancers
{
	my ($db) = @_;

	return qq{select count(*) from pg_stat_activity where backend_type = 'hotmesh_stream advancer' and datname = '$db'};
}

wait_for($node, advancers('postgres'), 'CREATE EXTENSION starts the advancer', '1');
is(sql($node, q{select count(*) from pg_stat_activity where backend_type = 'hotmesh_stream launcher'}), '1', 'one launcher runs');

sql($node, q{
	select hotmesh_stream.create_stream('s');
	select hotmesh_stream.create_group('s', 'g');
	select hotmesh_stream.publish_many('s', array['1', '2', '3']::json[]);
});
is(sql($node, q{select count(*) from hotmesh_stream.read('s', 'g', 'c', 1)}), '1', 'one message is leased');

# A worker that dies comes back, later and later, and never stops a reader.
my $killed = '';

for my $i (1 .. 3)
{
	wait_for($node, advancers('postgres'), "the advancer runs, $i", '1');
	my $pid = sql($node, q{select pid from pg_stat_activity where backend_type = 'hotmesh_stream advancer' and datname = 'postgres'});

	ok($pid ne $killed, "it is a new one, $i");
	sql($node, "select pg_terminate_backend($pid)");
	$killed = $pid;
	is( sql($node, q{begin; select payload from hotmesh_stream.read('s', 'g', 'c', 1, ack_wait => '0.001s'); rollback}) =~ /\d/ ? 'got' : 'none',
		'got', "a reader of transaction mode needs no advancer, $i");
}
wait_for($node, advancers('postgres'), 'the advancer is back', '1');
sql($node, 'alter system set hotmesh_stream.workers = off');
sql($node, 'select pg_reload_conf()');
wait_for($node, advancers('postgres'), 'workers = off ends it', '0');
sql($node, 'alter system reset hotmesh_stream.workers');
sql($node, 'select pg_reload_conf()');
wait_for($node, advancers('postgres'), 'and on starts it', '1');

# CREATE DATABASE ... TEMPLATE with running workers.
my ($tstate, $terr) = sqlstate($node, 'create database twin template postgres');

is($tstate, '', 'CREATE DATABASE TEMPLATE with running workers') || diag($terr);
wait_for($node, advancers('twin'), 'the twin has an advancer', '1');
wait_for($node, advancers('postgres'), 'the template has its own again', '1');
is(sql($node, q{select string_agg(payload::text, ' ') from hotmesh_stream.read('s', 'g', 'c', 10, ack_wait => '1h')}, 'twin') =~ s/.*(2 3).*/$1/r,
	'2 3', 'messages and positions are copied');
cmp_ok(sql($node, q{select hotmesh_stream.publish('s', '4')}, 'twin'), '>=', 4, 'and publish goes on there');
is(sql($node, q{select count(*) from hotmesh_stream.messages('s')}), '3', 'not here');

# ALTER DATABASE and DROP DATABASE count workers as users.
($tstate, $terr) = sqlstate($node, 'alter database twin rename to brother');
is($tstate, '', 'ALTER DATABASE RENAME with running workers') || diag($terr);
wait_for($node, advancers('brother'), 'the advancer comes back under the new name', '1');
($tstate, $terr) = sqlstate($node, 'drop database brother');
is($tstate, '', 'DROP DATABASE with running workers') || diag($terr);

# One that fails leaves the workers running.
my $user = wire($node);

ok(sqlstate($node, 'create database fails template postgres', 'template1') ne '', 'a template in use is refused');
$user->hang_up;
wait_for($node, advancers('postgres'), 'and its advancer is back', '1');

# A database that gets the extension in a transaction that rolls back, and then really.
$node->safe_psql('postgres', 'create database second');
$node->safe_psql('second', 'begin; create extension hotmesh_stream cascade; rollback');
create_extension($node, 'second');
wait_for($node, advancers('second'), 'a second database has its own advancer', '1');

# DROP EXTENSION refuses while logs exist; CASCADE leaves nothing.
sql($node, q{select hotmesh_stream.create_stream('x'); select hotmesh_stream.publish('x', '1')}, 'second');
ok(sqlstate($node, 'drop extension hotmesh_stream', 'second') ne '', 'DROP EXTENSION is refused while a log exists');
sql($node, 'drop extension hotmesh_stream cascade', 'second');
wait_for($node, advancers('second'), 'its advancer ends', '0');
is(sql($node, q{select count(*) from pg_class where relname like 'log\_%' or relname like '%template%log%'}, 'second'),
	'0', 'CASCADE leaves no table');
is(sql($node, q{select count(*) from } . sql($node, q{select oid::regclass from pg_class where relname = 'part_config'}, 'second'), 'second'),
	'0', 'nor configuration of pg_partman');
create_extension($node, 'second');
wait_for($node, advancers('second'), 'created again, it has an advancer again', '1');
sql($node, q{select hotmesh_stream.create_stream('x'); select hotmesh_stream.create_group('x', 'g');
	select hotmesh_stream.publish('x', '"again"')}, 'second');
is(sql($node, q{select payload from hotmesh_stream.read('x', 'g', 'c')}, 'second'), '"again"', 'and works');

ok(sqlstate($node, 'drop schema hotmesh_stream_data cascade', 'second') ne '', 'the schema of the logs goes with the extension only');

$node->restart;
wait_for($node, advancers('postgres'), 'after a restart the advancer runs', '1');
wait_for($node, advancers('second'), 'in both databases', '1');
sql($node, 'drop database second');
is(sql($node, q{select count(*) from pg_stat_activity where datname = 'second'}), '0', 'DROP DATABASE after a restart');

$node->stop;
done_testing();
