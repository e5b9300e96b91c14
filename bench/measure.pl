#!/usr/bin/perl
#
# measure [--quick] [SECTION...]: run the benchmarks and print their tables
#
# Sections: grid ratios readers snapshot latency xids partitions (default: all).
# bench/README.md says what each column is and how it is measured.

use strict;
use warnings;

use FindBin;
use Getopt::Long;
use List::Util qw(sum);
use POSIX qw(sysconf _SC_CLK_TCK);
use Time::HiRes qw(sleep);
use lib "$FindBin::Bin/../demo/lib";
use Psql;

my $quick = 0;
GetOptions('quick' => \$quick) or exit 2;
my %sections = (
	grid => \&grid,
	ratios => \&ratios,
	readers => \&readers,
	snapshot => \&snapshot,
	latency => \&latency,
	xids => \&idle_xids,
	partitions => \&partitions);
my @order = qw(grid ratios readers snapshot latency xids partitions);
my $pairs = $quick ? 5 : 15;
my $scale = $quick ? 0.2 : 1;
my $ticks = sysconf(_SC_CLK_TCK);
my $runs = 0;
my %connect_cpu;
my $session = Psql->new;

$| = 1;
foreach my $name (@ARGV ? @ARGV : @order)
{
	die "unknown section \"$name\"\n" unless $sections{$name};
	$sections{$name}->();
}

# ---- sections ----

# Everything the extension does, next to the floor.
sub grid
{
	heading('Throughput and cost',
		'op', 'payload', 'sync', 'batch', 'clients', 'msg/s', 'us/msg', 'WAL B/msg',
		'floor msg/s', 'floor us/msg', 'floor WAL');
	foreach my $bytes (200, 1000)
	{
		foreach my $sync ('off', 'on')
		{
			foreach my $batch (1, 10, 100)
			{
				foreach my $clients (1, 8)
				{
					my %shape = (bytes => $bytes, sync => $sync, batch => $batch, clients => $clients);

					foreach my $op ('publish', 'consume')
					{
						my $ours = measure(%shape, op => $op);
						my $floor = measure(%shape, op => "floor-$op");

						row($op eq 'publish' ? $op : 'read+ack', $bytes, $sync, $batch, $clients,
							cells($ours), cells($floor));
					}
				}
			}
		}
	}
	return;
}

# The bars that are ratios of CPU per message, in interleaved pairs.
sub ratios
{
	my @cases = (
		[ 'publish(100) / floor', { op => 'publish', batch => 100 }, { op => 'floor-publish', batch => 100 } ],
		[ 'read+ack(100) / floor', { op => 'consume', batch => 100 }, { op => 'floor-consume', batch => 100 } ],
		[ 'publish(10) / floor', { op => 'publish', batch => 10 }, { op => 'floor-publish', batch => 10 } ],
		[ 'read+ack(10) / floor', { op => 'consume', batch => 10 }, { op => 'floor-consume', batch => 10 } ],
		[ 'publish(100), 100 groups / 1 group', { op => 'publish', batch => 100, groups => 100 },
			{ op => 'publish', batch => 100 } ]);

	heading("CPU per message, $pairs interleaved pairs, 200 B, synchronous_commit off, one client",
		'ratio', 'median', '95 % interval', 'us', 'us of the other');
	compare('cpu', @$_) foreach @cases;
	return;
}

sub readers
{
	heading("8 readers of one group, batch 1, synchronous_commit on, $pairs interleaved pairs (messages/s)",
		'ratio', 'median', '95 % interval', 'msg/s', 'msg/s of the other');
	my %shape = (batch => 1, clients => 8, sync => 'on');
	compare('rate', 'read+ack / claim statement of a table queue',
		{ %shape, op => 'consume' }, { %shape, op => 'claim-consume' });
	heading('The same with read(no_ack) of a backlog', 'op', 'msg/s', 'us/msg', 'WAL B/msg');
	row('no_ack, batch 100, 1 client', cells(measure(op => 'noack', batch => 100)));
	return;
}

# Throughput of publish + read + ack while a REPEATABLE READ snapshot is held.
sub snapshot
{
	my $seconds = $quick ? 40 : 190;
	my $holder = Psql->new;

	heading("Held snapshot: 4 clients publish, read and ack 10; snapshot opened after 10 s",
		'seconds', 'msg/s');
	$session->query('alter system set autovacuum = on');
	$session->query("alter system set hotmesh_stream.maintenance_naptime = '10s'");
	$session->query('select pg_reload_conf()');
	set_up(op => 'publish', run => ++$runs);
	open(my $out, '-|', $ENV{DRIVE}, 'cycle', 4, 10, 200, "${seconds}s", "bench_$runs") or die;
	while (my $line = <$out>)
	{
		my ($at, $messages) = split ' ', $line;

		next if $at > $seconds || $at =~ /\d{5}/;
		row($at, int($messages / 5));
		if ($at == 10)
		{
			$holder->query('begin isolation level repeatable read');
			$holder->query('select count(*) from pg_class');
		}
	}
	close($out);
	$holder->query('rollback');
	$holder->close;
	tear_down(run => $runs);
	$session->query('alter system reset all');
	$session->query('select pg_reload_conf()');
	return;
}

sub latency
{
	print "\n### Latency of a blocking read\n\n";
	system("$FindBin::Bin/latency.pl", $quick ? 200 : 2000) == 0 or exit 1;
	return;
}

# 400 open transactions with a transaction id, unrelated to any stream.
sub idle_xids
{
	heading("400 idle transaction ids, read+ack at batch 1, $pairs interleaved pairs",
		'ratio', 'median', '95 % interval', 'us', 'us of the other');
	compare('cpu', '400 idle xids / none', { op => 'consume', batch => 1, idle => 400 },
		{ op => 'consume', batch => 1 });
	return;
}

sub partitions
{
	my %many = (premake => 100, old_partitions => 200);

	heading("400 partitions against 4, $pairs interleaved pairs",
		'ratio', 'median', '95 % interval', 'us', 'us of the other');
	foreach my $batch (1, 100)
	{
		foreach my $op ('publish', 'consume')
		{
			compare('cpu', "$op($batch), 400 partitions / 4",
				{ op => $op, batch => $batch, %many }, { op => $op, batch => $batch });
		}
	}
	return;
}

# ---- measuring ----

# Ratio of a value of two cases: pairs in alternating order, median, and the interval
# between order statistics that covers the median with 95 %.
sub compare
{
	my ($value, $name, $ours, $other) = @_;
	my (@ratios, @ours, @others);

	foreach my $pair (1 .. $pairs)
	{
		my ($a, $b);

		if ($pair % 2)
		{
			$a = measure(%$ours);
			$b = measure(%$other);
		}
		else
		{
			$b = measure(%$other);
			$a = measure(%$ours);
		}
		push @ours, $a->{$value};
		push @others, $b->{$value};
		push @ratios, $a->{$value} / $b->{$value};
	}
	@ratios = sort { $a <=> $b } @ratios;
	my $skip = interval_rank(scalar @ratios);
	my $format = $value eq 'rate' ? '%.0f' : '%.2f';
	row($name, sprintf('%.2f', median(@ratios)),
		sprintf('%.2f .. %.2f', $ratios[$skip], $ratios[ $#ratios - $skip ]),
		sprintf($format, median(@ours)), sprintf($format, median(@others)));
	return;
}

# How many of n sorted values to leave out on each side for a 95 % interval of the median.
sub interval_rank
{
	my ($n) = @_;
	my ($term, $tail, $rank) = (0.5**$n, 0, 0);

	while ($tail + $term <= 0.025)
	{
		$tail += $term;
		$term *= ($n - $rank) / ($rank + 1);
		$rank++;
	}
	return $rank > 0 ? $rank - 1 : 0;
}

# One run of one operation on a new stream: messages/s, backend CPU and WAL per message.
sub measure
{
	my %case = (bytes => 200, sync => 'off', batch => 100, clients => 1, groups => 1, @_);
	my $per_client = messages_for(\%case);
	my $idle;

	$case{run} = ++$runs;
	set_up(%case);
	preload(\%case, $per_client * $case{clients}) if $case{op} =~ /consume|noack/;
	$idle = hold_xids($case{idle}) if $case{idle};
	my $result = drive(\%case, $case{op}, $per_client);
	if ($idle)
	{
		close($idle->{to});
		waitpid($idle->{pid}, 0);
	}
	tear_down(%case);
	return $result;
}

# Enough work for a second or so, whole batches.
sub messages_for
{
	my ($case) = @_;
	my %total = (1 => 12_000, 10 => 60_000, 100 => 200_000);
	my $messages = $scale * $total{ $case->{batch} } / $case->{clients};

	return $case->{batch} * int(1 + $messages / $case->{batch});
}

sub set_up
{
	my (%case) = @_;
	my $premake = $case{premake} // 4;

	if ($case{op} =~ /^floor/)
	{
		$session->query('truncate floor');
		$session->query("select setval('floor_id_seq', 1, false)");
	}
	elsif ($case{op} =~ /^claim/)
	{
		$session->query('truncate claim_queue restart identity');
	}
	else
	{
		my $name = "bench_$case{run}";

		$session->query(
			"select hotmesh_stream.create_namespace('$name', retention => null, premake => $premake)");
		$session->query("select hotmesh_stream.create_stream('$name', namespace => '$name')");
		$session->query("select hotmesh_stream.create_group('$name', 'g')");
		$session->query("select hotmesh_stream.create_group('$name', 'g' || n)"
			  . " from generate_series(2, $case{groups}) n")
		  if ($case{groups} // 1) > 1;
		add_old_partitions($name, $case{old_partitions}) if $case{old_partitions};
	}
	return;
}

# Partitions of years long past, sealed as they would be in a log of that age.
# pg_partman has made as many past as future ones.
sub add_old_partitions
{
	my ($name, $count) = @_;
	my $log = $session->value(
		"select 'hotmesh_stream_data.log_' || namespace_id from hotmesh_stream.namespace where name = '$name'"
	);

	foreach my $year (2000 - $count .. 1999)
	{
		my $next = $year + 1;

		$session->query(
			"create table ${log}_old_$year partition of $log for values from ('$year-01-01') to ('$next-01-01')");
	}
	$session->query("select hotmesh_stream.publish('$name', '{}')");
	$session->query('call hotmesh_stream.maintain()');
	return;
}

sub preload
{
	my ($case, $messages) = @_;
	my $op = $case->{op} =~ /^(floor-|claim-)/ ? "$1publish" : 'publish';
	my @command = ($ENV{DRIVE}, $op, 1, 100, $case->{bytes}, $messages, "bench_$case->{run}");

	open(my $out, '-|', @command) or die;
	my @lines = <$out>;
	close($out) or exit 1;
	$session->query('checkpoint');
	return;
}

sub tear_down
{
	my (%case) = @_;

	return if ($case{op} // '') =~ /^(floor|claim)/;
	$session->query("select hotmesh_stream.drop_stream('bench_$case{run}')");
	$session->query("select hotmesh_stream.drop_namespace('bench_$case{run}')");
	return;
}

sub drive
{
	my ($case, $op, $per_client) = @_;
	my $connect_cpu = $op eq 'connect' ? 0 : connect_cost($case->{clients});
	local $ENV{PGOPTIONS} = "-c synchronous_commit=$case->{sync}";

	my $wal = $session->value('select pg_current_wal_insert_lsn()');
	my $children = backends();
	my $cpu = reaped_cpu();
	open(my $out, '-|', $ENV{DRIVE}, $op, $case->{clients}, $case->{batch}, $case->{bytes},
		$per_client, 'bench_' . ($case->{run} // 0)) or die;
	my @lines = <$out>;
	close($out) or exit 1;
	sleep 0.005 while backends() > $children;
	$cpu = reaped_cpu() - $cpu - $connect_cpu;
	$wal = $session->value("select pg_current_wal_insert_lsn() - '$wal'");

	my ($messages, $seconds) = split ' ', $lines[-1];
	return {
		messages => $messages,
		rate => $messages / $seconds,
		cpu => 1e6 * $cpu / ($messages || 1),
		wal => $wal / ($messages || 1),
		total_cpu => $cpu
	};
}

# CPU seconds of connecting and leaving, to be taken off every run.
sub connect_cost
{
	my ($clients) = @_;

	$connect_cpu{$clients} //=
	  sum(map { drive({ clients => $clients, batch => 1, bytes => 1, sync => 'off' }, 'connect', 1)->{total_cpu} } 1 .. 10) / 10;
	return $connect_cpu{$clients};
}

# User and system time of all children that the postmaster has reaped, in seconds.
sub reaped_cpu
{
	open(my $stat, '<', "/proc/$ENV{SERVER_PID}/stat") or die;
	my ($text) = <$stat>;
	$text =~ s/^.*\) //;
	my @fields = split ' ', $text;
	return ($fields[13] + $fields[14]) / $ticks;
}

sub backends
{
	open(my $list, '<', "/proc/$ENV{SERVER_PID}/task/$ENV{SERVER_PID}/children") or die;
	my @pids = split ' ', <$list> // '';
	return scalar @pids;
}

sub hold_xids
{
	my ($count) = @_;
	my ($to, $from);
	my $pid = IPC::Open3::open3($to, $from, '>&STDERR', $ENV{DRIVE}, 'idle-xid', $count, 1, 1, 1);

	readline($from);
	return { pid => $pid, to => $to, from => $from };
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;

	return ($sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ]) / 2;
}

# ---- printing ----

sub heading
{
	my ($title, @columns) = @_;

	print "\n### $title\n\n";
	row(@columns);
	row(map { '---' } @columns);
	return;
}

sub row
{
	print '| ', join(' | ', @_), " |\n";
	return;
}

sub cells
{
	my ($result) = @_;

	return map { sprintf '%.' . $_->[1] . 'f', $result->{ $_->[0] } }
	  [ 'rate', 0 ], [ 'cpu', 2 ], [ 'wal', 0 ];
}
