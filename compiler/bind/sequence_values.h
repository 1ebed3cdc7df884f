// nextval and currval with a value for each row of a query. No program has them: the host computes the outputs that they
// stand in from the rows that the program gives, in the order of these. What else such an output is made of is an output
// of its own until then.
//
// Start at: MakeSequenceValue, FinishSequenceValues. Private to compiler/. One thread.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/query/bound_query.h"
#include "compiler/query/sequence_source.h"

namespace tessera {

/// The value of a call in each row; it is added to `calls`.
ExprPtr MakeSequenceValue(SequenceCall call, SequenceCalls* calls);

/// Takes the calls out of the bound statement's query, into Statement::finish. Errors: a call stands elsewhere than in the
/// outermost select list, or its value would have to be known before the rows are there.
Status FinishSequenceValues(const SequenceCalls& calls, const Dialect& dialect, Statement* statement);

}  // namespace tessera
