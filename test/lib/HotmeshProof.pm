
=pod

=head1 NAME

HotmeshProof - ledgers and load for the proofs of hotmesh_stream

=head1 SYNOPSIS

  use HotmeshProof;

  my $node = proof_node('main');
  sql($node, $ledger_sql);
  my $load = start_pgbench($node, 4, 10, { publish => $script });
  finish_pgbench($load, 'publishers never fail');
  drain($node, 's', 'g');
  ledger_is_settled($node, 's', 'g');

Publishers insert the id into C<published(stream, id)> in the transaction that
publishes; consumers insert (group, id) into C<settled(stream, grp, id)> in the
transaction that acks.  Whatever is in one and not in the other is a bug.

=cut

package HotmeshProof;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use HotmeshTest;
use HotmeshWire;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  proof_node wire wires_gone need_debug_points
  $ledger_sql ledger_statement drain ledger_is_settled
  start_pgbench finish_pgbench wait_until
);

=pod

=head1 FUNCTIONS

=over

=item proof_node($name, %options)

C<new_node> with autovacuum off, so that nothing but the test takes transaction ids.

=cut

sub proof_node
{
	my ($name, %options) = @_;

	$options{conf} = "autovacuum = off\nmax_wal_size = '4GB'\n" . ($options{conf} // '');
	return new_node($name, %options);
}

=item wire($node, $setup = '', $dbname = 'postgres')

A HotmeshWire session that has run $setup.

=cut

sub wire
{
	my ($node, $setup, $dbname) = @_;
	my $wire = HotmeshWire->connect($node, dbname => $dbname // 'postgres');

	$wire->values_of($setup) if defined $setup && $setup ne '';
	return $wire;
}

=item wires_gone($node)

Waits until no backend of a HotmeshWire client is left.

=cut

sub wires_gone
{
	my ($node) = @_;

	return $node->poll_query_until('postgres',
		q{select count(*) = 0 from pg_stat_activity where application_name = 'hotmesh_wire'});
}

=item need_debug_points($node)

Skips all tests unless the library has debug points; else declares scan_entries() and
set_hint() in database postgres.

=cut

sub need_debug_points
{
	my ($node) = @_;

	if (!debug_points_available($node))
	{
		$node->stop;
		plan skip_all => 'library built without HMS_DEBUG_POINTS';
	}
	sql($node, q{
		create function scan_entries() returns bigint language c
		as '$libdir/hotmesh_stream', 'hms_sql_debug_scan_entries';
		create function set_hint(incarnation bigint, priority int, due timestamptz) returns void
		language c as '$libdir/hotmesh_stream', 'hms_sql_debug_set_hint'});
	return;
}

=item wait_until($condition, $fact)

Calls the code reference every 50 ms until it returns true; a test assertion.

=cut

sub wait_until
{
	my ($condition, $fact) = @_;
	my $tries = 20 * $PostgreSQL::Test::Utils::timeout_default;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for (1 .. $tries)
	{
		return ok(1, $fact) if $condition->();
		select(undef, undef, undef, 0.05);
	}
	return ok(0, $fact);
}

=item $ledger_sql

Creates the ledger tables.

=item ledger_statement($stream, $group, $consumer, $max_messages, $options = '')

A statement that reads, acks and enters into the ledger what ack settled.

=cut

our $ledger_sql = q{
	create table published (stream text not null, id bigint not null);
	create table settled (stream text not null, grp text not null, id bigint not null);
};

sub ledger_statement
{
	my ($stream, $group, $consumer, $max_messages, $options) = @_;

	$options = defined $options ? ", $options" : '';
	return qq{
		with r as materialized (
		    select id, receipt from hotmesh_stream.read('$stream', '$group', '$consumer', $max_messages$options)),
		done as (
		    insert into settled select '$stream', '$group', id from r
		    where hotmesh_stream.ack('$stream', '$group', receipt) = 1 returning 1)
		select count(*) from done};
}

=item drain($node, $stream, $group, $dbname = 'postgres')

Reads and acks with the ledger until the group has nothing left; waits for open
leases to lapse.  Nobody else may read meanwhile: a
batch that is not acked as a whole stays out of the ledger.

=cut

sub drain
{
	my ($node, $stream, $group, $dbname) = @_;
	my $wire = wire($node, '', $dbname);
	my $deadline = time() + scaled(1, 5) * $PostgreSQL::Test::Utils::timeout_default;
	my $open = qq{
		select lag + ready + leased + delayed from hotmesh_stream.group_info('$stream', '$group')};

	my $next_batch = qq{
		with r as materialized (
		    select id, receipt from hotmesh_stream.read('$stream', '$group', 'drain', 2000)),
		a as (
		    select hotmesh_stream.ack('$stream', '$group', variadic array_agg(receipt)) as acked
		    from r having count(*) > 0),
		done as (
		    insert into settled select '$stream', '$group', id from r
		    where (select acked from a) = (select count(*) from r) returning 1)
		select count(*) from done};

	while (1)
	{
		die "group $group of stream $stream is not drained" if time() > $deadline;
		next if $wire->value_of($next_batch) > 0;
		last if $wire->value_of($open) == 0;
		select(undef, undef, undef, 0.1);
	}
	$wire->hang_up;
	return;
}

=item ledger_is_settled($node, $stream, $group, $dbname = 'postgres')

Asserts that the group settled every committed message exactly once and nothing else.

=cut

sub ledger_is_settled
{
	my ($node, $stream, $group, $dbname) = @_;
	my $sql = qq{
		with p as (select id from published where stream = '$stream'),
		s as (select id, count(*) as times from settled
		      where stream = '$stream' and grp = '$group' group by id)
		select coalesce(sum((s.id is null)::int), 0) || ' lost, '
		    || coalesce(sum((p.id is null)::int), 0) || ' alien, '
		    || coalesce(sum((s.times > 1)::int), 0) || ' twice'
		from p full join s using (id)};

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(sql($node, $sql, $dbname), '0 lost, 0 alien, 0 twice',
		"group $group of stream $stream settled every committed message once");
}

=item start_pgbench($node, $clients, $seconds, \%scripts, @options)

Starts pgbench with the scripts, a hash of name => text or [weight, text]; a
transaction limit instead of a time: seconds => -N.

=item finish_pgbench($load, $fact)

Waits for its end; with $fact, asserts that no client failed.

=cut

sub start_pgbench
{
	my ($node, $clients, $seconds, $scripts, @options) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my @command = ('pgbench', '-n', '-h', $node->host, '-p', $node->port,
		'-c', $clients, '-j', 1,
		($seconds < 0 ? ('-t', -$seconds) : ('-T', $seconds)), @options);
	my $load = { out => '', err => '' };

	foreach my $name (sort keys %$scripts)
	{
		my ($weight, $text) =
		  ref $scripts->{$name} ? @{ $scripts->{$name} } : (1, $scripts->{$name});

		append_to_file("$dir/$name", $text);
		push @command, '-f', "$dir/$name\@$weight";
	}
	$load->{run} = IPC::Run::start([ @command, 'postgres' ], \undef, \$load->{out}, \$load->{err});
	$load->{pid} = $load->{run}->{KIDS}[0]{PID};
	return $load;
}

sub finish_pgbench
{
	my ($load, $fact) = @_;
	my $succeeded = $load->{run}->finish;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($succeeded, $fact) || diag($load->{err}) if defined $fact;
	return $succeeded;
}

=back

=cut

1;
