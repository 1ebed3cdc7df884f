#include "compiler/bind/row_rules.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "base/clock.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/sequence_binder.h"
#include "compiler/parse/parser.h"
#include "compiler/query/evaluate.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/random_calls.h"
#include "compiler/query/sequence_source.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/values/value_at.h"
#include "tablet/values/value_parser.h"
#include "vm/meaning/interval_meaning.h"
#include "vm/meaning/meaning.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

/// In a century, another month and another time of the day.
constexpr int64_t kLater = int64_t{40'000} * 86'400'000'000 + 3'661'000'001;

/// The expression over a table of which a row is being made: its columns are those of relation 0.
Result<ExprPtr> BindExpression(const ParseNode& node, std::string_view sql, const Dialect& dialect,
                               const TableSchema& schema, const SqlType& type, int64_t now) {
  auto table = std::make_shared<TableInfo>();
  table->schema = schema;
  std::vector<Relation> relations(1);
  NameScope scope;
  const std::string name = BaseName(schema.name);
  scope.variables.push_back({name, name, -1, {}});
  for (const ColumnSchema& column : schema.columns) {
    relations[0].column_names.push_back(column.name);
    relations[0].column_types.push_back(column.type);
    scope.columns.push_back({column.name, 0, static_cast<int>(scope.columns.size())});
  }
  scope.variables[0].columns = scope.columns;
  relations[0].alias = name;
  relations[0].table = std::move(table);
  BindContext context;
  context.sql = sql;
  context.dialect = &dialect;
  context.relations = &relations;
  context.now = now;
  ExpressionBinder binder(&context, &scope, Clause::kConstraint);
  if (type.id == TypeId::kBoolean) return binder.BindBoolean(node, "argument of CHECK");
  TESSERA_ASSIGN(ExprPtr e, binder.Bind(node));
  // A text that is too long is an error when it is stored; a cast would cut it.
  SqlType stored = type;
  if (stored.id == TypeId::kText) stored.length = 0;
  return binder.Coerce(std::move(e), stored, CastContext::kAssignment);
}

/// The types that expressions over a table may name: those of its columns.
std::vector<EnumType> TypesOf(const TableSchema& schema) {
  std::vector<EnumType> types;
  for (const ColumnSchema& column : schema.columns) {
    if (column.type.id == TypeId::kEnum) types.push_back(EnumOf(column.type));
  }
  return types;
}

/// random() and gen_random_uuid() of a DEFAULT: by the system's seeds, those of the call or the thread's.
Value RandomValue(const Expr& e, size_t row) {
  vm::Lane lane;
  if (e.function == Function::kRandomUuid) {
    const auto seed = [&](size_t i) { return e.args[i]->constant.i64; };
    return Value::Wide(e.type, vm::meaning::RandomUuidI::Apply(static_cast<int64_t>(row), seed(0), seed(1), lane));
  }
  if (e.function != Function::kRandom) return Value::Null(e.type);
  thread_local std::mt19937_64 bits{std::random_device{}()};
  return Value::Float(e.type, vm::meaning::RandomF::Apply(static_cast<int64_t>(bits()), lane));
}

}  // namespace

Result<Value> ComputeRow(const Expr& e, const RowBatch& batch, size_t row, const RowSequences* sequences) {
  if (e.kind == Expr::Kind::kConstant) return e.constant;
  if (e.kind == Expr::Kind::kColumn) return ValueAt(batch.columns[static_cast<size_t>(e.column)], row, e.type);
  if (e.kind != Expr::Kind::kFunction) return Status(ErrorCode::kInternal, "a row's expression is not one of values");
  const auto is_true = [](const Value& v) { return !v.null && v.i64 != 0; };
  if (e.function == Function::kAnd || e.function == Function::kOr) {
    const bool absorbing = e.function == Function::kOr;
    bool null = false;
    for (const ExprPtr& a : e.args) {
      TESSERA_ASSIGN(const Value v, ComputeRow(*a, batch, row, sequences));
      null = null || v.null;
      if (!v.null && (v.i64 != 0) == absorbing) return v;
    }
    return null ? Value::Null(e.type) : Value::Int(e.type, absorbing ? 0 : 1);
  }
  if (e.function == Function::kCase) {
    for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
      TESSERA_ASSIGN(const Value when, ComputeRow(*e.args[i], batch, row, sequences));
      if (is_true(when)) return ComputeRow(*e.args[i + 1], batch, row, sequences);
    }
    return ComputeRow(*e.args.back(), batch, row, sequences);
  }
  if (e.function == Function::kSequenceValue && sequences != nullptr) {
    TESSERA_ASSIGN(const int64_t value, (*sequences)(static_cast<size_t>(e.args[0]->constant.i64)));
    return Value::Int(e.type, value);
  }
  if (Info(e.function).translation == Translation::kRandom) return RandomValue(e, row);
  std::vector<ExprPtr> args;
  args.reserve(e.args.size());
  for (const ExprPtr& a : e.args) {
    TESSERA_ASSIGN(Value v, ComputeRow(*a, batch, row, sequences));
    args.push_back(MakeConstant(std::move(v), -1));
  }
  return EvaluateFunction(e.function, e.type, e.field, args);
}

namespace {

/// A value of the sequence, as one of that type.
Result<Value> SequenceValue(const std::string& sequence, const SqlType& type, SequenceSource* source) {
  if (source == nullptr) return Unsupported("a DEFAULT of a sequence is not supported here");
  TESSERA_ASSIGN(const int64_t number, source->Next(sequence));
  if (type.id == TypeId::kBigint) return Value::Int(type, number);
  return ParseValue(std::to_string(number), type);
}

struct Rules {
  struct Numbered {
    size_t column;
    std::string sequence;
  };
  struct Generated {
    size_t column;
    ExprPtr value;
  };
  struct Check {
    std::string name;
    ExprPtr condition;
  };
  TableSchema schema;
  std::vector<Generated> defaults;  ///< of columns that the rows have no values for
  std::vector<Numbered> numbered;   ///< likewise: DEFAULT nextval('s')
  SequenceSource* source = nullptr;
  std::vector<Generated> generated;
  std::vector<Check> checks;

  Status Number(RowBatch* batch) const {
    for (const Numbered& n : numbered) {
      ColumnVector made;
      made.type = schema.columns[n.column].type;
      for (size_t row = 0; row < batch->rows; ++row) {
        TESSERA_ASSIGN(const Value value, SequenceValue(n.sequence, made.type, source));
        made.Append(value);
      }
      batch->columns[n.column] = std::move(made);
    }
    return Status::Ok();
  }

  Status Apply(RowBatch* batch, uint64_t first_row) const {
    const auto place = [&](size_t row) {
      return ", row " + std::to_string(first_row + row) + " of table \"" + schema.name + "\"";
    };
    const auto make = [&](const Generated& g, const char* what, uint64_t before) -> Status {
      ColumnVector made;
      made.type = schema.columns[g.column].type;
      for (size_t row = 0; row < batch->rows; ++row) {
        Result<Value> value = ComputeRow(*g.value, *batch, before + row);
        if (!value.ok()) {
          return {value.status().kind(), value.status().message() + ": " + what + " column \"" +
                                             schema.columns[g.column].name + "\"" + place(row)};
        }
        value->type = made.type;
        made.Append(*value);
      }
      batch->columns[g.column] = std::move(made);
      return Status::Ok();
    };
    // A DEFAULT has no columns; it counts the rows of all batches.
    for (const Generated& g : defaults) TESSERA_TRY(make(g, "DEFAULT of", first_row));
    TESSERA_TRY(Number(batch));
    for (const Generated& g : generated) TESSERA_TRY(make(g, "generated", 0));
    for (size_t row = 0; !checks.empty() && row < batch->rows; ++row) {
      for (const Check& check : checks) {
        Result<Value> value = ComputeRow(*check.condition, *batch, row);
        if (!value.ok()) {
          return {value.status().kind(),
                  value.status().message() + ": check constraint \"" + check.name + "\"" + place(row)};
        }
        if (value->null || value->i64 != 0) continue;
        return {ErrorKind::kCheckViolation, "violates check constraint \"" + check.name + "\"" + place(row)};
      }
    }
    return Status::Ok();
  }
};

/// The expression of a stored text. `zone`: the session's, or nullptr.
Result<ExprPtr> ReadExpression(const std::string& text, const TableSchema& schema, const SqlType& type,
                               const TimeZone* zone, int64_t now) {
  const std::string sql = "SELECT " + text;
  TESSERA_ASSIGN(ParsedStatement parsed, Parse(sql));
  const ParseNode* targets = parsed.statement->Get(Field::k_targetList);
  if (targets == nullptr || targets->size() != 1 || parsed.statement->Get(Field::k_fromClause) != nullptr)
    return SqlError("\"" + text + "\" is no expression");
  const std::vector<EnumType> types = TypesOf(schema);
  parsed.dialect.zone = zone;
  parsed.dialect.types = &types;
  return BindExpression(*targets->first()->Get(Field::k_val), sql, parsed.dialect, schema, type, now);
}

}  // namespace

Status CheckRowExpression(const ParseNode& node, std::string_view sql, const Dialect& full, const TableSchema& schema,
                          const ColumnSchema* generated) {
  // The types are those that it may name later.
  const std::vector<EnumType> types = TypesOf(schema);
  Dialect dialect = full;
  dialect.types = &types;
  const std::string what = generated != nullptr ? "a generated column" : "a CHECK constraint";
  const SqlType type = generated != nullptr ? generated->type : kBoolean;
  TESSERA_ASSIGN(const ExprPtr now, BindExpression(node, sql, dialect, schema, type, 0));
  TESSERA_ASSIGN(const ExprPtr later, BindExpression(node, sql, dialect, schema, type, kLater));
  const int position = node.FirstLocation();
  if (IsVolatile(*now)) return Unsupported("random() in " + what + " is not supported", position);
  if (!now->SameAs(*later)) return Unsupported("the time of the statement in " + what + " is not supported", position);
  Status status;
  ForEachColumn(*now, [&](const Expr& c) {
    if (generated != nullptr && schema.columns[static_cast<size_t>(c.column)].generated_text && status.ok())
      status = SqlError(ErrorKind::kObjectDefinition, "a generated column cannot refer to another generated column",
                        c.position);
  });
  return status;
}

Result<ExprPtr> ReadRowExpression(const std::string& text, const TableSchema& schema, const SqlType& type) {
  return ReadExpression(text, schema, type, nullptr, 0);
}

Result<std::vector<int>> ColumnsOfRowExpression(const ParseNode& node, std::string_view sql, const Dialect& dialect,
                                                const TableSchema& schema) {
  TESSERA_ASSIGN(const ExprPtr e, BindExpression(node, sql, dialect, schema, kBoolean, 0));
  std::vector<int> columns;
  ForEachColumn(*e, [&](const Expr& c) {
    if (std::find(columns.begin(), columns.end(), c.column) == columns.end()) columns.push_back(c.column);
  });
  return columns;
}

Result<bool> CheckDefault(ExpressionBinder* binder, const ParseNode& node, const ColumnSchema& column,
                          std::string_view sql, const Dialect& dialect) {
  if (const std::optional<std::string> sequence = SequenceOfDefault(node, dialect.relations)) {
    TESSERA_TRY(CheckSequenceExists(*sequence, dialect, node.FirstLocation()));
    if (FindCast(SqlType::Of(TypeId::kBigint), column.type) <= CastContext::kAssignment) return true;
    return SqlError("column \"" + column.name + "\" is of type " + column.type.ToString() +
                        " but default expression is of type BIGINT",
                    node.FirstLocation(), "Make it a BIGINT.");
  }
  TESSERA_ASSIGN(const ExprPtr e, binder->Bind(node));  // errors of names and calls
  if (e->type.id == TypeId::kNull) return false;
  if (FindCast(e->type, column.type) > CastContext::kAssignment) {
    return SqlError(ErrorKind::kDatatypeMismatch,
                    "column \"" + column.name + "\" is of type " + column.type.ToString() +
                        " but default expression is of type " + e->type.ToString(),
                    node.FirstLocation(), "You will need to rewrite or cast the expression.");
  }
  const TableSchema no_columns;
  TESSERA_ASSIGN(const ExprPtr now, BindExpression(node, sql, dialect, no_columns, column.type, 0));
  TESSERA_ASSIGN(const ExprPtr later, BindExpression(node, sql, dialect, no_columns, column.type, kLater));
  if (IsVolatile(*now)) return true;
  return !now->SameAs(*later);
}

Result<Value> DefaultValue(const ColumnSchema& column, const Dialect& dialect) {
  if (!column.default_expression) return DefaultOf(column);
  const std::optional<std::string> sequence = SequenceOfDefault(*column.default_expression);
  if (sequence && !dialect.takes_values) return ParseValue("1", column.type);
  if (sequence) return SequenceValue(*sequence, column.type, dialect.sequences);
  TableSchema schema;
  schema.columns.push_back(column);
  TESSERA_ASSIGN(const ExprPtr e,
                 ReadExpression(*column.default_expression, schema, column.type, dialect.zone, MicrosecondsNow()));
  TESSERA_ASSIGN(Value value, ComputeRow(*e, {}, 0));
  value.type = column.type;
  return value;
}

Result<RowRules> MakeRowRules(const TableSchema& schema, std::span<const int> given, const Dialect& dialect) {
  auto rules = std::make_shared<Rules>();
  rules->schema = schema;
  const int64_t now = MicrosecondsNow();
  for (size_t c = 0; c < schema.columns.size(); ++c) {
    const ColumnSchema& column = schema.columns[c];
    if (!column.default_expression || std::find(given.begin(), given.end(), static_cast<int>(c)) != given.end())
      continue;
    if (std::optional<std::string> sequence = SequenceOfDefault(*column.default_expression)) {
      rules->numbered.push_back({c, *std::move(sequence)});
      rules->source = dialect.sequences;
      continue;
    }
    Result<ExprPtr> value = ReadExpression(*column.default_expression, schema, column.type, dialect.zone, now);
    if (!value.ok()) {
      return Status(value.status().kind(), "DEFAULT of column \"" + column.name + "\" of table \"" + schema.name +
                                               "\": " + value.status().message());
    }
    rules->defaults.push_back({c, std::move(value).value()});
  }
  for (size_t c = 0; c < schema.columns.size(); ++c) {
    const ColumnSchema& column = schema.columns[c];
    if (!column.generated_text) continue;
    Result<ExprPtr> value = ReadExpression(*column.generated_text, schema, column.type, nullptr, 0);
    if (!value.ok()) {
      return Status(value.status().kind(), "generated column \"" + column.name + "\" of table \"" + schema.name +
                                               "\": " + value.status().message());
    }
    rules->generated.push_back({c, std::move(value).value()});
  }
  for (const CheckConstraint& check : schema.checks) {
    Result<ExprPtr> condition = ReadExpression(check.text, schema, kBoolean, nullptr, 0);
    if (!condition.ok()) {
      return Status(condition.status().kind(), "check constraint \"" + check.name + "\" of table \"" + schema.name +
                                                   "\": " + condition.status().message());
    }
    rules->checks.push_back({check.name, std::move(condition).value()});
  }
  if (rules->defaults.empty() && rules->numbered.empty() && rules->generated.empty() && rules->checks.empty())
    return RowRules();
  return RowRules([rules](RowBatch* batch, uint64_t first_row) { return rules->Apply(batch, first_row); });
}

}  // namespace tessera
