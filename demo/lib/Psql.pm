# Psql: one psql as a coprocess: a session without a database driver
#
#   my $session = Psql->new;
#   my @rows = $session->query('select 1, 2');     # ([1, 2])
#   $session->send('select slow()'); ... @rows = $session->receive;
#
# Connects as PGHOST, PGPORT, PGUSER and PGDATABASE say.  An error ends the
# program with psql's message.  Values must hold no line break.

package Psql;

use strict;
use warnings;

use IPC::Open3;
use IO::Handle;

my $separator = "\x1f";
my $end_mark = 'psql: end of result';

sub new
{
	my ($class) = @_;
	my ($to, $from);
	my $pid = open3(
		$to, $from, '>&STDERR',
		$ENV{PSQL} // 'psql', '-XAtq', '-F', $separator, '-v', 'ON_ERROR_STOP=1', '-f', '-');

	$to->autoflush(1);
	return bless { pid => $pid, to => $to, from => $from, buffer => '' }, $class;
}

sub send
{
	my ($self, $sql) = @_;

	print { $self->{to} } "$sql;\n\\echo $end_mark\n";
	return;
}

sub receive
{
	my ($self) = @_;
	my @rows;

	while (defined(my $line = readline($self->{from})))
	{
		chomp $line;
		return @rows if $line eq $end_mark;
		push @rows, [ split /$separator/, $line, -1 ];
	}
	waitpid($self->{pid}, 0);
	exit 3;
}

sub query
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->receive;
}

# The first column of the first row.
sub value
{
	my ($self, $sql) = @_;
	my ($row) = $self->query($sql);

	return $row ? $row->[0] : undef;
}

sub close
{
	my ($self) = @_;

	CORE::close($self->{to});
	waitpid($self->{pid}, 0);
	return;
}

# A string as an SQL literal.
sub literal
{
	my ($text) = @_;

	$text =~ s/'/''/g;
	return "'$text'";
}

1;
