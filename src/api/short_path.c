/*-------------------------------------------------------------------------
 *
 * short_path.c
 *	  Is this call of read() a statement of its own?
 *
 * The short path keeps the cursor locked until the transaction ends, so it is
 * for statements that end at once: an autocommit SELECT whose plan is a bare
 * FunctionScan or ProjectSet of read(), or an aggregate above the former that
 * calls nothing but ack().  Everything else may run for as long as it likes
 * after read() returned: joins, other functions, INSERT ... SELECT, CREATE TABLE AS,
 * COPY, held cursors, portals that are fetched in parts, EXPLAIN ANALYZE, PL/pgSQL.
 *
 * In a pipeline the first Execute looks like a statement of its own, and its
 * transaction would last until the client sends Sync.  So the short path asks
 * for a commit right after this Execute, as commands do that cannot run inside a transaction
 * block; later ones of the pipeline are recognised and take the other way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "tcop/pquery.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"

#include "api/short_path.h"
#include "hms.h"
#include "hms_compat.h"

/* The innermost statement that the executor runs, and how many rows it was asked for (0 = all). */
static const PlannedStmt *running_statement = NULL;
static uint64 running_limit = 0;
static ExecutorRun_hook_type previous_executor_run = NULL;

/* A portal fetched in parts tells nobody but the executor: note the limit. */
static void
note_run(QueryDesc *query, ScanDirection direction, uint64 count HMS_EXECUTE_ONCE_PARAM)
{
	const PlannedStmt *outer_statement = running_statement;
	uint64		outer_limit = running_limit;

	running_statement = query->plannedstmt;
	running_limit = count;
	PG_TRY();
	{
		if (previous_executor_run)
			previous_executor_run(query, direction, count HMS_EXECUTE_ONCE_ARG);
		else
			standard_ExecutorRun(query, direction, count HMS_EXECUTE_ONCE_ARG);
	}
	PG_FINALLY();
	{
		running_statement = outer_statement;
		running_limit = outer_limit;
	}
	PG_END_TRY();
}

void
hms_short_path_install_hook(void)
{
	previous_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = note_run;
}

/* The statement that this portal runs, if it is the only one and runs to its end in one go. */
static PlannedStmt *
portal_statement(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Portal		portal = ActivePortal;
	PlannedStmt *statement;

	if (IsTransactionBlock() || IsSubTransaction() ||
		(MyXactFlags & XACT_FLAGS_PIPELINING) != 0)
		return NULL;
	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) || rsinfo->econtext == NULL ||
		rsinfo->econtext->ecxt_estate == NULL)
		return NULL;
	if (portal == NULL || portal->strategy != PORTAL_ONE_SELECT ||
		(portal->cursorOptions & CURSOR_OPT_HOLD) != 0 || list_length(portal->stmts) != 1)
		return NULL;

	statement = rsinfo->econtext->ecxt_estate->es_plannedstmt;
	if (statement != running_statement || running_limit != 0)
		return NULL;
	if (statement != linitial(portal->stmts) || statement->commandType != CMD_SELECT ||
		statement->hasModifyingCTE || statement->subplans != NIL || statement->rowMarks != NIL)
		return NULL;
	return statement;
}

static bool
is_call_of(Node *node, Oid function)
{
	return node != NULL && IsA(node, FuncExpr) && ((FuncExpr *) node)->funcid == function;
}

/* A scan of read() alone, whose filter and columns only look at its rows. */
static bool
is_bare_scan(Plan *plan, Oid read_function)
{
	FunctionScan *scan;
	RangeTblFunction *function;

	if (!IsA(plan, FunctionScan))
		return false;
	scan = (FunctionScan *) plan;
	if (list_length(scan->functions) != 1 || scan->funcordinality ||
		contain_volatile_functions((Node *) plan->targetlist) ||
		contain_volatile_functions((Node *) plan->qual))
		return false;
	function = linitial(scan->functions);
	return is_call_of(function->funcexpr, read_function);
}

/* SELECT read(...): a ProjectSet whose only column is the call. */
static bool
is_bare_projection(Plan *plan, Oid read_function)
{
	return IsA(plan, ProjectSet) &&
		list_length(plan->targetlist) == 1 &&
		is_call_of((Node *) ((TargetEntry *) linitial(plan->targetlist))->expr, read_function) &&
		plan->lefttree != NULL && IsA(plan->lefttree, Result) &&
		plan->lefttree->lefttree == NULL;
}

/* Finds a function call other than ack() in the expressions of an aggregate. */
static bool
calls_something_else(Node *node, void *ack_seen)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr))
	{
		Oid			function = ((FuncExpr *) node)->funcid;
		char	   *name = get_func_name(function);
		char	   *schema = get_namespace_name(get_func_namespace(function));

		if (name == NULL || strcmp(name, "ack") != 0 ||
			schema == NULL || strcmp(schema, HMS_SCHEMA) != 0)
			return true;
		*(bool *) ack_seen = true;
	}
	else if (IsA(node, SubPlan) || IsA(node, OpExpr))
		return true;
	return expression_tree_walker(node, calls_something_else, ack_seen);
}

/* SELECT ack(s, g, variadic array_agg(receipt)) FROM read(...). */
static bool
is_acking_aggregate(Plan *plan, Oid read_function, bool *acks)
{
	return IsA(plan, Agg) && plan->lefttree != NULL && plan->qual == NIL &&
		is_bare_scan(plan->lefttree, read_function) &&
		!calls_something_else((Node *) plan->targetlist, acks);
}

bool
hms_short_path(FunctionCallInfo fcinfo, bool *acks)
{
	PlannedStmt *statement = portal_statement(fcinfo);
	Oid			read_function = fcinfo->flinfo->fn_oid;
	Plan	   *plan;

	*acks = false;
	if (statement == NULL)
		return false;
	plan = statement->planTree;
	if (!is_bare_scan(plan, read_function) && !is_bare_projection(plan, read_function) &&
		!is_acking_aggregate(plan, read_function, acks))
		return false;
	MyXactFlags |= XACT_FLAGS_NEEDIMMEDIATECOMMIT;
	return true;
}
