
=pod

=head1 NAME

HotmeshWire - a client that speaks protocol 3 by hand

=head1 SYNOPSIS

  my $wire = HotmeshWire->connect($node);

  $wire->query('begin');                     # rows of the last statement
  $wire->parse('', q{select id from ...});
  $wire->bind('p', '');
  $wire->execute('p', 5);                    # a portal suspended after 5 rows
  $wire->flush;
  my @rows = $wire->rows_until(qr/[sC]/);
  $wire->sync;
  $wire->rows_until(qr/Z/);
  $wire->hang_up;

For what psql and pgbench cannot do: suspended portals, Executes without a Sync between
them, and a client that stops reading.

=cut

package HotmeshWire;

use strict;
use warnings FATAL => 'all';

use IO::Select;
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;

=pod

=head1 METHODS

=over

=item connect($node, dbname => 'postgres', receive_buffer => bytes)

=cut

sub connect
{
	my ($class, $node, %options) = @_;
	my $socket = IO::Socket::UNIX->new(
		Type => SOCK_STREAM,
		Peer => $node->host . '/.s.PGSQL.' . $node->port)
	  or die "could not connect: $!";
	my $self = bless {
		socket => $socket,
		in => '',
		out => '',
		parameters => {},
		notices => [],
		error => ''
	}, $class;
	my $user = scalar getpwuid($<);
	my $database = $options{dbname} // 'postgres';
	my $startup = pack('N', 196608)
	  . "user\0$user\0database\0$database\0application_name\0hotmesh_wire\0\0";

	$self->{out} = pack('N', length($startup) + 4) . $startup;
	$self->flush;
	$self->rows_until(qr/Z/);
	die "could not log in: $self->{error}" if $self->{error} ne '';
	return $self;
}

=item pid()

=item error()

Process id of the backend; "SQLSTATE message" of the last error since the last
C<query> or C<sync>, or ''.

=cut

sub pid { return $_[0]->{pid}; }

sub error { return $_[0]->{error}; }

=item parse($statement, $sql), bind($portal, $statement, @parameters),
execute($portal, $max_rows = 0), close_portal($portal), sync()

Add a message to the output; C<flush()> and C<sync()> send it.

=cut

sub _put
{
	my ($self, $type, $body) = @_;

	$self->{out} .= $type . pack('N', length($body) + 4) . $body;
	return;
}

sub parse
{
	my ($self, $statement, $sql) = @_;

	return $self->_put('P', "$statement\0$sql\0" . pack('n', 0));
}

sub bind
{
	my ($self, $portal, $statement, @parameters) = @_;
	my $body = "$portal\0$statement\0" . pack('nn', 0, scalar @parameters);

	foreach my $value (@parameters)
	{
		$body .= defined $value ? pack('N', length $value) . $value : pack('N', 0xffffffff);
	}
	return $self->_put('B', $body . pack('n', 0));
}

sub execute
{
	my ($self, $portal, $max_rows) = @_;

	return $self->_put('E', "$portal\0" . pack('N', $max_rows // 0));
}

sub close_portal
{
	my ($self, $portal) = @_;

	return $self->_put('C', "P$portal\0");
}

sub sync
{
	my ($self) = @_;

	$self->{error} = '';
	$self->_put('S', '');
	return $self->flush(0);
}

=item flush($with_message = 1)

Sends what was added, with a Flush message so that the server answers.

=cut

sub flush
{
	my ($self, $with_message) = @_;

	$self->_put('H', '') if $with_message // ($self->{pid} ? 1 : 0);
	while (length $self->{out})
	{
		my $written = syswrite($self->{socket}, $self->{out});

		die "could not send: $!" unless defined $written;
		substr($self->{out}, 0, $written, '');
	}
	return;
}

=item send_query($sql)

Sends a simple query and returns at once, without reading anything.

=item query($sql)

Runs it to ReadyForQuery; returns all rows as array references.

=cut

sub send_query
{
	my ($self, $sql) = @_;

	$self->{error} = '';
	$self->_put('Q', "$sql\0");
	return $self->flush(0);
}

sub query
{
	my ($self, $sql) = @_;

	$self->send_query($sql);
	return $self->rows_until(qr/Z/);
}

=item values_of($sql), value_of($sql)

The first column of all rows; that of the first row.  Both die when the query fails.

=item finish()

Waits for the end of what C<send_query> sent; returns the first column of all
rows and dies when it failed.

=cut

sub values_of
{
	my ($self, $sql) = @_;

	$self->send_query($sql);
	return $self->finish;
}

sub value_of
{
	my ($self, $sql) = @_;

	return ($self->values_of($sql))[0];
}

sub finish
{
	my ($self) = @_;
	my @rows = $self->rows_until(qr/Z/);

	die "query failed: $self->{error}" if $self->{error} ne '';
	return map { $_->[0] } @rows;
}

=item rows_until($types)

Reads until a message whose type matches; returns the rows that came before it.
The type is in C<< $wire->{last} >>.  Z ready, C complete, s suspended.

=cut

sub rows_until
{
	my ($self, $types) = @_;
	my @rows;

	while (1)
	{
		my ($type, $body) = $self->_message;

		push @rows, _data_row($body) if $type eq 'D';
		$self->{error} = _error_text($body) if $type eq 'E';
		push @{ $self->{notices} }, _error_text($body) if $type eq 'N';
		($self->{pid}) = unpack('N', $body) if $type eq 'K';
		$self->{last} = $type;
		return @rows if $type =~ $types || ($type eq 'E' && $types !~ /Z/);
		die $self->{error} if $type eq 'E' && !defined $self->{pid};
	}
}

# True when bytes arrive, or are here already, within the given seconds.
sub readable
{
	my ($self, $seconds) = @_;

	return 1 if length $self->{in};
	return scalar IO::Select->new($self->{socket})->can_read($seconds);
}

sub _message
{
	my ($self) = @_;

	while (1)
	{
		if (length($self->{in}) >= 5)
		{
			my ($type, $length) = unpack('aN', $self->{in});

			if (length($self->{in}) > $length)
			{
				my $body = substr($self->{in}, 5, $length - 4);

				substr($self->{in}, 0, $length + 1, '');
				return ($type, $body);
			}
		}
		die "timed out waiting for the server"
		  unless IO::Select->new($self->{socket})->can_read($PostgreSQL::Test::Utils::timeout_default);
		my $got = sysread($self->{socket}, $self->{in}, 1 << 20, length $self->{in});

		die "connection lost" unless $got;
	}
}

sub _data_row
{
	my ($body) = @_;
	my $count = unpack('n', $body);
	my $at = 2;
	my @values;

	for (1 .. $count)
	{
		my $length = unpack('N', substr($body, $at, 4));

		$at += 4;
		if ($length == 0xffffffff)
		{
			push @values, undef;
			next;
		}
		push @values, substr($body, $at, $length);
		$at += $length;
	}
	return \@values;
}

sub _error_text
{
	my ($body) = @_;
	my %field = map { substr($_, 0, 1) => substr($_, 1) } grep { length } split /\0/, $body;

	return "$field{C} $field{M}";
}

=item hang_up()

Closes the socket without a Terminate message, as a killed client does.

=back

=cut

sub hang_up
{
	my ($self) = @_;

	close $self->{socket};
	return;
}

1;
