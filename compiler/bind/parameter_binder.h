// PREPARE, EXECUTE and DEALLOCATE as statements, and what is known of a statement's parameters. Private to compiler/.
//
// Start at: BindExecute, CheckParameters. Pure functions; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "compiler/query/parameters.h"
#include "vm/program/program.h"

namespace tessera {

/// The name and the declared types. The statement itself is a text of its own, see compiler/parse/prepared_text.h.
Status BindPrepare(const ParseNode& node, std::string_view sql, const Dialect& dialect, Statement* out);
/// The name and the arguments, which are constants.
Status BindExecute(const ParseNode& node, std::string_view sql, const Dialect& dialect, Statement* out);
Status BindDeallocate(const ParseNode& node, Statement* out);

/// Errors: a type was not found, with what to write.
Status CheckParameters(const Parameters& parameters);
/// As ParameterValue of compiler/compiler.h.
Result<Value> CastArgument(const Value& given, size_t number, const SqlType& type, const TimeZone* zone);
/// As FillParameters of compiler/compiler.h.
bool FillHeld(const std::vector<HeldParameter>& held, const std::vector<Value>& values, const TimeZone* zone,
              vm::Program* program);

}  // namespace tessera
