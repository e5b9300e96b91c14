/*-------------------------------------------------------------------------
 *
 * drive.c
 *	  Load generator of the benchmarks: N clients run one operation in a loop.
 *
 * Usage: drive OPERATION CLIENTS BATCH PAYLOAD-BYTES LIMIT [STREAM]
 *
 * Each client is a process with one connection (libpq, prepared statements,
 * synchronous_commit as PGOPTIONS says).  LIMIT is a number of messages per
 * client, or seconds when it ends in "s".  Prints "messages seconds", and with
 * LIMIT in seconds first one line per 5 seconds with the messages of that time.
 *
 * Operations: publish, consume, noack and cycle use the extension; floor-publish
 * and floor-consume a plain table; claim-publish and claim-consume the statements
 * of a table-based queue; idle-xid holds CLIENTS open transactions that have a
 * transaction id until standard input ends; connect does nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <libpq-fe.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CLIENTS 1000

typedef struct Driver
{
	const char *operation;
	int			clients;
	int			batch;
	int			payload_bytes;
	long		message_limit;	/* per client; 0 = none */
	double		second_limit;	/* 0 = none */
	const char *stream;
	char	   *payload;		/* one JSON object */
	char	   *payloads;		/* array literal of 'batch' of them */
	volatile long *done;		/* shared memory: messages per client */
} Driver;

typedef struct Client
{
	const Driver *driver;
	PGconn	   *conn;
	int			number;
	char		name[16];		/* consumer */
	long		round;
} Client;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static PGresult *
expect(PGconn *conn, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
	{
		fprintf(stderr, "drive: %s", PQerrorMessage(conn));
		_exit(1);
	}
	return result;
}

static void
prepare(Client *client, const char *name, const char *sql)
{
	PQclear(expect(client->conn, PQprepare(client->conn, name, sql, 0, NULL)));
}

static PGresult *
execute(Client *client, const char *name, int nparams, const char *const *values)
{
	return expect(client->conn,
				  PQexecPrepared(client->conn, name, nparams, values, NULL, NULL, 0));
}

/* A JSON object of about 'bytes', and an array literal of 'batch' of them. */
static void
make_payloads(Driver *driver)
{
	char	   *out;
	int			filler = driver->payload_bytes - 8;

	if (filler < 1)
		filler = 1;
	driver->payload = malloc(filler + 16);
	sprintf(driver->payload, "{\"k\":\"%0*d\"}", filler, 7);
	driver->payloads = out = malloc((size_t) driver->batch * (filler + 32) + 3);
	*out++ = '{';
	for (int i = 0; i < driver->batch; i++)
		out += sprintf(out, "%s\"{\\\"k\\\":\\\"%0*d\\\"}\"", i ? "," : "", filler, i);
	strcpy(out, "}");
}

static long
do_publish(Client *client)
{
	const Driver *driver = client->driver;
	const char *values[] = {driver->stream, driver->batch == 1 ? driver->payload : driver->payloads};

	PQclear(execute(client, "publish", 2, values));
	return driver->batch;
}

/* Read a batch, and settle it when 'settle' is set. */
static long
read_batch(Client *client, const char *statement, int settle)
{
	const Driver *driver = client->driver;
	char		batch[16];
	const char *values[] = {driver->stream, client->name, batch};
	const char *ack_values[2] = {driver->stream};
	PGresult   *rows;
	char	   *receipts;
	char	   *out;
	int			nrows;

	snprintf(batch, sizeof(batch), "%d", driver->batch);
	rows = execute(client, statement, 3, values);
	nrows = PQntuples(rows);
	if (nrows > 0 && settle)
	{
		ack_values[1] = receipts = out = malloc((size_t) nrows * 48 + 3);
		*out++ = '{';
		for (int i = 0; i < nrows; i++)
			out += sprintf(out, "%s%s", i ? "," : "", PQgetvalue(rows, i, 0));
		strcpy(out, "}");
		PQclear(execute(client, "ack", 2, ack_values));
		free(receipts);
	}
	PQclear(rows);
	return nrows;
}

static long
do_consume(Client *client)
{
	return read_batch(client, "read", 1);
}

static long
do_noack(Client *client)
{
	return read_batch(client, "read_no_ack", 0);
}

static long
do_cycle(Client *client)
{
	do_publish(client);
	return read_batch(client, "read", 1);
}

static long
do_floor_publish(Client *client)
{
	const char *values[] = {client->driver->payloads};

	PQclear(execute(client, "floor_publish", 1, values));
	return client->driver->batch;
}

/* Clients take ranges of ids in turns. */
static long
do_floor_consume(Client *client)
{
	const Driver *driver = client->driver;
	long		first = 1 + (client->round * driver->clients + client->number) * driver->batch;
	char		low[24];
	char		high[24];
	const char *values[] = {low, high};
	PGresult   *rows;
	long		nrows;

	snprintf(low, sizeof(low), "%ld", first);
	snprintf(high, sizeof(high), "%ld", first + driver->batch);
	rows = execute(client, "floor_consume", 2, values);
	nrows = PQntuples(rows);
	PQclear(rows);
	return nrows;
}

static long
do_claim_publish(Client *client)
{
	const char *values[] = {client->driver->payloads};

	PQclear(execute(client, "claim_publish", 1, values));
	return client->driver->batch;
}

static long
do_claim_consume(Client *client)
{
	const char *values[] = {client->name};
	const char *ack_values[1];
	PGresult   *rows = execute(client, "claim", 1, values);
	long		nrows = PQntuples(rows);

	if (nrows > 0)
	{
		ack_values[0] = PQgetvalue(rows, 0, 0);
		PQclear(execute(client, "claim_ack", 1, ack_values));
	}
	PQclear(rows);
	return nrows;
}

static long
do_connect(Client *client)
{
	return client->driver->batch;
}

static const struct
{
	const char *name;
	long		(*run) (Client *client);
}			operations[] = {
	{"publish", do_publish},
	{"consume", do_consume},
	{"noack", do_noack},
	{"cycle", do_cycle},
	{"floor-publish", do_floor_publish},
	{"floor-consume", do_floor_consume},
	{"claim-publish", do_claim_publish},
	{"claim-consume", do_claim_consume},
	{"connect", do_connect},
};

static const struct
{
	const char *prefix;			/* operations whose name starts so */
	const char *name;
	const char *sql;
}			statements[] = {
	{"publish", "publish", NULL},	/* depends on the batch */
	{"cycle", "publish", NULL},
	{"c", "read", "select receipt, id, payload from hotmesh_stream.read($1, 'g', $2, max_messages => $3)"},
	{"c", "ack", "select hotmesh_stream.ack($1, 'g', variadic $2)"},
	{"noack", "read_no_ack",
		"select id, payload from hotmesh_stream.read($1, 'g', $2, max_messages => $3, no_ack => true)"},
	{"floor", "floor_publish",
		"insert into floor (stream_id, priority, id, xid, published_at, payload)"
		" select 1, 0, nextval('floor_id_seq'), 1, clock_timestamp(), p from unnest($1::json[]) as p"},
	{"floor", "floor_consume",
		"delete from floor where stream_id = 1 and priority = 0 and id >= $1 and id < $2 returning id, payload"},
	{"claim", "claim_publish", "insert into claim_queue (stream, message) select 's', p::text from unnest($1::json[]) as p"},
	{"claim", "claim",
		"with next as (select id from claim_queue where stream = 's' and expired_at is null"
		" and (reserved_at is null or reserved_at < now() - interval '30 seconds')"
		" order by id limit 1 for update skip locked)"
		" update claim_queue q set reserved_at = now(), reserved_by = $1 from next where q.id = next.id"
		" returning q.id, q.message"},
	{"claim", "claim_ack", "update claim_queue set expired_at = now() where stream = 's' and id = $1"},
};

static void
prepare_all(Client *client)
{
	const Driver *driver = client->driver;
	const char *publish = driver->batch == 1 ? "select hotmesh_stream.publish($1, $2)"
		: "select hotmesh_stream.publish_many($1, $2)";

	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
	{
		const char *prefix = statements[i].prefix;

		/* "c" stands for consume and cycle, not for claim and connect */
		if (strcmp(prefix, "c") == 0
			? strcmp(driver->operation, "consume") != 0 && strcmp(driver->operation, "cycle") != 0
			: strncmp(driver->operation, prefix, strlen(prefix)) != 0)
			continue;
		prepare(client, statements[i].name, statements[i].sql ? statements[i].sql : publish);
	}
}

static PGconn *
connect_or_exit(void)
{
	PGconn	   *conn = PQconnectdb("");

	if (PQstatus(conn) != CONNECTION_OK)
	{
		fprintf(stderr, "drive: %s", PQerrorMessage(conn));
		_exit(1);
	}
	return conn;
}

/* One client: prepare, wait for the start, loop until the limit or the end of the work. */
static void
run_client(const Driver *driver, int number, int ready_fd, int start_fd)
{
	Client		client = {.driver = driver, .number = number};
	long		(*run) (Client *client) = NULL;
	int			empty = 0;
	double		started_at;
	char		byte = 0;

	client.conn = connect_or_exit();
	snprintf(client.name, sizeof(client.name), "c%d", number);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(operations[i].name, driver->operation) == 0)
			run = operations[i].run;
	prepare_all(&client);
	if (write(ready_fd, &byte, 1) != 1 || read(start_fd, &byte, 1) < 0)
		_exit(1);

	started_at = now();
	while (driver->message_limit == 0 || driver->done[number] < driver->message_limit)
	{
		long		messages = run(&client);

		client.round++;
		driver->done[number] += messages;
		empty = messages == 0 ? empty + 1 : 0;
		/* A reader ends when the backlog is used up. */
		if (driver->second_limit == 0 ? empty >= 3 : now() - started_at > driver->second_limit)
			break;
	}
	PQfinish(client.conn);
	_exit(0);
}

static long
total_done(const Driver *driver)
{
	long		total = 0;

	for (int i = 0; i < driver->clients; i++)
		total += driver->done[i];
	return total;
}

static void
hold_idle_xids(const Driver *driver)
{
	for (int i = 0; i < driver->clients; i++)
	{
		PGconn	   *conn = connect_or_exit();

		PQclear(expect(conn, PQexec(conn, "begin")));
		PQclear(expect(conn, PQexec(conn, "select pg_current_xact_id()")));
	}
	puts("holding");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

static int
run_clients(const Driver *driver)
{
	int			ready[2];
	int			start[2];
	double		started_at;
	double		next_report = 5;
	long		reported = 0;
	int			running = driver->clients;
	int			failed = 0;
	char		byte;

	if (pipe(ready) != 0 || pipe(start) != 0)
		return 1;
	for (int i = 0; i < driver->clients; i++)
	{
		if (fork() == 0)
		{
			close(start[1]);
			run_client(driver, i, ready[1], start[0]);
		}
	}
	for (int i = 0; i < driver->clients; i++)
		if (read(ready[0], &byte, 1) != 1)
			return 1;
	started_at = now();
	close(start[1]);			/* starts all clients at once */
	while (running > 0)
	{
		int			status;

		if (waitpid(-1, &status, driver->second_limit > 0 ? WNOHANG : 0) > 0)
		{
			running--;
			failed |= status != 0;
			continue;
		}
		usleep(20000);
		if (now() - started_at >= next_report)
		{
			long		total = total_done(driver);

			printf("%.0f %ld\n", next_report, total - reported);
			fflush(stdout);
			reported = total;
			next_report += 5;
		}
	}
	printf("%ld %.6f\n", total_done(driver), now() - started_at);
	return failed;
}

int
main(int argc, char **argv)
{
	Driver		driver = {0};

	if (argc < 6)
	{
		fprintf(stderr, "usage: drive OPERATION CLIENTS BATCH PAYLOAD-BYTES LIMIT [STREAM]\n");
		return 2;
	}
	driver.operation = argv[1];
	driver.clients = atoi(argv[2]);
	driver.batch = atoi(argv[3]);
	driver.payload_bytes = atoi(argv[4]);
	if (strchr(argv[5], 's'))
		driver.second_limit = atof(argv[5]);
	else
		driver.message_limit = atol(argv[5]);
	driver.stream = argc > 6 ? argv[6] : "bench";
	if (driver.clients < 1 || driver.clients > MAX_CLIENTS || driver.batch < 1)
		return 2;
	make_payloads(&driver);
	if (strcmp(driver.operation, "idle-xid") == 0)
	{
		hold_idle_xids(&driver);
		return 0;
	}
	driver.done = mmap(NULL, MAX_CLIENTS * sizeof(long), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (driver.done == MAP_FAILED)
		return 1;
	return run_clients(&driver);
}
