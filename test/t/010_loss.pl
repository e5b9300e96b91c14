# Promise: whatever publishers and consumers do to each other, every committed message is settled
# exactly once per group by a live receipt, and no message of an aborted transaction is seen.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use HotmeshProof;
use HotmeshTest;
use List::Util qw(min);
use PostgreSQL::Test::Utils;
use Test::More;

my $rounds = scaled(3, 40);
my $seconds = scaled(8, 15);
my $min_messages = scaled(100_000, 1_000_000);

my $node = proof_node('loss', conf => q{
autovacuum = on
synchronous_commit = off
max_connections = 80
});

sql($node, $ledger_sql);
sql($node, q{
	create table bystander (x int);
	select hotmesh_stream.create_stream('s1');
	select hotmesh_stream.create_stream('s2');
	select hotmesh_stream.create_group('s1', 'lease', ack_wait => '2s');
	select hotmesh_stream.create_group('s1', 'tx', ack_wait => '2s');
	select hotmesh_stream.create_group('s1', 'mixed', ack_wait => '2s', max_deliver => null);
	select hotmesh_stream.create_group('s2', 'lease', ack_wait => '2s');
});

# Enters what a publish function returned, which keeps the publishers' scripts short.
sql($node, q{
	create function enter(s text, variadic ids bigint[]) returns void language sql as
	  'insert into published select s, unnest(ids)';
	create function many(n int, tag text) returns json[] language sql as
	  $$ select array_agg(json_build_object('n', i, 'tag', tag)) from generate_series(1, n) i $$;
	-- 90 subtransactions, every third rolled back: overflows the cache of subtransaction ids
	create procedure subtransactions() language plpgsql as $$
	begin
	    for i in 1..90 loop
	        begin
	            perform enter('s1', hotmesh_stream.publish('s1', json_build_object('i', i)));
	            if i % 3 = 0 then raise division_by_zero; end if;
	        exception when division_by_zero then null;
	        end;
	    end loop;
	end $$;
	-- read in a loop of plpgsql, one savepoint per message, some rolled back
	create procedure work_in_loop(grp text, n int) language plpgsql as $$
	declare m hotmesh_stream.message;
	begin
	    for m in select * from hotmesh_stream.read('s1', grp, 'loop', n) loop
	        begin
	            if hotmesh_stream.ack('s1', grp, m.receipt) = 1 then
	                insert into settled values ('s1', grp, m.id);
	            end if;
	            if m.id % 17 = 0 and random() < 0.5 then raise division_by_zero; end if;
	        exception when division_by_zero then null;
	        end;
	    end loop;
	end $$;
});

my %publishers = (
	single => [ 6, q{select enter('s1', hotmesh_stream.publish('s1', '{"a": 1}'));} ],
	many => [ 7, q{\set n random(1, 100)
		insert into published select 's1', hotmesh_stream.publish_many('s1', many(:n, 'many'));} ],
	batch => [ 2, q{insert into published
		select 's1', id from hotmesh_stream.publish_batch('s1',
		    (select json_agg(json_build_object('payload', i)) from generate_series(1, 150) i));} ],
	early_xid => [ 3, q{begin;
		select pg_current_xact_id();
		\set ms random(1, 30)
		\sleep :ms ms
		select enter('s1', hotmesh_stream.publish('s1', '"early xid, late id"'));
		end;} ],
	late_commit => [ 3, q{begin;
		select enter('s1', hotmesh_stream.publish('s1', '"late commit"'));
		\set ms random(1, 60)
		\sleep :ms ms
		end;} ],
	pauses => [ 2, q{begin;
		select enter('s1', hotmesh_stream.publish('s1', '1'));
		\sleep 5 ms
		insert into published select 's1', hotmesh_stream.publish_many('s1', many(20, 'pauses'));
		\sleep 15 ms
		select enter('s1', hotmesh_stream.publish('s1', '3'));
		end;} ],
	rollback => [ 3, q{begin;
		insert into published select 's1', hotmesh_stream.publish_many('s1', many(50, 'aborted'));
		\sleep 3 ms
		rollback;} ],
	savepoint => [ 3, q{begin;
		select enter('s1', hotmesh_stream.publish('s1', '"kept"'));
		savepoint a;
		select enter('s1', hotmesh_stream.publish('s1', '"undone"'));
		select enter('s2', hotmesh_stream.publish('s2', '"undone"'));
		rollback to a;
		select enter('s1', hotmesh_stream.publish('s1', '"kept too"'));
		end;} ],
	subtransactions => [ 1, q{call subtransactions();} ],
	two_streams => [ 3, q{begin;
		select enter('s2', hotmesh_stream.publish('s2', '1'));
		select enter('s1', hotmesh_stream.publish('s1', '1'));
		insert into published select 's2', hotmesh_stream.publish_many('s2', many(10, 'two'));
		end;} ],
	prepared => [ 2, q{\set n random(1, 1000000000)
		begin;
		select enter('s1', hotmesh_stream.publish('s1', '"prepared"'));
		insert into published select 's1', hotmesh_stream.publish_many('s1', many(10, 'prepared'));
		prepare transaction 'p:n';
		\sleep 10 ms
		commit prepared 'p:n';} ],
	prepared_abort => [ 1, q{\set n random(1, 1000000000)
		begin;
		select enter('s1', hotmesh_stream.publish('s1', '"rolled back"'));
		prepare transaction 'p:n';
		\sleep 10 ms
		rollback prepared 'p:n';} ],
	unrelated => [ 1, q{begin;
		insert into bystander values (1);
		\sleep 800 ms
		end;} ]);

# What a consumer of lease mode does after its read: ack with the ledger, in a transaction of its own.
my $claim = q{
	\set n random(1, 60)
	select coalesce(array_agg(receipt), '{}') as receipts
	from hotmesh_stream.read('%1$s', '%2$s', 'c:client_id', :n) \gset
};
my $ack = q{
	insert into settled select '%1$s', '%2$s', split_part(r, ':', 1)::bigint
	from unnest(':receipts'::text[]) r where hotmesh_stream.ack('%1$s', '%2$s', r) = 1;
};

sub lease_scripts
{
	my ($stream, $group) = @_;
	my $of = sub { return sprintf(join('', @_), $stream, $group); };

	return (
		"lease_$stream" => [ 10, $of->($claim, $ack) ],
		"one_$stream" => [ 4, $of->(($claim =~ s/60/7/r), $ack) ],
		"wait_$stream" => [ 2, $of->(($claim =~ s/:n\)/:n, wait => '100ms')/r), $ack) ],
		"slow_$stream" => [ 1, $of->($claim, '\sleep 50 ms', $ack) ],
		# longer than the lease: the receipts settle nothing if somebody else got the messages
		"lapse_$stream" => [ 1, $of->(($claim =~ s/:n\)/:n, ack_wait => '20ms')/r), '\sleep 60 ms', $ack) ],
		"die_$stream" => [ 1, $of->($claim) ],
		"rolled_back_$stream" => [ 1, $of->('begin;', $claim, $ack, 'rollback;') ],
		"ack_rolled_back_$stream" => [ 1, $of->($claim, 'begin;', $ack, 'rollback;') ],
		"ack_prepared_$stream" => [ 1, $of->('\set g random(1, 1000000000)', $claim, 'begin;', $ack,
			q{prepare transaction 'a:g';}, "\n\\sleep 5 ms\n", q{commit prepared 'a:g';}) ],
		"nack_$stream" => [ 1, $of->($claim, q{
			select hotmesh_stream.nack('%1$s', '%2$s', array_remove(':receipts'::text[], ''), delay => '10ms')
			where ':receipts' <> '{}';}) ],
		"extend_$stream" => [ 1, $of->($claim, q{
			select hotmesh_stream.extend('%1$s', '%2$s', ':receipts'::text[], ack_wait => '0')
			where ':receipts' <> '{}';}) ],
		"savepoint_$stream" => [ 1, $of->('begin;', 'savepoint a;', $claim, 'rollback to a;', $claim, $ack, 'end;') ]);
}

sub tx_scripts
{
	my ($stream, $group) = @_;
	my $one = "\\set n random(1, 60)\n" . ledger_statement($stream, $group, 'c:client_id', ':n') . ";\n";

	return (
		"tx_$group" => [ 8, "begin;\n$one\nend;" ],
		"tx_work_$group" => [ 3, "begin;\n$one\n\\sleep 20 ms\n${one}end;" ],
		"tx_rollback_$group" => [ 2, "begin;\n$one\nrollback;" ],
		"tx_savepoint_$group" => [ 1, "begin;\n${one}savepoint a;\n${one}rollback to a;\n${one}end;" ],
		"tx_autocommit_$group" => [ 4, $one ],
		"tx_repeatable_$group" => [ 1, "begin isolation level repeatable read;\nselect 1 from bystander limit 1;\n${one}end;" ],
		"tx_loop_$group" => [ 2, "\\set n random(1, 30)\ncall work_in_loop('$group', :n);" ],
		"tx_own_$group" => [ 2, "begin;\ninsert into published select '$stream', hotmesh_stream.publish_many('$stream', many(3, 'own'));\n${one}end;" ],
		"tx_no_ack_$group" => [ 1, "\\set n random(1, 20)\ninsert into settled select '$stream', '$group', id
			from hotmesh_stream.read('$stream', '$group', 'c:client_id', :n, no_ack => true);" ]);
}

# Transactions that hold an xid, or a snapshot, from beginning to end and mean us nothing.
my @idle = map { wire($node, 'begin; insert into bystander values (0)') } 1 .. 3;
push @idle, wire($node, 'begin isolation level repeatable read; select 1 from bystander');

my %lease = lease_scripts('s1', 'lease');
my %other = lease_scripts('s2', 'lease');
my %tx = tx_scripts('s1', 'tx');
my %mixed = (lease_scripts('s1', 'mixed'), tx_scripts('s1', 'mixed'));
my $failed = 0;
my $published = 0;

for (my $round = 1; $round <= $rounds || $published < $min_messages; $round++)
{
	my $pub = start_pgbench($node, 10, $seconds, \%publishers);
	my @sub = (
		start_pgbench($node, 4, $seconds, \%lease),
		start_pgbench($node, 3, $seconds, \%tx),
		start_pgbench($node, 4, $seconds, \%mixed),
		start_pgbench($node, 2, $seconds, \%other));
	my $victim = start_pgbench($node, 3, $seconds, \%mixed);

	# A killed client, then terminated backends.
	select(undef, undef, undef, $seconds / 3);
	kill 'KILL', $victim->{pid};
	for (1 .. 3)
	{
		select(undef, undef, undef, $seconds / 6);
		sql($node, q{
			select pg_terminate_backend(pid) from pg_stat_activity
			where application_name = 'pgbench' and query like '%read(%' order by random() limit 1});
	}

	$failed++ unless finish_pgbench($pub);
	diag($pub->{err}) if $pub->{err} =~ /ERROR/;
	foreach my $load (@sub, $victim)
	{
		finish_pgbench($load);
		next unless $load->{err} =~ /(?:ERROR|PANIC):(?!.*terminating connection)/;
		$failed++;
		diag($load->{err});
	}
	$published = sql($node, 'select count(*) from published');
	last if $failed;
}
is($failed, 0, 'no statement of a publisher or consumer failed');

# Prepared transactions whose client did not come back: one half commits, one half does not.
foreach my $name (split /\n/, sql($node, 'select gid from pg_prepared_xacts'))
{
	sql($node, (rand() < 0.5 ? 'commit' : 'rollback') . " prepared '$name'");
}

$published = sql($node, 'select count(*) from published');
note("$published messages");
cmp_ok($published, '>=', $min_messages, 'enough messages were published') unless $failed;

foreach my $pair ([ 's1', 'lease' ], [ 's1', 'tx' ], [ 's1', 'mixed' ], [ 's2', 'lease' ])
{
	drain($node, @$pair);
	ledger_is_settled($node, @$pair);
}
foreach my $stream ('s1', 's2')
{
	is( sql($node, qq{
			select count(*) from hotmesh_stream_data.log_1 l join hotmesh_stream.stream s using (stream_id)
			where s.name = '$stream'}),
		sql($node, "select count(*) from published where stream = '$stream'"),
		"the log of stream $stream holds what was committed");
}
$_->hang_up foreach @idle;
$node->stop;
done_testing();
