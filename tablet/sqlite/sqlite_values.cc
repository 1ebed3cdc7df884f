#include "tablet/sqlite/sqlite_values.h"

#include <bit>
#include <string>
#include <string_view>

#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

/// What was stored, as an error names it.
std::string Shown(const SqliteQuery& query, int number) {
  switch (query.TypeOf(number)) {
    case SQLITE_INTEGER:
      return "integer " + std::to_string(query.Integer(number));
    case SQLITE_FLOAT:
      return "real " + ToText(Value::Float(SqlType::Of(TypeId::kDouble), query.Real(number)));
    case SQLITE_BLOB:
      return "a blob of " + std::to_string(query.Bytes(number).size()) + " bytes";
    default:
      return "text " + QuoteForMessage(query.Bytes(number));
  }
}

Status Misfit(const SqliteQuery& query, int number, const SqlType& type) {
  return SqlError(ErrorKind::kInvalidText, Shown(query, number) + " is no " + type.ToString());
}

void AppendBytes(std::string_view bytes, ColumnVector* out) {
  if (out->offsets.empty()) out->offsets.push_back(0);
  out->bytes.append(bytes);
  out->offsets.push_back(out->bytes.size());
}

/// A value that is not NULL, as a text.
Status AppendAsText(const SqliteQuery& query, int number, ColumnVector* out) {
  const int stored = query.TypeOf(number);
  if (stored == SQLITE_INTEGER) {
    AppendBytes(std::to_string(query.Integer(number)), out);
    return {};
  }
  if (stored == SQLITE_FLOAT) {
    AppendBytes(ToText(Value::Float(SqlType::Of(TypeId::kDouble), query.Real(number))), out);
    return {};
  }
  if (stored == SQLITE_BLOB) return Misfit(query, number, out->type);
  const std::string_view text = query.Bytes(number);
  const ParseError error = CheckText(text, out->type);
  if (error != ParseError::kNone) return ParseFailure(error, text, out->type);
  AppendBytes(text, out);
  return {};
}

/// By way of its text.
Status AppendParsed(const SqliteQuery& query, int number, const TimeZone* zone, ColumnVector* out) {
  const int stored = query.TypeOf(number);
  // A number stands for a decimal or a truth, and for no moment: SQLite has it in three units.
  const bool takes_numbers = out->type.id == TypeId::kDecimal || out->type.id == TypeId::kBoolean;
  if (stored == SQLITE_BLOB || (stored != SQLITE_TEXT && !takes_numbers)) return Misfit(query, number, out->type);
  // (Most are days or moments that are well-formed.)
  const bool is_date = out->type.id == TypeId::kDate;
  if (is_date || out->type.id == TypeId::kTimestamp) {
    const std::string_view moment = TrimBlanks(query.Bytes(number));
    int64_t v = 0;
    if ((is_date ? ParseDate(moment, &v) : ParseTimestamp(moment, &v)) == ParseError::kNone) {
      out->fixed.push_back(v);
      if (!out->null.empty()) out->null.push_back(0);
      return {};
    }
  }
  std::string text;
  if (stored == SQLITE_INTEGER) {
    text = std::to_string(query.Integer(number));
  } else if (stored == SQLITE_FLOAT) {
    text = ToText(Value::Float(SqlType::Of(TypeId::kDouble), query.Real(number)));
  } else {
    text = query.Bytes(number);
  }
  const Result<Value> value = ParseValue(text, out->type, zone);
  if (!value.ok()) return stored == SQLITE_TEXT ? value.status() : Misfit(query, number, out->type);
  out->Append(*value);
  return {};
}

Status AppendValue(const SqliteQuery& query, int number, int stored, const TimeZone* zone, ColumnVector* out) {
  const TypeId type = out->type.id;
  if (type == TypeId::kText) return AppendAsText(query, number, out);
  if (type == TypeId::kBigint) {
    if (stored != SQLITE_INTEGER) return Misfit(query, number, out->type);
    out->fixed.push_back(query.Integer(number));
  } else if (type == TypeId::kDouble) {
    if (stored != SQLITE_INTEGER && stored != SQLITE_FLOAT) return Misfit(query, number, out->type);
    out->fixed.push_back(std::bit_cast<int64_t>(query.Real(number)));
  } else if (type == TypeId::kBytea) {
    if (stored != SQLITE_BLOB && stored != SQLITE_TEXT) return Misfit(query, number, out->type);
    AppendBytes(query.Bytes(number), out);
  } else {
    return AppendParsed(query, number, zone, out);
  }
  return {};
}

}  // namespace

Status AppendStored(const SqliteQuery& query, int number, const TimeZone* zone, ColumnVector* out) {
  const int stored = query.TypeOf(number);
  if (stored == SQLITE_NULL) {
    out->Append(Value::Null(out->type));
    return {};
  }
  const bool parsed = out->type.id != TypeId::kBigint && out->type.id != TypeId::kDouble &&
                      out->type.id != TypeId::kText && out->type.id != TypeId::kBytea;
  TESSERA_TRY(AppendValue(query, number, stored, zone, out));
  if (!parsed && !out->null.empty()) out->null.push_back(0);
  return {};
}

}  // namespace tessera
