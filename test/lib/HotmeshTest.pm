
=pod

=head1 NAME

HotmeshTest - servers, sessions and waits for the TAP tests of hotmesh_stream

=head1 SYNOPSIS

  use HotmeshTest;

  my $node = new_node('main', conf => "hotmesh_stream.max_wait = '5s'\n");
  sql($node, q{select hotmesh_stream.create_stream('s')});
  fails_with($node, q{select hotmesh_stream.publish('t', '1')}, 'HM002',
      'publishing to an unknown stream is refused');

  my $s1 = session($node);
  run($s1, 'begin');
  start($s1, q{select id from hotmesh_stream.read('s', 'g', 'c', wait => '10s')});
  wait_for($node, q{select true from pg_stat_activity where wait_event like 'Hotmesh%'},
      'reader sleeps');
  is(finish($s1), '1', 'reader was woken');
  close_session($s1);
  done_testing();

A thin layer over PostgreSQL::Test::Cluster: a test may call the node's and the
session's own methods at any time.

=cut

package HotmeshTest;

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  new_node create_extension
  sql sqlstate fails_with succeeds wait_for
  session run try_run start finish is_busy pid_of kill_backend close_session
  debug_points_available hold_debug_point release_debug_point wait_debug_point
  long_run scaled
);

my $conf_file = abs_path(dirname(__FILE__)) . '/../postgresql.conf';

=pod

=head1 SERVERS

=over

=item new_node($name, %options)

A running server with test/postgresql.conf and the extension in database
postgres.  Options: C<conf> (text added to postgresql.conf), C<init> (hash
reference for C<< $node->init >>, e.g. C<< {allows_streaming => 1} >>),
C<no_start>, C<no_extension>.

=cut

sub new_node
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%{ $options{init} // {} });
	$node->append_conf('postgresql.conf', slurp_file($conf_file));
	$node->append_conf('postgresql.conf', "log_statement = none\n");
	$node->append_conf('postgresql.conf', $options{conf}) if defined $options{conf};
	return $node if $options{no_start};

	$node->start;
	create_extension($node) unless $options{no_extension};
	return $node;
}

=item create_extension($node, $dbname = 'postgres')

=cut

sub create_extension
{
	my ($node, $dbname) = @_;

	$node->safe_psql($dbname // 'postgres', 'create extension hotmesh_stream cascade');
	return;
}

=pod

=back

=head1 ONE-SHOT STATEMENTS

=over

=item sql($node, $sql, $dbname = 'postgres')

Runs C<$sql> and returns its output, unaligned, without a trailing newline; dies
when it fails.

=cut

sub sql
{
	my ($node, $sql, $dbname) = @_;

	return $node->safe_psql($dbname // 'postgres', $sql);
}

=item sqlstate($node, $sql, $dbname = 'postgres')

The SQLSTATE that C<$sql> fails with, '' when it succeeds; in list context also
the whole error text.

=cut

sub sqlstate
{
	my ($node, $sql, $dbname) = @_;
	my ($ret, $stdout, $stderr) = $node->psql(
		$dbname // 'postgres', $sql,
		extra_params => [ '-v', 'VERBOSITY=verbose' ],
		on_error_die => 0,
		on_error_stop => 1);
	my $state = '';

	$state = $1 if $stderr =~ /(?:ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}):/;
	$state = 'psql' if $state eq '' && $ret != 0;
	return wantarray ? ($state, $stderr) : $state;
}

=item fails_with($node, $sql, $sqlstate, $fact, $dbname = 'postgres')

=item succeeds($node, $sql, $fact, $dbname = 'postgres')

Test assertions over C<sqlstate>.

=cut

sub fails_with
{
	my ($node, $sql, $expected, $fact, $dbname) = @_;
	my ($state, $stderr) = sqlstate($node, $sql, $dbname);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($state, $expected, $fact) || diag($stderr);
}

sub succeeds
{
	my ($node, $sql, $fact, $dbname) = @_;
	my ($state, $stderr) = sqlstate($node, $sql, $dbname);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($state, '', $fact) || diag($stderr);
}

=item wait_for($node, $sql, $fact, $expected = 't', $dbname = 'postgres')

Repeats C<$sql> until it returns C<$expected>; a test assertion that fails after
PG_TEST_TIMEOUT_DEFAULT seconds (180).

=cut

sub wait_for
{
	my ($node, $sql, $fact, $expected, $dbname) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($node->poll_query_until($dbname // 'postgres', $sql, $expected // 't'), $fact);
}

=pod

=back

=head1 SESSIONS

=over

=item session($node, $dbname = 'postgres', %params)

A psql in the background that goes on after errors; C<%params> as for
C<background_psql>.  Each statement has the default timeout of its own.

=cut

sub session
{
	my ($node, $dbname, %params) = @_;
	my $session = $node->background_psql($dbname // 'postgres', on_error_stop => 0, %params);

	$session->set_query_timer_restart;
	$session->query('\set VERBOSITY verbose');
	$session->{stderr} = '';
	return $session;
}

=item run($session, $sql)

Runs C<$sql> to its end and returns its output; dies when it fails.

=item try_run($session, $sql)

The same, but returns (output, SQLSTATE or '', error text).

=cut

sub run
{
	my ($session, $sql) = @_;
	my ($output, $state, $stderr) = try_run($session, $sql);

	die "\"$sql\" failed: $stderr" if $state ne '';
	return $output;
}

sub try_run
{
	my ($session, $sql) = @_;

	$session->{stderr} = '';
	return _collect($session, $sql);
}

=item start($session, $sql)

Sends C<$sql> and returns at once; collect its output with C<finish>, which
returns like C<run> in scalar and like C<try_run> in list context.

=item is_busy($node, $pid)

True while the backend runs a statement.

=cut

sub start
{
	my ($session, $sql) = @_;

	$session->{stderr} = '';
	# The echo proves that psql has read the line, so the statement goes out next.
	$session->query_until(qr/hotmesh_started/, "\\echo hotmesh_started\n$sql\n;\n");
	return;
}

sub finish
{
	my ($session) = @_;
	my ($output, $state, $stderr) = _collect($session, '');

	$output =~ s/^\n//;
	return ($output, $state, $stderr) if wantarray;
	die "statement failed: $stderr" if $state ne '';
	return $output;
}

sub _collect
{
	my ($session, $sql) = @_;
	my $output = $session->query($sql);
	my $stderr = $session->{stderr};
	my $state = '';

	$state = $1 if $stderr =~ /(?:ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}):/;
	$session->{stderr} = '';
	return ($output, $state, $stderr);
}

sub is_busy
{
	my ($node, $pid) = @_;

	return $node->safe_psql('postgres',
		"select state = 'active' from pg_stat_activity where pid = $pid") eq 't';
}

=item pid_of($session)

Process id of the session's backend.

=item kill_backend($node, $pid)

SIGKILL: the whole server restarts when restart_after_crash is on.

=item close_session($session)

=cut

sub pid_of
{
	my ($session) = @_;

	return run($session, 'select pg_backend_pid()');
}

sub kill_backend
{
	my ($node, $pid) = @_;

	return kill('KILL', $pid);
}

sub close_session
{
	my ($session) = @_;

	return $session->quit;
}

=pod

=back

=head1 DEBUG POINTS

Only in a library built with -DHMS_DEBUG_POINTS.  A session stops at a point
when its setting hotmesh_stream.debug_points lists it and another session holds
the point.

=over

=item debug_points_available($node)

=item hold_debug_point($session, $name), release_debug_point($session, $name)

=item wait_debug_point($node, $name, $fact)

Waits until somebody has stopped at the point.

=cut

sub debug_points_available
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		q{select count(*) from pg_settings where name = 'hotmesh_stream.debug_points'}) eq '1';
}

sub hold_debug_point
{
	my ($session, $name) = @_;

	return run($session, "select pg_advisory_lock(hashtext('hms:$name'))");
}

sub release_debug_point
{
	my ($session, $name) = @_;

	return run($session, "select pg_advisory_unlock(hashtext('hms:$name'))");
}

sub wait_debug_point
{
	my ($node, $name, $fact) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return wait_for($node,
		qq{select count(*) > 0 from pg_locks where locktype = 'advisory' and not granted
		   and ((classid::bigint << 32) | objid::bigint) = hashtext('hms:$name')::bigint},
		$fact // "somebody stopped at $name");
}

=pod

=back

=head1 BUDGET

=over

=item long_run()

True in `make check-all` (HMS_LONG=1).

=item scaled($short, $long)

The size of a random run.

=back

=cut

sub long_run
{
	return $ENV{HMS_LONG} ? 1 : 0;
}

sub scaled
{
	my ($short, $long) = @_;

	return long_run() ? $long : $short;
}

1;
