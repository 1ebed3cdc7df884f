// Sequences: CREATE, ALTER and DROP, and the columns that take their values from one. Private to compiler/.
//
// Start at: BindCreateSequence, SequenceOfDefault, AddColumnSequence. The thread of the session: names are looked up in
// Dialect::sequences.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/sequence.h"

namespace tessera {

Status BindCreateSequence(const ParseNode& create, std::string_view sql, int position, const Dialect& dialect,
                          const Snapshot& snapshot, Statement* out);
Status BindAlterSequence(const ParseNode& alter, std::string_view sql, int position, const Dialect& dialect,
                         const Snapshot& snapshot, Statement* out);
/// RESTART IDENTITY of TRUNCATE.
Status BindRestart(const ParseNode& truncate, const Snapshot& snapshot, const Dialect& dialect, Statement* out);
Status BindDropSequence(const ParseNode& drop, int position, const Dialect& dialect, const Snapshot& snapshot,
                        Statement* out);

/// The sequence of an expression that is nextval('s') and nothing else; nullopt: it is another. nullptr: as NameOfText.
std::optional<std::string> SequenceOfDefault(const ParseNode& expression, const Snapshot* snapshot);
/// The same of a stored text.
std::optional<std::string> SequenceOfDefault(const std::string& text);
/// The text that is stored.
std::string NextValueText(std::string_view sequence);
/// Errors: there is no such sequence.
Status CheckSequenceExists(const std::string& name, const Dialect& dialect, int position);

/// The integer type that SERIAL and its kin stand for; nullopt: the definition has another type.
std::optional<SqlType> SerialType(const ParseNode& definition);
/// A column of `schema` gets its values from a new sequence, which is added to `sequences`. `constraint`: GENERATED AS
/// IDENTITY; nullptr: SERIAL.
Status AddColumnSequence(const ParseNode* constraint, std::string_view sql, size_t number, int position,
                         const Dialect& dialect, const Snapshot& snapshot, TableSchema* schema, Sequences* sequences);
/// That of a column that is GENERATED AS IDENTITY; nullptr: it is not.
const Sequence* IdentityOfColumn(const TableInfo& table, std::string_view column, const Sequences& sequences);
/// ALTER COLUMN ... SET GENERATED, RESTART and the like: adds what becomes of it.
Status SetIdentity(const ParseNode& options, std::string_view sql, const Sequence& identity, int position,
                   const Dialect& dialect, const Snapshot& snapshot, Sequences* sequences);
/// Errors: an INSERT gives a value to a column that is GENERATED ALWAYS AS IDENTITY.
Status CheckIdentity(const TableInfo& table, int column, const Snapshot& snapshot, int position);
/// ... or an UPDATE does.
Status CheckIdentityUpdate(const TableInfo& table, int column, const Snapshot& snapshot, int position);

}  // namespace tessera
